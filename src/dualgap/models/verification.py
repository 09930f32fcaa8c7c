"""Verification: a model's certificate recomputed from scratch and compared with the stored one."""

from __future__ import annotations

import math
from typing import TYPE_CHECKING, Any, NamedTuple

import numpy as np
from scipy.optimize import minimize_scalar

from ..core.bias import make_bias
from ..core.losses import make_loss
from ..core.problem import ABSOLUTE_SHARE, Certificate, Point, Problem
from ..data.dataset import Dataset, DataSpec, RowIdentity, open_data
from ..data.fingerprint import hashes_in_any_order, hashes_in_order, values_by_hash
from ..runtime.arrays import Floats
from ..runtime.errors import InputError
from .building import loss_spec

if TYPE_CHECKING:
    from .model import Model

TRUE, NOT_TRUE, UNPROVEN = "true", "not true", "unproven"
SAME, ANOTHER = "same order", "another order"
# rounding beyond this part of the objective and the lower bound excuses no difference between two of them
_NOISE = 1e-6
_ULP = 2.0**-52


class Verification(NamedTuple):
    """The verdict on a stored certificate, and its reason.

    The stored certificate is true if the data hold the training rows, the objective of the stored weights and
    the lower bound of the stored duals are as stated, up to rounding, and nothing else that the model says of
    them contradicts what is recomputed.
    """

    verdict: str  # TRUE, NOT_TRUE or UNPROVEN
    reason: str
    rows: str | None  # SAME, ANOTHER, or None where the data hold other rows
    duals: str  # "stored", or "slopes" for the weaker bound of a model without duals
    stored: Certificate
    recomputed: Certificate | None


def verify(model: Model, data: Any) -> Verification:
    """Recompute the certificate of a model from its training rows: a path, a DataSpec, or a Dataset in its
    schema.
    """
    fault = contradiction(model)
    if fault is not None:
        return Verification(NOT_TRUE, fault, None, _duals(model), model.certificate, None)
    if not isinstance(data, Dataset):
        spec = data if isinstance(data, DataSpec) else DataSpec(data)
        data = open_data(spec, "regression" if model.classes is None else "classification", model.schema)
    return _recompute(model, data)


def contradiction(model: Model) -> str | None:
    """A contradiction among the statements of a model, whatever the rows are; None if there is none."""
    proof, stored = model.proofs[0], model.certificate
    lam, weight = proof.lam, proof.total_weight
    if not 0.0 <= lam < math.inf:
        return f"the stored lam is {lam!r}, which must be a number >= 0"
    if not 0.0 < weight < math.inf:
        return f"the stored total weight is {weight!r}, which must be positive"
    if not (math.isclose(model.C * lam * weight, 1.0, rel_tol=16 * _ULP) if lam else math.inf == model.C):
        expected = 1.0 / (lam * weight) if lam else math.inf
        return f"the stored C is {model.C!r}, and 1 / (lam * total weight) is {expected!r}"
    if model.bias != "augmented" and model.rho != 1.0:
        return (
            f"the stored rho is {model.rho!r}, and a bias of the kind {model.bias!r} has none "
            "(which is stored as 1)"
        )
    form = "J" if lam else "mean"
    if stored.form != form:
        return (
            f"the stored certificate is in form {stored.form!r}, and models of lam = {lam!r} have it in "
            f"form {form!r}"
        )
    if not 0.0 <= stored.rounding < math.inf:
        return f"the stored rounding is {stored.rounding!r}, which must be a number >= 0"
    width = model.schema.width
    if width != model.n_features:
        made = f"{model.expand} with {model.hash_bits} bits makes {width} columns"
        return f"the stored expansion {made}, and the model has {model.n_features}"
    return None


def _recompute(model: Model, data: Dataset) -> Verification:
    """Build the problem anew, evaluate the stored point, and compare."""
    stored, duals, n = model.certificate, _duals(model), data.source.n
    if n != model.n_samples:
        reason = f"DATA has {n} rows and the model was trained on {model.n_samples}"
        return Verification(NOT_TRUE, reason, None, duals, stored, None)
    rows = data.identity(fresh=True)
    order, fault = _order(model, rows)
    weight, proof = data.source.total_weight, model.proofs[0]
    if fault is None and order and not math.isclose(weight, proof.total_weight, rel_tol=(n + 16) * _ULP):
        fault = f"the stored total weight is {proof.total_weight!r}, and that of the rows is {weight!r}"
    loss = make_loss(loss_spec(model.loss, model.loss_parameters))
    if fault is None and model.task != loss.task:
        fault = f"the stored task is {model.task}, and the {loss.name} loss is for {loss.task}"
    beta = None if model.dual is None else model.dual.toarray()[0]
    if fault is None and order == ANOTHER and model.dual is not None:
        beta = values_by_hash(rows.hashes, model.dual_hashes, model.dual.data)
        if beta is None:
            fault = "the stored hashes of the rows that have duals are not those of the training rows"
    if fault is not None:
        return Verification(NOT_TRUE, fault, order, duals, stored, None)
    if beta is None and not data.source.in_memory:
        raise InputError(
            "the model was saved without duals: its bound can be recomputed only where all rows fit in memory"
        )
    problem = Problem(data.source, loss, proof.lam, make_bias(model.bias, model.rho))
    w, b = model.coef[0], float(model.intercept[0])
    point = Point(w, b, dual_from_slopes(problem, w, b) if beta is None else beta)
    recomputed = problem.in_form(problem.certify(point), "J")
    if order is None:
        return Verification(NOT_TRUE, _other_rows(model), order, duals, stored, recomputed)
    verdict, reason = compare(stored, recomputed, duals)
    if verdict != NOT_TRUE:
        floor = problem.value_at_zero * ABSOLUTE_SHARE / (proof.lam or 1.0)
        verdict, reason = (NOT_TRUE, fault) if (fault := _inconsistency(stored, floor)) else (verdict, reason)
    return Verification(verdict, reason, order, duals, stored, recomputed)


