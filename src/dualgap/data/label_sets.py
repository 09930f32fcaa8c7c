"""Rows that have any number of labels each (multilabel): as matrices of 0 and 1, or as sets written "1,5,7".

Every label is a class of its own, told from the rest on the same rows. The sets that occur are numbered, and
the target of a row is the number of its set; so a row has one number for its labels, and sources, feeds and
hashes of rows need not know of sets.
"""

from __future__ import annotations

import math
from collections import Counter
from collections.abc import Callable
from dataclasses import dataclass
from functools import cached_property
from itertools import pairwise
from typing import Any

import numpy as np
import scipy.sparse as sp

from ..runtime.arrays import Floats
from ..runtime.errors import InputError
from .chunks import Feed
from .labels import MOST_CLASSES, Labels, classes_of, listed, shown_label
from .words import COMMA, Names

LabelSet = tuple[str, ...]  # the labels of a row, as they are shown
_SHOWN = 8  # labels that a sentence lists
_NOT_BINARY = "y must hold 0 and 1 only, a column for each label"


@dataclass(frozen=True, eq=False)
class LabelSets(Labels):
    """All labels, and the different sets of them that rows have, as sorted positions in ``classes``."""

    sets: tuple[tuple[int, ...], ...] = ()
    unknown: tuple[tuple[str, int], ...] = ()  # labels of the rows that were left out, with their rows

    @classmethod
    def of_rows(cls, y: Any, names: Names, name: str | None) -> LabelSets:
        """All labels of some rows, and their sets. A column of a matrix is a label, be it empty.

        ``y`` is a matrix, or codes of sets for ``names``. ``name`` is that of the file or feed, for messages;
        None: the labels are an argument ``y``.
        """
        where = name or "y"
        if isinstance(y, NamedColumns):
            classes: Any = _in_numbers(y.labels)
        elif is_label_matrix(y):
            classes = np.arange(y.shape[1])
        else:
            classes = _sorted({label for each in _named(y, names)[1] for label in each})
        if len(classes) < 2:
            raise InputError(
                f"{where}: there is {'one label only' if len(classes) else 'no label'}, and multilabel takes "
                "two or more; for one, a label a row will do"
            )
        if len(classes) > MOST_CLASSES:
            raise InputError(
                f"{where}: {len(classes):,} different labels, where multilabel takes {MOST_CLASSES:,} at most"
            )
        return cls(classes).for_rows(y, names, name)

    def for_rows(self, y: Any, names: Names, name: str | None, leave_out: bool = False) -> LabelSets:
        """The same labels with the sets of these rows; others are left out of them, or else refused."""
        codes, found = self._sets_of(y, names, name)
        unknown = self._unknown(codes, found)
        if unknown and not leave_out:
            label, known = next(iter(unknown)), listed(self.classes)
            raise InputError(f"{name or 'y'}: label {label} is none of the labels known, which are {known}")
        sets = tuple(sorted({self._positions(each) for each in found}))
        return LabelSets(self.classes, sets, tuple(unknown.items()))

    @property
    def left_out(self) -> str:
        """A sentence about labels of held-out rows that no training row has, or nothing."""
        told = ", ".join(f"{label}: {count:,}" for label, count in self.unknown[:_SHOWN])
        more = ", ..." * (len(self.unknown) > _SHOWN)
        return f"labels that no training row has, left out (with their rows): {told}{more}" if told else ""

    @property
    def models(self) -> int:
        """One for each label."""
        return len(self.classes)

    def set_numbers(self, y: Any, names: Names) -> Floats:
        """The targets of rows: the numbers of their sets."""
        codes, found = self._sets_of(y, names, None)
        numbers = {each: number for number, each in enumerate(self.sets)}
        targets: Floats = np.array([numbers[self._positions(each)] for each in found], dtype=np.float64)[
            codes
        ]
        return targets

    def against(self, targets: Floats, k: int) -> Floats:
        """+1 where label k is in the set of that number, -1 elsewhere."""
        return np.array([1.0 if k in each else -1.0 for each in self.sets])[targets.astype(np.intp)]

    def indicators(self, y: Any, names: Names) -> tuple[Any, Counter[str]]:
        """A row of booleans for each row, one a label; and how many rows have labels that are not known."""
        codes, found = self._sets_of(y, names, None)
        has = np.zeros((len(found), len(self.classes)), dtype=bool)
        for row, each in enumerate(found):
            has[row, list(self._positions(each))] = True
        return has[codes], self._unknown(codes, found)

    def _unknown(self, codes: Any, found: list[LabelSet]) -> Counter[str]:
        """How many rows have each label that is none of these; ``codes`` are the numbers of their sets."""
        unknown: Counter[str] = Counter()
        for each, count in zip(found, np.bincount(codes, minlength=len(found)).tolist(), strict=True):
            unknown.update(dict.fromkeys((label for label in each if label not in self._places), count))
        return unknown

    @cached_property
    def _places(self) -> dict[str, int]:
        return {shown_label(label): k for k, label in enumerate(self.classes)}

    def _positions(self, labels: LabelSet) -> tuple[int, ...]:
        return tuple(sorted(self._places[label] for label in labels if label in self._places))

    def _sets_of(self, y: Any, names: Names, name: str | None) -> tuple[Any, list[LabelSet]]:
        """The different sets of rows, and the number of each row's."""
        if not is_label_matrix(y):
            return _named(y, names)
        columns = [shown_label(label) for label in self.classes]
        if isinstance(y, NamedColumns):
            missing = [label for label in columns if label not in y.labels]
            if missing:
                raise InputError(f"y has no column {missing[0]!r}; its columns are {listed(y.labels)}")
            return _listed_in_matrix(y.matrix, list(y.labels))
        if y.shape[1] != len(self.classes):
            raise InputError(
                f"{name or 'y'} has {y.shape[1]} columns for {len(self.classes)} labels; they must be as many"
            )
        return _listed_in_matrix(y, columns)


