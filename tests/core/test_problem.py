"""Certificates: what they say against exact arithmetic, and attempts to make them lie."""

from __future__ import annotations

import dataclasses
import pickle
from collections.abc import Callable
from fractions import Fraction
from functools import cached_property
from pathlib import Path
from typing import Any

import numpy as np
import pytest
import scipy.sparse as sp
from hypothesis import given, settings
from hypothesis import strategies as st

from dualgap.core.bias import AugmentedBias, Bias, Centred, ExactBias, NoBias
from dualgap.core.bounds import losses_beyond
from dualgap.core.losses import (
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
)
from dualgap.core.objective import Objective
from dualgap.core.problem import ABSOLUTE_SHARE, Evaluation, Point, Problem
from dualgap.data.chunks import FromMemory, OnDisk
from dualgap.data.features import Expanded, Poly2, expanded
from dualgap.data.formats.arrow import writing as store_writing
from dualgap.data.formats.feeds import StoreFeed
from dualgap.data.sources import Source, View, view
from dualgap.files import ChunkFeed, Store, write_store
from dualgap.runtime.errors import InputError, InternalError
from support import exact
from support.problems import small_problem

LOSSES: list[Any] = [
    Hinge(),
    SmoothHinge(0.5),
    SquaredHinge(),
    Logistic(),
    ModifiedHuber(),
    Squared(),
    Huber(0.7),
    Absolute(),
    Quantile(0.2),
    EpsilonInsensitive(0.1),
    SquaredEpsilonInsensitive(0.1),
]
FORMS: dict[str, Callable[[np.ndarray], Any]] = {
    "dense64": lambda X: X,
    "dense32": lambda X: X.astype(np.float32),
    "csr64": sp.csr_matrix,
    "csr32": lambda X: sp.csr_matrix(X.astype(np.float32)),
}
BIASES: list[Bias] = [NoBias(), AugmentedBias(0.7), Centred(-1.3, 0.2)]

every_loss = pytest.mark.parametrize("loss", LOSSES, ids=lambda loss: loss.name)
every_form = pytest.mark.parametrize("form", FORMS.values(), ids=FORMS.keys())
every_bias = pytest.mark.parametrize("bias", BIASES, ids=lambda bias: bias.kind)
# without compilation NumPy warns of the infinities that some tests are about
plain_python_warns = pytest.mark.filterwarnings("ignore::RuntimeWarning")


def feasible(loss: Any, y: Any, share: Any) -> np.ndarray:
    """Betas inside the box: a share of it, 0 to 1, for every row."""
    reach = min(loss.lipschitz, 20.0)
    if loss.task == "classification":
        return np.asarray(y) * np.minimum(np.asarray(share) * reach, reach)
    low, high = np.clip(loss.dual_bounds(0.0), -reach, reach)
    return np.clip((2.0 * np.asarray(share) - 1.0) * reach, low, high)


def random_case(
    loss: Any, bias: Bias, form: Callable[[np.ndarray], Any], seed: int = 0, n: int = 12, d: int = 5
) -> tuple[Any, Problem, Point]:
    rng = np.random.default_rng(seed)
    X = form(rng.normal(size=(n, d)) * (rng.random((n, d)) < 0.7))
    y = np.where(rng.random(n) < 0.5, 1.0, -1.0) if loss.task == "classification" else rng.normal(size=n)
    weight = rng.choice([0.0, 0.5, 1.0, 3.7], size=n)
    weight[0] = 1.0
    problem = Problem(view(X, y, weight), loss, 0.03, bias)
    b = 0.0 if bias.kind == "none" else 0.4
    return X, problem, Point(rng.normal(size=d), b, feasible(loss, y, rng.random(n)))


def check(X: Any, problem: Problem, point: Point, source: Source | None = None) -> Evaluation:
    """Evaluate a point; the true values must lie within the stated errors, and so must all that the
    certificate says.

    ``source``: where the rows come from, if not from the problem's own.
    """
    asked = problem if source is None else dataclasses.replace(problem, source=source)
    found = asked.evaluate(point)
    primal, dual = exact.primal(X, problem, point.w, point.b), exact.dual(X, problem, point.beta)
    assert dual is not None
    assert dual <= primal
    assert abs(Fraction(found.primal) - primal) <= Fraction(found.primal_error)
    assert abs(Fraction(found.dual) - dual) <= Fraction(found.dual_error)
    for form, factor in (("mean", Fraction(1)), ("J", 1 / Fraction(problem.lam))):
        certificate = asked.in_form(asked.certify(point), form)  # type: ignore[arg-type]
        slack = 1 + Fraction(2.0**-50)  # for the rounding of the two sums below themselves
        assert Fraction(certificate.gap) * slack >= (primal - dual) * factor
        assert abs(Fraction(certificate.primal) - primal * factor) <= Fraction(certificate.rounding) * slack
        assert abs(Fraction(certificate.dual) - dual * factor) <= Fraction(certificate.rounding) * slack
        if certificate.dual > 0 and np.isfinite(certificate.relative_gap) and found.dual > found.dual_error:
            assert Fraction(certificate.relative_gap) * slack * dual >= primal - dual
    return found


@pytest.mark.slow
@every_loss
@every_bias
@every_form
def test_evaluations_are_exact(loss: Any, bias: Bias, form: Any) -> None:
    X, problem, point = random_case(loss, bias, form)
    found = check(X, problem, point)
    # a bound that proved nothing would be no use
    assert found.primal_error <= 1e-13 * (1.0 + abs(found.primal))
    assert found.dual_error <= 1e-13 * (1.0 + abs(found.dual) + problem.C * 400.0)
    dense = X.toarray() if sp.issparse(X) else X
    share = problem.source.weight * point.beta
    assert found.scores == pytest.approx(dense.astype(float) @ point.w + point.b, rel=1e-12, abs=1e-12)
    assert found.w_of_dual == pytest.approx(problem.C * (share @ dense.astype(float)), rel=1e-12, abs=1e-12)
    strength = bias.strength(problem.lam)
    expected = bias.centre + share.sum() / problem.total_weight / strength
    assert found.b == pytest.approx(expected, rel=1e-12)


