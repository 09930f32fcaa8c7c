"""What goes wrong while rows are streamed: a clear word, no hang, and the best model so far."""

from __future__ import annotations

import json
import os
import signal
import subprocess
import sys
import threading
import time
from collections.abc import Callable, Iterator
from functools import partial
from pathlib import Path
from typing import Any

import numpy as np
import pytest

import dualgap
from dualgap.data.formats.arrow.feed import StoreFeed
from dualgap.data.formats.feeds import ChunkFeed
from dualgap.files import load_model, write_store
from dualgap.runtime.errors import InputError
from support.commands import Done, run
from support.feeds import deadline, readers, small_batches
from support.problems import sparse_data

NAMES = ("cached-loops", "block", "selective-block")


@pytest.fixture(autouse=True)
def in_time() -> Iterator[None]:
    """Every test here ends, and leaves no thread behind."""
    with deadline(60.0):
        yield
        assert readers() == []


rows = partial(sparse_data, n=400, d=12, noise=0.7)


@pytest.fixture(name="store")
def store_fixture(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    small_batches(monkeypatch, 4000)
    write_store(tmp_path / "rows.arrow", *rows())
    return tmp_path / "rows.arrow"


class After:
    """A callback that does something once, after so many certificates."""

    def __init__(self, action: Callable[[], Any], certificates: int = 2) -> None:
        self.action, self.left = action, certificates

    def __call__(self, record: Any, run: Any) -> None:
        if record.kind == "certified":
            self.left -= 1
            if self.left == 0:
                self.action()


def assert_kept(outcome: Any, *words: str) -> None:
    """The run broke, says why, and has a model with a proof that holds."""
    assert outcome.reason.name == "broken", outcome.reason
    assert not outcome.converged
    for word in words:
        assert word in outcome.reason.message
    assert "\n" not in outcome.reason.message
    assert outcome.coef.any()
    assert outcome.certificate.relative_gap < 1.0
    here = dualgap.fit(*rows(), tol=1e-6)
    assert outcome.certificate.dual <= here.certificate.primal * (1 + 1e-9)
    assert outcome.certificate.primal >= here.certificate.dual * (1 - 1e-9)


def cut(path: Path) -> None:
    os.truncate(path, path.stat().st_size // 2)


def overwrite(path: Path) -> None:
    with path.open("r+b") as file:
        file.seek(path.stat().st_size // 2)
        file.write(b"\xff" * 4000)


def rewrite(path: Path) -> None:
    path.write_bytes(path.read_bytes()[::-1])


@pytest.mark.parametrize("fault", [cut, overwrite, rewrite])
@pytest.mark.parametrize("name", NAMES)
def test_a_store_that_changes_ends_the_run_with_the_best_model(
    name: str, fault: Callable[[Path], None], store: Path
) -> None:
    outcome = dualgap.fit(
        store,
        solver=name,
        in_memory=False,
        cache=80,
        tol=0.0,
        time_limit=40.0,
        callbacks=[After(lambda: fault(store))],
    )
    assert_kept(outcome, str(store))


@pytest.mark.parametrize("fault", ["delete", "replace"])
@pytest.mark.parametrize("name", NAMES)
def test_a_store_that_is_deleted_or_replaced_is_read_on(name: str, fault: str, store: Path) -> None:
    """The descriptor stays open, and what is behind it does not change."""

    def act() -> None:
        if fault == "delete":
            store.unlink()
        else:
            write_store(store, *rows(n=50, d=3, seed=9))

    outcome = dualgap.fit(
        store,
        solver=name,
        in_memory=False,
        cache=80,
        tol=1e-3,
        max_epochs=20_000,
        time_limit=40.0,
        callbacks=[After(act, 1)],
    )
    assert outcome.converged, outcome.reason
    here = dualgap.fit(*rows(), tol=1e-6)
    assert outcome.certificate.primal == pytest.approx(here.certificate.primal, rel=2e-3)


ERRORS = [
    InputError("rows.arrow: no more"),
    OSError(5, "Input/output error"),
    RuntimeError("a cable"),
    MemoryError(),
]


@pytest.mark.parametrize("error", ERRORS, ids=lambda error: type(error).__name__)
@pytest.mark.parametrize("name", NAMES)
def test_whatever_the_reader_stumbles_over_leaves_the_best_model(
    name: str, error: Exception, store: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    load, broken = StoreFeed.load, threading.Event()

    def failing(self: StoreFeed, k: int, first: bool) -> Any:
        if broken.is_set():
            raise error
        return load(self, k, first)

    monkeypatch.setattr(StoreFeed, "load", failing)
    outcome = dualgap.fit(
        store, solver=name, in_memory=False, cache=80, tol=0.0, time_limit=40.0, callbacks=[After(broken.set)]
    )
    assert_kept(outcome, "rows.arrow")


@pytest.mark.parametrize("name", NAMES)
def test_a_reader_that_fails_at_once_says_so(name: str, store: Path, monkeypatch: pytest.MonkeyPatch) -> None:

    def failing(self: StoreFeed, k: int, first: bool) -> Any:
        raise InputError(f"{self.name}: nothing to be had")

    monkeypatch.setattr(StoreFeed, "load", failing)
    outcome = dualgap.fit(store, solver=name, in_memory=False, cache=80, tol=0.0, time_limit=40.0)
    assert outcome.reason.name == "broken"
    assert "rows.arrow: nothing to be had" in outcome.reason.message
    assert not outcome.trace


@pytest.mark.parametrize("name", NAMES)
def test_a_fault_at_the_very_end_does_not_take_the_model_away(name: str, store: Path) -> None:
    """The callback stops the run; evaluating its last point would need the file, which is gone bad by
    then.
    """
    seen = 0

    def callback(record: Any, run: Any) -> bool:
        nonlocal seen
        seen += record.kind == "certified"
        if seen >= 2 and record.kind == "estimate":
            cut(store)
            return True
        return False

    outcome = dualgap.fit(
        store, solver=name, in_memory=False, cache=80, tol=0.0, time_limit=40.0, callbacks=[callback]
    )
    assert outcome.coef.any()
    assert outcome.certificate.relative_gap < 1.0


class Fickle:
    """Chunks that are other ones from some pass on."""

    def __init__(self, passes: int, change: Callable[[int, Any, Any], Any]) -> None:
        self.passes, self.change = passes, change

    def __call__(self) -> Iterator[Any]:
        X, y = rows()
        self.passes -= 1
        for k in range(0, 400, 100):
            part = X[k : k + 100], y[k : k + 100]
            yield self.change(k, *part) if self.passes < 0 else part


def raising(k: int, X: Any, y: Any) -> Any:
    raise RuntimeError("the database went away")


@pytest.mark.parametrize(
    "change",
    [
        pytest.param(lambda k, X, y: (X[:70], y[:70]), id="fewer rows"),
        pytest.param(lambda k, X, y: (np.hstack([X, X]), y), id="more columns"),
        pytest.param(lambda k, X, y: (X, y[:30]), id="fewer labels"),
        pytest.param(lambda k, X, y: (X, y, np.ones(5)), id="fewer weights"),
        pytest.param(lambda k, X, y: (X * np.nan, y), id="no numbers"),
        pytest.param(lambda k, X, y: (X,), id="no labels"),
        pytest.param(raising, id="an error"),
    ],
)
def test_chunks_that_change_end_the_run_with_the_best_model(change: Any) -> None:
    feed = ChunkFeed(Fickle(6, change), name="the table")
    outcome = dualgap.fit(feed, solver="cached-loops", in_memory=False, cache=80, tol=0.0, time_limit=40.0)
    assert_kept(outcome, "the table")


def test_a_slow_reader_is_waited_for() -> None:
    """Sweeping on over the rows at hand must not use the epochs up before others have come."""
    X, y = rows()

    def start() -> Iterator[Any]:
        for k in range(0, 400, 100):
            time.sleep(0.05)  # the default of 1,000 epochs takes half as long
            yield X[k : k + 100], y[k : k + 100]

    outcome = dualgap.fit(
        ChunkFeed(start, name="the table"), solver="cached-loops", in_memory=False, cache=80, time_limit=40.0
    )
    assert outcome.converged, outcome.reason


def test_a_table_that_shrinks_ends_the_run_too() -> None:
    X, y = rows()
    count = iter(range(100))

    def start() -> Iterator[Any]:
        yield X[:200], y[:200]
        if next(count) < 5:
            yield X[200:], y[200:]

    outcome = dualgap.fit(
        ChunkFeed(start, name="the table"),
        solver="cached-loops",
        in_memory=False,
        cache=80,
        tol=0.0,
        time_limit=40.0,
    )
    assert_kept(outcome, "the table: ended at chunk 1, and had 2 before")


def large(folder: Path) -> Path:
    """A store that takes a while to train on."""
    rng = np.random.default_rng(0)
    X = rng.standard_normal((60_000, 20)).astype(np.float32)
    y = np.where(X @ rng.standard_normal(20) + rng.standard_normal(60_000) > 0, 1.0, -1.0)
    write_store(folder / "large.arrow", X, y, keep_order=True)
    return folder / "large.arrow"


def train(store: Path, *arguments: Any) -> list[str]:
    return [
        *(
            sys.executable,
            "-m",
            "dualgap.cli",
            "train",
            str(store),
            "--from-disk",
            "--option",
            "cache=0.1",
            "--tol",
            "0",
        ),
        *map(str, arguments),
    ]


@pytest.mark.slow
def test_ctrl_c_ends_a_streaming_run_with_its_model(tmp_path: Path) -> None:
    store, model, trace = large(tmp_path), tmp_path / "m.model", tmp_path / "t.jsonl"
    command = train(store, "-o", model, "--trace", trace)
    process = subprocess.Popen(command, stderr=subprocess.PIPE, stdout=subprocess.PIPE, text=True)
    while not (trace.exists() and trace.read_text().count("\n") >= 2):
        assert process.poll() is None, process.communicate()
        time.sleep(0.05)
    process.send_signal(signal.SIGINT)
    _, err = process.communicate(timeout=20)
    assert process.returncode == 130, err
    assert "Traceback" not in err
    found = load_model(model)
    assert found.coef.any()
    assert found.proofs[0].stop_reason == "interrupted"


def command_line(*arguments: Any) -> Done:
    with deadline(50.0):
        return run(*arguments)


@pytest.mark.slow
@pytest.mark.parametrize("target", ["--trace", "-o"])
def test_a_full_disk_is_one_line(target: str, store: Path, tmp_path: Path) -> None:
    if not Path("/dev/full").exists():
        pytest.skip("no /dev/full here")
    files = {"-o": tmp_path / "m.model", "--trace": tmp_path / "t.jsonl"} | {target: Path("/dev/full")}
    given = [word for option, file in files.items() for word in (option, file)]
    done = command_line("train", store, "--from-disk", "--option", "cache=80", *given)
    assert "Traceback" not in done.err, done.err[-500:]
    assert done.code == 2
    line = [text for text in done.err.splitlines() if text.startswith("dualgap: error: ")]
    assert len(line) == 1
    assert "/dev/full" in line[0]
    assert "space" in line[0].lower()
    if target == "--trace":
        assert load_model(tmp_path / "m.model").coef.any()
    else:  # what was learned is in the trace, at least
        assert json.loads((tmp_path / "t.jsonl").read_text().splitlines()[-1])["relative_gap"] <= 1e-3


@pytest.mark.slow
def test_a_damaged_store_is_one_line_and_leaves_a_model_if_it_was_read_once(
    store: Path, tmp_path: Path
) -> None:
    begin = StoreFeed(dualgap.files.Store(store))._places[1][0]
    content = bytearray(store.read_bytes())
    content[begin + 40] ^= 4
    store.write_bytes(content)
    done = command_line("train", store, "--from-disk", "--option", "cache=80", "-o", tmp_path / "m.model")
    assert done.code == 2
    assert "Traceback" not in done.err
    assert "rows.arrow: batch 1" in done.err
    assert "is damaged" in done.err
