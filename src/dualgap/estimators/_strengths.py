"""How much is regularised: ``C`` or ``alpha``, exactly one of which is given."""

from __future__ import annotations

from typing import Any

from ..preparing import checked_C
from ..runtime.checks import number, shown
from ..runtime.errors import InputError

Strength = dict[str, float]  # {"C": ...} or {"lam": ...}, as ``fit`` takes it


def by_C(C: Any, alpha: Any, default: float) -> Strength:
    """Of an estimator whose C has a default; alpha is lam of the mean form."""
    if alpha is None:
        return {"C": checked_C(default if C is None else C)}
    if C is not None and default != C:
        raise _both(C, alpha)
    return {"lam": number("alpha", alpha, zero=True)}


def by_alpha(C: Any, alpha: Any, default: float) -> Strength:
    """Of an estimator whose alpha, lam of the mean form, has a default."""
    if C is None:
        return {"lam": number("alpha", alpha, zero=True)}
    if alpha is not None and default != alpha:
        raise _both(C, alpha)
    return {"C": checked_C(C)}


def by_sum(C: Any, alpha: Any, default: float, scale: float) -> Strength:
    """Of an estimator whose alpha multiplies the penalty beside a sum of losses: C = scale / alpha."""
    if C is not None:
        return by_alpha(C, alpha, default)
    if alpha is None or not alpha > 0.0:
        raise InputError(
            f"alpha={shown(alpha)} is no penalty, and without one there is no lower bound to stop by; "
            "sklearn.linear_model.LinearRegression and HuberRegressor solve that"
        )
    return {"C": checked_C(scale / float(alpha))}


def scaled(strength: Strength, factor: float) -> Strength:
    """C times a factor, or lam divided by it."""
    return {key: value * factor if key == "C" else value / factor for key, value in strength.items()}


def _both(C: Any, alpha: Any) -> InputError:
    return InputError(
        f"both C={shown(C)} and alpha={shown(alpha)} are given; give one (C = 1/(alpha N), N the sum of the "
        "weights)"
    )
