"""The warning that training ended above the tolerance."""

from __future__ import annotations

from typing import Any

from ..core.certificate import Certificate, excess
from ..data.scales import advice

# how a run may end above its tolerance because a user said so: no warning then
ASKED_FOR = ("callback", "early", "interrupted")

_REMEDIES = {
    "time_limit": "raise time_limit, loosen tol or take a smaller C",
    "max_epochs": "raise max_iter (now {max_iter:g}), loosen tol or take a smaller C",
    "rounding": "loosen tol: float64 cannot prove a smaller gap here",
    "not separable": "take a finite C: no hyperplane separates the classes",
    "optimal": "loosen tol: float64 cannot prove a smaller gap here",
}


def message(
    estimator: str,
    X: Any,
    *,
    certificate: Certificate,
    tol: float,
    epochs: float,
    max_iter: float,
    reason: str,
    who: str,
) -> str:
    """The text of a ConvergenceWarning: the gap reached, the tolerance, the likely cause and the remedy."""
    remedy = _REMEDIES.get(reason, "loosen tol, take a smaller C or try another solver").format(
        max_iter=max_iter
    )
    return (
        f"{estimator} ended at a relative gap of {certificate.relative_gap:.3g} after {epochs:.4g} epochs, "
        f"above tol={tol:g}{who}: {excess(certificate)}. {advice(X, remedy)}"
    )
