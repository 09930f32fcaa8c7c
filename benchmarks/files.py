"""``python -m benchmarks.files``: files in and out, beside scikit-learn, the disk and the libraries that
unpack.

Writes ``FILES.md``. Every figure is taken in a process of its own, which has compiled what there is to
compile on a small file; with ``--quick`` all are taken in this one. A task prepares what it needs and returns
what is to be timed.
"""

from __future__ import annotations

import argparse
import bz2
import functools
import gzip
import json
import lzma
import os
import subprocess
import sys
import tempfile
import time
import zlib
from collections.abc import Callable, Iterator, Sequence
from dataclasses import asdict, dataclass
from pathlib import Path
from typing import Any

import numpy as np

from dualgap.data.formats.arrow.writing import SMALLEST_BUDGET
from dualgap.data.formats.svmlight.writing import write_blocks
from dualgap.files import Store, Table, convert, read_svmlight, write_svmlight

from . import HERE, ROOT, generated, machine
from .appendix import taken_on
from .cells import markdown
from .goals import row
from .memory import size
from .worker import peak, reset_peak

COLUMNS, WORDS = 47_000, 79  # words of which some 70 are different
BLOCK = 4_000_000
SIX, ALL = "six digits", "all digits"  # significant digits of values; all: 15 to 17, as many as they need
FILES = ("source", "out")  # options of tasks that name files
PACKED = ("gz", "bz2", "xz", "zst")
Row = dict[str, Any]
Figures = dict[str, Any]
Timed = Callable[[], Any]


def read(source: str, threads: int) -> Timed:
    return lambda: _arrays(read_svmlight(source, threads=threads))


def read_by_sklearn(source: str) -> Timed:
    from sklearn.datasets import load_svmlight_file

    return lambda: load_svmlight_file(source)


def write(source: str, out: str, threads: int) -> Timed:
    data = read_svmlight(source)
    _remove(out)
    return lambda: write_svmlight(out, data.X, data.y, threads=threads)


def write_raw(source: str, out: str) -> Timed:
    """The bytes as they are, and on to the disk, as the writer does it."""
    text = Path(source).read_bytes()
    _remove(out)

    def run() -> None:
        with Path(out).open("wb") as stream:
            for at in range(0, len(text), BLOCK):
                stream.write(memoryview(text)[at : at + BLOCK])
            stream.flush()
            os.fsync(stream.fileno())

    return run


def unpack(source: str) -> Timed:
    openers: dict[str, Callable[..., Any]] = {"gz": gzip.open, "bz2": bz2.open, "xz": lzma.open}
    if source.endswith("zst"):
        import zstandard

        openers["zst"] = zstandard.open

    def run() -> None:
        with openers[source.rpartition(".")[2]](source, "rb") as stream:
            while stream.read(BLOCK):
                pass

    return run


def to_store(source: str, out: str, **options: Any) -> Timed:
    _remove(out)
    return lambda: convert(source, out, **options)


def store_read(source: str) -> Timed:
    return lambda: _arrays(Store(source).read())


def store_blocks(source: str) -> Timed:
    return lambda: {"total": float(sum(data.X.data.sum() for data in Store(source).blocks()))}


def store_mapped(source: str) -> Timed:
    """Through pyarrow alone: views of the mapped file, all of them held until the end, and what pyarrow
    allocated.
    """
    import pyarrow as pa

    def run() -> Figures:
        before = pa.total_allocated_bytes()
        with pa.memory_map(source) as mapped:
            reader = pa.ipc.open_file(mapped)
            values = [reader.get_batch(k).column(0).values.field(1) for k in range(reader.num_record_batches)]
            total = float(sum(part.to_numpy().sum() for part in values))
            return {"total": total, "copied": pa.total_allocated_bytes() - before}

    return run


def _arrays(data: Table) -> tuple[Any, Any]:
    return data.X, data.y


def _remove(path: str) -> None:
    if path != os.devnull:
        Path(path).unlink(missing_ok=True)


TASKS: dict[str, Callable[..., Timed]] = {
    task.__name__: task
    for task in (
        read,
        read_by_sklearn,
        write,
        write_raw,
        unpack,
        to_store,
        store_read,
        store_blocks,
        store_mapped,
    )
}


@dataclass(frozen=True)
class Job:
    """A task with its options, and a small file for warming up."""

    task: str
    small: str
    options: dict[str, Any]


@functools.cache
def warm_up(small: str) -> None:
    """Compile and import what the tasks need."""
    data = read_svmlight(small)
    with tempfile.TemporaryDirectory(dir=Path(small).parent) as folder:
        write_svmlight(Path(folder) / "small.svm", data.X, data.y)
        convert(small, Path(folder) / "small.arrow")
        Store(Path(folder) / "small.arrow").read()


