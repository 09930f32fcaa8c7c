"""Stores: what goes in comes out, other programs can read it, and nothing that is damaged passes for data."""

from __future__ import annotations

import json
import re
import struct
from collections import Counter
from collections.abc import Iterator
from dataclasses import replace
from fractions import Fraction
from itertools import pairwise
from pathlib import Path
from typing import Any

import numpy as np
import pytest
import scipy.sparse as sp
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st
from scipy.stats import chi2

from dualgap.core.losses import make_loss
from dualgap.core.problem import Point, Problem
from dualgap.data.chunks import OnDisk
from dualgap.data.fingerprint import fingerprint
from dualgap.data.formats.arrow.feed import StoreFeed
from dualgap.data.formats.arrow.header import KEY, Header, seal
from dualgap.data.formats.arrow.spool import Rows, Spool
from dualgap.data.formats.arrow.store import batch_of, checksum, schema
from dualgap.data.formats.arrow.writing import Options, write_blocks
from dualgap.files import Store, Table, write_store
from dualgap.runtime.errors import InputError

pa = pytest.importorskip("pyarrow")

SINGLE = st.floats(width=32, min_value=-(2.0**60), max_value=2.0**60, allow_subnormal=False)
DOUBLE = st.floats(min_value=-1e30, max_value=1e30, allow_subnormal=False).filter(
    lambda v: v == 0 or abs(v) > 1e-30
)


class Sample:
    """Rows with everything that a store keeps."""

    def __init__(self, X: Any, y: Any, weight: Any, names: tuple[str, ...] | None) -> None:
        self.X, self.y, self.weight, self.names = X, y, weight, names

    def __repr__(self) -> str:
        entries = (self.X.shape, self.X.indptr.tolist(), self.X.indices.tolist(), self.X.data.tolist())
        weight = None if self.weight is None else self.weight.tolist()
        return f"Sample({entries}, {self.y.tolist()}, {weight}, {self.names})"

    def blocks(self, size: int) -> Iterator[Table]:
        for first in range(0, self.y.size, size):
            part = slice(first, first + size)
            weight = None if self.weight is None else self.weight[part]
            done = min(1.0, (first + size) / self.y.size)
            yield Table(Path("memory"), self.X[part], self.y[part], None, weight, self.names, done=done)


@st.composite
def samples(draw: st.DrawFn, values: Any = None) -> Sample:
    n, d = draw(st.integers(1, 12)), draw(st.integers(1, 6))
    numbers = draw(st.sampled_from([SINGLE, DOUBLE])) if values is None else values
    rows = draw(st.lists(st.dictionaries(st.integers(0, d - 1), numbers, max_size=d), min_size=n, max_size=n))
    starts = np.cumsum([0, *(len(row) for row in rows)])
    columns = np.array([j for row in rows for j in sorted(row)], dtype=np.int32)
    data = np.array([row[j] for row in rows for j in sorted(row)], dtype=np.float64)
    y = np.array(draw(st.lists(st.one_of(st.sampled_from([-1.0, 1.0]), DOUBLE), min_size=n, max_size=n)))
    weights = st.lists(st.floats(0, 1e9, allow_subnormal=False), min_size=n, max_size=n).filter(any)
    weight = draw(st.none() | weights)
    names = draw(st.none() | st.lists(st.text(max_size=5), min_size=d, max_size=d))
    X = sp.csr_array((data, columns, starts.astype(np.int32)), shape=(n, d))
    return Sample(X, y, None if weight is None else np.array(weight), None if names is None else tuple(names))


def row_bytes(X: Any, y: Any, weight: Any) -> list[tuple[bytes, ...]]:
    """Every row as bytes, so that they can be compared bit for bit and counted."""
    weight = np.zeros(y.size) if weight is None else weight
    return [
        (
            X.indices[first:last].astype(np.int64).tobytes(),
            X.data[first:last].astype(np.float64).tobytes(),
            y[k].tobytes(),
            weight[k].tobytes(),
        )
        for k, (first, last) in enumerate(pairwise(X.indptr))
    ]


def rows_of(data: Table | Sample) -> list[tuple[bytes, ...]]:
    return row_bytes(data.X, data.y, data.weight)


round_trips = settings(
    max_examples=40, deadline=None, suppress_health_check=[HealthCheck.function_scoped_fixture]
)


