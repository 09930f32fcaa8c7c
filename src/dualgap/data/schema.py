"""What rows must look like for a model: its columns, scaling, feature expansion and labels."""

from __future__ import annotations

from typing import Any, NamedTuple

from ..runtime.arrays import Floats
from ..runtime.errors import InputError
from .features import Expansion, expanded
from .formats import Format, ReadOptions
from .label_sets import LabelSets
from .labels import Labels, listed, shown_label
from .scaling import Scaling
from .table import Table

_TOO_WIDE = (
    "these are all that the model was trained on: drop the others, or train with a larger --n-features"
)


class Schema(NamedTuple):
    """Columns and labels of a data set: part of a model, and applied when predicting, validating and
    certifying.

    Rows of other files are brought into the same columns, scaled and expanded in the same way, and their
    labels become the same targets.
    """

    n_columns: int  # before any expansion
    zero_based: bool | None = None  # whether the training text counts columns from 0; None: it was no text
    feature_names: tuple[str, ...] | None = None
    expansion: Expansion | None = None
    labels: Labels | None = None  # None: regression, the labels are the targets
    owner: str = "the training rows"  # whose columns and labels these are, for messages
    scaling: Scaling | None = None  # of the rows, before they are expanded

    @property
    def width(self) -> int:
        """The number of columns after expansion."""
        return self.n_columns if self.expansion is None else self.expansion.width(self.n_columns)

    @property
    def derivation(self) -> str:
        """How rows are made of those that are read, as the arguments of ``fit`` say it."""
        told = [] if self.scaling is None else [f"scale={self.scaling.name!r}"]
        if self.expansion is not None:
            told.append(f"expand={self.expansion.name!r}")
            told += [] if self.expansion.bits is None else [f"hash_bits={self.expansion.bits}"]
        return " ".join(told)

    def reading(self, options: ReadOptions, form: Format) -> ReadOptions:
        """How to read a file in these columns; an index base that the caller names comes first."""
        zero_based = options.zero_based
        if zero_based == "auto" and self.zero_based is not None and form.indexed:
            zero_based = "yes" if self.zero_based else "no"
        sets = options.label_sets or isinstance(self.labels, LabelSets)
        return options._replace(
            n_features=self.n_columns, zero_based=zero_based, too_wide=_TOO_WIDE, label_sets=sets
        )

    def check_names(self, table: Table) -> Table:
        """Refuse columns that have other names than those of the training rows, or are fewer."""
        self.check_columns(str(table.path), table.feature_names)
        return table

    def check_columns(self, name: str, theirs: tuple[str, ...] | None) -> None:
        """The same for a file that names its columns; who names all of them has no others, which could be
        zero.
        """
        if theirs is None:
            return
        ours = self.feature_names
        for k, (one, other) in enumerate(zip(ours or (), theirs, strict=False)):
            if one != other:
                raise InputError(f"{name}: column {k} is {other!r} there, and {one!r} in {self.owner}")
        wanted = self.n_columns if ours is None else len(ours)
        if len(theirs) < wanted:
            have = "have" if self.owner.endswith("s") else "has"
            count = f"{len(theirs)} column{'s' * (len(theirs) != 1)}"
            raise InputError(
                f"{name}: has {count}, and {self.owner} {have} {wanted}; they must be equally many"
            )

    def targets(self, table: Table) -> Floats:
        """The targets of rows of a file: -1 and +1 for two classes, the numbers of their classes for more,
        the numbers of their sets of labels, the labels themselves for regression.
        """
        if isinstance(self.labels, LabelSets):
            return self.labels.set_numbers(table.codes, table.label_names)
        if self.labels is None:
            if table.label_names is not None:
                have = "have" if self.owner.endswith("s") else "was trained on"
                words = f"the labels are words ({listed(table.label_names)})"
                raise InputError(f"{table.place(0)}: {words}, and {self.owner} {have} numbers")
            numbers: Floats = table.codes
            return numbers
        y = self.labels.alike(table.y)
        row = self.labels.first_unknown(y)
        if row is not None:
            raise InputError(f"{table.place(row)}: {self._unknown(table.y[row])}")
        return self.labels.targets(y)

    def check_labels(self, name: str, found: list[Any] | None) -> None:
        """Refuse a feed some of whose labels are none of these classes; ``found`` are all of them, None if
        too many to list.
        """
        if self.labels is None or self.labels.classes[0] is None:
            return
        if found is None:
            known = "two" if len(self.labels.classes) == 2 else len(self.labels.classes)
            raise InputError(f"{name}: more than 1,000 different labels, where {self.owner} knows {known}")
        row = self.labels.first_unknown(self.labels.alike(found))
        if row is not None:
            raise InputError(f"{name}: {self._unknown(found[row])}")

    def expand(self, X: Any) -> Any:
        """Rows with the features that the model's weights belong to."""
        X = X if self.scaling is None else self.scaling.apply(X)
        return X if self.expansion is None else expanded(X, self.expansion)

    def _unknown(self, label: Any) -> str:
        whose = self.owner + ("'" if self.owner.endswith("s") else "'s")
        assert self.labels is not None
        known = self.labels.classes
        classes = " and ".join(map(shown_label, known)) if len(known) == 2 else listed(known)
        return f"label {shown_label(label)} is none of {whose}, which are {classes}"
