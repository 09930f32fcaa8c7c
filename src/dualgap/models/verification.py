"""Verification: a model's certificates recomputed from scratch and compared with the stored ones."""

from __future__ import annotations

import math
from dataclasses import replace
from typing import TYPE_CHECKING, Any, NamedTuple

import numpy as np

from ..core.bias import make_bias
from ..core.losses import JOINT, Loss, loss_named
from ..core.offsets import with_offsets
from ..core.problem import Certificate, Point, make_problem
from ..data.chunks import OnDisk
from ..data.dataset import Dataset, DataSpec, RowIdentity
from ..data.fingerprint import hashes_in_any_order, hashes_in_order
from ..data.labels import shown_label
from ..data.sources import View
from ..runtime.errors import InputError
from .building import known_by
from .comparison import NOT_TRUE, TRUE, ULP, UNPROVEN, compare, contradiction, gap_covers, inconsistency
from .rebuilding import against_rest, as_weighted, dual_from_slopes, opened_for, stored_duals

if TYPE_CHECKING:
    from .model import Model

SAME, ANOTHER = "same order", "another order"
UNKNOWN = "unknown"  # the model has no fingerprint of its rows
_UNSEEN = UNPROVEN, "not recomputed, as another class contradicts itself", None
_SEVERITY = {TRUE: 0, UNPROVEN: 1, NOT_TRUE: 2}
_STRANGE_HASHES = "the stored hashes of the rows that have duals are not those of the training rows"
_NO_FINGERPRINT = {
    TRUE: "; the model has no fingerprint of its rows and needs none, as that proves it of these rows",
    NOT_TRUE: "; the model has no fingerprint of its rows, which must be those of training in their order",
    UNPROVEN: "",
}


class ClassVerdict(NamedTuple):
    """The verdict on one of the certificates of a model."""

    label: Any  # the class that it is about, against the rest; None where the model has one certificate only
    verdict: str  # TRUE, NOT_TRUE or UNPROVEN
    reason: str
    stored: Certificate
    recomputed: Certificate | None


class Verification(NamedTuple):
    """The verdict on the certificates of a model, and its reason.

    A stored certificate is true if the data hold the training rows, the objective of the stored weights and
    the lower bound of the stored duals are as stated, up to rounding, and nothing else that the model says of
    them contradicts what is recomputed. A model of K classes has K of them, and all must be true: verdict,
    reason and certificates are then those of the worst class.
    """

    verdict: str
    reason: str
    rows: str | None  # SAME, ANOTHER, UNKNOWN, or None where the data hold other rows
    duals: str  # "stored", or "slopes" for the weaker bound of a model without duals
    stored: Certificate
    recomputed: Certificate | None
    per_class: tuple[ClassVerdict, ...]

    @property
    def same_rows(self) -> bool | None:
        """Whether the data hold the training rows; None where that cannot be known."""
        if self.rows == UNKNOWN:
            return True if self.verdict == TRUE else None
        return self.rows is not None


def verify(model: Model, data: Any, offset: Any = None) -> Verification:
    """Recompute the certificates of a model from its training rows: a path, a DataSpec, or a Dataset in its
    schema; and their offsets, if they had any in training.
    """
    if not model.proofs:
        raise InputError("the model has no certificate, so there is nothing to verify")
    if model.offsets and offset is None:
        raise InputError("the training rows had offsets: verify it by Model.verify(X, y, offset=...)")
    if offset is not None and not model.offsets:
        raise InputError("offset= is given, and the model was trained without offsets; leave it out")
    faults = [contradiction(model, k) for k in range(len(model.proofs))]
    if any(faults):
        return _verification(model, None, [(NOT_TRUE, fault, None) if fault else _UNSEEN for fault in faults])
    if not isinstance(data, Dataset):
        data = opened_for(model, data if isinstance(data, DataSpec) else DataSpec(data))
    return _recompute(model, as_weighted(model, data), offset)


def identified(model: Model, spec: DataSpec) -> Model:
    """The model with the fingerprints of these rows, once it has been verified from them in their order."""
    nameless = replace(model, fingerprint=None, rows_in_order=None, rows_in_any_order=None, dual_hashes=None)
    data = opened_for(nameless, spec)
    found = verify(nameless, data) if nameless.proofs else None
    if found is not None and found.verdict != TRUE:
        raise InputError(f"these are not the training rows, in their order: {found.reason}")
    return replace(nameless, **known_by(as_weighted(model, data).identity(), model.dual))


def _verification(
    model: Model, rows: str | None, found: list[tuple[str, str, Certificate | None]]
) -> Verification:
    """Verdicts on all certificates, put together."""
    several = len(model.proofs) > 1
    labels = model.classes if several and model.classes is not None else (None,)
    per_class = tuple(
        ClassVerdict(label, verdict, reason, stored, recomputed)
        for label, stored, (verdict, reason, recomputed) in zip(
            labels, model.certificates, found, strict=True
        )
    )
    worst = max(per_class, key=lambda each: _SEVERITY[each.verdict])
    reason = f"class {shown_label(worst.label)}: {worst.reason}" if several else worst.reason
    if several and worst.verdict == TRUE:
        reason = f"for each of {len(per_class)} classes: {worst.reason}"
    if model.held_rows is not None and worst.verdict == TRUE:
        reason += f" ({len(model.held_rows):,} rows were held out of training and do not count)"
    return Verification(worst.verdict, reason, rows, _duals(model), worst.stored, worst.recomputed, per_class)


