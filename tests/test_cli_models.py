"""``predict``, ``evaluate``, ``certify`` and ``inspect``: what a saved model can do."""

from __future__ import annotations

import os
import signal
import subprocess
import sys
from dataclasses import replace
from pathlib import Path
from typing import Any

import numpy as np
import pytest

from cli_tools import Forks, forks_fixture, run, write_rows  # noqa: F401
from dualgap.cli.certify import dual_from_slopes
from dualgap.cli.evaluate import classification, regression
from dualgap.files import Model, load_model, read_svmlight, save_model
from dualgap.losses import LOSSES
from dualgap.problem import Point, Problem
from dualgap.sources import in_memory

REGRESSION = ("--loss", "squared", "--bias", "augmented")
EXACT = ("--bias", "exact", "--gap", "1e-5", "--option", "shrinking=no")


@pytest.fixture(scope="module")
def folder(tmp_path_factory: pytest.TempPathFactory, forks: Forks) -> Path:
    """Rows, other rows, and models: with duals (m), without (bare), for regression (r), with an exact bias (e)."""
    place = tmp_path_factory.mktemp("models")
    rows = write_rows(place / "rows.svm")
    write_rows(place / "test.svm", seed=1)
    for name, more in (("m", ()), ("bare", ("--no-duals",)), ("r", REGRESSION), ("e", EXACT)):
        assert forks("train", rows, "-o", place / name, "--quiet", *more).code == 0
    return place


def test_predict_prints_labels_as_the_training_file_has_them(folder: Path) -> None:
    done = run("predict", folder / "m", folder / "test.svm")
    assert (done.code, done.err) == (0, "")
    scores = load_model(folder / "m").decision(read_svmlight(folder / "test.svm").X)
    assert done.out.splitlines() == ["1" if score > 0 else "-1" for score in scores]


def test_predict_prints_scores_that_read_back_exactly(folder: Path, forks: Forks, tmp_path: Path) -> None:
    expected = load_model(folder / "m").decision(read_svmlight(folder / "test.svm").X).tolist()
    told = forks("predict", folder / "m", folder / "test.svm", "--scores")
    assert [float(line) for line in told.out.splitlines()] == expected
    quiet = forks("predict", folder / "m", folder / "test.svm", "--scores", "-o", tmp_path / "p")
    assert quiet == (0, "", "")
    assert (tmp_path / "p").read_text() == told.out
    assert [path.name for path in tmp_path.iterdir()] == ["p"]
    assert forks("predict", folder / "m", folder / "test.svm", "--scores", "--json").json["scores"] == expected
    found = forks("predict", folder / "m", folder / "test.svm", "-o", tmp_path / "p", "--json").json
    assert found == {"n_samples": 200, "output": str(tmp_path / "p")}


def test_predict_takes_narrower_data(folder: Path, forks: Forks, tmp_path: Path) -> None:
    (tmp_path / "narrow.svm").write_text("0 1:1\n0\n")
    done = forks("predict", folder / "r", tmp_path / "narrow.svm")
    model = load_model(folder / "r")
    expected = [model.coef[0, 0] + model.intercept[0], model.intercept[0]]
    assert (done.code, [float(line) for line in done.out.splitlines()]) == (0, expected)


def test_a_reader_that_leaves_early_gets_no_traceback(folder: Path) -> None:
    command = [sys.executable, "-m", "dualgap.cli", "predict", str(folder / "m"), str(folder / "test.svm")]
    read, write = os.pipe()
    os.close(read)
    done = subprocess.run(command, stdout=write, stderr=subprocess.PIPE, text=True)
    os.close(write)
    assert done.returncode != 0
    assert done.stderr == ""


def test_evaluate_measures(folder: Path, forks: Forks) -> None:
    from sklearn import metrics

    found = forks("evaluate", folder / "m", folder / "test.svm", "--json").json
    data = read_svmlight(folder / "test.svm")
    scores = load_model(folder / "m").decision(data.X)
    predicted = np.where(scores > 0, 1, -1)
    assert found["accuracy"] == metrics.accuracy_score(data.y, predicted)
    assert found["error"] == pytest.approx(1 - found["accuracy"])
    assert found["precision"] == metrics.precision_score(data.y, predicted)
    assert found["recall"] == metrics.recall_score(data.y, predicted)
    assert found["f1"] == pytest.approx(metrics.f1_score(data.y, predicted), rel=1e-12)
    assert found["auc"] == pytest.approx(metrics.roc_auc_score(data.y, scores), rel=1e-12)
    told = forks("evaluate", folder / "m", folder / "test.svm")
    assert f"{found['f1']:.6g}" in told.out
    assert told.err == ""


