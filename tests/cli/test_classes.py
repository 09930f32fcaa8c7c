"""K classes on the command line: from a file to a confusion matrix, with a certificate for each class."""

from __future__ import annotations

import json
import signal
import subprocess
import sys
import time
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from sklearn import metrics

import dualgap
from dualgap.cli.progress import ClassProgress
from dualgap.files import load_model, read_svmlight, write_store, write_svmlight
from support.commands import Forks, forks_fixture, heed_ctrl_c  # noqa: F401

LABELS = [2.0, 3.0, 5.0, 7.0]


def write_classes(file: Path, n: int = 300, d: int = 10, classes: int = 4, seed: int = 0) -> Path:
    rng = np.random.default_rng(seed)
    centres = np.random.default_rng(99).normal(size=(classes, d))
    y = rng.integers(0, classes, n)
    X = np.where(rng.random((n, d)) < 0.8, 0.8 * centres[y] + rng.normal(size=(n, d)), 0.0).round(3)
    labels = np.array(LABELS)[y] if classes == 4 else y + 1.0
    write_svmlight(file, X, labels)
    return file


@pytest.fixture(scope="module")
def folder(tmp_path_factory: pytest.TempPathFactory, forks: Forks) -> Path:
    place = tmp_path_factory.mktemp("classes")
    rows = write_classes(place / "rows.svm")
    write_classes(place / "test.svm", seed=1)
    done = forks("train", rows, "-o", place / "m", "--C", "0.1", "--json", "--trace", place / "t.jsonl")
    assert (done.code, done.err) == (0, "")
    (place / "told.json").write_text(done.out)
    return place


def test_every_class_has_a_certificate(folder: Path) -> None:
    told, model = json.loads((folder / "told.json").read_text()), load_model(folder / "m")
    data = read_svmlight(folder / "rows.svm")
    assert told["classes"] == [2, 3, 5, 7]
    assert [each["class"] for each in told["per_class"]] == [2, 3, 5, 7]
    assert told["converged"]
    assert told["relative_gap"] == max(each["relative_gap"] for each in told["per_class"]) <= 1e-3
    for k, each in enumerate(told["per_class"]):
        w, sign = model.coef[k], np.where(data.y == LABELS[k], 1.0, -1.0)
        primal = w @ w / 2 + 0.1 * np.maximum(0.0, 1.0 - sign * (data.X @ w)).sum()
        beta = model.dual.toarray()[k]
        v = 0.1 * (data.X.T @ beta)
        assert (sign * beta >= 0).all()
        assert (sign * beta <= 1).all()
        assert each["primal"] == pytest.approx(primal, rel=1e-12)
        assert each["dual"] == pytest.approx(0.1 * (sign @ beta) - v @ v / 2, rel=1e-10)
    many = dualgap.one_vs_rest(folder / "rows.svm", C=0.1)
    assert np.array_equal(model.coef, many.coef)


def test_lines_of_the_trace_name_their_class(folder: Path) -> None:
    lines = [json.loads(line) for line in (folder / "t.jsonl").read_text().splitlines()]
    assert {line["class"] for line in lines} == {2, 3, 5, 7}
    told = json.loads((folder / "told.json").read_text())
    for each in told["per_class"]:
        last = [line for line in lines if line["class"] == each["class"]][-1]
        assert last["primal"] == each["primal"]
        assert last["visits"] == each["visits"]


def test_threads_change_nothing(folder: Path, forks: Forks, tmp_path: Path) -> None:
    rows = folder / "rows.svm"
    done = forks("train", rows, "-o", tmp_path / "m", "--C", "0.1", "--threads", "3", "--json")
    assert done.json["threads"] == 3
    assert np.array_equal(load_model(tmp_path / "m").coef, load_model(folder / "m").coef)


def test_the_report(folder: Path, forks: Forks, tmp_path: Path) -> None:
    done = forks("train", folder / "rows.svm", "-o", tmp_path / "m", "--C", "0.1")
    assert (done.code, done.err) == (0, "")
    assert "4 classes (2, 3, 5, 7): one model each, against the rest" in done.out
    assert "all 4 classes reached the relative gap asked for (0.001)" in done.out
    model = load_model(tmp_path / "m")
    for label, certificate in zip((2, 3, 5, 7), model.certificates, strict=True):
        assert any(
            line.split()[:3] == [str(label), f"{certificate.primal:.8g}", f"{certificate.dual:.8g}"]
            for line in done.out.splitlines()
        )
    share = 100 * model.certificate.relative_gap
    assert f"Proven: each objective is at most {share:.3g}% above the smallest possible." in done.out
    plan = forks("train", folder / "rows.svm", "--plan")
    assert plan.out.startswith("4 classes (2, 3, 5, 7): one model for each, against the rest; for class 2:\n")
    assert "solver dcd" in plan.out
    quiet = forks("train", folder / "rows.svm", "-o", tmp_path / "q", "--quiet", "--max-epochs", "1")
    assert quiet == (3, "", "")
    told = forks("train", folder / "rows.svm", "-o", tmp_path / "q", "--max-epochs", "1")
    assert told.code == 3
    assert "4 of 4 classes did not reach the relative gap asked for (0.001); the worst: " in told.out


