"""``dualgap train``: read, train, certify, save."""

from __future__ import annotations

from contextlib import ExitStack
from pathlib import Path
from typing import TYPE_CHECKING, Any, NamedTuple

import click

from ..errors import InputError, nearest
from .console import Spinner, counted, emit, headline, json_option, note, size_of, table
from .data import data_argument, plain, shown, training_targets

if TYPE_CHECKING:
    from ..arrays import Floats
    from ..files.svmlight import SvmlightData
    from ..losses import Loss
    from ..solve import Outcome, Record
    from ..stopping import Reason

NOT_CONVERGED, INTERRUPTED = 3, 130


class Settings(NamedTuple):
    """The options of ``train``, as click names them."""

    data_file: Path
    model_file: Path
    loss: str
    C: float | None
    lam: float | None
    solver: str
    gap: float
    max_epochs: float
    max_steps: int | None
    time_limit: float | None
    bias: str
    rho: float
    positive: str | None
    seed: int
    threads: int
    option: tuple[str, ...]
    n_features: int | None
    zero_based: Any
    trace: Path | None
    record_every: int | None
    no_duals: bool
    as_json: bool
    quiet: bool


@click.command(short_help="Train a model, certify it, save it.")
@data_argument
@click.option("-o", "--output", "model_file", metavar="MODEL", type=click.Path(path_type=Path), required=True,
              help="The file to save the model in.")  # fmt: skip
@click.option("--loss", default="hinge", show_default=True, help="See `dualgap losses`; huber:threshold=2 sets a parameter.")
@click.option("--C", "C", type=float, help="Weight of the losses in |w|^2/2 + C * sum of losses.  [default: 1]")
@click.option("--lam", type=float, help="Instead of C: lam/2 |w|^2 + mean of losses; lam = 1/(C n).")
@click.option("--solver", default="auto", show_default=True, help="See `dualgap solvers`.")
@click.option("--gap", type=float, default=1e-3, show_default=True, help="Relative gap at which to stop.")
@click.option("--max-epochs", type=float, default=1000, show_default=True, help="Passes over the rows, at most.")
@click.option("--max-steps", type=int, help="Visits of single rows, at most.")
@click.option("--time-limit", type=float, metavar="SECONDS", help="Stop then and keep the best model so far.")
@click.option("--bias", default="none", show_default=True, metavar="none|augmented",
              help="augmented: a constant feature, regularised like the others.")  # fmt: skip
@click.option("--rho", type=float, default=1.0, show_default=True, help="The value of that constant feature.")
@click.option("--positive", metavar="LABEL", help="Train this class against all others.")
@click.option("--seed", type=click.IntRange(min=0), default=0, show_default=True, help="The same seed, the same model.")
@click.option("--threads", type=int, default=1, show_default=True, help="Threads for passes over all rows.")
@click.option("--option", metavar="KEY=VALUE", multiple=True, help="An option of the solver; may be repeated.")
@click.option("--n-features", type=int, help="Number of columns; a higher index is an error.  [default: as found]")
@click.option("--zero-based", type=click.Choice(["auto", "yes", "no"]), default="auto", show_default=True,
              help="Whether indices count from 0; auto: if there is an index 0.")  # fmt: skip
@click.option("--trace", metavar="FILE.jsonl", type=click.Path(path_type=Path), help="Write every certificate there.")
@click.option("--record-every", type=int, metavar="N", help="Certify after every N row visits.")
@click.option("--no-duals", is_flag=True, help="Leave the duals out: smaller, but `certify` can prove less.")
@json_option
@click.option("--quiet", is_flag=True, help="No progress, no report.")
def command(**given: Any) -> int:
    """Train a model on DATA (svmlight text: plain, .gz, .bz2, .xz), certify it, and save it.

    Ctrl-C ends a run early and keeps the best model so far.

    Exit codes: 0 converged, 2 bad input, 3 not to the gap asked for (model saved), 130 interrupted (model saved).
    """
    settings = Settings(**given)
    options = _check(settings)
    with ExitStack() as stack:
        spinner = stack.enter_context(Spinner(not settings.quiet))
        data, targets, classes = _read(settings, spinner)
        outcome, last = _fit(settings, options, data, targets, spinner, stack)
    saved = _save(settings, data, outcome, last, classes)
    if settings.as_json:
        emit(_summary(settings, data, outcome, last))
    elif not settings.quiet:
        _report(settings, data, classes, outcome, last, saved)
    if outcome.reason.name == "interrupted":
        return INTERRUPTED
    return 0 if outcome.converged else NOT_CONVERGED


