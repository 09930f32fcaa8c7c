"""``predict``, ``evaluate``, ``certify`` and ``inspect``: what a saved model can do."""

from __future__ import annotations

import json
import os
import re
import signal
import subprocess
import sys
from dataclasses import replace
from pathlib import Path
from typing import Any

import numpy as np
import pytest
import scipy.sparse as sp

from dualgap import cli
from dualgap.core.losses import LOSSES
from dualgap.core.problem import Point, Problem
from dualgap.data.sources import view
from dualgap.files import Model, load_model, read_svmlight, save_model
from dualgap.models.metrics import classification, regression
from dualgap.models.rebuilding import dual_from_slopes
from dualgap.models.saving import VERSION
from dualgap.runtime.archive import read_archive, write_archive
from support.commands import Forks, forks_fixture, heed_ctrl_c, run, write_rows  # noqa: F401

REGRESSION = ("--loss", "squared", "--bias", "augmented")
EXPANDED = ("--expand", "poly2", "--hash-bits", "8")
EXACT = ("--bias", "exact", "--tol", "1e-5", "--option", "shrinking=no")


@pytest.fixture(scope="module")
def folder(tmp_path_factory: pytest.TempPathFactory, forks: Forks) -> Path:
    """Rows, other rows, and models: with duals (m), without (bare), for regression (r), with an exact bias
    (e), of products of columns (x), of three classes (k).
    """
    place = tmp_path_factory.mktemp("models")
    rows = write_rows(place / "rows.svm")
    write_rows(place / "test.svm", seed=1)
    for name, more in (
        ("m", ()),
        ("bare", ("--no-duals",)),
        ("r", REGRESSION),
        ("e", EXACT),
        ("x", EXPANDED),
    ):
        assert forks("train", rows, "-o", place / name, "--quiet", *more).code == 0
    lines = rows.read_text().splitlines()  # the same rows in three classes: by their third column
    labels = ["7" if " 3:" not in line else line.split()[0] for line in lines]
    kinds = [f"{label} {line.partition(' ')[2]}" for label, line in zip(labels, lines, strict=True)]
    (place / "kinds.svm").write_text("\n".join(kinds) + "\n")
    assert forks("train", place / "kinds.svm", "-o", place / "k", "--quiet", "--C", "0.1").code == 0
    return place


@pytest.mark.slow
def test_predict_prints_labels_as_the_training_file_has_them(folder: Path) -> None:
    done = run("predict", folder / "m", folder / "test.svm")
    assert (done.code, done.err) == (0, "")
    scores = load_model(folder / "m").decision_function(read_svmlight(folder / "test.svm").X)
    assert done.out.splitlines() == ["1" if score > 0 else "-1" for score in scores]


def test_predict_prints_scores_that_read_back_exactly(folder: Path, forks: Forks, tmp_path: Path) -> None:
    expected = load_model(folder / "m").decision_function(read_svmlight(folder / "test.svm").X).tolist()
    told = forks("predict", folder / "m", folder / "test.svm", "--scores")
    assert [float(line) for line in told.out.splitlines()] == expected
    quiet = forks("predict", folder / "m", folder / "test.svm", "--scores", "-o", tmp_path / "p")
    assert quiet == (0, "", "")
    assert (tmp_path / "p").read_text() == told.out
    assert [path.name for path in tmp_path.iterdir()] == ["p"]
    assert (
        forks("predict", folder / "m", folder / "test.svm", "--scores", "--json").json["scores"] == expected
    )
    found = forks("predict", folder / "m", folder / "test.svm", "-o", tmp_path / "p", "--json").json
    assert found == {"n_samples": 200, "output": str(tmp_path / "p")}


def test_predict_takes_narrower_data(folder: Path, forks: Forks, tmp_path: Path) -> None:
    (tmp_path / "narrow.svm").write_text("0 1:1\n0\n")
    done = forks("predict", folder / "r", tmp_path / "narrow.svm")
    model = load_model(folder / "r")
    expected = [model.coef[0, 0] + model.intercept[0], model.intercept[0]]
    assert (done.code, [float(line) for line in done.out.splitlines()]) == (0, expected)


