"""What stands in for the inverse of the multinomial Hessian in conjugate gradients.

The Hessian's block of class k is ``sum_i q_ik x_i x_i^T + lam I``, with q_ik = share_i p_ik (1 - p_ik). With
mu_k the mean and Sigma_k the covariance of x under the weights q_ik / a_k, a_k = sum_i q_ik, it is

    a_k (Sigma_k + mu_k mu_k^T) + lam I.

Rows at which a class is in doubt lie near that class, so its mean is its own; their spread about it is much
the same for all classes (what linear discriminant analysis assumes). So all Sigma_k are replaced by their
mean, ``Sigma = sum_k a_k Sigma_k / sum_k a_k``, of which one eigenvalue decomposition serves every class, and
the means are kept: they are of rank one, and a free intercept takes them up altogether. On embeddings that
saves half of the products that one common mean takes. Where columns are too many, Sigma is its diagonal.
"""

from __future__ import annotations

from typing import NamedTuple

import numpy as np
from scipy.linalg import eigh

from ...runtime.arrays import Floats
from ...training.states import state_class
from .rows import JointRows

ROWS_PER_COLUMN = 8  # of the sample that it is taken from
LEAST_CURVATURE = 1e-3  # of a class, in units of the mean


@state_class
class Preconditioner(NamedTuple):
    """Eigenvectors (or none, where Sigma is diagonal) and eigenvalues of Sigma, a_k and mu_k."""

    vectors: Floats  # (d, d), or (0, 0)
    values: Floats  # d
    curvature: Floats  # a, of K classes
    means: Floats  # (d, K)

    @classmethod
    def of(cls, rows: JointRows, p: Floats) -> Preconditioner:
        """From a sample of rows with their probabilities."""
        d, dtype = rows.d, rows.dtype
        count = min(rows.n, ROWS_PER_COLUMN * max(d, 256))
        picks = np.arange(count) * rows.n // count
        some = rows.some(picks) if count < rows.n else rows
        q = p[picks] * (1.0 - p[picks])
        q *= some.share.astype(dtype)[:, None]
        a = q.sum(axis=0, dtype=np.float64)
        a += LEAST_CURVATURE * a.mean() + 1e-300
        means = some.moments(q) / a
        total = a.sum()
        if rows.full:
            sigma = (some.second_moments(q.sum(axis=1)) - (means * a) @ means.T) / total
            values, vectors = eigh(sigma.astype(dtype), overwrite_a=True, check_finite=False)
            vectors = np.ascontiguousarray(vectors, dtype=np.float64)
            return cls(vectors, np.maximum(values, 0.0).astype(np.float64), a, means)
        values = (some.squares(q.sum(axis=1)) - np.square(means) @ a) / total
        return cls(np.zeros((0, 0)), np.maximum(values, 0.0), a, means)

    @classmethod
    def none(cls, d: int, classes: int, full: bool) -> Preconditioner:
        """Not made yet; it has the shapes of the one to come."""
        size = d if full else 0
        return cls(np.zeros((size, size)), np.zeros(d), np.ones(classes), np.zeros((d, classes)))

    def applied(self, lam: float, ridge: float) -> Applied:
        """With lam, and the ridge of the intercepts: 0 where they are free, infinite where there are none."""
        return Applied.of(self, lam, ridge)


class Applied(NamedTuple):
    """A preconditioner at work."""

    base: Preconditioner
    inverse: Floats  # (d, K): of the eigenvalues of a_k Sigma + lam
    ridge: float
    spread: Floats  # (a_k Sigma + lam)^-1 mu_k
    correction: Floats  # K: of the term of rank one that intercepts leave

    @classmethod
    def of(cls, base: Preconditioner, lam: float, ridge: float) -> Applied:
        """See `Preconditioner.applied`."""
        a = base.curvature
        inverse = 1.0 / (a * base.values[:, None] + lam)
        spread = _through(base.vectors, inverse, base.means)
        left = a if ridge == np.inf else a * ridge / (a + ridge)
        correction = left / (1.0 + left * np.einsum("jk,jk->k", base.means, spread))
        return cls(base, inverse, ridge, spread, correction)

    def __call__(self, g: Floats, gb: Floats) -> tuple[Floats, Floats]:
        """Its product with a gradient: the intercepts are eliminated first."""
        a, means = self.base.curvature, self.base.means
        if self.ridge < np.inf:
            g = g - means * (a / (a + self.ridge) * gb)
        v = _through(self.base.vectors, self.inverse, g)
        v -= self.spread * (self.correction * np.einsum("jk,jk->k", means, v))
        if self.ridge == np.inf:
            return v, np.zeros_like(gb)
        return v, (gb - a * np.einsum("jk,jk->k", means, v)) / (a + self.ridge)


def _through(vectors: Floats, inverse: Floats, g: Floats) -> Floats:
    """``V inverse V^T g``, or without V where it is the identity."""
    if vectors.size == 0:
        return inverse * g
    found: Floats = vectors @ (inverse * (vectors.T @ g))
    return found
