"""Measures of scores that early stopping and ``evaluate`` share."""

from __future__ import annotations

import numpy as np
import pytest

from dualgap.core.measures import break_even, error_rate


def test_a_row_of_weight_two_is_two_rows() -> None:
    rng = np.random.default_rng(0)
    y, scores = rng.choice([-1.0, 1.0], 60), np.round(rng.normal(size=60), 1)  # with ties
    weight = rng.integers(0, 4, 60)
    again, times = np.repeat(scores, weight), np.repeat(y, weight)
    assert break_even(y > 0, scores, weight.astype(float)) == pytest.approx(break_even(times > 0, again))
    assert error_rate(y, scores, weight.astype(float)) == pytest.approx(np.mean((again > 0) != (times > 0)))


def test_no_positive_weight_has_no_break_even_point() -> None:
    scores = np.array([1.0, 2.0])
    assert np.isnan(break_even(np.array([False, False]), scores))
    assert np.isnan(break_even(np.array([True, False]), scores, np.array([0.0, 1.0])))
