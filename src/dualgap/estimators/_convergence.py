"""The warning that training ended above the tolerance."""

from __future__ import annotations

from typing import Any

from ..data.scales import advice

_REMEDIES = {
    "max_epochs": "raise max_iter (now {max_iter:g}), loosen tol or take a smaller C",
    "rounding": "loosen tol: float64 cannot prove a smaller gap here",
    "optimal": "loosen tol: float64 cannot prove a smaller gap here",
}


def message(
    estimator: str, X: Any, *, gap: float, tol: float, epochs: float, max_iter: float, reason: str, who: str
) -> str:
    """The text of a ConvergenceWarning: the gap reached, the tolerance, the likely cause and the remedy."""
    remedy = _REMEDIES.get(reason, "loosen tol, take a smaller C or try another solver").format(
        max_iter=max_iter
    )
    return (
        f"{estimator} ended at a relative gap of {gap:.3g} after {epochs:.4g} epochs, above "
        f"tol={tol:g}{who}: its "
        f"objective may be up to that fraction above the minimum. {advice(X, remedy)}"
    )
