"""The floor that the first fit is measured against: a bare dual coordinate descent, and nothing else.

    minimise  1/2 |w|^2 + C sum_i max(0, 1 - y_i <w, x_i>)

on CSR rows, with what makes it fast (random permutations, shrinking, prefetching) and what makes it honest
(both objectives computed anew at the end), in six kernels: the least that such a program asks Numba to
compile. No bias, weights, other losses, other layouts, checks or bounds on rounding errors.
"""

from __future__ import annotations

from typing import Any

import numpy as np
from llvmlite import ir
from numba import njit, types
from numba.core import cgutils
from numba.extending import intrinsic

kernel = njit(cache=True, nogil=True, error_model="numpy")


@intrinsic
def prefetch(typing_context: Any, array: Any, index: Any) -> Any:
    """Ask the processor for an element of an array."""

    def generate(context: Any, builder: Any, signature: Any, arguments: Any) -> Any:
        native = context.make_array(signature.args[0])(context, builder, arguments[0])
        byte, word = ir.IntType(8).as_pointer(), ir.IntType(32)
        address = builder.bitcast(builder.gep(native.data, [arguments[1]]), byte)
        function_type = ir.FunctionType(ir.VoidType(), [byte, word, word, word])
        function = cgutils.get_or_insert_function(builder.module, function_type, "llvm.prefetch.p0")
        builder.call(function, [address, *(ir.Constant(word, value) for value in (0, 3, 1))])
        return context.get_dummy_value()

    return types.void(array, index), generate


@kernel
def dot(values, columns, starts, i, w):
    """``<w, x_i>``."""
    total = 0.0
    for p in range(starts[i], starts[i + 1]):
        total += w[columns[p]] * values[p]
    return total


@kernel
def add(values, columns, starts, i, scale, w):
    """``w += scale x_i``."""
    for p in range(starts[i], starts[i + 1]):
        w[columns[p]] += scale * values[p]


@kernel
def squares(values, starts):
    """``|x_i|^2``."""
    found = np.empty(starts.shape[0] - 1)
    for i in range(found.shape[0]):
        total = 0.0
        for p in range(starts[i], starts[i + 1]):
            total += values[p] * values[p]
        found[i] = total
    return found


@kernel
def permute(order, count, rng):
    """Shuffle the first entries of ``order``; ``rng`` holds the state of the generator (xorshift64)."""
    word = rng[0]
    for last in range(count - 1, 0, -1):
        word ^= word << np.uint64(13)
        word ^= word >> np.uint64(7)
        word ^= word << np.uint64(17)
        other = np.int64((word >> np.uint64(32)) * np.uint64(last + 1) >> np.uint64(32))
        order[last], order[other] = order[other], order[last]
    rng[0] = word


@kernel
def sweep(values, columns, starts, y, squared, C, w, alpha, order, active, rng, epochs, tol):
    """Algorithm 3 of Hsieh et al. (ICML 2008): epochs over the active rows until their projected gradients
    range within ``tol``; all rows are active again then, and it ends when that held for all of them.
    """
    n = y.shape[0]
    upper, lower = np.inf, -np.inf
    for _ in range(epochs):
        permute(order, active, rng)
        highest, lowest = -np.inf, np.inf
        k = 0
        while k < active:
            if k + 8 < active:
                ahead = order[k + 8]
                prefetch(alpha, ahead)
                prefetch(squared, ahead)
                prefetch(columns, starts[ahead])
                prefetch(values, starts[ahead])
            i = order[k]
            gradient = y[i] * dot(values, columns, starts, i, w) - 1.0
            projected = gradient
            if alpha[i] == 0.0:
                if gradient > upper:
                    active -= 1
                    order[k], order[active] = order[active], order[k]
                    continue
                projected = gradient if gradient < 0.0 else 0.0
            elif alpha[i] == C:
                if gradient < lower:
                    active -= 1
                    order[k], order[active] = order[active], order[k]
                    continue
                projected = gradient if gradient > 0.0 else 0.0
            highest = projected if projected > highest else highest
            lowest = projected if projected < lowest else lowest
            if projected != 0.0 and squared[i] > 0.0:
                before = alpha[i]
                step = before - gradient / squared[i]
                alpha[i] = 0.0 if step < 0.0 else C if step > C else step
                add(values, columns, starts, i, (alpha[i] - before) * y[i], w)
            k += 1
        if highest - lowest <= tol:
            if active == n:
                return active, True
            active = n
            upper, lower = np.inf, -np.inf
        else:
            upper = highest if highest > 0.0 else np.inf
            lower = lowest if lowest < 0.0 else -np.inf
    return active, False


@kernel
def certificate(values, columns, starts, y, C, w, alpha):
    """The primal and the dual value, from the rows and w(alpha) computed anew."""
    moment = np.zeros(w.shape[0])
    loss = total = 0.0
    for i in range(y.shape[0]):
        short = 1.0 - y[i] * dot(values, columns, starts, i, w)
        loss += short if short > 0.0 else 0.0
        if alpha[i] != 0.0:
            total += alpha[i]
            add(values, columns, starts, i, alpha[i] * y[i], moment)
    own = length = 0.0
    for j in range(w.shape[0]):
        own += w[j] * w[j]
        length += moment[j] * moment[j]
    return 0.5 * own + C * loss, total - 0.5 * length


def fit(X: Any, y: Any, C: float = 1.0, gap: float = 1e-3) -> tuple[Any, float]:
    """w, and its relative gap, which is at most ``gap`` unless 1,000 epochs were not enough."""
    n, d = X.shape
    rows = X.data, X.indices.view(np.uint32), X.indptr.astype(np.int64)
    squared = squares(rows[0], rows[2])
    w, alpha, order = np.zeros(d), np.zeros(n), np.arange(n)
    rng = np.array([88172645463325252], dtype=np.uint64)
    active, tol, found = n, 1.0, np.inf
    for _ in range(100):
        active, done = sweep(*rows, y, squared, C, w, alpha, order, active, rng, 10, tol)
        primal, dual = certificate(*rows, y, C, w, alpha)
        found = (primal - dual) / dual
        if found <= gap:
            break
        tol *= 0.1 if done else 1.0
    return w, found
