"""Read svmlight text: one row a line, ``label index:value index:value ...``, as SVMlight and LIBSVM know it.

Comments from ``#`` to the end of the line, blank lines, CRLF and a missing last newline are fine, and so are indices
in any order. ``qid:`` is ignored, and the result says so.

Plain pieces of a file are parsed with vector operations. A piece with anything unusual in it is parsed again, line by
line, by code whose first purpose is to explain what is wrong. Both take exactly the same numbers.
"""

from __future__ import annotations

import os
import warnings
from dataclasses import dataclass
from pathlib import Path
from typing import Any, Literal, NamedTuple

import numpy as np
import numpy.typing as npt
import scipy.sparse as sp

from ..arrays import Floats, Offsets
from ..errors import InputError
from . import svmlight_lines as slow
from .text import pieces

ZeroBased = Literal["auto", "yes", "no"]

_VECTORS = 6  # arrays of one float64 a column that training holds at a time, or a little more
_EXACT = 2**53  # whole numbers below pass through float64 unharmed


@dataclass(frozen=True, eq=False)
class SvmlightData:
    """What a file holds. ``lines[i]`` is the line that row i comes from; ``notes`` are remarks a user should see."""

    path: Path
    X: sp.csr_array
    y: Floats
    zero_based: bool
    lines: Offsets
    notes: tuple[str, ...] = ()


class Part(NamedTuple):
    """The rows of one piece of a file."""

    labels: Floats
    counts: Offsets  # entries a row
    indices: Offsets
    values: Floats
    lines: Offsets
    qids: int = 0


def read_svmlight(
    path: str | os.PathLike[str],
    *,
    n_features: int | None = None,
    zero_based: ZeroBased = "auto",
    too_wide: str = "raise n_features (--n-features) or mend the line",
) -> SvmlightData:
    """Read svmlight text, plain or compressed (``.gz``, ``.bz2``, ``.xz``).

    Parameters
    ----------
    path : path
        The file.
    n_features : int, optional
        The number of columns; by default as many as the highest index asks for. A higher index is an error.
    zero_based : {"auto", "yes", "no"}
        Whether indices count from 0. With "auto" they do if there is an index 0 in the file.
    too_wide : str
        What the error about an index beyond ``n_features`` tells the user to do.

    Returns
    -------
    SvmlightData
        ``X`` (CSR, float64, indices sorted), ``y`` (float64), ``zero_based`` (what was decided), ``lines``, ``notes``.
    """
    path = Path(path)
    if zero_based not in ("auto", "yes", "no"):
        raise InputError(f"zero_based={zero_based!r} must be 'auto', 'yes' or 'no'")
    if n_features is not None and n_features < 1:
        raise InputError(f"n_features={n_features!r} must be at least 1")
    parts: list[Part] = []
    line = 1
    for piece in pieces(path):
        text = slow.without_comments(piece)
        parts.append(_parse_plain(text, line) or Part(*slow.parse(path, text, line)))
        line += piece.count(b"\n")
    part = _joined(parts)
    if part.labels.size == 0:
        raise InputError(f"{path}: no rows in it, only blank lines or comments")
    return _assemble(path, part, n_features, zero_based, too_wide)


def _assemble(path: Path, part: Part, n_features: int | None, zero_based: ZeroBased, too_wide: str) -> SvmlightData:
    labels, counts, indices, values, lines, qids = part
    starts = np.concatenate([[0], np.cumsum(counts)])

    def at(entry: int) -> str:
        return f"{path}, line {lines[np.searchsorted(starts, entry, side='right') - 1]}"

    auto = zero_based == "auto"
    from_zero = (indices.size > 0 and int(indices.min()) == 0) if auto else zero_based == "yes"
    base = 0 if from_zero else 1
    if indices.size and indices.min() < base:
        entry = int(np.argmax(indices < base))
        raise InputError(f"{at(entry)}: index 0 where indices count from 1; pass --zero-based yes if they count from 0")
    width = int(indices.max()) + 1 - base if indices.size else 0
    if n_features is not None and width > n_features:
        entry = int(np.argmax(indices - base >= n_features))
        raise InputError(f"{at(entry)}: index {indices[entry]} is beyond the {n_features} features; {too_wide}")
    if width == 0 and n_features is None:
        raise InputError(f"{path}: no row has any feature; pass --n-features if that is meant")
    if n_features is None:
        _refuse_hugeness(width, f"{at(int(np.argmax(indices)))}: index {indices.max()}")
    else:
        _refuse_hugeness(n_features, f"n_features={n_features}")

    X = sp.csr_array((values, indices - base, starts), shape=(labels.size, n_features or width))
    X.sort_indices()
    twice = _first_repeated(X)
    if twice >= 0:
        index = int(X.indices[twice]) + base
        raise InputError(f"{at(twice)}: index {index} occurs twice; merge or drop one of the two entries")
    notes = []
    if auto and not from_zero:
        notes.append("indices count from 1, as there is no index 0 (--zero-based yes: from 0)")
    elif auto:
        notes.append("indices count from 0, as there is an index 0")
    if qids:
        notes.append(f"qid ignored on {qids} lines: rows are not grouped into queries")
    return SvmlightData(path, X, labels, bool(from_zero), lines, tuple(notes))


