"""What ``plan`` promises by Zhang's theorems: the formulas, and that they hold."""

from __future__ import annotations

import math
from typing import Any

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

import dualgap
from dualgap.core.bias import AugmentedBias
from dualgap.core.losses import make_loss
from dualgap.core.problem import Problem
from dualgap.data.sources import view
from dualgap.solvers.primal import zhang
from dualgap.solvers.primal.rates import make_rate
from dualgap.solvers.primal.sgd import SGD
from dualgap.solvers.primal.zhang import averaged, distance, last, mistakes, pairs_of, steps_for
from support.problems import linear_data, small_problem

X, y = linear_data(n=30, d=3, seed=2, noise=0.5)
LONGEST = float(np.max(np.sum(X * X, axis=1)))


def task_of(loss: str, lam: float = 0.0, **more: Any) -> Problem:
    return Problem(view(X, y), make_loss(loss), lam, **more)


def pair_of(task: Problem, k: int = 0) -> zhang.Pair:
    return pairs_of(task, task.source.squared_norms)[k]


def mean_loss(task: Problem, w: np.ndarray) -> float:
    return float(np.mean([task.loss.value(t, s) for t, s in zip(y, X @ w, strict=True)]))


class TestFormulas:
    def test_constants_of_the_rows(self) -> None:
        assert pair_of(task_of("squared-hinge")) == (4.0, 0.0, pytest.approx(4 * LONGEST), 0.0)
        assert pytest.approx(LONGEST) == pair_of(task_of("hinge")).BM2
        assert pytest.approx(LONGEST + 9.0) == pair_of(task_of("hinge", bias=AugmentedBias(3.0))).BM2
        weighted = small_problem("smooth-hinge", n=20, d=3, lam=0.1, seed=1, weighted=True)
        share = weighted.source.weight * weighted.epoch_size / weighted.total_weight
        squares = weighted.source.squared_norms
        flat, steep = pairs_of(weighted, squares)
        assert pytest.approx(np.max(share**2 * squares)) == flat.BM2
        assert pytest.approx(2.0 * np.max(share * squares)) == steep.AM2

    def test_at_a_constant_rate_5_2_is_5_1(self) -> None:
        pair = pair_of(task_of("squared-hinge"))._replace(BM2=3.0)
        eta, T = 0.3 / pair.AM2, 500
        bound = averaged(pair, make_rate("constant", eta), T)
        less = 1.0 - 0.5 * eta * pair.AM2
        assert bound == pytest.approx((1.0 / less, 1.0 / (eta * T), 0.5 * eta * 3.0 / less))
        assert averaged(pair, make_rate("constant", 2.1 / pair.AM2), T) is None

    @pytest.mark.parametrize("kind", ["inverse", "sqrt", "bottou"])
    def test_sums_of_rates_are_bounded_on_the_safe_side(self, kind: str) -> None:
        rate, T = make_rate(kind, 0.2, 1.0, 0.05), 20_000
        etas = np.array([rate.at(t) for t in range(1, T + 1)])
        pair = pair_of(task_of("hinge"))
        found = averaged(pair, rate, T)
        assert found is not None
        exact = 0.5 * np.square(etas).sum() * pair.BM2 / etas.sum()
        assert exact <= found.extra * (1.0 + 1e-12) <= 1.01 * exact
        assert 1.0 / etas.sum() <= found.lam * (1.0 + 1e-12) <= 1.01 / etas.sum()

    def test_5_3(self) -> None:
        pair = pair_of(task_of("hinge"))
        assert last(pair, 0.01, 60) == (1.0, 1.0 / 0.6, pytest.approx(0.01 * (1.5 + math.log(61)) * LONGEST))

    def test_the_mistake_bound_is_the_papers(self) -> None:
        task = task_of("smooth-hinge:gamma=1")
        flat, steep = pairs_of(task, task.source.squared_norms)
        assert mistakes(steep, task.loss) == pytest.approx(4.0 * LONGEST)
        assert mistakes(flat, task.loss) is None
        task = task_of("squared")
        assert mistakes(pair_of(task), task.loss) is None  # mistakes are a matter of classes

    def test_6_1_takes_a_pair_with_A_0_by_raising_A(self) -> None:
        pair, lam, eta, T = pair_of(task_of("hinge")), 0.1, 0.05, 300
        AM2 = 2.0 * lam
        q = 1.0 - lam * eta * (1.0 - eta * AM2)
        rest = eta * 2.0 * (AM2 * 0.5 + LONGEST) * (1.0 - q ** (T + 1)) / (lam * (1.0 - eta * AM2))
        assert distance(pair, eta, lam, T, 7.0, 0.5) == pytest.approx(q**T * 7.0 + rest)
        assert distance(pair, 1.0 / AM2, lam, T, 7.0, 0.5) == math.inf


