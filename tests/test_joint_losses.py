"""Joint models of K classes through every door: ``fit``, models, files, warm starts, runs, commands."""

from __future__ import annotations

import bz2
import subprocess
import sys
from dataclasses import replace
from io import BytesIO
from itertools import islice
from pathlib import Path
from typing import Any

import numpy as np
import pytest
import scipy.sparse as sp
from sklearn.datasets import load_digits, load_svmlight_file
from sklearn.linear_model import LogisticRegression
from sklearn.preprocessing import normalize
from sklearn.svm import LinearSVC

import dualgap
from dualgap.core.problem import Point
from dualgap.files import ChunkFeed, write_svmlight
from dualgap.runtime.errors import InputError
from support.commands import Forks, forks_fixture  # noqa: F401
from support.passes import file_of
from support.states import assert_same

LOSSES = ("multinomial", "crammer-singer")
BIASES = ("none", "augmented", "exact")

every_loss = pytest.mark.parametrize("loss", LOSSES)
every_bias = pytest.mark.parametrize("bias", BIASES)


def digits(n: int = 600) -> tuple[np.ndarray, np.ndarray]:
    X, y = load_digits(return_X_y=True)
    return X[:n] / 16.0, y[:n]


def blobs(n: int = 240, d: int = 6, K: int = 3, seed: int = 0) -> tuple[np.ndarray, np.ndarray]:
    rng = np.random.default_rng(seed)
    y = np.append(np.arange(K), rng.integers(0, K, n - K))
    return rng.normal(size=(n, d)) + 1.5 * rng.normal(size=(K, d))[y], y


def head_of(name: str, rows: int = 500) -> tuple[Any, np.ndarray]:
    """The first rows of a real set, of length 1 each, with their classes as numbers from 0."""
    path = file_of(name)
    if path is None:
        pytest.skip(f"{name} is not here")
    with bz2.open(path) as file:
        X, y = load_svmlight_file(BytesIO(b"".join(islice(file, rows))))
    return normalize(X), np.unique(y, return_inverse=True)[1]


def fit(X: Any, y: Any, loss: str, **options: Any) -> dualgap.Outcome:
    return dualgap.fit(X, y, loss=loss, **{"C": 0.1, "tol": 1e-4, "max_epochs": 3000, **options})


def objective(X: Any, y: Any, W: np.ndarray, b: Any, C: float, loss: str, weight: Any = 1.0) -> float:
    """1/2 |W|^2 + C sum_i c_i phi_i, from its definition; W has a row for each class."""
    s = X @ W.T + b
    own = s[np.arange(len(y)), y]
    if loss == "multinomial":
        losses = np.logaddexp.reduce(s, axis=1) - own
    else:
        losses = (s - own[:, None] + (np.arange(W.shape[0]) != y[:, None])).max(axis=1)
    return float(0.5 * np.square(W).sum() + C * np.sum(weight * losses))