@every_loss
@every_bias
def test_no_beta_is_the_zero_beta_and_the_zero_point_needs_no_pass(loss: Any, bias: Bias) -> None:
    X, problem, point = random_case(loss, bias, FORMS["csr64"])
    none, zero = (problem.evaluate(point._replace(beta=beta)) for beta in (None, np.zeros(problem.source.n)))
    assert none[:4] == zero[:4]
    assert none.dual == 0.0
    origin, told = problem.zero_point()
    found = check(X, problem, origin)
    assert told.primal == pytest.approx(found.primal, abs=told.primal_error + found.primal_error)
    assert abs(Fraction(told.primal) - exact.primal(X, problem, origin.w, 0.0)) <= Fraction(told.primal_error)
    assert (told.dual, told.dual_error, told.b) == (0.0, 0.0, found.b)
    assert problem.value_at_zero == pytest.approx(exact_mean_loss(problem), rel=1e-14)


def exact_mean_loss(problem: Problem) -> float:
    total = sum(
        Fraction(c) * exact.value(problem.loss, y, Fraction(0))
        for y, c in zip(problem.source.y.tolist(), problem.source.weight.tolist(), strict=True)
    )
    return float(total / sum(map(Fraction, problem.source.weight.tolist())))


@every_loss
@every_bias
def test_weight_zero_is_no_row_and_weight_two_is_two_rows(loss: Any, bias: Bias) -> None:
    rng = np.random.default_rng(1)
    _, problem, point = random_case(loss, bias, FORMS["dense64"], n=10)
    X, y = problem.source.rows.matrix, problem.source.y  # type: ignore[attr-defined]
    weight = np.array([2.0, 1.0, 0.0, 1.0, 2.0, 0.0, 1.0, 1.0, 2.0, 1.0])
    times = weight.astype(int)
    order = rng.permutation(int(times.sum()))
    beta = point.beta.copy()  # type: ignore[union-attr]
    beta[times == 0] = 1e9  # outside of every box, and of no account
    whole = Problem(view(X, y, weight), loss, 0.03, bias)
    spread = [np.repeat(part, times, axis=0)[order] for part in (X, y, beta)]
    for lam in (0.03, 1.0 / (3.0 * whole.total_weight)):  # at fixed lam, and at C = 3
        ours = dataclasses.replace(whole, lam=lam)
        theirs = Problem(view(spread[0], spread[1]), loss, lam, bias)
        assert (ours.C, ours.total_weight, ours.epoch_size) == (theirs.C, theirs.total_weight, 8)
        left, right = (
            ours.evaluate(point._replace(beta=beta)),
            theirs.evaluate(point._replace(beta=spread[2])),
        )
        assert left.primal == pytest.approx(right.primal, rel=1e-14)
        assert left.dual == pytest.approx(right.dual, rel=1e-13, abs=1e-14)
        assert left.w_of_dual == pytest.approx(right.w_of_dual, rel=1e-12, abs=1e-13)
        assert ours.value_at_zero == pytest.approx(theirs.value_at_zero, rel=1e-14)
        kept = times > 0
        absent = Problem(view(X[kept], y[kept], weight[kept]), loss, lam, bias)
        alone = absent.evaluate(point._replace(beta=beta[kept]))
        assert (alone.primal, alone.dual) == (left.primal, left.dual)


def test_c_form_is_the_textbook_objective() -> None:
    X, problem, point = random_case(Hinge(), NoBias(), FORMS["dense64"])
    margins = 1.0 - problem.source.y * (X @ point.w)
    textbook = 0.5 * point.w @ point.w + problem.C * problem.source.weight @ np.maximum(margins, 0.0)
    mean = problem.certify(point)
    in_c = problem.in_form(mean, "J")
    assert (mean.form, in_c.form) == ("mean", "J")
    assert in_c.primal == pytest.approx(textbook, rel=1e-14)
    assert in_c.dual == pytest.approx(mean.dual / problem.lam, rel=1e-15)
    assert in_c.gap == pytest.approx(mean.gap / problem.lam, rel=1e-12)
    assert in_c.relative_gap == mean.relative_gap
    assert problem.in_form(in_c, "J") == in_c
    assert problem.in_form(in_c, "mean").primal == pytest.approx(mean.primal, rel=1e-15)
    assert problem.lam * problem.C * problem.source.weight.sum() == pytest.approx(1.0, rel=1e-15)


def test_the_relative_gap() -> None:
    _, problem, _ = random_case(Hinge(), NoBias(), FORMS["dense64"])
    good = problem.certificate(1.5, 0.0, 1.2, 0.0)
    assert (good.gap, good.relative_gap) == (pytest.approx(0.3), pytest.approx(0.25))
    careful = problem.certificate(1.5, 0.01, 1.2, 0.02)
    assert careful.rounding == pytest.approx(0.03)
    assert careful.gap == pytest.approx(0.33)
    assert careful.relative_gap == pytest.approx(0.33 / 1.18)
    for dual, error in ((0.0, 0.0), (-2.0, 0.0), (1e-9, 2e-9)):  # not surely positive: nothing is known
        assert problem.certificate(1.5, 0.0, dual, error).relative_gap == np.inf
        assert problem.certificate(1e-12, 0.0, dual, error).relative_gap == np.inf
    assert problem.certificate(1e-9, 2e-9, 0.0, 0.0).relative_gap == np.inf  # the optimum may be 1e-30
    assert problem.certificate(0.0, 0.0, 0.0, 0.0).relative_gap == 0.0
    assert problem.certificate(1.5, 0.0, -np.inf, 0.0).relative_gap == np.inf
    assert problem.certificate(np.inf, 0.0, 1.0, 0.0).relative_gap == np.inf
    with pytest.raises(InternalError, match="weak duality broken"):
        problem.certificate(1.0, 1e-9, 1.0 + 1e-6, 1e-9)


