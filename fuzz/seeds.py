"""Valid files to begin with, small and of every kind."""

from __future__ import annotations

import bz2
import gzip
import lzma
import tempfile
from collections.abc import Callable
from dataclasses import replace
from pathlib import Path

import numpy as np
import scipy.sparse as sp

from dualgap.data.formats.arrow.writing import Options, write_blocks
from dualgap.files import Table

PACKERS: dict[bytes, tuple[Callable[[bytes], bytes], Callable[[bytes], bytes]]] = {
    b"\x1f\x8b": (gzip.decompress, lambda text: gzip.compress(text, 1, mtime=0)),
    b"BZh": (bz2.decompress, bz2.compress),
    b"\xfd7zXZ\x00": (lzma.decompress, lambda text: lzma.compress(text, preset=0)),
}
try:
    import zstandard
except ImportError:
    pass
else:
    PACKERS[b"\x28\xb5\x2f\xfd"] = (
        lambda text: zstandard.ZstdDecompressor().decompress(text, max_output_size=1_000_000),
        lambda text: zstandard.ZstdCompressor(level=1).compress(text),
    )

_TEXTS = (
    b"+1 1:0.5 3:-2e-1\n-1 2:1\n1\n-1 1:.25 2:3. 4:7\n",
    b"\xef\xbb\xbf# a heading: 1:2\r\n\r\n  1 3:3 1:1 # tail\r\n\t\n#\n-1\t2:2",
    b"2 qid:7 1:1 9:2\n1 qid:7 2:1\n0 qid: 2:3\n# qid:8\n1 qid:x\n",
    b"1 0:5 1:6 12:1e-3\n-1 7:1 3:2 5:3\n",
    b"1e0 4:1.7976931348623157e308 5:2.2250738585072014e-308 6:5e-324 7:4.9406564584124654e-324\n-1 1:1\n",
    b"-0 1:9007199254740993 2:9007199254740992.5 3:123456789012345678 4:1234567890123456789012 "
    b"5:1e22 6:1e23\n",
    b"1 1:0.000000000000000000000000000000000000001e40 2:1e0005 3:1e-00400 4:0e999 5:00001.10000\n",
    b"-1 " + b" ".join(b"%d:%d" % (k, k * k) for k in range(1, 60)) + b"\n1 1:1\n",
    b"1 20000000:1 19999999:-1.5\n-1 00000000000000000000007:1\n",
    b"\n\n1\n\n-1 3:1\x0b4:2\x0c5:3\n\n# end\n",
    b"spam 1:0.5 3:-2e-1\nham 2:1 # tail\n\n# 1 1:1\n  spam\tqid:3 1:.25 2:3. # x\r\negg\n",
    b"\xef\xbb\xbf" + "gr\u00fcn 2:1 1:3\nro\u0301t 4:1\ngr\u00fcn\n".encode() * 3,
)


def texts() -> list[bytes]:
    """Svmlight text, plain and packed."""
    packers = [pack for _, pack in PACKERS.values()]
    packed = [pack(_TEXTS[1] + b"\n" + _TEXTS[2]) for pack in packers]
    members = [pack(_TEXTS[0]) + pack(_TEXTS[3]) for pack in packers]
    return [*_TEXTS, *packed, *members]


def stores() -> list[bytes]:
    """Stores: weighted, named, packed, of both types of values, of one batch and of several."""
    rng = np.random.default_rng(0)
    X = sp.random_array((12, 7), density=0.3, rng=rng, format="csr")
    X.data = np.round(X.data, 2)
    y = np.where(rng.random(12) < 0.5, -1.0, 1.0)
    weight, names = rng.random(12), tuple(f"feature {k}" for k in range(7))
    kinds = [
        (Options(), Table(Path(), X, y)),
        (Options(value_type="float64"), Table(Path(), X, y, weight=weight)),
        (Options(compression="lz4"), Table(Path(), X, y, feature_names=names)),
        (Options(seed=None, value_type="float32", compression="zstd"), Table(Path(), X, y)),
        (Options(), Table(Path(), X, (y + 1.0) / 2.0, label_names=("ham", "spam"))),
    ]
    found = []
    with tempfile.TemporaryDirectory() as folder:
        path = Path(folder) / "seed.arrow"
        for options, data in kinds:
            for size in (100, 1_000_000):
                write_blocks(path, [data], replace(options, batch=size), n_features=7)
                found.append(path.read_bytes())
    return found
