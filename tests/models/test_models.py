"""What the library does with models: made of outcomes and estimators, saved, loaded and verified."""

from __future__ import annotations

import pickle
from dataclasses import replace
from pathlib import Path
from typing import Any

import numpy as np
import pandas as pd
import pytest
import scipy.sparse as sp

import dualgap
from dualgap.cli import _run
from dualgap.core.losses import every_loss
from dualgap.files import DataSpec, Model, Store, write_store, write_svmlight
from dualgap.models.card import FORMULAS, statements
from dualgap.models.saving import VERSION, header_of, load_model
from dualgap.runtime.archive import read_archive, write_archive
from dualgap.runtime.errors import InputError


def rows(classes: int = 2, n: int = 240, d: int = 8) -> tuple[Any, Any]:
    rng = np.random.default_rng(classes)
    y = rng.integers(0, classes, n)
    X = np.where(rng.random((n, d)) < 0.7, rng.normal(size=(n, d)), 0.0).round(3)
    return X + 0.8 * rng.normal(size=(classes, d)).round(2)[y], y


def certify(capsys: Any, model: Path, data: Path) -> tuple[int, str]:
    capsys.readouterr()
    code = _run(["certify", str(model), str(data)])
    return code, capsys.readouterr().out


@pytest.mark.parametrize("loss", ["hinge", "logistic", "squared"])
def test_an_outcome_is_a_model(tmp_path: Path, capsys: Any, loss: str) -> None:
    X, y = rows()
    outcome = dualgap.fit(X, y, loss=loss, C=0.3, bias="augmented")
    model = outcome.model
    assert model is outcome.model, "made once"
    assert np.array_equal(model.coef[0], outcome.coef)
    assert model.certificate == outcome.certificate
    assert model.C == 0.3
    assert model.proofs[0].visits == outcome.trace[-1].visits
    assert model.verify(X, y).verdict == "true"
    model.save(tmp_path / "m")
    loaded = dualgap.Model.load(tmp_path / "m")
    assert isinstance(loaded, Model)
    assert np.array_equal(loaded.predict(X), model.predict(X))
    order = np.random.default_rng(0).permutation(y.size)
    assert loaded.verify(sp.csr_array(X[order]), y[order]).rows == "another order"
    write_svmlight(tmp_path / "rows.svm", X, y)
    assert certify(capsys, tmp_path / "m", tmp_path / "rows.svm")[0] == 0
    assert loaded.verify(tmp_path / "rows.svm").verdict == "true"
    assert loaded.verify(X, 1 - y).verdict == "not true"
    with pytest.raises(InputError, match="labels and weights belong to the DataSpec that X is"):
        loaded.verify(DataSpec(tmp_path / "rows.svm"), y)
    with pytest.raises(InputError, match="leave y and sample_weight out"):
        loaded.verify(tmp_path / "rows.svm", sample_weight=np.ones(240))
    with pytest.raises(InputError, match="y is missing"):
        loaded.verify(X)
    assert loaded.verify(X[:-1], y[:-1]).verdict == "not true"


def test_weights_belong_to_the_rows() -> None:
    X, y = rows()
    weight = np.arange(240) % 3.0
    model = dualgap.fit(X, y, sample_weight=weight, C=0.3).model
    assert model.verify(X, y, weight).verdict == "true"
    assert model.verify(X, y).reason.startswith("the rows of DATA are not the training rows")


def test_early_stopping_leaves_rows_out_of_the_certificate() -> None:
    X, y = rows(3)
    many = dualgap.one_vs_rest(X, y, C=0.3, validation=0.25, patience=2)
    held = many.outcomes[0].problem.source.weight == 0.0
    assert held.sum() == 60
    assert many.model.verify(X, y, np.where(held, 0.0, 1.0)).verdict == "true"
    assert np.array_equal(many.model.held_rows, np.flatnonzero(held))
    for chosen in (slice(None), slice(None, None, -1)):
        found = many.model.verify(X[chosen], y[chosen])
        assert found.verdict == "true"
        assert found.reason.endswith("(60 rows were held out of training and do not count)")


