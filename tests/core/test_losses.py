"""The mathematics of every loss, against definitions, suprema and inequalities that hold whatever the code
says.
"""

from __future__ import annotations

import math
from decimal import Decimal, localcontext
from fractions import Fraction
from typing import Any

import numpy as np
import pytest
from scipy.optimize import minimize_scalar

from dualgap.core.losses import (
    LOSSES,
    Absolute,
    EpsilonInsensitive,
    HardMargin,
    Hinge,
    Huber,
    Logistic,
    ModifiedHuber,
    Quantile,
    SmoothHinge,
    Squared,
    SquaredEpsilonInsensitive,
    SquaredHinge,
    log1p,
    make_loss,
    parameters_of,
)
from dualgap.runtime.errors import InputError
from dualgap.runtime.jit import kernel
from support import exact

CASES: list[Any] = [
    *(Hinge(margin) for margin in (0.0, 1.0, 2.5)),
    *(SmoothHinge(gamma) for gamma in (0.01, 1.0, 2.0)),
    *(SquaredHinge(scale) for scale in (0.5, 1.0)),
    *(ModifiedHuber(scale) for scale in (0.5, 1.0)),
    Logistic(),
    *(Squared(scale) for scale in (0.5, 1.0)),
    *(Huber(threshold) for threshold in (0.5, 1.0, 3.0)),
    Absolute(),
    *(Quantile(quantile) for quantile in (0.1, 0.5, 0.95)),
    *(EpsilonInsensitive(epsilon) for epsilon in (0.0, 0.1, 2.0)),
    *(SquaredEpsilonInsensitive(epsilon) for epsilon in (0.0, 0.1, 2.0)),
]
CURVATURES = (0.0, 1e-12, 1e-3, 0.7, 40.0, 1e6, 1e12)

every_loss = pytest.mark.parametrize("loss", CASES, ids=lambda loss: "-".join([loss.name, *map(str, loss)]))


def targets(loss: Any) -> tuple[float, ...]:
    return (-1.0, 1.0) if loss.task == "classification" else (-3.7, 0.0, 25.0)


def kinks(loss: Any, y: float) -> list[float]:
    """The scores at which one formula ends and the next begins."""
    if loss.name == "logistic":
        return []
    if loss.task == "classification":
        margins = {"hinge": [loss[0]], "smooth-hinge": [1.0, 1.0 - loss[0]], "modified-huber": [1.0, -1.0]}
        return [y * margin for margin in margins.get(loss.name, [1.0])]
    if loss.name == "squared":
        return []
    width = 0.0 if loss.name in ("absolute", "quantile") else loss[0]
    return [y - width, y + width]


def scores(loss: Any, y: float) -> list[float]:
    """A grid around the bends of the loss, the bends themselves and their neighbours among the floats."""
    centre = y if loss.task == "regression" else 0.0
    bends = kinks(loss, y)
    near = [np.nextafter(s, side) for s in bends for side in (-np.inf, np.inf)]
    return [float(s) for s in (*(centre + np.linspace(-6.0, 6.0, 61)), *bends, *near)]


def bounds(loss: Any) -> tuple[float, float]:
    """Where ``a`` (classification) or ``beta`` (regression) may live."""
    if loss.name == "quantile":
        return loss.quantile - 1.0, loss.quantile
    top = loss.lipschitz
    return (0.0 if loss.task == "classification" else -top), top


def duals(loss: Any, y: float, rng: np.random.Generator, count: int = 12) -> list[float]:
    """Feasible betas: the ends of the box, 0, and others."""
    low, high = (np.clip(end, -30.0, 30.0) for end in bounds(loss))
    sign = y if loss.task == "classification" else 1.0
    return [
        float(sign * a)
        for a in (low, 0.0, high, *rng.uniform(low, high, count), *(1e-9 * rng.random(2) * high))
    ]


def objective(loss: Any, y: float, score: float, beta: float, curvature: float, new: float) -> float:
    """What the dual step maximises."""
    move = new - beta
    return -loss.conjugate(y, new) - score * move - 0.5 * curvature * move * move