class TestTheyHold:
    """On the mean over seeds, of rows drawn with replacement."""

    @pytest.mark.parametrize("loss", ["hinge", "squared-hinge"])
    def test_steps_for_an_accuracy(self, loss: str) -> None:
        task, w = task_of(loss), np.array([0.4, -0.2, 0.1])
        at_zero, epsilon = task.value_at_zero, 0.15
        w *= 0.5 if mean_loss(task, w) <= at_zero else -0.5
        assert mean_loss(task, w) <= at_zero
        eta, T = steps_for(pair_of(task), at_zero, epsilon)
        reached = []
        for seed in range(8):
            solver = SGD(order="random", average=True, learning_rate="constant", eta0=eta, seed=seed)
            state, _ = solver.step(task, solver.start(task, None), math.ceil(T * (w @ w)), None)
            reached.append(mean_loss(task, solver.point(task, state).w))
        assert np.mean(reached) <= mean_loss(task, w) + epsilon

    def test_6_1_of_the_hinge(self) -> None:
        lam, eta, T = 0.2, 0.004, 3000
        task = task_of("hinge", lam)
        best = dualgap.fit(X, y, lam=lam, tol=1e-8)
        found = []
        for seed in range(8):
            solver = SGD(order="random", learning_rate="constant", eta0=eta, seed=seed)
            state, _ = solver.step(task, solver.start(task, None), T, None)
            found.append(np.sum((solver.point(task, state).w - best.coef) ** 2))
        bound = distance(pair_of(task), eta, lam, T, float(best.coef @ best.coef), best.certificate.primal)
        assert np.mean(found) <= bound < math.inf

    @settings(deadline=None, max_examples=25)
    @given(seed=st.integers(0, 2**32 - 1), margin=st.sampled_from([0.0, 0.7]), separable=st.booleans())
    def test_updates_of_the_perceptron(self, seed: int, margin: float, separable: bool) -> None:
        rng = np.random.default_rng(seed)
        rows, star = rng.normal(size=(15, 3)), rng.normal(size=3)
        star /= np.abs(rows @ star).min()
        labels = np.sign(rows @ star) * (1.0 if separable else rng.choice([1.0, 1.0, -1.0], size=15))
        outcome = dualgap.fit(
            rows, labels, solver="perceptron", margin=margin, tol=0.0, max_epochs=5, output="last", voted=True
        ) if np.unique(labels).size == 2 else None  # fmt: skip
        if outcome is None:
            return
        state = outcome.run.state
        made = state.model.mistakes[: state.cursor.used]
        K = float(np.max(np.sum(rows**2, axis=1))) + 2.0 * margin
        suffered = np.maximum(0.0, 1.0 - labels * (rows @ star))[made].sum()
        assert f"at most {K:.4g} |w*|^2" in "\n".join(
            dualgap.plan(rows, labels, solver="perceptron", margin=margin)
        )
        limit = (math.sqrt(K * (star @ star)) + math.sqrt(suffered)) ** 2
        assert len(made) <= limit * (1.0 + 1e-12)
        assert len(made) > 0


class TestPlans:
    def plan(self, loss: str = "hinge", **options: Any) -> str:
        told = {"learning_rate": "constant", "eta0": 0.01, **options}
        return "\n".join(dualgap.plan(X, y, loss=loss, solver="sgd", **told))

    def test_at_lam_0(self) -> None:
        text = self.plan("smooth-hinge", lam=0.0)
        assert "(A, B) = (0, 1) or (2, 0)" in text
        extra = 0.005 * LONGEST
        assert f"P(0.01) + {extra:.4g} after 1, P(0.1) + {extra:.4g} after 10, P(1) + {extra:.4g}" in text
        assert f"{1.0 / (1.0 - 0.01 * LONGEST):.6g} P(0.01) after 1" in text
        assert "theorem 5.1" in text
        assert f"P(1) + {0.01 * (1.5 + math.log(3001)) * LONGEST:.4g} after 100 epochs" in text  # 5.3
        assert f"{4.0 * LONGEST:.4g} |w*|^2 mistakes" in text
        eta, T = steps_for(pair_of(task_of("smooth-hinge")), 0.5, 0.0005)
        assert f"eta of {eta:.3g} and {T:.4g} |w|^2 steps" in text
        assert "5.1" not in self.plan(lam=0.0, learning_rate="sqrt")
        assert "below 2/(A M^2)" in self.plan("squared-hinge", lam=0.0, eta0=5.0)

    def test_with_a_regulariser(self) -> None:
        value = distance(pair_of(task_of("hinge")), 0.01, 0.1, 3000, 20.0, 1.0)
        assert f"{value:.4g} after 100 epochs" in self.plan(lam=0.1)
        assert "learning_rate=constant" in self.plan(lam=0.1, learning_rate="bottou")
        assert "needs a learning rate below" in self.plan("squared-hinge", lam=0.1, eta0=5.0)
        assert "preconditioner only" in self.plan(lam=0.1, preconditioner="features")

    def test_where_there_is_nothing_to_say(self) -> None:
        assert "for bias=exact none is known" in self.plan(lam=0.1, bias="exact")
        empty = "\n".join(dualgap.plan(np.zeros((4, 2)), [0, 1, 0, 1], solver="sgd", lam=0.0, eta0=1.0))
        assert "all rows are empty" in empty
