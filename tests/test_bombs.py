"""Files that mean harm: each ends in one clear line, in little memory and time.

Every attempt runs under a limit on the address space, and its memory is measured.
"""

from __future__ import annotations

import bz2
import gzip
import json
import lzma
import os
import struct
import threading
import time
import zipfile
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import numpy as np
import pyarrow as pa
import pyarrow.parquet as pq
import pytest
import scipy.sparse as sp

import dualgap
from dualgap.data.formats.arrow.header import KEY, seal
from dualgap.data.formats.arrow.writing import Options, write_blocks
from dualgap.files import Model, Store, Table, read_svmlight
from dualgap.runtime import sizes
from dualgap.runtime.errors import InputError
from support import bombs
from support.bombs import bounded, deflated, npy_header, with_member

MB = 1_000_000
HUGE = 3 * 2**27  # columns: 3.2 GB of weights
X = np.random.default_rng(0).normal(size=(20, 3))
Y = np.where(X[:, 0] > 0, 1.0, -1.0)
SECONDS = 20.0  # of processor time; each takes less than one


def refused(read: Callable[[], Any], complaint: str, most: int = 100 * MB) -> None:
    start = time.process_time()
    with bounded(most), pytest.raises(InputError, match=complaint) as caught:
        read()
    assert "\n" not in str(caught.value)
    assert time.process_time() - start < SECONDS


@pytest.fixture(scope="module")
def saved(tmp_path_factory: Any) -> Path:
    folder: Path = tmp_path_factory.mktemp("bombs")
    outcome = dualgap.fit(X, Y, checkpoint=folder / "run.npz")
    outcome.model.save(folder / "m.model")
    return folder


def header_with(file: Path, **changes: Any) -> bytes:
    with zipfile.ZipFile(file) as archive:
        return json.dumps({**json.loads(archive.read("header.json")), **changes}).encode()