def _check(settings: Settings) -> dict[str, str]:
    """Refuse what can be refused before the data are read; the solver's options as a dictionary."""
    from ..api import strength
    from ..bias import make_bias
    from ..files.writing import check_destination
    from ..losses import make_loss
    from ..solvers import SOLVERS, make_solver, options_of

    check_destination(settings.model_file)
    if settings.trace is not None:
        check_destination(settings.trace)
    loss = make_loss(settings.loss)
    strength(settings.C, settings.lam, 1.0)
    make_bias(settings.bias, settings.rho)
    if settings.positive is not None and loss.task != "classification":
        raise InputError(f"--positive is for classes, and the {loss.name} loss is for regression; leave it out")
    options: dict[str, str] = {}
    for text in settings.option:
        key, equals, value = text.partition("=")
        if not equals:
            raise InputError(f"--option {text!r} has no value; write it as --option {key}=VALUE")
        options[key] = value
    if settings.solver != "auto":
        make_solver(settings.solver, options, seed=settings.seed)
    known = {option.name for solver in SOLVERS.values() for option in options_of(solver)}
    for key in options:
        if key not in known:
            raise InputError(f"no solver has an option {key!r}; {nearest(key, known)}")
    return options


def _read(settings: Settings, spinner: Spinner) -> tuple[SvmlightData, Floats, tuple[Any, Any] | None]:
    from ..files.svmlight import read_svmlight
    from ..losses import make_loss

    spinner.say(f"reading {settings.data_file}")
    data = read_svmlight(settings.data_file, n_features=settings.n_features, zero_based=settings.zero_based)
    if make_loss(settings.loss).task != "classification":
        return data, data.y, None
    return data, *training_targets(data, settings.positive)


class _Last:
    """A watcher that remembers the latest record."""

    record: Record

    def __call__(self, record: Record) -> None:
        self.record = record


class _Trace:
    """The JSON lines of a run; the file is begun with the first record, so that bad input leaves no file behind."""

    def __init__(self, file: Path) -> None:
        self._file = file
        self._lines: Any = None

    def __call__(self, record: Record) -> None:
        if self._lines is None:
            from ..watchers import JsonLines

            self._lines = JsonLines(self._file)
        self._lines(record)

    def close(self, reason: Reason | None = None) -> None:
        if self._lines is not None:
            self._lines.close(reason)


def _fit(
    settings: Settings, options: dict[str, str], data: SvmlightData, targets: Floats, spinner: Spinner, stack: ExitStack
) -> tuple[Outcome, Record]:
    from ..api import fit
    from ..stopping import Reason
    from ..watchers import Progress

    spinner.say("preparing (the first run with a loss compiles for some seconds)")
    last = _Last()
    watchers: list[Any] = [last, spinner]
    if not settings.quiet:
        watchers.append(Progress(settings.gap))
    if settings.trace is not None:
        watchers.append(_Trace(settings.trace))
    for watcher in watchers[2:]:  # a second Ctrl-C, say, must leave neither a spinner nor an open file
        stack.callback(watcher.close, Reason("ended", "ended"))
    outcome = fit(
        data.X,
        targets,
        loss=settings.loss,
        C=settings.C,
        lam=settings.lam,
        solver=settings.solver,
        gap=settings.gap,
        bias=settings.bias,
        rho=settings.rho,
        max_epochs=settings.max_epochs,
        max_steps=settings.max_steps,
        time_limit=settings.time_limit,
        threads=settings.threads,
        seed=settings.seed,
        watchers=watchers,
        record_every=settings.record_every,
        **options,
    )
    return outcome, last.record
