"""Rows of any number of labels each: matrices and files, one model a label on one copy of the rows."""

from __future__ import annotations

import warnings
from pathlib import Path
from typing import Any

import numpy as np
import pytest
import scipy.sparse as sp

import dualgap
from dualgap.core.measures import break_even
from dualgap.data.sources import View
from dualgap.files import load_model, read_svmlight
from dualgap.models.label_metrics import macro_break_even, multilabel
from dualgap.runtime.errors import InputError, TrivialModelWarning
from support.commands import Forks, forks_fixture  # noqa: F401


def rows(n: int = 90, d: int = 6, labels: int = 5, seed: int = 0) -> tuple[Any, Any]:
    """Rows with up to all labels, some with none."""
    rng = np.random.default_rng(seed)
    X = np.where(rng.random((n, d)) < 0.6, rng.normal(size=(n, d)).round(3), 0.0)
    X[:, 0] += 0.01  # no row is empty: without labels it would be a blank line
    Y = X @ rng.normal(size=(d, labels)) + 0.2 * rng.normal(size=(n, labels)) > 0.7
    return X, Y.astype(int)


def write(file: Path, X: Any, Y: Any, names: Any = None) -> Path:
    """LIBSVM's multilabel text; every other row without labels begins with a blank."""
    names = range(Y.shape[1]) if names is None else names
    lines = []
    for number, (row, has) in enumerate(zip(X, Y, strict=True)):
        labels = ",".join(str(names[k]) for k in np.flatnonzero(has))
        entries = " ".join(f"{j + 1}:{value!r}" for j, value in enumerate(row.tolist()) if value)
        lines.append(f"{labels} {entries}" if labels or number % 2 else entries)
    file.write_text("\n".join(lines) + "\n")
    return file


@pytest.mark.parametrize("bias", ["none", "exact"])
def test_a_model_for_each_label_on_one_copy_of_the_rows(bias: str, tmp_path: Path) -> None:
    X, Y = rows()
    many = dualgap.one_vs_rest(X, Y, lam=0.01, bias=bias, tol=1e-4)
    stored = set()
    for k, outcome in enumerate(many.outcomes):
        alone = dualgap.fit(X, np.where(Y[:, k] > 0, 1, -1), lam=0.01, bias=bias, tol=1e-4)
        assert np.array_equal(outcome.coef, alone.coef)
        assert isinstance(outcome.problem.source, View)
        stored.add(id(outcome.problem.source.data))
    assert len(stored) == 1
    assert many.converged
    assert np.array_equal(many.predict(X), (many.decision_function(X) > 0).astype(int))
    many.model.save(tmp_path / "m")
    model = load_model(tmp_path / "m")
    assert (model.task, model.classes) == ("multilabel", (0, 1, 2, 3, 4))
    assert np.array_equal(model.predict(X), many.predict(X))
    order = np.random.default_rng(1).permutation(len(Y))
    assert model.verify(X, Y).verdict == "true"
    assert model.verify(X[order], sp.csr_array(Y[order])).verdict == "true"
    other = Y.copy()
    other[3, 2] = 1 - other[3, 2]
    assert model.verify(X, other).verdict == "not true"
    assert model.score(X, Y) == np.mean((model.predict(X) == Y).all(axis=1))


@pytest.mark.parametrize("kind", [np.asarray, sp.csr_array, sp.csc_array, np.ndarray.tolist, lambda Y: Y > 0])
def test_kinds_of_matrices(kind: Any) -> None:
    X, Y = rows(n=40)
    found = dualgap.one_vs_rest(X, kind(Y), threads=2)
    assert np.array_equal(found.coef, dualgap.one_vs_rest(X, Y).coef)


