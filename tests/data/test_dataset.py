"""The door for data: rows are the same whatever the format of their file."""

from __future__ import annotations

import sys
from pathlib import Path
from typing import Any

import numpy as np
import pyarrow as pa
import pyarrow.parquet
import pytest
import scipy.sparse as sp

import dualgap
from dualgap.data.formats import FORMATS, format_named, format_of
from dualgap.files import DataSpec, ReadOptions, open_data, scan, write_store, write_svmlight
from dualgap.models.building import model_of
from dualgap.runtime.errors import InputError

FILES = ("rows.svm", "rows.arrow", "rows.parquet")


def rows(classes: int = 2, n: int = 120, d: int = 6) -> tuple[Any, Any]:
    rng = np.random.default_rng(classes)
    y = rng.integers(0, classes, n) + 1.0
    X = rng.normal(size=(n, d)).round(3) + 1.5 * rng.normal(size=(classes, d))[y.astype(int) - 1]
    return np.where(rng.random((n, d)) < 0.7, X, 0.0), y


def written(folder: Path, X: Any, y: Any, label: str = "label", **others: Any) -> Path:
    write_svmlight(folder / "rows.svm", X, y)
    write_store(folder / "rows.arrow", X, y, keep_order=True)
    columns = {f"f{j}": X[:, j] for j in range(X.shape[1])}
    pyarrow.parquet.write_table(pa.table({**columns, label: y, **others}), folder / "rows.parquet")
    return folder


@pytest.fixture
def folder(tmp_path: Path) -> Path:
    return written(tmp_path, *rows())


def test_a_format_is_known_by_its_first_bytes(folder: Path) -> None:
    for file, name in zip(FILES, ("svmlight", "store", "parquet"), strict=True):
        disguised = folder / f"{name}.txt"
        disguised.write_bytes((folder / file).read_bytes())
        assert format_of(disguised).name == format_named(name).name == name
    assert set(FORMATS) == {"svmlight", "store", "parquet", "npy"}
    with pytest.raises(InputError, match=r"unknown format 'svmligth'.*svmlight"):
        open_data(DataSpec(folder / "rows.svm", format="svmligth"), "classification")


@pytest.mark.parametrize("file", FILES)
def test_every_format_holds_the_same_rows(folder: Path, file: str) -> None:
    X, y = rows()
    data = open_data(DataSpec(folder / file), "classification")
    assert list(data.labels.classes) == [1.0, 2.0]
    assert np.array_equal(data.X.toarray(), X)
    assert np.array_equal(data.source.y, 2.0 * y - 3.0)
    assert (data.schema.n_columns, data.nnz) == (6, np.count_nonzero(X))
    tables = list(scan(DataSpec(folder / file)))
    assert np.array_equal(np.vstack([table.X.toarray() for table in tables]), X)
    assert np.array_equal(np.concatenate([table.y for table in tables]), y)
    arrays = open_data(DataSpec(sp.csr_array(X), y), "classification").identity()
    assert data.identity().fingerprint == data.identity(fresh=True).fingerprint == arrays.fingerprint
    assert np.array_equal(data.identity().hashes, arrays.hashes)


@pytest.mark.parametrize("file", FILES)
def test_fit_and_one_vs_rest_take_every_format(tmp_path: Path, file: str) -> None:
    X, y = rows(classes=3)
    written(tmp_path, X, y)
    arrays = dualgap.one_vs_rest(sp.csr_array(X), y, C=0.1, tol=1e-6)
    found = dualgap.one_vs_rest(tmp_path / file, C=0.1, tol=1e-6)
    assert np.array_equal(found.classes, arrays.classes)
    assert np.array_equal(found.coef, arrays.coef)
    one = dualgap.fit(DataSpec(tmp_path / file, positive=2.0), C=0.1, tol=1e-6)
    assert np.array_equal(one.coef, arrays.coef[1])
    assert one.classes == (None, 2.0)
    assert dualgap.plan(DataSpec(tmp_path / file, positive=2.0), C=0.1)[0].startswith("solver")


