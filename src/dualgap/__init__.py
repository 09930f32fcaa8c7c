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
    from .checkpoints import load_state as load_state
    from .checkpoints import save_state as save_state
    from .errors import InputError as InputError
    from .estimators import LinearSVC as LinearSVC
    from .many import Many as Many
    from .many import one_vs_rest as one_vs_rest
    from .problem import Certificate as Certificate
    from .problem import Point as Point
    from .solve import Outcome as Outcome
    from .solve import Record as Record
    from .solve import Run as Run
    from .stream import Stream as Stream

# Loaded when first asked for: `dualgap --help` and `import dualgap` answer at once, without Numba or scikit-learn.
_HOMES = {
    "fit": "api",
    "plan": "api",
    "InputError": "errors",
    "LinearSVC": "estimators",
    "Certificate": "problem",
    "Point": "problem",
    "Many": "many",
    "one_vs_rest": "many",
    "Outcome": "solve",
    "Record": "solve",
    "Run": "solve",
    "Stream": "stream",
    "load_state": "checkpoints",
    "save_state": "checkpoints",
}

__all__ = ["__version__", *_HOMES]


def __getattr__(name: str) -> Any:
    if name in _HOMES:
        return getattr(import_module(f".{_HOMES[name]}", __name__), name)
    raise AttributeError(f"module {__name__!r} has no attribute {name!r}")


def __dir__() -> list[str]:
    return sorted(__all__)
