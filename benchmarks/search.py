"""Choosing a peer's setting in hindsight: the loosest value of its grid that reaches a target."""

from __future__ import annotations

from collections.abc import Callable, Sequence

from .roster import Grid


def search(grid: Grid, attempt: Callable[[float], float | None], targets: Sequence[float]) -> None:
    """Try values until the loosest sufficient one is known for every target that the grid reaches.

    ``attempt`` trains at a value and says how far above the optimum it ended, or None if it ended in nothing
    (no time left, say): nothing tighter is then tried. A coarse sweep comes first, then bisection between
    neighbours of it. The sweep ends, too, where three values in a row end at the same point: a limit of the
    library's own is in the way.
    """
    seen: dict[int, float | None] = {}

    def reached(index: int, target: float) -> bool:
        if index not in seen:
            seen[index] = attempt(grid.values[index])
        found = seen[index]
        return found is not None and found <= target

    for index in range(0, len(grid.values), grid.stride):
        if reached(index, min(targets)) or seen[index] is None:
            break
        if len(seen) >= 3 and len(set(list(seen.values())[-3:])) == 1:
            break
    for target in sorted(targets, reverse=True):
        hits = [index for index in seen if reached(index, target)]
        if not hits:
            break
        high = min(hits)
        low = max((index for index in seen if index < high), default=-1)
        while high - low > 1:
            middle = (low + high) // 2
            if reached(middle, target):
                high = middle
            else:
                low = middle