def test_an_optimum_of_zero_is_certified() -> None:
    problem = Problem(view(np.ones((3, 1)), np.zeros(3)), Squared(), 1.0)
    certificate = problem.certificate(*problem.zero_point()[1][:4])
    assert (certificate.primal, certificate.dual, certificate.gap, certificate.relative_gap) == (
        0.0,
        0.0,
        0.0,
        0.0,
    )


@pytest.mark.parametrize(
    ("loss", "targets", "bias", "zero"),
    [
        (Hinge(), [1.0, 1.0, 1.0], ExactBias(), True),
        (Logistic(), [-1.0, -1.0, -1.0], ExactBias(), True),  # 0 is the infimum, which no model has
        (Hinge(), [1.0, 1.0, 1.0], AugmentedBias(), False),
        (Hinge(), [1.0, -1.0, 1.0], ExactBias(), False),
        (Squared(), [0.1, 0.1, 0.1], ExactBias(), True),
        (Squared(), [0.1, 0.1, 0.2], ExactBias(), False),
        (Squared(), [0.1, 0.1, 0.1], NoBias(), False),
        (EpsilonInsensitive(0.5), [1.01, 1.5, 2.0], ExactBias(), True),
        (EpsilonInsensitive(0.1), [0.1, 0.2, 0.30000000000000004], ExactBias(), False),  # by an ulp
        (EpsilonInsensitive(0.5), [1.0, 1.5, 2.1], ExactBias(), False),
        (EpsilonInsensitive(0.5), [0.1, -0.4, 0.0], NoBias(), True),
    ],
)
def test_a_floor_only_where_the_optimum_is_zero(
    loss: Any, targets: list[float], bias: Any, zero: bool
) -> None:
    """A row of weight 0 does not count. Only where the optimum is 0 is P(0) a yardstick for a gap."""
    X, y, weight = np.ones((4, 2)), np.array([*targets, -targets[0]]), np.array([1.0, 1.0, 1.0, 0.0])
    problem = Problem(view(X, y, weight), loss, 1.0, bias)
    share = ABSOLUTE_SHARE * problem.value_at_zero
    assert problem.gap_floor == (share if zero else None)
    stated = problem.certificate(1e-3, 1e-9, 0.0, 0.0)
    assert stated.relative_gap == (pytest.approx(stated.gap / share) if zero and share else np.inf)
    assert problem.certificate(1e-9, 1e-9, 0.0, 0.0).relative_gap == (0.0 if zero else np.inf)
    assert problem.with_bias(NoBias()).gap_floor == (0.0 if zero and not share else None)
    unregularised = dataclasses.replace(problem, lam=0.0)
    assert unregularised.certificate(0.0, 1e-15, 0.0, 0.0).relative_gap == 0.0
    if not zero:
        assert unregularised.certificate(1e-9, 1e-15, 0.0, 0.0).relative_gap == np.inf


# ---- attacks
# -------------------------------------------------------------------------------------------------------

NASTY = (
    0.0,
    1.0,
    -1.0,
    1.0 + 2.0**-52,
    1.0 - 2.0**-53,
    3.0,
    -7.5,
    0.1,
    1e12,
    -1e12,
    1e-12,
    -1e-12,
    1e5,
    1.0 / 3.0,
)
anything = st.one_of(st.floats(-4.0, 4.0, width=32), st.floats(-1e12, 1e12))
entry = st.one_of(st.sampled_from(NASTY), anything.map(lambda v: v if abs(v) > 1e-30 else 0.0))
power = st.floats(-8.0, 8.0).map(lambda exponent: 10.0**exponent)


@st.composite
def cases(draw: st.DrawFn, loss: Any) -> tuple[Any, Problem, Point]:
    """Small problems with empty and repeated rows, zero columns, all scales, extreme C; beta anywhere in its
    box.
    """
    n, d = draw(st.integers(1, 6)), draw(st.integers(1, 4))
    X = np.array(draw(st.lists(entry, min_size=n * d, max_size=n * d))).reshape(n, d)
    X *= draw(st.sampled_from([1.0, 1e-12, 1e12]))
    if n > 1:
        X[draw(st.integers(0, n - 1))] = X[0] * draw(st.sampled_from([0.0, 1.0, -1.0]))
    X[:, draw(st.integers(0, d - 1))] *= draw(st.sampled_from([0.0, 1.0, 1e-12]))
    if loss.task == "classification":
        y = np.array(draw(st.lists(st.sampled_from([-1.0, 1.0]), min_size=n, max_size=n)))
    else:
        y = np.array(draw(st.lists(st.one_of(entry, st.floats(-1e10, 1e10)), min_size=n, max_size=n)))
    weight = np.array(
        draw(st.lists(st.sampled_from([1.0, 0.0, 2.0, 1e-6, 1e6, 0.1]), min_size=n, max_size=n))
    )
    weight[draw(st.integers(0, n - 1))] = 1.0
    X = FORMS[draw(st.sampled_from(sorted(FORMS)))](X)
    kinds = st.sampled_from(["none", "augmented", "centred"])
    bias = {
        "none": NoBias(),
        "augmented": AugmentedBias(draw(power)),
        "centred": Centred(draw(entry), draw(power)),
    }[draw(kinds)]
    problem = Problem(view(X, y, weight), loss, draw(power), bias)
    w = np.array(draw(st.lists(entry, min_size=d, max_size=d))) * draw(st.sampled_from([1.0, 1e-12, 1e12]))
    b = 0.0 if bias.kind == "none" else draw(entry)
    share = draw(
        st.lists(st.one_of(st.sampled_from([0.0, 0.5, 1.0]), st.floats(0.0, 1.0)), min_size=n, max_size=n)
    )
    return X, problem, Point(w, b, feasible(loss, y, share))


