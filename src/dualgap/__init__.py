"""Linear SVMs and other linear predictors, trained fast and handed back with a proof of how good they are.

>>> import dualgap
>>> outcome = dualgap.fit([[0.0, 1.0], [1.0, 0.0]], [-1, 1], C=1.0)
>>> outcome.certificate.relative_gap <= 1e-3
True
"""

from __future__ import annotations

from importlib import import_module
from typing import TYPE_CHECKING, Any

from ._version import __version__

if TYPE_CHECKING:
    from .api import fit as fit
    from .api import plan as plan
    from .core.problem import Certificate as Certificate
    from .core.problem import Point as Point
    from .estimators import HuberRegressor as HuberRegressor
    from .estimators import LinearClassifier as LinearClassifier
    from .estimators import LinearRegressor as LinearRegressor
    from .estimators import LinearSVC as LinearSVC
    from .estimators import LinearSVR as LinearSVR
    from .estimators import LogisticRegression as LogisticRegression
    from .estimators import Perceptron as Perceptron
    from .estimators import QuantileRegressor as QuantileRegressor
    from .estimators import Ridge as Ridge
    from .estimators import SGDClassifier as SGDClassifier
    from .estimators import SGDRegressor as SGDRegressor
    from .many import OneVsRest as OneVsRest
    from .many import one_vs_rest as one_vs_rest
    from .models.model import Model as Model
    from .outcome import Outcome as Outcome
    from .runtime.errors import InputError as InputError
    from .runtime.errors import TrivialModelWarning as TrivialModelWarning
    from .stream import Stream as Stream
    from .training.callbacks import Callback as Callback
    from .training.checkpoint import save_state as save_state
    from .training.records import Record as Record
    from .training.run import Run as Run
    from .warm_starts import load_state as load_state

_ESTIMATORS = (
    "HuberRegressor",
    "LinearClassifier",
    "LinearRegressor",
    "LinearSVC",
    "LinearSVR",
    "LogisticRegression",
    "Perceptron",
    "QuantileRegressor",
    "Ridge",
    "SGDClassifier",
    "SGDRegressor",
)
# Loaded when first asked for: `dualgap --help` and `import dualgap` answer at once, without Numba or
# scikit-learn.
_HOMES = {
    "fit": "api",
    "plan": "api",
    "InputError": "runtime.errors",
    "TrivialModelWarning": "runtime.errors",
    **dict.fromkeys(_ESTIMATORS, "estimators"),
    "Certificate": "core.problem",
    "Point": "core.problem",
    "OneVsRest": "many",
    "one_vs_rest": "many",
    "Model": "models.model",
    "Outcome": "outcome",
    "Record": "training.records",
    "Run": "training.run",
    "Callback": "training.callbacks",
    "Stream": "stream",
    "load_state": "warm_starts",
    "save_state": "training.checkpoint",
}

__all__ = ["__version__", *_HOMES]


def __getattr__(name: str) -> Any:
    if name == "files":
        return import_module(".files", __name__)
    if name in _HOMES:
        return getattr(import_module(f".{_HOMES[name]}", __name__), name)
    raise AttributeError(f"module {__name__!r} has no attribute {name!r}")


def __dir__() -> list[str]:
    return sorted(__all__)
