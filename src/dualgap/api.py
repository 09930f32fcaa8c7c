"""``fit``: the functional face of the library, from arrays to an outcome."""

from __future__ import annotations

import math
from collections.abc import Callable, Sequence
from dataclasses import replace
from typing import Any

import numpy as np

from .bias import Bias, make_bias
from .errors import InputError
from .losses import Loss, hard_margin, make_loss
from .problem import Form, Point, Problem
from .solve import Measures, Outcome, Record, Run, solve
from .solvers import choose, make_solver
from .sources import InMemory, in_memory
from .stopping import Callback, GapBelow, Rule, Seconds, Stalled, epochs, steps

_OTHERS = "scikit-learn's SGDClassifier and LogisticRegression(solver='saga'), skglm and celer offer it"


def fit(
    X: Any,
    y: Any,
    *,
    loss: str | Loss = "hinge",
    C: float | None = None,
    lam: float | None = None,
    solver: str = "auto",
    gap: float = 1e-3,
    bias: str | Bias = "none",
    rho: float = 1.0,
    sample_weight: Any = None,
    max_epochs: float | None = 1000,
    max_steps: int | None = None,
    time_limit: float | None = None,
    threads: int = 1,
    seed: int = 0,
    watchers: Sequence[Callable[[Record], None]] = (),
    callback: Callable[[Record], Any] | None = None,
    measures: Sequence[Measures] = (),
    record_every: int | None = None,
    warm: Outcome | Run | Point | None = None,
    penalty: str = "l2",
    **options: Any,
) -> Outcome:
    """Train a linear model and prove how good it is.

    Minimises ``1/2 |w|^2 + C sum_i c_i phi_i`` (given ``C``) or ``lam/2 |w|^2 + 1/N sum_i c_i phi_i`` with
    ``N = sum c_i`` (given ``lam``); the two agree at ``C = 1/(lam N)``.

    Parameters
    ----------
    X : array or sparse matrix of shape (n, d)
        Float32 and float64 are used as they are, without a copy.
    y : array of n numbers
        Two distinct labels for a classification loss (the larger one counts as +1), any numbers for regression.
    loss : str or loss
        ``"hinge"``, ``"logistic"``, ``"huber:threshold=2"``...; ``dualgap losses`` lists them.
    C, lam : float
        Give one of the two; ``C=1`` if neither. ``C=inf`` is the hard margin (hinge loss, ``bias="exact"``).
    solver : str
        ``"auto"`` or one that ``dualgap solvers`` lists.
    gap : float
        The relative gap at which to stop: the objective is then proven to be at most that fraction above its minimum.
    bias : {"none", "augmented", "exact"}
        ``"augmented"`` adds a constant feature ``rho``, regularised like the others; ``"exact"`` is not regularised.
    sample_weight : array of n numbers >= 0
        Weight 2 is the row twice, weight 0 is no row.
    max_epochs, max_steps, time_limit : numbers or None
        Limits: row presentations in units of n, row presentations, seconds.
    threads : int
        Threads for passes over all rows.
    seed : int
        The same seed gives the same model, bit for bit.
    watchers : functions of a Record
        Called with every record; they cannot stop a run.
    callback : function of a Record
        Stops the run by returning something true; a sentence becomes the reason.
    measures : functions of a Point that return a dict of numbers
        Stored in every certified record (a validation error, say).
    record_every : int
        Certify after every so many row presentations, instead of on a schedule that keeps certifying cheap.
    warm : Outcome, Run or Point
        An outcome of the same solver and problem goes on where it ended, bit for bit; a point only starts there.
    **options
        Options of the solver; ``dualgap solvers`` lists them.

    Returns
    -------
    Outcome
        ``coef``, ``intercept``, ``dual``, ``certificate``, ``trace``, ``reason``, ``converged``, ``solver``, ``state``.
        Ctrl-C ends a run early with the best model so far and ``reason.name == "interrupted"``.
    """
    if penalty != "l2":
        raise InputError(
            f"penalty={penalty!r} is not offered: dualgap regularises by the squared l2 norm only; {_OTHERS}"
        )
    _positive("gap", gap, zero=True)
    chosen = make_loss(loss)
    if seed < 0:
        raise InputError(f"seed={seed!r} must be a whole number >= 0")
    if threads < 1:
        raise InputError(f"threads={threads!r} must be at least 1")
    if record_every is not None and record_every < 1:
        raise InputError(f"record_every={record_every!r} must be at least 1")
    classes = None
    if chosen.task == "classification":
        y, classes = two_labels(y)
    source = in_memory(X, y, sample_weight, threads=threads)
    if math.inf == C and lam is None:
        if chosen.name != "hinge":
            raise InputError(f"C={C!r} is the hard margin, which belongs to the hinge loss and not to {chosen.name!r}")
        chosen, C = hard_margin(chosen), 1.0  # J is then 1/2 |w|^2
    lam, form = strength(C, lam, source.total_weight)
    problem = Problem(source, chosen, lam, make_bias(bias, rho))
    name = choose(chosen) if solver == "auto" else solver
    trainer = make_solver(name, options, seed=seed, loss=chosen, bias=problem.bias.kind)

    rule: Rule = GapBelow(gap)
    if callback is not None:
        rule = rule | Callback(callback)
    if max_steps is not None:
        rule = rule | steps(int(_positive("max_steps", max_steps)))
    if max_epochs is not None:
        rule = rule | epochs(_positive("max_epochs", max_epochs), problem.present)
    if time_limit is not None:
        rule = rule | Seconds(_positive("time_limit", time_limit))
    rule = rule | Stalled(1000 * problem.present)
    outcome = solve(
        trainer,
        problem,
        rule,
        tol=gap,
        warm=_warm(warm, source, name, problem.bias.kind),
        watchers=watchers,
        measures=measures,
        record_every=record_every,
        form=form,
    )
    return replace(outcome, classes=classes)


