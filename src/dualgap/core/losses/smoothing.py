"""Losses smoothed about a dual point (Nesterov's smoothing, or a Moreau envelope).

    phi_gamma(s) = sup over b of (-b s - phi*(-b) - gamma/2 (b - centre)^2)

is smooth with constant 1/gamma, for every convex phi; the maximiser is ``dual_prox(y, s, centre, gamma)``.
gamma = 0 is the loss itself.
"""

from __future__ import annotations

from typing import Any

from ...runtime.jit import inner


@inner
def smoothed_dual(loss: Any, gamma: float, centre: Any, i: int, y: float, score: float) -> float:
    """-phi' of the smoothed loss: the ``b`` that maximises ``-phi*(-b) - score b - gamma/2 (b -
    centre_i)^2``.
    """
    if gamma == 0.0:
        return -loss.derivative(y, score)  # type: ignore[no-any-return]
    return loss.dual_prox(y, score, centre[i], gamma)  # type: ignore[no-any-return]


@inner
def smoothed_curvature(loss: Any, gamma: float, centre: Any, i: int, y: float, score: float) -> float:
    """phi'' of the smoothed loss: 1/gamma where the dual is at no bound or kink."""
    if gamma == 0.0:
        return loss.curvature(y, score)  # type: ignore[no-any-return]
    left, right = loss.dual_subdifferential(y, score, loss.dual_prox(y, score, centre[i], gamma))
    return 1.0 / gamma if left == right else 0.0
