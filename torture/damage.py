"""Damaged files: models, stores, saved runs and compiled kernels.

A file that is *damaged* (bits flipped, cut, spliced, overwritten) is refused with an InputError of one line,
or gives the same numbers as before. A file that is *doctored* (another header or other arrays, with checksums
that agree) is another file: it is refused, or harmless. A doctored model is not verified as true unless the
exact checker agrees, a doctored run that is resumed ends with a certificate that the exact checker finds
true, and the arrays of a doctored store reach nothing outside of them.
"""

from __future__ import annotations

import hashlib
import signal
import tempfile
import warnings
from collections.abc import Callable
from dataclasses import fields, replace
from functools import cached_property
from pathlib import Path
from random import Random
from typing import Any, NamedTuple

import numpy as np
from fuzz import seeds
from fuzz.targets import safe

import dualgap
from dualgap.core.losses import LOSSES, parameters_of
from dualgap.files import Store
from dualgap.runtime import kernel_cache

from .changes import DOCTORS, damaged
from .checker import Claim, faults
from .kills import bits
from .problems import Case, Problem, claim_of
from .tally import Tally

SECONDS = 60  # that reading a small file may take
# How many of 100 files are of each kind.
SHARES = {
    "model": 30,
    "store": 22,
    "state": 18,
    "kernel": 5,
    "doctored model": 15,
    "doctored store": 6,
    "doctored state": 4,
}


_RUNS: dict[str, dict[str, Any]] = {
    "dcd": {},
    "dcd, exact bias": {"bias": "exact"},
    "sdca": {"iterate": "average"},
    "pegasos": {"k": 3},
    "newton": {},
    "sgd": {},
    "smo": {"bias": "exact"},
    "cached-loops": {"cache": 5},
}


class Files(NamedTuple):
    """Valid files of a kind, and what is read from each of them."""

    contents: list[bytes]
    read: Callable[[Path], Any]  # everything in it, comparable; or an InputError
    suffix: str


class Rows:
    """What the models and runs were trained on."""

    def __init__(self) -> None:
        rng = np.random.default_rng(5)
        self.X = rng.normal(size=(20, 4))
        self.y = np.where(self.X @ np.ones(4) + rng.normal(size=20) > 0.0, 1.0, -1.0)
        self.three = np.digitize(self.X @ np.ones(4), [-1.0, 1.0])

    @cached_property
    def models(self) -> list[dualgap.Model]:
        """Of two classes, of a regression, of three classes, without duals."""
        two = dualgap.fit(self.X, self.y, C=0.5, bias="exact").model
        return [
            two,
            dualgap.fit(self.X, self.y, loss="logistic", lam=0.05, bias="augmented").model,
            dualgap.fit(self.X, self.y * self.X[:, 0], loss="huber").model,
            dualgap.one_vs_rest(self.X, self.three).model,
            replace(two, dual=None, dual_hashes=None),
        ]

    def run(self, name: str) -> dict[str, Any]:
        """The arguments of ``fit`` of one of the runs that are saved."""
        solver = name.partition(",")[0]
        return {"X": self.X, "y": self.y, "solver": solver, "C": 1.0, "tol": 1e-12, **_RUNS[name]}


