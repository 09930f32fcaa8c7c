"""Learning from rows that come and go: what ``partial_fit`` stands on.

A stream presents every row once, in the order in which it comes, to one of the solvers of the primal problem.
In lam-form only: ``lam/2 |w|^2 + mean loss`` does not depend on how many rows will have come in the end. The
model after several chunks is the one that a single fit over the same rows, with ``order="given"``, has after
as many steps. Nothing is kept of a row, so there are no duals and no certificate.
"""

from __future__ import annotations

from dataclasses import replace
from functools import cached_property
from typing import Any

import numpy as np

from .core.bias import Bias, make_bias
from .core.losses import Loss, make_loss
from .core.problem import Problem
from .data.labels import Labels
from .data.sources import InMemory, in_memory
from .runtime.arrays import Floats
from .runtime.checks import number
from .runtime.errors import InputError
from .solvers import SOLVERS, check_regulariser, check_seed, make_solver
from .solvers.primal.options import rebound


class _Chunk(InMemory):
    """Rows of a stream: a weight multiplies a row's loss, and nothing is divided by the sum of the weights so
    far.
    """

    @cached_property
    def total_weight(self) -> float:
        """As if all weights were 1."""
        return float(self.epoch_size)


class Stream:
    """A model that learns row by row.

    Parameters
    ----------
    lam : float
        The strength of regularisation; 0 for solvers that need none (``sgd``, ``perceptron``).
    loss, solver, bias, rho, seed, **options
        As in ``fit``; the solver must be one of those that ``Stream.solvers()`` lists. Where a solver would
        choose a learning rate by itself it does so on the first chunk.
    classes : pair of labels
        For a classification loss, the labels behind -1 and +1, if not every chunk has rows of both.
    """

    def __init__(
        self,
        lam: float,
        *,
        loss: str | Loss = "hinge",
        solver: str = "svmsgd",
        bias: str | Bias = "none",
        rho: float = 1.0,
        classes: Any = None,
        seed: int = 0,
        **options: Any,
    ) -> None:
        self.loss, self.lam, self.bias = make_loss(loss), number("lam", lam, zero=True), make_bias(bias, rho)
        seed = check_seed(seed)
        if classes is not None and not (len(classes) == 2 and classes[0] != classes[1]):
            raise InputError(f"classes={classes!r} must be two different labels, the one behind -1 first")
        if solver not in self.solvers():
            raise InputError(
                f"solver {solver!r} cannot learn from a stream; these can: {', '.join(self.solvers())}"
            )
        for key, value in (("order", "given"), ("duals", False)):
            if options.get(key, value) != value:
                raise InputError(
                    f"{key}={options[key]!r} is nothing for a stream, which has {key}={value!r}; leave it out"
                )
        options = {**options, "order": "given", "duals": False}
        check_regulariser(solver, self.lam)
        made: Any = make_solver(solver, options, seed=seed, loss=self.loss, bias=self.bias.kind)
        # how long an epoch is, a stream does not know
        self.solver: Any = replace(made, tstart=1) if getattr(made, "tstart", 1) == 0 else made
        if getattr(self.solver, "average", False) and self.solver.weights == "full":
            raise InputError(
                "weights='full' depends on the longest of all rows, which a stream does not know; "
                "use weights='simple'"
            )
        if getattr(made, "voted", False):
            raise InputError(
                "voted needs the training rows again, and a stream keeps none; use averaged=True"
            )
        if isinstance(getattr(made, "preconditioner", None), str) and made.preconditioner != "identity":
            raise InputError(
                f"preconditioner={made.preconditioner!r} depends on all rows; give a diagonal or a matrix"
            )
        self.classes = classes
        self.d = 0
        self.state: Any = None

    @staticmethod
    def solvers() -> list[str]:
        """The solvers that can learn from a stream."""
        return [name for name, solver in SOLVERS.items() if getattr(solver, "streams", False)]

    def learn(self, X: Any, y: Any, sample_weight: Any = None) -> Stream:
        """Present these rows, in this order."""
        if self.loss.task == "classification":
            y = self._signs(y)
        if sample_weight is not None and np.size(sample_weight) and not np.any(sample_weight):
            in_memory(X, y)  # bad rows are bad rows; good ones without a weight are no rows
            return self
        source = in_memory(X, y, sample_weight)
        chunk = _Chunk(source.rows, source.y, source.weight, source.squared_norms, source.d)
        problem = Problem(chunk, self.loss, self.lam, self.bias)
        if self.state is None:
            self.state = self.solver.start(problem, None)
        elif self.d != source.d:
            raise InputError(
                f"X has {source.d} columns and the rows before had {self.d}; they must be equally many"
            )
        self.d = source.d
        state = rebound(problem, self.state)
        self.state = self.solver.step(problem, state, problem.epoch_size, None)
        point = self.solver.point(problem, self.state)
        self.coef: Floats = point.w
        self.intercept = float(point.b)
        return self

    @property
    def steps(self) -> int:
        """How many rows have been learned from."""
        return 0 if self.state is None else int(self.state.counts.visits)

    def _signs(self, y: Any) -> Any:
        labels = np.asarray(y)
        if self.classes is None:
            if (
                labels.ndim != 1
                or labels.size == 0
                or (labels.dtype.kind == "f" and not np.isfinite(labels).all())
            ):
                return labels  # `in_memory` says what is wrong with it
            self.classes = Labels.binary(Labels.of(labels).classes, None).classes
        classes = Labels(self.classes)
        row = classes.first_unknown(labels)
        if row is not None:
            raise InputError(
                f"y[{row}] is {labels[row]}; the classes are {self.classes[0]} and {self.classes[1]}"
            )
        return classes.signs(labels)
