"""Kills at random moments: what is left behind, and whether the next command copes with it.

After every kill a file under its final name is absent, the one from before, or whole; the same command (or
one that resumes) then gives what an undisturbed run gives, bit for bit, and removes what the killed process
has left in the folder.
"""

from __future__ import annotations

import hashlib
import shutil
import signal
import tempfile
from dataclasses import dataclass
from functools import cached_property
from pathlib import Path
from random import Random
from typing import Any

import numpy as np
import scipy.sparse as sp

import dualgap
from dualgap.files import write_svmlight

from . import loops
from .commands import Done, Server
from .tally import Tally

# How many of 30 kills are of each kind.
SHARES = {"convert": 6, "memory": 6, "disk": 6, "loop": 5, "predict": 4, "compile": 3}
SIGNALS = (signal.SIGKILL, signal.SIGTERM)
ATTEMPTS = 8  # until a kill comes before the command has ended
TERMINATED = 143
_FITTED = ("--tol", "1e-13", "--json")
_SAVED = ("--checkpoint", "out.run", "--checkpoint-every", "0.02s")


@dataclass(frozen=True)
class Kind:
    """A command that is killed. Its outputs are relative to the folder of an item."""

    name: str
    arguments: tuple[str, ...]
    outputs: tuple[str, ...]
    codes: tuple[int, ...] = (0,)  # that it ends with undisturbed
    resumes: bool = False


def kinds(inputs: Path) -> dict[str, Kind]:
    """All kinds, for input files in a folder."""
    text, store, model = (str(inputs / name) for name in ("rows.svm", "rows.arrow", "rows.model"))
    train = ("train", "-o", "out.model", *_FITTED)
    disk = (
        "--solver",
        "cached-loops",
        "--option",
        "lockstep=true",
        "--option",
        "cache=300",
        "--from-disk",
        "--C",
        "1000",
    )
    found = (
        Kind(
            "convert",
            ("convert", str(inputs / "big.svm"), "out.arrow", "--memory-budget", "16MB"),
            ("out.arrow",),
        ),
        Kind(
            "memory",
            (*train, text, "--solver", "svmsgd", "--max-epochs", "4000", *_SAVED),
            ("out.model", "out.run"),
            (0, 3),
            resumes=True,
        ),
        Kind(
            "disk",
            (*train, store, *disk, "--max-epochs", "800", *_SAVED),
            ("out.model", "out.run"),
            (0, 3),
            resumes=True,
        ),
        Kind("loop", ("loop", "out.run"), ("out.run",)),
        Kind("predict", ("predict", model, str(inputs / "big.svm"), "-o", "out.txt"), ("out.txt",)),
        Kind("compile", (*train, text, "--solver", "dcd", "--max-epochs", "10"), ("out.model",), (0, 3)),
    )
    return {kind.name: kind for kind in found}


class Bench:
    """Input files, and what undisturbed runs make of them."""

    def __init__(self, folder: Path, server: Server, big: int) -> None:
        self.folder, self.server = folder, server
        self.inputs = folder / "inputs"
        self.inputs.mkdir()
        self.rows = self._write("rows.svm", 1500)
        self._write("big.svm", big)
        self._must("convert", self.inputs / "rows.svm", self.inputs / "rows.arrow", "--keep-order")
        self._must("train", self.inputs / "rows.svm", "-o", self.inputs / "rows.model", "--quiet")
        self._references: dict[str, tuple[Path, float]] = {}

    def _write(self, name: str, rows: int) -> tuple[Any, Any]:
        rng = np.random.default_rng(rows)
        X: Any = sp.random_array((rows, 30), density=0.3, rng=rng, format="csr")
        X.data = np.round(X.data, 4)
        y = np.where(X @ rng.normal(size=30) + 0.2 * rng.normal(size=rows) > 0.0, 1, -1)
        write_svmlight(self.inputs / name, X, y)
        return X, y

    def _must(self, *arguments: str | Path) -> None:
        done = self.server(*arguments, folder=self.folder)
        if done.code != 0:
            raise RuntimeError(f"{arguments[0]} ends with {done.code}: {done.told}")

    def reference(self, kind: Kind) -> tuple[Path, float]:
        """The folder of an undisturbed run, made once, and how long the run takes with its kernels there."""
        if kind.name not in self._references:
            place = self.folder / f"reference-{kind.name}"
            place.mkdir()
            cold = self.folder / "reference-cache" if kind.name == "compile" else None
            runs = [self.server(*kind.arguments, folder=place, cache=cold) for _ in range(1 if cold else 2)]
            if runs[-1].code not in kind.codes:
                raise RuntimeError(f"{kind.name} ends with {runs[-1].code}: {runs[-1].told}")
            self._references[kind.name] = place, runs[-1].seconds
        return self._references[kind.name]

    @cached_property
    def loop(self) -> dualgap.Outcome:
        """The run of ``loops.py``, never stopped."""
        return dualgap.fit(*loops.rows(), **loops.OPTIONS)


