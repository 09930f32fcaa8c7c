"""Class labels and the targets that solvers are given for them.

Labels may be anything hashable that can be sorted: numbers, words, booleans. They are encoded once, when data
are opened; a binary problem has the targets +1 for its positive class and -1 for the other one, or for all
others (one class against the rest). Rows of files whose labels are words have codes for them (``words``).
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

import numpy as np

from ..runtime.arrays import Floats
from ..runtime.errors import InputError
from .words import COMMA, NO_LABELS, Names, are_words, decoded, shown_word

if TYPE_CHECKING:  # Numba comes with feeds, and describing a model does without
    from .chunks import Feed
    from .table import Table

REST = "rest"  # the name of the negative class where it is every label but the positive one
MOST_CLASSES = 1000  # a feed that has more different labels does not list them
_SHOWN = 8  # labels that a message lists


@dataclass(frozen=True, eq=False)
class Labels:
    """The classes of a data set: sorted, or (negative, positive) for a binary problem.

    A negative class of None stands for every label but
    the positive one.
    """

    classes: Any  # an array or a tuple

    @classmethod
    def of(cls, y: Any) -> Labels:
        """All the classes that occur among the labels of some rows."""
        return cls(distinct(np.asarray(y)))

    @classmethod
    def of_table(cls, table: Table) -> Labels:
        """All the classes that occur among the rows of a table."""
        return cls(decoded(distinct(np.asarray(table.codes)), table.label_names))

    @classmethod
    def binary(cls, found: Any, name: str | None, positive: Any = None) -> Labels:
        """The two classes of a binary problem: of the labels ``found`` the one that sorts last is positive,
        unless one is named.

        ``name`` is that of the file or feed for messages; None: the labels are an argument ``y``.
        """
        words = listed(found)
        if positive is None:
            if len(found) > 2:
                raise InputError(
                    f"{'y holds' if name is None else f'{name}:'} {len(found)} classes ({words}) where two "
                    "are needed; dualgap.one_vs_rest trains a model for each, against the rest"
                )
            return cls.several(found, name)
        _refuse_one_class(found, name)
        positive = _alike(positive, found)
        if positive not in found:
            wanted = f"no row has the label {shown_label(positive)} of --positive"
            raise InputError(f"{name or 'y'}: {wanted}; there are: {words}")
        others = [label for label in found if label != positive]
        return cls((others[0] if len(others) == 1 else None, positive))

    @classmethod
    def several(cls, found: Any, name: str | None, rows: int | None = None) -> Labels:
        """The classes of a problem that may have more than two of them; ``name`` is as in ``binary``.

        Fractions of which fewer than two of the ``rows`` share one on average are targets of a regression.
        """
        if len(found) > MOST_CLASSES:
            raise InputError(
                f"{name or 'y'}: {len(found):,} different labels, where a classifier takes "
                f"{MOST_CLASSES:,} at most; for numbers use a regression loss"
            )
        if rows is not None and len(found) > 2 and rows < 2 * len(found) and _fractions(found):
            raise InputError(
                f"{name or 'y'}: {len(found)} different labels on {rows} rows ({listed(found)}), each of "
                "which would be a class; for numbers use a regression loss (loss='squared')"
            )
        _refuse_one_class(found, name)
        return cls(found)

    def encode(self, y: Any) -> Any:
        """The number of each label's class; -1 for a label that is none of the classes."""
        y, classes = np.asarray(y), np.asarray(self.classes)
        words = [array.dtype.kind in "US" for array in (y, classes)]
        if y.dtype == object or classes.dtype == object or words[0] != words[1]:
            place = {label: k for k, label in enumerate(classes.tolist())}
            return np.array([place.get(label, -1) for label in y.tolist()], dtype=np.intp)
        order = np.argsort(classes, kind="stable")
        codes = order[np.minimum(np.searchsorted(classes, y, sorter=order), classes.size - 1)]
        return np.where(classes[codes] == y, codes, -1)

    def alike(self, y: Any) -> Any:
        """Labels as the classes have them: words for numbers, or numbers for words, if they are written
        alike; NaN for a word that no class is written like.

        Another file may have the same labels as text that this one has as numbers.
        """
        y = np.asarray(y)
        words = any(isinstance(label, str) for label in self.classes)
        if words == are_words(y) or not y.size:
            return y
        if words:
            values, which = np.unique(y, return_inverse=True)
            return np.array([shown_label(label) for label in values])[which]
        classes = {shown_label(label): label for label in self.classes if label is not None}
        return np.array([classes.get(word, np.nan) for word in y.tolist()], dtype=np.float64)

    def signs(self, y: Any, k: int = 1) -> Floats:
        """Targets for class k against the others: +1 where a label is class k, -1 elsewhere."""
        return signs(y, self.classes[k])

    def targets(self, y: Any) -> Floats:
        """The targets of labels: -1 and +1 for two classes, for more of them the numbers of their classes."""
        return self.signs(y) if len(self.classes) == 2 else self.encode(y).astype(np.float64)

    def first_unknown(self, y: Any) -> int | None:
        """The first row whose label is none of the classes; where one class stands against the rest, all are
        known.
        """
        if any(label is None for label in self.classes):
            return None
        unknown = ~np.isin(y, self.classes) if np.asarray(y).dtype != object else self.encode(y) < 0
        return int(np.argmax(unknown)) if unknown.any() else None

    @property
    def models(self) -> int:
        """How many models tell the classes apart: one for two, else one for each class against the rest."""
        return 1 if len(self.classes) == 2 else len(self.classes)

    def against(self, targets: Floats, k: int) -> Floats:
        """The targets of class k against the rest: +1 and -1, from the numbers of more than two classes."""
        return signs(targets, k)

    @property
    def plain(self) -> tuple[Any, ...]:
        """The classes as plain Python values."""
        return tuple(map(plain, self.classes))