class TestAgainstOthers:
    """The minimum is the one that others find, to the certificate."""

    @pytest.mark.parametrize("bias", ["none", "exact"])
    @pytest.mark.parametrize("C", [0.01, 1.0])
    def test_multinomial_is_scikit_learns(self, bias: str, C: float) -> None:
        for X, y in (digits(), blobs()):
            peer = LogisticRegression(C=C, tol=1e-8, max_iter=5000, fit_intercept=bias == "exact").fit(X, y)
            theirs = objective(X, y, peer.coef_, peer.intercept_, C, "multinomial")
            ours = fit(X, y, "multinomial", C=C, bias=bias, tol=1e-5)
            found = ours.certificate
            assert ours.converged
            assert found.primal == pytest.approx(
                objective(X, y, ours.coef, ours.intercept, C, "multinomial"), rel=1e-12
            )
            assert found.dual - found.rounding <= theirs
            assert found.primal <= theirs * (1.0 + 1e-5)
            assert np.abs(ours.model.predict_proba(X) - peer.predict_proba(X)).max() < 0.01
            assert (ours.model.predict(X) == peer.predict(X)).mean() > 0.995

    def test_crammer_singer_is_liblinears(self) -> None:
        for X, y in (digits(), blobs()):
            peer = LinearSVC(
                multi_class="crammer_singer", C=0.05, tol=1e-9, max_iter=100_000, fit_intercept=False
            ).fit(X, y)
            theirs = objective(X, y, peer.coef_, 0.0, 0.05, "crammer-singer")
            ours = fit(X, y, "crammer-singer", C=0.05, tol=1e-3)
            found = ours.certificate
            assert ours.converged
            assert found.primal == pytest.approx(
                objective(X, y, ours.coef, 0.0, 0.05, "crammer-singer"), rel=1e-12
            )
            assert found.dual - found.rounding <= theirs * (1.0 + 1e-9)
            assert found.primal <= theirs * (1.0 + 1.01e-3)
            assert (ours.model.predict(X) == peer.predict(X)).mean() > 0.98

    @pytest.mark.parametrize("loss", LOSSES)
    @pytest.mark.parametrize("name", ["mnist-multiclass", "news20-multiclass"])
    def test_real_sets(self, name: str, loss: str) -> None:
        """Objective and predictions of the first rows of real sets are those of scikit-learn's multinomial
        and of LIBLINEAR's ``-s 4``, to the certificate.
        """
        X, y = head_of(name)
        C = 1.0 if loss == "multinomial" else 0.5
        peer = (
            LogisticRegression(C=C, tol=1e-5, max_iter=5000, fit_intercept=False)
            if loss == "multinomial"
            else LinearSVC(multi_class="crammer_singer", C=C, tol=1e-6, max_iter=50_000, fit_intercept=False)
        ).fit(X, y)
        theirs = objective(X, y, peer.coef_, 0.0, C, loss)
        dense = X.toarray() if name.startswith("mnist") else X
        ours = fit(dense, y, loss, C=C, tol=1e-3)
        found = ours.certificate
        assert ours.converged
        assert found.primal == pytest.approx(objective(X, y, ours.coef, 0.0, C, loss), rel=1e-10)
        assert found.dual - found.rounding <= theirs
        assert found.primal <= theirs * (1.0 + 1.01e-3)
        assert (ours.model.predict(dense) == peer.predict(X)).mean() > 0.97

    @every_bias
    @pytest.mark.parametrize(("joint", "single"), [("multinomial", "logistic"), ("crammer-singer", "hinge")])
    def test_two_classes_are_one_score_at_twice_the_C(self, joint: str, single: str, bias: str) -> None:
        """With w = w_1 - w_0 the best W has |W|^2 = |w|^2 / 2: J of K = 2 is half of that of w at 2 C."""
        X, y = blobs(K=2)
        two = fit(X, y, joint, C=0.2, bias=bias, tol=1e-6)
        one = dualgap.fit(X, y, loss=single, C=0.4, bias=bias, tol=1e-8)
        assert two.coef.shape == (2, 6)
        assert 2.0 * two.certificate.primal == pytest.approx(one.certificate.primal, rel=2e-6)
        assert two.coef[1] - two.coef[0] == pytest.approx(one.coef, abs=5e-3)
        if single == "logistic":
            assert two.model.predict_proba(X) == pytest.approx(one.model.predict_proba(X), abs=5e-3)

    @every_loss
    @every_bias
    def test_a_weight_of_2_is_the_row_twice_and_0_is_no_row(self, loss: str, bias: str) -> None:
        X, y = blobs()
        weight = np.where(np.arange(y.size) % 3 == 0, 2.0, 1.0)
        weight[5:60:7] = 0.0
        one = fit(X, y, loss, bias=bias, sample_weight=weight)
        rows = np.repeat(np.arange(y.size), weight.astype(int))
        other = fit(X[rows], y[rows], loss, bias=bias)
        assert one.certificate.primal == pytest.approx(other.certificate.primal, rel=2e-4)
        if bias != "augmented":
            recomputed = objective(X, y, one.coef, one.intercept, 0.1, loss, weight)
            assert one.certificate.primal == pytest.approx(recomputed, rel=1e-12)


