"""Rows: what comes in, what is refused, what is copied, and the arithmetic of a row against NumPy."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import numpy as np
import pytest
import scipy.sparse as sp

import dualgap
from dualgap.data.rows import (
    CSR,
    Dense,
    WideCSR,
    as_rows,
    entry_count,
    row_count,
    slice_rows,
    squares,
    validation,
)
from dualgap.data.rows.common import BROKEN, UNORDERED
from dualgap.runtime.errors import InputError
from dualgap.runtime.jit import kernel


def sample(dtype: Any = np.float64) -> np.ndarray:
    """Nine rows of eleven columns, with an empty row, an empty column, and rows longer than four entries."""
    rng = np.random.default_rng(0)
    matrix = np.round(rng.normal(size=(9, 11)) * 8) * (rng.random((9, 11)) < 0.6)
    matrix[4] = 0.0
    matrix[:, 7] = 0.0
    return (matrix if np.dtype(dtype).kind == "f" else np.abs(matrix)).astype(dtype)


def dense_again(rows: CSR | Dense, width: int) -> np.ndarray:
    """Back to a matrix, from the arrays that kernels read."""
    if isinstance(rows, Dense):
        return rows.matrix
    n = row_count(rows)
    return sp.csr_matrix(
        (rows.values, rows.columns.astype(np.int64), rows.starts), shape=(n, width)
    ).toarray()


@kernel
def compiled_methods(rows: Any, i: int, scale: float, w: Any, moved: Any) -> Any:
    rows.prefetch_rows(i, i)
    rows.prefetch_weights(i, w)
    rows.add(i, scale, moved)
    return rows.dot(i, w), rows.count(i)


@pytest.mark.slow
@pytest.mark.parametrize("dtype", [np.float32, np.float64])
@pytest.mark.parametrize("form", [np.asarray, sp.csr_matrix], ids=["dense", "csr"])
def test_row_arithmetic(form: Any, dtype: Any) -> None:
    matrix = (sample() / 7.0).astype(dtype)
    rows, width, lengths = as_rows(form(matrix))
    rng = np.random.default_rng(1)
    w, start = rng.normal(size=width), rng.normal(size=width)
    for i, row in enumerate(matrix.astype(np.float64)):
        plain, jitted = start.copy(), start.copy()
        rows.add(i, 0.3, plain)
        dot, count = compiled_methods(rows, i, 0.3, w, jitted)
        size = np.abs(row) @ np.abs(w)
        for found in (dot, rows.dot(i, w)):
            assert found == pytest.approx(row @ w, abs=1e-15 * size)
        assert count == rows.count(i) == (np.count_nonzero(row) if isinstance(rows, CSR) else width)
        # float32 values must not drag the product down to float32, compiled or not
        assert np.array_equal(plain, start + 0.3 * row)
        assert np.array_equal(jitted, start + 0.3 * row)
    assert lengths == pytest.approx((matrix.astype(np.float64) ** 2).sum(axis=1), rel=1e-15)
    alone = [as_rows(form(matrix[i : i + 1])).squares[0] for i in range(matrix.shape[0])]
    assert np.array_equal(lengths, alone)  # the same bits for a row alone
    assert np.array_equal(squares(rows, 5), lengths[:5])


def uneven(dtype: Any = np.float64) -> sp.csr_matrix:
    """Rows of 0 to 210 entries, some shorter and some longer than what is fetched ahead."""
    rng = np.random.default_rng(3)
    matrix = rng.normal(size=(43, 260)).astype(dtype)
    for i, row in enumerate(matrix):
        row[rng.permutation(260)[5 * i :]] = 0.0
    return sp.csr_matrix(matrix)


@pytest.mark.slow
@pytest.mark.parametrize("dtype", [np.float32, np.float64])
def test_wide_rows_add_up_in_the_same_order(dtype: Any) -> None:
    narrow = as_rows(uneven(dtype)).rows
    assert type(narrow) is CSR
    wide, w = WideCSR(*narrow), np.random.default_rng(4).normal(size=260)
    for i in range(row_count(narrow)):
        moves = np.ones((2, 260))
        found = [
            compiled_methods(rows, i, 0.3, w, move) for rows, move in zip((narrow, wide), moves, strict=True)
        ]
        assert found[0] == found[1]
        assert np.array_equal(moves[0], moves[1])


def test_very_many_columns_make_wide_rows_and_the_same_model() -> None:
    X = uneven()
    y = np.where(np.arange(43) % 3 == 0, 1.0, -1.0)
    far = X.copy()
    far.indices = far.indices * 2000
    far.resize(43, 2000 * 260)
    rows = as_rows(far).rows
    assert type(rows) is type(slice_rows(rows, 1, 9)) is WideCSR
    options = {"C": 1.0, "tol": 0, "solver": "dcd", "max_epochs": 20, "record_every": 100}
    near, spread = (dualgap.fit(matrix, y, **options) for matrix in (X, far))
    assert spread.certificate.relative_gap < 1e-3
    assert np.array_equal(near.coef, spread.coef[::2000])
    assert np.array_equal(near.dual, spread.dual)


@pytest.mark.parametrize(
    ("columns", "starts", "fault", "row"),
    [
        ([0, 2, 1, 3], [0, 2, 4], 0, -1),
        ([0, 2, 3, 1], [0, 2, 4], UNORDERED, -1),  # within a row
        ([0, 2, 1, 1], [0, 2, 4], UNORDERED, -1),  # twice
        ([3, 2, 1, 0], [0, 1, 2, 3, 4], 0, -1),  # only from row to row
        ([3, 0, 1], [0, 1, 1, 1, 3], 0, -1),  # past empty rows
        ([3, 1, 0], [0, 1, 1, 1, 3], UNORDERED, -1),
        ([0, 1, 0, 1], [0, 0, 2, 4, 4], 0, -1),
        ([0, 4], [0, 2], BROKEN, 0),  # there are 4
        ([0, 3, 9], [0, 1, 1, 3], BROKEN, 2),
        ([], [0, 0, 0], 0, -1),
        ([0, 1, 2], [0, 2, 1, 3], BROKEN, 1),  # offsets out of order
        ([0, 1, 2], [-1, 1, 2, 3], BROKEN, 0),
        ([0, 1, 2], [0, 1, 2, 4], BROKEN, 2),  # beyond the last entry
        ([0, 7, 2], [0, 2, 1, 3], BROKEN, 0),  # of two broken rows the first
    ],
)
@pytest.mark.parametrize("stretch", [1, 2, 50_000])
def test_faults_of_columns_are_found(
    columns: Any, starts: Any, fault: int, row: int, stretch: int, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(validation, "_STRETCH", stretch)
    rows = CSR(np.ones(len(columns)), np.array(columns, dtype=np.uint32), np.array(starts, dtype=np.int64))
    assert validation._fault_of_columns(rows, 4, 0, len(starts) - 1) == (fault, row)


def test_faults_of_columns_are_found_in_parts() -> None:
    rng = np.random.default_rng(5)
    for _ in range(200):
        sizes = rng.integers(0, 4, size=9)
        columns = np.concatenate([np.sort(rng.permutation(6)[:k]) for k in sizes] or [[]]).astype(np.uint32)
        starts = np.concatenate([[0], np.cumsum(sizes)])
        bad = None
        if columns.size and rng.random() < 0.5:
            place = int(rng.integers(columns.size))
            columns[place], bad = 9, int(np.searchsorted(starts, place, side="right")) - 1
        rows = CSR(np.ones(columns.size), columns, starts)
        for first, last in ((0, 9), (2, 7), (4, 5)):
            inside = bad is not None and first <= bad < last
            expected = (BROKEN, bad) if inside else (0, -1)
            assert validation._fault_of_columns(rows, 6, first, last) == expected


@pytest.mark.parametrize("dtype", [np.float32, np.float64])
def test_dense_arrays_that_fit_are_not_copied(dtype: Any) -> None:
    matrix = sample(dtype)
    rows, _, _ = as_rows(matrix)
    assert isinstance(rows, Dense)
    assert np.shares_memory(rows.matrix, matrix)
    assert rows.matrix.dtype == dtype
    assert not rows.matrix.flags.writeable
    assert matrix.flags.writeable


@pytest.mark.parametrize("dtype", [np.float32, np.float64])
@pytest.mark.parametrize("index", [np.int32, np.int64])
@pytest.mark.parametrize("kind", [sp.csr_matrix, sp.csr_array])
def test_sparse_arrays_that_fit_are_not_copied(kind: Any, index: Any, dtype: Any) -> None:
    matrix = kind(sample(dtype))
    matrix.indices, matrix.indptr = matrix.indices.astype(index), matrix.indptr.astype(index)
    rows, width, _ = as_rows(matrix)
    assert isinstance(rows, CSR)
    assert (rows.values.dtype, rows.columns.dtype, rows.starts.dtype) == (dtype, np.uint32, np.int64)
    assert np.shares_memory(rows.values, matrix.data)
    assert np.shares_memory(rows.columns, matrix.indices) == (index is np.int32)
    assert np.shares_memory(rows.starts, matrix.indptr) == (index is np.int64)
    assert not any(part.flags.writeable for part in rows)
    assert np.array_equal(dense_again(rows, width), sample(dtype))


def test_read_only_and_mapped_arrays(tmp_path: Path) -> None:
    matrix = sample()
    matrix.flags.writeable = False
    assert np.shares_memory(as_rows(matrix)[0].matrix, matrix)  # type: ignore[union-attr]

    np.save(tmp_path / "dense.npy", matrix)
    mapped = np.load(tmp_path / "dense.npy", mmap_mode="r")
    rows, width, _ = as_rows(mapped)
    assert np.shares_memory(rows.matrix, mapped)  # type: ignore[union-attr]
    assert rows.dot(0, np.ones(width)) == matrix[0].sum()

    sparse = sp.csr_matrix(matrix)
    for name in ("data", "indices", "indptr"):
        np.save(tmp_path / f"{name}.npy", getattr(sparse, name))
        setattr(sparse, name, np.load(tmp_path / f"{name}.npy", mmap_mode="r"))
    rows, width, _ = as_rows(sparse)
    assert np.shares_memory(rows.values, sparse.data)  # type: ignore[union-attr]
    assert np.array_equal(dense_again(rows, width), matrix)
    # the same compiled kernels serve them: no array type of their own
    assert {type(part) for part in rows} == {np.ndarray}


def unaligned(matrix: np.ndarray) -> np.ndarray:
    raw = np.zeros(matrix.nbytes + 1, dtype=np.uint8)
    found = raw[1:].view(matrix.dtype).reshape(matrix.shape)
    found[...] = matrix
    return found


@pytest.mark.parametrize(
    "change",
    [
        np.asfortranarray,
        lambda m: m.astype(">f8"),
        lambda m: m.astype(">f4"),
        unaligned,
        lambda m: np.repeat(m, 2, axis=1)[:, ::2],
        lambda m: np.repeat(m, 2, axis=0)[::-2][::-1],
        lambda m: m.astype(np.longdouble),
        lambda m: m.tolist(),
    ],
    ids=[
        "fortran",
        "big-endian",
        "big-endian-float32",
        "unaligned",
        "strided",
        "reversed",
        "long",
        "lists",
    ],
)
def test_arrays_that_do_not_fit_are_brought_into_form(change: Any) -> None:
    rows, width, _ = as_rows(change(sample()))
    assert isinstance(rows, Dense)
    assert rows.matrix.flags.c_contiguous
    assert rows.matrix.flags.aligned
    assert rows.matrix.dtype.isnative
    assert np.array_equal(rows.matrix, sample())
    assert rows.dot(1, np.ones(width)) == sample()[1].sum()


@pytest.mark.parametrize(
    ("dtype", "kept"),
    [
        (bool, np.float32),
        (np.int8, np.float32),
        (np.uint16, np.float32),
        (np.int32, np.float64),
        (np.int64, np.float64),
        (np.uint64, np.float64),
    ],
)
@pytest.mark.parametrize("form", [np.asarray, sp.csr_matrix], ids=["dense", "csr"])
def test_integers(form: Any, dtype: Any, kept: Any) -> None:
    matrix = sample(dtype)
    rows, width, _ = as_rows(form(matrix))
    found = dense_again(rows, width)
    assert found.dtype == kept
    assert np.array_equal(found, matrix)


@pytest.mark.parametrize("layout", ["coo", "csc", "csr", "bsr", "dia", "lil", "dok"])
@pytest.mark.parametrize("family", ["matrix", "array"])
def test_sparse_layouts(layout: str, family: str) -> None:
    rows, width, _ = as_rows(getattr(sp, f"{layout}_{family}")(sample()))
    assert np.array_equal(dense_again(rows, width), sample())


def test_repeated_columns_are_summed_and_the_callers_matrix_left_alone() -> None:
    data, columns, starts = (
        np.array([1.0, 2.0, 4.0, 8.0, 16.0]),
        np.array([2, 0, 2, 1, 1]),
        np.array([0, 3, 3, 5]),
    )
    matrix = sp.csr_matrix((data.copy(), columns.copy(), starts.copy()), shape=(3, 3))
    rows, width, lengths = as_rows(matrix)
    assert np.array_equal(dense_again(rows, width), [[2.0, 0.0, 5.0], [0.0, 0.0, 0.0], [0.0, 24.0, 0.0]])
    assert lengths.tolist() == [29.0, 0.0, 576.0]  # and not 21, the squares of the parts
    assert rows.count(0) == 2
    assert (matrix.data.tolist(), matrix.indices.tolist(), matrix.indptr.tolist()) == (
        data.tolist(),
        columns.tolist(),
        starts.tolist(),
    )
    side_by_side = sp.csr_matrix((np.array([1.0, 2.0]), np.array([1, 1]), np.array([0, 2])), shape=(1, 2))
    in_coordinates = sp.coo_matrix(([1.0, 2.0], ([0, 0], [1, 1])), shape=(1, 2))
    for other in (side_by_side, in_coordinates):
        assert as_rows(other).squares.tolist() == [9.0]


def test_unsorted_columns_are_taken_as_they_are() -> None:
    matrix = sp.csr_matrix((np.array([1.0, 2.0, 3.0]), np.array([2, 0, 1]), np.array([0, 3])), shape=(1, 3))
    rows, width, _ = as_rows(matrix)
    assert np.shares_memory(rows.values, matrix.data)  # type: ignore[union-attr]
    assert np.array_equal(dense_again(rows, width), [[2.0, 3.0, 1.0]])


def broken(**parts: Any) -> Any:
    matrix = sp.csr_matrix(np.arange(1.0, 13.0).reshape(3, 4))
    for name, part in parts.items():
        setattr(matrix, name, np.asarray(part))
    return matrix


@pytest.mark.parametrize(
    "matrix",
    [
        broken(indices=np.r_[np.arange(11) % 4, 4].astype(np.int32)),
        broken(indices=np.r_[np.arange(11) % 4, -1].astype(np.int32)),
        broken(indices=np.r_[np.arange(11) % 4, 4].astype(np.int64)),
        broken(indices=np.r_[np.arange(11) % 4, -1].astype(np.int64)),
        broken(indices=np.r_[np.arange(11) % 4, 2**32].astype(np.int64)),
        broken(indptr=np.array([0, 8, 4, 12])),
        broken(indptr=np.array([-4, 4, 8, 12])),
        broken(indptr=np.array([0, 4, 8, 1000])),
        broken(indptr=np.array([0, 4, 8])),
        broken(indptr=np.array([], dtype=np.int64)),
        broken(data=np.ones(5)),
        broken(indices=np.arange(5, dtype=np.int32) % 4),
    ],
    ids=[
        *("column beyond", "column -1", "column beyond 64", "column -1 64", "column 2**32"),
        *("offsets fall", "offset -4", "last offset beyond", "offsets missing", "no offsets"),
        *("values missing", "columns missing"),
    ],
)
def test_malformed_csr_is_refused(matrix: Any) -> None:
    with pytest.raises(InputError, match=r"X (names|is no)|of X is no valid"):
        as_rows(matrix)


def test_the_row_at_fault_is_named() -> None:
    with pytest.raises(InputError, match="row 2 of X"):
        as_rows(broken(indices=np.r_[np.arange(11) % 4, 4].astype(np.int32)))


def test_offsets_are_checked_before_the_columns_they_point_to() -> None:
    """Behind the columns lie zeros, which would pass as columns: an offset beyond the end must not get
    there.
    """
    columns = np.zeros(1000, dtype=np.int32)
    columns[:12] = np.arange(12) % 4
    with pytest.raises(InputError, match="row 0 of X"):
        as_rows(broken(indices=columns[:12], indptr=np.array([0, 500, 8, 12])))


def test_offsets_may_leave_entries_out() -> None:
    """A slice of larger arrays, with spare room at both ends, holds just its own entries."""
    matrix = broken(data=np.r_[np.nan, np.arange(1.0, 11.0), np.inf], indptr=np.array([1, 4, 8, 11]))
    rows, width, _ = as_rows(matrix)
    assert entry_count(rows) == 10
    assert rows.dot(0, np.ones(width)) == 1.0 + 2.0 + 3.0


@pytest.mark.parametrize(("bad", "name"), [(np.nan, "NaN"), (np.inf, "infinity"), (-np.inf, "infinity")])
@pytest.mark.parametrize("dtype", [np.float32, np.float64])
def test_bad_values_are_located(bad: float, name: str, dtype: Any) -> None:
    matrix = sample(dtype)
    matrix[5, 9] = bad
    for form in (np.asarray, np.asfortranarray, sp.csr_matrix, sp.csc_matrix, sp.coo_array):
        with pytest.raises(InputError, match=f"{name} at row 5, column 9"):
            as_rows(form(matrix))


@pytest.mark.parametrize("form", [np.asarray, sp.csr_matrix], ids=["dense", "csr"])
def test_threads_see_what_one_sees(form: Any, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(validation, "_SHARE", 100)
    rng = np.random.default_rng(2)
    matrix = rng.normal(size=(3000, 5))
    alone, shared = as_rows(form(matrix)), as_rows(form(matrix), 3)
    assert np.array_equal(alone.squares, shared.squares)
    matrix[[2900, 700], 3] = np.nan  # the first of them, whichever thread comes first
    matrix[100, 1] = 1e200
    for threads in (1, 3):
        with pytest.raises(InputError, match="NaN at row 700, column 3"):
            as_rows(form(matrix), threads)


def test_columns_out_of_order_far_inside_are_seen() -> None:
    matrix = sp.csr_matrix(np.ones((2000, 3)))
    matrix.indices[3 * 1500 : 3 * 1500 + 3] = 2, 0, 1
    rows = as_rows(matrix).rows
    assert rows.dot(1500, np.array([1.0, 10.0, 100.0])) == 111.0
    matrix.indices[3 * 1700 + 2] = 3
    with pytest.raises(InputError, match="row 1700 of X"):
        as_rows(matrix)


def test_shapes_and_types_that_are_no_matrix_of_numbers() -> None:
    for X, said in (
        (np.ones(3), r"1 dimension, shape \(3,\)"),
        (np.ones((1, 2, 3)), "3 dimensions"),
        (5.0, "0 dimensions"),
        (np.ones((2, 2), dtype=complex), "complex128"),
        (np.array([["a", "b"]]), "real numbers"),
        (np.array([[1, None]], dtype=object), "object"),
        (sp.csr_matrix(np.ones((2, 2), dtype=complex)), "complex128"),
        (sp.coo_array(np.array([1.0, 0.0])), r"shape \(2,\)"),
        (sp.csr_matrix((np.ones(1), ([0], [2**33 - 1])), shape=(1, 2**33)), "columns; at most"),
    ):
        with pytest.raises(InputError, match=said):
            as_rows(X)


@pytest.mark.filterwarnings("ignore::RuntimeWarning")  # of the overflow, without compilation
@pytest.mark.parametrize(
    ("value", "size"), [(1e101, "large"), (1e200, "large"), (1e-101, "small"), (1e-300, "small")]
)
@pytest.mark.parametrize("form", [np.asarray, sp.csr_matrix], ids=["dense", "csr"])
def test_norms_that_float64_cannot_hold_are_refused(form: Any, value: float, size: str) -> None:
    matrix = np.array([[1.0, 0.0], [0.0, 0.0], [0.0, value]])
    with pytest.raises(InputError, match=f"row 2 of X has values so {size}"):
        as_rows(form(matrix))


def test_extreme_values_within_reach_are_kept() -> None:
    matrix = np.array([[1e99, 1e-200], [1e-99, 0.0], [0.0, 0.0]])
    assert as_rows(matrix).squares == pytest.approx([1e198, 1e-198, 0.0], rel=1e-14, abs=0.0)
    tiny = np.full((1, 2), 1e-45, dtype=np.float32)  # below the normal range of float32
    assert as_rows(tiny).squares[0] == pytest.approx(2.0 * float(tiny[0, 0]) ** 2, rel=1e-15, abs=0.0)


@pytest.mark.parametrize("form", [np.asarray, sp.csr_matrix], ids=["dense", "csr"])
def test_slices_share_memory(form: Any) -> None:
    rows, width, _ = as_rows(form(sample()))
    part = slice_rows(rows, 3, 8)
    assert row_count(part) == 5
    assert entry_count(part) == (np.count_nonzero(sample()[3:8]) if isinstance(part, CSR) else 55)
    assert np.shares_memory(part[0], rows[0])
    for i in range(5):
        assert part.dot(i, np.ones(width)) == sample()[3 + i].sum()