def strength(C: float | None, lam: float | None, weight: float) -> tuple[float, Form]:
    """Lam, and the form of the objective that the caller thinks in."""
    if C is not None and lam is not None:
        raise InputError(f"both C={C!r} and lam={lam!r} are given; give one (C = 1/(lam N), N the sum of the weights)")
    if lam is not None:
        return _positive("lam", lam), "mean"
    return 1.0 / (_positive("C", 1.0 if C is None else C) * weight), "J"


def two_labels(y: Any) -> tuple[Any, Any]:
    """Labels as -1 and +1, and the two labels they stand for."""
    labels = np.asarray(y)
    if labels.ndim != 1 or labels.size == 0:
        return labels, None  # in_memory has the words for this
    if labels.dtype.kind == "f" and not np.isfinite(labels).all():
        return labels, None
    classes = np.unique(labels)
    if classes.size == 1:
        raise InputError(f"y holds one class only ({classes[0]}); a classifier needs rows of two")
    if classes.size > 2:
        raise InputError(
            f"y holds {classes.size} classes ({', '.join(map(str, classes[:4]))}{', ...' * (classes.size > 4)}) where "
            "two are needed; use dualgap.LinearSVC, which trains one against the rest, or a regression loss"
        )
    return np.where(labels == classes[1], 1.0, -1.0), classes


def _positive(name: str, value: Any, *, zero: bool = False) -> float:
    try:
        number = float(value)
    except (TypeError, ValueError):
        raise InputError(f"{name}={value!r} must be a number") from None
    if not math.isfinite(number) or number < 0 or (number == 0 and not zero):
        raise InputError(f"{name}={value!r} must be a {'non-negative' if zero else 'positive'} finite number")
    return number


def _warm(warm: Outcome | Run | Point | None, source: InMemory, solver: str, bias: str) -> Run | Point | None:
    if warm is None:
        return None
    if isinstance(warm, Outcome):
        warm = warm.state
    if isinstance(warm, Run) and (warm.name, warm.bias) != (solver, bias):  # begin at the point, but do not go on
        warm = Point(warm.w, warm.b, warm.beta)
    d, n = warm.w.shape[0], source.n if warm.beta is None else warm.beta.shape[0]
    if (d, n) != (source.d, source.n):
        raise InputError(f"warm start of {n} rows and {d} columns for data of {source.n} rows and {source.d} columns")
    return warm
