"""Random stopping (Zhang, ICML 2004, sections 5.3 and 6): one of the iterates so far, each as likely as any.

The bounds of Algorithm 5.1 hold for the mean of the iterates, and for the expected objective of an iterate
drawn with the weights of the mean: at a constant learning rate all weights are the same. When the next
iterate is drawn follows from one random number, so nothing is done between draws (see
``dual/averaging.py``). These numbers come from a generator of their own: the steps are those of a run without
random stopping.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator
from typing import Any, NamedTuple

import numpy as np

from ...runtime.arrays import Floats
from ...runtime.random import generator
from ...training.states import Extent, Generator, invariant, state_class
from ..dual import averaging
from ..dual.averaging import RANDOM, Suffix
from .descent import Cursor, Model, last_iterate
from .state import State

_NO_SUM = np.zeros(0)
DRAWS = 1  # the stream of the seed from which iterates are drawn; rows take stream 0


@state_class
class Drawn(NamedTuple):
    """A model that changes, and the iterate that is drawn from those so far."""

    now: Model
    suffix: Suffix
    rng: Generator


@invariant(State)
def _check(state: State[Any, Any], extent: Extent) -> Iterator[tuple[bool, str]]:
    if isinstance(state.model, Drawn):
        yield state.cursor.past == 0.0, "cursor.past is that of a mean, and there is none"


def begin(model: Model, T0: int, seed: int) -> Drawn:
    """No step is made yet."""
    return Drawn(model, averaging.begin(RANDOM, T0, model.v.size + 1, 1), generator(seed, DRAWS))


def visit(
    state: State[Drawn, Cursor],
    T0: int,
    stop: int,
    steps: Callable[[State[Model, Cursor], int], State[Model, Cursor]],
) -> State[Drawn, Cursor]:
    """Make ``steps`` up to visit number ``stop``, and draw iterates on the way."""
    _, suffix, rng = state.model
    inner = plain(state)
    while inner.counts.visits < stop:
        pause = int(min(stop, averaging.next_event(RANDOM, suffix, inner.counts.visits)))
        inner = steps(inner, pause)
        if pause == averaging.next_event(RANDOM, suffix, pause - 1):
            now = np.append(*last_iterate(inner))
            suffix = averaging.turn(RANDOM, T0, suffix, pause, now, _NO_SUM, rng)
    return State(Drawn(inner.model, suffix, rng), *inner[1:])


def plain(state: State[Drawn, Cursor]) -> State[Model, Cursor]:
    """The state of the steps alone."""
    return State(state.model.now, *state[1:])


def model_of(state: State[Drawn, Cursor]) -> tuple[Floats, float]:
    """The iterate that is drawn, or the last one before there is a choice."""
    w, b = last_iterate(plain(state))
    found = averaging.offered(RANDOM, state.model.suffix, state.counts.visits, np.append(w, b), _NO_SUM)
    return (w, b) if found is None else (found[:-1], float(found[-1]))
