"""One model a class: from memory and from disk, in the same passes; and feeds of Parquet files."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import numpy as np
import pyarrow as pa
import pyarrow.parquet
import pytest
import scipy.sparse as sp

import dualgap
from dualgap.data.formats.arrow.feed import StoreFeed
from dualgap.files import Store, parquet_feed, write_store
from dualgap.runtime.errors import InputError


def rows(n: int = 600, d: int = 20, classes: int = 4, seed: int = 0) -> tuple[Any, Any]:
    rng = np.random.default_rng(seed)
    centres = rng.normal(size=(classes, d))
    y = rng.integers(0, classes, n)
    return sp.csr_array((centres[y] + rng.normal(size=(n, d))).astype(np.float32)), y + 3.0


@pytest.fixture
def store(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    monkeypatch.setattr(
        "dualgap.data.formats.arrow.writing.Options.__init__.__defaults__", (0, "auto", None, 10**9, 12_000)
    )
    X, y = rows()
    write_store(tmp_path / "a.arrow", X, y)
    assert len(Store(tmp_path / "a.arrow").header.checksums) > 4
    return tmp_path / "a.arrow"


@pytest.mark.parametrize("solver", ["cached-loops", "block", "selective-block"])
def test_every_class_has_its_certificate_and_chunks_are_read_once_for_all(store: Path, solver: str) -> None:
    many = dualgap.one_vs_rest(store, solver=solver, in_memory=False, cache=0.4, C=0.05, tol=1e-3)
    assert many.classes.tolist() == [3.0, 4.0, 5.0, 6.0]
    data = Store(store).read()
    for label, outcome in zip(many.classes, many.outcomes, strict=True):
        assert outcome.converged
        alone = dualgap.fit(data.X, np.where(data.y == label, 1.0, -1.0), C=0.05, tol=1e-6)
        assert outcome.certificate.primal == pytest.approx(alone.certificate.primal, rel=1.1e-3)
        assert outcome.certificate.dual <= alone.certificate.primal
    assert np.mean(many.predict(data.X) == data.y) > 0.8
    assert many.coef.shape == (4, 20)
    shared: Any = many.outcomes[0].problem.source
    if solver == "cached-loops":  # and not four times that
        assert shared.feed.loads <= (many.passes + 2) * shared.feed.chunks * 1.5


def test_memory_and_disk_agree(store: Path) -> None:
    memory = dualgap.one_vs_rest(store, C=0.05, tol=1e-5)
    assert memory.outcomes[0].problem.source.in_memory
    disk = dualgap.one_vs_rest(store, in_memory=False, cache=0.3, C=0.05, tol=1e-5)
    for one, other in zip(memory.outcomes, disk.outcomes, strict=True):
        assert one.certificate.primal == pytest.approx(other.certificate.primal, rel=2e-5)
    data = Store(store).read()
    arrays = dualgap.one_vs_rest(data.X, data.y, C=0.05, tol=1e-5)
    assert np.allclose(arrays.coef, memory.coef)


@pytest.mark.slow
def test_rows_grow_once(store: Path) -> None:
    many = dualgap.one_vs_rest(store, expand="poly2", hash_bits=10, C=0.05, max_epochs=20)
    data = Store(store).read()
    assert many.coef.shape == (4, 1024)
    assert np.mean(many.predict(data.X) == data.y) > 0.8


@pytest.mark.slow
def test_a_budget_is_shared(store: Path) -> None:
    with pytest.raises(InputError, match="memory_budget=20000, shared by 4 models, is too little") as refusal:
        dualgap.one_vs_rest(store, memory_budget=20_000)
    needed = int(str(refusal.value).partition("give at least ")[2].split()[0])
    many = dualgap.one_vs_rest(store, memory_budget=needed, max_epochs=20)
    assert all(outcome.coef.any() for outcome in many.outcomes)
    with pytest.raises(InputError, match="is for rows on disk"):
        dualgap.one_vs_rest(*rows(), memory_budget=20_000)
    with pytest.raises(InputError, match="come from the file"):
        dualgap.one_vs_rest(store, np.zeros(600))
    with pytest.raises(InputError, match="no option 'threds'"):
        dualgap.one_vs_rest(store, in_memory=False, cache=0.4, threds=2)


def test_a_broken_reader_leaves_models(store: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    load, count = StoreFeed.load, iter(range(10**6))

    def failing(self: Any, k: int, first: bool) -> Any:
        if next(count) > 40:
            raise InputError("the disk went away")
        return load(self, k, first)

    monkeypatch.setattr(StoreFeed, "load", failing)
    many = dualgap.one_vs_rest(store, in_memory=False, cache=0.4, C=1.0, tol=0.0)
    assert {outcome.reason.name for outcome in many.outcomes} == {"broken"}
    assert all("the disk went away" in outcome.reason.message for outcome in many.outcomes)
    assert all(outcome.coef.any() for outcome in many.outcomes)


def table(X: Any, y: Any, **others: Any) -> Any:
    columns = {f"f{j}": X[:, j] for j in range(X.shape[1])}
    return pa.table({**columns, "y": y, **others})


def test_parquet_files_are_rows(tmp_path: Path) -> None:
    X, y = rows(classes=2)
    dense, weight = X.toarray(), np.arange(600) % 3.0
    for name, part in (("a", slice(0, 350)), ("b", slice(350, 600))):
        pyarrow.parquet.write_table(
            table(dense[part], y[part], w=weight[part]), tmp_path / f"{name}.parquet", row_group_size=100
        )
    files = [tmp_path / "a.parquet", tmp_path / "b.parquet"]
    feed = parquet_feed(files, label="y", weight="w")
    assert (feed.n, feed.d, feed.epoch_size) == (600, 20, 400)
    memory = dualgap.fit(dense, y, sample_weight=weight, C=0.05, tol=1e-6)
    assert dualgap.fit(feed, C=0.05, tol=1e-6).certificate.primal == pytest.approx(
        memory.certificate.primal, rel=1e-6
    )
    disk = dualgap.fit(feed, C=0.05, tol=1e-6, solver="cached-loops", in_memory=False, cache=150)
    assert not disk.problem.source.in_memory
    assert disk.certificate.primal == pytest.approx(memory.certificate.primal, rel=2e-6)


@pytest.mark.parametrize(
    ("change", "complaint"),
    [
        ({"label": "z"}, "there is no column 'z'"),
        ({"weight": "z"}, "there is no column 'z'"),
        ({"word": ["x"] * 10}, "column 'word' holds string, and not numbers"),
        ({"hole": [None, *[1.0] * 9]}, "column 'hole' has missing values"),
    ],
)
def test_tables_that_will_not_do(tmp_path: Path, change: dict[str, Any], complaint: str) -> None:
    X, y = rows(n=10, classes=2)
    file = tmp_path / "a.parquet"
    names = {key: value for key, value in change.items() if isinstance(value, str)}
    pyarrow.parquet.write_table(
        table(X.toarray(), y, **{key: change[key] for key in change.keys() - names}), file
    )
    with pytest.raises(InputError, match=complaint):
        parquet_feed(file, **({"label": "y"} | names))
    (tmp_path / "no.parquet").write_bytes(b"PAR1 or not")
    with pytest.raises(InputError, match="no Parquet file"):
        parquet_feed(tmp_path / "no.parquet", label="y")
    with pytest.raises(InputError, match="no such file"):
        parquet_feed(tmp_path / "nowhere.parquet", label="y")
