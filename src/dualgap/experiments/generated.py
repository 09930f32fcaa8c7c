"""Data of the shape of the papers' sets, made on the spot for machines that have none of them.

They run under names of their own ("adult-like"), never under those of the papers.
"""

from __future__ import annotations

from typing import Any

import numpy as np
import scipy.sparse as sp

Rows = tuple[Any, Any]  # X and y
SIGNS = (-1.0, 1.0)


def _signs(score: Any, rng: np.random.Generator, flipped: float, positive: float = 0.5) -> Any:
    """Labels by the largest scores, some of them wrong."""
    y = np.where(score > np.quantile(score, 1.0 - positive), 1.0, -1.0)
    wrong = rng.random(y.size) < flipped
    return np.where(wrong, -y, y)


def adult_like(n: int, seed: int = 0) -> Rows:
    """Fourteen attributes of some ten values each, one-hot: 123 columns, a quarter positive."""
    rng = np.random.default_rng(seed)
    widths = [5, 8, 5, 16, 5, 7, 14, 6, 5, 2, 2, 5, 2, 41]
    columns, start = [], 0
    for width in widths:
        shares = rng.dirichlet(np.full(width, 0.7))
        columns.append(start + rng.choice(width, n, p=shares))
        start += width
    index = np.stack(columns, axis=1)
    where = (np.repeat(np.arange(n), len(widths)), index.ravel())
    X = sp.csr_matrix((np.ones(index.size), where), shape=(n, start))
    score = X @ rng.normal(size=start) + 0.8 * rng.normal(size=n)
    return X, _signs(score, rng, 0.05, positive=0.24)


def web_like(n: int, seed: int = 1) -> Rows:
    """Some 12 of 300 binary columns a row, a tenth of the rows empty, three in a hundred positive."""
    rng = np.random.default_rng(seed)
    popularity = 1.0 / np.arange(1, 301) ** 0.8
    lengths = np.where(rng.random(n) < 0.08, 0, rng.poisson(12, n))
    picks = rng.choice(300, int(lengths.sum()), p=popularity / popularity.sum())
    X = sp.csr_matrix((np.ones(picks.size), (np.repeat(np.arange(n), lengths), picks)), shape=(n, 300))
    X.data[:] = 1.0
    score = X @ rng.normal(size=300) + 0.3 * rng.normal(size=n)
    return X, _signs(score, rng, 0.005, positive=0.03)


def text_like(n: int, d: int = 20_000, words: int = 60, seed: int = 2) -> Rows:
    """Word presence by Zipf's law, rows of Euclidean length 1."""
    rng = np.random.default_rng(seed)
    cumulative = np.cumsum(1.0 / np.arange(3, d + 3))
    lengths = rng.poisson(words, n) + 5
    row = np.repeat(np.arange(n), lengths)
    column = np.searchsorted(cumulative, rng.random(row.size) * cumulative[-1])
    X = sp.csr_matrix((np.ones(row.size), (row, column)), shape=(n, d))
    X.data[:] = 1.0
    norms = np.sqrt(np.asarray(X.sum(axis=1)).ravel())
    X = sp.csr_matrix(sp.diags_array(1.0 / norms) @ X)
    taste = rng.normal(size=d) * (rng.random(d) < 0.2)
    return X, _signs(X @ taste, rng, 0.03)


def measured_like(n: int, d: int = 54, seed: int = 3) -> Rows:
    """Few correlated columns of very different scales, classes that overlap, as of physical measurements."""
    rng = np.random.default_rng(seed)
    X = rng.normal(size=(n, d)) @ (np.eye(d) + 0.5 * rng.normal(size=(d, d)) / np.sqrt(d))
    X = (X + 1.0) * np.geomspace(0.02, 2.0, d)
    score = X @ (rng.normal(size=d) / np.geomspace(0.02, 2.0, d)) + 6.0 * rng.normal(size=n)
    return X, _signs(score, rng, 0.05, positive=0.36)


def unigrams_like(n: int, d: int = 254, seed: int = 8) -> Rows:
    """Shares of characters in pages: a third of the columns in a row, few of them large, rows of length 1."""
    rng = np.random.default_rng(seed)
    often = rng.beta(0.6, 1.2, size=d)  # how many pages have a character
    share = np.exp(rng.normal(0.0, 1.5, size=d))
    X = (rng.random((n, d)) < often) * rng.gamma(0.7, share, size=(n, d))
    X[:, 0] += 0.01  # no page is empty
    X /= np.linalg.norm(X, axis=1, keepdims=True)
    score = X @ (rng.normal(size=d) * (1.0 + rng.exponential(size=d)))
    score += 0.5 * score.std() * rng.normal(size=n)
    return sp.csr_matrix(X), _signs(score, rng, 0.03, positive=0.61)


def genomic_like(n: int = 184, d: int = 4654, seed: int = 4) -> Rows:
    """Gene expression on a logarithmic scale: far more columns than rows, and correlated ones.

    Means, deviations and the weight of common factors are those of real samples of the same kind (genes of
    mean 7.4 that differ by 2.1 among each other and by 0.8 from sample to sample); a fiftieth of the genes
    tell the classes apart, each by a little.
    """
    rng = np.random.default_rng(seed)
    y = np.where(rng.random(n) < 0.36, 1.0, -1.0)
    mean, spread = rng.normal(7.4, 2.1, size=d), 0.75 * np.exp(0.4 * rng.normal(size=d))
    shares = np.exp(-0.15 * np.arange(20))
    shares *= 0.65 / shares.sum()
    X = (rng.normal(size=(n, 20)) * np.sqrt(shares)) @ rng.normal(size=(20, d))
    X += np.sqrt(0.35) * rng.normal(size=(n, d))
    X[:, rng.choice(d, max(4, d // 50), replace=False)] += 0.4 * y[:, None]
    return mean + spread * X, y


def skin_like(n: int, seed: int = 5) -> Rows:
    """Three colours of pixels from 0 to 255, one class a cloud beside the other."""
    rng = np.random.default_rng(seed)
    y = np.where(rng.random(n) < 0.21, 1.0, -1.0)
    skin = np.array([120.0, 150.0, 200.0]) + rng.normal(size=(n, 3)) * [35.0, 32.0, 35.0]
    other = rng.uniform(0.0, 255.0, size=(n, 1)) + rng.normal(size=(n, 3)) * 30.0
    return np.clip(np.round(np.where(y[:, None] > 0, skin, other)), 0.0, 255.0), y


def simulated(n: int, seed: int = 0, noise: float = 1.0) -> tuple[Any, Any, Any]:
    """Ten Gaussian columns, labels by the sign of <beta, x> plus Gaussian noise; and beta."""
    rng = np.random.default_rng(seed)
    beta = rng.normal(size=10)
    X = rng.normal(size=(n, 10))
    return X, np.where(X @ beta + noise * rng.normal(size=n) > 0, 1.0, -1.0), beta