def test_labels_without_rows_are_allowed_and_reported() -> None:
    X, Y = rows()
    Y[:, 1] = 0
    Y[:, 3] = 1  # without negative rows
    told = r"1 of 5 labels has no positive rows \(1\), and 1 of 5 labels has no negative rows \(3\)"
    with pytest.warns(TrivialModelWarning, match=told):
        many = dualgap.one_vs_rest(X, Y, bias="exact")
    assert (many.without_positives, many.without_negatives) == ([1], [3])
    assert many.converged
    assert not many.predict(X)[:, 1].any()
    assert many.predict(X)[:, 3].all()
    found = many.model.evaluate(X, Y)
    assert found.counts[1] == 0
    assert np.isnan(found.per_class[1]["break_even"])
    assert np.isfinite(found.values["break_even_macro"])
    assert many.model.verify(X, Y).verdict == "true"


def test_two_labels_are_two_models() -> None:
    X, Y = rows(labels=2)
    many = dualgap.one_vs_rest(X, Y)
    assert many.coef.shape == (2, X.shape[1])
    assert many.model.verify(X, Y).verdict == "true"


def test_early_stopping_with_other_rows() -> None:
    """The sets of held-out rows are numbered for themselves."""
    X, Y = rows(n=150)
    options: dict[str, Any] = {"lam": 1e-4, "tol": 0.0, "patience": 2, "metric": "error"}
    many = dualgap.one_vs_rest(X[:100], Y[:100], validation=(X[100:], Y[100:]), **options)
    for k, outcome in enumerate(many.outcomes):
        wrong = (X[100:] @ outcome.coef > 0) != (Y[100:, k] > 0)
        seen = [record.measures["validation"] for record in outcome.trace]
        assert min(*seen, np.mean(Y[100:, k])) == pytest.approx(wrong.mean())  # all-zero weights compete


def test_break_even_points() -> None:
    rng = np.random.default_rng(0)
    Y = rng.random((60, 7)) < np.linspace(0.0, 0.6, 7)  # none of the first label
    scores = Y + rng.normal(size=Y.shape)
    values, per_label = multilabel(Y, scores)
    points, counts = [], []
    for k in range(1, 7):
        count = int(Y[:, k].sum())
        points.append(Y[np.argsort(-scores[:, k])[:count], k].mean())
        counts.append(count)
    assert values["break_even_macro"] == pytest.approx(np.mean(points))
    assert values["break_even_micro"] == pytest.approx(np.average(points, weights=counts))
    chosen = np.argsort(-scores.ravel())[: Y.sum()]
    assert values["break_even_micro_pooled"] == pytest.approx(Y.ravel()[chosen].mean())
    assert [found["break_even"] for found in per_label[1:]] == pytest.approx(points)
    # one threshold for all, brute force: mean precision and mean recall on either side of where they meet
    means = []
    for threshold in -np.sort(-scores[:, 1:].ravel()):
        taken = scores[:, 1:] >= threshold
        right = (taken & Y[:, 1:]).sum(axis=0)
        precision = np.mean([r / t for r, t in zip(right, taken.sum(axis=0), strict=True) if t])
        means.append((precision, np.mean(right / Y[:, 1:].sum(axis=0))))
    met = next(k for k, (precision, recall) in enumerate(means) if recall >= precision)
    low = min(means[met - 1][1], means[met][0])
    assert low <= values["break_even_macro_pooled"] <= means[met][1]
    assert macro_break_even(Y, 1.0 * Y) == 1.0
    assert macro_break_even(Y[:, :1], scores[:, :1]) != macro_break_even(Y[:, :1], scores[:, :1])  # NaN
    one = macro_break_even(Y[:, 3:4], scores[:, 3:4])
    assert one == pytest.approx(break_even(Y[:, 3], scores[:, 3]))


