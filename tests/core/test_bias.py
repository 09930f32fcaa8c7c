"""The table at the head of ``bias.py``, and the intent of a free bias."""

from __future__ import annotations

import numpy as np
import pytest

from dualgap.core.bias import AugmentedBias, Centred, ExactBias, NoBias, make_bias
from dualgap.runtime.errors import InputError


def test_strengths() -> None:
    assert NoBias().strength(0.3) == np.inf
    assert AugmentedBias(2.0).strength(0.3) == pytest.approx(0.3 / 4.0)
    assert Centred(5.0, 0.7).strength(0.3) == 0.7
    assert ExactBias().strength(0.3) == 0.0
    assert [kind.centre for kind in (NoBias(), AugmentedBias(), Centred(5.0, 0.7), ExactBias())] == [
        0.0,
        0.0,
        5.0,
        0.0,
    ]


@pytest.mark.parametrize("bias", [AugmentedBias(3.0), Centred(-1.5, 0.4)], ids=lambda bias: bias.kind)
def test_the_term_of_the_dual_is_a_minimum(bias: AugmentedBias | Centred) -> None:
    """min over b of ``strength/2 (b - centre)^2 - z b`` is ``-centre z - z^2/(2 strength)``, as the table
    says.
    """
    strength = bias.strength(0.2)
    for z in (-2.0, 0.0, 0.3):
        grid = bias.centre + z / strength + np.linspace(-1.0, 1.0, 2001)
        values = 0.5 * strength * (grid - bias.centre) ** 2 - z * grid
        assert values.min() == pytest.approx(-bias.centre * z - z * z / (2.0 * strength), abs=1e-12)
        assert grid[np.argmin(values)] == pytest.approx(bias.centre + z / strength, abs=1e-12)


@pytest.mark.parametrize(
    "bias", [NoBias(), AugmentedBias(2.0), Centred(1.0, 0.5)], ids=lambda bias: bias.kind
)
def test_regularised_biases_take_every_beta(bias: NoBias | AugmentedBias | Centred) -> None:
    beta = np.array([0.3, -0.2, 0.9])
    assert np.array_equal(bias.feasible(beta, np.ones(3)), beta)


def test_a_free_bias_scales_the_heavier_sign_down() -> None:
    rng = np.random.default_rng(0)
    for _ in range(50):
        beta = rng.uniform(-1.0, 1.0, size=8) + rng.choice([-0.5, 0.5])
        weight = rng.choice([0.0, 1.0, 2.5], size=8) + 1e-3
        found = ExactBias().feasible(beta, weight)
        assert weight @ found == pytest.approx(0.0, abs=1e-14 * (weight @ np.abs(beta)))
        assert np.all(np.sign(found) * np.sign(beta) >= 0.0)
        assert np.all(np.abs(found) <= np.abs(beta))  # so every box that held beta still holds it
        lighter = np.sign(beta) != np.sign(weight @ beta)
        assert np.array_equal(found[lighter], beta[lighter])


def test_a_free_bias_leaves_a_balanced_beta_alone() -> None:
    beta = np.array([0.5, -0.25, -0.25])
    assert np.array_equal(ExactBias().feasible(beta, np.ones(3)), beta)
    assert np.array_equal(ExactBias().feasible(np.zeros(3), np.ones(3)), np.zeros(3))
    assert np.array_equal(ExactBias().feasible(np.array([0.5, 0.2]), np.ones(2)), np.zeros(2))


def test_biases_by_name() -> None:
    assert make_bias("none") == NoBias()
    assert make_bias("augmented", 2.0) == AugmentedBias(2.0)
    assert make_bias(Centred(1.0, 2.0)) == Centred(1.0, 2.0)
    with pytest.raises(InputError, match="unknown bias 'augmentd'"):
        make_bias("augmentd")


@pytest.mark.parametrize("rho", [0.0, -1.0, np.nan, np.inf, 1e200, 1e-200])
def test_rho_must_be_positive_and_its_square_a_float(rho: float) -> None:
    with pytest.raises(InputError, match="rho="):
        AugmentedBias(rho)
