"""What is known of all rows of a store once they have gone by on their way into it."""

from __future__ import annotations

import math
from dataclasses import dataclass, field

import numpy as np

from ....runtime.arrays import Floats
from ....runtime.sums import Total, TotalByLabel
from ...labels import MOST_CLASSES
from ...table import Table
from ...words import Vocabulary
from ..text import shown


@dataclass
class Totals:
    """What is known of all rows once they have gone by."""

    n: int = 0
    nnz: int = 0
    lowest: int = 2**32
    highest: int = -1
    exact32: bool = True
    weighted: bool = False
    total_weight: Total = field(default_factory=Total)
    feature_names: tuple[str, ...] | None = None
    counts: dict[float, int] | None = field(default_factory=dict)
    weights: TotalByLabel = field(default_factory=TotalByLabel)
    present: int = 0
    smallest: float = math.inf
    largest: float = 0.0
    lengths: float = 0.0
    empty: int = 0
    words: Vocabulary = field(default_factory=Vocabulary)

    def look(self, data: Table) -> Floats:
        """Take in the next block; its labels, in codes of all blocks."""
        X, y = data.X, self.words.recode(data.codes, data.label_names, shown(data.path))
        self.n += y.size
        self.nnz += int(X.nnz)
        if X.nnz:
            self.lowest = min(self.lowest, int(X.indices.min()))
            self.highest = max(self.highest, int(X.indices.max()))
        with np.errstate(over="ignore"):
            self.exact32 = self.exact32 and bool((X.data.astype(np.float32) == X.data).all())
        self.weighted = data.weight is not None
        weight = np.ones(y.size) if data.weight is None else data.weight
        self.total_weight.add(weight)
        self.present += int(y.size if data.weight is None else np.count_nonzero(data.weight))
        self.feature_names = data.feature_names
        if self.counts is not None:
            labels, which, counts = np.unique(y, return_inverse=True, return_counts=True)
            for label, count in zip(labels.tolist(), counts.tolist(), strict=True):
                self.counts[label] = self.counts.get(label, 0) + count
            self.weights.add(labels, which, weight)
            if len(self.counts) > MOST_CLASSES:
                self.counts = None
        filled = np.diff(X.indptr) > 0
        squares = np.zeros(y.size)
        with np.errstate(over="ignore"):  # of values that no solver takes
            entries = np.square(X.data, dtype=np.float64)
        squares[filled] = np.add.reduceat(entries, X.indptr[:-1][filled]) if X.nnz else 0.0
        lengths = np.sqrt(squares)
        self.smallest, self.largest = (
            min(self.smallest, float(lengths.min())),
            max(self.largest, float(lengths.max())),
        )
        self.lengths += float(lengths.sum())
        self.empty += int((~filled).sum())
        return y

    def classes(self) -> list[tuple[float, int, float]] | None:
        """The labels, in their final codes, with their counts and weights; None if they are too many."""
        if self.counts is None:
            return None
        labels, weights = zip(*self.weights.sorted(), strict=True)
        codes = self.words.final(np.array(labels)).tolist()
        return sorted(zip(codes, [self.counts[label] for label in labels], weights, strict=True))