@pytest.mark.slow
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
    scores = load_model(folder / "m").decision_function(data.X)
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
    scores = load_model(folder / "r").decision_function(data.X)
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
    lines = (folder / "rows.svm").read_text().splitlines()
    one, other = (
        next(line for line in lines if line[0] == "1"),
        next(line for line in lines if line[0] == "-"),
    )
    for changed in (
        [*lines[:-1], lines[-1] + " 12:0.001"],
        [one, *lines[1:]] if lines[0] == other else [other, *lines[1:]],  # one row twice, another left out
        # labels of two rows turned over
        [{one: "-" + one, other: other[1:]}.get(line, line) for line in lines],
    ):
        (tmp_path / "other.svm").write_text("\n".join(changed) + "\n")
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


@pytest.mark.slow
def test_rows_in_another_order_are_the_same_rows(folder: Path, forks: Forks, tmp_path: Path) -> None:
    lines = (folder / "rows.svm").read_text().splitlines()
    (tmp_path / "other.svm").write_text("\n".join(reversed(lines)) + "\n")
    for name in ("m", "r", "e"):
        done = forks("certify", folder / name, tmp_path / "other.svm", "--json")
        found = done.json
        assert (done.code, found["verdict"], found["same_rows"], found["same_order"]) == (
            0,
            "true",
            True,
            False,
        )
        assert found["recomputed"]["dual"] == pytest.approx(found["stored"]["dual"], rel=1e-12)
    assert (
        "training rows: the same, in another order\n"
        in forks("certify", folder / "m", tmp_path / "other.svm").out
    )
    assert forks("certify", folder / "bare", tmp_path / "other.svm", "--json").json["verdict"] == "unproven"
    model = load_model(folder / "m")
    lies = {
        "duals": (replace(model, dual=sp.csr_array(model.dual * 0.99)), "the lower bound is"),
        "hashes": (replace(model, dual_hashes=model.dual_hashes[::-1]), "the lower bound is"),
        "strangers": (
            replace(model, dual_hashes=model.dual_hashes + np.uint64(1)),
            "the stored hashes of the rows",
        ),
        "earlier": (replace(model, rows_in_any_order=None), "not the training rows in their order"),
    }
    for name, (lie, complaint) in lies.items():
        save_model(tmp_path / name, lie)
        done = forks("certify", tmp_path / name, tmp_path / "other.svm", "--json")
        assert (done.code, done.json["verdict"]) == (1, "not true"), name
        assert complaint in done.json["reason"]
    save_model(tmp_path / "liar", replace(model, dual_hashes=model.dual_hashes[::-1]))
    found = forks("certify", tmp_path / "liar", folder / "rows.svm", "--json").json
    assert "the stored hashes of the rows that have duals" in found["reason"]


def other(loss: str) -> dict[str, Any]:
    return {"name": loss, "parameters": {}}