@pytest.mark.slow
@round_trips
@given(
    sample=samples(),
    keep_order=st.booleans(),
    compression=st.sampled_from([None, "lz4", "zstd"]),
    batch=st.integers(1, 300),
    block=st.integers(1, 12),
)
def test_what_goes_in_comes_out(
    tmp_path: Path, sample: Sample, keep_order: bool, compression: str | None, batch: int, block: int
) -> None:
    file = tmp_path / "rows.arrow"
    options = Options(None if keep_order else 3, compression=compression, batch=batch)
    header = write_blocks(file, sample.blocks(block), options, n_features=sample.X.shape[1])
    store = Store(file)
    assert store.header == header
    data, parts = store.read(), list(store.blocks())
    if keep_order:
        assert rows_of(data) == rows_of(sample)
    else:
        assert Counter(rows_of(data)) == Counter(rows_of(sample))
    assert [row for part in parts for row in rows_of(part)] == rows_of(data)
    assert [part.first for part in parts] == store.starts[:-1].tolist()
    assert parts[-1].done == 1.0
    for found in (data, *parts):
        assert found.X.shape[1] == sample.X.shape[1]
        assert found.feature_names == sample.names
        assert (found.weight is None) == (sample.weight is None)
        assert found.X.has_canonical_format
    assert fingerprint(data.X, data.y, data.weight, digests=header.digests) == fingerprint(
        data.X, data.y, data.weight
    )
    if keep_order:
        assert fingerprint(data.X, data.y, data.weight) == fingerprint(sample.X, sample.y, sample.weight)


@round_trips
@given(sample=samples(), dtype=st.sampled_from(["auto", "float32", "float64"]))
def test_value_types(tmp_path: Path, sample: Sample, dtype: str) -> None:
    file = tmp_path / "rows.arrow"
    header = write_store(
        file, sample.X, sample.y, sample.weight, feature_names=sample.names, keep_order=True, dtype=dtype
    )
    exact = bool((sample.X.data.astype(np.float32) == sample.X.data).all())
    assert header.value_type == (("float32" if exact else "float64") if dtype == "auto" else dtype)
    found = Store(file).read().X
    assert found.data.dtype == header.value_type
    assert found.data.tobytes() == sample.X.data.astype(header.value_type).tobytes()


@round_trips
@given(sample=samples())
def test_the_header_tells_the_truth(tmp_path: Path, sample: Sample) -> None:
    file = tmp_path / "rows.arrow"
    write_blocks(file, sample.blocks(5), Options(7, "float64", batch=150), n_features=sample.X.shape[1])
    told = json.loads(
        pa.ipc.open_file(pa.OSFile(str(file))).schema.metadata[KEY], parse_constant=lambda word: 1 / 0
    )
    X, y = sample.X, sample.y
    dense = X.toarray()
    labels, counts = np.unique(y, return_counts=True)
    lengths = np.linalg.norm(dense, axis=1)
    assert (told["format"], told["version"]) == ("dualgap store", 1)
    assert (told["n"], told["d"], told["nnz"]) == (*X.shape, X.nnz)
    assert told["classes"] == [
        [label, count] for label, count in zip(labels.tolist(), counts.tolist(), strict=True)
    ]
    assert told["norms"]["smallest"] == pytest.approx(lengths.min())
    assert told["norms"]["largest"] == pytest.approx(lengths.max())
    assert told["norms"]["mean"] == pytest.approx(lengths.mean())
    assert told["norms"]["empty"] == int((np.diff(X.indptr) == 0).sum())
    assert told["weighted"] is (sample.weight is not None)
    assert told["total_weight"] == pytest.approx(X.shape[0] if sample.weight is None else sample.weight.sum())
    assert told["feature_names"] == (None if sample.names is None else list(sample.names))
    assert (told["seed"], told["value_type"], told["compression"], told["zero_based"]) == (
        7,
        "float64",
        None,
        None,
    )
    parts = list(Store(file).blocks())
    assert told["batch_rows"] == [part.y.size for part in parts]
    assert told["batch_entries"] == [part.X.nnz for part in parts]
    assert told["checksums"] == [
        checksum(
            part.X.indptr.astype(np.int64), part.X.indices.astype(np.uint32), part.X.data, part.y, part.weight
        )
        for part in parts
    ]


def sample_of(n: int = 40, d: int = 7, seed: int = 0, weighted: bool = True, named: bool = True) -> Sample:
    rng = np.random.default_rng(seed)
    X = sp.random_array((n, d), density=0.4, format="csr", rng=rng)
    weight = rng.random(n) if weighted else None
    return Sample(
        X, np.arange(n, dtype=float), weight, tuple(f"name {j}" for j in range(d)) if named else None
    )