def test_text(tmp_path: Path) -> None:
    file = tmp_path / "rows.svm"
    file.write_text("1,5 1:2 3:4\n 2:1\n2:3 # none\n\n7\n5,1 qid:3 1:1\nqid:1 4:1\n")
    found = read_svmlight(file, label_sets=True)
    assert found.y.tolist() == ["1,5", ",", ",", "7", "5,1", ","]
    assert found.X.toarray().tolist() == [
        [2, 0, 4, 0], [0, 1, 0, 0], [0, 3, 0, 0], [0, 0, 0, 0], [1, 0, 0, 0], [0, 0, 0, 1],
    ]  # fmt: skip
    for text, complaint in (
        ("1,,5 1:2\n", r"line 1, column 1: label '1,,5' has a comma with no label beside it"),
        ("1 1:2\n1,nan 1:2\n", "line 2, column 1: label 'nan' is not finite"),
        ("1 1:2\n 1:2 3:x\n", "line 2, column 6: value 'x' of index 3 is not a number"),
        ("1,5 1:2\n3:1 3:1\n", "line 2, column 5: index 3 occurs twice"),
    ):
        file.write_text(text)
        with pytest.raises(InputError, match=complaint):
            read_svmlight(file, label_sets=True)
    file.write_text("1,5 1:2\n")
    with pytest.raises(InputError, match=r"'1,5' is several labels.*task='multilabel'"):
        read_svmlight(file)


@pytest.mark.parametrize("names", [None, ["wheat", "corn", "oil", "gold", "tin"], [3, 1, 20, -5, 0.5]])
def test_files_are_matrices(names: Any, tmp_path: Path) -> None:
    X, Y = rows()
    file = write(tmp_path / "rows.svm", X, Y, names)
    many = dualgap.one_vs_rest(file, task="multilabel", lam=0.01)
    order = np.argsort(range(5) if names is None else np.array(names))
    assert many.classes.tolist() == (sorted(names) if names else list(range(5)))
    assert np.array_equal(many.coef, dualgap.one_vs_rest(sp.csr_array(X), Y[:, order], lam=0.01).coef)
    assert many.model.verify(file).verdict == "true"
    assert many.model.verify(X, Y[:, order]).verdict == "true"
    found, again = many.model.evaluate(file), many.model.evaluate(X, Y[:, order])
    assert found.as_dict() == again.as_dict()


def test_labels_that_a_model_does_not_know(tmp_path: Path) -> None:
    X, Y = rows()
    model = dualgap.one_vs_rest(write(tmp_path / "train.svm", X, Y[:, :4]), task="multilabel").model
    found = model.evaluate(write(tmp_path / "test.svm", X, Y))
    assert found.unknown == {"4": int(Y[:, 4].sum())}
    assert found.values == model.evaluate(X, Y[:, :4]).values
    with pytest.raises(InputError, match="label 4 is none of the labels known, which are 0, 1, 2, 3"):
        model.verify(tmp_path / "test.svm")


@pytest.mark.parametrize(
    ("y", "options", "complaint"),
    [
        (np.full((90, 3), 2), {}, "y holds 2; a matrix of labels holds 0 and 1 only"),
        (np.zeros((90, 1)), {}, "y has shape"),
        (np.zeros((80, 3)), {}, "y has 80 entries and X has 90 rows"),
        ([[0], [1, 2]] * 45, {}, "MultiLabelBinarizer"),
        (np.zeros((90, 3)), {"task": "regression"}, "task='regression' must be"),
        (np.zeros((90, 1001)), {}, "1,001 different labels"),
        (np.zeros(90), {"task": "multilabel"}, r"y has shape \(90,\); .* a column for each of two labels"),
    ],
)
def test_what_is_refused(y: Any, options: dict[str, Any], complaint: str) -> None:
    X, _ = rows()
    with pytest.raises(InputError, match=complaint):
        dualgap.one_vs_rest(X, y, **options)
    with pytest.raises(InputError, match=r"dualgap.one_vs_rest trains one for each label"):
        dualgap.fit(X, y, task="multilabel")