class TestOutcomes:
    @every_loss
    @every_bias
    def test_dense_and_sparse_rows_labels_of_words_threads(self, loss: str, bias: str) -> None:
        X, y = blobs()
        X[np.abs(X) < 0.5] = 0.0
        words = np.array(["ant", "bee", "cat"])[y]
        outcome = fit(X, words, loss, bias=bias)
        assert outcome.converged
        assert (outcome.coef.shape, outcome.intercept.shape, outcome.dual.shape) == ((3, 6), (3,), (240, 3))
        assert outcome.solver.name == ("joint-newton" if loss == "multinomial" else "joint-dual")
        other = fit(sp.csr_array(X), words, loss, bias=bias, threads=2)
        assert other.solver.name == "joint-dual"
        assert "all classes of a row at once" in other.auto_reason
        assert other.certificate.primal == pytest.approx(outcome.certificate.primal, rel=2e-4)
        assert list(outcome.classes) == ["ant", "bee", "cat"]
        predicted = outcome.model.predict(X)
        assert (predicted == words).mean() > 0.7
        scores = outcome.model.decision_function(X)
        assert scores == pytest.approx(X @ outcome.coef.T + outcome.intercept, abs=1e-9)
        assert (predicted == np.array(["ant", "bee", "cat"])[scores.argmax(axis=1)]).all()
        # the dual point behind the bound, by its definition
        beta, C = outcome.dual, 0.1
        W = C * (X.T @ beta)
        p = np.eye(3)[y] - beta
        gains = 1.0 - p[np.arange(240), y]
        if loss == "multinomial":
            gains = -(p * np.log(np.maximum(p, 1e-300))).sum(axis=1)
        bound = C * gains.sum() - 0.5 * np.square(W).sum()
        if bias == "augmented":
            bound -= 0.5 * np.square(C * beta.sum(axis=0)).sum()
        assert outcome.certificate.dual == pytest.approx(bound, rel=1e-9)

    @every_loss
    @every_bias
    def test_models_are_saved_verified_and_measured(self, loss: str, bias: str, tmp_path: Path) -> None:
        X, y = blobs()
        outcome = fit(X, y, loss, bias=bias)
        outcome.model.save(tmp_path / "m")
        model = dualgap.Model.load(tmp_path / "m")
        assert (model.task, len(model.proofs), model.joint) == ("classes", 1, True)
        assert np.array_equal(model.coef, outcome.coef)
        assert model.certificate.relative_gap <= 1e-4
        same = model.verify(X, y)
        assert (same.verdict, same.rows) == ("true", "same order")
        order = np.random.default_rng(1).permutation(y.size)
        moved = model.verify(X[order], y[order])
        assert (moved.verdict, moved.rows) == ("true", "another order")
        assert model.verify(X, (y + 1) % 3).verdict == "not true"
        lying = replace(model, coef=1.01 * model.coef)
        assert lying.verify(X, y).verdict == "not true"
        bound = replace(model, dual=None, dual_hashes=None).verify(X, y)
        assert (bound.verdict, bound.duals) in (("unproven", "slopes"), ("true", "slopes"))
        assert bound.recomputed is not None
        assert bound.recomputed.dual <= model.certificate.primal
        measured = model.evaluate(X, y).values
        assert measured["accuracy"] == (model.predict(X) == y).mean()
        if loss == "multinomial":
            p = model.predict_proba(X)
            assert p.sum(axis=1) == pytest.approx(np.ones(y.size))
            assert measured["log_loss"] == pytest.approx(-np.log(p[np.arange(y.size), y]).mean())
        else:
            assert "log_loss" not in measured
            with pytest.raises(InputError, match="the crammer-singer loss has no probabilities"):
                model.predict_proba(X)

    @every_loss
    @every_bias
    def test_a_resumed_run_is_one_that_never_stopped(self, loss: str, bias: str, tmp_path: Path) -> None:
        X, y = blobs()
        options: dict[str, Any] = {"bias": bias, "tol": 0.0, "max_epochs": None}
        whole = fit(X, y, loss, max_visits=1700, **options)
        first = fit(X, y, loss, max_visits=731, checkpoint=tmp_path / "run.npz", **options)
        second = fit(X, y, loss, max_visits=1700, resume=tmp_path / "run.npz", **options)
        assert_same(second.run, whole.run)
        assert second.certificate == whole.certificate
        assert np.array_equal(second.dual, whole.dual)
        other = LOSSES[loss == "multinomial"]
        with pytest.raises(InputError, match="resume: the run was trained with"):
            fit(X, y, other, resume=first, **options)
        with pytest.raises(InputError, match="different rows, targets or weights"):
            fit(X, (y + 1) % 3, loss, resume=first, **options)
        with pytest.raises(InputError, match="with 3 classes, and now it is 4 classes"):
            fit(X, np.where(y == 2, 3 + np.arange(y.size) % 2, y), loss, resume=first, **options)
        damaged = first.run._replace(w=first.run.w[:, :2].copy())
        with pytest.raises(InputError, match=r"w has the shape \(6, 2\), and must have \(6, 3\)"):
            fit(X, y, loss, resume=damaged, **options)
        for b in (0.0, np.zeros(2), np.zeros((3, 1))):
            with pytest.raises(InputError, match=r"the run cannot be one of solver 'joint-[a-z]+', b "):
                fit(X, y, loss, resume=first.run._replace(b=b), **options)

    @every_loss
    def test_warm_starts(self, loss: str) -> None:
        X, y = blobs()
        for bias in BIASES:
            cold = fit(X, y, loss, bias=bias)
            for start in (cold, cold.model, cold.point):
                warm = fit(X, y, loss, bias=bias, warm=start)
                assert warm.epochs == 0
                assert warm.certificate.relative_gap <= 1e-4
            further = fit(X, y, loss, bias=bias, C=0.2, warm=cold, max_epochs=3000)
            assert further.converged
        with pytest.raises(InputError, match="warm start of 1 scores a row for a problem of 3"):
            fit(X, y, loss, warm=dualgap.fit(X, y > 0))
        with pytest.raises(InputError, match="warm: a model of one score a row"):
            fit(X, y, loss, warm=dualgap.fit(X, y > 0).model)
        with pytest.raises(InputError, match=r"warm: w is .* a matrix of numbers"):
            fit(X, y, loss, warm=Point(np.zeros(6), np.zeros(3), None))
        with pytest.raises(InputError, match="warm: a model of other classes"):
            fit(X, y + 1, loss, warm=cold.model)

    @every_loss
    def test_callbacks_measures_and_early_stopping(self, loss: str) -> None:
        X, y = blobs()
        seen: list[Any] = []

        def own(point: Point, best: Point) -> dict[str, float]:
            return {"own": objective(X, y, point.w.T, point.b, 0.1, loss), "best": float(best.b.shape[0])}

        outcome = fit(X, y, loss, bias="exact", measures=[own], callbacks=[lambda *told: seen.append(told)])
        assert seen[-1][1].b.shape == (3,)
        for record in outcome.trace:
            assert record.current.primal == pytest.approx(record.measures["own"], rel=1e-12)
        last = fit(X, y, loss, bias="exact", output="last", tol=1e-3)
        assert last.certificate.primal == last.trace[-1].current.primal
        for metric in ("loss", "error"):
            early = fit(X, y, loss, validation=0.25, metric=metric, tol=0.0, patience=2)
            held = early.trace[-1].measures["validation"]
            assert early.reason.name == "early"
            assert held >= min(record.measures["validation"] for record in early.trace)
            assert early.model.verify(X, y).verdict == "true"
        pair = fit(X, y, loss, validation=(X[:50], y[:50]), metric="error", tol=0.0, patience=2)
        error = min(record.measures["validation"] for record in pair.trace)
        assert error == pytest.approx((pair.model.predict(X[:50]) != y[:50]).mean())