def test_predict_and_evaluate(folder: Path, forks: Forks) -> None:
    data, model = read_svmlight(folder / "test.svm"), load_model(folder / "m")
    done = forks("predict", folder / "m", folder / "test.svm")
    predicted = np.array([float(line) for line in done.out.splitlines()])
    assert np.array_equal(predicted, model.predict(data.X))
    found = forks("evaluate", folder / "m", folder / "test.svm", "--json").json
    assert found["accuracy"] == metrics.accuracy_score(data.y, predicted)
    assert found["confusion"] == metrics.confusion_matrix(data.y, predicted).tolist()
    assert [each["n_samples"] for each in found["per_class"]] == np.unique(data.y, return_counts=True)[
        1
    ].tolist()
    told = forks("evaluate", folder / "m", folder / "test.svm").out
    row = [line.split() for line in told[told.index("confusion") :].splitlines() if line.startswith("  5 ")]
    assert row == [["5", *map(str, found["confusion"][2])]]
    (folder / "strange.svm").write_text("4 1:1\n")
    assert (
        "label 4 is none of the model's, which are 2, 3, 5, 7"
        in forks("evaluate", folder / "m", folder / "strange.svm").error
    )


def test_certify_and_inspect(folder: Path, forks: Forks, tmp_path: Path) -> None:
    found = forks("certify", folder / "m", folder / "rows.svm", "--json").json
    assert (found["verdict"], found["same_order"]) == ("true", True)
    assert [(each["class"], each["verdict"]) for each in found["per_class"]] == [
        (label, "true") for label in (2, 3, 5, 7)
    ]
    lines = (folder / "rows.svm").read_text().splitlines()
    (tmp_path / "other.svm").write_text("\n".join(reversed(lines)) + "\n")
    done = forks("certify", folder / "m", tmp_path / "other.svm")
    assert done.code == 0
    assert "training rows: the same, in another order" in done.out
    assert "for each of 4 classes" in done.out
    (tmp_path / "changed.svm").write_text("\n".join(["2" + lines[0][1:], "3" + lines[1][1:], *lines[2:]]))
    assert forks("certify", folder / "m", tmp_path / "changed.svm", "--quiet") == (1, "", "")
    told = forks("inspect", folder / "m").out
    assert "classification of 4 classes (2, 3, 5, 7), one against the rest" in told
    assert sum(line.split()[-1:] == ["yes"] for line in told.splitlines()) == 4
    assert len(forks("inspect", folder / "m", "--json").json["proofs"]) == 4


@pytest.mark.slow
def test_from_disk_in_the_same_passes(folder: Path, forks: Forks, tmp_path: Path) -> None:
    data = read_svmlight(folder / "rows.svm")
    write_store(tmp_path / "rows.arrow", data.X, data.y)
    arguments = ("--C", "0.1", "--from-disk", "--tol", "1e-2", "--json")
    done = forks("train", tmp_path / "rows.arrow", "-o", tmp_path / "m", *arguments)
    assert done.code == 0
    assert done.json["passes"] > 0
    for rows in (tmp_path / "rows.arrow", folder / "rows.svm"):
        assert forks("certify", tmp_path / "m", rows).code == 0


def test_early_stopping(folder: Path, forks: Forks, tmp_path: Path) -> None:
    arguments = ("--validation", folder / "test.svm", "--patience", "1", "--tol", "1e-9", "--json")
    done = forks("train", folder / "rows.svm", "-o", tmp_path / "m", *arguments)
    assert {each["stop_reason"] for each in done.json["per_class"]} == {"early"}
    assert forks("certify", tmp_path / "m", folder / "rows.svm").code == 0


