"""Compensated sums against exact ones, at the edges of what they promise."""

from __future__ import annotations

import math
from fractions import Fraction

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from dualgap.runtime.sums import (
    COMPENSATED,
    UNIT,
    Total,
    TotalByLabel,
    add_vector,
    gamma,
    norm,
    sum_of_squares,
    total_of,
    two_sum,
)

floats = st.floats(-1e150, 1e150, allow_subnormal=False)


def exactly(numbers: np.ndarray) -> Fraction:
    return sum((Fraction(float(v)) for v in numbers), Fraction(0))


@settings(derandomize=True, deadline=None, max_examples=300)
@given(floats, floats)
def test_two_sum_loses_nothing(a: float, b: float) -> None:
    total, rest = two_sum(a, b)
    assert total == a + b
    assert Fraction(total) + Fraction(rest) == Fraction(a) + Fraction(b)


@pytest.mark.parametrize("terms", [0.0, 1.0, 7.0, 1e6, 1e12])
def test_gamma_is_the_textbook_bound(terms: float) -> None:
    true = Fraction(terms) * Fraction(UNIT) / (1 - Fraction(terms) * Fraction(UNIT))
    assert gamma(terms) == pytest.approx(float(true), rel=1e-14)


def test_sum_of_squares_where_a_plain_sum_fails() -> None:
    values = np.full(4097, 2.0**-27)
    values[0] = 1.0
    # every further square is half a unit in the last place of 1: a plain sum stays at 1
    assert sum_of_squares(values) == 1.0 + 4096 * 2.0**-54
    assert sum(v * v for v in values.tolist()) == 1.0


@pytest.mark.parametrize("seed", range(5))
def test_sum_of_squares_keeps_its_promise(seed: int) -> None:
    rng = np.random.default_rng(seed)
    values = rng.normal(size=3000) * 10.0 ** rng.uniform(-60, 60, size=3000)
    true = sum((Fraction(v) ** 2 for v in values.tolist()), Fraction(0))
    assert abs(Fraction(sum_of_squares(values)) - true) <= Fraction(COMPENSATED) * true
    length = Fraction(norm(values))
    assert (length * Fraction(1 - COMPENSATED)) ** 2 <= true <= (length * Fraction(1 + COMPENSATED)) ** 2


@pytest.mark.parametrize("size", [3000, 2**20 + 3])
def test_totals_where_a_plain_sum_fails(size: int) -> None:
    values = np.ones(size)
    values[0] = 2.0**53
    assert total_of(values) == float(2**53 + size - 1)
    total, by_label = Total(), TotalByLabel()
    for part in np.split(values, [1, 2, 3, 1500]):
        total.add(part)
        labels = np.arange(part.size) % 2.0
        by_label.add(*np.unique(labels, return_inverse=True), part)
    assert total.value == total_of(values)
    assert len(by_label) == 2
    assert [label for label, _ in by_label.sorted()] == [0.0, 1.0]
    assert sum(weight for _, weight in by_label.sorted()) == pytest.approx(total.value, rel=2.0**-51)


@pytest.mark.parametrize("seed", range(5))
def test_totals_keep_their_promise(seed: int) -> None:
    rng = np.random.default_rng(seed)
    values = 2.0 ** rng.uniform(-60, 60, size=3000)
    total = Total()
    for part in np.array_split(values, 1000):
        total.add(part)
    true = exactly(values)
    for found in (total.value, total_of(values)):
        assert abs(Fraction(found) - true) <= Fraction(2 * UNIT) * true


def test_sums_of_nothing() -> None:
    assert total_of(np.zeros(0)) == Total().value == 0.0
    assert sum_of_squares(np.zeros(0)) == 0.0
    assert norm(np.zeros(0)) == 0.0
    assert norm(np.array([-3.0, 4.0])) == 5.0


def test_add_vector_survives_cancellation() -> None:
    rng = np.random.default_rng(6)
    parts = [rng.normal(size=40) * 10.0 ** rng.uniform(-8, 16, size=40) for _ in range(50)]
    # what is left is the first part, some 1e24 times smaller than the terms
    parts += [-part for part in parts[1:]]
    rng.shuffle(parts)
    total, lost = np.zeros(40), np.zeros(40)
    for part in parts:
        add_vector(total, lost, part)
    terms = np.array(parts)
    for j in range(40):
        true, size = exactly(terms[:, j]), exactly(np.abs(terms[:, j]))
        bound = Fraction(2 * UNIT) * abs(true) + Fraction(float(gamma(99.0))) ** 2 * size
        assert abs(Fraction(total[j]) + Fraction(lost[j]) - true) <= bound
    assert not math.isclose(terms.sum(axis=0)[0], total[0] + lost[0], rel_tol=1e-12)
