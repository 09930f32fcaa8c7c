"""``dualgap train``: read, train, certify, save."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import click

from ..runtime.errors import InputError, suggestion
from .console import FloatOrInf, OutputError, Size, Spinner, complain, emit, json_option, quiet_option
from .data import check_columns, check_files, column_options, data_argument, train_arrays, zero_based_option
from .report import Settings, saving_options
from .training import forecast, run, stall_of
from .words import in_options

NOT_CONVERGED, INTERRUPTED, TERMINATED = 3, 130, 143


@click.command(short_help="Train a model, certify it, save it.")
@data_argument
@click.option(
    "-o",
    "--output",
    "model_file",
    metavar="MODEL",
    type=click.Path(path_type=Path),
    help="The file to save the model in; required but for --plan.",
)
@click.option(
    "--loss",
    default="hinge",
    show_default=True,
    help="See `dualgap losses`; huber:threshold=2 sets a parameter.",
)
@click.option(
    "--task",
    type=click.Choice(["classification", "regression", "multilabel"]),
    help="classification: labels are classes for regression losses, too; multilabel: a row has any number of "
    "them, as in 1,5,7 3:0.5.  [default: the loss's own]",
)
@click.option(
    "--C",
    "C",
    type=FloatOrInf(),
    help="Weight of the losses in |w|^2/2 + C * sum of losses; inf: the hard margin.  [default: 1]",
)
@click.option("--lam", type=float, help="Instead of C: lam/2 |w|^2 + mean of losses; lam = 1/(C n).")
@click.option("--solver", default="auto", show_default=True, help="See `dualgap solvers`.")
@click.option("--tol", type=float, default=1e-3, show_default=True, help="Relative gap at which to stop.")
@click.option("--atol", type=float, help="Absolute gap at which to stop, in the form of C or lam.")
@click.option(
    "--target",
    type=float,
    metavar="J",
    help="Stop when the objective is at most J, in the form of C or lam.  [whichever of the three is first]",
)
@click.option(
    "--max-epochs", type=float, default=1000, show_default=True, help="Visits of rows per row, at most."
)
@click.option("--max-visits", type=int, help="Visits of single rows, at most.")
@click.option("--time-limit", type=float, metavar="SECONDS", help="Stop then and keep the best model so far.")
@click.option(
    "--stall",
    default="auto",
    show_default=True,
    metavar="EPOCHS|none",
    help="Stop when the gap has not fallen by 1% in so many epochs; auto: 1,000, and 200,000 visits.",
)
@click.option(
    "--keep",
    type=click.Choice(["best", "last"]),
    default="best",
    show_default=True,
    help="The model to save: the best one seen, or the solver's own at the end, as its paper has it.",
)
@click.option(
    "--bias",
    default="none",
    show_default=True,
    metavar="none|augmented|exact",
    help="augmented: a constant feature, regularised like the others; exact: not regularised.",
)
@click.option("--rho", type=float, help="The value of that constant feature.  [default: 1]")
@click.option(
    "--positive",
    metavar="LABEL",
    help="Train this class against all others; without it, each of K > 2 classes gets a model.",
)
@click.option(
    "--seed",
    type=click.IntRange(min=0),
    metavar="INTEGER",
    default=0,
    show_default=True,
    help="The same seed, the same model.",
)
@click.option(
    "--threads",
    type=int,
    default=1,
    show_default=True,
    help="Of classes at a time, and for passes over all rows.",
)
@click.option(
    "--option", metavar="KEY=VALUE", multiple=True, help="An option of the solver; may be repeated."
)
@click.option(
    "--n-features", type=int, help="Number of columns; a higher index is an error.  [default: as found]"
)
@zero_based_option("count from 0; auto: if there is an index 0.")
@column_options
@train_arrays
@click.option(
    "--trace",
    metavar="FILE.jsonl",
    type=click.Path(path_type=Path),
    help="Write every certificate there; with --resume, add them.",
)
@click.option(
    "--checkpoint",
    metavar="FILE",
    type=click.Path(path_type=Path),
    help="Save the run there every so often and when it ends, for --resume.",
)
@click.option(
    "--checkpoint-every",
    metavar="DURATION",
    default="60s",
    show_default=True,
    help="How often: 60s, 10min, 2h.",
)
@click.option(
    "--resume",
    metavar="FILE",
    type=click.Path(path_type=Path),
    help="Go on with the run in this checkpoint, bit for bit; data and options must be the same.",
)
@click.option(
    "--record-every",
    metavar="N[ iterations]",
    help="Certify after every N row visits, too; or '100 iterations' (of a batch each), '0.5 epochs'.",
)
@click.option("--record-start", is_flag=True, help="Certify the starting point, too: epoch 0 of --trace.")
@click.option(
    "--validation",
    metavar="FILE",
    type=click.Path(path_type=Path),
    help="Stop early: when --metric on these rows no longer falls; keep the best model on them.",
)
@click.option(
    "--metric",
    type=click.Choice(["loss", "error", "break-even"]),
    default="loss",
    show_default=True,
    help="What --validation looks at: mean loss, share predicted wrong, or 1 - break-even point.",
)
@click.option(
    "--patience",
    type=click.IntRange(min=1),
    metavar="N",
    help="Certificates without a fall before --validation stops, one an epoch.  [default: 5]",
)
@click.option(
    "--plan", is_flag=True, help="Do not train: say what would be done and what the theory promises."
)
@click.option(
    "--in-memory/--from-disk",
    default=None,
    help="Read all rows of a store, a Parquet file or an array into memory, or stream them from disk.  "
    "[default: their size decides]",
)
@click.option(
    "--memory-budget",
    type=Size(),
    metavar="SIZE",
    help="Bytes for rows in memory, what is being read and working copies of duals and weights; duals and "
    "weights themselves (8 bytes a row, 24 a column) come on top. Rows of a store that do not fit are "
    "streamed from disk.  [default: 60% of what is free]",
)
@click.option(
    "--scale",
    metavar="NUMBER|max-abs|unit-rows",
    help="Scale rows as they are read: times a number, columns by their largest value, or rows to length 1; "
    "the model keeps it.",
)
@click.option(
    "--expand",
    metavar="poly2|kmer:K",
    help="Make features as rows are read: products of pairs, or words of K symbols; hashed.",
)
@click.option("--hash-bits", type=int, metavar="B", help="With --expand: 2^B columns.  [default: 20]")
@saving_options
@json_option
@quiet_option
def command(**given: Any) -> int:
    """Train a model on DATA, certify it, and save it.

    DATA is svmlight text (plain, .gz, .bz2, .xz, .zst), a store that `dualgap convert` made of it, a Parquet
    file, or a NumPy array (.npy) with its --labels in another. The rows of the latter three are streamed from
    disk if they do not fit into memory.

    Two classes get one model. Of K > 2 classes each gets one, against the rest, all of them on one copy of
    the rows and in one MODEL: --threads of them at a time, from disk in the same passes. Every class has its
    own certificate; the lines of --trace name their class. Limits are for each class. The same goes for
    labels of which a row has any number (--task multilabel; lines begin with 1,5,7, or with no label).

    The losses multinomial and crammer-singer train all K classes at once: one model, one certificate.

    Ctrl-C ends a run early and keeps the best model so far, of every class, as does SIGTERM. With
    --checkpoint the run (of one model) is saved, too, every minute and in the end, for --resume.

    Exit codes: 0 converged (every class), 2 bad input (if it shows during training, the model so far is
    saved), 3 not to the gap or target asked for (model saved), 130 interrupted (model saved), 143 terminated
    (model saved).
    """
    settings = Settings(**given)
    file = settings.model_file
    if file is None and not settings.plan:
        raise click.UsageError(
            "Missing option '-o' / '--output': where to save the model (or --plan, to save none)."
        )
    try:
        with Spinner(not settings.quiet) as spinner:
            spinner.say("starting")
            options = _check(settings)
            if file is not None and not settings.plan:
                trained = run(settings, file, options, spinner)
            else:
                sentences = forecast(settings, options, spinner)
    except InputError as error:
        raise InputError(in_options(str(error))) from None
    if settings.plan:
        if settings.as_json:
            emit({"plan": sentences})
        elif not settings.quiet:
            click.echo("\n".join(sentences))
        return 0
    saved = f"the model is saved as {file}"
    try:
        if settings.as_json:
            emit(trained.summary())
        elif not settings.quiet:
            trained.report()
    except (OutputError, KeyboardInterrupt) as error:
        error.add_note(saved)  # for the line that `main` writes
        raise
    if trained.trace_failure is not None:
        return complain(f"{trained.trace_failure} ({saved})")
    if trained.interrupted is not None:
        name = trained.interrupted.name
        if trained.reason.name != name:  # the signal came when the run had just ended
            click.echo(f"dualgap: {name} ({saved})", err=True)
        return TERMINATED if name == "terminated" else INTERRUPTED
    if trained.reason.name == "broken":
        return complain(f"{in_options(trained.reason.message)}, saved as {file}")
    return 0 if trained.converged else NOT_CONVERGED


def _check_task(settings: Settings, loss: Any) -> None:
    """Refuse a task that is not for the loss, and a positive class where there is no such thing."""
    from ..core.losses import JOINT
    from ..preparing import task_of

    if settings.task == "multilabel":
        if settings.positive is not None:
            raise InputError("--positive is for one label a row; leave it out, as each label gets a model")
        if loss.task == JOINT:
            raise InputError(
                f"--task multilabel is for losses of one label against the rest, and {loss.name} is one of "
                "all classes at once; take --loss logistic or hinge"
            )
        return
    if task_of(settings.task, loss) == "regression" and settings.positive:
        raise InputError(
            f"--positive is for classes, and the {loss.name} loss is for regression; leave it out, or add "
            "--task classification"
        )
    if loss.task == JOINT and settings.positive is not None:
        raise InputError(
            f"--positive is for one class against the rest, and the {loss.name} loss trains all classes at "
            "once; leave it out, or take --loss logistic or hinge"
        )


def _check(settings: Settings) -> dict[str, Any]:
    """Refuse what can be refused before the data are read; returns the solver's options."""
    from ..core.bias import make_bias
    from ..core.losses import make_loss
    from ..data.scaling import scale_name
    from ..limits import parsed_period, stall_visits
    from ..preparing import is_hard, strength
    from ..runtime.checks import duration
    from ..runtime.options import options_of
    from ..runtime.writing import check_destinations
    from ..solvers import PAPER, SOLVERS, make_solver

    check_files(
        {
            "MODEL": settings.model_file,
            "the file of --trace": settings.trace,
            "the file of --checkpoint": settings.checkpoint,
        },
        {
            "DATA": settings.data_file,
            "the file of --validation": settings.validation,
            "the file of --validation-labels": settings.validation_labels,
            "the file of --labels": settings.labels,
            "the file of --weights": settings.weights,
        },
        prints=settings.as_json or not settings.quiet,
    )
    if settings.resume is not None:
        check_destinations(
            {"MODEL": settings.model_file, "the file of --trace": settings.trace},
            {"the file of --resume": settings.resume},
        )
    duration("checkpoint_every", settings.checkpoint_every)
    scale_name(settings.scale)
    check_columns(settings.data_file, settings.label, settings.weight)
    loss = make_loss(settings.loss)
    if not is_hard(settings.C, settings.lam):
        strength(settings.C, settings.lam, 1.0)
    stall_visits(stall_of(settings.stall), 1)
    if settings.record_every is not None:
        parsed_period(settings.record_every)
    make_bias(settings.bias, 1.0 if settings.rho is None else settings.rho)
    if settings.bias != "augmented" and settings.rho is not None:
        raise InputError(f"--rho {settings.rho:g} is for --bias augmented only; add that or leave it out")
    _check_task(settings, loss)
    for name in ("metric", "patience", "validation_labels"):
        if settings.validation is None and (value := settings._asdict()[name]) not in (None, "loss"):
            option = name.replace("_", "-")
            raise InputError(f"--{option} {value} is for --validation; add that or leave it out")
    options: dict[str, Any] = {}
    for text in settings.option:
        key, equals, value = text.partition("=")
        if not equals:
            raise InputError(f"--option {text!r} has no value; write it as --option {key}=VALUE")
        options[key] = value
    if settings.solver != "auto":
        trained = (loss.hard_margin or loss) if is_hard(settings.C, settings.lam) else loss
        make_solver(settings.solver, options, seed=settings.seed, loss=trained, bias=settings.bias)
    if options:  # all solvers are imported to ask them
        known = {PAPER, *(option.name for solver in SOLVERS.values() for option in options_of(solver))}
        for key in options:
            if key not in known:
                meant = suggestion(key, sorted(known))
                raise InputError(f"no solver has an option {key!r}; {meant}`dualgap solvers` lists them all")
    return options
