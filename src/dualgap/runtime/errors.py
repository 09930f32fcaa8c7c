"""Errors that a user can act on: one line that says what, where, which value, and what to do."""

from __future__ import annotations

import difflib
from collections.abc import Iterable


class InputError(ValueError):
    """Something the caller gave cannot be used; the message says what, and the remedy, in one line."""

    def __init__(self, message: str) -> None:
        super().__init__(" ".join(message.splitlines()))  # the name of a file may hold a newline


class TrivialModelWarning(UserWarning):
    """The model that is handed back is the all-zero one, because a run has seen no better one."""


class CheckpointWarning(UserWarning):
    """A run could not be saved, and goes on."""


class KernelCacheWarning(UserWarning):
    """Compiled kernels cannot be stored, so every process compiles them anew."""


class InternalError(RuntimeError):
    """The library caught itself in a contradiction. It hands back nothing rather than something wrong."""


def closest(name: str, known: Iterable[str]) -> str | None:
    """The known name that an unknown one is most like, if any is; one that differs in case comes first."""
    known = list(known)
    alike = [other for other in known if other.lower() == name.lower()]
    found = alike or difflib.get_close_matches(name, known, n=1, cutoff=0.6)
    return found[0] if found else None


def suggestion(name: str, known: Iterable[str]) -> str:
    """The question whether the closest name was meant, with a blank behind it; nothing if none is close."""
    close = closest(name, known)
    return "" if close is None else f"did you mean {close!r}? "


def nearest(name: str, known: Iterable[str]) -> str:
    """The end of an error message about an unknown name: the nearest known one, and the whole list."""
    known = sorted(known)
    return (
        f"{suggestion(name, known)}there {'is' if len(known) == 1 else 'are'}: {', '.join(known)}"
        if known
        else "there are none"
    )
