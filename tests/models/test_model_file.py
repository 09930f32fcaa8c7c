"""The model file: what goes in comes out, and nothing else ever does."""

from __future__ import annotations

import io
import json
import os
import pickle
import zipfile
from dataclasses import fields, replace
from pathlib import Path
from typing import Any

import numpy as np
import pytest
import scipy.sparse as sp
from hypothesis import given
from hypothesis import strategies as st

from dualgap.data.fingerprint import (
    fingerprint,
    hashes_in_any_order,
    hashes_in_order,
    row_hashes,
    values_by_hash,
)
from dualgap.files import Model, Proof, load_model, save_model
from dualgap.models.saving import VERSION
from dualgap.runtime.archive import read_archive, write_archive
from dualgap.runtime.errors import InputError
from dualgap.runtime.writing import check_destination, replacing


def proof(gap: float = 0.5) -> Proof:
    certificate = {
        "primal": 2.0 + gap,
        "dual": 2.0,
        "gap": gap,
        "relative_gap": gap / 2,
        "rounding": 1e-15,
        "form": "J",
    }
    return Proof(0.1, 3.0, certificate, True, "gap", "converged", 1.5, 12, 0.25)


def model(k: int = 1, **changes: Any) -> Model:
    rng = np.random.default_rng(k)
    given: dict[str, Any] = {
        "coef": rng.standard_normal((k, 4)),
        "intercept": rng.standard_normal(k),
        "task": "classification",
        "loss": "hinge",
        "loss_parameters": {"margin": 1.0},
        "bias": "augmented",
        "rho": 2.0,
        "classes": (-1, 1) if k == 1 else tuple(range(k)),
        "C": 1.0 / 3.0,
        "n_samples": 6,
        "proofs": tuple(proof(0.1 * j) for j in range(k)),
        "solver": "dcd",
        "options": {"shrinking": True, "pg_tol": 0.0},
        "seed": 7,
        "threads": 2,
        "fingerprint": "ab" * 32,
        "dual": sp.random_array((k, 6), density=0.5, rng=rng, format="csr"),
        "zero_based": False,
        "feature_names": ("a", "b", "ä", "d e"),
        "rows_in_order": "cd" * 32,
        "rows_in_any_order": "ef" * 32,
    }
    made = {**given, **changes}
    if made["dual"] is not None:
        made.setdefault("dual_hashes", rng.integers(0, 2**64, made["dual"].nnz, dtype=np.uint64))
    return Model(**made)


def assert_same(one: Model, other: Model) -> None:
    for item in fields(Model):
        left, right = getattr(one, item.name), getattr(other, item.name)
        if item.name == "dual" and left is not None:
            assert left.shape == right.shape
            assert (left != right).nnz == 0
        else:
            assert np.array_equal(left, right) if isinstance(left, np.ndarray) else left == right, item.name


@pytest.mark.parametrize(
    "original",
    [
        model(),
        model(k=3),
        model(dual=None, fingerprint=None, feature_names=None, zero_based=None),
        model(dual_hashes=None, rows_in_order=None, rows_in_any_order=None),
        model(classes=(None, 3), dual=sp.csr_array((1, 6))),
        model(task="regression", loss="huber", loss_parameters={"threshold": 0.1}, classes=None),
        model(proofs=(proof(np.inf),)),
        model(coef=np.array([[5e-324, -0.0, 1.7e308, 0.1]])),
        model(proofs=()),
        model(
            k=3,
            classes=("ant", "bee", "cow"),
            class_weight=(1.0, 0.5, 2.0),
            data_name="rows.svm",
            trained="2026-11-18T01:02:03Z",
            auto_reason="few rows",
        ),
    ],
    ids=[
        "binary",
        "one-vs-rest",
        "bare",
        "earlier",
        "one against the rest",
        "regression",
        "infinite gap",
        "extreme weights",
        "no certificate",
        "words",
    ],
)
def test_what_goes_in_comes_out(tmp_path: Path, original: Model) -> None:
    save_model(tmp_path / "m", original)
    loaded = load_model(tmp_path / "m")
    assert_same(original, loaded)
    assert np.array_equal(np.signbit(original.coef), np.signbit(loaded.coef))
    assert all(found.form == "J" for found in loaded.certificates)
    save_model(tmp_path / "again", loaded)
    assert (tmp_path / "m").read_bytes() == (tmp_path / "again").read_bytes()


