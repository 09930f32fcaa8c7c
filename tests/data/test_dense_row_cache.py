"""The cache of dense rows: what it holds, in which type, and that runs do not depend on it."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import numpy as np
import pytest

import dualgap
from dualgap.data.chunks import OnDisk
from dualgap.data.dense_row_cache import DENSE, DenseRowCache
from dualgap.data.rows import Batch, as_matrix, dense_rows
from dualgap.data.sources import Part
from dualgap.solvers.out_of_core.capacity import capacity

D = 4


def part_of(first: int, count: int, dtype: Any, weight: Any = 1.0) -> Part:
    numbers = first + np.arange(count)
    matrix = (numbers[:, None] + np.arange(D) / 8.0).astype(dtype)
    batch = Batch(dense_rows(matrix), numbers + 0.25, np.full(count, weight), numbers + 0.5)
    return Part(batch, slice(first, first + count))


def cache_of(slots: int, dtype: Any) -> DenseRowCache:
    order = np.arange(slots, dtype=np.uint32)
    kind = DENSE[np.dtype(dtype).itemsize]
    return DenseRowCache(np.zeros(slots, dtype=np.int64), order, np.ones(slots), kind, n=100, d=D)


def held(cache: DenseRowCache, size: int) -> dict[int, tuple[Any, ...]]:
    matrix = as_matrix(cache.rows, D)
    return {
        int(cache.ids[s]): (matrix[s].tolist(), float(cache.y[s]), float(cache.squared_norms[s]))
        for s in cache.order[:size].tolist()
    }


@pytest.mark.parametrize("dtype", [np.float16, np.float32, np.float64])
def test_rows_enter_once_stay_in_their_type_and_leave(dtype: Any) -> None:
    cache = cache_of(5, dtype)
    assert cache.room == 5 * D
    part = part_of(10, 3, dtype)
    assert cache.fits(part, 0, 0) == 3
    size = cache.insert(part, 0, 3, 0)
    assert as_matrix(cache.rows, D).dtype == dtype
    assert not cache.rows.matrix.flags.writeable
    expected = {k: ([k + j / 8.0 for j in range(D)], k + 0.25, k + 0.5) for k in range(10, 13)}
    assert held(cache, size) == expected
    assert cache.insert(part, 0, 3, size) == size  # they are there already
    assert cache.insert(part_of(20, 2, dtype, 0.0), 0, 2, size) == size  # rows of weight 0 never enter
    more = part_of(30, 4, dtype)
    assert cache.fits(more, 0, size) == 2
    assert cache.fits(more, 3, size) == 1
    size = cache.insert(more, 0, 2, size)
    assert cache.fits(more, 2, size) == 0
    size = cache.evict(np.array([0, 3]), size)
    assert sorted(held(cache, size)) == [11, 12, 31]
    assert cache.present.nonzero()[0].tolist() == [11, 12, 31]
    size = cache.insert(more, 2, 4, size)
    assert sorted(held(cache, size)) == [11, 12, 31, 32, 33]
    assert all(cache.slack[cache.order[:size]] == 0.0)


def test_float16_takes_a_quarter_of_the_memory(tmp_path: Path) -> None:
    """So four times as many rows stay in the same budget, and the optimum is that of the same rows."""
    rng = np.random.default_rng(2)
    X, y = rng.normal(size=(400, 30)).astype(np.float16), rng.integers(0, 2, 400)
    rooms = {}
    for dtype in ("float16", "float64"):
        np.save(tmp_path / f"{dtype}.npy", X.astype(dtype))
        found = dualgap.fit(
            tmp_path / f"{dtype}.npy", y, solver="cached-loops", lockstep=True, memory_budget=45_000, tol=1e-4
        )
        assert found.converged
        assert isinstance(found.problem.source, OnDisk)
        rooms[dtype] = capacity(found.problem, 0.0), found.certificate.primal
    assert rooms["float16"][0] > 2 * rooms["float64"][0]
    assert rooms["float16"][1] == pytest.approx(rooms["float64"][1], rel=2e-4)
