"""States of solvers and runs, compared."""

from __future__ import annotations

from typing import Any

import numpy as np

from dualgap.training.run import Seconds


def assert_same(left: Any, right: Any, where: str = "state") -> None:
    """Equal bit for bit, field by field, but for the seconds that a run took."""
    if isinstance(left, Seconds):
        return
    if hasattr(left, "_fields"):
        for name in left._fields:
            assert_same(getattr(left, name), getattr(right, name), f"{where}.{name}")
    elif isinstance(left, dict):
        assert left.keys() == right.keys(), where
        for name in left:
            assert_same(left[name], right[name], f"{where}.{name}")
    elif isinstance(left, np.ndarray):
        assert left.tobytes() == right.tobytes(), where
    else:
        assert left == right or (left != left and right != right), f"{where}: {left!r} != {right!r}"
