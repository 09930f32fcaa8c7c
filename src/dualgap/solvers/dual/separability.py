"""Whether two classes can be separated by a hyperplane, decided by a linear program with a proof either way.

    maximise  sum_i a_i   subject to  sum_i a_i y_i x_i = 0,  sum_i a_i y_i = 0 (with a bias),  0 <= a <= 1

Its optimum is 0 iff some (w, b) has y_i (<w, x_i> + b) > 0 for all i, and the multipliers of the constraints
are such a (w, b): a proof that the margins show. Otherwise a is a *ray*: v = a y can be added to the dual
variables of the hard margin as often as one likes, and no hyperplane has a margin above what
``working_set.proven_margin`` computes of it. Both are computed anew from the rows; what the solver of the
linear program (HiGHS, in SciPy) says is not believed.
"""

from __future__ import annotations

import math
from typing import Any, NamedTuple

import numpy as np

from ...core.problem import Problem
from ...data.rows import CSR, as_matrix
from ...runtime.arrays import Floats
from ...runtime.sums import norm
from .working_set import MARGIN_LIMIT, State, model_of, proven_margin, restore_all, set_gradients

DECIDE_EPOCHS = 10  # epochs of a hard margin after which a linear program decides whether there is one
MAX_ENTRIES = 5_000_000  # of the data; the linear program takes seconds from some 500,000 on
MAX_STEPS = 20_000  # of the simplex method


def seems_inseparable(problem: Problem, state: State) -> bool:
    """Whether v seems to prove that the classes cannot be separated; `restore_all` then makes sure."""
    if not problem.loss.hard:
        return False
    v, w, _ = state.variables
    mass = float(np.abs(v).sum()) * math.sqrt(problem.max_squared_norm)
    return norm(w) < 0.5 * MARGIN_LIMIT * problem.scale * mass


def due_in(problem: Problem, state: State) -> float:
    """Visits before `decided` is due; infinite where it never is."""
    if not problem.loss.hard or state.cursor.decided:
        return math.inf
    return max(0, DECIDE_EPOCHS * problem.epoch_size - state.counts.visits)


def decided(problem: Problem, state: State) -> State:
    """The state once it is known whether the classes are separable, if a linear program can tell.

    It is not asked where v proves that they are not or w and b separate them.
    """
    state = restore_all(problem, state.at(decided=True))
    v, _, gradient = state.variables
    source = problem.source
    here = source.weight > 0
    margins = source.y * (source.y - gradient + state.cursor.bias)
    if state.cursor.proven < MARGIN_LIMIT or float(margins[here].min()) > 0.0:
        return state
    ray, hyperplane = solve_program(problem)
    if ray is not None and proven_margin(problem, *model_of(problem, ray)) < MARGIN_LIMIT:
        beta = np.divide(ray, source.weight, out=np.zeros(source.n), where=here)
        v[:] = source.weight * problem.bias.feasible(beta, source.weight)
        return restore_all(problem, state)
    if hyperplane is not None:
        w = hyperplane[:-1]
        scores = np.empty(source.n)
        set_gradients(source.batch.rows, np.zeros(source.n), 0.0, -w, scores)
        least = float((source.y * (scores + hyperplane[-1]))[here].min())
        if least > 0.0:
            return state._replace(hyperplane=hyperplane * (1.0 + 1e-10) / least)
    return state


class Separability(NamedTuple):
    """What a linear program found: a ray, a hyperplane (w, then b), or neither; yet to be checked."""

    ray: Floats | None = None
    hyperplane: Floats | None = None


def solve_program(problem: Problem) -> Separability:
    """Look for a ray or a separating hyperplane; neither is found where the data are too large."""
    source = problem.source
    if source.nnz > MAX_ENTRIES:
        return Separability()
    from scipy.optimize import linprog  # a fifth of a second, which hardly any run needs

    here = np.flatnonzero(source.weight)
    signed = _signed_rows(problem, here)
    found = linprog(
        -np.ones(here.size),
        A_eq=signed.T.tocsc(),
        b_eq=np.zeros(signed.shape[1]),
        bounds=(0.0, 1.0),
        method="highs",
        options={"maxiter": MAX_STEPS},
    )
    if found.status != 0 or found.x is None:
        return Separability()
    if found.x.sum() > 0.0:
        ray = np.zeros(source.n)
        ray[here] = np.maximum(found.x, 0.0) * source.y[here]
        return Separability(ray=ray)
    w = np.zeros(source.d + 1)
    w[: signed.shape[1]] = -found.eqlin.marginals
    return Separability(hyperplane=w)


def _signed_rows(problem: Problem, here: Any) -> Any:
    """``y_i x_i`` for some rows, with ``y_i`` as one more column where there is a bias."""
    import scipy.sparse as sp

    source = problem.source
    rows, y = source.batch.rows, source.y[here]
    if isinstance(rows, CSR):
        first, last = int(rows.starts[0]), int(rows.starts[-1])
        entries = rows.values[first:last].astype(np.float64), rows.columns[first:last], rows.starts - first
        matrix = sp.csr_array(entries, shape=(source.n, source.d))
    else:
        matrix = sp.csr_array(np.asarray(as_matrix(rows, source.d), dtype=np.float64))
    signed = sp.diags_array(y) @ matrix[here]
    return sp.hstack([signed, sp.csr_array(y[:, None])]).tocsr() if problem.bias.free else signed.tocsr()