@dataclass(frozen=True, eq=False)
class NamedColumns:
    """A matrix of 0 and 1 whose columns have names, which are the labels: a data frame."""

    matrix: Any
    labels: LabelSet

    @classmethod
    def of(cls, matrix: Any, names: Any) -> NamedColumns:
        """The columns under the names of their labels, which must differ."""
        labels = tuple(_written(str(name)) for name in names)
        twice = [label for label, count in Counter(labels).items() if count > 1]
        if twice:
            raise InputError(f"y has two columns for the label {twice[0]!r}; give each label one column")
        try:
            return cls(matrix.astype(np.float64) if matrix.dtype == object else matrix, labels)
        except (TypeError, ValueError):
            raise InputError(_NOT_BINARY) from None


def is_label_matrix(y: Any) -> bool:
    """Whether labels are a matrix: a row for each row, a column for each label."""
    if isinstance(y, NamedColumns):
        return True
    return bool(sp.issparse(y)) or (isinstance(y, np.ndarray) and y.ndim == 2 and y.shape[1] != 1)


def label_matrix(y: Any) -> Any:
    """Labels of several a row, which must be a matrix; None where rows come from a file."""
    found = as_label_matrix(y)
    if found is None or is_label_matrix(found):
        return found
    raise InputError(
        f"y has shape {np.shape(found)}; for any number of labels a row (task='multilabel') it must be a "
        "matrix of 0 and 1 with a column for each of two labels or more, as "
        "sklearn.preprocessing.MultiLabelBinarizer makes it"
    )


def as_label_matrix(y: Any) -> Any:
    """Labels as they are, or as a matrix where a list of lists or a data frame is a matrix of labels."""
    if y is None or sp.issparse(y) or isinstance(y, np.ndarray | NamedColumns):
        return y
    try:
        array = np.asarray(y)
    except ValueError:  # rows of different lengths
        raise InputError(
            "y holds rows of different lengths; for several labels a row give a matrix of 0 and 1, as "
            "sklearn.preprocessing.MultiLabelBinarizer makes it"
        ) from None
    if not is_label_matrix(array):
        return y
    names = getattr(y, "columns", None)  # of a data frame, be it pandas' or another's
    return array if names is None else NamedColumns.of(array, names)


def sets_of_feed(feed: Feed, known: Labels | None) -> tuple[LabelSets, Callable[[Floats], Floats]]:
    """The sets of labels of a feed, and the function that makes targets of its labels (or codes of sets)."""
    names = feed.origin.label_names
    y = np.array(classes_of(feed)) if names is None else np.arange(len(names), dtype=np.float64)
    of_rows = known.for_rows if isinstance(known, LabelSets) else LabelSets.of_rows
    labels = of_rows(y, names, feed.name)
    if names is None:
        return labels, lambda codes: labels.set_numbers(codes, None)
    found = labels.set_numbers(y, names)
    return labels, lambda codes: found[codes.astype(np.intp)]


def _listed_in_matrix(y: Any, columns: list[str]) -> tuple[Any, list[LabelSet]]:
    """The sets of the rows of a matrix of 0 and 1."""
    try:
        matrix: Any = sp.csr_array(y)
        strange = matrix.data[(matrix.data != 0) & (matrix.data != 1)]
    except (TypeError, ValueError):
        raise InputError(_NOT_BINARY) from None
    if strange.size:
        raise InputError(
            f"y holds {strange[0]}; a matrix of labels holds 0 and 1 only, a column for each label"
        )
    matrix = sp.csr_array(matrix != 0)
    matrix.sum_duplicates()
    numbers: dict[tuple[int, ...], int] = {}
    ends, indices = matrix.indptr.tolist(), matrix.indices.tolist()
    codes = [numbers.setdefault(tuple(indices[first:last]), len(numbers)) for first, last in pairwise(ends)]
    return np.array(codes, dtype=np.intp), [tuple(columns[k] for k in each) for each in numbers]


def _named(codes: Any, names: Names) -> tuple[Any, list[LabelSet]]:
    """The sets that codes stand for; numbers without names are one label each."""
    codes = np.asarray(codes)
    if names is not None:
        return codes.astype(np.intp), [labels_in(name) for name in names]
    if codes.ndim != 1:
        raise InputError(f"y has shape {codes.shape}; it must have a column for each of two labels or more")
    values, places = np.unique(codes, return_inverse=True)
    return places, [(shown_label(value),) for value in values]


def labels_in(name: str) -> LabelSet:
    """The labels that the name of a set lists; numbers are written alike."""
    labels = (label.strip() for label in name.split(COMMA))
    return tuple(dict.fromkeys(map(_written, filter(None, labels))))


def _written(label: str) -> str:
    number = _number(label)
    return label if number is None else shown_label(number)


def _number(label: str) -> float | None:
    try:
        value = float(label)
    except ValueError:
        return None
    return value if math.isfinite(value) else None


def _sorted(labels: set[str]) -> Any:
    """Labels in order: as numbers if all of them are."""
    return np.sort(_in_numbers(tuple(labels)))


def _in_numbers(labels: LabelSet) -> Any:
    """Labels as numbers if all of them are."""
    numbers = [_number(label) for label in labels]
    return np.array(labels) if None in numbers else np.array(numbers)
