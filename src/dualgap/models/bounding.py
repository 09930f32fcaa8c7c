"""Bounds on the scores that the exact optimum gives to rows, and the labels that they decide.

``core/regions`` says what is proven of the weights; here it becomes an interval for each row.
"""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import replace
from typing import TYPE_CHECKING, Any

import numpy as np
import scipy.sparse as sp

from ..core.losses import loss_named
from ..core.offsets import with_offsets
from ..core.problem import Point, make_problem
from ..core.regions import Cut, Ray, Region, region_of
from ..data.dataset import Dataset, DataSpec
from ..runtime.arrays import Floats
from ..runtime.errors import InputError
from ..runtime.sums import UNIT, norm
from .rebuilding import against_rest, as_weighted, opened_for, stored_duals
from .scoring import scores_of

if TYPE_CHECKING:
    from ..training.outcome import Result
    from .model import Model


def certified_regions(model: Model) -> tuple[Region, ...]:
    """What is known of the optimum behind each proof: as it was found from the training rows
    (`with_bounds`), else a ball of radius sqrt(2 gap), which the certificate alone gives.
    """
    if model.regions is not None:
        return tuple(model.regions)
    if not model.proofs:
        raise InputError("the model has no certificate, so nothing bounds the scores of the optimum")
    if model.bias == "exact":
        raise InputError(
            "the intercept is not regularised: its bounds follow from the training rows alone; give them by "
            "Model.with_bounds(X, y), or train with --bounds"
        )
    rho = model.rho if model.bias == "augmented" else 0.0
    coef: Any = [model.coef.T] if model.joint else model.coef
    intercept: Any = [model.intercept] if model.joint else model.intercept
    balls = []
    for proof, certificate, w, b in zip(model.proofs, model.certificates, coef, intercept, strict=True):
        if proof.lam == 0.0:
            raise InputError("lam = 0: nothing bounds the scores of the optimum")
        radius = math.sqrt(2.0 * certificate.gap) * (1.0 + 16.0 * UNIT)
        balls.append(Region(np.asarray(w), b, radius, rho))
    return tuple(balls)


def score_bounds(regions: Sequence[Region], X: Any) -> tuple[Floats, Floats]:
    """The least and the greatest score that the optimum can give each row: one a row, or K of them."""
    pairs = [_of_region(region, X) for region in regions]
    if len(pairs) == 1:
        return pairs[0]
    low, high = (np.stack(side, axis=1) for side in zip(*pairs, strict=True))
    return low, high


def decided(regions: Sequence[Region], X: Any, several: bool, offset: Floats | None = None) -> Any:
    """Which rows have a label that the exact optimum gives them too, so that no further training changes it.

    With several labels a row (``several``) all of them must be so.
    """
    low, high = score_bounds(regions, X)
    if offset is not None:
        low, high = low + offset, high + offset
    if low.ndim == 1:
        return (low > 0.0) | (high <= 0.0)
    if several:
        return ((low > 0.0) | (high <= 0.0)).all(axis=1)
    if len(regions) == 1:  # all classes at once: two scores together move by sqrt(2) of what one does
        middle, reach = 0.5 * (low + high), 0.5 * (high - low).max(axis=1)
        top = np.sort(middle, axis=1)
        return top[:, -1] - top[:, -2] > math.sqrt(2.0) * (1.0 + 16.0 * UNIT) * reach + 8.0 * UNIT * np.abs(
            middle
        ).max(axis=1)
    rows, best = np.arange(low.shape[0]), low.argmax(axis=1)
    others = high.copy()
    others[rows, best] = -np.inf
    return low[rows, best] > others.max(axis=1)


def with_bounds(model: Model, data: Any, offset: Any) -> Model:
    """The model with what its training rows prove of the optimum. Objective and bound are recomputed from
    the rows: nothing that the model states of them is believed.
    """
    if model.dual is None or not model.proofs:
        raise InputError("the model has no duals, from which bounds follow; train it again, with duals")
    if not isinstance(data, Dataset):
        data = opened_for(model, data if isinstance(data, DataSpec) else DataSpec(data, in_memory=True))
    if data.source.n != model.n_samples:
        raise InputError(
            f"X has {data.source.n} rows and the model was trained on {model.n_samples}; give the training "
            "rows"
        )
    if not data.source.in_memory:
        raise InputError("bounds on scores need all training rows in memory (in_memory=True)")
    found = model.verify(data, offset=offset)
    if found.verdict != "true" or found.rows == "another order":
        raise InputError(f"these are not the training rows, in their order: {found.reason}")
    return replace(model, regions=tuple(_regions(model, as_weighted(model, data), offset)))


def bounded(model: Model, results: Sequence[Result]) -> Model:
    """The same for a model of these results, whose problems have the rows."""
    if not all(result.problem.source.in_memory for result in results):
        raise InputError("bounds on scores need all training rows in memory (in_memory=True)")
    return replace(model, regions=tuple(region_of(result.problem, result.point) for result in results))


