"""Certificates: a primal value, a dual value and their gap, with a bound on all rounding errors."""

from __future__ import annotations

from typing import Literal, NamedTuple

import numpy as np

from ..runtime.errors import InternalError

Form = Literal["mean", "J"]

# Where the optimum is known to be 0 there is no gap relative to it: there it is measured against this
# fraction of P(0).
ABSOLUTE_SHARE = 1e-6


class Certificate(NamedTuple):
    """Proof of how good a model is: the best objective possible lies between ``dual`` and ``primal``.

    ``gap`` is ``primal - dual`` plus ``rounding``, a bound on all rounding errors in the two. Where ``dual >
    0``, ``relative_gap = gap / dual`` (less its rounding), and the objective is at most that fraction above
    the optimum. Where ``dual <= 0`` nothing is known of that fraction, and ``relative_gap`` is infinite,
    unless the optimum is known to be 0 (`Problem.gap_floor`): then the gap is measured against a millionth of
    the objective of the all-zero model, and is 0 where the objective is 0 but for rounding. ``form`` is
    "mean" for P or "J" for P / lam.
    """

    primal: float
    dual: float
    gap: float
    relative_gap: float
    rounding: float
    form: Form

    def __repr__(self) -> str:
        """In one line, with what it proves."""
        objective = "J" if self.form == "J" else "P"
        return f"<Certificate: {objective} = {self.primal:.6g}, {proven(self)}>"


def proven(certificate: Certificate) -> str:
    """What a certificate proves, in words: "proven within 0.06% of the optimum"."""
    gap = certificate.relative_gap
    if gap == np.inf:
        return "nothing is proven of it" if certificate.gap == np.inf else f"gap {certificate.gap:.2g}"
    size = f"{100.0 * gap:.2g}%" if gap < 1.0 else f"{gap:.2g} times the optimum"
    return f"proven within {size} of the optimum" if gap < 1.0 else f"proven within {size}"


def certificate_of(
    primal: float, primal_error: float, dual: float, dual_error: float, floor: float | None = None
) -> Certificate:
    """The certificate of a primal and a dual value, which may belong to different moments of a run.

    ``floor`` is what the gap is measured against where the dual value is not positive, as `relative_to_floor`
    does; None where the optimum may be positive.
    """
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
    relative = gap / sure if sure > 0.0 else relative_to_floor(primal, gap, rounding, floor)
    return Certificate(primal, dual, gap, relative, rounding, "mean")


def relative_to_floor(primal: float, gap: float, rounding: float, floor: float | None) -> float:
    """The relative gap where the dual value is not positive: 0 where the gap is, or where the optimum is
    known to be 0 and the objective is, but for rounding; else against the floor, if there is one.
    """
    if gap == 0.0 or (floor is not None and primal <= rounding and gap <= 2.0 * rounding):
        return 0.0
    return gap / floor if floor else np.inf


def excess(certificate: Certificate) -> str:
    """How far the objective of a model may be above the minimum, in words that follow its relative gap."""
    if certificate.primal == np.inf:
        return "it violates the hard margin, and nothing is proven of it"
    if certificate.relative_gap == np.inf:
        return "no positive lower bound is known, so its objective may be any number of times the minimum"
    return "its objective may be up to that fraction above the minimum"


def in_form(certificate: Certificate, form: Form, lam: float) -> Certificate:
    """The same certificate for P ("mean") or for J = P / lam ("J"); without lam there is no J."""
    if certificate.form == form or lam == 0.0:
        return certificate
    factor = 1.0 / lam if form == "J" else lam
    primal, dual, gap, relative, rounding, _ = certificate
    return Certificate(primal * factor, dual * factor, gap * factor, relative, rounding * factor, form)
