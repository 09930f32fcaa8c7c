"""Features made on the fly: what they are, that disk and memory agree on them, and that models apply them."""

from __future__ import annotations

from collections import Counter
from pathlib import Path
from typing import Any

import numpy as np
import pytest
import scipy.sparse as sp
from hypothesis import given, settings
from hypothesis import strategies as st
from sklearn.preprocessing import FunctionTransformer, StandardScaler

import dualgap
from dualgap.data.chunks import FromMemory
from dualgap.data.features import Expanded, Kmers, Poly2, expanded, make_expansion, sequences
from dualgap.data.sources import view
from dualgap.files import load_model, write_store, write_svmlight
from dualgap.runtime.errors import InputError
from support.commands import run


def rows(n: int = 400, d: int = 30, seed: int = 0) -> tuple[Any, Any]:
    """Labels that no linear model of the columns themselves can tell, and one of their products can."""
    rng = np.random.default_rng(seed)
    X = np.where(rng.random((n, d)) < 0.5, rng.choice([-1.0, 1.0], (n, d)), 0.0)
    X[:, :2] = rng.choice([-1.0, 1.0], (n, 2))
    return sp.csr_array(X), X[:, 0] * X[:, 1]


def narrowed(X: Any) -> Any:
    """The same without empty columns: a product of matrices looks at all of them."""
    columns, places = np.unique(X.indices, return_inverse=True)
    return sp.csr_array((X.data, places, X.indptr), shape=(X.shape[0], max(columns.size, 1)))


@given(seed=st.integers(0, 1000), n=st.integers(1, 8), d=st.integers(1, 12))
@settings(max_examples=40, deadline=None)
def test_inner_products_are_those_of_all_pairs(seed: int, n: int, d: int) -> None:
    """<phi(x), phi(z)> = <x, z> + sum over i <= j of x_i x_j z_i z_j, where no two features meet in a
    column.
    """
    X = sp.random(n, d, density=0.5, random_state=seed, format="csr")
    grown = narrowed(expanded(X, Poly2(28)))
    dense = X.toarray()
    i, j = np.triu_indices(d)
    pairs = dense[:, i] * dense[:, j]
    assert grown.nnz == X.nnz + np.count_nonzero(pairs)
    assert np.allclose((grown @ grown.T).toarray(), dense @ dense.T + pairs @ pairs.T, rtol=1e-12, atol=1e-14)


def test_features_that_meet_add_up_and_cancel_on_average() -> None:
    rng = np.random.default_rng(0)
    X = sp.csr_array(rng.normal(size=(200, 30)))
    grown = expanded(X, Poly2(8))  # 495 features in 256 columns
    assert grown.shape == (200, 256)
    assert grown.has_canonical_format or len(set(grown.indices[: grown.indptr[1]])) == grown.indptr[1]
    exact = narrowed(expanded(X, Poly2(28)))
    hashed, true = (grown @ grown.T).toarray(), (exact @ exact.T).toarray()
    off = ~np.eye(200, dtype=bool)
    assert abs((hashed - true)[off].mean()) < 0.1 * np.abs(true[off]).mean()  # signs: no bias


@given(texts=st.lists(st.text("ACGT", max_size=30), min_size=1, max_size=6), k=st.integers(1, 6))
@settings(max_examples=60, deadline=None)
def test_words_are_counted(texts: list[str], k: int) -> None:
    grown = expanded(sequences(texts), Kmers(k, 24))
    places: dict[str, int] = {}
    for row, text in enumerate(texts):
        words = Counter(text[p : p + k] for p in range(len(text) - k + 1))
        found = dict(
            zip(
                grown.indices[grown.indptr[row] : grown.indptr[row + 1]].tolist(),
                grown.data[grown.indptr[row] : grown.indptr[row + 1]].tolist(),
                strict=True,
            )
        )
        assert sorted(found.values()) == sorted(map(float, words.values()))
        for word, count in words.items():  # the same word has the same column in every row
            candidates = [column for column, value in found.items() if value == count]
            if word in places:
                assert places[word] in candidates
            elif len(candidates) == 1:
                places[word] = candidates[0]


def test_a_gap_in_the_columns_ends_a_run_of_neighbours() -> None:
    X = sp.csr_array(np.array([[1.0, 2.0, 0.0, 1.0, 2.0]]))
    assert expanded(X, Kmers(2, 20)).data.tolist() == [2.0]  # the word (1, 2), twice; never (2, 1)