CERTIFICATE = "proofs.0.certificate"
FORGERIES: list[
    tuple[str, str, list[Any], str]
] = [  # a model, a field of its header, values, and what certify says
    ("m", "C", [-1.0, 0.0, 2.0, 1.0 + 1e-12, "nan", "inf"], "the stored C is"),
    ("m", "proofs.0.lam", [0.0051, 1e-300], "the stored C is"),
    ("m", "proofs.0.lam", [-0.005, "nan", "inf"], "the stored lam is"),
    ("m", "proofs.0.lam", [0.0], "the stored C is"),
    ("m", "proofs.0.total_weight", [-3, 0.0, "nan", "inf"], "the stored total weight is"),
    ("m", "proofs.0.total_weight", [199, 201.0], "the stored C is"),
    ("m", "n_samples", [199, 201, 1], "DATA has 200 rows|not a valid dualgap model"),
    ("m", "n_samples", [-1, 0, 200.5, "200", None], "not a valid dualgap model"),
    ("m", "n_features", [11, 13], "not a valid dualgap model"),
    ("m", "task", ["regression", "dancing"], "not a valid dualgap model"),
    ("r", "task", ["classification", "dancing"], "not a valid dualgap model"),
    (
        "m",
        "loss.name",
        ["squared-hinge", "squared", "none", 3],
        "no parameter|unknown loss|not a valid dualgap model",
    ),
    (
        "m",
        "loss",
        [other("squared-hinge"), other("logistic"), other("smooth-hinge"), other("squared")],
        "the objective is",
    ),
    (
        "r",
        "loss",
        [other("hinge")],
        "the stored task is regression, and the hinge loss is for classification",
    ),
    ("r", "loss", [other("absolute"), other("epsilon-insensitive"), other("huber")], "the objective is"),
    ("m", "loss.parameters", [{"margin": 2.0}, {"gamma": 1.0}, [], None], ""),
    ("m", "bias.kind", ["augmented", "exact"], "the lower bound is"),
    ("r", "bias.kind", ["none", "exact"], "the objective is"),
    ("e", "bias.kind", ["none", "augmented"], "the objective is"),
    ("m", "bias.kind", ["free", None, 1], "unknown bias|not a valid dualgap model"),
    ("m", "bias.rho", [2.0, -1.0, 0.0, "nan"], "the stored rho is"),
    ("r", "bias.rho", [1.5, -1.5, 0.0, "nan"], "the objective is|rho="),
    ("m", f"{CERTIFICATE}.form", ["mean", "K", None], "the stored certificate is in form|not a valid"),
    ("m", f"{CERTIFICATE}.primal", [-1.0, 0.0, 1e9, "inf", "nan"], "the objective is"),
    ("m", f"{CERTIFICATE}.dual", [-1.0, 0.0, 1e9, "-inf", "nan"], "the lower bound is"),
    ("m", f"{CERTIFICATE}.gap", [-1.0, 0.0, 1e9, "inf", "nan"], "the gap is"),
    ("m", f"{CERTIFICATE}.relative_gap", [-1.0, 0.0, 1e9, "inf", "nan"], "the relative gap is"),
    ("bare", f"{CERTIFICATE}.gap", [-1.0, 0.0, 1e9, "inf", "nan"], "the stored gap is"),
    ("bare", f"{CERTIFICATE}.relative_gap", [-1.0, 0.0, 1e9, "inf", "nan"], "the relative gap is"),
    ("m", f"{CERTIFICATE}.rounding", [-1e-9, "nan", "inf"], "the stored rounding is"),
    ("m", f"{CERTIFICATE}.rounding", [0.0, 1e-3, 1e9, 1e300], "the stored gap is"),
    ("m", "fingerprint", ["ab" * 32, None], "the stored fingerprints of the rows contradict each other"),
    ("m", "rows.in_order", ["ab" * 32], "the stored fingerprints of the rows contradict each other"),
    ("m", "rows.in_any_order", ["ab" * 32], "the stored fingerprints of the rows contradict each other"),
    ("m", "classes", [[1, -1]], "the rows of DATA are not the training rows"),
    (
        "m",
        "classes",
        [[1, 1], [-1, 2], [0, 1]],
        "label|not a valid|the rows of DATA are not the training rows",
    ),
    ("m", "zero_based", [True], "index|the rows of DATA are not the training rows"),
    ("m", "scale", ["2.0", "unit-rows"], "the objective is"),
    ("m", "scale", ["max-abs", "loud", "2", 3], "not a valid dualgap model|scale="),
    ("x", "expansion.name", ["kmer:3"], "the objective is"),
    ("x", "expansion.name", ["poly3"], "is not known"),
    ("x", "expansion.hash_bits", [7, 9], "not a valid dualgap model: the expansion"),
    ("x", "expansion", [None], "the objective is"),
    (
        "m",
        "expansion",
        [{"name": "poly2", "hash_bits": 8, "n_inputs": 12}],
        "not a valid dualgap model: the expansion",
    ),
    ("m", "class_weight", [[1.0, 2.0], [0.0, 1.0]], "the rows of DATA are not the training rows"),
    ("m", "class_weight", [[1.0], ["nan", 1.0], [-1.0, 1.0], 3], "not a valid dualgap model"),
    (
        "k",
        "classes",
        [[-1, 7, 1], [1, -1, 7], [-1, 1, 8], [-1, 1]],
        "label|not the training rows|not a valid",
    ),
    ("k", "classes", [[-1, -1, 7], [None, 1, 7]], "not a valid dualgap model|label"),
    ("k", "class_weight", [[1.0, 1.0, 2.0]], "the rows of DATA are not the training rows"),
    ("k", "C", [0.2, "nan"], "class -1: the stored C is"),
    ("k", "n_samples", [199, 201], "DATA has 200 rows|not a valid dualgap model"),
    ("k", "fingerprint", ["ab" * 32, None], "the stored fingerprints of the rows contradict each other"),
    ("k", "bias.kind", ["augmented", "exact"], "class -?[17]: the (lower bound|objective) is"),
    ("k", "proofs.1.lam", [0.06, -1.0], "class 1: the stored (C|lam) is"),
    ("k", "proofs.2.total_weight", [199.0, "inf"], "class 7: the stored (C|total weight) is"),
    ("k", "proofs.0.certificate.primal", [0.0, "nan", 1e9], "class -1: the objective is"),
    ("k", "proofs.1.certificate.dual", [0.0, "nan", 1e9], "class 1: the lower bound is"),
    ("k", "proofs.2.certificate.gap", [0.0, "nan", 1e9], "class 7: the gap is"),
    ("k", "proofs.1.certificate.relative_gap", [0.0, "nan", 1e9], "class 1: the relative gap is"),
    ("k", "proofs.2.certificate.rounding", [1e-3, -1.0], "class 7: the stored (gap|rounding) is"),
    ("k", "proofs.1.certificate.form", ["mean"], "class 1: the stored certificate is in form"),
]
HISTORY = {  # what tells how a model came about or is called: no certificate rests on it
    *("format", "version", "dualgap", "feature_names", "expansion.n_inputs", "solver", "trained"),
    *(f"proofs.0.{name}" for name in ("converged", "stop_reason", "message", "epochs", "visits", "seconds")),
}


