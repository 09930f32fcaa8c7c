"""What ``solver="auto"`` stands for: a rule on rows, columns, density, loss and C, read off measurements."""

from __future__ import annotations

from collections.abc import Iterable
from math import isfinite

from ..core.problem import Problem
from ..runtime.options import options_of
from .second_order.newton import Newton

# Where Newton's method is the faster one, read off the sets of benchmarks/ that are there to tune on: from a
# typical curvature of the loss over that of the regulariser on; with kinks also only where rows are many and
# overlap, as coordinates then get in each other's way.
_CURVED, _CURVED_WITH_KINKS = 200.0, 2000.0
_TALL, _VERY_TALL, _DENSE = 20.0, 200.0, 0.05  # rows a column; the part of all entries that is stored
_NARROW, _SMALL = 300, 100_000  # columns and entries: a step takes a millisecond, and coordinates may crawl


def choose(problem: Problem, options: Iterable[str] = ()) -> tuple[str, str]:
    """The solver that ``auto`` stands for, and why; only solvers with all the options come into question."""
    source, loss = problem.source, problem.loss
    if not source.in_memory:
        return "cached-loops", "the rows do not fit into memory"
    if loss.hard:
        return "decomposition", "a hard margin needs it"
    if problem.lam == 0.0 or not set(options) <= {option.name for option in options_of(Newton)}:
        return "dcd", "it has the options given"
    n, d, smooth = source.n, source.d, isfinite(loss.smoothness)
    curved = problem.mean_square / problem.lam / d * (loss.smoothness if smooth else 1.0)
    overlap = n >= _VERY_TALL * d or (n >= _TALL * d and source.nnz >= _DENSE * n * d)
    small = d <= _NARROW and source.nnz <= _SMALL
    shape = f"{n:,} rows of {d:,} columns, {100.0 * source.nnz / (n * d):.3g}% stored, C = {problem.C:.3g}"
    if (
        curved >= (_CURVED if smooth or small else _CURVED_WITH_KINKS)
        and n >= d
        and (smooth or small or overlap)
    ):
        return "newton", f"few passes of second order suit {shape}"
    return "dcd", f"many cheap steps suit {shape}"
