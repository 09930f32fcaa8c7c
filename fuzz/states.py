"""Saved runs: valid ones to begin with, changes to them, and what must hold of a changed one."""

from __future__ import annotations

import io
import tempfile
import zipfile
from functools import cache
from pathlib import Path
from random import Random
from typing import Any

import numpy as np

import dualgap
from dualgap.core.problem import Point

from .mutations import mutate_bytes
from .targets import Target

_WORDS = (0, 1, -1, 2**31, 2**32 - 1, 2**40, 2**62, -(2**63), 255)
_FLOATS = (np.nan, np.inf, -np.inf, 1e300, -1.0, 0.0, 5e-324, 0.5)
_SOLVERS: dict[str, dict[str, Any]] = {
    "dcd": {},
    "dcd exact": {"bias": "exact"},
    "sdca": {"iterate": "average"},
    "pegasos": {"k": 3},
    "newton": {},
    "sgd": {},
    "smo": {"bias": "exact"},
    "cached-loops": {"cache": 5},
}


@cache
def rows() -> tuple[Any, Any]:
    """Rows for training, and their labels."""
    rng = np.random.default_rng(0)
    X = rng.normal(size=(24, 4))
    return X, np.where(X @ np.ones(4) + rng.normal(size=24) > 0, 1.0, -1.0)


def _arguments(name: str) -> dict[str, Any]:
    X, y = rows()
    return {"X": X, "y": y, "solver": name.split()[0], "tol": 1e-12, **_SOLVERS[name]}


@cache
def _runs() -> dict[str, bytes]:
    """A saved run of each solver, stopped under way."""
    found = {}
    with tempfile.TemporaryDirectory() as folder:
        for name in _SOLVERS:
            path = Path(folder) / "run.npz"
            dualgap.fit(max_visits=83, checkpoint=path, **_arguments(name))
            found[name] = path.read_bytes()
    return found


def states() -> list[bytes]:
    """Saved runs of several solvers."""
    return list(_runs().values())


def mutate_state(data: bytes, random: Random) -> bytes:
    """Another file: changed bytes, or one whose checksums agree and whose arrays say something else."""
    try:
        with zipfile.ZipFile(io.BytesIO(data)) as archive:
            members = {name: archive.read(name) for name in archive.namelist()}
    except Exception:  # an earlier mutation has left nothing to decode
        return mutate_bytes(data, random)
    if random.random() < 0.2 or not members:
        return mutate_bytes(data, random)
    for _ in range(random.choice((1, 1, 1, 2, 4))):
        _change(members, random)
    sink = io.BytesIO()
    how = zipfile.ZIP_DEFLATED if random.random() < 0.02 else zipfile.ZIP_STORED
    with zipfile.ZipFile(sink, "w", how) as archive:
        for name, content in members.items():
            archive.writestr(name, content)
    return sink.getvalue()


def _change(members: dict[str, bytes], random: Random) -> None:
    """One member has another number, another header, another name or another's content."""
    name = random.choice(list(members))
    kind = random.random()
    if kind < 0.1:
        members[random.choice(list(members))] = members[name]
    elif kind < 0.15:
        renamed = mutate_bytes(name.encode(), random).decode(errors="replace").replace("\0", "?")
        members[renamed or "?"] = members.pop(name)
    elif kind < 0.3:
        members[name] = mutate_bytes(members[name], random)
    else:
        try:
            array = np.load(io.BytesIO(members[name]), allow_pickle=False)
            members[name] = npy(change_array(array, random))
        except Exception:  # damaged before
            members[name] = mutate_bytes(members[name], random)


def change_array(array: Any, random: Random) -> Any:
    """An array with another number in it, of another type or of another length."""
    if array.dtype.kind == "U":
        return np.asarray(str(array)[: random.randrange(1 + len(str(array)))] + random.choice(("", "x", ".")))
    new = np.array(array)
    if array.dtype.kind == "b" or random.random() < 0.1:
        return new.astype(random.choice(("f8", "f4", "i8", "u4", "?")))
    if random.random() < 0.1:
        return np.resize(new, random.randrange(40))
    place = random.randrange(new.size) if new.size else 0
    with np.errstate(all="ignore"):
        words = (*_FLOATS, *_WORDS) if array.dtype.kind == "f" else _WORDS
        if new.size:
            new.flat[place] = np.array(random.choice((*words, array.flat[place]))).astype(array.dtype)
    return new


def npy(array: Any) -> bytes:
    """The content of an ``.npy`` file."""
    buffer = io.BytesIO()
    np.save(buffer, array, allow_pickle=False)
    return buffer.getvalue()


class StateTarget(Target):
    """Reads a saved run and resumes it, if it is still one of the solvers' that it was made of. What comes of
    it is certified truthfully.
    """

    def check(self, data: bytes) -> None:
        path = self.folder / "run.npz"
        path.write_bytes(data)
        run = dualgap.load_state(path)
        for name in _SOLVERS:
            if str(run.solver).startswith(name.split()[0]):
                try:
                    outcome = dualgap.fit(max_epochs=30, resume=run, **_arguments(name))
                except dualgap.InputError:
                    continue
                certified(outcome)
                return
        raise dualgap.InputError("no solver takes it")


def certified(outcome: dualgap.Outcome) -> None:
    """Whether the certificate is what the problem finds at the point that was handed back."""
    again = outcome.problem.certify(Point(outcome.coef, outcome.intercept, outcome.dual))
    claimed = outcome.problem.in_form(outcome.certificate, "mean")
    slack = 2.0 * (again.rounding + claimed.rounding)
    assert again.primal == claimed.primal or abs(again.primal - claimed.primal) <= slack
    assert again.dual == claimed.dual or claimed.dual - again.dual <= slack