@dataclass(frozen=True, eq=False)
class ClassNumbers(Labels):
    """The classes of a joint model: the targets are their numbers, for two classes as well."""

    def targets(self, y: Any) -> Floats:
        """The number of each label's class."""
        numbers: Floats = self.encode(y).astype(np.float64)
        return numbers

    @property
    def models(self) -> int:
        """One tells all of them apart."""
        return 1


def signs(y: Any, positive: Any) -> Floats:
    """+1 for the positive label, -1 for all others."""
    y = np.asarray(y)
    if isinstance(positive, str) and y.dtype.kind in "biuf":
        raise InputError(f"the labels are numbers, and the class {positive} is a word")
    return np.where(y == positive, 1.0, -1.0)


def classes_of(feed: Feed) -> list[Any]:
    """The different labels of a feed, in order."""
    if feed.labels is None:
        raise InputError(
            f"{feed.name}: more than {MOST_CLASSES:,} different labels, where a classifier takes that many "
            "at most; for numbers use a regression loss"
        )
    labels = [label for label, _ in feed.labels]
    names = feed.origin.label_names
    return labels if names is None else [names[int(code)] for code in labels]


def targets_of(labels: Labels | None, names: Names = None) -> Callable[[Floats], Floats]:
    """The function that makes targets of labels; for regression they are the labels themselves.

    Labels may be codes for ``names``.
    """
    if labels is None:
        return lambda y: y
    return for_codes(lambda y: labels.targets(labels.alike(y)), names)


def for_codes(function: Callable[[Any], Any], names: Names) -> Callable[[Floats], Any]:
    """A function of labels as a function of their codes, for which it is asked once for each name; without
    names, codes are the labels.
    """
    if names is None:
        return function
    found = function(np.array(names, dtype=str))
    return lambda codes: found[codes.astype(np.intp)]


def one_label(y: Any) -> Any:
    """Labels as an array, one a row; a matrix is refused."""
    shape: Any = getattr(y, "shape", None)  # of an array, a sparse matrix or a data frame
    try:
        shape = np.shape(y) if shape is None else tuple(shape)
    except ValueError:  # rows of different lengths
        shape = (len(y), "...")
    if len(shape) != 1:
        several = "for several labels a row dualgap.one_vs_rest takes a matrix of 0 and 1"
        hint = "give y.ravel()" if shape[1:] == (1,) else several
        raise InputError(f"y has shape {shape}; it must be one label a row, in one dimension; {hint}")
    return np.asarray(y)


def refuse_words(names: Names, where: str) -> None:
    """Refuse words as labels where a regression loss needs numbers."""
    if names is not None:
        raise InputError(
            f"{where}: the labels are words ({listed(names)}), and a regression loss needs numbers; for "
            "classes take a loss such as hinge or logistic, or say task='classification'"
        )


def words_of(table: Table) -> Names:
    """The different words that are labels of rows, from a file or an array; None for numbers."""
    y = np.asarray(table.codes)
    return tuple(distinct(y).tolist()) if table.label_names is None and are_words(y) else table.label_names


def refuse_sets(names: Names, where: str) -> None:
    """Refuse sets of labels (``1,5,7``) where a row must have one label: each set would be a class."""
    several = next((name for name in names or () if COMMA in name), None)
    if several is not None:
        what = "no label" if several == NO_LABELS else f"the labels {shown_word(several)}"
        raise InputError(
            f"{where}: there are rows with {what}, and a row must have one; for any number of labels a row "
            "say task='multilabel'"
        )


def distinct(labels: Any) -> Any:
    """The different labels, sorted; two numbers are found without sorting all."""
    if labels.size and labels.dtype.kind in "biuf":
        low, high = labels.min(), labels.max()
        if low < high and ((labels == low) | (labels == high)).all():
            return np.array([low, high])
    try:
        if labels.dtype == object:
            set(labels.tolist())
    except TypeError:  # what cannot be hashed is no label, be it sorted or not
        raise InputError(
            "y holds labels that are no numbers or words; for several labels a row give a matrix of 0 and 1, "
            "as sklearn.preprocessing.MultiLabelBinarizer makes it"
        ) from None
    try:
        return np.unique(labels)
    except TypeError:
        raise InputError(
            "y holds labels of different types that cannot be sorted; give all as numbers or all as words"
        ) from None


def _fractions(labels: Any) -> bool:
    """Whether some labels are numbers that are not whole."""
    found = np.asarray(labels)
    return found.dtype.kind == "f" and bool((found != np.floor(found)).any())


def _alike(label: Any, found: Any) -> Any:
    """A label that a user names, as a word or a number as those that are found."""
    if any(isinstance(other, str) for other in found):
        return shown_label(label)
    try:
        return float(label) if isinstance(label, str) else label
    except ValueError:
        return label


def plain(label: Any) -> Any:
    """A label as a plain Python value, whole numbers as int: as data files write them."""
    value = label.item() if isinstance(label, np.generic) else label
    return int(value) if isinstance(value, float) and value.is_integer() else value


def listed(classes: Any, most: int = _SHOWN) -> str:
    """Some labels for people, the first of them if there are many."""
    return ", ".join(map(shown_label, classes[:most])) + ", ..." * (len(classes) > most)


def _refuse_one_class(found: Any, name: str | None) -> None:
    if len(found) != 1:
        return
    if name is None:
        raise InputError(f"y holds one class only ({listed(found)}); a classifier needs rows of two")
    raise InputError(
        f"{name}: all rows have the label {listed(found)}; a classifier needs rows of two classes"
    )


def shown_label(label: Any) -> str:
    """A label for people and for files of predictions."""
    return REST if label is None else str(plain(label))
