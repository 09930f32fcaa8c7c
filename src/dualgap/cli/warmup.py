"""``dualgap warmup``: compile kernels ahead of the first run, in several processes."""

from __future__ import annotations

import contextlib
import os
import signal
import sys
import time
import warnings
from collections.abc import Iterator
from typing import TYPE_CHECKING, Any, NamedTuple

import click

from .console import Spinner, counted, emit, json_option, quiet_option

if TYPE_CHECKING:
    import numpy as np

    from ..outcome import Outcome

COMMON = ("hinge", "squared-hinge", "logistic", "squared")
CHOSEN = ("dcd", "newton")  # what `auto` may choose for rows in memory
LAYOUTS = ("sparse", "dense", "wide")


class Case(NamedTuple):
    """Fits that have most of their kernels in common, so that one process compiles them."""

    loss: str
    layout: str = "sparse"
    dtype: str = "float64"
    solvers: tuple[str, ...] = CHOSEN

    def __str__(self) -> str:
        if self.layout == "files":
            return "files and models"
        named = "" if self.solvers == CHOSEN else f", {', '.join(self.solvers)}"
        return f"{self.loss}, {self.layout} {self.dtype} rows{named}"


@click.command(short_help="Compile the common kernels into the cache.")
@click.option(
    "--loss",
    "losses",
    metavar="NAME",
    multiple=True,
    help="Only this loss, for all kinds of rows, and not what reads files; may be repeated.",
)
@click.option(
    "--all", "everything", is_flag=True, help="Every loss, and every solver with each of its losses."
)
@click.option("--jobs", type=click.IntRange(min=1), metavar="N", help="Processes.  [default: one a core]")
@json_option
@quiet_option
def command(losses: tuple[str, ...], everything: bool, jobs: int | None, as_json: bool, quiet: bool) -> None:
    """Compile the common kernels into the cache, so that the first training does not have to.

    Common is all that --solver auto may choose for rows in memory with the hinge, squared hinge, logistic and
    squared losses: sparse rows, dense ones and those of very many columns, in float64 and float32, with every
    kind of bias; and what reads data files and models. --all adds the other losses, and every other solver
    with sparse and dense float64 rows.

    Machine code is made for the processor at hand. The environment variable DUALGAP_CACHE moves the cache; in
    a Dockerfile:

    \b
      ENV DUALGAP_CACHE=/opt/dualgap-cache
      RUN python -m dualgap warmup
    """
    from ..runtime.errors import InputError
    from ..runtime.kernel_cache import cache_root, writable

    began = time.perf_counter()
    root = cache_root()
    if not writable(root):
        raise InputError(f"{root}: cannot be written to; let DUALGAP_CACHE name a folder that can")
    cases = _cases(losses, everything)
    jobs = min(jobs or _cores(), len(cases))
    with Spinner(not (as_json or quiet)) as spinner:
        spinner.say(f"compiling {counted(len(cases), 'case')}, {jobs} at a time")
        for number, (case, seconds) in enumerate(_compiled(cases, jobs), start=1):
            text = f"{number} of {len(cases)}: {case} ({seconds:.1f} s)"
            spinner.say(text)
            if not (as_json or quiet or sys.stderr.isatty()):  # a log, in which lines stay
                click.echo(text, err=True)
    seconds = time.perf_counter() - began
    if as_json:
        emit({"cache": str(root), "cases": len(cases), "seconds": seconds})
    elif not quiet:
        click.echo(f"{counted(len(cases), 'case')} ready in {seconds:.1f} s, in {root}")


def _cores() -> int:
    return len(os.sched_getaffinity(0)) if sys.platform == "linux" else os.cpu_count() or 1


def _cases(losses: tuple[str, ...], everything: bool) -> list[Case]:
    """What to compile; neighbours have little in common, so that no two processes compile the same."""
    from ..core.losses import NAMES, make_loss

    wanted = [make_loss(name).name for name in losses] or list(NAMES if everything else COMMON)
    kinds = [(layout, dtype) for layout in LAYOUTS for dtype in ("float64", "float32")]
    found = [Case("hinge", "files")] if not losses else []
    for shift in range(len(kinds)):
        found += [
            Case(loss, *kinds[(shift + k) % len(kinds)], _for_memory(loss)) for k, loss in enumerate(wanted)
        ]
    if everything:
        found += _of_other_solvers(wanted)
    return found


def _for_memory(loss: str) -> tuple[str, ...]:
    """What `auto` may choose for rows in memory; the joint losses have solvers of their own."""
    from ..core.losses import LOSSES
    from ..solvers import SOLVERS, can_train

    return CHOSEN if loss in LOSSES else tuple(name for name in SOLVERS if can_train(SOLVERS[name], loss))