def run(seed: int, items: range, folder: Path, tally: Tally, big: int = 150_000) -> None:
    """Kill, and look. ``big`` is the number of rows that are converted and predicted: 150,000 do not fit into
    the memory budget.
    """
    plan = [name for name, share in SHARES.items() for _ in range(share)]
    with tempfile.TemporaryDirectory(dir=folder) as scratch, Server() as server:
        bench = Bench(Path(scratch), server, big)
        for index in items:
            random = Random(f"kill {seed} {index}")
            kind = kinds(bench.inputs)[plan[index % len(plan)]]
            with tally.item(index):
                _item(bench, kind, random, index, tally)


def _item(bench: Bench, kind: Kind, random: Random, index: int, tally: Tally) -> None:
    reference, seconds = bench.reference(kind)
    place = bench.folder / f"item-{index}"
    for attempt in range(ATTEMPTS):
        shutil.rmtree(place, ignore_errors=True)
        place.mkdir()
        older = {}
        if random.random() < 0.5 and not kind.resumes:
            older = dict.fromkeys(kind.outputs, b"what was there before")
            for name, content in older.items():
                (place / name).write_bytes(content)
        sign = random.choice(SIGNALS)
        delay = random.uniform(0.0, seconds / (1 + attempt / 2))
        cache = place.with_name(f"cache-{index}-{attempt}") if kind.name == "compile" else None
        done = bench.server(*kind.arguments, folder=place, kill=(delay, sign), cache=cache)
        if done.killed:
            break
    else:
        tally.count("never in time")
        return
    tally.count(kind.name, sign.name)
    found = _left(bench, kind, place, older, done)
    found += _next(bench, kind, place, reference, cache, tally)
    for fault in found:
        tally.fail(index, f"{kind.name}, {sign.name} after {delay:.3f} s, exit code {done.code}: {fault}")
    shutil.rmtree(place)
    if cache is not None:
        shutil.rmtree(cache, ignore_errors=True)


def _left(bench: Bench, kind: Kind, place: Path, older: dict[str, bytes], done: Done) -> list[str]:
    """What is wrong with the files under their final names."""
    found = []
    if done.code not in (-signal.SIGKILL, -signal.SIGTERM, TERMINATED, *kind.codes):
        found.append(f"it says {done.told[-200:]!r}")
    for name in kind.outputs:
        file = place / name
        if not file.exists() or file.read_bytes() == older.get(name):
            if done.code == TERMINATED and kind.name in ("memory", "disk"):
                found.append(f"it was terminated in order, and there is no new {name}")
            continue
        wrong = unsound(bench, file, bench.reference(kind)[0] / name)
        if wrong:
            found.append(f"{name} is not whole: {wrong}")
    return found


