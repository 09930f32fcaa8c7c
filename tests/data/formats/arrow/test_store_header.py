"""Headers of stores that say anything at all: refused in one line, or taken as they are."""

from __future__ import annotations

import json
from copy import deepcopy
from pathlib import Path
from types import SimpleNamespace
from typing import Any

import numpy as np
import pyarrow as pa
import scipy.sparse as sp
from hypothesis import given, settings
from hypothesis import strategies as st

from dualgap.data.formats.arrow.header import KEY, header_of, seal
from dualgap.data.formats.arrow.writing import Options, write_blocks
from dualgap.files import Table
from dualgap.runtime.errors import InputError

ODD = [
    None,
    True,
    False,
    0,
    1,
    -1,
    2**48,
    2**53 + 1,
    2**63,
    10**400,
    0.5,
    float("nan"),
    float("inf"),
    "",
    "x",
]
ODD += ["\ud800", [], [1], [[1, 2]], [[1.0, 2.5]], [[1, 6], [2, 6]], ["a", "b"], {}, {"a": 1}, {"a": None}]


def test_any_value_in_any_field(tmp_path: Path) -> None:
    X = sp.csr_array(np.eye(12, 5))
    table = Table(tmp_path, X, np.arange(12) % 2.0, label_names=("ham", "spam"))
    write_blocks(tmp_path / "a.arrow", [table], Options(batch=100), n_features=5)
    with pa.ipc.open_file(str(tmp_path / "a.arrow")) as reader:
        header = json.loads(reader.schema.metadata[KEY])
    del header["checksum"]
    fields = [(name,) for name in header]
    fields += [
        (name, k) for name, value in header.items() if isinstance(value, list) for k in range(len(value))
    ]
    became = {"refused": 0, "taken": 0}

    @settings(max_examples=400, deadline=None, database=None, derandomize=True)
    @given(st.sampled_from(fields), st.sampled_from(ODD), st.sampled_from(["set", "set", "drop"]))
    def attempt(path: tuple[Any, ...], value: Any, way: str) -> None:
        told = deepcopy(header)
        place: Any = told[path[0]] if len(path) > 1 else told
        if way == "drop":
            del place[path[-1]]
        else:
            place[path[-1]] = value
        text = json.dumps({**told, "checksum": seal(told)}).encode()
        try:
            found = header_of(tmp_path, SimpleNamespace(metadata={KEY: text}))
        except InputError as error:
            became["refused"] += 1 + ("\n" in str(error)) * 1000
            return
        became["taken"] += 1
        again = json.loads(found.to_json())
        assert {name: again[name] for name in told} == told or value != value  # NaN is not itself

    attempt()
    assert 100 < became["refused"] < 1000
    assert became["taken"] > 5