def _recompute(model: Model, data: Dataset, offset: Any) -> Verification:
    """Build the problems anew, evaluate the stored points, and compare."""
    count, n = len(model.proofs), data.source.n
    if n != model.n_samples:
        reason = f"DATA has {n} rows and the model was trained on {model.n_samples}"
        return _verification(model, None, [(NOT_TRUE, reason, None)] * count)
    rows = data.identity(fresh=True)
    order, fault = _order(model, rows)
    loss = loss_named(model.loss, model.loss_parameters)
    only = model.task == "regression" or JOINT in (model.task, loss.task)
    if fault is None and only and loss.task != model.task:
        fault = f"the stored task is {model.task}, and the {loss.name} loss is for {loss.task}"
    if fault is not None:
        return _verification(model, order, [(NOT_TRUE, fault, None)] * count)
    if model.dual is None and not data.source.in_memory:
        raise InputError(
            "the model was saved without duals: its bound can be recomputed only where all rows fit in memory"
        )
    found = []
    for k in range(count):
        source = against_rest(model, data, k)
        if offset is None:
            found.append(_recompute_row(model, k, source, loss, rows, order))
        else:
            found.append(_recompute_row(model, k, *with_offsets(source, loss, offset), rows, order))
    return _verification(model, order, found)


def _recompute_row(
    model: Model, k: int, source: View | OnDisk, loss: Loss, rows: RowIdentity, order: str | None
) -> tuple[str, str, Certificate | None]:
    """Verdict, reason and certificate of row k of ``coef``."""
    stored, proof, duals = model.certificates[k], model.proofs[k], _duals(model)
    weight = source.total_weight
    if order and not math.isclose(weight, proof.total_weight, rel_tol=(source.n + 16) * ULP):
        stated = f"the stored total weight is {proof.total_weight!r}, and that of the rows is {weight!r}"
        return NOT_TRUE, stated, None
    beta = None
    if model.dual is not None:
        beta = stored_duals(model, k, rows, moved=order == ANOTHER)
        if beta is None:
            return NOT_TRUE, _STRANGE_HASHES, None
    classes = model.coef.shape[0] if model.joint else None
    problem = make_problem(source, loss, proof.lam, make_bias(model.bias, model.rho), classes)
    w: Any = np.ascontiguousarray(model.coef.T) if model.joint else model.coef[k]
    b: Any = model.intercept if model.joint else float(model.intercept[k])
    point = Point(w, b, dual_from_slopes(problem, w, b) if beta is None else beta)
    recomputed = problem.in_form(problem.certify(point), "J")
    if order is None:
        return NOT_TRUE, _other_rows(model), recomputed
    verdict, reason = compare(stored, recomputed, duals)
    if verdict == TRUE and duals == "stored" and stored[:2] != recomputed[:2]:
        # Other bits, as of another machine. How far they may be off is known from sums that hardly round.
        recomputed = problem.in_form(problem.certify(point, compensated=True), "J")
        verdict, reason = compare(stored, recomputed, duals)
        if verdict == TRUE and not gap_covers(stored, recomputed):
            known = recomputed.primal - recomputed.dual
            verdict, reason = NOT_TRUE, f"the gap is {known!r}, and the stored {stored.gap!r} is less"
    if verdict != NOT_TRUE:
        floor = problem.gap_floor
        floor = None if floor is None else floor / (proof.lam or 1.0)
        verdict, reason = (NOT_TRUE, fault) if (fault := inconsistency(stored, floor)) else (verdict, reason)
    if order == UNKNOWN:
        reason += _NO_FINGERPRINT[verdict]
    return verdict, reason, recomputed


def _other_rows(model: Model) -> str:
    if model.rows_in_any_order is None:
        others = "the rows of DATA are not the training rows in their order"
        return f"{others}; this older model has no hashes of them"
    return (
        "the rows of DATA are not the training rows (others, or weighted otherwise, or rounded when they "
        "were written: dualgap.files.write_svmlight keeps every bit)"
    )


def _duals(model: Model) -> str:
    return "slopes" if model.dual is None else "stored"


def _order(model: Model, rows: RowIdentity) -> tuple[str | None, str | None]:
    """Whether the data hold the training rows, and in their order; and a fault, if the model's fingerprints
    disagree.
    """
    if model.fingerprint is model.rows_in_order is model.rows_in_any_order is None:
        return UNKNOWN, None
    same = rows.fingerprint == model.fingerprint
    if model.rows_in_order is None or model.rows_in_any_order is None:
        return SAME if same else None, None
    same_hashes = hashes_in_order(rows.hashes) == model.rows_in_order
    found = hashes_in_any_order(rows.hashes) == model.rows_in_any_order
    if same and same_hashes and found:
        beside = model.dual is None or model.dual_hashes is None
        if beside or bool((rows.hashes[model.dual.indices] == model.dual_hashes).all()):
            return SAME, None
        return SAME, _STRANGE_HASHES
    if same or same_hashes:
        return (
            SAME,
            "the stored fingerprints of the rows contradict each other: some are those of DATA, others are "
            "not",
        )
    return (ANOTHER if found and (model.dual is None or model.dual_hashes is not None) else None), None
