"""Files that are no data, given as data: the error says what they seem to be."""

from __future__ import annotations

import pickle
import zipfile
from pathlib import Path
from typing import Any

import numpy as np
import pytest

import dualgap
from dualgap.files import Model, read_data
from dualgap.runtime.errors import InputError


@pytest.fixture(scope="module")
def folder(tmp_path_factory: Any) -> Path:
    place: Path = tmp_path_factory.mktemp("foreign")
    X = np.random.default_rng(0).normal(size=(20, 2))
    dualgap.fit(X, X[:, 0] > 0, checkpoint=place / "run").model.save(place / "model")
    np.savez(place / "npz", X=X)
    (place / "npz.npz").rename(place / "npz")
    with zipfile.ZipFile(place / "zip", "w") as archive:
        archive.writestr("a.txt", "a")
    (place / "pickle").write_bytes(pickle.dumps([1, 2]))
    (place / "png").write_bytes(b"\x89PNG\r\n\x1a\n" + bytes(100))
    (place / "jpeg").write_bytes(b"\xff\xd8\xff\xe0" + bytes(100))
    (place / "pdf").write_bytes(b"%PDF-1.7\n")
    (place / "zeros").write_bytes(bytes(100))
    return place


@pytest.mark.parametrize(
    ("name", "kind"),
    [
        ("model", "a dualgap model"),
        ("run", "a checkpoint \\(a saved run: `dualgap train --resume` goes on with it\\)"),
        ("npz", "a file of NumPy arrays \\(.npz\\)"),
        ("zip", "a zip archive"),
        ("pickle", "a Python pickle, which dualgap never reads"),
        ("png", "a picture \\(PNG\\)"),
        ("jpeg", "a picture \\(JPEG\\)"),
        ("pdf", "a PDF document"),
    ],
)
def test_what_a_file_seems_to_be(folder: Path, name: str, kind: str) -> None:
    for read in (read_data, dualgap.fit, dualgap.one_vs_rest):
        with pytest.raises(InputError, match=f"{name}: this is {kind}, and not svmlight text"):
            read(folder / name)  # type: ignore[operator]
    if name in ("run", "npz", "zip"):
        with pytest.raises(InputError, match=f"{name}: this is {kind}, and not a dualgap model"):
            Model.load(folder / name)


def test_bytes_of_0(folder: Path) -> None:
    with pytest.raises(InputError, match="these are binary data"):
        read_data(folder / "zeros")


def test_a_model_where_a_run_belongs(folder: Path) -> None:
    for name, kind in (("model", "this is a dualgap model"), ("npz", "it may be of another version")):
        with pytest.raises(InputError, match=f"{name}: not a saved run.*{kind}"):
            dualgap.load_state(folder / name)
