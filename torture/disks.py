"""Full disks, for every command that writes: a small file system in memory where one can be mounted, and a
limit on the size of files everywhere.

A command on a full disk ends with one line and leaves nothing behind, neither a part of its output nor a
temporary file; what stood there before is still there. A run goes on where only its checkpoint, its trace or
the cache of kernels cannot be written, and saves its model.
"""

from __future__ import annotations

import json
import os
import subprocess
import tempfile
from dataclasses import dataclass
from pathlib import Path
from random import Random

from .commands import Done, Server
from .kills import Bench, unsound
from .mounting import mounted
from .tally import Tally

_PAGE = 4096
_MODEL = 12_000  # bytes that are enough for the models here
_FITTED = ("--tol", "1e-13", "--max-epochs", "60", "--json")


@dataclass(frozen=True)
class Kind:
    """A command whose output meets the full disk.

    ``{full}`` stands for the folder on it, ``{place}`` for another. ``spared`` are outputs that do not need
    the full disk, and must be there in any case.
    """

    name: str
    arguments: tuple[str, ...]
    outputs: tuple[str, ...]  # on the full disk
    codes: tuple[int, ...] = (0,)
    spared: tuple[str, ...] = ()
    cached: bool = False  # the kernel cache is on the full disk


def kinds(inputs: Path) -> list[Kind]:
    """All of them."""
    text, store = str(inputs / "rows.svm"), str(inputs / "rows.arrow")
    spared = ("train", text, "--solver", "sdca", *_FITTED, "-o", "{place}/out.model")
    saving = ("--checkpoint", "{full}/out.run", "--checkpoint-every", "0.02s")
    return [
        Kind("convert", ("convert", text, "{full}/out.arrow"), ("out.arrow",)),
        Kind("convert to text", ("convert", store, "{full}/out.svm"), ("out.svm",)),
        Kind("convert to gz", ("convert", store, "{full}/out.svm.gz"), ("out.svm.gz",)),
        Kind(
            "train",
            ("train", text, "--solver", "sdca", *_FITTED, "-o", "{full}/out.model"),
            ("out.model",),
            (0, 3),
        ),
        Kind("checkpoint", (*spared, *saving), ("out.run",), (0, 3), ("out.model",)),
        Kind(
            "trace",
            (*spared, "--record-every", "1500", "--trace", "{full}/out.jsonl"),
            ("out.jsonl",),
            (0, 3),
            ("out.model",),
        ),
        Kind("save_state", ("loop", "{full}/out.run"), ("out.run",)),
        Kind("predict", ("predict", str(inputs / "rows.model"), text, "-o", "{full}/out.txt"), ("out.txt",)),
        Kind("kernel cache", spared, (), (0, 3), ("out.model",), cached=True),
    ]