def unsound(bench: Bench, file: Path, reference: Path | None = None) -> str:
    """What is wrong with a file, if it is not whole."""
    try:
        if file.suffix == ".run":
            dualgap.load_state(file)
        elif file.suffix == ".model":
            X, y = bench.rows
            checked = dualgap.Model.load(file).verify(X, y)
            return "" if checked.verdict == "true" else checked.reason
        elif reference is not None and file.read_bytes() != reference.read_bytes():
            return f"{file.stat().st_size} bytes of {reference.stat().st_size}"
    except dualgap.InputError as error:
        return str(error)
    return ""


def _next(
    bench: Bench, kind: Kind, place: Path, reference: Path, cache: Path | None, tally: Tally
) -> list[str]:
    """What is wrong with the next command in the same folder, and with what is then there."""
    leftovers = {file.name for file in place.iterdir()} - set(kind.outputs)
    tally.count(*["left a temporary file"][: len(leftovers)])
    if kind.name == "loop":
        found = _resumed_loop(bench, place)
    else:
        more: tuple[str, ...] = ()
        if kind.resumes and (place / "out.run").exists():
            more = ("--resume", "out.run")
            tally.count("resumed")
        done = bench.server(*kind.arguments, *more, folder=place, cache=cache)
        found = [] if done.code in kind.codes else [f"the next command ends with {done.code}: {done.told}"]
        found += [
            f"{name} is another than that of an undisturbed run"
            for name in kind.outputs
            if not found and not _same(place / name, reference / name)
        ]
    there = {file.name for file in place.iterdir()}
    if not there <= set(kind.outputs):
        found.append(f"{', '.join(sorted(there - set(kind.outputs)))} is left over")
    return found + (_cache_faults(bench, kind, place, cache) if cache is not None else [])


def _resumed_loop(bench: Bench, place: Path) -> list[str]:
    file, whole = place / "out.run", bench.loop
    resume = file if file.exists() and file.read_bytes()[:2] == b"PK" else None
    outcome = dualgap.fit(*loops.rows(), resume=resume, **loops.OPTIONS)
    dualgap.save_state(file, outcome)  # removes what the killed process left
    same = outcome.coef.tobytes() == whole.coef.tobytes() and outcome.certificate == whole.certificate
    return [] if same else ["the resumed run differs from one that was never stopped"]


def _same(file: Path, reference: Path) -> bool:
    """Whether two outputs hold the same numbers. (Models have a date, saved runs the seconds they took.)"""
    if file.suffix == ".run":
        return _run_bits(file) == _run_bits(reference)
    if file.suffix != ".model":
        return file.read_bytes() == reference.read_bytes()
    return _model_bits(file) == _model_bits(reference)


def _run_bits(file: Path) -> list[bytes]:
    parts = dualgap.load_state(file)._asdict()
    return bits(tuple(part for name, part in parts.items() if name not in ("seconds", "memory")))


def _model_bits(file: Path) -> list[bytes]:
    model = dualgap.Model.load(file)
    return bits((model.coef, model.intercept, *(tuple(proof.certificate.values()) for proof in model.proofs)))


def bits(value: Any) -> list[bytes]:
    """Everything in nested tuples, to the bit."""
    if isinstance(value, tuple):
        return [piece for item in value for piece in bits(item)]
    if isinstance(value, np.ndarray):
        return [f"{value.dtype} {value.shape}".encode(), value.tobytes()]
    return [repr(value).encode()]


def _cache_faults(bench: Bench, kind: Kind, place: Path, cache: Path) -> list[str]:
    """Every kernel in the cache is whole, and a further run finds all it needs there."""
    files = sorted(cache.rglob("*.kernel"))
    found = [
        f"{file.name} is damaged"
        for file in files
        if hashlib.sha256(file.read_bytes()[32:]).digest() != file.read_bytes()[:32]
    ]
    bench.server(*kind.arguments, folder=place, cache=cache)
    if sorted(cache.rglob("*.kernel")) != files:
        found.append("a run compiles again what should be in the cache")
    return found
