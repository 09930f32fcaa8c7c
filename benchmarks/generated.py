"""Data sets made on the spot, each with one property that real files have and that decides between
solvers.
"""

from __future__ import annotations

from typing import Any

import numpy as np
import scipy.sparse as sp

Data = tuple[Any, Any]  # X and y


def text(n: int, d: int, words: int, *, topics: int = 40, ordered: bool = False, seed: int = 0) -> Data:
    """Text-like rows of Euclidean length 1: word frequencies by Zipf's law, columns in no order of frequency.

    A third of a row's words come from the small vocabulary of its topic. An ordered file is sorted by topic,
    as files are that were put together from sources one after the other: neighbours are alike, and mostly of
    one class.
    """
    rng = np.random.default_rng(seed)
    topic = rng.integers(0, topics, n)
    if ordered:
        topic.sort()
    cumulative = np.cumsum(1.0 / np.arange(3, d + 3))
    local = np.cumsum(1.0 / np.arange(1, 1 + max(d // 50, 5)))
    lengths = rng.poisson(words, n) + 1
    row = np.repeat(np.arange(n), lengths)
    column = np.searchsorted(cumulative, rng.random(row.size) * cumulative[-1])
    own = rng.random(row.size) < 1 / 3
    place = rng.integers(0, d, topics)[topic[row[own]]]
    column[own] = (place + 7 * np.searchsorted(local, rng.random(int(own.sum())) * local[-1])) % d
    column = rng.permutation(d)[column]
    X = sp.csr_matrix((np.ones(row.size), (row, column)), shape=(n, d))
    X.data = 1.0 + np.log(X.data)  # duplicates were added up: a word's count in its row
    X = sp.csr_matrix(sp.diags_array(1.0 / np.sqrt(np.asarray(X.multiply(X).sum(axis=1)).ravel())) @ X)
    taste = rng.normal(size=d) * (rng.random(d) < 0.3)
    leaning = 0.3 * rng.normal(size=topics)
    return X, _labels(X @ taste + leaning[topic], rng, flipped=0.04)


def dense_tall(n: int, d: int, *, seed: int = 1) -> Data:
    """Many rows, few correlated columns of different scales, classes that overlap: first-order solvers crawl
    here.
    """
    rng = np.random.default_rng(seed)
    X = rng.normal(size=(n, d)) @ (np.eye(d) + 0.4 * rng.normal(size=(d, d)) / np.sqrt(d))
    X *= np.geomspace(0.3, 3.0, d)
    return X, _labels(X @ rng.normal(size=d) + 2.0 * rng.normal(size=n), rng, flipped=0.05)


def dense_wide(n: int, d: int, *, seed: int = 2) -> Data:
    """Few rows, very many columns, most of them noise, as in gene expression."""
    rng = np.random.default_rng(seed)
    X = rng.normal(size=(n, d))
    signal = np.zeros(d)
    signal[rng.choice(d, max(d // 100, 1), replace=False)] = 1.0
    return X, _labels(X @ signal, rng, flipped=0.02)


def separable(n: int, d: int, per_row: int, *, seed: int = 3) -> Data:
    """Sparse rows that a hyperplane through the origin separates: of three times as many, those farthest from
    it.
    """
    rng = np.random.default_rng(seed)
    row = np.repeat(np.arange(3 * n), per_row)
    X = sp.csr_matrix((rng.normal(size=row.size), (row, rng.integers(0, d, row.size))), shape=(3 * n, d))
    score = np.asarray(X @ rng.normal(size=d))
    kept = np.sort(np.argsort(-np.abs(score))[:n])
    return sp.csr_matrix(X[kept]), np.where(score[kept] > 0, 1.0, -1.0)


def duplicated(distinct: int, n: int, d: int, per_row: int, *, seed: int = 4) -> Data:
    """0/1 rows of which most occur many times over, now and then with the other label, as in logs of
    clicks.
    """
    rng = np.random.default_rng(seed)
    row = np.repeat(np.arange(distinct), per_row)
    base = sp.csr_matrix((np.ones(row.size), (row, rng.integers(0, d, row.size))), shape=(distinct, d))
    base.data[:] = 1.0
    popularity = 1.0 / np.arange(1, distinct + 1)
    chosen = rng.choice(distinct, n, p=popularity / popularity.sum())
    X = sp.csr_matrix(base[chosen])
    return X, _labels(X @ rng.normal(size=d), rng, flipped=0.1)


def _labels(score: Any, rng: Any, *, flipped: float) -> Any:
    """Two classes of equal size by the score, some of them wrong."""
    y = np.where(score > np.median(score), 1.0, -1.0)
    y[rng.random(y.size) < flipped] *= -1.0
    return y