@pytest.mark.parametrize("k", [1, 3])
def test_sparse_coefficients_are_fewer_bytes_and_the_same_model(tmp_path: Path, k: int) -> None:
    coef = np.zeros((k, 5000))
    coef[:, 7::900] = np.random.default_rng(k).standard_normal((k, 6))
    original = model(k, coef=coef, feature_names=None)
    for name, sparse in (("dense", False), ("sparse", True)):
        original.save(tmp_path / name, sparse=sparse)
    found = load_model(tmp_path / "sparse")
    assert found.coef.tobytes() == coef.tobytes()
    X = np.random.default_rng(1).standard_normal((9, 5000))
    assert np.array_equal(found.decision_function(X), load_model(tmp_path / "dense").decision_function(X))
    with zipfile.ZipFile(tmp_path / "sparse") as archive:
        assert "coef.npy" not in archive.namelist()
        assert sum(member.file_size for member in archive.infolist() if "coef" in member.filename) < 2000


@pytest.mark.parametrize(
    ("changes", "complaint"),
    [
        ({"coef_starts": [0, 5]}, "coef_starts are no offsets"),
        ({"coef_starts": [1, 2]}, "coef_starts are no offsets"),
        ({"coef_columns": [0, 4]}, "coef_columns names columns beyond the 4"),
        ({"coef_columns": [0, -1]}, "coef_columns names columns beyond the 4"),
        ({"coef_columns": [0]}, "have shapes"),
        ({"coef_starts": [0]}, "have shapes"),
        ({"coef_values": [np.nan, 1.0]}, "not finite"),
        ({"coef": [[0.0, 0.0, 0.0, 0.0]]}, "of its arrays it has only"),
        ({"n_features": 2**40}, "it would unpack to"),
    ],
)
def test_sparse_coefficients_that_are_none_are_refused(
    tmp_path: Path, changes: dict[str, Any], complaint: str
) -> None:
    save_model(tmp_path / "m", model(1, coef=np.array([[0.5, 0.0, 0.0, -1.0]])), sparse=True)
    header, arrays = read_archive(tmp_path / "m", "dualgap model", VERSION, lambda header, layouts: None)
    for name, value in changes.items():
        if name == "n_features":
            header[name] = value
        else:
            arrays[name] = np.array(value, dtype="<f8" if name in ("coef", "coef_values") else "<i8")
    write_archive(tmp_path / "m", header, arrays)
    with pytest.raises(InputError, match=complaint):
        load_model(tmp_path / "m")


@pytest.mark.parametrize("sizes", [(1, 1), (900, 300), (100_000, 100_000)])
def test_a_model_of_any_size_can_be_thrown_away(sizes: tuple[int, int]) -> None:
    weights, duals = (np.random.default_rng(0).standard_normal((1, size)) for size in sizes)
    dual = sp.csr_array(duals)
    save_model("/dev/null", model(coef=weights, feature_names=None, dual=dual, n_samples=sizes[1]))


def test_there_is_no_pickle_in_it(tmp_path: Path) -> None:
    save_model(tmp_path / "m", model())
    with zipfile.ZipFile(tmp_path / "m") as archive:
        for name in archive.namelist():
            content = archive.read(name)
            if name == "header.json":
                json.loads(content)
            else:
                np.load(io.BytesIO(content), allow_pickle=False)


