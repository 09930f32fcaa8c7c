"""Which dual iterate a solver hands over: the last one, the mean of a suffix of the run, or one of it at
random.

Shalev-Shwartz and Zhang (JMLR 2013) average over the steps T0..T, or draw one of them. A solver names T0, or
leaves it open: the end of a run is not known beforehand, so windows then begin at P, 2P, 4P... steps (P about
an epoch), and the last window but one is reported. It covers the last half to three quarters of the run at
any moment.

Only duals are kept. w(beta) is linear in beta, so the mean of the w's is w of the mean. A mean takes no work
between steps either: a solver adds up the duals of a row only when it changes it, and tells the sum of all
rows when asked. Memory: four numbers a row, none where the last iterate is asked for.
"""

from __future__ import annotations

from typing import NamedTuple

import numpy as np

from ...core.problem import Problem
from ...runtime.arrays import Floats, Words
from ...runtime.errors import InputError
from ...runtime.random import uniform
from ...training.states import Position, state_class

LAST, AVERAGE, RANDOM = ITERATES = ("last", "average", "random")
T0_HELP = "first step of the average or the random choice (0: about half of the run, whenever it ends)"


@state_class
class Window(NamedTuple):
    """Some steps of a run, from ``began`` on."""

    began: int
    kept: Floats  # average: the total at ``began``; random: the dual that is drawn so far
    due: int  # random: the step whose dual replaces it


@state_class
class Suffix(NamedTuple):
    """The window that is reported, and the one that will be next."""

    now: Window
    next: Window
    mark: Position  # the step at which the next window takes over; -1: never


def check_iterate(iterate: str, T0: int) -> None:
    """Refuse a T0 where there is no window to begin."""
    if T0 > 0 and iterate == LAST:
        raise InputError(
            f"T0={T0!r} goes with iterate=average or iterate=random; set one of them or leave T0 out"
        )


def check_T0(T0: int, steps: float, what: str = "steps") -> None:
    """A window must begin before the run ends; T0 = T leaves the last iterate alone in it."""
    if steps < T0:
        raise InputError(
            f"T0={T0} is beyond the run of {steps:.0f} {what}; lower T0 or raise max_visits or max_epochs"
        )


def begin(iterate: str, T0: int, n: int, period: int) -> Suffix:
    """No step is made yet."""
    size = 0 if iterate == LAST else n
    window = Window(T0, np.zeros(size), 0)
    return Suffix(window, window, -1 if iterate == LAST else (T0 or period))


def next_event(iterate: str, suffix: Suffix, now: int) -> float:
    """The first step after ``now`` at which ``turn`` wants to be called."""
    events = [suffix.mark]
    if iterate == RANDOM:
        events += [suffix.now.due, suffix.next.due]
    return min((event for event in events if event > now), default=np.inf)


def turn(iterate: str, T0: int, suffix: Suffix, now: int, beta: Floats, total: Floats, rng: Words) -> Suffix:
    """Begin windows and draw duals, as is due at this step; ``total`` is the sum of the duals of the steps
    before.
    """
    windows = [suffix.now, suffix.next]
    if iterate == RANDOM:
        windows = [_draw(window, beta, now, rng) if window.due == now > 0 else window for window in windows]
    if now == suffix.mark:
        fresh = (
            Window(now, total.copy(), 0)
            if iterate == AVERAGE
            else _draw(Window(now, beta, 0), beta, now, rng)
        )
        if T0:
            return suffix._replace(now=fresh, next=fresh._replace(due=0), mark=-1)
        return suffix._replace(now=windows[1], next=fresh, mark=2 * now)
    return suffix._replace(now=windows[0], next=windows[1])


def offered(iterate: str, suffix: Suffix, now: int, beta: Floats, total: Floats) -> Floats | None:
    """The dual of the window; None where it is the last one. The mean may leave a box by a rounding error."""
    if iterate == LAST or now <= suffix.now.began:
        return None
    if iterate == RANDOM:
        return suffix.now.kept if suffix.now.due else None
    mean: Floats = (total + beta - suffix.now.kept) / (now + 1 - suffix.now.began)
    return mean


def clipped(problem: Problem, beta: Floats) -> Floats:
    """The nearest feasible dual point."""
    source, box = problem.source, problem.loss.dual_bounds
    if problem.loss.task == "regression":
        low, high = box(0.0)  # of a regression loss it does not depend on the target
        return np.clip(beta, low, high)
    (low_down, high_down), (low_up, high_up) = box(-1.0), box(1.0)
    up = source.y.real > 0.0
    return np.clip(beta, np.where(up, low_up, low_down), np.where(up, high_up, high_down))


def _draw(window: Window, beta: Floats, now: int, rng: Words) -> Window:
    """Keep this dual; when the next is kept follows from one random number.

    Keeping the k-th of a window with probability 1/k makes each equally likely, and the next is beyond j with
    probability k/j.
    """
    count = now - window.began + 1
    wait = count / (1.0 - uniform(rng))
    return window._replace(kept=beta.copy(), due=window.began + int(min(wait, 2.0**60)))
