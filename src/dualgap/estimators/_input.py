"""Parameters and arrays of estimators, checked before training."""

from __future__ import annotations

import inspect
from functools import lru_cache
from numbers import Integral, Real
from typing import Any

import numpy as np
from joblib import effective_n_jobs
from sklearn.utils import check_array, check_random_state
from sklearn.utils.class_weight import compute_class_weight
from sklearn.utils.multiclass import check_classification_targets
from sklearn.utils.validation import validate_data

from ..api import fit
from ..core.losses import Loss, every_loss, make_loss
from ..runtime.arrays import Floats
from ..runtime.checks import number, shown
from ..runtime.errors import InputError, nearest


def thread_count(n_jobs: Any) -> int:
    """Threads for ``n_jobs`` as scikit-learn and joblib count them: None is 1, -1 all cores, -2 all but
    one.
    """
    if n_jobs is not None and (isinstance(n_jobs, bool) or not isinstance(n_jobs, Integral) or n_jobs == 0):
        raise InputError(
            f"n_jobs={shown(n_jobs)} must be a whole number other than 0, or None (-1 is all cores)"
        )
    return int(effective_n_jobs(n_jobs))


def seed_of(random_state: Any) -> int:
    """A seed drawn from what scikit-learn takes for a ``random_state``."""
    if type(random_state) is int and 0 <= random_state < 2**32:
        return _first_draw(random_state)
    try:
        generator = check_random_state(random_state)
    except ValueError:
        raise InputError(
            f"random_state={shown(random_state)} must be an int from 0 to 2**32 - 1, a RandomState or None"
        ) from None
    return int(generator.randint(np.iinfo(np.int32).max))


@lru_cache
def _first_draw(seed: int) -> int:
    """What a generator of that seed draws first: making one takes longer than opening a thousand rows."""
    return int(check_random_state(seed).randint(np.iinfo(np.int32).max))


def check_labels(y: Any) -> None:
    """Refuse targets that are no labels, as scikit-learn does; it need not be asked about whole numbers and
    words, which takes a while.
    """
    if not isinstance(y, np.ndarray) or y.ndim != 1 or y.dtype.kind not in "biuUS":
        check_classification_targets(y)


def loss_for(spec: str | Loss, tasks: tuple[str, ...], estimator: str) -> Loss:
    """A loss, which must be for one of these tasks."""
    loss = make_loss(spec)
    if loss.task not in tasks:
        fitting = sorted(name for name, cls in every_loss().items() if cls.task in tasks)
        raise InputError(
            f"loss {loss.name!r} is for {loss.task}; {estimator} takes one of: {', '.join(fitting)}"
        )
    return loss


def options_for(options: dict[str, Any] | None) -> dict[str, Any]:
    """The options of the solver, without names that ``fit`` would take for its own arguments."""
    if options is None:
        return {}
    if not isinstance(options, dict):
        raise InputError(f"solver_options={shown(options)} must be a dict, such as {{'shrinking': False}}")
    for key in options:
        if not isinstance(key, str) or key in inspect.signature(fit).parameters:
            raise InputError(
                f"solver_options has {shown(key)}, which is no option of any solver; it belongs elsewhere"
            )
    return dict(options)


def rows_of(
    estimator: Any, X: Any, y: Any = "no_validation", *, training: bool, several: bool = False
) -> Any:
    """X (and y) as scikit-learn validates them, C-ordered or CSR, in float64, float32 or, dense, float16.

    Floats stay as they are, and integers of up to 16 bits become float32, which holds them exactly. In
    training the values are left to ``fit`` to check, which names the row and the column of a NaN.
    ``several``: y may have columns.
    """
    found = validate_data(
        estimator,
        X,
        y,
        reset=training,
        accept_sparse="csr",
        dtype="numeric",
        order="C",
        ensure_all_finite=not training,
        **({"multi_output": several, "y_numeric": False} if training else {}),
    )
    rows, target = found if isinstance(found, tuple) else (found, None)
    if rows.dtype != np.float16:
        rows = rows.astype(np.promote_types(rows.dtype, np.float32), copy=False)
    return rows if target is None else (rows, target)


def weights_of(sample_weight: Any, n: int) -> Floats:
    """One float64 weight a row, a number being that of all; ``fit`` refuses negative ones by name."""
    if sample_weight is None:
        return np.ones(n)
    if isinstance(sample_weight, Real):
        return np.full(n, float(sample_weight))
    try:
        shape = np.asarray(sample_weight).shape
        if shape != (n,):
            raise InputError(f"sample_weight has shape {shape} and X has {n} rows; give one weight a row")
        weight = check_array(sample_weight, ensure_2d=False, dtype=np.float64, input_name="sample_weight")
    except InputError:
        raise
    except (TypeError, ValueError, OverflowError) as error:
        raise InputError(f"sample_weight cannot be used: {error}") from None
    return np.asarray(weight)


def class_factors(class_weight: Any, labels: Any, codes: Any, weight: Floats) -> Floats:
    """The factors of the weights of each class's rows. "balanced" counts rows by their weight."""
    if class_weight is None:
        return np.ones(labels.size)
    if isinstance(class_weight, str):
        if class_weight != "balanced":
            raise InputError(
                f"unknown class_weight {class_weight!r}; {nearest(class_weight, ['balanced'])}, or a dict"
            )
        totals = np.bincount(codes, weights=weight, minlength=labels.size)
        factors = np.zeros(labels.size)
        np.divide(weight.sum(), np.count_nonzero(totals) * totals, out=factors, where=totals > 0)
        return factors
    if not isinstance(class_weight, dict):
        raise InputError(
            f"class_weight={shown(class_weight)} must be a dict from labels to weights, 'balanced' or None"
        )
    for label, value in class_weight.items():
        number(f"class_weight[{label!r}]", value, zero=True)
    return np.asarray(compute_class_weight(class_weight, classes=labels, y=labels))


def two_or_more(classes: list[Any], all_labels: list[Any]) -> None:
    """Refuse to train a classifier on fewer than two classes."""
    if len(classes) >= 2:
        return
    if len(all_labels) == 1:
        raise InputError(
            f"y holds one class only ({all_labels[0]!r}); a classifier needs rows of two classes"
        )
    if len(classes) == 0:
        raise InputError(
            "all sample weights are zero; rows of at least two classes must have a positive weight"
        )
    raise InputError(
        f"only class {classes[0]!r} has rows of positive weight (of {len(all_labels)} classes); "
        "a classifier needs rows of two classes"
    )