def written(file: Path, sample: Sample, options: Options, block: int = 9) -> Header:
    return write_blocks(file, sample.blocks(block), options, n_features=sample.X.shape[1])


def test_batches_are_as_large_as_asked_and_no_larger_than_they_must_be(tmp_path: Path) -> None:
    sample = sample_of(200)
    header = written(tmp_path / "a.arrow", sample, Options(None, "float64", batch=1000))
    sizes = np.diff(sample.X.indptr) * 12 + 24
    starts = np.cumsum([0, *header.batch_rows])
    assert len(header.batch_rows) > 5
    for first, last in pairwise(starts[:-1]):
        assert sizes[first : last - 1].sum() < 1000 <= sizes[first:last].sum()


# the order


def order_by(folder: Path, sizes: list[int], budget: int, seed: int | None) -> tuple[list[float], bool]:
    """The order that rows of those blocks get, and whether files were used."""
    spool = Spool(folder, budget, seed)
    n = sum(sizes)
    first = 0
    for size in sizes:
        y = np.arange(first, first + size, dtype=float)
        first += size
        spool.add(Rows(sp.csr_array(y[:, None] + 1.0), y, y + 0.5), first / n)
    spilled = any(".dualgap-" in path.name for path in folder.iterdir())
    found = list(spool.rows())
    spool.close()
    assert list(folder.iterdir()) == []
    for rows in found:
        assert rows.X.toarray()[:, 0].tolist() == (rows.y + 1.0).tolist()
        assert rows.weight.tolist() == (rows.y + 0.5).tolist()
    return [label for rows in found for label in rows.y.tolist()], spilled


def test_every_row_is_as_likely_in_every_place(tmp_path: Path) -> None:
    n, seeds = 8, 800
    places = np.zeros((n, n))
    follows = 0
    for seed in range(seeds):
        order, _ = order_by(tmp_path, [5, 3], 10**9, seed)
        assert sorted(order) == list(range(n))
        places[np.arange(n), np.array(order, dtype=int)] += 1
        follows += sum(two == one + 1 for one, two in pairwise(order))
    expected = seeds / n
    assert ((places - expected) ** 2 / expected).sum() < chi2.isf(1e-4, (n - 1) ** 2)
    # a pair of neighbours stays one, in this order, in (n - 1) of the n (n - 1) pairs of places
    assert follows / seeds == pytest.approx((n - 1) / n, abs=5 / np.sqrt(seeds))


@pytest.mark.slow
@pytest.mark.parametrize("seed", [None, 0, 12345])
def test_the_order_depends_on_the_seed_alone(tmp_path: Path, seed: int | None) -> None:
    one, spilled = order_by(tmp_path, [300], 10**9, seed)
    assert not spilled
    assert (one == sorted(one)) == (seed is None)
    for sizes, budget in (([10] * 30, 10**9), ([10] * 30, 9000), ([3, 200, 97], 2000), ([1] * 300, 600)):
        again, spilled = order_by(tmp_path, sizes, budget, seed)
        assert spilled == (budget < 10**9)
        assert again == one


