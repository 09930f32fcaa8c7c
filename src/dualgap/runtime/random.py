"""The random generator of the solvers: xoshiro128++ (Blackman and Vigna, ACM TOMS 2021).

Its state is an array of four words that lives in a solver's State, so that a saved run goes on with the very
same numbers. Numba's own ``np.random`` keeps unseeded state per thread and is not used. The 32-bit variant
holds its words in uint64, where nothing overflows: compiled and as plain Python it draws the same numbers.
"""

from __future__ import annotations

from typing import Any

import numpy as np

from .arrays import Words
from .jit import inner, kernel

_MASK = np.uint64(0xFFFFFFFF)
_32 = np.uint64(32)
_7, _9, _11, _21, _25 = (np.uint64(k) for k in (7, 9, 11, 21, 25))


def generator(seed: int, stream: int = 0) -> Words:
    """A fresh state; different streams of one seed are independent."""
    words = np.random.SeedSequence([seed, stream]).generate_state(4, np.uint32).astype(np.uint64)
    return words if words.any() else words + np.uint64(1)  # all zeros is the one forbidden state


@inner
def below(rng: Words, bound: int) -> int:
    """A number from 0 to bound - 1, each equally likely; bound <= 2^32 (Lemire, ACM TOMACS 2019)."""
    wide = np.uint64(bound)
    s0, s1, s2, s3 = rng[0], rng[1], rng[2], rng[3]
    while True:
        total = (s0 + s3) & _MASK
        word = ((((total << _7) | (total >> _25)) & _MASK) + s0) & _MASK  # the next 32 random bits
        shifted = (s1 << _9) & _MASK
        s2 ^= s0
        s3 ^= s1
        s1 ^= s2
        s0 ^= s3
        s2 ^= shifted
        s3 = ((s3 << _11) | (s3 >> _21)) & _MASK
        product = word * wide
        low = product & _MASK
        if low >= wide or low >= ((_MASK + np.uint64(1)) - wide) % wide:
            break
    rng[0], rng[1], rng[2], rng[3] = s0, s1, s2, s3
    return np.int64(product >> _32)  # type: ignore[return-value]


@inner
def next_word(rng: Words) -> Any:
    """The next 32 random bits, as a uint64."""
    return np.uint64(below(rng, 1 << 32))


@inner
def uniform(rng: Words) -> float:
    """A number in [0, 1) with 53 random bits."""
    high = np.float64(next_word(rng) >> np.uint64(5))
    low = np.float64(next_word(rng) >> np.uint64(6))
    return (high * 67108864.0 + low) / 9007199254740992.0


@inner
def shuffle(rng: Words, order: Any, count: int) -> None:
    """Permute the first ``count`` entries, every permutation equally likely (Fisher and Yates)."""
    for last in range(count - 1, 0, -1):
        other = below(rng, last + 1)
        order[last], order[other] = order[other], order[last]


@kernel
def permute(rng: Words, order: Any, count: int) -> None:
    """`shuffle`, to be called from Python."""
    shuffle(rng, order, count)


@inner
def resample(rng: Words, rows: Any, picks: Any) -> None:
    """Fill ``picks`` with rows drawn with replacement, each equally likely."""
    for k in range(picks.shape[0]):
        picks[k] = rows[below(rng, rows.shape[0])]


GIVEN, PERMUTATION, RANDOM = ORDERS = ("given", "permutation", "random")


@inner
def lay_out(rng: Words, order: int, rows: Any, picks: Any) -> None:
    """The rows of an epoch, ``order`` numbered as in ORDERS: as they are, in a fresh permutation, with
    replacement.
    """
    if order == 1:
        shuffle(rng, picks, picks.shape[0])
    elif order == 2:
        resample(rng, rows, picks)