def test_the_command_line(tmp_path: Path, forks: Forks) -> None:
    X, Y = rows()
    data = write(tmp_path / "rows.svm", X, Y)
    done = forks("train", data, "-o", tmp_path / "m", "--task", "multilabel", "--lam", "0.01", "--json").json
    assert (done["classes"], len(done["per_class"]), done["without_positives"]) == ([0, 1, 2, 3, 4], 5, [])
    model = load_model(tmp_path / "m")
    expected = [",".join(map(str, np.flatnonzero(row))) for row in model.predict(X)]
    assert forks("predict", tmp_path / "m", data).out.splitlines() == expected
    listed = forks("predict", tmp_path / "m", data, "--json").json["labels"]
    assert [",".join(map(str, labels)) for labels in listed] == expected
    found = forks("evaluate", tmp_path / "m", data, "--json").json
    assert found["break_even_micro"] == pytest.approx(model.evaluate(X, Y).values["break_even_micro"])
    assert len(found["per_class"]) == 5
    shown = forks("evaluate", tmp_path / "m", data).out
    assert "5 labels" in shown
    assert "break-even-micro-pooled" in shown
    assert forks("certify", tmp_path / "m", data).code == 0
    assert "multilabel of 5 labels (0, 1, 2, 3, 4)" in forks("inspect", tmp_path / "m").out
    assert forks("inspect", data, "--multilabel", "--json").json["n"] == 90
    assert "--positive is for one label a row" in forks(
        "train", data, "-o", tmp_path / "x", "--task", "multilabel", "--positive", "1"
    ).error  # fmt: skip
    # a store, shuffled, and trained from disk
    store = tmp_path / "rows.arrow"
    assert forks("convert", data, store, "--multilabel").code == 0
    streamed = forks("train", store, "-o", tmp_path / "s", "--task", "multilabel", "--from-disk", "--quiet")
    assert streamed.code == 0, streamed
    for model_file, rows_file in (("m", store), ("s", store), ("s", data)):
        assert forks("certify", tmp_path / model_file, rows_file).code == 0
    assert forks("evaluate", tmp_path / "m", store, "--json").json["f1_micro"] == found["f1_micro"]


def test_no_warning_without_reason() -> None:
    X, Y = rows()
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        dualgap.one_vs_rest(X, Y)


def test_a_store_of_label_sets_is_not_taken_for_classes(tmp_path: Path, forks: Forks) -> None:
    X, Y = rows()
    store = tmp_path / "rows.arrow"
    data = write(tmp_path / "rows.svm", X, Y)
    assert forks("convert", data, store, "--multilabel").code == 0
    complaint = f"{store}: there are rows with no label, and a row must have one; for any number of labels a"
    for options in ([], ["--from-disk"], ["--loss", "squared"], ["--positive", "1"]):
        error = forks("train", store, "-o", tmp_path / "m", *options).error
        assert error == f"{complaint} row say --task multilabel", options
    for call in (dualgap.one_vs_rest, dualgap.fit):
        with pytest.raises(InputError, match=r"say task='multilabel'$"):
            call(store)
    found = forks("inspect", store, "--json").json
    assert found["labels"] == {str(k): int(count) for k, count in enumerate(Y.sum(axis=0))}
    assert (found["multilabel"], found["unlabelled"]) == (True, int((~Y.any(axis=1)).sum()))
    assert f"; any number a row, {found['unlabelled']} rows without (--task multilabel)" in forks(
        "inspect", store
    ).out  # fmt: skip


def test_means_are_those_of_scikit_learn() -> None:
    from sklearn import metrics

    rng = np.random.default_rng(0)
    Y = rng.random((50, 6)) < 0.4
    Y[:, 1] = False  # a label without rows, which is predicted
    Y[:, 2] = False
    scores = Y + rng.normal(size=Y.shape) - 0.5
    scores[:, 2:4] = -1.0  # one without rows, and one with them, which are not
    values, per_label = multilabel(Y, scores)
    for average in ("macro", "micro"):
        for name in ("precision", "recall", "f1"):
            wanted = getattr(metrics, f"{name}_score")(Y, scores > 0, average=average, zero_division=0)
            assert values[f"{name}_{average}"] == pytest.approx(wanted, rel=1e-12)
    assert np.isnan(per_label[2]["recall"])