def test_evaluate_measures_regression(folder: Path, forks: Forks) -> None:
    from sklearn import metrics

    found = forks("evaluate", folder / "r", folder / "test.svm", "--json").json
    data = read_svmlight(folder / "test.svm")
    scores = load_model(folder / "r").decision(data.X)
    assert found == {
        "n_samples": 200,
        "mse": pytest.approx(metrics.mean_squared_error(data.y, scores)),
        "mae": pytest.approx(metrics.mean_absolute_error(data.y, scores)),
        "r2": pytest.approx(metrics.r2_score(data.y, scores)),
    }


def test_the_break_even_point() -> None:
    y = np.array([1.0, 1.0, -1.0, 1.0, -1.0, -1.0])
    # the three highest scores hold two of the three positive rows
    assert classification(y, np.array([6.0, 5, 4, 3, 2, 1]))["break_even"] == pytest.approx(2 / 3)
    assert classification(y, y)["break_even"] == 1.0
    assert classification(y, -y)["break_even"] == 0.0
    # all tied: three of six rows taken at random hold half of the positive ones
    assert classification(y, np.zeros(6))["break_even"] == pytest.approx(0.5)
    # two rows above, then a tie of three, one of which is taken: 2 + 1/3 of 3
    assert classification(y, np.array([6.0, 5, 4, 4, 4, 1]))["break_even"] == pytest.approx((2 + 1 / 3) / 3)


def test_ties_count_half_in_the_area() -> None:
    from sklearn.metrics import roc_auc_score

    rng = np.random.default_rng(0)
    y, scores = np.where(rng.random(300) < 0.3, 1.0, -1.0), rng.integers(0, 7, 300).astype(float)
    assert classification(y, scores)["auc"] == pytest.approx(roc_auc_score(y, scores), rel=1e-12)


def test_what_is_not_defined_is_null(folder: Path, forks: Forks, tmp_path: Path) -> None:
    (tmp_path / "one.svm").write_text("-1 1:-1\n-1 2:-1\n")
    found = forks("evaluate", folder / "m", tmp_path / "one.svm", "--json").json
    assert found["recall"] is found["auc"] is found["break_even"] is None
    assert "-  share of positive rows" in forks("evaluate", folder / "m", tmp_path / "one.svm").out
    assert np.isnan(regression(np.ones(3), np.zeros(3))["r2"])


def test_a_true_certificate(folder: Path, forks: Forks) -> None:
    done = forks("certify", folder / "m", folder / "rows.svm", "--json")
    found = done.json
    assert (done.code, done.err) == (0, "")
    assert found["verdict"] == "true"
    assert found["same_rows"] is True
    assert found["duals"] == "stored"
    assert found["stored"]["primal"] == pytest.approx(found["recomputed"]["primal"], rel=1e-12)
    assert found["stored"]["dual"] == pytest.approx(found["recomputed"]["dual"], rel=1e-12)
    for name in ("r", "e"):
        told = forks("certify", folder / name, folder / "rows.svm")
        assert told.code == 0
        assert "\ntrue: " in told.out
    assert load_model(folder / "e").intercept[0] != 0.0


def test_other_rows_make_no_true_certificate(folder: Path, forks: Forks, tmp_path: Path) -> None:
    for change in (reversed, lambda lines: [*lines[:-1], lines[-1] + " 12:0.001"]):
        lines = (folder / "rows.svm").read_text().splitlines()
        (tmp_path / "other.svm").write_text("\n".join(change(lines)) + "\n")
        done = forks("certify", folder / "m", tmp_path / "other.svm", "--json")
        assert (done.code, done.json["verdict"], done.json["same_rows"]) == (1, "not true", False)
    (tmp_path / "fewer.svm").write_text("1 1:1\n-1 2:1\n")
    done = forks("certify", folder / "m", tmp_path / "fewer.svm")
    assert done.code == 1
    assert "DATA has 2 rows and the model was trained on 200" in done.out


def boast(model: Model, **changes: float) -> Model:
    certificate = {**model.proofs[0].certificate, **changes}
    return replace(model, proofs=(model.proofs[0]._replace(certificate=certificate),))


@pytest.mark.parametrize(
    ("lie", "complaint"),
    [
        (lambda m: boast(m, primal=m.certificate.primal * (1 - 1e-9)), "the objective is"),
        (lambda m: boast(m, dual=m.certificate.dual * (1 + 1e-9)), "the lower bound is"),
        (lambda m: boast(m, gap=m.certificate.gap * 0.9), "the gap is"),
        (lambda m: boast(m, relative_gap=m.certificate.relative_gap * 0.9), "the relative gap is"),
        (lambda m: replace(m, coef=m.coef * 1.01), "the objective is"),
        (lambda m: replace(m, dual=m.dual * 0.99), "the lower bound is"),
        (lambda m: replace(m, dual=m.dual * 1.01), "the lower bound is -inf"),
    ],
)
def test_a_lie_is_found_out(folder: Path, forks: Forks, tmp_path: Path, lie: Any, complaint: str) -> None:
    save_model(tmp_path / "liar", lie(load_model(folder / "m")))
    done = forks("certify", tmp_path / "liar", folder / "rows.svm", "--json")
    assert (done.code, done.json["verdict"]) == (1, "not true")
    assert complaint in done.json["reason"]