def _regions(model: Model, data: Dataset, offset: Any) -> list[Region]:
    from ..core.bias import make_bias

    loss, bias = loss_named(model.loss, model.loss_parameters), make_bias(model.bias, model.rho)
    classes = model.coef.shape[0] if model.joint else None
    rows = data.identity()
    regions = []
    for k, proof in enumerate(model.proofs):
        source, chosen = against_rest(model, data, k), loss
        if offset is not None:
            source, chosen = with_offsets(source, loss, offset)
        problem = make_problem(source, chosen, proof.lam, bias, classes)
        w: Any = np.ascontiguousarray(model.coef.T) if model.joint else model.coef[k]
        b: Any = model.intercept if model.joint else float(model.intercept[k])
        beta = stored_duals(model, k, rows, moved=False)
        regions.append(region_of(problem, Point(w, b, beta)))
    return regions


def _of_region(region: Region, X: Any) -> tuple[Floats, Floats]:
    sizes, counts = _sizes(X)
    if region.free:
        low = _side(region, region.below, X, sizes, counts, 1.0)
        return low, _side(region, region.above, X, sizes, counts, -1.0)
    centre = region.centre[:, None] if region.centre.ndim == 1 else region.centre
    middle = scores_of(X, np.ascontiguousarray(centre.T), np.atleast_1d(np.asarray(region.intercept)))
    length = norm(region.centre.reshape(-1))
    reach = region.radius * np.hypot(sizes, region.rho)
    reach = reach + _product_error(counts, length, sizes) + 8.0 * UNIT * norm(np.atleast_1d(region.intercept))
    if middle.ndim == 2:
        reach = reach[:, None]
    reach = reach * (1.0 + 8.0 * UNIT) + 4.0 * UNIT * np.abs(middle)
    return middle - reach, middle + reach


def _side(region: Region, ray: Ray | None, X: Any, sizes: Floats, counts: Floats, sign: float) -> Floats:
    """Bounds from below (sign 1) or above (-1): the best of the cuts or, for rows far away, of the ball and
    the bounds that the cuts have for the intercept; infinite without any.
    """
    if ray is None:
        return np.full(sizes.shape, -sign * np.inf)
    none = np.zeros(1)
    at, along = scores_of(X, region.centre[None], none), scores_of(X, ray.direction[None], none)
    lengths = norm(region.centre), norm(ray.direction)
    nothing = np.zeros(1)
    intercept = max(float(_cut_value(cut, nothing, nothing, nothing)[0]) for cut in ray.cuts)
    reach = region.radius * sizes * (1.0 + 8.0 * UNIT) + _product_error(counts, lengths[0], sizes)
    best = sign * at - reach + intercept - 8.0 * UNIT * (np.abs(at) + reach + abs(intercept))
    for cut in ray.cuts:
        length = lengths[0] + 0.5 * abs(cut.step) * lengths[1]
        error = _product_error(counts, length, sizes) + cut.error * sizes
        score = sign * (at + 0.5 * cut.step * along)
        best = np.maximum(best, _cut_value(cut, score, sizes, error))
    return sign * best


def _cut_value(cut: Cut, score: Floats, sizes: Floats, error: Floats) -> Floats:
    """``score - zeta/4 |x|^2 + constant / zeta`` for zeta > 0, no greater than it is."""
    zeta = abs(cut.zeta)
    steep = zeta + cut.zeta_error
    rest = cut.constant / (zeta - cut.zeta_error if cut.constant < 0.0 else steep)
    bend = 0.25 * steep * sizes * sizes
    slack = error + 16.0 * UNIT * (np.abs(score) + bend + abs(rest))
    found: Floats = score - bend + rest - slack
    return found


def _sizes(X: Any) -> tuple[Floats, Floats]:
    """Upper bounds on the lengths of rows, and their numbers of entries."""
    rows: Any
    if sp.issparse(X):
        matrix: Any = X
        rows = matrix.tocsr().astype(np.float64)
        rows.sum_duplicates()
        counts = np.diff(rows.indptr).astype(np.float64)
        squares = np.asarray(rows.multiply(rows).sum(axis=1)).reshape(-1)
    else:
        rows = np.asarray(X, dtype=np.float64)
        counts = np.full(rows.shape[0], float(rows.shape[1]))
        squares = np.einsum("ij,ij->i", rows, rows)
    return np.sqrt(squares) * (1.0 + (counts + 4.0) * UNIT) + 1e-150, counts  # squares may vanish


def _product_error(counts: Floats, length: float, sizes: Floats) -> Floats:
    """A bound on the rounding errors of products of rows with a vector of that length."""
    terms = (counts + 8.0) * UNIT
    found: Floats = 1.02 * terms / (1.0 - terms) * length * sizes
    return found