@pytest.mark.slow
@every_loss
def test_weak_duality_and_exactness_whatever_the_problem(loss: Any) -> None:
    @settings(derandomize=True, deadline=None, max_examples=60, database=None)
    @given(cases(loss))
    def holds(case: tuple[Any, Problem, Point]) -> None:
        check(*case)

    holds()


def opposite_rows(rng: np.random.Generator, loss: Any) -> tuple[np.ndarray, np.ndarray, Point, float]:
    """Rows in pairs x and -x (plus a little), the same beta on both, and a C of 1e8: w(beta) cancels to
    dust.
    """
    half = rng.normal(size=(10, 4))
    X = np.concatenate([half, -half * (1.0 + 1e-15 * rng.integers(0, 3, size=half.shape))])
    y = np.ones(20) if loss.task == "classification" else rng.normal(size=20)
    share = np.tile(rng.random(10), 2)
    return X, y, Point(rng.normal(size=4) * 1e4, 0.0, feasible(loss, y, share)), 1e-8 / 20


def wild_columns(rng: np.random.Generator, loss: Any) -> tuple[np.ndarray, np.ndarray, Point, float]:
    """Columns of 1e12 next to columns of 1e-12, with coefficients that make up for it."""
    scale = 10.0 ** rng.choice([-12.0, 0.0, 12.0], size=6)
    X = rng.normal(size=(9, 6)) * scale
    y = np.where(rng.random(9) < 0.5, 1.0, -1.0) if loss.task == "classification" else rng.normal(size=9)
    return X, y, Point(rng.normal(size=6) / scale, 0.0, feasible(loss, y, rng.random(9))), 1e-3


def at_the_kink(rng: np.random.Generator, loss: Any) -> tuple[np.ndarray, np.ndarray, Point, float]:
    """Terms of 1e8 that cancel to a score at a kink of the loss, which may fall on either side; next to no
    ridge.
    """
    width = {"huber": 0.7, "epsilon-insensitive": 0.1, "squared-epsilon-insensitive": 0.1}.get(loss.name, 0.0)
    X = rng.normal(size=(30, 4)) * 1e16
    w = rng.uniform(1.0, 2.0, size=4) * 1e-8
    y = np.where(rng.random(30) < 0.5, 1.0, -1.0)
    target = y * rng.choice([1.0, 0.5, -1.0], size=30) if loss.task == "classification" else y + width
    X[:, 3] = (target - X[:, :3] @ w[:3]) / w[3]
    return X, y, Point(w, 0.0, feasible(loss, y, rng.random(30))), 1e-20


def long_rows(rng: np.random.Generator, loss: Any) -> tuple[np.ndarray, np.ndarray, Point, float]:
    """600 terms of alternating sign that nearly cancel, in every score."""
    X = (
        np.tile([1.0, -1.0], 300)
        * (1.0 + 1e-13 * rng.normal(size=(3, 600)))
        * np.repeat(rng.uniform(1, 1e6, 300), 2)
    )
    y = np.array([1.0, -1.0, 1.0]) if loss.task == "classification" else rng.normal(size=3)
    return X, y, Point(np.ones(600) / 3.0, 0.0, feasible(loss, y, rng.random(3))), 1e-4


def many_rows(rng: np.random.Generator, loss: Any) -> tuple[np.ndarray, np.ndarray, Point, float]:
    """400 rows whose shares of w(beta) alternate in sign."""
    X = np.tile([[1.0], [-1.0]], (200, 2)) * np.array([1.0, 1e8]) * (1.0 + 1e-12 * rng.normal(size=(400, 2)))
    y = np.ones(400) if loss.task == "classification" else rng.normal(size=400)
    return X, y, Point(np.array([0.1, 1e-8]), 0.0, feasible(loss, y, np.full(400, 0.9))), 1e-6


def huge_targets(rng: np.random.Generator, loss: Any) -> tuple[np.ndarray, np.ndarray, Point, float]:
    """Targets (or scores) of 1e10, met to within a few hundred."""
    X = rng.normal(size=(10, 3))
    w = rng.normal(size=3) * 1e10
    y = np.sign(X @ w) if loss.task == "classification" else X @ w + 100.0 * rng.normal(size=10)
    return X, y, Point(w, 0.0, feasible(loss, y, rng.random(10))), 1e-12


ATTACKS = (opposite_rows, wild_columns, at_the_kink, long_rows, many_rows, huge_targets)


@every_loss
@pytest.mark.parametrize("attack", ATTACKS, ids=lambda attack: attack.__name__)
def test_attacks_on_the_rounding_bounds(loss: Any, attack: Any) -> None:
    X, y, point, lam = attack(np.random.default_rng(0), loss)
    check(X, Problem(view(X, y), loss, lam), point)
    X, y, point, lam = attack(np.random.default_rng(1), loss)
    check(
        X,
        Problem(view(sp.csr_matrix(X), y), loss, lam, AugmentedBias(30.0)),
        point._replace(b=-1.0 / 3.0),
    )