def test_files_do_not_depend_on_memory(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("dualgap.data.formats.arrow.writing.SMALLEST_BUDGET", 1)
    sample = sample_of(300)
    for seed in (None, 4):
        for budget in (10**9, 20_000, 2000):
            written(tmp_path / f"{budget}.arrow", sample, Options(seed, memory_budget=budget, batch=2000))
        contents = {(tmp_path / f"{budget}.arrow").read_bytes() for budget in (10**9, 20_000, 2000)}
        assert len(contents) == 1
        assert len(Store(tmp_path / "2000.arrow").header.batch_rows) > 3
    assert sorted(path.name for path in tmp_path.iterdir()) == [
        "1000000000.arrow",
        "2000.arrow",
        "20000.arrow",
    ]


def test_seeds_make_different_files_of_the_same_rows(tmp_path: Path) -> None:
    sample = sample_of(100)
    for seed in (1, 2):
        written(tmp_path / f"{seed}.arrow", sample, Options(seed))
    one, two = (Store(tmp_path / f"{seed}.arrow").read() for seed in (1, 2))
    assert one.y.tolist() != two.y.tolist()
    assert Counter(rows_of(one)) == Counter(rows_of(two)) == Counter(rows_of(sample))


# other programs


@pytest.fixture(params=[None, "lz4", "zstd"], name="ordinary")
def ordinary_fixture(request: pytest.FixtureRequest, tmp_path: Path) -> tuple[Path, Sample, str | None]:
    sample = sample_of(100)
    file = tmp_path / "rows.arrow"
    header = written(file, sample, Options(None, compression=request.param, batch=1500))
    assert len(header.batch_rows) > 3
    return file, sample, request.param


def lists_of(sample: Sample) -> list[list[dict[str, float]]]:
    return [
        [
            {"column": int(j), "value": float(v)}
            for j, v in zip(sample.X.indices[first:last], sample.X.data[first:last], strict=True)
        ]
        for first, last in pairwise(sample.X.indptr)
    ]


def test_pyarrow_reads_it(ordinary: tuple[Path, Sample, str | None]) -> None:
    file, sample, _ = ordinary
    with pa.memory_map(str(file)) as source:
        table = pa.ipc.open_file(source).read_all()
    table.validate(full=True)
    assert table.column("row").to_pylist() == lists_of(sample)
    assert table.column("label").to_pylist() == sample.y.tolist()
    assert table.column("weight").to_pylist() == sample.weight.tolist()
    as_stream = pa.ipc.open_stream(file.read_bytes()[8:]).read_all()
    assert as_stream.column("row").to_pylist() == lists_of(sample)


def test_pandas_reads_it(ordinary: tuple[Path, Sample, str | None]) -> None:
    pandas = pytest.importorskip("pandas")
    file, sample, _ = ordinary
    frame = pandas.read_feather(file)
    assert frame["label"].tolist() == sample.y.tolist()
    assert frame["weight"].tolist() == sample.weight.tolist()
    assert [list(row) for row in frame["row"]] == lists_of(sample)


def test_polars_reads_it(ordinary: tuple[Path, Sample, str | None]) -> None:
    polars = pytest.importorskip("polars")
    file, sample, _ = ordinary
    for frame in (polars.read_ipc(file), polars.scan_ipc(file).collect()):
        assert frame["label"].to_list() == sample.y.tolist()
        assert frame["weight"].to_list() == sample.weight.tolist()
        assert frame["row"].to_list() == lists_of(sample)
    lengths = polars.scan_ipc(file).select(polars.col("row").list.len().sum()).collect().item()
    assert lengths == sample.X.nnz


def test_buffers_are_aligned_and_need_no_copy(tmp_path: Path) -> None:
    file = tmp_path / "rows.arrow"
    for dtype in ("float32", "float64"):
        written(file, sample_of(100), Options(None, dtype, batch=1500))
        whole = pa.memory_map(str(file)).read_buffer()
        reader = pa.ipc.open_file(whole)
        assert reader.num_record_batches > 3
        seen = 0
        for k in range(reader.num_record_batches):
            batch = reader.get_batch(k)
            for buffer in (
                found for column in batch.columns for found in column.buffers() if found is not None
            ):
                place = buffer.address - whole.address
                assert 0 < place < place + buffer.size <= whole.size
                assert place % 64 == 0
                seen += 1
            entries = batch.column(0).values
            assert entries.field(1).to_numpy(zero_copy_only=True).flags.aligned
        assert seen == 5 * reader.num_record_batches  # offsets, columns, values, labels, weights


# damage


@pytest.fixture(scope="module", name="small", params=[None, "lz4", "zstd"])
def small_fixture(
    request: pytest.FixtureRequest, tmp_path_factory: pytest.TempPathFactory
) -> tuple[Path, Sample]:
    file = tmp_path_factory.mktemp("small") / "rows.arrow"
    sample = sample_of(6, 3)
    header = written(file, sample, Options(None, compression=request.param, batch=150))
    assert len(header.batch_rows) == 2
    return file, sample


@pytest.mark.slow
def test_a_flipped_byte_is_found_or_does_not_matter(small: tuple[Path, Sample], tmp_path: Path) -> None:
    file, sample = small
    content, header = file.read_bytes(), Store(file).header
    copy = tmp_path / "copy.arrow"
    rng = np.random.default_rng(0)
    harmless, passed, complaints = 0, [], set()
    for place in range(0, len(content), 1 if header.compression is None else 3):
        damaged = bytearray(content)
        damaged[place] ^= int(rng.integers(1, 256))
        copy.write_bytes(damaged)
        try:
            store = Store(copy)
            data = store.read()
        except InputError as error:
            complaints.add(str(error))
            continue
        same = rows_of(data) == rows_of(sample) and data.X.shape == sample.X.shape and store.header == header
        harmless += same
        if not same:
            passed.append((place, content[max(0, place - 20) : place + 10]))
    assert passed == []
    assert harmless > 0  # padding
    assert all(text.startswith(f"{copy}: ") and "\n" not in text for text in complaints)


@pytest.mark.slow
@pytest.mark.parametrize("small", [None], indirect=True)  # compressed batches are read as by `read`
def test_a_flipped_byte_does_no_harm_to_training_from_disk(
    small: tuple[Path, Sample], tmp_path: Path
) -> None:
    """Lengths in Arrow's own metadata that contradict each other make Arrow abort the process, unless checked
    first.
    """
    file, _ = small
    content, copy = file.read_bytes(), tmp_path / "copy.arrow"

    def chunks() -> list[bytes]:
        feed = StoreFeed(Store(copy))
        loaded = [feed.load(k, True) for k in range(feed.chunks)]
        return [
            part.tobytes() for chunk in loaded for part in (chunk.rows.values, chunk.rows.columns, chunk.y)
        ]

    copy.write_bytes(content)
    expected, complaints = chunks(), set()
    # every eighth byte is the sign of an int64
    for place in [*range(0, len(content), 5), *range(7, len(content), 8)]:
        damaged = bytearray(content)
        damaged[place] ^= 0xFF
        copy.write_bytes(damaged)
        try:
            found = chunks()
        except InputError as error:
            complaints.add(str(error))
            continue
        assert found == expected
    assert complaints
    assert all(text.startswith(f"{copy}: ") and "\n" not in text for text in complaints)


def body_bytes(file: Path) -> Iterator[tuple[int, int]]:
    """Places of bytes of rows, with the batch that they belong to."""
    whole = pa.py_buffer(file.read_bytes())
    reader = pa.ipc.open_file(whole)
    for k in range(reader.num_record_batches):
        for column in reader.get_batch(k).columns:
            for buffer in column.buffers():
                if buffer is not None:
                    first = buffer.address - whole.address
                    yield from ((k, place) for place in range(first, first + buffer.size))


def test_a_damaged_batch_is_named_and_the_others_can_be_read(tmp_path: Path) -> None:
    file = tmp_path / "rows.arrow"
    header = written(file, sample_of(30), Options(None, batch=1000))
    content = file.read_bytes()
    ends = np.cumsum(header.batch_rows)
    for k, place in list(body_bytes(file))[::7]:
        damaged = bytearray(content)
        damaged[place] ^= 0x10
        file.write_bytes(damaged)
        store = Store(file)
        with pytest.raises(InputError) as caught:
            store.batch(k)
        words = f"{file}: batch {k} (rows {ends[k] - header.batch_rows[k]} to {ends[k] - 1}) is damaged: "
        assert str(caught.value).startswith(words)
        with pytest.raises(InputError, match=re.escape(words)):
            store.read()
        assert store.batch((k + 1) % len(ends)).y.size


def test_a_file_that_is_cut_short_is_refused(small: tuple[Path, Sample], tmp_path: Path) -> None:
    file, _ = small
    content = file.read_bytes()
    copy = tmp_path / "copy.arrow"
    for length in range(0, len(content), 5):
        copy.write_bytes(content[:length])
        with pytest.raises(InputError):
            Store(copy).read()


def test_foreign_files_are_refused(tmp_path: Path) -> None:
    file = tmp_path / "rows.arrow"
    table = pa.table({"a": [1, 2, 3]})
    with pa.OSFile(str(file), "wb") as sink, pa.ipc.new_file(sink, table.schema) as writer:
        writer.write_table(table)
    with pytest.raises(InputError, match="an Arrow file, but no dualgap store"):
        Store(file)
    for content in (b"", b"ARROW1", b"ARROW1\0\0" + bytes(100) + b"ARROW1", b"1 1:1\n", b"\xff" * 100):
        file.write_bytes(content)
        with pytest.raises(InputError, match="no Arrow file, or a damaged one"):
            Store(file)
    with pytest.raises(InputError, match="no such file"):
        Store(tmp_path / "nowhere")
    with pytest.raises(InputError, match="is a folder"):
        Store(tmp_path)


def crafted(file: Path, metadata: bytes, layout: Any, batches: list[Any]) -> None:
    from dualgap.data.formats.arrow.ipc import ArrowFile

    with file.open("wb") as stream:
        arrow = ArrowFile(stream, layout)
        for batch in batches:
            arrow.write(batch)
        arrow.close({KEY: metadata})


def honest(sample: Sample, file: Path) -> tuple[Header, Any, list[Any]]:
    """A header, the layout and the batches of a store."""
    header = written(file, sample, Options(None, "float64", batch=250))
    layout = schema("float64", sample.weight is not None)
    batches = [batch_of(layout, part.X, part.y, part.weight)[0] for part in Store(file).blocks()]
    return header, layout, batches


def test_a_store_of_another_version_is_refused(tmp_path: Path) -> None:
    file = tmp_path / "rows.arrow"
    header, layout, batches = honest(sample_of(12, 5), file)
    crafted(file, header.to_json(), layout, batches)
    assert Store(file).read().y.size == 12
    newer = json.dumps({**json.loads(header.to_json()), "version": 3}).encode()
    crafted(file, newer, layout, batches)
    with pytest.raises(InputError, match="a store of version 3, and this dualgap reads versions 1 to 2"):
        Store(file)


LIES = {
    "more rows": {"n": 13, "batch_rows": [3, 4, 6]},
    "other rows": {"batch_rows": [4, 4, 4]},
    "very many rows": {"n": 10**15 + 8, "batch_rows": [4, 4, 10**15]},
    "rows beyond 64 bits": {"n": 10**30 + 8, "batch_rows": [4, 4, 10**30]},
    "fewer rows than none": {"n": 0, "batch_rows": [4, 4, -8]},
    "n differs": {"n": 11},
    "nnz differs": {"nnz": 3},
    "more entries": {"nnz": "+1", "batch_entries": "+1"},
    "fewer entries": {"nnz": "-1", "batch_entries": "-1"},
    "very many entries": {"nnz": "+1000000000000000", "batch_entries": "+1000000000000000"},
    "fewer columns": {"d": 4, "feature_names": None},
    "no columns": {"d": 0, "feature_names": None},
    "columns that are words": {"d": "5"},
    "names that are too few": {"feature_names": ["a"]},
    "names that are numbers": {"feature_names": [1, 2, 3, 4, 5]},
    "other values": {"value_type": "float32"},
    "unknown values": {"value_type": "float16"},
    "no weights": {"weighted": False},
    "a batch less": {"checksums": ["0" * 8] * 2},
    "two batches": {"checksums": ["0" * 8] * 2, "batch_rows": [6, 6], "batch_entries": "two"},
    "checksums that are numbers": {"checksums": [1, 2, 3]},
    "short digests": {"digests": ["00", "00", "00"]},
    "two digests": {"digests": ["00" * 32] * 2},
    "an odd base": {"zero_based": 7},
    "no weight at all": {"total_weight": 0.0},
    "infinite weight": {"total_weight": float("inf")},
    "weight in words": {"total_weight": "40"},
}


@pytest.mark.parametrize("lie", list(LIES))
def test_a_header_that_lies_is_refused(tmp_path: Path, lie: str) -> None:
    file = tmp_path / "rows.arrow"
    sample = sample_of(12, 5)
    header, layout, batches = honest(sample, file)
    changes: dict[str, Any] = dict(LIES[lie])
    if changes.get("batch_entries") == "two":
        changes["batch_entries"] = [1, header.nnz - 1]
    elif "batch_entries" in changes:
        by = int(changes["nnz"])
        changes = {
            "nnz": header.nnz + by,
            "batch_entries": [*header.batch_entries[:2], header.batch_entries[2] + by],
        }
    crafted(file, replace(header, **changes).to_json(), layout, batches)
    with pytest.raises(InputError, match=re.escape(str(file))):
        Store(file).read()


def test_totals_of_weights_are_right_to_the_last_bits_whenever_the_store_was_written(tmp_path: Path) -> None:
    """Stores once had plain sums and did not say how they summed; their weights are added up when they are
    opened.
    """
    file = tmp_path / "rows.arrow"
    sample = sample_of(400, 3, named=False)
    weight, y = np.ones(400), np.arange(400.0) % 3
    weight[0] = 2.0**53
    header, layout, batches = honest(Sample(sample.X, y, weight, None), file)
    totals = [(label, float(sum(map(Fraction, weight[y == label].tolist())))) for label in (0.0, 1.0, 2.0)]
    assert header.compensated
    assert (header.total_weight, header.class_weights) == (2.0**53 + 400.0, [total for _, total in totals])
    told = {**json.loads(header.to_json()), "total_weight": 2.0**53, "class_weights": [2.0**53, 133.0, 133.0]}
    del told["compensated"], told["checksum"]
    crafted(file, json.dumps({**told, "checksum": seal(told)}).encode(), layout, batches)
    old = Store(file)
    assert not old.header.compensated
    feed = StoreFeed(old)
    assert (feed.total_weight, feed.labels) == (2.0**53 + 400.0, totals)


def test_rows_must_have_the_weight_that_the_header_tells(tmp_path: Path) -> None:
    file = tmp_path / "rows.arrow"
    sample = sample_of(12, 5)
    sample.y = np.where(np.arange(12) % 2, 1.0, -1.0)
    header, layout, batches = honest(sample, file)
    point = Point(np.zeros(5), 0.0, None)
    for factor in (1.0, 1.0 + 1e-13, 0.5):
        crafted(file, replace(header, total_weight=factor * header.total_weight).to_json(), layout, batches)
        problem = Problem(OnDisk(StoreFeed(Store(file)), memory_budget=None), make_loss("hinge"), 1.0)
        if factor == 1.0:
            assert problem.evaluate(point).primal == pytest.approx(1.0)
        else:
            with pytest.raises(InputError, match=r"weights of all rows add up to .* must be converted anew"):
                problem.evaluate(point)


@pytest.mark.parametrize(
    "metadata", [b"", b"{", b"[]", b"7", b"null", b"\xff\xfe", b'{"format": "dualgap store"}', b"[" * 100_000]
)
def test_metadata_that_are_none(tmp_path: Path, metadata: bytes) -> None:
    file = tmp_path / "rows.arrow"
    _, layout, batches = honest(sample_of(12, 5), file)
    crafted(file, metadata, layout, batches)
    with pytest.raises(InputError, match="metadata of this store are damaged"):
        Store(file)


@pytest.mark.parametrize(("place", "start"), [(0, 1), (-1, 3), (-1, 5), (1, 4)])
def test_offsets_must_cover_all_entries_in_order(tmp_path: Path, place: int, start: int) -> None:
    """Arrow allows entries before the first row and after the last; CSR does not, whatever the checksum
    says.
    """
    file = tmp_path / "rows.arrow"
    X = sp.csr_array(np.array([[1.0, 2.0], [3.0, 0.0], [0.0, 4.0]]))
    sample = Sample(X, np.array([1.0, -1.0, 1.0]), None, None)
    header, layout, batches = honest(sample, file)
    offsets = X.indptr.astype(np.int64)
    before = offsets.tobytes()
    offsets[place] = start
    told = replace(header, checksums=[checksum(offsets, X.indices.astype(np.uint32), X.data, sample.y)])
    crafted(file, told.to_json(), layout, batches)
    content = file.read_bytes()
    assert content.count(before) == 1
    file.write_bytes(content.replace(before, offsets.tobytes()))
    with pytest.raises(InputError, match=r"batch 0 \(rows 0 to 2\) is damaged"):
        Store(file).read()


def test_a_file_written_by_pyarrow_anew_is_still_a_store(tmp_path: Path) -> None:
    """Other programs align to 8 bytes and may write another compression; the rows are what counts."""
    file, copy = tmp_path / "rows.arrow", tmp_path / "copy.arrow"
    sample = sample_of(30)
    written(file, sample, Options(None, batch=1000))
    reader = pa.ipc.open_file(pa.OSFile(str(file)))
    options = pa.ipc.IpcWriteOptions(compression="zstd")
    with pa.OSFile(str(copy), "wb") as sink, pa.ipc.new_file(sink, reader.schema, options=options) as writer:
        for k in range(reader.num_record_batches):
            writer.write_batch(reader.get_batch(k))
    assert rows_of(Store(copy).read()) == rows_of(sample)


# what cannot be written


@pytest.mark.parametrize(
    ("change", "complaint"),
    [
        ({"y": [1.0]}, "y has shape (1,) and X has 3 rows"),
        ({"y": [1.0, np.nan, 1.0]}, "y[1] is not finite"),
        ({"sample_weight": [1.0, 1.0]}, "sample_weight has shape (2,)"),
        ({"sample_weight": [1.0, -2.0, 1.0]}, "sample_weight[1] is -2"),
        ({"sample_weight": [1.0, np.inf, 1.0]}, "sample_weight[1] is not finite"),
        ({"feature_names": ["a"]}, "feature_names has 1 names and X has 2 columns"),
        ({"X": np.zeros((3, 0))}, "X"),
        ({"X": [[1.0, np.nan]] * 3}, "X contains NaN at row 0, column 1"),
        ({"X": np.zeros((0, 2)), "y": []}, "no rows"),
        ({"dtype": "float16"}, "dtype='float16' must be"),
        ({"X": [[1e60, 1.0]] * 3, "dtype": "float32"}, "values beyond float32"),
        ({"compression": "gzip"}, "compression='gzip' must be"),
        ({"memory_budget": 5}, "memory_budget=5 is too little"),
        ({"seed": -1}, "seed=-1"),
    ],
)
def test_what_cannot_be_written_is_refused(tmp_path: Path, change: dict[str, Any], complaint: str) -> None:
    arguments: dict[str, Any] = {"X": np.ones((3, 2)), "y": [1.0, -1.0, 1.0], **change}
    with pytest.raises(InputError, match=re.escape(complaint)):
        write_store(tmp_path / "rows.arrow", **arguments)
    assert list(tmp_path.iterdir()) == []


def test_what_is_written_stays_as_it_was(tmp_path: Path) -> None:
    X = sp.csr_array((np.array([1.0, 2.0, 3.0]), np.array([2, 0, 1]), np.array([0, 2, 3])), shape=(2, 3))
    before = [array.copy() for array in (X.data, X.indices, X.indptr)]
    for array in (X.data, X.indices, X.indptr):
        array.flags.writeable = False
    write_store(tmp_path / "rows.arrow", X, [1, -1], keep_order=True)
    for array, old in zip((X.data, X.indices, X.indptr), before, strict=True):
        assert array.tolist() == old.tolist()
    assert Store(tmp_path / "rows.arrow").read().X.toarray().tolist() == X.toarray().tolist()


# a writer that is stopped


def stopping(sample: Sample, after: int, error: BaseException) -> Iterator[Table]:
    for k, data in enumerate(sample.blocks(10)):
        if k == after:
            raise error
        yield data


@pytest.mark.parametrize("error", [RuntimeError("stop"), KeyboardInterrupt()])
@pytest.mark.parametrize("stage", ["reading", "writing", "closing"])
def test_a_writer_that_is_stopped_leaves_nothing_behind(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, error: BaseException, stage: str
) -> None:
    monkeypatch.setattr("dualgap.data.formats.arrow.writing.SMALLEST_BUDGET", 1)
    file = tmp_path / "rows.arrow"
    file.write_bytes(b"what was there")
    spilled = []

    def fail(self: Any, *_: Any) -> None:
        spilled.extend(path.name for path in tmp_path.iterdir())
        raise error

    if stage == "writing":
        monkeypatch.setattr("dualgap.data.formats.arrow.ipc.ArrowFile.write", fail)
    elif stage == "closing":
        monkeypatch.setattr("dualgap.data.formats.arrow.ipc.ArrowFile.close", fail)
    blocks = stopping(sample_of(300), 20 if stage == "reading" else 1000, error)
    with pytest.raises(type(error)):
        write_blocks(file, blocks, Options(0, memory_budget=2000))
    assert stage == "reading" or any(name.startswith(".rows.dualgap-") for name in spilled)
    assert [path.name for path in tmp_path.iterdir()] == ["rows.arrow"]
    assert file.read_bytes() == b"what was there"


def test_the_message_before_a_batch_tells_the_length_of_its_metadata(tmp_path: Path) -> None:
    """By the format: 0xFFFFFFFF, a length that is a multiple of 8, the metadata; then the body."""
    file = tmp_path / "rows.arrow"
    written(file, sample_of(30), Options(None, batch=1000))
    content = file.read_bytes()
    at, messages = 8, 0
    while True:
        mark, length = struct.unpack_from("<Ii", content, at)
        assert mark == 0xFFFFFFFF
        assert length % 8 == 0
        if length == 0:
            break
        message = pa.ipc.read_message(content[at:])
        at += 8 + length + (0 if message.body is None else message.body.size)
        messages += 1
    assert messages == 1 + len(Store(file).header.batch_rows)