@every_loss
def test_value_is_the_definition(loss: Any) -> None:
    for y in targets(loss):
        for score in (*scores(loss, y), 1e8, -1e8):
            true = exact.value(loss, y, Fraction(score))
            # the differences to y, 1 and epsilon may cancel: their rounding counts as a change of the score
            off = 2.0**-52 * (1.0 + abs(y) + abs(score))
            steep = max(abs(loss.derivative(y, score - off)), abs(loss.derivative(y, score + off)))
            assert abs(Fraction(loss.value(y, score)) - true) <= Fraction(1e-15) * true + Fraction(
                steep * off
            )


@every_loss
def test_slope_is_the_derivative(loss: Any) -> None:
    h = 2.0**-12
    for y in targets(loss):
        for score in scores(loss, y):
            if any(abs(score - kink) <= h for kink in kinks(loss, y)):
                continue
            rise = exact.value(loss, y, Fraction(score + h)) - exact.value(loss, y, Fraction(score - h))
            assert loss.derivative(y, score) == pytest.approx(
                float(rise / Fraction(2 * h)), rel=1e-9, abs=2e-8
            )


@every_loss
def test_curvature_is_the_derivative_of_the_slope(loss: Any) -> None:
    h = 2.0**-12
    for y in targets(loss):
        for score in scores(loss, y):
            assert 0.0 <= loss.curvature(y, score) <= loss.smoothness
            if not any(abs(score - kink) <= h for kink in kinks(loss, y)):
                rise = loss.derivative(y, score + h) - loss.derivative(y, score - h)
                assert loss.curvature(y, score) == pytest.approx(rise / (2 * h), rel=1e-6, abs=2e-8)
        for score in (1e8, -1e8, 800.0, -800.0):
            assert math.isfinite(loss.curvature(y, score))


@every_loss
def test_slope_supports_the_loss_from_below_everywhere(loss: Any) -> None:
    for y in targets(loss):
        at = np.array(scores(loss, y))
        values = np.array([loss.value(y, s) for s in at.tolist()])
        slopes = np.array([loss.derivative(y, s) for s in at.tolist()])
        support = values[:, None] + slopes[:, None] * (at[None, :] - at[:, None])
        assert np.all(values[None, :] >= support - 1e-12 * (1.0 + np.abs(support)))


def test_slope_at_kinks_is_the_documented_one() -> None:
    for y in (-1.0, 1.0):
        assert Hinge().derivative(y, y) == 0.0
        assert Hinge(2.5).derivative(y, 2.5 * y) == 0.0
        assert Absolute().derivative(y, y) == 0.0
        assert Quantile(0.3).derivative(y, y) == 0.0
        assert (
            EpsilonInsensitive(2.0).derivative(y, y + 2.0)
            == EpsilonInsensitive(2.0).derivative(y, y - 2.0)
            == 0.0
        )


def supremum(loss: Any, y: float, beta: float, reach: float) -> float:
    """sup of ``-beta s - phi(s)`` over scores within reach of 0, by search."""

    def negated(score: float) -> float:
        return beta * score + float(loss.value(y, score))

    pieces = sorted({-reach, reach, *kinks(loss, y), *np.linspace(y - 60.0, y + 60.0, 25).tolist()})
    found = [negated(s) for s in pieces]
    best = int(np.argmin(found))
    around = (pieces[max(best - 1, 0)], pieces[min(best + 1, len(pieces) - 1)])
    inner = minimize_scalar(negated, bounds=around, method="bounded", options={"xatol": 1e-10}).fun
    return -min(found[best], inner)


@every_loss
def test_conjugate_is_the_supremum(loss: Any) -> None:
    rng = np.random.default_rng(1)
    for y in targets(loss):
        for beta in duals(loss, y, rng):
            assert loss.conjugate(y, beta) == pytest.approx(supremum(loss, y, beta, 1e4), rel=1e-9, abs=1e-9)
            true = exact.conjugate(loss, y, beta)
            assert true is not None
            size = abs(true) + abs(Fraction(beta)) * Fraction(1 + abs(y))
            assert abs(Fraction(loss.conjugate(y, beta)) - true) <= 8 * Fraction(2.0**-53) * size