def test_the_norm_of_w_and_the_change_of_form_stay_within_the_bound() -> None:
    """Found by search: every rounding on the way from w to J goes up."""
    w = np.array([0.5000000989851946, 0.5000000724509404, 0.5000001001041713, 0.5000000338123438])
    X = np.array([[1.0, 0.0, 0.0, 0.0]])
    bias = Centred(0.0, 1.7389168904587218e-10)
    problem = Problem(view(X, [1.0]), Hinge(0.0), 1.0000046706702161, bias)
    check(X, problem, Point(w, 1.0, np.zeros(1)))


@pytest.mark.parametrize(
    ("value", "columns", "weight", "lam", "beta"),
    [
        (1e-8, 2000, 1e-154, 1.0, 1.0),
        (1e-140, 1, 1.0, 1e-298, 1e-25),
        (1.0, 1, 3e-310, 1.0, 0.3),
        (1.0, 1, 1e-100, 1e-90, 1e-98),
        (1e-70, 900, 1e-95, 1e-99, 1e-20),
    ],
    ids=["tiny weights", "tiny values", "subnormal weights", "tiny moment", "tiny everything"],
)
def test_no_square_vanishes_unnoticed(
    value: float, columns: int, weight: float, lam: float, beta: float
) -> None:
    """Numbers whose squares underflow are refused, or the bound covers what is lost."""
    X = np.full((1, columns), value)
    try:
        problem = Problem(view(X, [1.0], [weight]), Hinge(), lam)
    except InputError:
        return
    check(X, problem, Point(np.zeros(columns), 0.0, np.array([beta])))


@pytest.mark.parametrize("cls", [EpsilonInsensitive, SquaredEpsilonInsensitive])
def test_targets_that_cancel_against_epsilon(cls: Any) -> None:
    rng = np.random.default_rng(0)
    for _ in range(20):
        X = rng.normal(size=(4, 2))
        y = rng.choice([-1.0, 1.0], size=4) * (1e10 + rng.normal(size=4))
        problem = Problem(view(X, y), cls(1e10), 1e6)
        check(X, problem, Point(1e-4 * rng.normal(size=2), 0.0, np.sign(y) * rng.random(4)))


def in_parts(source: Any, edges: list[int], threads: int = 1) -> View:
    """The same source, evaluated in parts that begin at these rows, however few they are."""
    parts = dataclasses.replace(source, threads=threads)
    vars(parts)["_edges"] = edges  # where the cached property keeps them
    return parts