@pytest.mark.parametrize("file", FILES[1:])
def test_rows_on_disk_give_the_same_model_file(folder: Path, file: str) -> None:
    X, y = rows()
    disk = open_data(DataSpec(folder / file, in_memory=False), "classification")
    assert not disk.source.in_memory
    outcome = dualgap.fit(disk, C=0.1, tol=1e-4)
    model = model_of(outcome, disk)
    memory = open_data(DataSpec(X, y), "classification")
    assert model.fingerprint == memory.identity().fingerprint
    for again in FILES:
        assert model.verify(folder / again).verdict == "true"
    changed = X.copy()
    changed[0, 0] += 1.0
    assert model.verify(DataSpec(changed, y)).verdict == "not true"


def test_no_option_of_a_solver_decides_how_data_are_opened(folder: Path) -> None:
    store = folder / "rows.arrow"
    inside = dualgap.fit(store, solver="cached-loops", cache=30, tol=1e-3)
    assert inside.problem.source.in_memory
    outside = dualgap.fit(store, solver="cached-loops", cache=30, tol=1e-3, in_memory=False)
    assert not outside.problem.source.in_memory
    assert dualgap.fit(store, memory_budget=1, in_memory=True, tol=0.1).problem.source.in_memory
    for X, y in ((rows()[0], rows()[1]), (folder / "rows.svm", None)):
        with pytest.raises(InputError, match=r"in_memory=False is for rows on disk|text is read whole"):
            dualgap.fit(X, y, in_memory=False)


def test_a_dataset_says_itself_how_it_is_held(folder: Path) -> None:
    data = open_data(DataSpec(folder / "rows.arrow"), "classification")
    for more in ({"y": [1.0]}, {"in_memory": True}, {"memory_budget": 5}, {"expand": "poly2"}):
        with pytest.raises(InputError, match=f"{next(iter(more))} belongs to the Dataset"):
            dualgap.fit(data, **more)


def test_columns_of_a_parquet_file_have_parts_to_play(tmp_path: Path) -> None:
    X, y = rows()
    share = np.arange(120) % 3.0
    written(tmp_path, X, y, label="target", share=share)
    file = tmp_path / "rows.parquet"
    with pytest.raises(InputError, match=r"there is no column 'label' for the labels .* there are: f0"):
        dualgap.fit(file)
    spec = DataSpec(file, columns=ReadOptions(label="target", weight="share"))
    data = open_data(spec, "classification")
    assert data.schema.feature_names == tuple(f"f{j}" for j in range(6))
    assert np.array_equal(data.source.weight, share)
    arrays = dualgap.fit(sp.csr_array(X), y, sample_weight=share, C=0.1)
    assert np.array_equal(dualgap.fit(data, C=0.1).coef, arrays.coef)
    unlabelled = tmp_path / "new.parquet"
    pyarrow.parquet.write_table(pa.table({f"f{j}": X[:, j] for j in range(6)}), unlabelled)
    model = model_of(dualgap.fit(data, C=0.1), data)
    with pytest.raises(InputError, match="no column 'label'"):
        list(model.scores(DataSpec(unlabelled)))
    scores = np.concatenate(list(model.scores(DataSpec(unlabelled, columns=ReadOptions(labelled=False)))))
    assert np.allclose(scores, model.decision_function(X))


def test_a_schema_brings_other_rows_into_the_columns_of_the_training_rows(folder: Path) -> None:
    X, _ = rows()
    data = open_data(DataSpec(folder / "rows.svm"), "classification")
    narrow = folder / "narrow.svm"
    narrow.write_text("1 1:1\n2 2:1\n")
    held = open_data(DataSpec(narrow), "classification", data.schema)
    assert (held.source.n, held.source.d) == (2, 6)
    outcome = dualgap.fit(data, validation=held, max_epochs=3)
    assert outcome.coef.tolist() == dualgap.fit(data, validation=str(narrow), max_epochs=3).coef.tolist()
    narrow.write_text("1 1:1\n7 2:1\n")
    with pytest.raises(InputError, match="line 2: label 7 is none of the training rows', which are 1 and 2"):
        open_data(DataSpec(narrow), "classification", data.schema)
    with pytest.raises(InputError, match=r"y\[0\] is 7.0, which is no class of the training rows"):
        open_data(DataSpec(X[:1], [7.0]), "classification", data.schema)


def test_svmlight_needs_no_pyarrow(folder: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setitem(sys.modules, "pyarrow", None)
    assert dualgap.fit(folder / "rows.svm", max_epochs=2).coef.any()
    with pytest.raises(InputError, match="need the package pyarrow"):
        dualgap.fit(folder / "rows.arrow")