def test_a_vector_of_labels_is_no_matrix_of_them() -> None:
    X, Y = rows()
    model = dualgap.one_vs_rest(X, Y).model
    for call in (model.evaluate, model.score, model.verify):
        with pytest.raises(InputError, match=r"y has shape \(90,\); .* a matrix of 0 and 1"):
            call(X, Y[:, 0])


def test_the_columns_of_a_data_frame_name_the_labels(tmp_path: Path) -> None:
    pandas = pytest.importorskip("pandas")
    X, Y = rows()
    names = ["wheat", "corn", "oil", "gold", "tin"]
    frame = pandas.DataFrame(Y, columns=names)
    many = dualgap.one_vs_rest(X, frame, lam=0.01)
    assert many.classes.tolist() == names
    assert np.array_equal(many.coef, dualgap.one_vs_rest(X, Y, lam=0.01).coef)
    many.model.save(tmp_path / "m")
    model = load_model(tmp_path / "m")
    assert model.classes == tuple(names)
    turned = frame[names[::-1]]
    assert model.verify(X, turned).verdict == "true"
    assert model.evaluate(X, turned).as_dict() == model.evaluate(X, Y).as_dict()
    more = model.evaluate(X, frame.assign(iron=1, tin=frame.tin.astype(bool)))
    assert more.unknown == {"iron": 90}
    with pytest.raises(InputError, match="y has no column 'oil'; its columns are wheat, corn, gold, tin"):
        model.evaluate(X, frame.drop(columns="oil"))
    with pytest.raises(InputError, match="y has two columns for the label 'a'"):
        dualgap.one_vs_rest(X, pandas.DataFrame(Y, columns=list("abcda")))
    with pytest.raises(InputError, match="y must hold 0 and 1 only"):
        dualgap.one_vs_rest(X, pandas.DataFrame(Y, columns=names).astype(object).replace(1, "yes"))
    assert dualgap.one_vs_rest(X, pandas.DataFrame(Y), max_epochs=1).classes.tolist() == [0, 1, 2, 3, 4]


def test_held_out_rows_are_read_as_evaluate_reads_rows(tmp_path: Path, forks: Forks) -> None:
    """Labels that no training row has are left out of both, and named."""
    X, Y = rows()
    train, held = write(tmp_path / "train.svm", X, Y[:, :4]), write(tmp_path / "held.svm", X, Y)
    told = f"labels that no training row has, left out (with their rows): 4: {Y[:, 4].sum()}"
    options = ["-o", tmp_path / "m", "--task", "multilabel", "--validation"]
    assert f"{held}: {told}" in forks("train", train, *options, held).out
    found = forks("train", train, *options, held, "--json").json
    assert found["notes"][-1] == f"{held}: {told}"
    assert found["per_class"] and found["without_negatives"] == []  # noqa: PT018
    with pytest.warns(UserWarning, match="validation: labels that no training row has, left out") as seen:
        many = dualgap.one_vs_rest(train, task="multilabel", validation=held)
    assert seen[0].filename == __file__
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        again = dualgap.one_vs_rest(train, task="multilabel", validation=(X, Y[:, :4]))
    assert np.array_equal(many.coef, again.coef)


def test_checkpoints_and_a_positive_label_are_refused_alike(tmp_path: Path, forks: Forks) -> None:
    X, Y = rows()
    train = ["train", write(tmp_path / "rows.svm", X, Y), "-o", tmp_path / "m", "--task", "multilabel"]
    error = forks(*train, "--checkpoint", tmp_path / "run").error
    assert error.endswith("and --task multilabel has a run for each label; leave it out")
    assert "each label gets a model" in forks(*train, "--positive", "1").error