def test_a_model_without_duals_has_a_weaker_bound(folder: Path, forks: Forks) -> None:
    assert load_model(folder / "bare").dual is None
    assert (folder / "bare").stat().st_size < (folder / "m").stat().st_size
    done = forks("certify", folder / "bare", folder / "rows.svm", "--json")
    found = done.json
    assert (done.code, found["verdict"], found["duals"]) == (1, "unproven", "slopes")
    assert "saved without duals" in found["reason"]
    assert found["recomputed"]["primal"] == pytest.approx(found["stored"]["primal"])
    assert 0 < found["recomputed"]["dual"] < found["stored"]["dual"]


@pytest.mark.parametrize("name", list(LOSSES))
def test_slopes_give_a_valid_bound_for_every_loss(folder: Path, name: str) -> None:
    data = read_svmlight(folder / "rows.svm")
    problem = Problem(in_memory(data.X, data.y), LOSSES[name](), 1e-2)
    w = np.random.default_rng(0).standard_normal(12)
    beta = dual_from_slopes(problem, w, 0.0)
    scores = data.X @ w
    slopes = np.array([-problem.loss.slope(y, s) for y, s in zip(data.y, scores, strict=True)])
    bounds = [problem.judge(Point(w, 0.0, s * slopes)).dual for s in np.linspace(0, 1, 21)]
    found = problem.judge(Point(w, 0.0, beta))
    assert np.isfinite(found.dual)
    assert found.dual <= found.primal
    assert found.dual >= max(bounds) - 1e-6 * abs(max(bounds))


def test_slopes_are_the_optimal_duals_of_a_smooth_loss(folder: Path, forks: Forks, tmp_path: Path) -> None:
    smooth = ("--loss", "logistic", "--gap", "1e-9", "--no-duals")
    assert forks("train", folder / "rows.svm", "-o", tmp_path / "m", "--quiet", *smooth).code == 0
    found = forks("certify", tmp_path / "m", folder / "rows.svm", "--json").json
    assert found["recomputed"]["relative_gap"] < 1e-4


def test_inspect_shows_what_is_in_a_model(folder: Path, forks: Forks) -> None:
    model = load_model(folder / "m")
    told = forks("inspect", folder / "m")
    assert told.code == 0
    largest = int(np.argmax(np.abs(model.coef[0])))
    for part in (
        "classification of -1 and 1",
        "hinge",
        "200 rows, 12 features",
        f"largest       {largest + 1}: ",
        "dcd",
    ):
        assert part in told.out
    assert model.fingerprint is not None
    assert model.fingerprint in told.out
    found = forks("inspect", folder / "bare", "--json").json
    assert found["format"] == "dualgap model"
    assert found["nonzero_duals"] is None
    assert found["proofs"][0]["certificate"] == model.proofs[0].certificate
    assert "left out" in forks("inspect", folder / "bare").out


def test_a_model_of_several_classes_is_predicted_with_and_nothing_else_yet(
    folder: Path, forks: Forks, tmp_path: Path
) -> None:
    one = load_model(folder / "bare")
    coef = np.zeros((3, 12))
    coef[0, 0] = coef[1, 1] = 1.0
    three = replace(one, coef=coef, intercept=np.array([0.0, 0.0, 0.5]), classes=(4, 5, 6), proofs=one.proofs * 3)
    save_model(tmp_path / "m", three)
    (tmp_path / "d.svm").write_text("4 1:1\n5 2:1\n6\n")
    assert forks("predict", tmp_path / "m", tmp_path / "d.svm").out == "4\n5\n6\n"
    assert forks("inspect", tmp_path / "m").code == 0
    assert "takes models of two" in forks("evaluate", tmp_path / "m", tmp_path / "d.svm").error


def test_ctrl_c_while_predicting_leaves_nothing(folder: Path, tmp_path: Path) -> None:
    os.mkfifo(tmp_path / "pipe")
    command = ["predict", str(folder / "m"), str(tmp_path / "pipe"), "-o", str(tmp_path / "p")]
    process = subprocess.Popen(
        [sys.executable, "-m", "dualgap.cli", *command],
        stdout=subprocess.PIPE,
        stderr=subprocess.PIPE,
        text=True,
        preexec_fn=lambda: signal.signal(signal.SIGINT, signal.SIG_DFL) and None,
    )
    writer = os.open(tmp_path / "pipe", os.O_WRONLY)
    process.send_signal(signal.SIGINT)
    out, err = process.communicate(timeout=60)
    os.close(writer)
    assert (process.returncode, out, err.split()) == (130, "", ["dualgap:", "interrupted"])
    assert [path.name for path in tmp_path.iterdir()] == ["pipe"]