def test_held_out_rows_are_known_again(tmp_path: Path, capsys: Any) -> None:
    """Also where a held-out row has a twin that took part in training, and where rows have weights."""
    X, y = rows(n=120)
    X, y = np.concatenate([X, X]), np.concatenate([y, y])
    order, other = np.random.default_rng(0).permutation(y.size), np.random.default_rng(1)
    for weight in (None, other.choice([0.0, 0.5, 2.0], y.size)):
        model = dualgap.fit(X, y, sample_weight=weight, validation=0.25, patience=2).model
        model.save(tmp_path / "m")
        model = load_model(tmp_path / "m")
        moved = None if weight is None else weight[order]
        assert model.verify(X, y, weight).rows == "same order"
        assert model.verify(X[order], y[order], moved).rows == "another order"
        for found in (model.verify(X, y, weight), model.verify(X[order], y[order], moved)):
            assert found.verdict == "true"
        assert model.verify(X, 1 - y, weight).verdict == "not true"
        fewer = replace(model, held_rows=model.held_rows[:-1], held_hashes=model.held_hashes[:-1])
        assert fewer.verify(X, y, weight).verdict == "not true"
        nameless = replace(model, fingerprint=None, rows_in_order=None, rows_in_any_order=None)
        assert nameless.identified(X, y, weight).verify(X[order], y[order], moved).verdict == "true"
    model = dualgap.fit(X, y, validation=0.25, patience=2).model
    model.save(tmp_path / "m")
    write_svmlight(tmp_path / "rows.svm", X, y)
    assert certify(capsys, tmp_path / "m", tmp_path / "rows.svm")[0] == 0
    write_store(tmp_path / "rows.arrow", X, y)
    assert certify(capsys, tmp_path / "m", tmp_path / "rows.arrow")[0] == 0


@pytest.mark.parametrize("held", [[0, 240], [3, 3], [-1, 2], [5, 4], []])
def test_held_out_rows_of_a_file_are_rows(tmp_path: Path, held: list[int]) -> None:
    X, y = rows()
    model = dualgap.fit(X, y, validation=0.25, patience=2).model
    wrong = replace(model, held_rows=np.array(held), held_hashes=model.held_hashes[: len(held)])
    wrong.save(tmp_path / "m")
    with pytest.raises(InputError, match="held_rows are no numbers, in rising order"):
        load_model(tmp_path / "m")
    replace(model, held_hashes=model.held_hashes[1:]).save(tmp_path / "m")
    with pytest.raises(InputError, match="held_rows and held_hashes have the shapes"):
        load_model(tmp_path / "m")


@pytest.mark.parametrize("classes", [2, 4])
@pytest.mark.parametrize("class_weight", [None, "balanced", {0: 2.0, 1: 0.5}])
def test_an_estimator_is_a_model(tmp_path: Path, capsys: Any, classes: int, class_weight: Any) -> None:
    X, y = rows(classes)
    names = [f"word {j}" for j in range(8)]
    estimator = dualgap.LinearSVC(keep_dual=True, C=0.5, class_weight=class_weight, random_state=0)
    estimator.fit(pd.DataFrame(X, columns=names), y)
    model = pickle.loads(pickle.dumps(estimator)).to_model()
    assert model.feature_names == tuple(names)
    assert list(model.certificates) == estimator.certificate_
    assert (model.class_weight is None) == (class_weight is None)
    write_svmlight(tmp_path / "rows.svm", X, y)
    model.save(tmp_path / "m")
    code, out = certify(capsys, tmp_path / "m", tmp_path / "rows.svm")
    assert code == 0, out
    assert "the model has no fingerprint of its rows and needs none" in out
    order = np.random.default_rng(0).permutation(y.size)
    found = model.verify(X[order], y[order])
    assert (found.verdict, found.same_rows) == ("not true", None)
    assert "which must be those of training in their order" in found.reason
    known = estimator.to_model(pd.DataFrame(X, columns=names), y)
    assert known.verify(X[order], y[order]).verdict == "true"
    known.save(tmp_path / "known")
    assert certify(capsys, tmp_path / "known", tmp_path / "rows.svm")[0] == 0
    with pytest.raises(InputError, match="these are not the training rows, in their order"):
        estimator.to_model(pd.DataFrame(X[order], columns=names), y[order])
    lie = replace(model, coef=model.coef * (1 + 1e-6))
    assert lie.verify(X, y).verdict == "not true"
    if class_weight is not None:
        wrong = replace(model, class_weight=(1.0,) * classes)
        assert wrong.verify(X, y).verdict == "not true"


def test_weights_of_rows_and_classes_multiply() -> None:
    X, y = rows(3)
    weight = 0.5 + np.arange(240) % 3
    estimator = dualgap.LinearSVC(keep_dual=True, class_weight={1: 3.0}, random_state=0).fit(
        X, y, sample_weight=weight
    )
    assert estimator.to_model().verify(X, y, weight).verdict == "true"
    assert estimator.to_model(X, y, weight).verify(X[::-1], y[::-1], weight[::-1]).verdict == "true"
    assert estimator.to_model().verify(X, y).verdict == "not true"


