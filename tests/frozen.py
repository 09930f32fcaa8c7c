"""Runs whose results are frozen: SHA-256 of coefficients, duals and counts, for changes that must not change
a bit.

    python tests/frozen.py record    write the hashes of all runs, on this kind of machine, to frozen.json
    python tests/frozen.py check     compare all runs with them

Bits depend on the processor (fused products, widths of vectors) and on the versions of NumPy and Numba, so
the hashes are kept by a signature of these, and a machine with another signature has nothing to compare.
"""

from __future__ import annotations

import hashlib
import json
import sys
import tempfile
import warnings
from collections.abc import Callable
from pathlib import Path
from typing import Any

import llvmlite.binding
import numba
import numpy as np
import scipy
import scipy.sparse as sp

import dualgap
from dualgap.core.losses import JOINT, LOSSES, NAMES, every_loss
from dualgap.files import write_store
from dualgap.solvers import SOLVERS, can_have, can_train

TABLE = Path(__file__).with_name("frozen.json")
N, D = 200, 12


def signature() -> str:
    """What bits depend on."""
    parts = llvmlite.binding.get_host_cpu_name(), numba.__version__, np.__version__, scipy.__version__
    return " ".join(("cpu {} numba {} numpy {} scipy {}").format(*parts).split())


def data(loss: str, rows: str = "csr", dtype: str = "float64") -> tuple[Any, np.ndarray, np.ndarray]:
    """Rows, targets and weights."""
    rng = np.random.default_rng(11)
    X = rng.normal(size=(N, D)) * (rng.random((N, D)) < 0.5)
    target = X @ rng.normal(size=D) + 0.2 + 0.5 * rng.normal(size=N)
    task = every_loss()[loss].task
    y = np.where(target > 0, 1.0, -1.0) if task == "classification" else target
    y = np.digitize(target, [-1.0, 1.0]) if task == JOINT else y
    weight = rng.choice([0.0, 1.0, 1.0, 2.0], size=N)
    X = X.astype(dtype)
    return (sp.csr_matrix(X) if rows == "csr" else X), y, weight


def hashed(outcomes: list[Any]) -> str:
    """Of coefficients, duals and counts."""
    digest = hashlib.sha256()
    for outcome in outcomes:
        last = outcome.trace[-1]
        digest.update(np.ascontiguousarray(outcome.coef, dtype=np.float64).tobytes())
        digest.update(np.float64(outcome.intercept).tobytes())
        digest.update(b"" if outcome.dual is None else np.ascontiguousarray(outcome.dual).tobytes())
        digest.update(repr((last.visits, last.updates, last.entries, len(outcome.trace))).encode())
    return digest.hexdigest()


def fitted(solver: str, loss: str, rows: str, dtype: str, bias: str, **options: Any) -> list[Any]:
    """One run."""
    X, y, weight = data(loss, rows, dtype)
    arguments = {"C": 1.0, "tol": 1e-4, "max_epochs": 30, "sample_weight": weight, "seed": 5, **options}
    return [dualgap.fit(X, y, solver=solver, loss=loss, bias=bias, **arguments)]


def resumed(solver: str, bias: str) -> list[Any]:
    """A run in two parts, by way of a file."""
    X, y, _ = data("hinge")
    arguments: dict[str, Any] = {"solver": solver, "bias": bias, "tol": 0.0, "seed": 5}
    first = dualgap.fit(X, y, max_visits=713, **arguments)
    with tempfile.TemporaryDirectory() as folder:
        dualgap.save_state(Path(folder) / "run.npz", first)
        run = dualgap.load_state(Path(folder) / "run.npz")
    return [dualgap.fit(X, y, max_visits=2000, resume=run, **arguments)]


def from_disk(solver: str, bias: str, **options: Any) -> list[Any]:
    """A store, a part of whose rows is in memory at a time."""
    X, y, weight = data("hinge")
    with tempfile.TemporaryDirectory() as folder:
        path = Path(folder) / "rows.arrow"
        write_store(path, X, y, weight, seed=3)
        return [
            dualgap.fit(
                path, solver=solver, bias=bias, in_memory=False, cache=0.3, max_epochs=40, seed=5, **options
            )
        ]


