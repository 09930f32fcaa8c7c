"""The dual step of the logistic loss where Newton alone goes astray."""

from __future__ import annotations

import math

import numpy as np
import pytest

from dualgap.core.losses import logistic_dual


def gain(b: float, margin: float, a: float, curvature: float) -> float:
    entropy = -sum(p * math.log(p) for p in (b, 1.0 - b) if p > 0.0)
    return entropy - margin * (b - a) - 0.5 * curvature * (b - a) ** 2


def test_a_step_never_lowers_the_dual_and_ends_at_the_root() -> None:
    rng = np.random.default_rng(0)
    for _ in range(20_000):
        margin = float(rng.normal() * 10 ** rng.uniform(-1, 4))
        a = float(rng.choice([0.0, 1.0, rng.random(), rng.random() ** 20]))
        curvature = float(10 ** rng.uniform(-6, 8))
        b = logistic_dual(margin, a, curvature)
        scale = 1.0 + abs(margin) + curvature
        assert gain(b, margin, a, curvature) >= gain(a, margin, a, curvature) - 1e-12 * scale
        if 1e-6 < b < 1 - 1e-6:
            root = math.log1p(-b) - math.log(b) - margin - curvature * (b - a)
            assert abs(root) <= 1e-9 * scale


def test_the_case_that_bounced() -> None:
    assert gain(logistic_dual(-5.37619, 0.0, 670.903), -5.37619, 0.0, 670.903) == pytest.approx(
        0.08, abs=0.02
    )
