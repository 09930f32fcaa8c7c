"""Certificates that cost no reading: a point is evaluated while a pass over the data goes on for training.

When a pass begins, w, b and the duals are copied; every chunk that is read is evaluated at that point, by the
problem's own code, and the sums are complete when the pass is. So a certificate lags one pass.
"""

from __future__ import annotations

from collections import deque
from collections.abc import Iterable

from ...core.evaluation import Evaluation, Point, StreamingEvaluation
from ...core.problem import Problem
from ...data.chunks import Piece
from ...data.sources import Part
from ...runtime.arrays import Floats
from .state import Frozen, State


class PassingEvaluation:
    """The evaluation that rides on the passes of a reader, and those that are complete.

    ``see`` is called on the reader's thread. It copies w and beta, which are those of the run and changed in
    place; ``b`` is told by the run.
    """

    def __init__(self, problem: Problem, state: State) -> None:
        self._problem = problem
        self._w: Floats = state.w
        self._beta: Floats = state.beta
        self.b = state.b
        self.frozen = Frozen.empty()
        self.complete: deque[tuple[Point, Evaluation]] = deque()
        self._under_way: StreamingEvaluation | None = None

    def see(self, piece: Piece) -> None:
        """Evaluate the rows of a chunk, at the point as it was when the pass began."""
        if self.frozen.pass_number == piece.number and piece.position < self.frozen.seen:
            return  # the run was resumed within this chunk
        if piece.first:
            self._freeze(self._copy(piece.number))
        self.frozen = self.frozen._replace(seen=piece.position + 1)
        if self._under_way is not None:
            self._under_way.add(piece.part)
            if piece.last:
                self.complete.append((self._under_way.point, self._under_way.evaluation()))
                self._under_way = None

    def resume(self, frozen: Frozen, seen: Iterable[Part], complete: bool) -> None:
        """Go on with an evaluation that was under way when its run ended; ``seen`` are the parts that it had
        seen, and ``complete`` says that these were all.
        """
        self._freeze(frozen)
        if complete:
            self._under_way = None
        if self._under_way is not None:
            for part in seen:
                self._under_way.add(part)

    def _copy(self, pass_number: int) -> Frozen:
        if pass_number == 0 and not self._beta.any():  # the zero point has been evaluated before
            return Frozen.empty(0)
        return Frozen(self._w.copy(), self.b, self._beta.copy(), pass_number)

    def _freeze(self, frozen: Frozen) -> None:
        self.frozen = frozen
        point = frozen.point
        self._under_way = None if point is None else self._problem.streaming_evaluation(point)