@pytest.mark.parametrize("expansion", [Poly2(12), Kmers(3, 12)])
def test_a_feed_grows_as_the_whole_matrix_does(expansion: Any, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("dualgap.data.features._TARGET", 20_000)  # many parts
    X, y = rows()
    feed = Expanded(FromMemory(view(X, y), rows=100), expansion)
    assert feed.chunks > 3
    whole = expanded(X, expansion)
    spans = []
    for k in range(feed.chunks):
        chunk = feed.load(k, True)
        part = whole[chunk.span]
        assert np.array_equal(chunk.rows.values, part.data)
        assert np.array_equal(chunk.rows.columns, part.indices)
        assert np.array_equal(chunk.y, y[chunk.span])
        spans += range(chunk.span.start, chunk.span.stop)
    assert spans == list(range(X.shape[0]))


def test_products_tell_what_columns_cannot() -> None:
    X, y = rows()
    plain = dualgap.fit(X, y, max_epochs=50)
    grown = dualgap.fit(X, y, expand="poly2", hash_bits=16, max_epochs=50)
    assert grown.coef.shape == (2**16,)
    X_new, y_new = rows(seed=1)
    assert np.mean((X_new @ plain.coef > 0) == (y_new > 0)) < 0.7
    assert np.mean((expanded(X_new, grown.expansion) @ grown.coef > 0) == (y_new > 0)) > 0.9


def test_disk_and_memory_agree(tmp_path: Path) -> None:
    X, y = rows()
    write_store(tmp_path / "a.arrow", X, y, keep_order=True)
    options: dict[str, Any] = {"expand": "poly2", "hash_bits": 12, "C": 0.1, "tol": 1e-6}
    memory = dualgap.fit(X, y, **options)
    disk = dualgap.fit(
        tmp_path / "a.arrow", solver="cached-loops", in_memory=False, cache=100, lockstep=True, **options
    )
    assert not disk.problem.source.in_memory
    assert disk.certificate.primal == pytest.approx(memory.certificate.primal, rel=2e-6)
    assert disk.certificate.dual <= memory.certificate.primal
    assert memory.certificate.dual <= disk.certificate.primal


def test_a_transformer_without_a_state_will_do() -> None:
    X, y = rows()
    doubled = dualgap.fit(
        X, y, expand=FunctionTransformer(lambda rows: rows * 2.0, accept_sparse=True), C=0.25
    )
    plain = dualgap.fit(X * 2.0, y, C=0.25)
    assert np.array_equal(doubled.coef, plain.coef)
    with pytest.raises(InputError, match="must be fitted"):
        dualgap.fit(X, y, expand=StandardScaler(with_mean=False))


@pytest.mark.parametrize(
    ("spec", "bits", "complaint"),
    [
        ("poly3", None, "is not known"),
        ("poly2:3", None, "is not known"),
        ("kmer", None, "is not known"),
        ("kmer:0", None, "is not known"),
        ("kmer:x", None, "is not known"),
        ("poly2", 0, "between 1 and 30"),
        ("poly2", 31, "between 1 and 30"),
        (None, 12, "is for expand"),
        (3, None, "no transformer"),
    ],
)
def test_what_is_no_expansion(spec: Any, bits: int | None, complaint: str) -> None:
    with pytest.raises(InputError, match=complaint):
        make_expansion(spec, bits)


@pytest.mark.slow
def test_the_model_keeps_the_expansion(tmp_path: Path) -> None:
    X, y = rows()
    text, store, model = tmp_path / "a.svm", tmp_path / "a.arrow", tmp_path / "m"
    write_svmlight(text, X, y)
    write_store(store, X, y, keep_order=True)
    done = run("train", text, "-o", model, "--expand", "poly2", "--hash-bits", 14, "--C", 0.1, "--json")
    assert done.code == 0, done.err
    assert done.json["n_features"] == 2**14
    loaded = load_model(model)
    assert (loaded.expand, loaded.hash_bits, loaded.n_columns) == ("poly2", 14, 30)
    for data in (text, store):
        assert run("certify", model, data).code == 0
        answers = run("predict", model, data).out.split()
        assert np.mean(np.array(answers, dtype=float) == y) > 0.95
    assert "poly2, from 30 columns to 2^14" in run("inspect", model).out