@pytest.mark.parametrize("threads", [1, 3])
def test_k_classes_are_one_model(tmp_path: Path, threads: int) -> None:
    X, y = rows(4)
    words = np.array(["ant", "bee", "cow", "dog"])[y]
    many = dualgap.one_vs_rest(X, words, C=0.3, bias="exact", tol=1e-4, threads=threads)
    assert many.converged
    assert many.classes.tolist() == ["ant", "bee", "cow", "dog"]
    assert [found.relative_gap <= 1e-4 for found in many.certificates] == [True] * 4
    many.model.save(tmp_path / "m")
    model = Model.load(tmp_path / "m")
    assert model.dual.shape == (4, 240)
    assert model.certificate.relative_gap == max(found.relative_gap for found in model.certificates)
    assert np.array_equal(model.predict(X), many.predict(X))
    order = np.random.default_rng(0).permutation(y.size)
    for where, chosen in (("same order", np.arange(240)), ("another order", order)):
        found = model.verify(X[chosen], words[chosen])
        assert (found.verdict, found.rows) == ("true", where)
        assert [each.label for each in found.per_class] == ["ant", "bee", "cow", "dog"]
        for each, outcome in zip(found.per_class, many.outcomes, strict=True):
            assert each.recomputed is not None
            assert each.recomputed.dual == pytest.approx(outcome.certificate.dual, rel=1e-12)
    one = many.outcomes[2].model  # each class is a model of its own, too
    assert one.classes == (None, "cow")
    assert one.verify(X, words).verdict == "true"


def test_two_classes_are_one_run() -> None:
    X, y = rows(2)
    many, outcome = dualgap.one_vs_rest(X, y, C=0.3), dualgap.fit(X, y, C=0.3)
    assert len(many.outcomes) == 1
    assert np.array_equal(many.coef[0], outcome.coef)
    assert header_of(many.model) | {"trained": None, "proofs": None} == header_of(outcome.model) | {
        "trained": None,
        "proofs": None,
    }
    assert np.array_equal(many.predict(X), outcome.model.predict(X))


def test_callbacks_know_their_class() -> None:
    X, y = rows(3)
    seen: dict[Any, list[float]] = {}
    told: list[Any] = []

    def callbacks_for(label: Any) -> list[Any]:
        return [lambda record, run: seen.setdefault(int(label), []).append(record.epochs)]

    many = dualgap.one_vs_rest(
        X, y, C=0.3, threads=2, callbacks_for=callbacks_for, callbacks=[lambda record, run: told.append(1)]
    )
    assert set(seen) == {0, 1, 2}
    assert len(told) == sum(map(len, seen.values()))
    assert many.converged


def test_k_classes_from_disk(tmp_path: Path) -> None:
    X, y = rows(3)
    write_store(tmp_path / "rows.arrow", X, y)
    write_svmlight(tmp_path / "rows.svm", X, y)
    many = dualgap.one_vs_rest(tmp_path / "rows.arrow", in_memory=False, C=0.3, tol=1e-3)
    model = many.model
    assert model.data_name == "rows.arrow"
    assert model.verify(DataSpec(tmp_path / "rows.arrow", in_memory=False)).verdict == "true"
    assert model.verify(tmp_path / "rows.svm").rows == "another order"
    assert model.verify(tmp_path / "rows.svm").verdict == "true"
    assert np.array_equal(
        model.predict(Store(tmp_path / "rows.arrow")), many.predict(tmp_path / "rows.arrow")
    )


def test_a_class_that_lies_is_found_out() -> None:
    X, y = rows(4)
    model = dualgap.one_vs_rest(X, y, C=0.3).model
    coef = model.coef.copy()
    coef[2] *= 1.01
    found = replace(model, coef=coef).verify(X, y)
    assert found.verdict == "not true"
    assert found.reason.startswith("class 2: the objective is")
    assert [each.verdict for each in found.per_class] == ["true", "true", "not true", "true"]
    bad = model.proofs[1]._replace(lam=-1.0)
    found = replace(model, proofs=(model.proofs[0], bad, *model.proofs[2:])).verify(X, y)
    assert found.reason.startswith("class 1: the stored lam is -1.0")
    assert {each.verdict for each in found.per_class} == {"not true", "unproven"}
    swapped = replace(model, classes=(1, 0, 2, 3))
    assert swapped.verify(X, y).verdict == "not true"
    without = replace(model, dual=None, dual_hashes=None)
    assert without.verify(X, y).verdict == "unproven"


