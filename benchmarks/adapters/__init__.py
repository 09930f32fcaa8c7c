"""How each library is called: one module a library, run by ``benchmarks.worker`` in that library's own
environment.

An adapter is a module with these functions (and may not import its library before one of them is called):

``version()``
    What is installed.
``prepare(X, y)``
    Whatever the library wants to be given instead of the arrays. Its time counts; ``PREPARE_ONCE = True``
    lets the worker do it once for a data set and charge the same seconds to every run.
``train(data, loss, C, arm, value, threads, limit)``
    Train without a bias. An arm is one way to use the library, the value its tolerance or number of
    iterations.
``fitted(model)``
    A ``Fitted``, taken from the trained model after the clock has stopped.
"""

from __future__ import annotations

from typing import Any, NamedTuple


class Fitted(NamedTuple):
    """A linear model, whoever made it."""

    w: Any
    b: float = 0.0
    passes: float | None = None  # over the data, as the library counts them
    trace: tuple[dict[str, float], ...] = ()  # certified records, of our solvers only
    converged: bool | None = None  # None: the library does not say
    note: str = ""
