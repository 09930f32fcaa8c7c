"""The numbers of a problem that kernels need besides the rows and the loss, in two groups.

Dual steps. A change of beta_i by t moves the model by

    w += scale c_i t x_i,    b += bias_rate c_i t,      scale = 1/(lam N),    bias_rate = 1/(strength N),

and the curvature of the dual along beta_i, per unit of c_i / N, is q_i = c_i (scale |x_i|^2 + bias_rate). At
beta = 0 the model is w = 0, b = centre.

Primal steps, one row at a time. With m rows of positive weight, drawn uniformly, the objective is the mean of

    lam/2 |w|^2 + weight_scale c_i phi(<w, x_i> + b, y_i),      weight_scale = m / N,

over these rows. A constant feature rho moves b by rho2 = rho^2 times the coefficient of x_i; a free bias by
bias_step times that coefficient. Either is 0 for the other kinds of bias.
"""

from __future__ import annotations

from typing import NamedTuple


class DualGeometry(NamedTuple):
    """How a step of one dual variable moves w and b."""

    scale: float
    centre: float
    bias_rate: float


class PrimalGeometry(NamedTuple):
    """How a step on the loss of one row moves w and b."""

    lam: float
    weight_scale: float
    rho2: float
    bias_step: float