def test_many_classes_are_cut(forks: Forks, tmp_path: Path) -> None:
    rows = write_classes(tmp_path / "rows.svm", n=400, classes=25)
    assert forks("train", rows, "-o", tmp_path / "m", "--C", "0.1", "--quiet").code == 0
    told = forks("evaluate", tmp_path / "m", rows).out
    assert "the 10 classes of the smallest F1" in told
    assert "the most frequent confusions" in told
    assert max(map(len, told.splitlines()[1:])) < 110
    assert np.array(forks("evaluate", tmp_path / "m", rows, "--json").json["confusion"]).shape == (25, 25)
    (tmp_path / "numbers.svm").write_text("".join(f"{k}.5 1:1\n" for k in range(1001)))
    error = forks("train", tmp_path / "numbers.svm", "-o", tmp_path / "n").error
    assert "1,001 different labels, where a classifier takes 1,000 at most; for numbers use a" in error


@pytest.mark.slow
def test_ctrl_c_keeps_the_models_so_far(tmp_path: Path) -> None:
    rows = write_classes(tmp_path / "rows.svm", n=3000)
    command = ["train", rows, "-o", tmp_path / "m", "--tol", "0", "--C", "1e6", "--trace", tmp_path / "t"]
    process = subprocess.Popen(
        [sys.executable, "-m", "dualgap.cli", *map(str, command), "--threads", "2", "--json"],
        stdout=subprocess.PIPE,
        stderr=subprocess.PIPE,
        text=True,
        preexec_fn=heed_ctrl_c,
    )
    for _ in range(600):
        if (tmp_path / "t").exists() and (tmp_path / "t").stat().st_size:
            break
        time.sleep(0.1)
    process.send_signal(signal.SIGINT)
    out, _ = process.communicate(timeout=120)
    assert process.returncode == 130
    told: Any = json.loads(out)
    assert len(told["per_class"]) == 4
    assert "interrupted" in {each["stop_reason"] for each in told["per_class"]}
    assert load_model(tmp_path / "m").verify(rows).verdict == "true"


def test_the_line_of_progress() -> None:
    progress = ClassProgress(3, shown=False)
    one, two = progress.of("a"), progress.of("b")
    progress.see("a", np.inf)
    progress.see("b", 0.05)
    assert progress.describe().startswith("0 of 3 classes done; training a (begun), b (gap 5.0e-02); ")
    two.close(None)
    assert progress.describe().startswith("1 of 3 classes done; training a (begun); ")
    one.close(None)
    assert progress.describe().startswith("2 of 3 classes done; 0.")


def test_words_are_classes(folder: Path, forks: Forks, tmp_path: Path) -> None:
    names = {"2": "ant", "3": "bee", "5": "cow", "7": "cat"}
    for name in ("rows.svm", "test.svm"):
        lines = (folder / name).read_text().splitlines()
        words = [f"{names[line.split()[0]]} {line.partition(' ')[2]}" for line in lines]
        (tmp_path / name).write_text("\n".join(words) + "\n")
    told = forks("train", "rows.svm", "-o", "m", "--C", "0.1", "--json", "--trace", "t", cwd=tmp_path).json
    assert told["classes"] == [each["class"] for each in told["per_class"]] == ["ant", "bee", "cat", "cow"]
    assert {json.loads(line)["class"] for line in (tmp_path / "t").read_text().splitlines()} == set(
        told["classes"]
    )
    assert forks("convert", "rows.svm", "rows.arrow", cwd=tmp_path).code == 0
    for rows in ("rows.svm", "rows.arrow"):
        assert forks("certify", "m", rows, cwd=tmp_path).code == 0
    disk = ("--C", "0.1", "--from-disk", "--tol", "1e-2", "--quiet")
    assert forks("train", "rows.arrow", "-o", "d", *disk, cwd=tmp_path).code == 0
    assert forks("certify", "d", "rows.svm", cwd=tmp_path).code == 0
    predicted = forks("predict", "m", "test.svm", cwd=tmp_path).out.split()
    truth = [line.split()[0] for line in (tmp_path / "test.svm").read_text().splitlines()]
    found = forks("evaluate", "m", "test.svm", "--json", cwd=tmp_path).json
    assert found["classes"] == told["classes"]
    assert found["confusion"] == metrics.confusion_matrix(truth, predicted).tolist()
    one = forks("train", "rows.svm", "-o", "c", "--positive", "cat", "--C", "0.1", cwd=tmp_path)
    assert "positive class: cat, negative: rest" in one.out
    assert np.array_equal(load_model(tmp_path / "c").coef[0], load_model(tmp_path / "m").coef[2])