@every_loss
def test_conjugate_is_infinite_outside_its_domain(loss: Any) -> None:
    low, high = bounds(loss)
    sign = np.array(targets(loss)) if loss.task == "classification" else np.ones(3)
    for y, s in zip(targets(loss), sign, strict=False):
        for end, outwards in ((low, -np.inf), (high, np.inf)):
            if not math.isfinite(end):
                assert math.isfinite(loss.conjugate(y, math.copysign(1e6, end) * s))
                continue
            assert loss.conjugate(y, float(s * np.nextafter(end, outwards))) == math.inf
            outside = float(s * (end + math.copysign(0.01, outwards)))
            assert loss.conjugate(y, outside) == math.inf
            assert supremum(loss, y, outside, 1e7) > supremum(loss, y, outside, 1e6) + 1e3
        assert math.isinf(loss.conjugate(y, math.nan)) or math.isnan(loss.conjugate(y, math.nan))


@every_loss
def test_fenchel_and_young(loss: Any) -> None:
    rng = np.random.default_rng(2)
    for y in targets(loss):
        feasible = duals(loss, y, rng)
        for score in scores(loss, y):
            value = loss.value(y, score)
            for beta in feasible:
                rest = value + loss.conjugate(y, beta) + beta * score
                assert rest >= -1e-13 * (1.0 + value + abs(beta) * (1.0 + abs(score) + abs(beta) / 0.01))
            tangent = -loss.derivative(y, score)
            size = 1.0 + value + abs(tangent * score) + abs(tangent * y) + tangent * tangent
            assert value + loss.conjugate(y, tangent) + tangent * score == pytest.approx(
                0.0, abs=1e-14 * size
            )


@every_loss
@pytest.mark.parametrize("curvature", CURVATURES)
def test_best_dual_maximises_the_dual(loss: Any, curvature: float) -> None:
    rng = np.random.default_rng(3)
    low, high = (np.clip(end, -200.0, 200.0) for end in bounds(loss))
    for y in targets(loss):
        sign = y if loss.task == "classification" else 1.0
        grid = [float(sign * a) for a in (*np.linspace(low, high, 101), 0.0)]
        for beta in duals(loss, y, rng, 5):
            for score in rng.normal(y, 3.0, size=6).tolist() + kinks(loss, y):
                new = loss.dual_prox(y, score, beta, curvature)
                got = objective(loss, y, score, beta, curvature, new)
                size = 1.0 + abs(new) * (abs(y) + abs(score) + abs(new)) + curvature * (new - beta) ** 2
                best = max(objective(loss, y, score, beta, curvature, other) for other in grid)
                assert got >= best - 1e-13 * size - 1e-12 * curvature * beta * beta
                # at the new score the step is over: no slope of the dual points anywhere
                after = score + curvature * (new - beta)
                left, right = loss.dual_subdifferential(y, after, new)
                slack = (
                    1e-13 * (1.0 + abs(y) + abs(score) + curvature * (abs(beta) + abs(new)))
                    + 1e-12 * curvature
                )
                assert left <= slack
                assert right >= -slack


def test_logistic_dual_step_to_1e_12() -> None:
    """The stationary equation ``ln(a/(1-a)) + margin + curvature (a - before) = 0`` changes sign around the
    answer.
    """
    rng = np.random.default_rng(4)
    tolerance = Decimal("1e-12")

    def gradient(a: Decimal, margin: float, before: float, curvature: float) -> Decimal:
        return (a / (1 - a)).ln() + Decimal(margin) + Decimal(curvature) * (a - Decimal(before))

    with localcontext() as context:
        context.prec = 60
        for trial in range(600):
            margin = float(rng.normal(0.0, 10.0 ** rng.uniform(-3, 2)))
            before = float(rng.choice([0.0, 1.0, 1e-9, 1.0 - 1e-9, rng.random()]))
            curvature = (0.0, *(10.0 ** rng.uniform(-9, 12, size=4)))[trial % 5]
            got = Decimal(Logistic().dual_prox(1.0, margin, before, float(curvature)))
            below, above = got - tolerance, got + tolerance
            assert below <= 0 or gradient(below, margin, before, curvature) < 0
            assert above >= 1 or gradient(above, margin, before, curvature) > 0


