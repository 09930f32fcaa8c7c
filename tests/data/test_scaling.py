"""Scaling: what it does to rows, that it is the same from everywhere, and that models keep it."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import numpy as np
import pytest
import scipy.sparse as sp
from sklearn.preprocessing import MaxAbsScaler, Normalizer

import dualgap
from dualgap.data.dataset import DataSpec
from dualgap.data.scaling import Scaling, fitted, scale_name
from dualgap.files import ChunkFeed, load_model, save_model, write_store, write_svmlight
from dualgap.models.saving import VERSION
from dualgap.runtime.archive import read_archive, write_archive
from dualgap.runtime.errors import InputError
from support.commands import Forks, forks_fixture  # noqa: F401

SCALES = ["0.001", "max-abs", "unit-rows"]


def rows(n: int = 150, d: int = 8, seed: int = 0) -> tuple[Any, Any]:
    """Columns of very different scales, one of them empty, and an empty row; values that float32 holds."""
    rng = np.random.default_rng(seed)
    X = np.where(rng.random((n, d)) < 0.6, rng.normal(size=(n, d)), 0.0) * 4.0 ** np.arange(d)
    y = np.where(X[:, 0] + X[:, 1] / 4 + 0.3 * rng.normal(size=n) > 0, 1, -1)
    X[:, 3], X[5] = 0.0, 0.0
    return X.astype(np.float32).astype(np.float64), y


def expected(X: Any, scale: str) -> Any:
    if scale == "max-abs":
        return MaxAbsScaler().fit_transform(X)
    return Normalizer().fit_transform(X) if scale == "unit-rows" else X * float(scale)


@pytest.mark.parametrize("scale", SCALES)
def test_values(scale: str) -> None:
    """Those of scikit-learn; the same to the bit however rows are stored, and sparse where they were."""
    X, _ = rows()
    name = scale_name(scale)
    assert name is not None
    found = fitted(name, [X], X.shape[1]).apply(X)
    assert np.allclose(found, expected(X, scale), rtol=1e-14, atol=0.0)
    shuffled = sp.csr_array(X)
    shuffled.indices[:2], shuffled.data[:2] = shuffled.indices[1::-1].copy(), shuffled.data[1::-1].copy()
    shuffled.has_sorted_indices = shuffled.has_canonical_format = False
    halves = sp.coo_array(sp.csr_array(X))
    twice = sp.coo_array(
        (np.tile(halves.data / 2, 2), tuple(np.tile(axis, 2) for axis in halves.coords)), shape=X.shape
    ).tocsr()
    for other in (
        sp.csr_array(X),
        sp.csc_array(X),
        X.astype(np.float32),
        sp.csr_array(X, dtype="f4"),
        shuffled,
        twice,
    ):
        again = fitted(name, [other[:70], other[70:]], X.shape[1]).apply(other)
        assert again.dtype == np.float64
        assert sp.issparse(again) == sp.issparse(other)
        assert np.array_equal(again.toarray() if sp.issparse(again) else again, found)


@pytest.mark.parametrize("scale", SCALES)
def test_fit_on_scaled_rows(scale: str, tmp_path: Path) -> None:
    """The problem is that of the scaled rows, and the model is given rows as they are."""
    X, y = rows()
    outcome = dualgap.fit(X, y, scale=scale, tol=1e-6, lam=0.01)
    plain = dualgap.fit(expected(X, scale), y, tol=1e-6, lam=0.01)
    assert outcome.certificate.primal == pytest.approx(plain.certificate.primal, rel=1e-6)
    assert outcome.certificate.dual == pytest.approx(plain.certificate.dual, rel=1e-6)
    assert np.allclose(outcome.model.decision_function(X), expected(X, scale) @ outcome.coef, rtol=1e-12)
    outcome.model.save(tmp_path / "m")
    model = load_model(tmp_path / "m")
    scores = outcome.model.decision_function(X)
    for other in (X, sp.csr_array(X), X.astype(np.float32)):
        assert np.array_equal(model.decision_function(other), scores)
        assert model.verify(other, y).verdict == "true"
    order = np.random.default_rng(0).permutation(len(y))
    assert model.verify(X[order], y[order]).verdict == "true"
    assert model.verify(expected(X, scale), y).verdict == "not true"  # scaled twice, and no training rows
    assert model.evaluate(X, y).values["accuracy"] == np.mean(model.predict(X) == y)


@pytest.mark.parametrize("scale", SCALES)
def test_from_disk(scale: str, tmp_path: Path) -> None:
    X, y = rows()
    store = tmp_path / "rows.arrow"
    write_store(store, sp.csr_array(X), y)
    chunks = ChunkFeed(lambda: [(sp.csr_array(X[k : k + 40]), y[k : k + 40]) for k in range(0, 150, 40)])
    options: dict[str, Any] = {"scale": scale, "tol": 1e-4, "lam": 0.01}
    whole = dualgap.fit(X, y, **options)
    for data in (store, chunks):
        outcome = dualgap.fit(data, in_memory=False, lockstep=True, **options)
        assert outcome.converged
        assert outcome.certificate.dual <= whole.certificate.primal
        assert whole.certificate.dual <= outcome.certificate.primal
        model = outcome.model
        if scale == "max-abs":
            assert np.array_equal(model.scale_columns, whole.model.scale_columns)
        for rows_again in (X, store, DataSpec(store, in_memory=False)):
            assert model.verify(rows_again, y if rows_again is X else None).verdict == "true"
    found = dualgap.one_vs_rest(store, in_memory=False, **options)
    assert found.model.verify(X, y).verdict == "true"


def test_scaling_comes_before_expansion_and_validation() -> None:
    X, y = rows()
    options = {"expand": "poly2", "hash_bits": 8, "lam": 0.01, "max_epochs": 20}
    scaled = dualgap.fit(sp.csr_array(X), y, scale="max-abs", validation=(X[:40], y[:40]), **options)
    by_hand = expected(X, "max-abs")
    plain = dualgap.fit(sp.csr_array(by_hand), y, validation=(by_hand[:40], y[:40]), **options)
    assert np.allclose(scaled.coef, plain.coef, rtol=1e-6, atol=1e-9)
    assert scaled.model.verify(X, y).verdict == "true"


def test_a_file_whose_scale_is_damaged(tmp_path: Path) -> None:
    X, y = rows()
    save_model(tmp_path / "m", dualgap.fit(X, y, scale="max-abs").model)
    header, arrays = read_archive(tmp_path / "m", "dualgap model", VERSION)
    sizes = arrays["scale"]
    for scale, columns in (
        ("max-abs", None), ("max-abs", sizes[1:]), ("max-abs", -sizes), ("max-abs", sizes * np.nan),
        ("max-abs", sizes.astype(np.float32)), ("unit-rows", sizes), (None, sizes), ("loud", None), (3, None),
    ):  # fmt: skip
        others = {key: value for key, value in arrays.items() if key != "scale"}
        write_archive(
            tmp_path / "bad",
            header | {"scale": scale},
            others | ({} if columns is None else {"scale": columns}),
        )
        with pytest.raises(InputError, match=r"not a valid dualgap model|scale="):
            load_model(tmp_path / "bad")


@pytest.mark.parametrize(
    ("options", "complaint"),
    [
        ({"scale": "loud"}, "scale='loud' is not known; there are: a number, max-abs, unit-rows"),
        ({"scale": 0}, "scale=0 must be a positive finite number"),
        ({"scale": "-1"}, "scale=-1.0 must be a positive"),
        ({"scale": [1, 2]}, "must be a number"),
        ({"scale": 2.0, "expand": "kmer:2"}, "kmer reads symbols"),
    ],
)
def test_what_is_refused(options: dict[str, Any], complaint: str) -> None:
    X, y = rows()
    with pytest.raises(InputError, match=complaint):
        dualgap.fit(sp.csr_array(X), y, **options)


def test_rows_of_another_width_are_refused() -> None:
    with pytest.raises(InputError, match=r"X has 3 columns.*are 2"):
        Scaling("max-abs", np.ones(2)).apply(np.ones((1, 3)))


def test_the_command_line(tmp_path: Path, forks: Forks) -> None:
    X, y = rows()
    data = tmp_path / "rows.svm"
    write_svmlight(data, sp.csr_array(X), y)
    for scale in SCALES:
        done = forks("train", data, "-o", tmp_path / "m", "--scale", scale, "--C", "1")
        assert done.code == 0, done
        assert {
            "0.001": "rows multiplied by 0.001",
            "max-abs": "columns divided",
            "unit-rows": "rows divided",
        }[scale] in done.out
        assert forks("certify", tmp_path / "m", data).code == 0
        labels = load_model(tmp_path / "m").predict(X)
        assert forks("predict", tmp_path / "m", data).out.split() == [str(int(label)) for label in labels]
        assert forks("inspect", tmp_path / "m", "--json").json["scale"] == scale
    assert "--scale big is not known" in forks("train", data, "-o", tmp_path / "m", "--scale", "big").error