@pytest.mark.slow
@pytest.mark.parametrize(
    ("lam", "bias"),
    [(1e6, NoBias()), (1e-6, NoBias()), (1e6, Centred(-1e3, 1.0))],
    ids=["losses", "ridge", "balance"],
)
@pytest.mark.parametrize("parts", [1, 2, 1200])
def test_small_terms_add_up(lam: float, bias: Bias, parts: int) -> None:
    """Weights so small that each alone vanishes in the sum, and together are a thousand units of it."""
    weight = np.full(1200, 0.9 * 2.0**-33)
    weight[600] = 2.0**20
    X, ones = np.ones((1200, 1)), np.ones(1200)
    source = in_parts(view(X, ones, weight), [1200 * k // parts for k in range(parts + 1)])
    check(X, Problem(source, Hinge(), lam, bias), Point(np.zeros(1), bias.centre, ones))


def one_by_one(X: Any, y: Any, weight: Any, folder: Path) -> ChunkFeed:
    return ChunkFeed(lambda: ((X[i : i + 1], y[i : i + 1], weight[i : i + 1]) for i in range(len(y))))


def stored(X: Any, y: Any, weight: Any, folder: Path) -> StoreFeed:
    file = folder / "rows.arrow"
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(store_writing, "BATCH", 1)  # rows are looked at one by one
        write_store(file, X, y, weight, keep_order=True)
    return StoreFeed(Store(file))


FEEDS: dict[str, Callable[..., Any]] = {
    "chunks": one_by_one,
    "memory": lambda X, y, weight, folder: FromMemory(view(X, y, weight), rows=1),
    "store": stored,
    "expanded": lambda *rows: Expanded(one_by_one(*rows), Poly2(3)),
}


def wild_weights(rng: np.random.Generator, n: int) -> list[np.ndarray]:
    """Ones that vanish beside the first weight unless they are summed with care; and weights of all sizes."""
    heavy = np.ones(n)
    heavy[0] = 2.0**53
    return [heavy, 2.0 ** rng.uniform(-60.0, 60.0, size=n)]


@pytest.mark.slow
@every_loss
@pytest.mark.parametrize("kind", FEEDS)
def test_rows_from_a_feed_are_evaluated_as_exactly(kind: str, loss: Any, tmp_path: Path) -> None:
    rng = np.random.default_rng(0)
    n = 100
    X = rng.normal(size=(n, 2))
    y = np.where(rng.random(n) < 0.5, 1.0, -1.0) if loss.task == "classification" else rng.normal(size=n)
    for weight, bias in zip(wild_weights(rng, n), (NoBias(), Centred(-1.3, 0.2)), strict=True):
        source = OnDisk(FEEDS[kind](X, y, weight, tmp_path), memory_budget=None)
        rows = expanded(X, Poly2(3)) if kind == "expanded" else X
        problem = Problem(view(rows, y, weight), loss, 1.0, bias)
        total = sum(map(Fraction, weight.tolist()))
        for found in (source, problem.source):
            assert abs(Fraction(found.total_weight) - total) <= total * Fraction(2.0**-52)
        w = rng.normal(size=rows.shape[1])
        point = Point(w, float(bias.centre), feasible(loss, y, rng.random(n)))
        check(rows, problem, point, source)
        for asked in (problem, dataclasses.replace(problem, source=source)):
            origin, told = asked.zero_point()
            assert abs(Fraction(told.primal) - exact.primal(rows, problem, origin.w, 0.0)) <= Fraction(
                told.primal_error
            )


@pytest.mark.slow
def test_the_heaviest_row_does_not_hide_the_others() -> None:
    """P(0) = 1, and the bound from all duals at 1 is just below: a sum of weights without the ones would
    exceed it.
    """
    n = 2001
    X, y, weight = np.full((n, 1), 1e-9), np.ones(n), np.ones(n)
    weight[0] = 2.0**53
    problem = Problem(OnDisk(one_by_one(X, y, weight, Path()), memory_budget=None), Hinge(), 1.0)
    found = problem.evaluate(Point(np.zeros(1), 0.0, y))
    assert found.dual - found.dual_error <= 1.0
    assert problem.zero_point()[1].primal == 1.0


@pytest.mark.slow
@every_loss
@every_bias
def test_certificates_hold_for_the_c_of_a_caller(loss: Any, bias: Bias) -> None:
    """1 / (lam N) is that C up to a few units, and the bounds allow for them."""
    rng = np.random.default_rng(5)
    for _ in range(4):
        X, problem, point = random_case(
            loss, AugmentedBias() if bias.kind == "centred" else bias, FORMS["dense64"], n=8
        )
        C = float(10.0 ** rng.uniform(-3.0, 3.0))
        weight = 2.0 ** rng.uniform(-60.0, 60.0, size=8)
        source = dataclasses.replace(problem.source, weight=weight)  # type: ignore[type-var]
        ours = Problem(source, problem.loss, 1.0 / (C * source.total_weight), problem.bias)
        lam = 1 / (Fraction(C) * sum(map(Fraction, weight.tolist())))
        primal, dual = exact.primal(X, ours, point.w, point.b, lam), exact.dual(X, ours, point.beta, lam)
        assert dual is not None
        found, slack = ours.in_form(ours.certify(point), "J"), 1 + Fraction(2.0**-50)
        assert abs(Fraction(found.primal) - primal / lam) <= Fraction(found.rounding) * slack
        assert abs(Fraction(found.dual) - dual / lam) <= Fraction(found.rounding) * slack
        assert Fraction(found.gap) * slack >= (primal - dual) / lam


@every_loss
def test_bounds_under_a_free_bias_and_wild_weights(loss: Any) -> None:
    rng = np.random.default_rng(2)
    X = rng.normal(size=(60, 2))
    y = np.where(rng.random(60) < 0.5, 1.0, -1.0) if loss.task == "classification" else rng.normal(size=60)
    for weight in wild_weights(rng, 60):
        problem = Problem(view(X, y, weight), loss, 1e-3, ExactBias())
        found = problem.evaluate(Point(np.zeros(2), 0.0, feasible(loss, y, rng.random(60))))
        assert np.isfinite(found.dual)
        sure = Fraction(found.dual) - Fraction(found.dual_error)
        heaviest = int(weight.argmax())
        fits = Point(np.zeros(2), float(y[heaviest]), None)  # nothing else weighs much
        for w, b in ((fits.w, fits.b), (fits.w, 0.0), (rng.normal(size=2), 0.3)):
            assert sure <= exact.primal(X, problem, w, b)


def test_losses_far_from_the_origin_are_not_rounded_up() -> None:
    """The bound on a free intercept rests on them: targets of 1e12 that cancel against epsilon."""
    rng = np.random.default_rng(0)
    for _ in range(300):
        reach = 2.0 ** rng.integers(0, 8)
        y = -1e12 + rng.integers(0, 2000, size=3) * 2.0**-13
        loss = EpsilonInsensitive(float(reach - y[0]) - rng.integers(0, 4) * 2.0**-13)
        squared_norms, length = rng.random(3) * 1e-8, 1.0 / 3.0
        for sign in (1.0, -1.0):
            told = losses_beyond(sign * y, np.ones(3), squared_norms, loss, length, sign, reach)
            size = [Fraction(float(np.sqrt(v))) * Fraction(1.001) * Fraction(length) for v in squared_norms]
            scores = [Fraction(sign) * (Fraction(reach) - far) for far in size]
            true = sum(
                exact.value(loss, sign * t, score) for t, score in zip(y.tolist(), scores, strict=True)
            )
            assert Fraction(told) <= true * Fraction(1.0001)


@pytest.mark.parametrize("beta", [1e-160, 1e-150, 3e-155])
def test_the_square_of_a_small_balance_does_not_vanish(beta: float) -> None:
    X = np.array([[1e-50]])
    problem = Problem(view(X, [1.0]), Hinge(), 1e-100, AugmentedBias(1e100))
    check(X, problem, Point(np.zeros(1), 0.0, np.array([beta])))


def test_the_objective_at_zero_does_not_vanish() -> None:
    for y, weight in ((1e-170, 1.0), (1e-120, 1e-100), (1e-162, 1e100)):
        problem = Problem(view(np.ones((2, 1)), [y, 0.0], [weight, 1e100]), Squared(), 1.0)
        told = problem.zero_point()[1]
        true = exact.primal(np.ones((2, 1)), problem, np.zeros(1), 0.0)
        assert abs(Fraction(told.primal) - true) <= Fraction(told.primal_error)


@every_loss
def test_parts_and_threads(loss: Any) -> None:
    for seed in range(3):
        X, problem, point = random_case(loss, AugmentedBias(0.7), FORMS["csr64"], seed, n=14)
        one, two = (
            dataclasses.replace(problem, source=in_parts(problem.source, [0, 1, 4, 4, 9, 14], threads))
            for threads in (1, 2)
        )
        found, again = check(X, one, point), two.evaluate(point)
        assert found[:4] == again[:4]
        assert found.b == again.b
        for left, right in zip(found[4:6], again[4:6], strict=True):
            assert left.tobytes() == right.tobytes()
        whole = problem.evaluate(point)
        assert found.scores.tobytes() == whole.scores.tobytes()
        assert found.primal == pytest.approx(whole.primal, abs=found.primal_error + whole.primal_error)
        assert found.dual == pytest.approx(whole.dual, abs=found.dual_error + whole.dual_error)


def test_parts_that_cancel_each_other() -> None:
    """Parts of 1e16 that leave a remainder of a few units."""
    X = np.array(
        [[1.0], [1e16], [1.0], [-1e16], [3.0], [1e16], [-1e16], [1.0], [1.0], [1e16], [-1e16], [1.0]]
    )
    source = in_parts(view(X, np.ones(12)), [0, 2, 5, 9, 12])
    check(X, Problem(source, Hinge(), 0.1), Point(np.zeros(1), 0.0, np.ones(12)))


def test_large_sources_are_split_and_threads_change_nothing() -> None:
    rng = np.random.default_rng(0)
    X = rng.normal(size=(3000, 1000)).astype(np.float32)
    y = np.where(rng.random(3000) < 0.5, 1.0, -1.0)
    point = Point(rng.normal(size=1000), 0.0, y * rng.random(3000))
    one, two = (Problem(view(X, y, threads=threads), Hinge(), 0.1).evaluate(point) for threads in (1, 2))
    assert one[:4] == two[:4]
    assert one.scores.tobytes() == two.scores.tobytes()
    assert one.w_of_dual.tobytes() == two.w_of_dual.tobytes()


@plain_python_warns
@every_loss
def test_a_beta_outside_its_box_proves_nothing(loss: Any) -> None:
    for form in ("csr64", "dense64"):
        _, problem, point = random_case(loss, NoBias(), FORMS[form])
        y, weight = problem.source.y, problem.source.weight
        inside = point.beta.copy()  # type: ignore[union-attr]
        sign = y[0] if loss.task == "classification" else 1.0
        outside = [np.nan, np.inf, -np.inf]
        if loss.task == "classification":
            outside.append(-5e-324)
        if np.isfinite(loss.lipschitz):
            outside += [np.nextafter(loss.lipschitz, np.inf), 1e300]
        for value in outside:
            beta = inside.copy()
            beta[0] = sign * value
            assert problem.evaluate(point._replace(beta=beta)).dual == -np.inf
            certificate = problem.certify(point._replace(beta=beta))
            assert (certificate.gap, certificate.relative_gap) == (np.inf, np.inf)
        beta = inside.copy()
        beta[weight == 0.0] = np.nan
        assert problem.evaluate(point._replace(beta=beta)).dual == problem.evaluate(point).dual


@plain_python_warns
@every_loss
@pytest.mark.parametrize("bad", [np.nan, np.inf, -np.inf])
def test_a_model_that_is_not_finite_has_an_infinite_objective(loss: Any, bad: float) -> None:
    _, problem, point = random_case(loss, AugmentedBias(), FORMS["dense64"])
    w = point.w.copy()
    w[2] = bad
    for broken in (point._replace(w=w), point._replace(b=bad)):
        certificate = problem.certify(broken)
        assert (certificate.primal, certificate.gap, certificate.relative_gap) == (np.inf, np.inf, np.inf)
        assert certificate.dual == problem.evaluate(point).dual


@plain_python_warns
def test_overflow_is_infinite_and_not_nan() -> None:
    far = Problem(view([[1e60]], [1.0]), Squared(), 1.0)
    assert far.certify(Point(np.array([1e100]), 0.0, None)).primal == np.inf
    heavy = Problem(view([[1e99], [1e99]], [1.0, -1.0], [1e100, 1e100]), Hinge(), 1.0)
    assert heavy.certify(Point(np.zeros(1), 0.0, np.array([1.0, -0.5]))).dual <= -3e196


def test_the_zero_dual_holds_under_a_free_bias_that_nothing_ties_down() -> None:
    problem = Problem(view(np.ones((2, 1)), np.ones(2)), Hinge(), 0.1, ExactBias())
    found = problem.evaluate(Point(np.zeros(1), 0.0, None))
    assert (found.dual, found.dual_error) == (0.0, 0.0)


def test_without_a_bias_b_must_be_zero() -> None:
    _, problem, point = random_case(Hinge(), NoBias(), FORMS["csr64"])
    assert problem.certify(point._replace(b=0.1)).primal == np.inf
    assert problem.certify(point._replace(b=np.nan)).primal == np.inf


def test_points_of_another_shape_are_refused() -> None:
    """A kernel reads without looking at lengths: it would evaluate whatever lies behind the array."""
    _, problem, point = random_case(Hinge(), NoBias(), FORMS["csr64"])
    for w, beta in (
        (point.w[:-1], point.beta),
        (np.append(point.w, 1.0), point.beta),
        (point.w[:, None], point.beta),
        (point.w, point.beta[:-1]),  # type: ignore[index]
        (point.w, np.append(point.beta, 0.0)),  # type: ignore[arg-type]
    ):
        with pytest.raises(InputError):
            problem.evaluate(Point(w, 0.0, beta))


@plain_python_warns
def test_problems_that_cannot_be() -> None:
    source = view(np.ones((3, 2)), [1.0, -1.0, 0.5])
    with pytest.raises(InputError, match=r"y\[2\] is 0.5; the hinge loss needs labels -1 and \+1"):
        Problem(source, Hinge(), 1.0)
    for lam in (-1.0, np.nan, np.inf, 1e-101):
        with pytest.raises(InputError, match="lam="):
            Problem(source, Squared(), lam)
    with pytest.raises(InputError):  # rather than an objective that overflows
        _ = Problem(view(np.ones((1, 1)), [1e200]), Squared(), 1.0).value_at_zero


@plain_python_warns
def test_without_a_regulariser_there_is_no_bound_but_0() -> None:
    rng = np.random.default_rng(3)
    X, y = rng.normal(size=(20, 3)), np.where(rng.random(20) < 0.5, 1.0, -1.0)
    for bias in (NoBias(), AugmentedBias(2.0), ExactBias()):
        problem = Problem(view(X, y), Hinge(), 0.0, bias)
        w, b = rng.normal(size=3), 0.0 if bias.kind == "none" else 0.4
        found = problem.evaluate(Point(w, b, rng.random(20) * y))
        assert found.primal == pytest.approx(np.maximum(0.0, 1.0 - y * (X @ w + b)).mean())
        assert (found.dual, found.dual_error) == (0.0, 0.0)
        certificate = problem.certify(Point(w, b, y))
        assert certificate.gap >= certificate.primal
        assert problem.in_form(certificate, "J") == certificate


@plain_python_warns
def test_a_hard_margin_is_met_or_infinite() -> None:
    X, y = np.array([[2.0], [-3.0], [1.0]]), np.array([1.0, -1.0, 1.0])
    problem = Problem(view(X, y), HardMargin(), 0.1)
    assert problem.value_at_zero == np.inf
    beta = np.array([0.05, -0.02, 0.0])
    met = problem.evaluate(Point(np.array([1.001]), 0.0, beta))
    assert met.primal == pytest.approx(0.05 * 1.001**2, abs=met.primal_error)
    assert met.dual == pytest.approx(0.07 / 3.0 - 0.16**2 / (2.0 * 0.1 * 9.0), abs=met.dual_error + 1e-16)
    for w in (0.999, 0.0, -1.0):
        missed = problem.certify(Point(np.array([w]), 0.0, beta))
        assert (missed.primal, missed.gap, missed.relative_gap) == (np.inf, np.inf, np.inf)
    # within rounding of the margin nothing is sure
    assert problem.certify(Point(np.array([1.0]), 0.0, beta)).gap == np.inf


def test_total_weight_may_be_that_of_a_larger_problem() -> None:
    """Half of the rows with the N of all: their losses add up to those of the whole."""
    rng = np.random.default_rng(4)
    X, y, w = rng.normal(size=(20, 3)), rng.choice([-1.0, 1.0], 20), rng.normal(size=3)
    whole = Problem(view(X, y), Hinge(), 0.1)
    halves = [
        Problem(whole.source.with_weight(mask), Hinge(), 0.1, total_weight=20.0)  # type: ignore[attr-defined]
        for mask in (np.arange(20) < 10, np.arange(20) >= 10)
    ]
    assert all(half.C == whole.C and half.with_bias(AugmentedBias()).total_weight == 20.0 for half in halves)
    losses = [half.mean_loss(w, 0.5) for half in halves]
    assert sum(losses) == pytest.approx(whole.mean_loss(w, 0.5), rel=1e-14)


@pytest.mark.parametrize("lam", [0.0, 0.3])
def test_mean_loss_is_the_objective_without_regularisation(lam: float) -> None:
    rng = np.random.default_rng(5)
    X, y, weight = rng.normal(size=(30, 4)), rng.normal(size=30), rng.choice([0.0, 1.0, 2.5], 30)
    problem = Problem(in_parts(view(X, y, weight), [0, 7, 21, 30]), Squared(), lam, ExactBias())
    w, b = rng.normal(size=4), 0.7
    primal = problem.evaluate(Point(w, b, None)).primal
    assert problem.mean_loss(w, b) == pytest.approx(primal - 0.5 * lam * w @ w, rel=1e-14)


@pytest.mark.slow
@pytest.mark.parametrize("bias", [NoBias(), ExactBias()], ids=["none", "exact"])
def test_a_pass_holds_the_point_and_no_rows(bias: Bias) -> None:
    """What is sent to another process is as large as the point, and finds there what it finds here."""
    rng = np.random.default_rng(0)
    n, d = 3000, 50
    X, y = rng.normal(size=(n, d)), rng.choice([-1.0, 1.0], n)
    problem = Problem(view(X, y), Hinge(), 0.1, bias)
    point = Point(rng.normal(size=d), 0.0, 0.5 * y)
    evaluating = problem.evaluation_pass(point)
    sent = pickle.dumps(evaluating)
    assert len(sent) < 8 * (n + d) + 2000
    (part,) = problem.source.parts()
    here, there = (each.visit(part, np.empty(n)) for each in (evaluating, pickle.loads(sent)))
    assert here.sums == there.sums
    np.testing.assert_array_equal(here.moment, there.moment)


def test_a_problem_is_an_objective() -> None:
    problem = Problem(view(np.eye(3), [1.0, -1.0, 1.0], [1.0, 0.0, 2.0]), Hinge(), 0.1)
    objective: Objective = problem
    assert isinstance(problem, Objective)
    assert objective.size == (3, 3, 9, 2, True)
    np.testing.assert_array_equal(objective.feasible(np.ones(3)), 1.0)


def test_another_bias_keeps_nothing_that_depends_on_it() -> None:
    members = {name: value for cls in Problem.__mro__ for name, value in vars(cls).items()}
    kept = [name for name, value in members.items() if isinstance(value, cached_property)]
    assert "constants" in kept
    problem = small_problem(n=20, d=3, lam=0.1, seed=0, bias=ExactBias())
    for name in kept:
        getattr(problem, name)
    for bias in (ExactBias(), AugmentedBias(3.0), NoBias()):
        other, fresh = problem.with_bias(bias), dataclasses.replace(problem, bias=bias)
        for name in kept:
            assert getattr(other, name) == getattr(fresh, name), name
        assert other.identity == fresh.identity