def test_an_array_that_is_a_pickle_is_refused(tmp_path: Path) -> None:
    class Trap:
        def __reduce__(self) -> Any:
            return (Path.touch, (tmp_path / "sprung",))

    save_model(tmp_path / "m", model())
    buffer = io.BytesIO()
    np.save(buffer, np.array([Trap()], dtype=object), allow_pickle=True)
    rewrite(tmp_path / "m", {"coef.npy": buffer.getvalue()})
    with pytest.raises(InputError, match="damaged"):
        load_model(tmp_path / "m")
    rewrite(tmp_path / "m", {"coef.npy": pickle.dumps(Trap())})
    with pytest.raises(InputError, match="damaged"):
        load_model(tmp_path / "m")
    assert not (tmp_path / "sprung").exists()


def rewrite(file: Path, members: dict[str, bytes]) -> None:
    """Replace members of an archive, leaving a perfectly valid zip file."""
    with zipfile.ZipFile(file) as archive:
        content = {name: archive.read(name) for name in archive.namelist()} | members
    with zipfile.ZipFile(file, "w") as archive:
        for name, data in content.items():
            archive.writestr(name, data)


def change_header(file: Path, **changes: Any) -> None:
    with zipfile.ZipFile(file) as archive:
        header = json.loads(archive.read("header.json"))
    rewrite(file, {"header.json": json.dumps({**header, **changes}).encode()})


@pytest.mark.parametrize(
    ("changes", "complaint"),
    [
        ({"C": 2.0}, "checksum"),
        ({"checksum": None}, "checksum"),
        ({"version": 4, "dualgap": "9.0"}, r"newer dualgap \(9.0\) in format version 4.*upgrade"),
        ({"version": "1"}, "not a dualgap model"),
        ({"format": "something else"}, "not a dualgap model"),
    ],
)
def test_a_changed_header_is_noticed(tmp_path: Path, changes: dict[str, Any], complaint: str) -> None:
    file = tmp_path / "m"
    save_model(file, model())
    change_header(file, **changes)
    with pytest.raises(InputError, match=complaint) as caught:
        load_model(file)
    assert str(caught.value).startswith(f"{file}: ")


def test_a_changed_weight_is_noticed(tmp_path: Path) -> None:
    file = tmp_path / "m"
    save_model(file, model())
    buffer = io.BytesIO()
    np.save(buffer, model().coef * (1 + 1e-15))
    rewrite(file, {"coef.npy": buffer.getvalue()})
    with pytest.raises(InputError, match="checksum"):
        load_model(file)


@pytest.mark.parametrize(
    "wrong",
    [
        model(coef=np.zeros((2, 4))),
        model(coef=np.full((1, 4), np.nan)),
        model(intercept=np.zeros(2)),
        model(classes=None),
        model(classes=(1, 2, 3)),
        model(dual_hashes=np.zeros(2, dtype=np.uint64)),
        model(n_samples=-6, dual=None),
        model(loss_parameters={"margin": "wide"}),
        model(bias=None),
        model(dual=sp.csr_array(np.ones((1, 7)))),
        model(k=3, proofs=(proof(),)),
        model(k=3, classes=(1, 2, 2)),
        model(k=3, class_weight=(1.0, 2.0)),
    ],
)
def test_parts_that_do_not_fit_together_are_refused(tmp_path: Path, wrong: Model) -> None:
    save_model(tmp_path / "m", wrong)
    with pytest.raises(InputError, match="not a valid dualgap model"):
        load_model(tmp_path / "m")


def test_a_damaged_file_is_refused_or_read_right_but_never_breaks(tmp_path: Path) -> None:
    rng = np.random.default_rng(0)
    original = model(k=2)
    file = tmp_path / "m"
    save_model(file, original)
    good = file.read_bytes()
    cuts = [good[:length] for length in range(0, len(good), 97)]
    flips = []
    for _ in range(400):
        bad = bytearray(good)
        bad[rng.integers(len(bad))] ^= 1 << rng.integers(8)
        flips.append(bytes(bad))
    messages = []
    for content in cuts + flips:
        file.write_bytes(content)
        try:
            loaded = load_model(file)
        except InputError as error:
            messages.append(str(error))
        else:  # a flip in a time stamp or the like
            assert_same(original, loaded)
    assert len(messages) > 300
    assert all(message.startswith(f"{file}: ") and "\n" not in message for message in messages)
    for content in cuts:
        file.write_bytes(content)
        with pytest.raises(InputError):
            load_model(file)


