"""``python -m fuzz``: two million changed files for the readers, on all cores, with atheris (libFuzzer).

Text counts nine tenths of them, stores most of the rest; saved runs, models and JSON headers a hundredth
each. A file that does harm is
kept in the folder, and ``python -m fuzz --replay FILE`` reads it again.
"""

from __future__ import annotations

import argparse
import inspect
import json
import os
import subprocess
import sys
import tempfile
import time
from collections.abc import Callable
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path
from random import Random
from typing import Any

KINDS = ("text", "store", "state", "model", "json")
_LONGEST = {"text": 3000, "store": 12_000, "state": 40_000, "model": 20_000, "json": 8_000}  # bytes of a file
_PART = 200_000  # files a process


def main() -> int:
    """The command."""
    parser = argparse.ArgumentParser(prog="python -m fuzz", description=__doc__)
    parser.add_argument("--inputs", type=int, default=2_000_000, help="how many files (2000000)")
    parser.add_argument("--seed", type=int, default=1)
    parser.add_argument("--jobs", type=int, default=len(os.sched_getaffinity(0)), help="processes at a time")
    parser.add_argument("--folder", type=Path, default=Path(".cache/fuzz"), help="where logs and findings go")
    parser.add_argument(
        "--replay", type=Path, metavar="FILE", help="read one file again and show what happens"
    )
    parser.add_argument("--worker", choices=KINDS, help=argparse.SUPPRESS)
    parser.add_argument("--scratch", type=Path, help=argparse.SUPPRESS)
    options = parser.parse_args()
    if options.worker:
        return work(options)
    if options.replay:
        return replay(options.replay)
    return oversee(options)


