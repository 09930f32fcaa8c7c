"""Parquet files on the command line, wherever svmlight text will do."""

from __future__ import annotations

from pathlib import Path

import numpy as np
import pyarrow as pa
import pyarrow.parquet
import pytest

import dualgap
from dualgap.files import DataSpec, load_model, read_data
from dualgap.runtime.errors import InputError
from support.commands import Forks, forks_fixture, write_rows  # noqa: F401


@pytest.fixture(scope="module")
def folder(tmp_path_factory: pytest.TempPathFactory) -> Path:
    place = tmp_path_factory.mktemp("parquet")
    data = read_data(write_rows(place / "rows.svm"))
    columns = {f"f{j}": data.X[:, [j]].toarray()[:, 0] for j in range(data.X.shape[1])}
    for name, label in (("rows", "label"), ("named", "target")):
        pyarrow.parquet.write_table(pa.table({**columns, label: data.y}), place / f"{name}.parquet")
    return place


@pytest.mark.slow
def test_every_command_takes_them(folder: Path, forks: Forks, tmp_path: Path) -> None:
    text, table = folder / "rows.svm", folder / "rows.parquet"
    for name, file in (("a", text), ("b", table)):
        assert forks("train", file, "-o", tmp_path / name, "--quiet", "--tol", "1e-6").code == 0
    one, two = load_model(tmp_path / "a"), load_model(tmp_path / "b")
    assert one.coef.tolist() == two.coef.tolist()
    assert (one.fingerprint, one.classes) == (two.fingerprint, two.classes)
    assert two.feature_names == tuple(f"f{j}" for j in range(12))
    for command in ("evaluate", "predict"):
        answers = [forks(command, tmp_path / "b", file, "--json").json for file in (text, table)]
        assert answers[0] == answers[1]
    for model in ("a", "b"):
        for file in (text, table):
            assert forks("certify", tmp_path / model, file, "--json").json["verdict"] == "true"
    seen = forks("inspect", table, "--json").json
    assert (seen["kind"], seen["n"], seen["d"]) == ("parquet", 200, 12)
    assert "rows.parquet: Parquet" in forks("inspect", table).out
    assert forks("convert", table, tmp_path / "rows.arrow", "--keep-order").code == 0
    assert forks("certify", tmp_path / "a", tmp_path / "rows.arrow", "--json").json["same_order"] is True
    assert "does not tell what to write" in forks("convert", text, tmp_path / "new.parquet").error


@pytest.mark.slow
def test_a_file_of_fewer_columns_is_refused(folder: Path, tmp_path: Path) -> None:
    """A Parquet file names all of its columns, so that none of the others is 0."""
    rng = np.random.default_rng(0)
    X, y = rng.normal(size=(60, 5)), rng.integers(0, 2, 60)
    for count in (5, 3):
        columns = {f"f{j}": X[:, j] for j in range(count)}
        pyarrow.parquet.write_table(pa.table({**columns, "label": y}), tmp_path / f"{count}.parquet")
    named = dualgap.fit(tmp_path / "5.parquet").model
    for model in (named, dualgap.fit(X, y).model):
        assert model.predict(tmp_path / "5.parquet").shape == (60,)
        for use in (model.predict, model.evaluate, model.verify):
            with pytest.raises(InputError, match=r"3.parquet: has 3 columns, and the model has 5; they must"):
                use(tmp_path / "3.parquet")
        with pytest.raises(InputError, match=r"3.parquet: has 3 columns, and the model has 5"):
            model.verify(DataSpec(tmp_path / "3.parquet", in_memory=False))


def test_the_column_of_labels_has_a_name(folder: Path, forks: Forks, tmp_path: Path) -> None:
    table = folder / "named.parquet"
    assert "there is no column 'label'" in forks("train", table, "-o", tmp_path / "m").error
    assert forks("train", table, "-o", tmp_path / "m", "--label", "target", "--quiet").code == 0
    assert forks("evaluate", tmp_path / "m", table, "--label", "target", "--json").json["accuracy"] > 0.8
    trained = forks("train", table, "-o", tmp_path / "d", "--label", "target", "--from-disk", "--json")
    assert trained.json["solver"] == "cached-loops"
    held = forks(
        "train", folder / "rows.svm", "--validation", folder / "rows.parquet", "-o", tmp_path / "v", "--quiet"
    )
    assert held.code in (0, 3)