class Damage:
    """Damages files of every kind and looks at what becomes of them."""

    def __init__(self, folder: Path) -> None:
        self.folder, self.rows = folder, Rows()
        self.kinds = {
            "model": Files(self._saved_models(), _model, ".model"),
            "store": Files(seeds.stores(), _store, ".arrow"),
            "state": Files(self._saved_runs(), _state, ".npz"),
            "kernel": Files(_kernels(), _kernel, ".kernel"),
        }
        self._right: dict[tuple[str, int], Any] = {}

    def _saved_models(self) -> list[bytes]:
        file, found = self.folder / "seed.model", []
        for model in self.rows.models:
            model.save(file)
            found.append(file.read_bytes())
        return found

    def _saved_runs(self) -> list[bytes]:
        """Runs that are stopped under way."""
        file, found = self.folder / "seed.npz", []
        for name in _RUNS:
            dualgap.fit(max_visits=83, checkpoint=file, **self.rows.run(name))
            found.append(file.read_bytes())
        return found

    def __call__(self, kind: str, random: Random) -> tuple[str, str]:
        """Damage one file; what became of it ("refused", "same", "harmless"), and what is wrong."""
        doctored = kind.startswith("doctored ")
        name = kind.removeprefix("doctored ")
        files = self.kinds[name]
        which = random.randrange(len(files.contents))
        before = files.contents[which]
        path = self.folder / f"input{files.suffix}"
        if doctored:
            path.write_bytes(DOCTORS[name](before, random))
        else:
            path.write_bytes(damaged(before, random.choice(files.contents), random))
        try:
            if doctored:
                return "harmless", {"model": self._true, "store": _safe, "state": self._resumed}[name](path)
            if (name, which) not in self._right:
                good = self.folder / f"good{files.suffix}"
                good.write_bytes(before)
                self._right[name, which] = files.read(good)
            return "same", "" if files.read(path) == self._right[name, which] else "it gives other numbers"
        except dualgap.InputError as error:
            return "refused", "an error of more than one line" if "\n" in str(error) else ""

    def _true(self, path: Path) -> str:
        """A doctored model predicts or refuses, and is not found true where it is not."""
        model = dualgap.Model.load(path)
        X, found = self.rows.X, ""
        if model.n_features == X.shape[1] and model.expand is None:
            model.predict(X)
        y = (
            self.rows.y * X[:, 0]
            if model.classes is None
            else self.rows.y
            if len(model.classes) == 2
            else self.rows.three
        )
        if model.proofs and model.verify(X, y).verdict == "true":
            found = "; ".join(fault for k in range(len(model.proofs)) for fault in self._untrue(model, k, y))
        return f"a doctored model is found true, and is not: {found}" if found else ""

    def _untrue(self, model: dualgap.Model, k: int, y: Any) -> list[str]:
        """What the exact checker finds wrong with the certificate of row k of a model."""
        if model.dual is None:
            return []  # its bound comes from slopes, which the file does not hold
        if model.classes is not None:
            y = np.where(y == model.classes[1 if len(model.classes) == 2 else k], 1.0, -1.0)
        return faults(
            Claim(
                rows=[list(enumerate(map(float, row))) for row in self.rows.X],
                y=y.tolist(),
                weight=[1.0] * len(y),
                loss=model.loss,
                parameters=parameters_of(LOSSES[model.loss]) | model.loss_parameters,  # or the defaults
                form="J",
                strength=model.C,
                bias=model.bias,
                rho=model.rho,
                w=np.asarray(model.coef[k], float).tolist(),
                b=float(model.intercept[k]),
                beta=model.dual.toarray()[k].tolist(),
                **{name: value for name, value in model.proofs[k].certificate.items() if name != "form"},
            )
        )

    def _resumed(self, path: Path) -> str:
        """A doctored run that some solver resumes is certified truthfully."""
        run = dualgap.load_state(path)
        for name in _RUNS:
            arguments = self.rows.run(name)
            if not str(run.solver).startswith(arguments["solver"]):
                continue
            try:
                outcome = dualgap.fit(max_epochs=30, resume=run, **arguments)
            except dualgap.InputError:
                continue
            case = Case(arguments["solver"], "hinge", arguments.get("bias", "none"))
            told = {"C": 1.0, "loss": "hinge", "rho": 1.0}
            given = Problem(case, self.rows.X, self.rows.y, None, "", "memory", told)
            # what the file says of the past is its own; the end is computed anew
            return "; ".join(faults(replace(claim_of(given, outcome), history=())))
        raise dualgap.InputError("no solver takes it")


def _model(path: Path) -> Any:
    model = dualgap.Model.load(path)
    dual = model.dual
    parts = tuple(getattr(model, item.name) for item in fields(model) if item.name != "dual")
    return bits((*parts, *(() if dual is None else (dual.data, dual.indices, dual.indptr))))


def _store(path: Path) -> Any:
    table = Store(path).read()
    X = table.X
    return bits((X.data, X.indices, X.indptr, X.shape, table.y, table.weight, table.feature_names))


def _state(path: Path) -> Any:
    return bits(tuple(dualgap.load_state(path)._asdict().items()))


def _kernel(path: Path) -> Any:
    content = kernel_cache.load(path)
    if content is None:  # counts as missing, and is compiled anew
        raise dualgap.InputError("no kernel")
    return content


def _kernels() -> list[bytes]:
    contents = [Random(7).randbytes(size) for size in (300, 5000)]
    return [hashlib.sha256(content).digest() + content for content in contents]


def _safe(path: Path) -> str:
    store = Store(path)
    for block in store.blocks():
        safe(block)
    safe(store.read())
    return ""


def _too_long(number: int, frame: Any) -> None:
    raise TimeoutError(f"reading takes more than {SECONDS} s")


def run(seed: int, items: range, folder: Path, tally: Tally) -> None:
    """Damage the files of these numbers."""
    plan = [kind for kind, share in SHARES.items() for _ in range(share)]
    before = signal.signal(signal.SIGALRM, _too_long)
    with tempfile.TemporaryDirectory(dir=folder) as scratch, warnings.catch_warnings():
        warnings.simplefilter("ignore")
        damage = Damage(Path(scratch))
        for index in items:
            kind = plan[index % len(plan)]
            signal.alarm(SECONDS)
            with tally.item(index), np.errstate(all="ignore"):
                became, wrong = damage(kind, Random(f"damage {seed} {index}"))
                tally.count(kind, became)
                if wrong:
                    tally.fail(index, f"{kind}: {wrong}")
            signal.alarm(0)
    signal.signal(signal.SIGALRM, before)