def forged(model: Path, copy: Path, field: str, value: Any) -> Path:
    """A copy of the model that has another value in its header, and a valid checksum."""
    header, arrays = read_archive(model, "dualgap model", VERSION)
    *path, last = (int(word) if word.isdigit() else word for word in field.split("."))
    place: Any = header
    for step in path:
        place = place[step]
    assert place[last] != value
    place[last] = value
    write_archive(copy, header, arrays)
    return copy


@pytest.mark.slow
@pytest.mark.parametrize(("name", "field", "values", "complaint"), FORGERIES)
def test_every_forged_field_is_found_out(
    folder: Path, tmp_path: Path, capsys: Any, name: str, field: str, values: list[Any], complaint: str
) -> None:
    for value in values:
        model = forged(folder / name, tmp_path / "forged", field, value)
        data = folder / ("kinds.svm" if name == "k" else "rows.svm")
        code = cli._run(["certify", str(model), str(data), "--json"])
        said = capsys.readouterr()
        assert code in (1, 2), (value, said)
        if code == 1:
            found = json.loads(said.out)
            assert (found["verdict"], said.err) == ("not true", ""), value
            assert re.search(complaint, found["reason"]), (value, found["reason"])
            assert "\n" not in found["reason"]
        else:
            assert said.out == ""
            assert said.err.startswith("dualgap: error: ")
            assert said.err.count("\n") == 1
            assert re.search(complaint, said.err), (value, said.err)


def test_no_field_of_the_header_is_left_out(folder: Path) -> None:
    known = {field for _, field, _, _ in FORGERIES} | HISTORY

    def leaves(value: Any, field: str) -> Any:
        if field in known and not (isinstance(value, dict) and field in ("expansion", "loss")):
            return []
        if isinstance(value, dict):
            return [
                leaf for key, item in value.items() for leaf in leaves(item, f"{field}.{key}".lstrip("."))
            ]
        if isinstance(value, list):
            return [leaf for k, item in enumerate(value) for leaf in leaves(item, f"{field}.{k}")]
        return [field]

    header, _ = read_archive(folder / "x", "dualgap model", VERSION)
    assert leaves(header, "") == []


def test_a_model_without_duals_has_a_weaker_bound(folder: Path, forks: Forks) -> None:
    assert load_model(folder / "bare").dual is None
    assert (folder / "bare").stat().st_size < (folder / "m").stat().st_size
    done = forks("certify", folder / "bare", folder / "rows.svm", "--json")
    found = done.json
    assert (done.code, found["verdict"], found["duals"]) == (1, "unproven", "slopes")
    assert "saved without duals" in found["reason"]
    assert found["recomputed"]["primal"] == pytest.approx(found["stored"]["primal"])
    assert 0 < found["recomputed"]["dual"] < found["stored"]["dual"]