def model_bombs(file: Path) -> Iterator[tuple[str, bytes, str]]:
    """Names, files, and what is said of them."""
    weights, size = deflated(npy_header((1, HUGE)), bytes(2**20), HUGE // 2**17)
    yield "zeros", with_member(file, "coef.npy", weights, size), "would unpack to 3.22 GB, from 3"
    yield "a lie in the directory", with_member(file, "coef.npy", weights, 152), "damaged"
    small, length = deflated(npy_header((1, 2**40)), bytes(24), 1)
    yield "a lie in an array", with_member(file, "coef.npy", small, length), "another size"
    long = b"\x93NUMPY\x02\x00" + struct.pack("<I", 2**31)
    blanks, length = deflated(long, b" " * 2**20, 900)
    yield "a long header of an array", with_member(file, "coef.npy", blanks, length), "damaged"
    text, length = deflated(b"[", b"[]," * 2**18, 900)
    yield "a long header", with_member(file, "header.json", text, length), "a header of 708 MB"
    text, length = deflated(b"[", b"[" * 2**20, 10)
    yield "a deep header", with_member(file, "header.json", text, length), "damaged"
    header, length = deflated(header_with(file, n_features=2**62, n_samples=2**62), b"", 0)
    yield "counts", with_member(file, "header.json", header, length), "n_samples=4611686018427387904"
    packed = lzma.compress(bytes(100), lzma.FORMAT_ALONE, preset=9)
    yield "another method", with_member(file, "coef.npy", packed, 100, zipfile.ZIP_LZMA), "packed in another"
    empty = npy_header((2**40,), "<U0")
    yield "empty texts", with_member(file, "coef.npy", empty, len(empty), zipfile.ZIP_STORED), "empty texts"


def test_models(saved: Path, tmp_path: Path) -> None:
    for name, content, complaint in model_bombs(saved / "m.model"):
        file = tmp_path / name
        file.write_bytes(content)
        assert len(content) < 5 * MB
        refused(lambda file=file: Model.load(file), complaint)  # type: ignore[misc]


def test_the_limit_is_what_holds_a_model_back(saved: Path, tmp_path: Path, monkeypatch: Any) -> None:
    """Without it, memory is asked for: the test of bombs can fail."""
    weights, size = deflated(npy_header((1, HUGE)), bytes(2**20), HUGE // 2**17)
    content = with_member(saved / "m.model", "coef.npy", weights, size)
    (tmp_path / "m").write_bytes(content)
    monkeypatch.setattr("dualgap.runtime.archive.check_unpacked", lambda packed, unpacked: None)
    monkeypatch.setattr("dualgap.models.saving.check_header", lambda header, arrays: None)
    monkeypatch.setattr(bombs, "ROOM", 500 * MB)
    with bounded(100 * MB), pytest.raises(InputError, match="not enough memory"):
        Model.load(tmp_path / "m")


def test_a_large_model_of_zeros_is_stored_and_read(tmp_path: Path, monkeypatch: Any) -> None:
    """What is written can be read, however well it would pack."""
    monkeypatch.setattr("dualgap.runtime.archive.LEAST", 8 * MB)
    monkeypatch.setattr(sizes, "LEAST", 8 * MB)
    coef = np.zeros((1, 2 * MB))
    coef[0, 7] = 1.0
    model = dualgap.fit(X, Y).model
    wide = Model(**{**vars(model), "coef": coef, "feature_names": None})
    wide.save(tmp_path / "wide")
    assert (tmp_path / "wide").stat().st_size > 16 * MB
    assert Model.load(tmp_path / "wide").coef.tobytes() == coef.tobytes()


def test_saved_runs(saved: Path, tmp_path: Path) -> None:
    run, file = saved / "run.npz", tmp_path / "run.npz"
    weights, size = deflated(npy_header((HUGE,)), bytes(2**20), HUGE // 2**17)
    claim = npy_header((1, 2**40)) + bytes(24)
    empty = npy_header((2**36,), "<U0")
    for content in {
        "zeros": with_member(run, "w.npy", weights, size),
        "claim": with_member(run, "w.npy", claim, len(claim), zipfile.ZIP_STORED),
        "directory": with_member(run, "w.npy", claim, 2**32 - 2, zipfile.ZIP_STORED),
        "texts": with_member(run, "class.npy", empty, len(empty), zipfile.ZIP_STORED),
    }.values():
        file.write_bytes(content)
        refused(lambda: dualgap.load_state(file), "not a saved run")


def test_a_run_whose_names_lead_to_one_part_on_many_ways(tmp_path: Path, saved: Path) -> None:
    with np.load(saved / "run.npz") as found:
        arrays = {name: found[name] for name in found.files}
    depth = 30  # 2**29 ways
    for k in range(depth):
        names = [".".join(["a"] * m) for m in range(1, depth - k + 1)]
        arrays[f"memory.{'a.' * k}keys"] = np.array(names)
    arrays["memory" + ".a" * depth] = np.asarray(1.0)
    np.savez(tmp_path / "run.npz", allow_pickle=False, **arrays)
    refused(lambda: dualgap.load_state(tmp_path / "run.npz"), "not a saved run")


def endless(path: Path, unit: bytes) -> Path:
    """A pipe from which this comes for ever."""
    os.mkfifo(path)

    def write() -> None:
        try:
            with path.open("wb") as stream:
                while True:
                    stream.write(unit * 50_000)
        except BrokenPipeError:
            pass

    threading.Thread(target=write, daemon=True).start()
    return path


@pytest.fixture(scope="module")
def parser(tmp_path_factory: Any) -> None:
    """Kernels are compiled or loaded before memory is measured."""
    file = tmp_path_factory.mktemp("text") / "a.svm"
    for text in ("1 1:1\n-1 2:1\n", "a 1:1\nb 2:1\n"):
        file.write_text(text)
        read_svmlight(file)


@pytest.mark.parametrize("unit", [b"1 ", b":", b"1:1 ", b"x"])
def test_a_line_without_an_end(parser: None, tmp_path: Path, unit: bytes) -> None:
    refused(
        lambda: read_svmlight(endless(tmp_path / "pipe", unit)),
        "a line of more than 67,108,864 bytes",
        150 * MB,
    )


@pytest.mark.parametrize("unit", [b"\n", b"1 1:1\n", b"a 1:1\n", b"#\n"])
def test_rows_without_an_end(parser: None, tmp_path: Path, monkeypatch: Any, unit: bytes) -> None:
    monkeypatch.setattr("dualgap.data.formats.svmlight.reading.available_memory", lambda: 50 * MB)
    refused(
        lambda: read_svmlight(endless(tmp_path / "pipe", unit)), "do not fit into memory .*convert", 200 * MB
    )


@pytest.mark.parametrize(
    ("suffix", "pack"),
    [
        (".gz", gzip.compress),
        (".bz2", bz2.compress),
        (".xz", lambda text: lzma.compress(text, preset=0)),
        (".svm", bytes),
    ],
)
def test_a_packed_line_of_gigabytes(parser: None, tmp_path: Path, suffix: str, pack: Any) -> None:
    file = tmp_path / f"a.svm{suffix}"
    file.write_bytes(pack(b"1" * 68 * MB))
    if suffix == ".svm":
        os.truncate(file, 2**40)  # holes: 1 TB of zeros
    refused(lambda: read_svmlight(file), "a line of more than 67,108,864 bytes", 200 * MB)
    refused(lambda: list(dualgap.fit(file).trace), "a line of more than 67,108,864 bytes", 200 * MB)


def test_a_dictionary_of_a_gigabyte(parser: None, tmp_path: Path) -> None:
    filters = [{"id": lzma.FILTER_LZMA2, "preset": 0, "dict_size": 2**30}]
    (tmp_path / "a.xz").write_bytes(lzma.compress(b"1 1:1\n", filters=filters))
    refused(lambda: read_svmlight(tmp_path / "a.xz"), "packed for readers of more than 128 MB")


@pytest.mark.parametrize("device", ["/dev/zero", "/dev/urandom", "/dev/null"])
def test_devices(parser: None, device: str) -> None:
    for read in (read_svmlight, dualgap.fit, Model.load, dualgap.load_state, Store):
        refused(lambda read=read: read(device), device)  # type: ignore[misc]


def store(file: Path, compression: str | None, **changes: Any) -> Path:
    """A store whose header says something else, with a valid checksum."""
    write_blocks(file, [Table(Path(), sp.csr_array(X), Y)], Options(compression=compression), n_features=3)
    with pa.ipc.open_file(str(file)) as reader:
        layout, batch = reader.schema, reader.get_batch(0)
    told = {**json.loads(layout.metadata[KEY]), **changes}
    del told["checksum"]
    layout = layout.with_metadata({KEY: json.dumps({**told, "checksum": seal(told)}).encode()})
    options = pa.ipc.IpcWriteOptions(compression=compression)
    with pa.ipc.new_file(str(file), layout, options=options) as writer:
        writer.write_batch(batch.replace_schema_metadata(layout.metadata))
    return file


CLAIMS = {"n": 2**40, "batch_rows": [2**40], "present": 2**40, "classes": None, "class_weights": None}


@pytest.mark.parametrize("compression", [None, "zstd", "lz4"])
def test_stores_that_claim_too_much(tmp_path: Path, compression: str | None) -> None:
    for changes, complaint in (
        (CLAIMS, "would unpack to 17.6 TB"),
        ({"nnz": 2**40, "batch_entries": [2**40]}, "would unpack to"),
        ({"d": 2**32}, "4294967296 columns, which take about 206 GB to train"),
    ):
        file = store(tmp_path / "a.arrow", compression, **changes)
        refused(lambda file=file: dualgap.fit(file), complaint)  # type: ignore[misc]
        refused(lambda file=file: dualgap.fit(file, in_memory=False), complaint)  # type: ignore[misc]


@pytest.mark.parametrize("compression", ["zstd", "lz4"])
@pytest.mark.parametrize("size", [2**32, 2**62, -5])
def test_packed_buffers_that_claim_too_much(tmp_path: Path, compression: str, size: int) -> None:
    file = store(tmp_path / "a.arrow", compression)
    content = bytearray(file.read_bytes())
    true = struct.pack("<q", 8 * (len(Y) + 1))  # the length that stands before the packed offsets
    assert content.count(true) == 1
    at = content.index(true)
    content[at : at + 8] = struct.pack("<q", size)
    file.write_bytes(content)
    refused(lambda: Store(file).read(), "batch 0 .* is damaged: (it would unpack|a buffer)")
    refused(lambda: dualgap.fit(file), "batch 0 .* is damaged: (it would unpack|a buffer)")


def test_parquet(tmp_path: Path, monkeypatch: Any) -> None:
    file = tmp_path / "a.parquet"
    codes = pa.array(np.zeros(20_000, dtype=np.int32))
    words = pa.DictionaryArray.from_arrays(codes, pa.array(["x" * 2 * MB]))  # 40 GB, written out
    pq.write_table(pa.table({"label": words, "x": np.zeros(20_000)}), file)
    assert file.stat().st_size < MB
    refused(lambda: dualgap.fit(file), "has 2,000,000 characters")
    good = pa.table({"label": np.zeros(20_000), **{f"x{k}": np.zeros(20_000, np.int8) for k in range(40)}})
    pq.write_table(good, file)
    monkeypatch.setattr("dualgap.data.formats.parquet.available_memory", lambda: MB // 2)
    refused(lambda: dualgap.files.read_data(file), "do not fit into memory; train from disk")
    monkeypatch.setattr("dualgap.data.formats.parquet._MOST_ROWS", 1000)
    monkeypatch.setattr("dualgap.data.formats.parquet._ROWS_A_BYTE", 0)
    refused(lambda: dualgap.fit(file), "claims to have 20,000 rows")


def test_damaged_parquet_files_are_refused_or_read(tmp_path: Path) -> None:
    file, rng = tmp_path / "a.parquet", np.random.default_rng(1)
    pq.write_table(pa.table({"label": ["a", "b"] * 8, "x": np.arange(16.0)}), file)
    good, found = file.read_bytes(), {"read": 0, "refused": 0}
    for _ in range(150):
        bad = bytearray(good)
        bad[rng.integers(4, len(bad) - 8)] = rng.integers(256)
        file.write_bytes(bad)
        try:
            assert dualgap.files.read_data(file).n >= 0
            found["read"] += 1
        except InputError:
            found["refused"] += 1
    assert min(found.values()) > 5