def test_a_model_without_a_certificate(tmp_path: Path, capsys: Any) -> None:
    X, y = rows()
    bare = replace(dualgap.fit(X, y).model, proofs=())
    bare.save(tmp_path / "m")
    loaded = Model.load(tmp_path / "m")
    assert np.array_equal(loaded.predict(X), bare.predict(X))
    for ask in (lambda: loaded.verify(X, y), lambda: loaded.certificate):
        with pytest.raises(InputError, match="the model has no certificate"):
            ask()
    write_svmlight(tmp_path / "rows.svm", X, y)
    assert _run(["certify", str(tmp_path / "m"), str(tmp_path / "rows.svm")]) == 2
    assert "m: the model has no certificate, so there is nothing to verify\n" in capsys.readouterr().err
    assert _run(["inspect", str(tmp_path / "m")]) == 0
    assert "The model has no certificate." in capsys.readouterr().out


def test_the_hard_margin_is_verified() -> None:
    X = np.array([[1.0, 3.0], [2.0, 0.0], [-1.0, 0.0], [0.0, -1.0]])
    outcome = dualgap.fit(X, [1, 1, 0, 0], C=np.inf, bias="exact", solver="smo", tol=1e-6)
    assert outcome.model.loss == "hard-margin"
    assert outcome.model.verify(X, [1, 1, 0, 0]).verdict == "true"
    model = dualgap.LinearSVC(keep_dual=True, C=np.inf, solver="smo", tol=1e-6).fit(X, [1, 1, 0, 0])
    assert np.array_equal(model.coef_[0], outcome.coef)
    assert model.certificate_ == [outcome.certificate]
    assert model.to_model().verify(X, [1, 1, 0, 0]).verdict == "true"
    with pytest.raises(InputError, match="which belongs to the hinge loss and not to 'logistic'"):
        dualgap.LinearSVC(keep_dual=True, C=np.inf, loss="logistic").fit(X, [1, 1, 0, 0])


@pytest.mark.parametrize("bias", ["none", "exact"])
def test_classes_that_are_not_separable_end_a_hard_margin(bias: str, tmp_path: Path, capsys: Any) -> None:
    """Rows that are in both classes: the dual grows beyond all bounds."""
    X, y = np.eye(3)[[0, 0, 1, 2]], np.array([1, -1, 1, -1])
    outcome = dualgap.fit(X, y, C=np.inf, bias=bias)
    assert outcome.reason.name == "not separable"
    assert statements(outcome.model).startswith("Nothing is proven of this model: it violates")
    write_svmlight(tmp_path / "rows.svm", X, y)
    told = ["train", str(tmp_path / "rows.svm"), "-o", str(tmp_path / "m"), "--C", "inf", "--bias", bias]
    assert _run(told) == 3
    assert "above the smallest possible" not in capsys.readouterr().out


def test_files_of_the_first_version_are_read(tmp_path: Path) -> None:
    X, y = rows()
    model = dualgap.fit(X, y).model
    model.save(tmp_path / "m")
    header, arrays = read_archive(tmp_path / "m", "dualgap model", VERSION)
    header["version"] = 1
    for name in ("class_weight", "trained", "scale"):
        del header[name]
    del header["solver"]["auto_reason"]
    header["proofs"][0]["steps"] = header["proofs"][0].pop("visits")
    write_archive(tmp_path / "old", header, arrays)
    old = load_model(tmp_path / "old")
    assert old.proofs == model.proofs
    assert (old.trained, old.data_name, old.class_weight, old.auto_reason) == (None, None, None, "")
    assert old.verify(X, y).verdict == "true"


def test_labels_that_no_file_can_hold(tmp_path: Path) -> None:
    X, y = rows()
    days = np.array(["2026-01-01", "2026-01-02"], dtype="datetime64[D]")[y]
    model = dualgap.fit(X, days).model
    assert set(model.predict(X).tolist()) == set(days.tolist())
    with pytest.raises(InputError, match="is of type date; a model file holds numbers and words"):
        model.save(tmp_path / "m")
    assert not list(tmp_path.iterdir())


def test_the_card_has_the_formulas_of_the_losses() -> None:
    own = {name: loss.summary.partition(": ")[0] for name, loss in every_loss().items()}
    assert {**own, "hard-margin": FORMULAS["hard-margin"]} == FORMULAS