def _other_rows(model: Model) -> str:
    if model.rows_in_any_order is None:
        others = "the rows of DATA are not the training rows in their order"
        return f"{others}; this older model has no hashes of them"
    return "the rows of DATA are not the training rows (others, or weighted otherwise)"


def _duals(model: Model) -> str:
    return "slopes" if model.dual is None else "stored"


def _order(model: Model, rows: RowIdentity) -> tuple[str | None, str | None]:
    """Whether the data hold the training rows, and in their order; and a fault, if the model's fingerprints
    disagree.
    """
    same = rows.fingerprint == model.fingerprint
    if model.rows_in_order is None or model.rows_in_any_order is None:
        return SAME if same else None, None
    same_hashes = hashes_in_order(rows.hashes) == model.rows_in_order
    found = hashes_in_any_order(rows.hashes) == model.rows_in_any_order
    if same and same_hashes and found:
        beside = model.dual is None or model.dual_hashes is None
        if beside or bool((rows.hashes[model.dual.indices] == model.dual_hashes).all()):
            return SAME, None
        return SAME, "the stored hashes of the rows that have duals are not those of the training rows"
    if same or same_hashes:
        return (
            SAME,
            "the stored fingerprints of the rows contradict each other: some are those of DATA, others are "
            "not",
        )
    return (ANOTHER if found and (model.dual is None or model.dual_hashes is not None) else None), None


def compare(stored: Certificate, recomputed: Certificate, duals: str) -> tuple[str, str]:
    """Whether the recomputed numbers are the stored ones, each up to the rounding errors of both.

    A bound from slopes may be better than the stored one, and is not expected to be equal to it.
    """
    noise = min(recomputed.rounding, _NOISE * (abs(stored.primal) + abs(stored.dual)))
    rounding = stored.rounding + noise
    if not _agree(recomputed.primal, stored.primal, rounding):
        return NOT_TRUE, f"the objective is {recomputed.primal!r}, and not the stored {stored.primal!r}"
    slack = 3.0 * rounding
    if duals == "slopes":
        if recomputed.dual >= stored.dual - rounding and recomputed.gap <= stored.gap + slack:
            return TRUE, "recomputed from scratch, objective and lower bound are as good as the stored ones"
        return (
            UNPROVEN,
            "the model was saved without duals, and the weaker bound from slopes does not reach its own",
        )
    if not _agree(recomputed.dual, stored.dual, rounding):
        return NOT_TRUE, f"the lower bound is {recomputed.dual!r}, and not the stored {stored.dual!r}"
    if not _agree(recomputed.gap, stored.gap, slack):
        return NOT_TRUE, f"the gap is {recomputed.gap!r}, and not the stored {stored.gap!r}"
    return TRUE, "recomputed from scratch, objective and lower bound are the stored ones, up to rounding"


def _agree(one: float, other: float, error: float) -> bool:
    return one == other or abs(one - other) <= error


def _inconsistency(stored: Certificate, floor: float) -> str | None:
    """A contradiction within a certificate; None if there is none.

    The relative gap is the gap over the dual less its own share of the rounding, which is not stored. Where
    that is not positive, the gap is measured against ``floor``.
    """
    primal, dual, gap, relative, rounding, _ = stored
    expected = primal - dual + rounding if primal < math.inf and dual > -math.inf else math.inf
    if not _agree(gap, expected, 2.0 * _ULP * (abs(primal) + abs(dual) + rounding)):
        return f"the stored gap is {gap!r}, and objective - lower bound + rounding is {expected!r}"
    by_dual = (gap / dual, gap / (dual - rounding) if dual > rounding else math.inf) if dual > 0.0 else None
    by_floor = 0.0 if gap == 0.0 else gap / floor if floor > 0.0 else math.inf
    near = 1.0 + 1e-9
    if by_dual is not None and by_dual[0] / near <= relative <= by_dual[1] * near:
        return None
    if dual <= rounding and _agree(relative, by_floor, 1e-9 * by_floor):
        return None
    expected = by_floor if by_dual is None else by_dual[0]
    return f"the relative gap is {expected!r}, and not the stored {relative!r}"


def dual_from_slopes(problem: Problem, w: Floats, b: float) -> Floats:
    """A dual point from a primal one: ``s * beta`` with ``beta_i = -slope of the loss at row i's score``.

    At the optimum of a smooth loss that is the optimal dual point. Elsewhere D(s beta) is concave in s, every
    s in [0, 1] is feasible (the set of feasible duals is convex and holds 0), and the best s often makes the
    bound far better than s = 1. It is always valid, and for losses with kinks always weak.
    """
    scores = problem.evaluate(Point(w, b, None)).scores
    pairs = zip(problem.source.y.tolist(), scores.tolist(), strict=True)
    beta = np.array([-problem.loss.derivative(y, score) for y, score in pairs])
    nowhere = np.zeros(problem.source.d)

    def negated_bound(s: float) -> float:
        return -problem.evaluate(Point(nowhere, 0.0, s * beta)).dual

    best: Any = minimize_scalar(negated_bound, bounds=(0.0, 1.0), method="bounded", options={"xatol": 1e-6})
    return beta if negated_bound(1.0) <= best.fun else float(best.x) * beta