@every_loss
def test_steps_never_leave_the_box(loss: Any) -> None:
    rng = np.random.default_rng(5)
    for y in targets(loss):
        beta = 0.0
        for _ in range(400):
            score, curvature = rng.normal(y, 10.0 ** rng.uniform(-3, 4)), 10.0 ** rng.uniform(-14, 8)
            beta = loss.dual_prox(y, float(score), beta, float(curvature) * (rng.random() < 0.9))
            assert math.isfinite(loss.conjugate(y, beta))


@every_loss
def test_dual_slopes_are_one_sided_derivatives(loss: Any) -> None:
    rng = np.random.default_rng(6)
    h = 2.0**-16
    low, high = bounds(loss)
    for y in targets(loss):
        sign = y if loss.task == "classification" else 1.0
        for beta in duals(loss, y, rng):
            a, score = sign * beta, float(rng.normal(0.0, 3.0))
            if loss.name == "logistic" and not 0.05 < a < 0.95:
                continue
            left, right = loss.dual_subdifferential(y, score, beta)
            for slope, step, at_bound in ((left, -h, a <= low), (right, h, a >= high)):
                if at_bound:
                    assert slope == math.copysign(math.inf, step)
                    continue
                if low < a < low + h or high - h < a < high or 0 < abs(a) < h:
                    continue  # a bound or the kink at 0 lies within the difference
                here, there = (
                    exact.conjugate(loss, y, Fraction(beta) + Fraction(move * sign)) for move in (0.0, step)
                )
                assert here is not None
                assert there is not None
                assert slope == pytest.approx(
                    float((there - here) / Fraction(step)) + sign * score, rel=1e-9, abs=2e-4
                )


@every_loss
def test_a_dual_is_best_where_its_slopes_enclose_zero(loss: Any) -> None:
    rng = np.random.default_rng(7)
    moved = stayed = 0
    for y in targets(loss):
        sign = y if loss.task == "classification" else 1.0
        for beta in duals(loss, y, rng):
            for score in [*rng.normal(y, 3.0, size=8).tolist(), *kinks(loss, y)]:
                left, right = loss.dual_subdifferential(y, score, beta)
                for curvature in CURVATURES[1:5]:
                    change = sign * (loss.dual_prox(y, score, beta, curvature) - beta)
                    if left > 1e-9:
                        assert change < 0.0
                    elif right < -1e-9:
                        assert change > 0.0
                    elif left < -1e-9 and right > 1e-9:
                        # at a bound or a kink of the dual, which holds it fast
                        assert change == 0.0
                moved += left > 1e-9 or right < -1e-9
                stayed += left <= 0.0 <= right
    assert moved
    assert stayed or loss.name in ("logistic", "squared")


@every_loss
def test_extreme_scores(loss: Any) -> None:
    """Scores of 1e8, as numpy scalars, which would warn where Python floats keep quiet."""
    low, high = bounds(loss)
    for y in targets(loss):
        sign = y if loss.task == "classification" else 1.0
        for score in (1e8, -1e8):
            value, slope = (
                loss.value(np.float64(y), np.float64(score)),
                loss.derivative(np.float64(y), np.float64(score)),
            )
            assert 0.0 <= value < math.inf
            assert abs(slope) <= loss.lipschitz
            assert math.isfinite(loss.conjugate(y, -slope))
            for curvature in CURVATURES:
                new = loss.dual_prox(np.float64(y), np.float64(score), np.float64(0.0), np.float64(curvature))
                assert math.isfinite(loss.conjugate(y, new))
                assert new * score <= 0.0
                if curvature == 0.0 and math.isfinite(loss.lipschitz):
                    assert new == (sign * low if sign * score > 0.0 else sign * high)
                assert not any(
                    map(math.isnan, loss.dual_subdifferential(np.float64(y), np.float64(score), new))
                )