def oversee(options: argparse.Namespace) -> int:
    """Share the inputs out among processes, and add up what they report."""
    options.folder.mkdir(parents=True, exist_ok=True)
    few = options.inputs // 100
    shares = {"store": 7 * few, "state": few, "model": few, "json": few}
    shares["text"] = options.inputs - sum(shares.values())
    tasks = []
    for kind in KINDS:
        parts = max(1, -(-shares[kind] // _PART))
        tasks += [
            (kind, part, shares[kind] // parts + (part < shares[kind] % parts)) for part in range(parts)
        ]
    start = time.monotonic()
    with ThreadPoolExecutor(options.jobs) as pool:
        reports = list(pool.map(lambda task: _run(options, *task), tasks))
    seconds = time.monotonic() - start
    for kind in KINDS:
        mine = [report for report in reports if report["kind"] == kind]
        given, refused = (sum(report[name] for report in mine) for name in ("given", "refused"))
        rate = given / max(sum(report["seconds"] for report in mine), 1e-9)
        print(
            f"{kind:5}  {given:>9,} inputs, {refused / max(given, 1):.0%} refused, {rate:,.0f} a second a "
            "process"
        )
    failures = [report for report in reports if report["failure"]]
    given = sum(report["given"] for report in reports)
    print(f"{given:,} inputs in {seconds:.0f} s, {given / seconds:,.0f} a second; {len(failures)} failures")
    for report in failures:
        print(f"{report['failure']}; the log: {report['log']}")
    return 1 if failures else 0


def _run(options: argparse.Namespace, kind: str, part: int, inputs: int) -> dict[str, Any]:
    seed = options.seed * 1000 + part + 1
    log = options.folder / f"{kind}-{seed}.log"
    command = [sys.executable, "-m", "fuzz", "--worker", kind, "--inputs", str(inputs), "--seed", str(seed)]
    memory = Path("/dev/shm")  # where files cost least
    start = time.monotonic()
    with (
        log.open("wb") as stream,
        tempfile.TemporaryDirectory(dir=memory if memory.is_dir() else None) as scratch,
    ):
        code = subprocess.run(
            [*command, "--folder", options.folder, "--scratch", scratch], stdout=stream, stderr=stream
        ).returncode
    seconds = time.monotonic() - start
    lines = log.read_text(errors="replace").splitlines()
    counts = next((json.loads(line) for line in reversed(lines) if line.startswith('{"given"')), None)
    failure = ""
    if code != 0 or counts is None:
        kept = next(
            (line.split()[-1] for line in lines if "Test unit written to" in line), "no file was kept"
        )
        failure = f"{kind}, seed {seed}: exit code {code}; {kept}"
    print(
        f"{kind}, seed {seed}: {inputs:,} inputs in {seconds:.0f} s{', FAILED' if failure else ''}",
        flush=True,
    )
    return {
        "kind": kind,
        "seconds": seconds,
        "failure": failure,
        "log": log,
        **(counts or {"given": 0, "refused": 0}),
    }


def work(options: argparse.Namespace) -> int:
    """Fuzz one reader in this process, until all inputs are read or one does harm."""
    import atheris

    from dualgap.data import table as data
    from dualgap.data.formats import text
    from dualgap.data.formats.arrow import extents, store
    from dualgap.data.formats.arrow import header as store_header
    from dualgap.data.formats.svmlight import lines as svmlight_lines
    from dualgap.data.formats.svmlight import reading as svmlight
    from dualgap.models import header, saving
    from dualgap.runtime import archive, headers, npy
    from dualgap.training import checkpoint
    from dualgap.training import states as training_states

    from . import models, mutations, seeds, states

    readers = (
        data,
        store,
        store_header,
        extents,
        svmlight,
        svmlight_lines,
        text,
        checkpoint,
        training_states,
    )
    for module in (*readers, npy, archive, headers, header, saving):
        _instrument(module, atheris.instrument_func)
    kind = options.worker
    target = _target(kind)(options.scratch)
    change, first = {
        "text": (mutations.mutate_text, seeds.texts),
        "store": (mutations.mutate_store, seeds.stores),
        "state": (states.mutate_state, states.states),
        "model": (models.mutate_model, models.models),
        "json": (models.mutate_json, models.headers),
    }[kind]
    first = first()

    def mutate(data: bytes, most: int, seed: int) -> bytes:
        random = Random(seed)
        if (
            random.random() < 0.5
        ):  # what the fuzzer keeps is damaged soon, and damaged files are refused early
            data = random.choice(first)
        changed = atheris.Mutate(data, most) if random.random() < 0.2 else change(data, random)
        return changed[:most]

    def one(data: bytes) -> None:
        target(data)
        if target.given == options.inputs:
            print(json.dumps({"given": target.given, "refused": target.refused}), flush=True)

    corpus = options.scratch / "corpus"
    corpus.mkdir()
    for k, seed in enumerate(first):
        (corpus / f"{k:03}").write_bytes(seed)
    flags = {
        "runs": options.inputs,
        "seed": options.seed,
        "max_len": _LONGEST[kind],
        "len_control": 0,
        "timeout": 60,  # seconds, on a machine that may be busy
        "rss_limit_mb": 4096,
        "artifact_prefix": f"{options.folder / kind}-",
    }
    words = [f"-{name}={value}" for name, value in flags.items()]
    atheris.Setup(["fuzz", *words, str(corpus)], one, custom_mutator=mutate)
    atheris.Fuzz()
    return 0


def _instrument(module: Any, instrument: Callable[[Any], Any]) -> None:
    """Let the fuzzer see which branches its inputs take. Not in compiled code, whose grammar the mutations
    know.
    """
    owners = [module, *(cls for cls in vars(module).values() if isinstance(cls, type))]
    for owner in owners:
        for member in list(vars(owner).values()):
            if inspect.isfunction(member) and member.__module__ == module.__name__:
                instrument(member)


def _target(kind: str) -> Any:
    """What reads files of that kind."""
    from . import models, states, targets

    kinds = {
        "text": targets.TextTarget,
        "store": targets.StoreTarget,
        "state": states.StateTarget,
        "model": models.ModelTarget,
        "json": models.JsonTarget,
    }
    return kinds[kind]


def replay(file: Path) -> int:
    """Read one file as the fuzzer does; whatever goes wrong is raised."""
    kind = next((kind for kind in KINDS if file.name.startswith(kind)), "text")
    with tempfile.TemporaryDirectory() as scratch:
        target = _target(kind)(Path(scratch))
        target(file.read_bytes())
    print(f"{file}: {'refused' if target.refused else 'read'}, as it should be")
    return 0


if __name__ == "__main__":
    sys.exit(main())