class TestRefusals:
    def test_solvers_and_losses_that_do_not_go_together(self) -> None:
        X, y = blobs()
        with pytest.raises(InputError, match="with the loss 'multinomial'; these can: joint-dual"):
            dualgap.fit(X, y, loss="multinomial", solver="dcd")
        with pytest.raises(InputError, match="'joint-dual' cannot train with the loss 'hinge'"):
            dualgap.fit(X, y > 0, solver="joint-dual")
        with pytest.raises(InputError, match="all classes at once, and not one against"):
            dualgap.one_vs_rest(X, y, loss="crammer-singer")
        with pytest.raises(InputError, match="task='regression': the multinomial loss is for classes"):
            dualgap.fit(X, y, loss="multinomial", task="regression")
        with pytest.raises(InputError, match="task='classes': the hinge loss has one score a row"):
            dualgap.fit(X, y > 0, task="classes")
        with pytest.raises(InputError, match="hard margin, which belongs to the hinge"):
            dualgap.fit(X, y, loss="crammer-singer", C=np.inf)
        with pytest.raises(InputError, match=r"lam=0\.0 must be positive"):
            dualgap.fit(X, y, loss="multinomial", lam=0.0)
        with pytest.raises(InputError, match="metric='break-even' is for a single score a row"):
            dualgap.fit(X, y, loss="multinomial", validation=0.2, metric="break-even")
        with pytest.raises(InputError, match="y holds one class only"):
            dualgap.fit(X, np.zeros(y.size), loss="multinomial")
        with pytest.raises(InputError, match="models of one class against the rest have no probabilities"):
            dualgap.one_vs_rest(X, y, loss="logistic").model.predict_proba(X)

    def test_a_class_without_rows(self) -> None:
        X, y = blobs()
        weight = np.where(y == 1, 0.0, 1.0)
        with pytest.raises(InputError, match="class 1 has no row of positive weight in training"):
            fit(X, y, "multinomial", bias="exact", sample_weight=weight)
        assert fit(X, y, "multinomial", bias="augmented", sample_weight=weight).converged

    def test_rows_on_disk(self) -> None:
        X, y = blobs()
        feed = ChunkFeed(lambda: iter([(sp.csr_array(X), y.astype(float))]))
        with pytest.raises(
            InputError, match="solver 'joint-dual' needs all rows in memory, and these stay on"
        ):
            dualgap.fit(feed, loss="crammer-singer", solver="joint-dual", in_memory=False)
        with pytest.raises(InputError, match="bias='exact' needs all rows in memory"):
            dualgap.fit(feed, loss="multinomial", bias="exact", in_memory=False)
        whole = fit(feed, None, "multinomial", in_memory=True)
        assert whole.converged
        streamed = fit(feed, None, "multinomial", in_memory=False)
        assert streamed.solver.name == "joint-block"
        assert streamed.certificate.primal == pytest.approx(whole.certificate.primal, rel=2e-4)


