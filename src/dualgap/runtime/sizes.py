"""How much a packed file may hold: known before anything of it is unpacked."""

from __future__ import annotations

LEAST = 2**30  # bytes that any file may unpack to
MOST_FOLD = 64  # larger ones only this many times their size: numbers shrink far less than that
_UNITS = ("bytes", "kB", "MB", "GB", "TB", "PB")


def check_unpacked(packed: int, unpacked: int) -> None:
    """Raise a ValueError where so many bytes in a file of so many are more than honest numbers come to."""
    if unpacked > max(LEAST, MOST_FOLD * packed):
        raise ValueError(
            f"it would unpack to {shown_size(unpacked)}, from {shown_size(packed)}; the limit is "
            f"{shown_size(LEAST)}, or {MOST_FOLD} times the size of a larger file"
        )


def shown_size(size: float) -> str:
    """A number of bytes for messages."""
    rank = 0
    while size >= 1000.0 and rank < len(_UNITS) - 1:
        size, rank = size / 1000.0, rank + 1
    return f"{size:.3g} {_UNITS[rank]}"
