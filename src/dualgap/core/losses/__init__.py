"""Losses ``phi(score, y)``: ``contract`` states what one is, the registry names them.

Nothing outside this package asks which loss it has.
"""

from __future__ import annotations

from .contract import JOINT, Loss
from .functions import boxed, clip, soft
from .logistic import Logistic, log1p, logistic_dual, sigmoid
from .margin import HardMargin, Hinge, ModifiedHuber, SmoothHinge, SquaredHinge
from .registry import (
    LOSSES,
    NAMES,
    checked,
    every_loss,
    joint_losses,
    loss_named,
    make_loss,
    parameters_of,
)
from .regression import Absolute, EpsilonInsensitive, Huber, Quantile, Squared, SquaredEpsilonInsensitive
from .smoothing import smoothed_curvature, smoothed_dual

__all__ = [
    "JOINT",
    "LOSSES",
    "NAMES",
    "Absolute",
    "EpsilonInsensitive",
    "HardMargin",
    "Hinge",
    "Huber",
    "Logistic",
    "Loss",
    "ModifiedHuber",
    "Quantile",
    "SmoothHinge",
    "Squared",
    "SquaredEpsilonInsensitive",
    "SquaredHinge",
    "boxed",
    "checked",
    "clip",
    "every_loss",
    "joint_losses",
    "log1p",
    "logistic_dual",
    "loss_named",
    "make_loss",
    "parameters_of",
    "sigmoid",
    "smoothed_curvature",
    "smoothed_dual",
    "soft",
]