def test_modified_huber_is_four_smoothed_hinges() -> None:
    huber, hinge = ModifiedHuber(), SmoothHinge(2.0)
    for y in (-1.0, 1.0):
        for score in scores(huber, y):
            assert huber.value(y, score) == pytest.approx(4.0 * hinge.value(y, score), rel=1e-15)
            assert huber.derivative(y, score) == pytest.approx(4.0 * hinge.derivative(y, score), rel=1e-15)
        for a in np.linspace(-0.5, 4.5, 41).tolist():
            assert huber.conjugate(y, y * a) == pytest.approx(
                4.0 * hinge.conjugate(y, y * a / 4.0), rel=1e-15
            )


def test_smoothed_hinge_tends_to_the_hinge() -> None:
    for y in (-1.0, 1.0):
        for score in scores(Hinge(), y):
            hinge = Hinge().value(y, score)
            for gamma in (1e-1, 1e-4, 1e-12):
                assert -1e-15 <= hinge - SmoothHinge(gamma).value(y, score) <= 0.5 * gamma + 1e-15
            if abs(1.0 - y * score) > 1e-6:
                assert SmoothHinge(1e-12).derivative(y, score) == Hinge().derivative(y, score)


# Zhang (ICML 2004), section 4: (A, B) with phi'^2 <= A phi + B
PUBLISHED: list[tuple[Any, tuple[float, float]]] = [
    (Logistic(), (0.0, 1.0)),
    (Hinge(), (0.0, 1.0)),
    *((SmoothHinge(gamma), (0.0, 1.0)) for gamma in (0.01, 1.0, 2.0)),
    *((SmoothHinge(gamma), (2.0 / gamma, 0.0)) for gamma in (0.01, 1.0, 2.0)),
    (Squared(), (4.0, 0.0)),
    (SquaredHinge(), (4.0, 0.0)),
    (Huber(), (0.0, 4.0)),
    (ModifiedHuber(), (0.0, 16.0)),
]


@pytest.mark.parametrize(("loss", "pair"), PUBLISHED, ids=str)
def test_zhang_constants_are_carried(loss: Any, pair: tuple[float, float]) -> None:
    assert pair in loss.zhang_pairs


@every_loss
def test_zhang_and_lipschitz_constants_hold_and_are_tight(loss: Any) -> None:
    assert loss.zhang_pairs
    for y in targets(loss):
        at = np.array([*scores(loss, y), *(y + np.linspace(-50.0, 50.0, 2001))])
        values = np.array([loss.value(y, s) for s in at.tolist()])
        slopes = np.array([loss.derivative(y, s) for s in at.tolist()])
        for A, B in loss.zhang_pairs:
            room = A * values + B - slopes * slopes
            size = 1.0 + slopes * slopes
            assert np.all(room >= -1e-12 * size)
            assert np.any((room <= 1e-12 * size) & (slopes != 0.0))
        steepest = np.abs(slopes).max()
        assert steepest <= loss.lipschitz
        assert steepest >= min(loss.lipschitz, 40.0) * (1.0 - 1e-12)


@every_loss
def test_smoothness_holds_and_is_tight(loss: Any) -> None:
    for y in targets(loss):
        steepest = 0.0
        for centre in (0.0, y, *kinks(loss, y), *scores(loss, y)[::10]):
            for h in (1e-3, 1e-6):
                at = [centre + k * h for k in (-1, 0, 1)]
                steepest = max(
                    steepest, *(abs(loss.derivative(y, s + h) - loss.derivative(y, s)) / h for s in at)
                )
        assert steepest <= loss.smoothness * (1.0 + 1e-6)
        assert steepest >= min(loss.smoothness, 1e5) * (1.0 - 1e-5)


def test_every_registered_loss_is_tested_here() -> None:
    assert {type(loss) for loss in CASES} == set(LOSSES.values())
    assert all(cls.name == name for name, cls in LOSSES.items())


def test_losses_by_name() -> None:
    assert make_loss("hinge") == Hinge(1.0)
    assert make_loss("huber:threshold=2") == Huber(2.0)
    assert make_loss("epsilon-insensitive:epsilon=0") == EpsilonInsensitive(0.0)
    assert make_loss(SmoothHinge(2)) == SmoothHinge(2.0)
    assert isinstance(make_loss(SmoothHinge(2))[0], float)  # an int would compile one more kernel  # type: ignore[index]
    assert parameters_of(Huber) == {"threshold": 1.0}
    assert parameters_of(Logistic) == {}


