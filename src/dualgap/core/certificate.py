"""Certificates: a primal value, a dual value and their gap, with a bound on all rounding errors."""

from __future__ import annotations

from typing import Literal, NamedTuple

import numpy as np

from ..runtime.errors import InternalError

Form = Literal["mean", "J"]

# Where D <= 0 there is no gap relative to D: it is measured against this fraction of P(0). An optimum
# of 0 needs it: a constant target that a free bias fits exactly, or targets that are all 0.
ABSOLUTE_SHARE = 1e-6


class Certificate(NamedTuple):
    """Proof of how good a model is: the best objective possible lies between ``dual`` and ``primal``.

    ``gap`` is ``primal - dual`` plus ``rounding``, a bound on all rounding errors in the two. Where ``dual >
    0``, ``relative_gap = gap / dual`` (less its rounding), and the objective is at most that fraction above
    the optimum; where ``dual <= 0``, the gap is measured against a millionth of the objective of the all-zero
    model. ``form`` is "mean" for P or "J" for P / lam.
    """

    primal: float
    dual: float
    gap: float
    relative_gap: float
    rounding: float
    form: Form


def certificate_of(
    primal: float, primal_error: float, dual: float, dual_error: float, value_at_zero: float
) -> Certificate:
    """The certificate of a primal and a dual value, which may belong to different moments of a run."""
    rounding = primal_error + dual_error
    gap = primal - dual + rounding
    if primal == np.inf or dual == -np.inf:
        return Certificate(primal, dual, np.inf, np.inf, rounding, "mean")
    if gap < 0.0:
        raise InternalError(
            f"weak duality broken: primal {primal!r} < dual {dual!r} by more than rounding {rounding!r}; "
            "please report this with the data and the options"
        )
    sure = dual - dual_error
    base = sure if sure > 0.0 else ABSOLUTE_SHARE * value_at_zero
    relative = 0.0 if gap == 0.0 else (gap / base if base > 0.0 else np.inf)
    return Certificate(primal, dual, gap, relative, rounding, "mean")


def in_form(certificate: Certificate, form: Form, lam: float) -> Certificate:
    """The same certificate for P ("mean") or for J = P / lam ("J"); without lam there is no J."""
    if certificate.form == form or lam == 0.0:
        return certificate
    factor = 1.0 / lam if form == "J" else lam
    primal, dual, gap, relative, rounding, _ = certificate
    return Certificate(primal * factor, dual * factor, gap * factor, relative, rounding * factor, form)
