"""Losses by name."""

from __future__ import annotations

import math
from typing import Any

from ...runtime.checks import shown
from ...runtime.errors import InputError, nearest
from .contract import Loss
from .logistic import Logistic
from .margin import Hinge, ModifiedHuber, SmoothHinge, SquaredHinge
from .regression import Absolute, EpsilonInsensitive, Huber, Quantile, Squared, SquaredEpsilonInsensitive

LOSSES: dict[str, type[Any]] = {
    loss.name: loss
    for loss in (
        Hinge,
        SmoothHinge,
        SquaredHinge,
        Logistic,
        ModifiedHuber,
        Squared,
        Huber,
        Absolute,
        Quantile,
        EpsilonInsensitive,
        SquaredEpsilonInsensitive,
    )
}


# Other names, most of them scikit-learn's, with the parameters for which the functions are the same.
_ALIASES: dict[str, tuple[str, dict[str, float]]] = {
    "log-loss": ("logistic", {}),
    "log": ("logistic", {}),
    "squared-error": ("squared", {"scale": 0.5}),  # scikit-learn has (s - y)^2 / 2
    "absolute-error": ("absolute", {}),
    "pinball": ("quantile", {}),
    "perceptron": ("hinge", {"margin": 0.0}),
    "softmax": ("multinomial", {}),
    "cross-entropy": ("multinomial", {}),
}
_ABSENT = ("exponential", "gamma", "poisson", "tweedie")

_JOINT_NAMES = ("multinomial", "crammer-singer")
NAMES = (*LOSSES, *_JOINT_NAMES)


def joint_losses() -> dict[str, type[Any]]:
    """The joint losses of K classes by name. They are imported when they are asked for."""
    from ..joint.losses import CrammerSinger, Multinomial

    return dict(zip(_JOINT_NAMES, (Multinomial, CrammerSinger), strict=True))


def every_loss() -> dict[str, type[Any]]:
    """All losses by name, the joint ones last."""
    return {**LOSSES, **joint_losses()}


def make_loss(spec: str | Loss) -> Loss:
    """A loss from its name (``"hinge"``) or name and parameters (``"huber:threshold=2"``); a loss as it is.

    Names may be written with underscores, as scikit-learn does. A joint loss is a `JointLoss`.
    """
    if not isinstance(spec, str):
        if type(spec) not in LOSSES.values() and type(spec) not in joint_losses().values():
            raise InputError(f"loss={shown(spec)} is not a loss; {nearest(str(spec), NAMES)}")
        return checked(spec)
    given, _, rest = spec.partition(":")
    name, parameters = given.replace("_", "-"), {}
    if name in _ALIASES:
        name, parameters = _ALIASES[name][0], dict(_ALIASES[name][1])
    if name in _ABSENT:
        raise InputError(f"the loss {given!r} is not offered; there are: {', '.join(sorted(NAMES))}")
    if name not in NAMES:
        raise InputError(f"unknown loss {shown(given)}; {nearest(name, NAMES)}")
    cls = LOSSES[name] if name in LOSSES else joint_losses()[name]
    for part in filter(None, rest.split(",")):
        key, equals, text = part.partition("=")
        if not parameters_of(cls):
            raise InputError(f"loss {name!r} has no parameter {key!r}, nor any other; write it as {name}")
        if key not in parameters_of(cls):
            raise InputError(f"loss {name!r} has no parameter {key!r}; {nearest(key, parameters_of(cls))}")
        try:
            parameters[key] = float(text)
        except ValueError:
            raise InputError(
                f"loss {name!r}: {key}={text!r} is not a number; write it as {name}:{key}=1.5"
            ) from None
        if not equals:
            raise InputError(f"loss {name!r}: give {key} a value, as in {name}:{key}=1.5")
    return checked(cls(**parameters))


def loss_named(name: str, parameters: dict[str, float]) -> Loss:
    """A loss from what a model keeps of it. It may be a hard margin, which training makes of another loss."""
    if name not in NAMES:
        for cls in LOSSES.values():
            limit: Loss | None = cls().hard_margin
            if limit is not None and limit.name == name:
                for key in parameters:
                    if key not in limit._asdict():
                        raise InputError(f"loss {name!r} has no parameter {shown(key)}")
                return checked(type(limit)(**parameters))
    return make_loss(":".join([name, ",".join(f"{key}={value!r}" for key, value in parameters.items())]))


def parameters_of(loss: Loss | type[Any]) -> dict[str, float]:
    """The parameters a user may set, with their defaults (or values, of an instance)."""
    found = loss._field_defaults if isinstance(loss, type) else loss._asdict()
    return {key: value for key, value in found.items() if key != "unit"}


def checked(loss: Loss) -> Loss:
    """The same loss with float parameters, or an error that names the one out of range."""
    values = {key: float(value) for key, value in loss._asdict().items()}
    for key, value in values.items():
        if not math.isfinite(value) or value < 0.0 or (key in loss.positive and value == 0.0):
            kind = "positive" if key in loss.positive else "non-negative"
            raise InputError(f"loss {loss.name!r}: {key}={value!r} must be a {kind} finite number")
        if key in loss.below_one and value >= 1.0:
            raise InputError(f"loss {loss.name!r}: {key}={value!r} must be below 1")
    return type(loss)(**values)