@pytest.mark.parametrize("name", LOSSES)
def test_underscores_will_do_for_hyphens(name: str) -> None:
    assert make_loss(name.replace("-", "_")) == make_loss(name)
    assert type(make_loss(name.replace("-", "_"))) is LOSSES[name]


SCORES = np.linspace(-3.0, 3.0, 61)


@pytest.mark.parametrize(
    ("name", "targets", "theirs"),
    [  # what scikit-learn documents for SGDClassifier, SGDRegressor and LinearSVR
        ("hinge", (-1.0, 1.0), lambda y, s: max(0.0, 1.0 - y * s)),
        ("squared_hinge", (-1.0, 1.0), lambda y, s: max(0.0, 1.0 - y * s) ** 2),
        ("log_loss", (-1.0, 1.0), lambda y, s: np.log1p(np.exp(-y * s))),
        (
            "modified_huber",
            (-1.0, 1.0),
            lambda y, s: -4.0 * y * s if y * s < -1.0 else max(0.0, 1.0 - y * s) ** 2,
        ),
        ("perceptron", (-1.0, 1.0), lambda y, s: max(0.0, -y * s)),
        ("squared_error", (-1.7, 0.4), lambda y, s: 0.5 * (s - y) ** 2),
        ("absolute_error", (-1.7, 0.4), lambda y, s: abs(s - y)),
        ("quantile:quantile=0.9", (-1.7, 0.4), lambda y, s: max(0.9 * (y - s), (0.9 - 1.0) * (y - s))),
        ("pinball", (-1.7, 0.4), lambda y, s: 0.5 * abs(s - y)),
        ("epsilon_insensitive", (-1.7, 0.4), lambda y, s: max(0.0, abs(s - y) - 0.1)),
        ("squared_epsilon_insensitive", (-1.7, 0.4), lambda y, s: max(0.0, abs(s - y) - 0.1) ** 2),
    ],
)
def test_names_of_scikit_learn_are_the_same_functions(name: str, targets: Any, theirs: Any) -> None:
    loss = make_loss(name)
    for y in targets:
        for score in SCORES:
            assert loss.value(y, score) == pytest.approx(theirs(y, score), abs=1e-12)


@pytest.mark.parametrize(
    ("spec", "said"),
    [
        ("hing", "did you mean 'hinge'"),
        ("", "unknown loss ''"),
        ("tweedie", "the loss 'tweedie' is not offered; there are: absolute, crammer-singer, epsilon"),
        ("poisson", "the loss 'poisson' is not offered"),
        ("quadratic-entropy", "unknown loss 'quadratic-entropy'; there are: absolute"),
        ("squared_hing", "did you mean 'squared-hinge'?"),
        ("huber:treshold=2", "did you mean 'threshold'"),
        ("logistic:unit=2", "no parameter 'unit'"),
        ("huber:threshold", "threshold"),
        ("huber:threshold=two", "'two' is not a number"),
        ("huber:threshold=0", "threshold=0.0 must be a positive"),
        ("smooth-hinge:gamma=-1", "gamma=-1.0 must be a positive"),
        ("squared:scale=nan", "scale=nan must be"),
        ("epsilon-insensitive:epsilon=inf", "epsilon=inf must be a non-negative finite"),
        ("quantile:quantile=1", "quantile=1.0 must be below 1"),
        ("quantile:quantile=-0.1", "quantile=-0.1 must be a positive"),
        (Huber(-1.0), "threshold=-1.0 must be a positive"),
        (3, "is not a loss"),
    ],
)
def test_losses_that_cannot_be_made(spec: Any, said: str) -> None:
    with pytest.raises(InputError) as caught:
        make_loss(spec)
    assert said in str(caught.value)
    assert "\n" not in str(caught.value)


@kernel
def compiled_methods(loss: Any, y: float, score: float, beta: float, curvature: float) -> Any:
    left, right = loss.dual_subdifferential(y, score, beta)
    step = loss.dual_prox(y, score, beta, curvature)
    return loss.value(y, score), loss.derivative(y, score), loss.conjugate(y, beta), step, left, right