class Small:
    """A folder whose files can have so many bytes and no more."""

    def __init__(self, folder: Path, mount: bool) -> None:
        self.folder = folder
        folder.mkdir()
        self.real = mount and mounted(folder)

    def prepare(self, room: int) -> Path:
        """An empty folder on a disk with so much room."""
        self.clear()
        inside = self.folder / "inside"
        inside.mkdir()
        if self.real:
            state = os.statvfs(self.folder)
            spare = state.f_bavail * state.f_frsize - room
            (self.folder / "filler").write_bytes(bytes(max(0, spare // _PAGE * _PAGE)))
        return inside

    def __enter__(self) -> Small:
        return self

    def __exit__(self, *fault: object) -> None:
        if self.real:
            subprocess.run(["umount", str(self.folder)], capture_output=True)

    def clear(self) -> None:
        """Remove everything."""
        for root, folders, files in os.walk(self.folder, topdown=False):
            for name in files:
                (Path(root) / name).unlink()
            for name in folders:
                (Path(root) / name).rmdir()


def run(seed: int, items: range, folder: Path, tally: Tally) -> None:
    """Fill disks, and look."""
    with (
        tempfile.TemporaryDirectory(dir=folder) as scratch,
        Server() as server,
        Small(Path(scratch) / "limited", False) as limited,
        Small(Path(scratch) / "small", True) as small,
    ):
        bench = Bench(Path(scratch), server, 100)
        disks = [limited, small] if small.real else [limited]
        all_kinds = kinds(bench.inputs)
        sizes: dict[str, int] = {}
        for index in items:
            kind = all_kinds[index % len(all_kinds)]
            disk = disks[index // len(all_kinds) % len(disks)]
            with tally.item(index):
                if kind.name not in sizes:
                    sizes[kind.name] = _size(bench, kind)
                random = Random(f"disk {seed} {index}")
                # a limit on sizes holds for all files, those that are not on the full disk, too
                least = _MODEL if kind.spared and not disk.real else 0
                room = random.choice((least, *(random.randrange(least, sizes[kind.name]) for _ in range(3))))
                for fault in _item(bench, kind, disk, room, tally):
                    tally.fail(index, f"{kind.name}, room for {room} bytes: {fault}")


def _size(bench: Bench, kind: Kind) -> int:
    """The size of the largest file that an undisturbed run writes; its outputs are kept as references."""
    place = bench.folder / "reference"
    place.mkdir(exist_ok=True)
    done = bench.server(
        *_words(kind, place, place), folder=place, cache=place / "cache" if kind.cached else None
    )
    if done.code not in kind.codes:
        raise RuntimeError(f"it ends with {done.code}: {done.told}")
    files = (
        list((place / "cache").rglob("*.kernel")) if kind.cached else [place / name for name in kind.outputs]
    )
    return max(file.stat().st_size for file in files)


def _words(kind: Kind, full: Path, place: Path) -> list[str]:
    return [word.replace("{full}", str(full)).replace("{place}", str(place)) for word in kind.arguments]


def _item(bench: Bench, kind: Kind, disk: Small, room: int, tally: Tally) -> list[str]:
    full = disk.prepare(room)
    older = {}
    if room % 2 and not disk.real and kind.name != "trace":
        older = dict.fromkeys(kind.outputs, b"before")
        for name, content in older.items():
            (full / name).write_bytes(content)
    with tempfile.TemporaryDirectory(dir=bench.folder) as place:
        done = bench.server(
            *_words(kind, full, Path(place)),
            folder=bench.folder,
            cache=full if kind.cached else None,
            largest=None if disk.real else room,
        )
        fits = done.code in kind.codes
        tally.count("small file system" if disk.real else "limit", "fits" if fits else "refused")
        found = _end_faults(kind, done, fits)
        for name in kind.spared:
            wrong = unsound(bench, Path(place) / name) if (Path(place) / name).exists() else "it is missing"
            found += [f"{name}: {wrong}"] if wrong else []
    for name in kind.outputs:
        found += _output_faults(bench, kind, full / name, older.get(name), fits)
    extra = {file.name for file in full.iterdir()} - set(kind.outputs)
    if extra and not kind.cached:
        found.append(f"{', '.join(sorted(extra))} is left over")
    if kind.cached and [*full.rglob("*.kernel-tmp")]:
        found.append("an unfinished kernel is left over")
    return found


def _end_faults(kind: Kind, done: Done, fits: bool) -> list[str]:
    if "Traceback" in done.told:
        return [f"a traceback: {done.told[-300:]}"]
    if fits:
        return []
    plain = kind.name == "save_state" or (done.code == 2 and "cannot be written" in done.told)
    if kind.spared and not (kind.name == "trace" and plain):  # the run goes on, the code tells of the trace
        return [f"the run ends with {done.code}: {done.told[-300:]}"]
    return [] if plain else [f"exit code {done.code}: {done.told[-300:]!r}"]


def _output_faults(bench: Bench, kind: Kind, file: Path, older: bytes | None, fits: bool) -> list[str]:
    if kind.name == "trace":  # written line by line
        lines = file.read_text().splitlines() if file.exists() else []
        return [f"line {k + 1} of the trace is cut" for k, line in enumerate(lines[:-1]) if not _json(line)]
    if not file.exists() or file.read_bytes() == older:
        missing = fits and not kind.spared
        return [f"the command ends well, and {file.name} is not there"] if missing else []
    wrong = unsound(bench, file, bench.folder / "reference" / file.name)
    return [f"{file.name} is not whole: {wrong}"] if wrong else []


def _json(line: str) -> bool:
    try:
        return isinstance(json.loads(line), dict)
    except ValueError:
        return False