@pytest.mark.slow
@pytest.mark.parametrize("name", list(LOSSES))
def test_slopes_give_a_valid_bound_for_every_loss(folder: Path, name: str) -> None:
    data = read_svmlight(folder / "rows.svm")
    problem = Problem(view(data.X, data.y), LOSSES[name](), 1e-2)
    w = np.random.default_rng(0).standard_normal(12)
    beta = dual_from_slopes(problem, w, 0.0)
    scores = data.X @ w
    slopes = np.array([-problem.loss.derivative(y, s) for y, s in zip(data.y, scores, strict=True)])
    bounds = [problem.evaluate(Point(w, 0.0, s * slopes)).dual for s in np.linspace(0, 1, 21)]
    found = problem.evaluate(Point(w, 0.0, beta))
    assert np.isfinite(found.dual)
    assert found.dual <= found.primal
    assert found.dual >= max(bounds) - 1e-6 * abs(max(bounds))


@pytest.mark.slow
def test_slopes_are_the_optimal_duals_of_a_smooth_loss(folder: Path, forks: Forks, tmp_path: Path) -> None:
    smooth = ("--loss", "logistic", "--tol", "1e-9", "--no-duals")
    assert forks("train", folder / "rows.svm", "-o", tmp_path / "m", "--quiet", *smooth).code == 0
    found = forks("certify", tmp_path / "m", folder / "rows.svm", "--json").json
    assert found["recomputed"]["relative_gap"] < 1e-4


def test_inspect_shows_what_is_in_a_model(folder: Path, forks: Forks) -> None:
    model = load_model(folder / "m")
    told = forks("inspect", folder / "m")
    assert told.code == 0
    largest = int(np.argmax(np.abs(model.coef[0])))
    share = 100 * model.certificate.relative_gap
    for part in (
        "classification of -1 and 1",
        "1/2 |w|^2 + C sum_i loss(s_i, y_i), s_i = <w, x_i>, loss(s, y) = max(0, margin - y s) with C = 1",
        "rows.svm: 200 rows, 12 features",
        f"{largest + 1}: {model.coef[0, largest]:.4g}",
        f"Proven: the objective is at most {share:.3g}% above the smallest possible.",
        f"primal {model.certificate.primal:.8g}",
        f"date              {model.trained}",
        "dcd (auto: ",
        f"dualgap predict {folder / 'm'} DATA",
    ):
        assert part in told.out, part
    assert model.fingerprint is not None
    assert model.fingerprint in told.out
    found = forks("inspect", folder / "bare", "--json").json
    assert found["format"] == "dualgap model"
    assert found["nonzero_duals"] is None
    assert found["objective"].startswith("1/2 |w|^2 + C sum_i loss")
    assert found["statement"] in told.out
    names = [name for sign in ("positive", "negative") for name, _ in found["largest_weights"][0][sign]]
    assert str(largest + 1) in names
    assert re.fullmatch(r"20\d\d-\d\d-\d\dT\d\d:\d\d:\d\dZ", found["trained"]["date"])
    assert found["trained"]["data"] == "rows.svm"
    assert found["proofs"][0]["certificate"] == model.proofs[0].certificate
    assert "left out" in forks("inspect", folder / "bare").out


@pytest.mark.slow
def test_ctrl_c_while_predicting_leaves_nothing(folder: Path, tmp_path: Path) -> None:
    os.mkfifo(tmp_path / "pipe")
    command = ["predict", str(folder / "m"), str(tmp_path / "pipe"), "-o", str(tmp_path / "p")]
    process = subprocess.Popen(
        [sys.executable, "-m", "dualgap.cli", *command],
        stdout=subprocess.PIPE,
        stderr=subprocess.PIPE,
        text=True,
        preexec_fn=heed_ctrl_c,
    )
    writer = os.open(tmp_path / "pipe", os.O_WRONLY)
    process.send_signal(signal.SIGINT)
    out, err = process.communicate(timeout=60)
    os.close(writer)
    assert (process.returncode, out, err.split()) == (130, "", ["dualgap:", "interrupted"])
    assert [path.name for path in tmp_path.iterdir()] == ["pipe"]