@pytest.mark.parametrize("content", [b"", b"1 1:0.5\n", b"PK\x03\x04", b"\x80\x04K\x01."])
def test_other_files_are_no_models(tmp_path: Path, content: bytes) -> None:
    (tmp_path / "m").write_bytes(content)
    with pytest.raises(InputError, match=r"not a dualgap model|damaged"):
        load_model(tmp_path / "m")
    with pytest.raises(InputError, match="no such file"):
        load_model(tmp_path / "nowhere")
    with pytest.raises(InputError, match="is a folder"):
        load_model(tmp_path)


def test_scores_and_labels() -> None:
    X = np.array([[1.0, 0, 0, 0], [0, 1.0, 0, 0]])
    two = model(coef=np.array([[1.0, -3.0, 0, 0]]), intercept=np.array([-1.0]), classes=(None, 3))
    assert two.decision_function(sp.csr_array(X)).tolist() == [0.0, -4.0]
    assert two.decision_function(X).tolist() == [0.0, -4.0]
    assert two.labels(np.array([0.0, 1e-300, -1.0])) == [None, 3, None]
    three = model(k=3, coef=np.eye(4)[:3], intercept=np.array([0, 0, 0.5]), classes=("a", "b", "c"))
    assert three.labels(three.decision_function(X)) == ["a", "b"]
    with pytest.raises(InputError, match="regression"):
        model(task="regression", classes=None).labels(np.zeros(1))


