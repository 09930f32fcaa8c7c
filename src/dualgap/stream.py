"""Online learning, the basis of ``partial_fit``: every row is presented once, in the order in which it comes.

Only solvers of the primal problem can do this, and only with lam: ``lam/2 |w|^2 + mean loss`` does not depend
on the number of rows still to come, C does. After several chunks the model equals that of a single fit over
the same rows with ``order="given"`` after as many visits. Rows are not kept, so there are no duals and no
certificate.

That makes it a training loop of its own, beside ``training/loop.py``: each chunk is a problem, and one call
of the solver's ``step`` presents all its rows. There are no records, no stopping rules and no best point so
far; the model is the solver's present point.
"""

from __future__ import annotations

from typing import Any

import numpy as np

from .core.bias import Bias, make_bias
from .core.losses import Loss, make_loss
from .core.problem import Point, Problem
from .data.labels import Labels
from .data.sources import view
from .runtime.arrays import Floats
from .runtime.checks import number
from .runtime.errors import InputError
from .solvers import SOLVERS, check_regulariser, check_seed, make_solver
from .solvers.primal.row_by_row import RowByRow
from .solvers.primal.state import State


class Stream:
    """A linear model trained online, chunk by chunk.

    Parameters
    ----------
    lam : float
        The strength of regularisation; 0 for solvers that need none (``sgd``, ``perceptron``).
    loss, solver, bias, rho, seed, **options
        As in ``fit``; the solver must be one of those that ``Stream.solvers()`` lists. A learning rate that
        the solver chooses itself is chosen on the first chunk.
    classes : pair of labels
        For a classification loss, the labels behind -1 and +1, if not every chunk has rows of both.
    warm : Point
        The model to begin with; its duals are not used.
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
        warm: Point | None = None,
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
        check_regulariser(solver, self.lam)
        made = make_solver(solver, options, seed=seed, loss=self.loss, bias=self.bias.kind)
        assert isinstance(made, RowByRow)
        self.solver: RowByRow[Any, Any] = made.for_stream()
        self.classes = classes
        self.warm = warm
        self.d = 0
        self.state: State[Any, Any] | None = None

    @staticmethod
    def solvers() -> list[str]:
        """The solvers that can learn from a stream."""
        return [name for name, solver in SOLVERS.items() if solver.capabilities.streams]

    def learn(self, X: Any, y: Any, sample_weight: Any = None) -> Stream:
        """Present these rows, in this order."""
        if self.loss.task == "classification":
            y = self._signs(y)
        if sample_weight is not None and np.size(sample_weight) and not np.any(sample_weight):
            view(X, y)  # refuses bad rows; good ones of weight 0 are absent
            return self
        source = view(X, y, sample_weight)
        # a weight multiplies the loss of its row; N counts rows, as the sum of all weights is not known
        problem = Problem(source, self.loss, self.lam, self.bias, total_weight=float(source.epoch_size))
        if self.state is None:
            state = self.solver.start(problem, self.warm)
        elif self.d == source.d:
            state = self.state.before(source.batch)
        else:
            raise InputError(
                f"X has {source.d} columns and the rows before had {self.d}; they must be equally many"
            )
        self.d = source.d
        self.state, _ = self.solver.step(problem, state, problem.epoch_size, None)
        point = self.solver.point(problem, self.state)
        self.coef: Floats = point.w
        self.intercept = float(point.b)
        return self

    @property
    def visits(self) -> int:
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