def test_a_first_fit_of_two_classes_loads_nothing_of_it() -> None:
    program = (
        "import sys, numpy as np, dualgap; X = np.eye(6); dualgap.LinearSVC().fit(X, [0, 1] * 3);"
        "dualgap.fit(X, [0, 1] * 3, loss='logistic');"
        "print([name for name in sys.modules if 'joint' in name])"
    )
    done = subprocess.run([sys.executable, "-c", program], capture_output=True, text=True, timeout=120)
    assert done.stdout.strip() == "[]", done.stderr


@pytest.mark.parametrize("loss", LOSSES)
def test_commands(loss: str, forks: Forks, tmp_path: Path) -> None:
    X, y = blobs()
    data, model = tmp_path / "data.svm", tmp_path / "m"
    write_svmlight(data, X, np.array([3, 5, 8])[y])
    told = forks("train", data, "-o", model, "--loss", loss, "--C", "0.1", "--bias", "exact", "--tol", "1e-3")
    assert told.code == 0, told.err
    assert "3 classes (3, 5, 8): one model of all of them" in told.out
    assert "Proven: the objective is at most" in told.out
    found = forks("train", data, "-o", model, "--loss", loss, "--C", "0.1", "--bias", "exact", "--json").json
    assert (found["loss"], found["solver"], found["classes"]) == (loss, "joint-dual", [3, 5, 8])
    assert found["converged"]
    assert forks("certify", model, data).code == 0
    labels = forks("predict", model, data).out.split()
    assert set(labels) == {"3", "5", "8"}
    assert len(forks("predict", model, data, "--scores").out.splitlines()[0].split()) == 3
    likely = forks("predict", model, data, "--probabilities")
    if loss == "multinomial":
        assert sum(map(float, likely.out.splitlines()[0].split())) == pytest.approx(1.0)
    else:
        assert (likely.code, "has no probabilities" in likely.err) == (2, True)
    measured = forks("evaluate", model, data, "--json").json
    assert measured["accuracy"] == pytest.approx(np.mean(np.array(labels) == np.array(["3", "5", "8"])[y]))
    card = forks("inspect", model)
    assert "classification of 3 classes (3, 5, 8), all at once" in card.out
    assert "1/2 |W|^2 + C sum_i loss(s_i, y_i), s_i = W x_i + b" in " ".join(card.out.split())
    assert "largest weights" in card.out
    assert len(forks("inspect", model, "--json").json["largest_weights"]) == 3
    refused = forks("train", data, "-o", model, "--loss", loss, "--positive", "3")
    assert (refused.code, "trains all classes at once" in refused.err) == (2, True)
