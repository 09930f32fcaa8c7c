"""The generator: the published algorithm, the same numbers compiled and as plain Python, and no bias
anywhere.
"""

from __future__ import annotations

import inspect
import json
import os
import subprocess
import sys
from collections import Counter
from itertools import permutations

import numpy as np
import pytest
from scipy.stats import chisquare

from dualgap.runtime.random import below, generator, next_word, shuffle, uniform

BOUNDS = (1, 2, 3, 7, 10, 1000, 2**31 + 12345, 2**32 - 5, 2**32)


def reference(state: list[int]) -> int:
    """xoshiro128++ as its authors define it, in plain integers; moves the state on."""
    word = 2**32 - 1

    def rotated(value: int, by: int) -> int:
        return ((value << by) | (value >> (32 - by))) & word

    result = (rotated((state[0] + state[3]) & word, 7) + state[0]) & word
    shifted = (state[1] << 9) & word
    state[2] ^= state[0]
    state[3] ^= state[1]
    state[1] ^= state[2]
    state[0] ^= state[3]
    state[2] ^= shifted
    state[3] = rotated(state[3], 11)
    return result


def test_it_is_xoshiro128() -> None:
    for start in ([1, 2, 3, 4], [2**32 - 1] * 4, [0, 0, 0, 2**31], generator(7).tolist()):
        ours, theirs = np.array(start, dtype=np.uint64), list(start)
        for _ in range(300):
            assert int(next_word(ours)) == reference(theirs)
        assert ours.tolist() == theirs


def test_known_answers() -> None:
    """The first two by hand from the state 1, 2, 3, 4: rotl(1 + 4, 7) + 1; then the state is 7, 0, 1026,
    12288.
    """
    rng = np.array([1, 2, 3, 4], dtype=np.uint64)
    assert int(next_word(rng)) == (5 << 7) + 1
    assert rng.tolist() == [7, 0, 1026, 12288]
    assert int(next_word(rng)) == ((7 + 12288) << 7) + 7


def drawn(seed: int) -> dict[str, list[float]]:
    """Some of every kind of draw; a child process prints the same."""
    rng = generator(seed, 3)
    order = np.arange(40)
    shuffle(rng, order, 33)
    return {
        "words": [int(next_word(rng)) for _ in range(20)],
        "below": [int(below(rng, bound)) for bound in BOUNDS for _ in range(20)],
        "uniform": [float(uniform(rng)) for _ in range(20)],
        "order": order.tolist(),
        "state": rng.tolist(),
    }


def test_plain_python_draws_the_same_numbers() -> None:
    seeds = (0, 1, 2**63)
    program = f"""
import json
import numpy as np
from dualgap.runtime.random import below, generator, next_word, shuffle, uniform
BOUNDS = {BOUNDS}
{inspect.getsource(drawn)}
print(json.dumps([drawn(seed) for seed in {seeds}]))
"""
    child = subprocess.run(
        [sys.executable, "-W", "error::RuntimeWarning", "-c", program],
        capture_output=True,
        text=True,
        env={**os.environ, "NUMBA_DISABLE_JIT": "1"},
        check=False,
    )
    assert child.returncode == 0, child.stderr
    assert json.loads(child.stdout) == [drawn(seed) for seed in seeds]


@pytest.mark.parametrize("bound", BOUNDS)
def test_below_is_below(bound: int) -> None:
    rng = generator(1)
    found = [int(below(rng, bound)) for _ in range(2000)]
    assert min(found) >= 0
    assert max(found) < bound
    assert bound > 100 or set(found) == set(range(bound))


@pytest.mark.parametrize("bound", [3, 6, 7, 100])
def test_below_is_unbiased(bound: int) -> None:
    rng = generator(2, bound)
    counts = np.bincount([int(below(rng, bound)) for _ in range(60_000)], minlength=bound)
    assert chisquare(counts).pvalue > 1e-3


def test_below_rejects_what_would_tilt_large_bounds() -> None:
    """Scaled to 3/4 of the words without rejection, every third number would come twice as often as the
    others.
    """
    rng = generator(2)
    found = np.array([int(below(rng, 3 * 2**30)) for _ in range(30_000)])
    assert chisquare(np.bincount(found % 3)).pvalue > 1e-3
    assert chisquare(np.bincount(found >> 28, minlength=12)).pvalue > 1e-3


def test_shuffles_are_uniform() -> None:
    rng = generator(3)
    seen: Counter[tuple[int, ...]] = Counter()
    for _ in range(24_000):
        order = np.arange(5)
        shuffle(rng, order, 4)
        assert order[4] == 4  # beyond the count nothing moves
        seen[tuple(order[:4].tolist())] += 1
    assert set(seen) == set(permutations(range(4)))
    assert chisquare(list(seen.values())).pvalue > 1e-3


def test_uniform_fills_the_unit_interval() -> None:
    rng = generator(4)
    found = np.array([float(uniform(rng)) for _ in range(50_000)])
    assert found.min() >= 0.0
    assert found.max() < 1.0
    assert chisquare(np.histogram(found, bins=50, range=(0.0, 1.0))[0]).pvalue > 1e-3
    lowest_bits = (found * 2.0**53).astype(np.uint64) & np.uint64(7)
    assert chisquare(np.bincount(lowest_bits.astype(int), minlength=8)).pvalue > 1e-3


def test_seeds_and_streams_differ() -> None:
    starts = {tuple(generator(seed, stream).tolist()) for seed in range(30) for stream in range(30)}
    assert len(starts) == 900
    assert generator(5).tolist() == generator(5, 0).tolist()
    assert all(word < 2**32 for word in generator(2**200).tolist())
    first, second = generator(0, 0), generator(0, 1)
    agree = sum(int(next_word(first)) == int(next_word(second)) for _ in range(1000))
    assert agree <= 1