def classes(**options: Any) -> list[Any]:
    """One model a class."""
    X, y, _ = data("squared")
    labels = np.digitize(y, np.quantile(y, [0.3, 0.6]))
    return list(dualgap.one_vs_rest(X, labels, seed=5, **options).outcomes)


def classes_from_disk() -> list[Any]:
    """The same, from a store in lockstep."""
    X, y, _ = data("squared")
    labels = np.digitize(y, np.quantile(y, [0.3, 0.6])).astype(float)
    with tempfile.TemporaryDirectory() as folder:
        path = Path(folder) / "rows.arrow"
        write_store(path, X, labels, seed=3)
        return list(
            dualgap.one_vs_rest(
                path, in_memory=False, cache=0.3, lockstep=True, max_epochs=40, seed=5
            ).outcomes
        )


def wide() -> list[Any]:
    """More columns than stay in the caches."""
    rng = np.random.default_rng(3)
    X = sp.random(300, 500_000, density=2e-5, format="csr", random_state=rng)
    return [dualgap.fit(X, np.where(rng.random(300) < 0.5, 1.0, -1.0), C=10.0, solver="dcd", seed=5)]


def runs() -> dict[str, Callable[[], list[Any]]]:
    """All of them by name."""
    found: dict[str, Callable[[], list[Any]]] = {}
    layouts = [("csr", "float64"), ("dense", "float32"), ("dense", "float64"), ("csr", "float32")]
    for k, (name, solver) in enumerate(SOLVERS.items()):
        biases = [bias for bias in ("none", "augmented", "exact") if can_have(solver, bias)]
        # quantile came later: without it the choice is what it was
        losses = [loss for loss in NAMES if can_train(solver, loss) and loss != "quantile"]
        for j in range(2):
            rows, dtype = layouts[(k + j) % 4]
            loss, bias = losses[(3 * k * j) % len(losses)], biases[(k + j) % len(biases)]
            key = f"{name} {loss} {rows} {dtype} {bias}"
            found[key] = lambda a=(name, loss, rows, dtype, bias): fitted(*a)
    for loss in LOSSES:
        found[f"dcd {loss} csr float64 exact"] = lambda loss=loss: fitted(
            "dcd", loss, "csr", "float64", "exact"
        )
    for bias in ("none", "exact"):
        found[f"resumed dcd {bias}"] = lambda bias=bias: resumed("dcd", bias)
    found["resumed sgd-s none"] = lambda: resumed("sgd-s", "none")
    for solver, options in (("cached-loops", {"lockstep": True}), ("block", {}), ("selective-block", {})):
        for bias in ("none", "augmented"):
            found[f"from disk {solver} {bias}"] = lambda a=(solver, bias), o=options: from_disk(*a, **o)
    found["classes auto"] = lambda: classes(bias="exact")
    found["classes from disk"] = classes_from_disk
    found["validation"] = lambda: fitted("dcd", "hinge", "csr", "float64", "none", validation=0.25)
    found["threads"] = lambda: fitted("newton", "logistic", "dense", "float64", "exact", threads=2)
    found["expanded"] = lambda: fitted("dcd", "hinge", "csr", "float64", "none", expand="poly2", hash_bits=8)
    found["wide"] = wide
    return found


KEPT = (
    "dcd hinge csr float64 exact",
    "resumed dcd none",
    "from disk cached-loops none",
    "classes auto",
    "wide",
)


def main(verb: str) -> int:
    """Record or check."""
    warnings.simplefilter("ignore")
    table = json.loads(TABLE.read_text()) if TABLE.exists() else {}
    found = {name: hashed(run()) for name, run in runs().items()}
    if verb == "record":
        table[signature()] = found
        TABLE.write_text(json.dumps(table, indent=1, sort_keys=True) + "\n")
        print(f"{len(found)} runs recorded for {signature()}")
        return 0
    kept = table.get(signature())
    if kept is None:
        print(f"nothing is recorded for {signature()}")
        return 2
    other = [name for name in kept if found.get(name) != kept[name]]
    print(f"{len(kept) - len(other)} of {len(kept)} runs are the same, bit for bit", *other, sep="\n")
    return int(bool(other))


if __name__ == "__main__":
    sys.exit(main(*sys.argv[1:]))
