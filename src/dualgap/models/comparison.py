"""What a model states, compared with itself and with what is recomputed."""

from __future__ import annotations

import math
from typing import TYPE_CHECKING

from ..core.certificate import relative_to_floor
from ..core.losses import loss_named
from ..core.problem import Certificate

if TYPE_CHECKING:
    from .model import Model

TRUE, NOT_TRUE, UNPROVEN = "true", "not true", "unproven"
# rounding beyond this part of the objective and the lower bound excuses no difference between two of them
_NOISE = 1e-6
ULP = 2.0**-52


def contradiction(model: Model, k: int = 0) -> str | None:
    """A contradiction among the statements of a model about row k of ``coef``, whatever the rows are; None if
    there is none.
    """
    proof, stored = model.proofs[k], model.certificates[k]
    lam, weight = proof.lam, proof.total_weight
    if not 0.0 <= lam < math.inf:
        return f"the stored lam is {lam!r}, which must be a number >= 0"
    if not 0.0 < weight < math.inf:
        return f"the stored total weight is {weight!r}, which must be positive"
    C, hard = model.C, loss_named(model.loss, model.loss_parameters).hard
    given = 1.0 if hard and math.isinf(C) else C  # a hard margin has no C: its objective is 1/2 |w|^2
    # two operations made lam of C, or C of lam, and two more are made here: half a unit each
    if not (math.isclose(given * lam * weight, 1.0, rel_tol=4 * ULP) if lam else math.inf == C):
        expected = 1.0 / (lam * weight) if lam * weight else math.inf
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


def gap_covers(stored: Certificate, known: Certificate) -> bool:
    """Whether a stored gap is at least that of values which are all but exact."""
    return known.primal - known.dual - known.rounding <= stored.gap


def _agree(one: float, other: float, error: float) -> bool:
    return one == other or abs(one - other) <= error


def inconsistency(stored: Certificate, floor: float | None) -> str | None:
    """A contradiction within a certificate; None if there is none.

    The relative gap is the gap over the dual less its own share of the rounding, which is not stored. Where
    that is not positive, the gap is measured against ``floor`` (`relative_to_floor`).
    """
    primal, dual, gap, relative, rounding, _ = stored
    expected = primal - dual + rounding if primal < math.inf and dual > -math.inf else math.inf
    if not _agree(gap, expected, 2.0 * ULP * (abs(primal) + abs(dual) + rounding)):
        return f"the stored gap is {gap!r}, and objective - lower bound + rounding is {expected!r}"
    by_dual = (gap / dual, gap / (dual - rounding) if dual > rounding else math.inf) if dual > 0.0 else None
    by_floor = relative_to_floor(primal, gap, rounding, floor) if gap < math.inf else math.inf
    near = 1.0 + 1e-9
    if by_dual is not None and by_dual[0] / near <= relative <= by_dual[1] * near:
        return None
    if dual <= rounding and _agree(relative, by_floor, 1e-9 * by_floor):
        return None
    expected = by_floor if by_dual is None else by_dual[0]
    return f"the relative gap is {expected!r}, and not the stored {relative!r}"
