"""Joint problems of K classes: losses, bounds on rounding errors against exact arithmetic, a free bias."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import replace
from fractions import Fraction
from typing import Any

import numpy as np
import pytest
import scipy.sparse as sp
from scipy.optimize import minimize
from torture import joint as exact

from dualgap.core.bias import AugmentedBias, Bias, ExactBias, NoBias
from dualgap.core.joint.contract import mass_of
from dualgap.core.joint.losses import CrammerSinger, Multinomial, lambert
from dualgap.core.joint.problem import JointProblem
from dualgap.core.losses import joint_losses, make_loss
from dualgap.core.objective import Objective
from dualgap.core.problem import Point
from dualgap.data.chunks import FromMemory, OnDisk
from dualgap.data.sources import view
from dualgap.runtime.errors import InputError

LOSSES: list[Any] = [Multinomial(), CrammerSinger()]
FORMS: dict[str, Callable[[np.ndarray], Any]] = {
    "dense": lambda X: X,
    "float32": lambda X: X.astype(np.float32),
    "float16": lambda X: X.astype(np.float16),
    "csr": sp.csr_array,
}
BIASES: list[Bias] = [NoBias(), AugmentedBias(0.7), ExactBias()]

every_loss = pytest.mark.parametrize("loss", LOSSES, ids=lambda loss: loss.name)
every_form = pytest.mark.parametrize("form", FORMS)
every_bias = pytest.mark.parametrize("bias", BIASES, ids=lambda bias: bias.kind)


def duals(rng: Any, y: Any, K: int, sharpness: float = 1.0) -> np.ndarray:
    """Feasible dual points; a small sharpness makes for many that are 0, or all but 0."""
    n = y.size
    beta = -rng.dirichlet(np.full(K, sharpness), n)
    beta[np.arange(n), y.astype(int)] = 0.0
    beta[np.arange(n), y.astype(int)] = -beta.sum(axis=1)
    return beta


def random_case(
    loss: Any, bias: Bias, form: str = "dense", seed: int = 0, K: int = 4, size: float = 1.0, d: int = 5
) -> tuple[np.ndarray, JointProblem, Point]:
    """Rows, of which some are absent, and a random point whose weights have a size."""
    rng = np.random.default_rng(seed)
    n = 14
    X = rng.normal(size=(n, d)) * (rng.random((n, d)) < 0.7)
    X = X.astype(np.float16).astype(float)
    y = np.append(np.arange(K), rng.integers(0, K, n - K)).astype(float)
    weight = rng.choice([0.0, 0.5, 1.0, 3.7], size=n)
    weight[:K] = 1.0
    problem = JointProblem(view(FORMS[form](X), y, weight), loss, 0.03, bias, classes=K)
    b = np.zeros(K) if bias.kind == "none" else rng.normal(size=K)
    return X, problem, Point(size * rng.normal(size=(d, K)), b, duals(rng, y, K, 0.3))


def claim_of(X: np.ndarray, problem: JointProblem, point: Point) -> exact.JointClaim:
    """The numbers of a point, for exact arithmetic."""
    source = problem.source
    beta = None if point.beta is None else problem.feasible(point.beta).tolist()
    return exact.JointClaim(
        rows=[list(enumerate(row)) for row in X.tolist()],
        y=source.y.tolist(),
        weight=source.weight.tolist(),
        loss=problem.loss.name,
        parameters={},
        form="mean",
        strength=problem.lam,
        bias=problem.bias.kind,
        rho=problem.bias.rho,
        w=point.w.tolist(),
        b=np.asarray(point.b).tolist(),
        beta=beta,
        classes=problem.classes,
        **dict.fromkeys(("primal", "dual", "gap", "relative_gap", "rounding"), 0.0),
    )


def check(X: np.ndarray, problem: JointProblem, point: Point) -> Any:
    """Evaluate a point: the true values lie within the stated errors, and the certificate is proven anew."""
    found, claim = problem.evaluate(point), claim_of(X, problem, point)
    true = exact.evaluate(claim)
    assert true.dual.high <= true.primal.low
    assert true.primal.distance(Fraction(found.primal)) <= Fraction(found.primal_error)
    assert true.dual.distance(Fraction(found.dual)) <= Fraction(found.dual_error)
    told = problem.certify(point)._asdict()
    del told["form"]
    assert exact.faults(replace(claim, **told)) == []
    return found


@every_loss
@every_bias
@every_form
def test_evaluations_are_exact(loss: Any, bias: Bias, form: str) -> None:
    X, problem, point = random_case(loss, bias, form)
    found = check(X, problem, point)
    # a bound that proved nothing would be no use
    assert found.primal_error <= 1e-13 * (1.0 + abs(found.primal))
    assert found.dual_error <= 1e-13 * (1.0 + abs(found.dual) + problem.C * 400.0)
    assert found.scores == pytest.approx(X @ point.w + point.b, rel=1e-12, abs=1e-12)
    assert point.beta is not None
    share = problem.source.weight[:, None] * problem.feasible(point.beta)
    assert found.w_of_dual == pytest.approx(problem.C * (X.T @ share), rel=1e-12, abs=1e-12)
    if bias.kind == "augmented":
        z = share.sum(axis=0) / problem.total_weight
        assert found.b == pytest.approx(z / bias.strength(problem.lam), rel=1e-12)


@every_loss
@every_bias
@every_form
def test_compensated_evaluations_are_exact_and_know_more(loss: Any, bias: Bias, form: str) -> None:
    X, problem, point = random_case(loss, bias, form, d=120)
    plain, found = problem.evaluate(point), problem.evaluate(point, compensated=True)
    true = exact.evaluate(claim_of(X, problem, point))
    assert true.primal.distance(Fraction(found.primal)) <= Fraction(found.primal_error)
    assert true.dual.distance(Fraction(found.dual)) <= Fraction(found.dual_error)
    assert found.primal_error < 0.3 * plain.primal_error
    assert found.dual_error <= plain.dual_error
    assert found.w_of_dual == pytest.approx(plain.w_of_dual, rel=1e-12, abs=1e-13)
    assert found.scores == pytest.approx(plain.scores, rel=1e-12, abs=1e-12)
    without = problem.evaluate(point._replace(beta=None), compensated=True)
    assert (without.primal, without.dual) == (found.primal, 0.0)


@every_loss
@every_bias
def test_the_exact_arithmetic_notices_lies(loss: Any, bias: Bias) -> None:
    X, problem, point = random_case(loss, bias)
    told = problem.certify(point)._asdict()
    del told["form"]
    claim = replace(claim_of(X, problem, point), **told)
    assert exact.faults(claim) == []
    assert claim.beta is not None
    wrong = [[-x for x in row] for row in claim.beta]
    for change in (
        {"primal": claim.primal - 1e-9, "gap": claim.gap - 1e-9},
        {"dual": claim.dual + 1e-9, "gap": claim.gap - 1e-9},
        {"gap": 0.9 * claim.gap},
        {"rounding": 0.0},
        {"w": [[x * (1.0 + 1e-9) for x in row] for row in claim.w]},
        {"b": [x + 1e-7 * k for k, x in enumerate(claim.b)]},
        {"beta": wrong},
        {"beta": [[x * (1.0 - 1e-8) for x in row] for row in claim.beta]},
    ):
        assert exact.faults(replace(claim, **change)) != [], change  # type: ignore[arg-type]


@every_loss
@pytest.mark.parametrize("bias", [AugmentedBias(0.7), ExactBias()], ids=lambda bias: bias.kind)
@pytest.mark.parametrize("K", [2, 7])
@pytest.mark.parametrize("size", [1e-9, 30.0, 1e5])
def test_small_and_large_scores_are_as_exact(loss: Any, bias: Bias, K: int, size: float) -> None:
    X, problem, point = random_case(loss, bias, K=K, size=size, seed=3)
    check(X, problem, point)


@every_loss
def test_a_small_loss_is_known_to_a_small_relative_error(loss: Any) -> None:
    """Rows that are right by a wide margin: the loss is 1e-9 or 0, and so is its rounding."""
    X = np.eye(3)
    problem = JointProblem(view(X, np.arange(3.0)), loss, 1e-20, classes=3)
    found = check(X, problem, Point(21.0 * np.eye(3), np.zeros(3), None))
    assert found.primal < 1e-8
    assert found.primal_error < 1e-12 * found.primal


@every_loss
@every_bias
def test_the_zero_point_needs_no_pass(loss: Any, bias: Bias) -> None:
    X, problem, point = random_case(loss, bias)
    zero, told = problem.zero_point()
    found = check(X, problem, zero)
    assert told.primal == pytest.approx(found.primal, rel=1e-14)
    assert (told.dual, told.dual_error, found.dual, found.dual_error) == (0.0, 0.0, 0.0, 0.0)
    without = problem.evaluate(point._replace(beta=None))
    assert (without.dual, without.dual_error) == (0.0, 0.0)
    assert isinstance(problem, Objective)


@every_loss
def test_duals_that_are_not_feasible_prove_nothing(loss: Any) -> None:
    _, problem, point = random_case(loss, NoBias())
    assert point.beta is not None
    row, y = 3, int(problem.source.y[3])
    other = (y + 1) % problem.classes
    for wrong in (1e-9, np.nan, -1.0 - 1e-9, -np.inf):
        beta = point.beta.copy()
        beta[row, other] = wrong
        assert problem.evaluate(point._replace(beta=beta)).dual == -np.inf, wrong
    beta = point.beta.copy()
    beta[row] = 0.0
    beta[row, other] = -1.0 - 2.0**-52  # what rounding may make of 1
    assert np.isfinite(problem.evaluate(point._replace(beta=beta)).dual)
    beta[row, y] = 77.0  # never read: it is minus the sum of the others
    assert np.isfinite(problem.evaluate(point._replace(beta=beta)).dual)


def test_masses() -> None:
    assert mass_of(1, np.array([-0.25, 5.0, -0.5])) == 0.75
    assert mass_of(0, np.array([1.0, -0.6, -0.4 - 2.0**-52])) == 1.0
    assert mass_of(0, np.array([1.0, -0.6, -0.5])) == np.inf
    assert mass_of(0, np.array([1.0, 0.1, -0.5])) == np.inf


@every_loss
def test_losses_keep_their_contract(loss: Any) -> None:
    """Convex, the infimum 0, no smaller than s_k - s_y, gradients that are slopes, conjugates that are."""
    rng = np.random.default_rng(1)
    assert loss.task == "classes"
    for _ in range(40):
        K = int(rng.integers(2, 6))
        s, y, out = 3.0 * rng.normal(size=K), int(rng.integers(K)), np.zeros(K)

        def value(scores: np.ndarray, y: int = y) -> float:
            return float(loss.row_loss(y, scores, 0.0)[0])

        assert value(s) >= max(s - s[y]) - 1e-12
        assert value(s + 2.5) == pytest.approx(value(s), rel=1e-12, abs=1e-12)
        loss.row_gradient(y, s, out)
        other = s + rng.normal(size=K)
        assert value(other) >= value(s) + out @ (other - s) - 1e-12  # a subgradient
        beta = -out
        mass = mass_of(y, beta)
        assert mass == pytest.approx(beta[y], abs=1e-15)
        assert loss.row_dual(y, beta, mass) == pytest.approx(value(s) + beta @ s, abs=1e-12)  # Fenchel, Young
        away = -100.0 * np.eye(K)[y] * -1.0
        assert value(away) == pytest.approx(0.0, abs=1e-12)
        assert value(np.zeros(K)) == pytest.approx(loss.row_at_zero(K), rel=1e-15)
        # the slopes at all points nearby add up to no more than is said
        for off in (1e-3, 0.05, 1.0):
            bound = loss.row_loss(y, s, off)[1]
            near = s + rng.uniform(-off, off, K)
            loss.row_gradient(y, near, out)
            assert np.abs(out).sum() <= bound * (1 + 1e-12)


@every_loss
@pytest.mark.parametrize("curvature", [0.0, 1e-9, 0.3, 5.0, 1e4])
def test_dual_steps_are_maxima(loss: Any, curvature: float) -> None:
    rng = np.random.default_rng(2)
    for _ in range(30):
        K = int(rng.integers(2, 6))
        s, y = 2.0 * rng.normal(size=K), int(rng.integers(K))
        beta = duals(rng, np.array([float(y)]), K)[0]
        p, before = np.empty(K), np.eye(K)[y] - beta
        loss.row_step(y, s, beta, curvature, p)
        assert p.sum() == pytest.approx(1.0, abs=1e-12)
        assert p.min() >= 0.0

        def gained(q: np.ndarray, y: int = y, s: np.ndarray = s, before: np.ndarray = before) -> float:
            row = np.eye(q.size)[y] - q
            value = loss.row_dual(y, row, min(q.sum() - q[y], 1.0))
            return float(value + s @ q - curvature / 2 * np.square(q - before).sum())

        best = gained(p)
        for q in [*rng.dirichlet(np.ones(K), 10), before]:
            for t in (1e-4, 0.1, 1.0):
                assert gained((1 - t) * p + t * q) <= best + 1e-12 * (1.0 + abs(best))


def test_lambert() -> None:
    for z in (-700.0, -30.0, -29.0, -3.0, 0.0, 0.9, 1.1, 20.0, 1e6):
        x = lambert(z)
        assert np.log(x) + x == pytest.approx(z, rel=1e-13, abs=1e-13)


@every_loss
def test_duals_are_balanced_for_a_free_bias(loss: Any) -> None:
    _, problem, point = random_case(loss, ExactBias())
    assert point.beta is not None
    found = problem.feasible(point.beta)
    z = problem.source.weight @ found / problem.total_weight
    assert np.abs(z).max() < 1e-15
    assert np.shares_memory(problem.feasible(found), found)  # it is as it should be
    assert np.abs(found.sum(axis=1)).max() < 1e-15


@every_loss
def test_intercepts_stay_within_their_bound(loss: Any) -> None:
    """The bound on b_j - b_y holds at the optimum, and where P is as at 0, far away from it."""
    rng = np.random.default_rng(4)
    for size in (0.3, 5.0):
        X = size * rng.normal(size=(30, 3))
        y = np.append(np.arange(3), rng.choice(3, 27, p=[0.9, 0.05, 0.05])).astype(float)
        problem = JointProblem(view(X, y), loss, 0.01, ExactBias(), classes=3)

        def value(point: np.ndarray, problem: JointProblem = problem) -> float:
            return problem.evaluate(Point(point[:9].reshape(3, 3), point[9:], None)).primal

        best: Any = minimize(value, np.zeros(12), method="L-BFGS-B").x
        for k in (0, 1):
            for sign in (1.0, -1.0):
                way = np.zeros(12)
                way[9 + k] = sign
                low, high = 0.0, 1e4
                for _ in range(25):  # how far that intercept goes before the objective is that at 0
                    middle = 0.5 * (low + high)
                    inside = value(best + middle * way) <= problem.value_at_zero
                    low, high = (middle, high) if inside else (low, middle)
                b = (best + low * way)[9:]
                assert b.max() - b.min() <= problem.intercept_bound


def test_a_class_without_rows_has_no_free_intercept() -> None:
    source = view(np.eye(4), np.array([0.0, 1.0, 0.0, 2.0]), np.array([1.0, 1.0, 1.0, 0.0]))
    problem = JointProblem(source, Multinomial(), 0.1, ExactBias(), classes=3)
    assert problem.intercept_bound == np.inf
    with pytest.raises(InputError, match="class number 2 of 3 has no row of positive weight"):
        problem.check_bounded()
    replace(problem, bias=AugmentedBias()).check_bounded()


@every_loss
@pytest.mark.parametrize("form", ["dense", "csr"])
def test_neither_threads_nor_streams_change_a_certificate(loss: Any, form: str) -> None:
    rng = np.random.default_rng(5)
    X = rng.normal(size=(2600, 400))
    X = FORMS[form](X * (rng.random(X.shape) < 0.5) if form == "csr" else X)
    y = rng.integers(0, 3, 2600).astype(float)
    if form == "csr":
        X = sp.vstack([X] * 3, format="csr")
        y = np.tile(y, 3)
    point = Point(0.1 * rng.normal(size=(400, 3)), rng.normal(size=3), duals(rng, y, 3))
    values = []
    for threads in (1, 3):
        source = view(X, y, threads=threads)
        assert len(source._edges) > 2
        problem = JointProblem(source, loss, 1e-3, ExactBias(), classes=3)
        values.append(problem.evaluate(point))
        assert problem.mean_loss(point.w, point.b) == pytest.approx(
            values[0].primal - 0.5e-3 * np.square(point.w).sum(), rel=1e-12
        )
    for found in values[1:]:
        assert found[:4] == values[0][:4]
        assert np.array_equal(found.w_of_dual, values[0].w_of_dual)
    # from disk, a chunk at a time
    bias = AugmentedBias(0.5)
    here = JointProblem(view(X, y), loss, 1e-3, bias, classes=3).evaluate(point)
    chunks = OnDisk(FromMemory(view(X, y)), memory_budget=1_000_000)
    there = JointProblem(chunks, loss, 1e-3, bias, classes=3).evaluate(point)
    assert abs(here.primal - there.primal) <= here.primal_error + there.primal_error
    assert abs(here.dual - there.dual) <= here.dual_error + there.dual_error
    assert there.scores.shape == (0, 3)


def test_targets_and_shapes_are_checked() -> None:
    with pytest.raises(InputError, match=r"y\[1\] is 3; the multinomial loss needs .*, 0 to 2"):
        JointProblem(view(np.eye(3), np.array([0.0, 3.0, 1.0])), Multinomial(), 0.1, classes=3)
    problem = JointProblem(view(np.eye(3), np.array([0.0, 2.0, 1.0])), Multinomial(), 0.1, classes=3)
    with pytest.raises(InputError, match="does not belong to 3 rows of 3 columns and 3 classes"):
        problem.evaluate(Point(np.zeros(3), np.zeros(3), None))
    with pytest.raises(InputError, match=r"b has shape \(\)"):
        problem.evaluate(Point(np.zeros((3, 3)), 0.0, None))


def test_joint_losses_have_names() -> None:
    assert {name: make_loss(name) for name in joint_losses()} == {
        "multinomial": Multinomial(),
        "crammer-singer": CrammerSinger(),
    }
    assert make_loss("softmax") == make_loss("cross_entropy") == Multinomial()
    assert make_loss(CrammerSinger()) == make_loss("crammer_singer")
    with pytest.raises(InputError, match="multinomial"):
        make_loss("multinominal")
