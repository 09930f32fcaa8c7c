"""What ``solver="auto"`` stands for: where there is a choice, a solver that decides by what the run shows."""

from __future__ import annotations

import math
from collections.abc import Iterable

from ..core.losses import JOINT
from ..core.problem import AnyProblem, Problem
from ..data.rows import Dense
from . import make_solver
from .forecasts import FIRST_GAP, Forecast
from .switching import Switching

SECOND_ORDER = ("newton", "interior-point")
SURE = 0.8  # how much cheaper a method of second order must be expected to be, to begin with it
WORTH_IT = 2.0  # the same for interior points on few rows, where coordinates may take 2 epochs or 2,000
FIRST_TOL = 1e-3  # to which a run is forecast before there is anything to see


def choose(problem: AnyProblem, options: Iterable[str] = ()) -> tuple[str, str]:
    """The solver that ``auto`` stands for, and why; "auto" itself where the run is to decide."""
    if not problem.source.in_memory:
        return _from_disk(problem, options)
    if problem.loss.task == JOINT:
        return _joint(problem, options)
    if problem.loss.hard:
        return "decomposition", "a hard margin needs it"
    if problem.lam == 0.0 or set(options):
        return "dcd", "it has the options given"
    return "auto", ""


def _from_disk(problem: AnyProblem, options: Iterable[str]) -> tuple[str, str]:
    """The solver for rows beyond memory. Measured on 400,000 dense rows of 768 columns, a quarter of them in
    memory: to a gap of 1e-3 second order takes 5 passes, coordinates are at 0.1 after 3, which take longer.
    """
    if math.isfinite(problem.loss.smoothness) and not set(options):
        from .out_of_core.streamed_newton import StreamedNewton

        if StreamedNewton().suits(problem):
            return "streamed-newton", "the rows do not fit into memory, and some of them tell the curvature"
    if problem.loss.task == JOINT:
        return "joint-block", "the rows do not fit into memory"
    return "cached-loops", "the rows do not fit into memory"


def _joint(problem: AnyProblem, options: Iterable[str]) -> tuple[str, str]:
    """The solver for K classes at once. Measured: on dense rows of 64 to 780 columns second order takes a
    third of the time at C = 1 and a tenth at 100 (digits), on sparse ones (news20) five to eight times as
    long.
    """
    source = problem.source
    dense = source.in_memory and isinstance(source.batch.rows, Dense)
    if dense and math.isfinite(problem.loss.smoothness) and not set(options):
        return "joint-newton", "dense rows are multiplied as matrices"
    return "joint-dual", "it moves the duals of all classes of a row at once"


def switching(problem: Problem, seed: int, second_first: bool = False) -> tuple[Switching, str]:
    """The solver that decides on the way, and why it begins as it does.

    ``second_first``: a run that this one goes on from has needed the method of second order.
    """
    forecast = Forecast.of(problem)
    loss, bias = problem.loss, problem.bias.kind
    first = make_solver("dcd", {}, seed=seed, loss=loss, bias=bias)
    second = make_solver(forecast.second, {}, seed=seed, loss=loss, bias=bias)
    source = problem.source
    n, d = source.n, source.d
    shape = (
        f"{n:,} rows of {d:,} columns, {100.0 * source.nnz / max(1, n * d):.3g}% stored, C = {problem.C:.3g}"
    )
    if second_first:
        return Switching(first, second, 1), f"the run before ended with a method of second order, for {shape}"
    coordinates = forecast.prior("dcd", FIRST_GAP, FIRST_TOL)
    expected = forecast.prior(second.name, FIRST_GAP, FIRST_TOL)
    sooner = expected <= SURE * coordinates if forecast.smooth else forecast.crawls
    reliable = forecast.wide and second.name == "interior-point" and expected <= WORTH_IT * coordinates
    if sooner or reliable:
        return Switching(first, second, 1), f"few passes of second order suit {shape}"
    return Switching(first, second, 0), f"many cheap steps suit {shape}"