def _of_other_solvers(losses: list[str]) -> list[Case]:
    from importlib.util import find_spec

    from ..solvers import SOLVERS, can_train

    found = []
    for name, solver in SOLVERS.items():
        package = solver.capabilities.package
        if package is not None and find_spec(package) is None:
            continue
        for layout in ("sparse", "dense"):
            found += [
                Case(loss, layout, solvers=(name,))
                for loss in losses
                if can_train(solver, loss) and name not in _for_memory(loss)
            ]
    return found


def _compiled(cases: list[Case], jobs: int) -> Iterator[tuple[Case, float]]:
    """Compile cases; yields each with its seconds as it is done. Whatever ends this ends the processes."""
    if jobs == 1:
        for case in cases:
            yield _compile(case)
        return
    import multiprocessing
    from concurrent.futures import ProcessPoolExecutor, as_completed

    others = multiprocessing.active_children()
    context = multiprocessing.get_context("spawn")  # fork would copy threads of the libraries
    with ProcessPoolExecutor(jobs, mp_context=context, initializer=_heed_ctrl_c) as pool:
        try:
            for future in as_completed([pool.submit(_compile, case) for case in cases]):
                yield future.result()
        except BaseException:
            pool.shutdown(wait=False, cancel_futures=True)
            for child in multiprocessing.active_children():
                if child not in others:
                    child.terminate()
            raise


def _heed_ctrl_c() -> None:
    """Ctrl-C reaches all processes of a terminal: end without a word, the first process tells."""
    signal.signal(signal.SIGINT, signal.SIG_DFL)


def _compile(case: Case) -> tuple[Case, float]:
    began = time.perf_counter()
    if case.layout == "files":
        _use_files()
    else:
        _fit(case)
    return case, time.perf_counter() - began


def _fit(case: Case) -> None:
    """Fits that come by all kernels of the case: rows at bounds that leave and are wanted again."""
    from ..api import fit
    from ..runtime.errors import TrivialModelWarning
    from ..solvers import SOLVERS, can_have

    warnings.simplefilter("ignore", TrivialModelWarning)  # a few epochs need not get anywhere
    X, y = _rows(case)
    if "newton" in case.solvers:  # columns too many for factors: what stands in for these
        fit(*_rows(case, 100), loss=case.loss, solver="newton", bias="exact", C=10.0, max_epochs=3)
    for solver in case.solvers:
        epochs = 30 if solver == "dcd" else 5
        for bias in ("none", "augmented", "exact"):
            if can_have(SOLVERS[solver], bias):
                found = fit(
                    X, y, loss=case.loss, solver=solver, bias=bias, C=10.0, tol=1e-6, max_epochs=epochs
                )
                if (solver, bias) == ("dcd", "none"):
                    _look_at_shrunk_rows(found)


def _look_at_shrunk_rows(found: Outcome) -> None:
    """What `dcd` does where shrunk rows may be wanted again, which a few epochs need not come to."""
    from ..solvers.dual.shrinking_sweeper import begin_scan, scan
    from ..solvers.dual.sweeper import Subproblem

    state = found.run.state
    scan(Subproblem.of(found.problem), state.w, state.beta, begin_scan(state.sweeps), state.counts.visits + 1)


def _rows(case: Case, columns: int = 10) -> tuple[Any, np.ndarray[Any, Any]]:
    import numpy as np
    import scipy.sparse as sp

    from ..data.rows import MANY

    rng = np.random.default_rng(0)
    shape = 300, columns
    X: Any = (rng.standard_normal(shape) * (rng.random(shape) < 0.5)).astype(case.dtype)
    y = np.where(X @ rng.standard_normal(columns) + rng.standard_normal(300) > 0, 1.0, -1.0)
    if case.layout != "dense":
        X = sp.csr_array(X)
    if case.layout == "wide":
        X.resize(300, MANY + 1)
    return X, y


def _use_files() -> None:
    """Train, evaluate, predict and certify by way of files."""
    import io
    import tempfile
    from pathlib import Path

    from ..files import write_svmlight
    from . import group

    with tempfile.TemporaryDirectory(prefix="dualgap-warmup-") as folder:
        data, model, labels = (str(Path(folder) / name) for name in ("data.svm", "data.model", "labels"))
        write_svmlight(data, *_rows(Case("hinge")))
        for arguments in (
            ["train", data, "-o", model, "--quiet"],
            ["evaluate", model, data],
            ["predict", model, data, "-o", labels],
            ["certify", model, data],
            ["inspect", data],
        ):
            with contextlib.redirect_stdout(io.StringIO()):
                group.main(arguments, standalone_mode=False)