def test_a_failed_write_leaves_the_old_file_and_no_other(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    file = tmp_path / "m"
    save_model(file, model())
    before = file.read_bytes()

    def full(handle: int) -> None:
        raise OSError(28, "No space left on device")

    monkeypatch.setattr(os, "fsync", full)
    with pytest.raises(InputError, match="No space left"):
        save_model(file, model(k=2))
    assert [path.name for path in tmp_path.iterdir()] == ["m"]
    assert file.read_bytes() == before

    def interrupt(handle: int) -> None:
        raise KeyboardInterrupt

    monkeypatch.setattr(os, "fsync", interrupt)
    with pytest.raises(KeyboardInterrupt):
        save_model(file, model(k=2))
    assert [path.name for path in tmp_path.iterdir()] == ["m"]
    assert file.read_bytes() == before


def test_links_stay_and_devices_are_not_replaced(tmp_path: Path) -> None:
    (tmp_path / "real").mkdir()
    (tmp_path / "link").symlink_to(tmp_path / "real" / "m")
    save_model(tmp_path / "link", model())
    assert (tmp_path / "link").is_symlink()
    assert_same(model(), load_model(tmp_path / "real" / "m"))
    os.mkfifo(tmp_path / "pipe")
    reader = os.open(tmp_path / "pipe", os.O_RDONLY | os.O_NONBLOCK)
    with replacing(tmp_path / "pipe") as stream:
        stream.write(b"through")
    assert os.read(reader, 100) == b"through"
    os.close(reader)
    assert (tmp_path / "pipe").is_fifo()


def test_a_file_gets_the_usual_permissions(tmp_path: Path) -> None:
    (tmp_path / "usual").write_bytes(b"")
    save_model(tmp_path / "m", model())
    assert (tmp_path / "m").stat().st_mode == (tmp_path / "usual").stat().st_mode


def test_a_place_that_cannot_be_written_to_is_known_beforehand(tmp_path: Path) -> None:
    assert check_destination(tmp_path / "new") == tmp_path / "new"
    with pytest.raises(InputError, match=r"the folder .*nowhere does not exist"):
        check_destination(tmp_path / "nowhere" / "m")
    with pytest.raises(InputError, match="is a folder"):
        check_destination(tmp_path)
    (tmp_path / "file").write_text("")
    with pytest.raises(InputError, match="does not exist"):
        check_destination(tmp_path / "file" / "m")


X = np.array([[0.5, 0.0, 2.0], [0.0, 0.0, 0.0], [1.0, -1.0, 0.25]])
Y = np.array([1.0, -1.0, 1.0])


def test_the_fingerprint_knows_rows_and_not_their_storage() -> None:
    expected = fingerprint(X, Y)
    assert expected == fingerprint(sp.csr_matrix(X), Y)
    assert expected == fingerprint(sp.csr_array(X).astype(np.float32), Y.astype(int), np.ones(3))
    unsorted = sp.csr_array(
        (np.array([2.0, 0.5, 0.0, 0.25, -1.0, 1.0]), [2, 0, 1, 2, 1, 0], [0, 2, 3, 6]), shape=(3, 9)
    )
    assert expected == fingerprint(unsorted, Y)
    assert unsorted.nnz == 6, "the caller's matrix must stay as it is"
    assert expected == fingerprint(X, [1.0, -1.0, 1.0])


@pytest.mark.parametrize(
    "changed",
    [
        (X[[1, 0, 2]], Y[[1, 0, 2]]),
        (X, -Y),
        (np.nextafter(X, 3), Y),
        (X[:, [1, 0, 2]], Y),
        (X, Y, np.array([1.0, 1.0, 2.0])),
        (X[:2], Y[:2]),
        (X.reshape(1, 9), Y[:1]),
    ],
)
def test_the_fingerprint_notices(changed: Any) -> None:
    assert fingerprint(*changed) != fingerprint(X, Y)


def test_the_fingerprint_is_the_same_for_float32_only_where_that_is_exact() -> None:
    exact, rounded = np.array([[0.5, 3.0]]), np.array([[0.1, 3.0]])
    assert fingerprint(exact.astype(np.float32), [1.0]) == fingerprint(exact, [1.0])
    assert fingerprint(rounded.astype(np.float32), [1.0]) != fingerprint(rounded, [1.0])


def test_the_fingerprint_does_not_depend_on_the_size_of_blocks(monkeypatch: pytest.MonkeyPatch) -> None:
    rows = sp.random_array((100, 20), density=0.2, rng=np.random.default_rng(0), format="csr")
    whole = fingerprint(rows, np.ones(100))
    monkeypatch.setattr("dualgap.data.fingerprint._ROWS", 7)
    assert fingerprint(rows, np.ones(100)) == whole


def test_a_model_is_frozen() -> None:
    with pytest.raises(AttributeError):
        model().C = 2.0  # type: ignore[misc]
    assert replace(model(), C=2.0).C == 2.0


@pytest.mark.parametrize("share", [0.0, 0.4])
def test_dense_rows_have_the_fingerprint_and_hashes_of_sparse_ones(
    share: float, monkeypatch: pytest.MonkeyPatch
) -> None:
    rng = np.random.default_rng(1)
    X = rng.normal(size=(50, 7)).astype(np.float16)
    X[rng.random(X.shape) < share] = 0.0
    y, sparse = rng.integers(0, 3, 50), sp.csr_array(X.astype(np.float64))
    for entries in (7, 64, 1 << 16):
        monkeypatch.setattr("dualgap.data.fingerprint._ENTRIES", entries)
        assert fingerprint(X, y) == fingerprint(sparse, y)
        assert row_hashes(X, y).tolist() == row_hashes(sparse, y).tolist()


def test_hashes_know_rows_and_not_their_storage() -> None:
    expected = row_hashes(X, Y)
    assert np.unique(expected).size == 3
    unsorted = sp.csr_array((np.array([2.0, 1.0, 0.0]), np.array([2, 0, 1]), np.array([0, 3])), shape=(1, 3))
    plain = sp.csr_array(np.array([[1.0, 0.0, 2.0]]))
    assert row_hashes(unsorted, [1]).tolist() == row_hashes(plain, [1.0], [1.0]).tolist()
    assert (
        row_hashes(sp.csr_array(X).astype(np.float32), Y.astype(int), np.ones(3)).tolist()
        == expected.tolist()
    )
    for other in (row_hashes(X + 1e-9, Y), row_hashes(X, -Y), row_hashes(X, Y, 2 * np.ones(3))):
        assert not np.isin(other, expected).any()


def test_hashes_in_any_order() -> None:
    hashes = np.array([7, 3, 7, 2**63, 3], dtype=np.uint64)
    turned = hashes[::-1]
    assert hashes_in_any_order(turned) == hashes_in_any_order(hashes)
    assert hashes_in_order(turned) != hashes_in_order(hashes)
    assert hashes_in_any_order(np.array([7, 3, 3, 2**63, 3], dtype=np.uint64)) != hashes_in_any_order(hashes)


@given(st.lists(st.integers(0, 5), min_size=1, max_size=30), st.data())
def test_values_go_where_rows_of_their_hash_are(words: list[int], data: Any) -> None:
    hashes = np.array(words, dtype=np.uint64)
    order = np.array(data.draw(st.permutations(range(hashes.size))))
    chosen = np.flatnonzero(data.draw(st.lists(st.booleans(), min_size=hashes.size, max_size=hashes.size)))
    values = 1.0 + np.arange(chosen.size)
    found = values_by_hash(hashes[order], hashes[chosen], values)
    assert found is not None
    moved = sorted(zip(hashes[order][found != 0].tolist(), found[found != 0].tolist(), strict=True))
    assert moved == sorted(zip(hashes[chosen].tolist(), values.tolist(), strict=True))
    too_many = np.repeat(hashes[:1], words.count(words[0]) + 1)
    assert values_by_hash(hashes[order], too_many, np.ones(too_many.size)) is None
    assert values_by_hash(hashes[order], np.array([6], dtype=np.uint64), np.ones(1)) is None


@pytest.mark.parametrize(
    ("name", "array"),
    [
        ("dual_starts", [0, 0, -1, 0]),
        ("dual_starts", [0, 2, 1, 3]),
        ("dual_starts", [1, 1, 2, 3]),
        ("dual_starts", [0, 1, 2, 2]),
        ("dual_rows", [0, 1, 6]),
        ("dual_rows", [-1, 1, 2]),
        ("dual_rows", [1, 1, 2]),
        ("dual_rows", [1, 0, 2]),
        ("dual_values", [0.5, np.nan, 0.5]),
    ],
)
def test_duals_that_are_no_matrix_are_refused(tmp_path: Path, name: str, array: list[Any]) -> None:
    dual = sp.csr_array(([0.5, 0.5, 0.5], [0, 1, 2], [0, 2, 3, 3]), shape=(3, 6))
    save_model(tmp_path / "m", model(k=3, dual=dual, dual_hashes=None))
    header, arrays = read_archive(tmp_path / "m", "dualgap model", VERSION)
    write_archive(tmp_path / "m", header, {**arrays, name: np.array(array, arrays[name].dtype)})
    with pytest.raises(InputError, match="not a valid dualgap model"):
        load_model(tmp_path / "m")


def test_duals_in_any_order_keep_their_hashes(tmp_path: Path) -> None:
    dual = sp.csr_array(([0.1, 0.2, 0.3], [4, 1, 2], [0, 3]), shape=(1, 6))
    save_model(tmp_path / "m", model(dual=dual, dual_hashes=np.array([40, 10, 20], dtype=np.uint64)))
    loaded = load_model(tmp_path / "m")
    assert loaded.dual.toarray().tolist() == dual.toarray().tolist()
    assert dict(zip(loaded.dual.indices.tolist(), loaded.dual_hashes.tolist(), strict=True)) == {
        4: 40,
        1: 10,
        2: 20,
    }