def measured(job: Job) -> Figures:
    """Seconds, growth of the peak memory in bytes, and what there is to say of the result."""
    warm_up(job.small)
    timed = TASKS[job.task](**job.options)
    before = reset_peak()
    began = time.perf_counter()
    result = timed()
    seconds = time.perf_counter() - began
    return {"seconds": seconds, "grown": peak() - before, **_facts(result)}


def apart(job: Job) -> Figures:
    """The same in a process of its own, once the disk has nothing left to do."""
    os.sync()
    command = [sys.executable, "-m", "benchmarks.files", "--job", json.dumps(asdict(job))]
    done = subprocess.run(command, cwd=ROOT, stdout=subprocess.PIPE, text=True, check=True)
    answer: Figures = json.loads(done.stdout)
    return answer


def _facts(result: Any) -> Figures:
    if isinstance(result, tuple):
        X, y = result
        digest = 0
        for array in (X.data, X.indices.astype(np.int32, copy=False), X.indptr.astype(np.int64), y):
            digest = zlib.crc32(array, digest)
        return {"bytes": size(X) + y.nbytes, "digest": digest}
    return result if isinstance(result, dict) else {}


def generate(path: Path, wanted: int, digits: str) -> None:
    """Text-like rows, about so many bytes of them: term frequencies times something of the column's own."""
    rng = np.random.default_rng(0)
    weight = 1.0 + 9.0 * rng.random(COLUMNS)
    step = max(100, min(20_000, wanted // 20_000))

    def blocks() -> Iterator[tuple[Any, Any]]:
        seed = 0
        while stream.tell() < wanted:
            X, y = generated.text(step, COLUMNS, WORDS, seed=seed)
            X.sort_indices()
            X.data *= weight[X.indices]
            if digits == SIX:
                scale = 10.0 ** (5 - np.floor(np.log10(X.data)))
                X.data = np.rint(X.data * scale) / scale
            yield X, y
            seed += 1

    with path.open("wb") as stream:
        write_blocks(stream, blocks(), zero_based=False)


class Bench:
    """The parts, one table each; they leave files in the folder for those that follow, and rows for the
    goals.
    """

    def __init__(self, folder: Path, gigabytes: float, quick: bool) -> None:
        self.folder, self.quick = folder, quick
        self.repeats = 1 if quick else 3
        self.budget = SMALLEST_BUDGET if quick else 64_000_000
        self.texts = {SIX: folder / "six.svm", ALL: folder / "all.svm"}
        generate(self.texts[SIX], int(gigabytes * 1e9), SIX)
        generate(self.texts[ALL], int(gigabytes * 0.3e9), ALL)
        generate(folder / "small.svm", 200_000, ALL)
        self.slice = folder / "slice.svm"
        with self.texts[SIX].open("rb") as whole:
            self.slice.write_bytes(whole.read(int(gigabytes * 1e8)) + whole.readline())
        self.goals: list[Row] = []

    def job(self, task: str, source: str, **options: Any) -> Job:
        """A task on a file of the folder."""
        names = {
            key: str(self.folder / name)
            for key, name in {"source": source, **options}.items()
            if key in FILES
        }
        return Job(task, str(self.folder / "small.svm"), {**options, **names})

    def in_turns(self, jobs: dict[str, Job], **repeats: int) -> dict[str, Figures]:
        """The fastest of some repeats of each job, one after the other, and the largest growth of memory."""
        found: dict[str, Figures] = {}
        for turn in range(self.repeats):
            for name, job in jobs.items():
                if turn >= repeats.get(job.task, self.repeats):
                    continue
                now = measured(job) if self.quick else apart(job)
                best = found.setdefault(name, now)
                best["seconds"] = min(best["seconds"], now["seconds"])
                best["grown"] = max(best["grown"], now["grown"])
                print(
                    f"   {name}: {now['seconds']:.3g} s, {now['grown'] / 1e6:.0f} MB",
                    file=sys.stderr,
                    flush=True,
                )
        return found

    def reading(self) -> Iterator[Row]:
        """Plain text to arrays; scikit-learn once, the others in turns. Arrays: of X and y. All agree bit for
        bit.
        """
        for digits, path in self.texts.items():
            jobs = {
                "read_svmlight, 1 thread": self.job("read", path.name, threads=1),
                "read_svmlight, 2 threads": self.job("read", path.name, threads=2),
                "load_svmlight_file": self.job("read_by_sklearn", path.name),
            }
            found = self.in_turns(jobs, read_by_sklearn=1)
            if len({item["digest"] for item in found.values()}) != 1:
                raise RuntimeError(f"the readers do not agree on the rows of {path}")
            theirs = found["load_svmlight_file"]
            for name, item in found.items():
                yield {
                    "values": digits,
                    "reader": name,
                    "seconds": item["seconds"],
                    "MB/s": _megabytes(path) / item["seconds"],
                    "times scikit-learn's speed": theirs["seconds"] / item["seconds"],
                    "MB of arrays": item["bytes"] / 1e6,
                    "peak over arrays": item["grown"] / item["bytes"],
                }
            ours = found["read_svmlight, 2 threads"]
            ratio = ("reading, 2 threads, s", ours["seconds"]), ("scikit-learn, s", theirs["seconds"])
            room = ("peak of reading, MB", ours["grown"] / 1e6), ("the arrays, MB", ours["bytes"] / 1e6)
            self.goals += [row(digits, *ratio, 10.0, least=True), row(digits, *room, 1.3)]

    def writing(self) -> Iterator[Row]:
        """The same rows to text, on 2 threads, safely on the disk; to nowhere; and the finished bytes to the
        disk.
        """
        for digits, path in self.texts.items():
            jobs = {
                "read_svmlight": self.job("read", path.name, threads=2),
                "write_svmlight": self.job("write", path.name, out="written.svm", threads=2),
                "write_svmlight to /dev/null": self.job("write", path.name, out=os.devnull, threads=2),
                "the bytes alone, with fsync": self.job("write_raw", path.name, out="raw.svm"),
            }
            found = self.in_turns(jobs)
            if (self.folder / "written.svm").read_bytes() != path.read_bytes():
                raise RuntimeError(f"{path}: not the same text after it was read and written")
            reading = found["read_svmlight"]["seconds"]
            for name, item in found.items():
                yield {
                    "values": digits,
                    "what": name,
                    "seconds": item["seconds"],
                    "MB/s": _megabytes(path) / item["seconds"],
                    "over reading": item["seconds"] / reading,
                    "MB grown": item["grown"] / 1e6,
                }
            writing = found["write_svmlight"]["seconds"]
            self.goals.append(row(digits, ("writing, 2 threads, s", writing), ("reading, s", reading), 2.0))

    def packed(self) -> Iterator[Row]:
        """A tenth of the text, packed: read on 2 threads, and unpacked alone by the same library. MB/s are of
        text.
        """
        length = _megabytes(self.slice)
        for name in PACKED:
            path = self.folder / f"slice.svm.{name}"
            convert(self.slice, path)
            jobs = {
                f"read_svmlight, {name}": self.job("read", path.name, threads=2),
                f"unpacking {name}": self.job("unpack", path.name),
            }
            found = self.in_turns(jobs)
            reading, alone = (item["seconds"] for item in found.values())
            yield {
                "format": name,
                "MB": _megabytes(path),
                "of the text": _megabytes(path) / length,
                "reading, MB/s": length / reading,
                "unpacking alone, MB/s": length / alone,
                "reading over unpacking": reading / alone,
            }

    def converting(self) -> Iterator[Row]:
        """Text to a store, shuffled unless it says otherwise. "In memory" is a budget that nothing has to
        leave for.
        """
        path = self.texts[SIX]
        roomy = max(20 * path.stat().st_size, SMALLEST_BUDGET)
        ways: dict[str, dict[str, Any]] = {
            "in memory": {"memory_budget": roomy, "out": "plain.arrow"},
            "in memory, order kept": {"memory_budget": roomy, "keep_order": True, "out": "ordered.arrow"},
            "in memory, lz4": {"memory_budget": roomy, "compression": "lz4", "out": "lz4.arrow"},
            "in memory, zstd": {"memory_budget": roomy, "compression": "zstd", "out": "zstd.arrow"},
            "in memory, float32": {"memory_budget": roomy, "dtype": "float32", "out": "float32.arrow"},
            "budget as by default, 1 GB": {"out": "default.arrow"},
            f"budget {self.budget / 1e6:g} MB": {"memory_budget": self.budget, "out": "budget.arrow"},
        }
        jobs = {name: self.job("to_store", path.name, **way) for name, way in ways.items()}
        found = self.in_turns(jobs, to_store=2)
        for name, item in found.items():
            stored = _megabytes(self.folder / ways[name]["out"])
            yield {
                "how": name,
                "seconds": item["seconds"],
                "MB of text/s": _megabytes(path) / item["seconds"],
                "MB grown": item["grown"] / 1e6,
                "MB of the store": stored,
                "of the text": stored / _megabytes(path),
            }

    def loading(self) -> Iterator[Row]:
        """The same rows from text and from stores. A pass only adds up all values, batch by batch."""
        path = self.texts[SIX]
        jobs = {"text, 2 threads": self.job("read", path.name, threads=2)}
        for kind in ("plain", "float32", "lz4", "zstd"):
            jobs[f"store, {kind}"] = self.job("store_read", f"{kind}.arrow")
        jobs["a pass over the plain store, checked"] = self.job("store_blocks", "plain.arrow")
        jobs["a pass over the plain store, mapped by pyarrow"] = self.job("store_mapped", "plain.arrow")
        found = self.in_turns(jobs)
        if len({item["total"] for item in found.values() if "total" in item}) != 1:
            raise RuntimeError("the two passes over the store do not agree")
        text = found["text, 2 threads"]
        for name, item in found.items():
            yield {
                "from": name,
                "seconds": item["seconds"],
                "MB of text/s": _megabytes(path) / item["seconds"],
                "times the text's speed": text["seconds"] / item["seconds"],
                "MB grown": item["grown"] / 1e6,
                "MB copied by pyarrow": item["copied"] / 1e6 if "copied" in item else "",
            }

    def parts(self) -> Iterator[tuple[str, str, list[Row]]]:
        """Title, meaning and rows of each."""
        for part in (self.reading, self.writing, self.packed, self.converting, self.loading):
            print(part.__name__, file=sys.stderr, flush=True)
            yield part.__name__, part.__doc__ or "", list(part())


def _megabytes(path: Path) -> float:
    return path.stat().st_size / 1e6


NOTES = """\
- MB are 10^6 bytes. Of {repeats} runs (2 at most for converting, 1 for scikit-learn) the fastest counts, and the
  largest growth of memory.
- {processes}
- The files were written a moment before and are in the system's cache: reading costs no disk.
- Arrays are new in every run, so figures include the first touch of their pages.
- "MB grown" is the growth of the highest resident memory (VmHWM, with pages of mapped files) from just before the
  work to its end.
- Everything that writes a file ends with fsync; "the bytes alone" says what the disk takes of it.
"""
ASKED = "Asked for at 1 GB; on smaller files what costs the same for every file counts for more."
APART = "Every run has a process of its own, in which kernels are compiled already."
TOGETHER = (
    "All runs were in one process, and memory that one gave back serves the next: the figures mean nothing."
)


def report(bench: Bench, about: dict[str, Any], parts: Sequence[tuple[str, str, list[Row]]]) -> str:
    """The page; its date is that of the commit."""
    where = taken_on(about).replace(f" on {about['date']}", "", 1)
    texts = "; ".join(f"{digits}: {_megabytes(path):,.0f} MB" for digits, path in bench.texts.items())
    about_texts = (
        f"Rows of some 70 entries in {COLUMNS:,} columns, labels 1 and -1, as plain svmlight text ({texts}). "
        "Digits are significant ones of values; all are up to 17."
    )
    tables = [("goals", ASKED, bench.goals), *parts]
    sections = [f"## {name.capitalize()}\n\n{meaning}\n\n{_table(rows)}" for name, meaning, rows in tables]
    notes = f"## Notes\n\n{NOTES.format(repeats=bench.repeats, processes=TOGETHER if bench.quick else APART)}"
    return "\n\n".join(["# Files", where, about_texts, *sections, notes])


def _table(rows: list[Row]) -> str:
    header = list(rows[0])
    return markdown(header, [[_shown(entry[key]) for key in header] for entry in rows])


def _shown(value: Any) -> str:
    if isinstance(value, float):
        return f"{value:,.0f}" if abs(value) >= 100 else f"{value:.3g}"
    return str(value)


def main(argv: Sequence[str] | None = None) -> int:
    """Measure and write the page, after every part anew."""
    parser = argparse.ArgumentParser(prog="python -m benchmarks.files", description=__doc__)
    parser.add_argument("--size", type=float, default=1.0, help="GB of plain text [default: 1]")
    parser.add_argument("--quick", action="store_true", help="5 MB, once, in one process: does it work?")
    parser.add_argument(
        "--folder", type=Path, help="where the temporary folder goes, with some 10 times the size"
    )
    parser.add_argument(
        "--out", type=Path, help="folder for FILES.md [default: benchmarks; its results if quick]"
    )
    parser.add_argument("--job", type=json.loads, help=argparse.SUPPRESS)
    given = parser.parse_args(argv)
    if given.job is not None:
        print(json.dumps(measured(Job(**given.job))))
        return 0
    page = (given.out or (HERE / "results" if given.quick else HERE)) / "FILES.md"
    page.parent.mkdir(parents=True, exist_ok=True)
    about = machine.describe()
    with tempfile.TemporaryDirectory(dir=given.folder, prefix="dualgap-files-") as folder:
        bench = Bench(Path(folder), 0.005 if given.quick else given.size, given.quick)
        parts = []
        for part in bench.parts():
            parts.append(part)
            page.write_text(report(bench, about, parts))
    print(page)
    return 0


if __name__ == "__main__":
    sys.exit(main())