def _first_repeated(X: sp.csr_array) -> int:
    """The position of the first entry whose neighbour in the same sorted row has the same column, or -1."""
    same = np.diff(X.indices) == 0
    edges = X.indptr[1:-1]
    same[edges[(edges > 0) & (edges < X.indices.size)] - 1] = False
    return int(np.argmax(same)) if same.any() else -1


def _joined(parts: list[Part]) -> Part:
    columns = list(zip(*(part[:5] for part in parts), strict=True)) or [()] * 5
    types: list[npt.DTypeLike] = [np.float64, np.int64, np.int64, np.float64, np.int64]
    arrays: list[Any] = [
        np.concatenate(column) if column else np.zeros(0, dtype) for column, dtype in zip(columns, types, strict=True)
    ]
    return Part(*arrays)._replace(qids=sum(part.qids for part in parts))


_SPACE, _NEWLINE, _COLON, _DIGIT, _MARK = 1, 2, 3, 4, 5
_KINDS = np.zeros(256, dtype=np.uint8)  # 0: a byte that plain pieces do not have
_KINDS[list(b" \t\r")] = _SPACE
_KINDS[list(b"\n")] = _NEWLINE
_KINDS[list(b":")] = _COLON
_KINDS[list(b"0123456789")] = _DIGIT
_KINDS[list(b"+-.eE")] = _MARK


def _parse_plain(text: bytes, line: int) -> Part | None:
    """The rows of a piece that begins at this line, or None where only the line-by-line parser will do."""
    text = b"\n" + text + b"\n"  # so that tokens and lines have an edge on both sides
    kinds = _KINDS[np.frombuffer(text, dtype=np.uint8)]
    if not kinds.all():
        return None
    blank = kinds <= _NEWLINE
    edges = np.flatnonzero(blank[1:] != blank[:-1]) + 1
    first, last = edges[0::2], edges[1::2]  # of every token; `last` is one past it
    token_line = np.searchsorted(np.flatnonzero(kinds == _NEWLINE), first)
    leads = np.diff(token_line, prepend=0) != 0
    colons = np.flatnonzero(kinds == _COLON)
    pair, pair_end = first[~leads], last[~leads]
    if colons.size != pair.size or not ((pair < colons) & (colons < pair_end - 1)).all():
        return None
    not_digits = np.cumsum(kinds != _DIGIT, dtype=np.int32)
    if (not_digits[colons - 1] != not_digits[pair - 1]).any():  # an index that is no row of digits
        return None
    numbers = _numbers(text.replace(b":", b" "), first.size + colons.size)
    if numbers is None:
        return None
    rows = np.flatnonzero(leads)
    label_at = 2 * rows - np.arange(rows.size)
    entries = np.delete(numbers, label_at).reshape(-1, 2)
    if entries.size and entries[:, 0].max() >= _EXACT:
        return None
    counts = np.diff(rows, append=first.size) - 1
    indices, values = entries[:, 0].astype(np.int64), np.ascontiguousarray(entries[:, 1])
    return Part(numbers[label_at], counts, indices, values, token_line[rows] + (line - 1))


def _numbers(text: bytes, expected: int) -> Floats | None:
    """All numbers of a text, if it holds exactly that many and all are finite."""
    if expected == 0:
        return np.zeros(0)
    try:
        with warnings.catch_warnings():
            warnings.simplefilter("error", DeprecationWarning)  # how older NumPy says that a number is malformed
            found: Floats = np.fromstring(text, dtype=np.float64, sep=" ")
    except (ValueError, DeprecationWarning):
        return None
    return found if found.size == expected and np.isfinite(found).all() else None


def _refuse_hugeness(width: int, where: str) -> None:
    """A wide model needs memory for its columns whether or not the file has anything in them."""
    needed = 8 * _VECTORS * width
    if needed <= max(10**9, _available_memory() // 2) and width <= 2**32:
        return
    raise InputError(
        f"{where} means {width} columns, which take about {needed / 1e9:.3g} GB to train; --n-features N "
        "finds wrong indices (those beyond N), and hashing (index modulo 2**24, say) makes do with fewer columns"
    )


def _available_memory() -> int:
    try:
        for line in Path("/proc/meminfo").read_text().splitlines():
            if line.startswith("MemAvailable:"):
                return int(line.split()[1]) * 1024
    except OSError:
        pass
    return os.sysconf("SC_PAGE_SIZE") * os.sysconf("SC_PHYS_PAGES")