@pytest.mark.slow
@every_loss
def test_compiled_equals_plain(loss: Any) -> None:
    rng = np.random.default_rng(8)
    # exp and log may differ in the last bit between the C library and LLVM
    tolerance = 1e-14 if loss.name == "logistic" else 0.0
    for y in targets(loss):
        for beta in [*duals(loss, y, rng), 5.0, -5.0]:
            for score in [*rng.normal(y, 3.0, size=3).tolist(), *kinks(loss, y), 1e8, -1e8]:
                curvature = float(10.0 ** rng.uniform(-6, 6))
                plain = (
                    loss.value(y, score),
                    loss.derivative(y, score),
                    loss.conjugate(y, beta),
                    loss.dual_prox(y, score, beta, curvature),
                    *loss.dual_subdifferential(y, score, beta),
                )
                assert compiled_methods(loss, y, score, beta, curvature) == pytest.approx(
                    plain, rel=tolerance, abs=tolerance
                )


@every_loss
def test_box_is_where_the_conjugate_is_finite(loss: Any) -> None:
    for y in targets(loss):
        low, high = loss.dual_bounds(y)
        assert low <= 0.0 <= high
        for end, beyond in ((low, -math.inf), (high, math.inf)):
            if math.isfinite(end):
                assert math.isfinite(loss.conjugate(y, end))
                assert loss.conjugate(y, math.nextafter(end, beyond)) == math.inf
            else:
                assert math.isfinite(loss.conjugate(y, math.copysign(1e12, end)))


def test_log1p_is_within_a_few_rounding_errors() -> None:
    rng = np.random.default_rng(0)
    small = 10.0 ** rng.uniform(-20, 0, 2000)
    x = np.concatenate([rng.uniform(-1, 1, 2000), small, -small, small - 1.0])
    x = x[(x > -1.0) & (x != 0.0)]
    exact = np.log1p(x.astype(np.longdouble))
    found = np.array([log1p(float(value)) for value in x])
    assert np.max(np.abs(found / exact - 1)) < 4 * 2.0**-53


@every_loss
def test_the_infimum_is_zero(loss: Any) -> None:
    """The axiom behind phi*(0) = 0 and D(0) = 0."""
    scores = np.concatenate([np.linspace(-40.0, 40.0, 4001), [-1e6, 1e6]])
    for y in targets(loss):
        values = [loss.value(y, score) for score in (*scores, *kinks(loss, y))]
        assert 0.0 <= min(values) <= 1e-12
        assert loss.conjugate(y, 0.0) == 0.0
        low, high = loss.dual_bounds(y)
        assert low <= 0.0 <= high


@pytest.mark.parametrize("loss", [*CASES, HardMargin(), HardMargin(2.5)], ids=repr)
def test_margin_is_where_a_classification_loss_ends(loss: Any) -> None:
    if loss.task == "regression":
        assert math.isnan(loss.margin)
        return
    for y in (-1.0, 1.0):
        if math.isinf(loss.margin):
            assert loss.value(y, y * 700.0) > 0.0
        else:
            assert loss.value(y, y * loss.margin) == loss.value(y, y * (loss.margin + 1.0)) == 0.0
            assert loss.value(y, y * (loss.margin - 1e-6)) > 0.0


def test_the_hard_margin_is_the_limit_of_the_hinge_alone() -> None:
    assert Hinge(2.5).hard_margin == HardMargin(2.5)
    assert [name for name, cls in LOSSES.items() if cls().hard_margin is not None] == ["hinge"]
    assert HardMargin().hard
    assert not any(cls().hard for cls in LOSSES.values())
    assert [name for name, cls in LOSSES.items() if cls().quadratic] == ["squared"]


@pytest.mark.parametrize("name", LOSSES)
def test_parameters_that_must_be_positive_are_declared(name: str) -> None:
    cls = LOSSES[name]
    assert set(cls.positive) <= set(parameters_of(cls))
    for key in parameters_of(cls):
        if key in cls.positive:
            with pytest.raises(InputError, match=f"{key}=0.0 must be a positive finite number"):
                make_loss(f"{name}:{key}=0")
        else:
            assert parameters_of(make_loss(f"{name}:{key}=0")) == {key: 0.0}
