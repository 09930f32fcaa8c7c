"""``fit``: the functional face of the library, from arrays to an outcome."""

from __future__ import annotations

import os
import warnings
from collections.abc import Callable, Sequence
from dataclasses import replace
from functools import cache
from inspect import Signature, signature
from typing import Any

from .core.bias import Bias
from .core.certificate import excess
from .core.losses import Loss
from .core.problem import Point
from .models.model import Model
from .outcome import Outcome
from .preparing import prepared_run
from .runtime.checks import shown
from .runtime.errors import InputError, TrivialModelWarning
from .training.callbacks import Callback
from .training.incumbent import Known
from .training.interruption import CtrlC
from .training.jobs import Job
from .training.records import Record
from .training.run import Run
from .training.running import Running, running, solve
from .training.schedule import Size
from .training.solver import AnySolver


def fit(
    X: Any,
    y: Any = None,
    *,
    loss: str | Loss = "hinge",
    C: float | None = None,
    lam: float | None = None,
    solver: str = "auto",
    tol: float = 1e-3,
    atol: float | None = None,
    target: float | None = None,
    bias: str | Bias = "none",
    rho: float = 1.0,
    sample_weight: Any = None,
    offset: Any = None,
    max_epochs: float | None = 1000,
    max_visits: int | None = None,
    time_limit: float | None = None,
    stall: float | str | None = "auto",
    output: str = "best",
    threads: int = 1,
    seed: int = 0,
    callbacks: Sequence[Callback | Callable[[Record, Run], Any]] = (),
    measures: Sequence[Callable[..., dict[str, float]]] = (),
    record_every: int | str | None = None,
    record_start: bool = False,
    warm: Outcome | Model | Point | None = None,
    resume: Run | Outcome | str | os.PathLike[str] | None = None,
    checkpoint: str | os.PathLike[str] | None = None,
    checkpoint_every: float | str = 60.0,
    validation: Any = None,
    patience: int | None = None,
    metric: str = "loss",
    stop_when_decided: Any = None,
    task: str | None = None,
    penalty: str = "l2",
    in_memory: bool | None = None,
    memory_budget: int | None = None,
    scale: float | str | None = None,
    expand: Any = None,
    hash_bits: int | None = None,
    **options: Any,
) -> Outcome:
    """Train a linear model and prove how good it is.

    Minimises ``1/2 |w|^2 + C sum_i c_i phi_i`` (given ``C``) or ``lam/2 |w|^2 + 1/N sum_i c_i phi_i`` with
    ``N = sum c_i`` (given ``lam``); the two agree at ``C = 1/(lam N)``.

    Parameters
    ----------
    X : array or sparse matrix of shape (n, d), or a path, a Store, a ChunkFeed, a DataSpec or a Dataset
        Float32 and float64, in arrays float16 too, are used as they are, without a copy. A file is svmlight
        text, a store, a Parquet file (labels in its column ``label``) or a NumPy array (``.npy``); rows of
        the latter three that do not fit into memory stay on disk.
    y : array of n labels, or the path of an .npy file that holds it
        For arrays and for ``.npy`` files, which hold rows alone; other files have labels of their own. Two
        distinct labels for a classification loss, numbers or words (the larger one counts as +1), two or more
        for a joint loss, any numbers for regression.
    loss : str or loss
        ``"hinge"``, ``"logistic"``, ``"huber:threshold=2"``...; ``dualgap losses`` lists them. Underscores
        will do for hyphens, and scikit-learn's names for the same functions: ``"log_loss"``,
        ``"squared_error"``... ``"multinomial"`` and ``"crammer-singer"`` are joint losses of K classes: one
        model of all of them, ``coef`` of shape (K, d), ``intercept`` (K,), ``dual`` (n, K).
    C, lam : float
        Give one of the two; ``C=1`` if neither. ``C=inf`` is the hard margin (hinge loss, ``bias="none"`` or
        ``"exact"``).
    solver : str
        ``"auto"`` or one that ``dualgap solvers`` lists.
    tol : float
        The relative gap at which to stop: the objective is then proven to be at most that fraction above its
        minimum. With ``atol`` or ``target`` as well, whichever comes first; 0 leaves it to these.
    atol : float
        The absolute gap at which to stop, in the form that ``C`` or ``lam`` implies.
    target : float
        The objective at which to stop, in that form: "1.01 J_opt" of many papers. A lower bound above it
        ends the run, too (``reason.name == "unreachable"``).
    bias : {"none", "augmented", "exact"}
        ``"augmented"`` adds a constant feature ``rho``, regularised like the others; ``"exact"`` is not
        regularised.
    sample_weight : array of n numbers >= 0, or the path of an .npy file
        Weight 2 is the row twice, weight 0 is no row.
    offset : array of n numbers, optional
        A known part of every score: scores are ``<w, x_i> + b + offset_i``. For one score a row, and rows in
        memory. The model does not keep them: it is given those of the rows that it scores or verifies.
    max_epochs, max_visits, time_limit : numbers or None
        Limits: epochs (visits of rows over their number), visits of rows, seconds. ``decomposition`` and
        ``smo`` count the rows that they move, not all that they read. Some solvers (``newton``, ``asdca``,
        ``svmperf``, ``ocas``, ``decomposition``, ``smo``) pass a limit by up to one of their steps; the
        reason then says how far they came.
    stall : number of epochs, "auto" or None
        End a run whose relative gap has not fallen by 1% in that many epochs. "auto" is 1,000 of them, and
        200,000 visits at least; None (or "none") never ends a run for that reason.
    output : {"best", "last"}
        The model to hand back: the best that the run has seen, or the solver's own at the end, as the
        algorithm of its paper returns it. ``tol`` and the certificate are about that model.
    threads : int
        Threads for passes over all rows.
    seed : int
        The same seed gives the same model, bit for bit.
    callbacks : list of functions of (record, run), or of Callback objects
        Called with every record and the run as it is then, which ``save_state`` can write to a file.
        Something true that one returns ends the run; a sentence becomes the reason.
    measures : functions of a Point that return a dict of numbers
        Stored in every certified record (a validation error, say). They are given the solver's own point at
        that moment, or with two parameters ``(point, best)`` the best one so far as well. The arrays are the
        solver's: copy what is to be kept.
    record_every : int or str
        Certify after every so many visits, besides the certificates of a schedule that keeps them
        cheap; or ``"1000 iterations"`` (an iteration is a batch, where a solver has batches), ``"0.5
        epochs"``.
    record_start : bool
        Put a record of the starting point before all others: epoch 0. Otherwise it changes nothing.
    validation : float, pair (X, y), path or Dataset
        Hold out that part of the rows, or these, and stop early: when ``metric`` on them has not fallen for
        ``patience`` certificates (5 unless given), one an epoch unless ``record_every`` says otherwise. The
        best model on them is handed back. A part of the rows is held out by giving them weight 0 in
        ``outcome.problem``: ``outcome.dual`` has an entry for every row, and those of held-out rows do not
        count. The model knows them again: it is verified from all rows.
    metric : {"loss", "error", "break-even"}
        What early stopping goes by: the mean loss on held-out rows, the share of them predicted wrong, or 1
        less their break-even point (where precision equals recall). Records have it as
        ``measures["validation"]``.
    stop_when_decided : matrix of rows, optional
        End the run, too, once no further training can change the label of any of these rows: each is proven
        to be the one that the exact optimum gives (``reason.name == "decided"``).
    task : {"classification", "regression"}, optional
        By default that of the loss. ``"classification"`` with a regression loss (least squares, Huber...)
        takes two labels as -1 and +1, and the model predicts labels.
    in_memory : bool, optional
        False leaves the rows of a store or a feed on disk even if they fit into memory, True reads them all.
        By default their size decides.
    memory_budget : int, optional
        Bytes for rows of a store or a feed, what is being read, and working copies of duals and weights;
        duals and weights themselves (8 bytes a row, 24 a column, K times that for joint losses) come on top.
        What does not fit is streamed. Without it rows are streamed if they need more than 60% of the free
        memory, with a warning.
    scale : number, "max-abs" or "unit-rows", optional
        Scale rows as they are read, and again when predicting and verifying: multiply them by a number,
        divide each column by its largest absolute value, or each row by its length. ``coef`` and certificate
        are those of the scaled rows.
    expand : str or transformer, optional
        Features made as rows are read, and again when predicting: ``"poly2"``, ``"kmer:8"``, or any
        transformer of scikit-learn that needs no fitting. ``outcome.expansion`` has it.
    hash_bits : int
        ``poly2`` and ``kmer`` have ``2**hash_bits`` columns (20 by default).
    warm : Outcome, Model or Point
        Where the run starts: the best point of another run, a saved model, or any point.
    resume : Run, Outcome or the name of a file
        A run to go on with, bit for bit as if it had never stopped (``outcome.run``, ``load_state``, a
        checkpoint). Solver, options, data, targets, weights, loss, lam or C and bias must be those that it
        was made with. Limits count from its beginning.
    checkpoint : name of a file
        Save the run there every so often and when it ends, whatever the reason, for ``resume``; whole or not
        at all. Where it cannot be saved there is a warning, and the run goes on.
    checkpoint_every : number of seconds, or a text such as "60s", "10min"
        How often.
    **options
        Options of the solver; ``dualgap solvers`` lists them.

    Returns
    -------
    Outcome
        ``coef``, ``intercept``, ``dual``, ``certificate``, ``trace``, ``reason``, ``converged``, ``solver``,
        ``run``, ``advice`` (what to do where it did not converge; where a limit that nobody set ended it, it
        is a ``ConvergenceWarning`` as well). ``model`` is a `Model`, which predicts, is saved and verified.
        ``trace`` has a `Record` for
        every certificate. ``dual`` holds one signed number beta_i a
        row: ``w(beta) = C sum_i c_i beta_i x_i``, and the lower bound is ``-C sum_i c_i phi*(-beta_i) - 1/2
        |w(beta)|^2``, which for the hinge, where beta_i lies between 0 and y_i, is ``C sum_i c_i y_i beta_i -
        1/2 |w(beta)|^2`` (given ``lam``: C = 1/(lam N), and the bound times lam). Ctrl-C ends a run early
        with the best model so far and ``reason.name ==
        "interrupted"``.
    """
    prepared = prepared_run(locals())
    run = prepared.task
    outcome = solve(run.solver, run.problem, prepared.rules, prepared.settings, prepared.callbacks)
    if outcome.remark:
        warnings.warn(outcome.remark, TrivialModelWarning, stacklevel=2)
    found = run.named(outcome)
    if ended_unasked(found, tol, max_epochs, stall):
        warn_unconverged("fit", found, tol)
    return found


def ended_unasked(outcome: Outcome, tol: float, max_epochs: float | None, stall: Any) -> bool:
    """Whether a run ended above its tolerance by a limit that nobody set: who sets one expects it."""
    if outcome.converged or tol == 0.0:
        return False
    defaults = {name: _signature().parameters[name].default for name in ("max_epochs", "stall")}
    unasked: dict[str, bool] = {
        "max_epochs": max_epochs == defaults["max_epochs"],
        "stalled": isinstance(stall, str) and stall == defaults["stall"],
        "rounding": True,
        "broken": True,  # the data failed under way
    }
    return unasked.get(outcome.reason.name, False)


def warn_unconverged(who: str, outcome: Outcome, tol: float, stacklevel: int = 3) -> None:
    """Warn the caller of ``who`` of a run that ended above its tolerance, with the likely cause."""
    from sklearn.exceptions import ConvergenceWarning

    if outcome.reason.name == "broken":
        warnings.warn(
            f"{who} ended early: {outcome.reason.message}", ConvergenceWarning, stacklevel=stacklevel
        )
        return
    warnings.warn(
        f"{who} ended at a relative gap of {outcome.certificate.relative_gap:.3g} after {outcome.epochs:.4g} "
        f"epochs, above tol={tol:g}: {excess(outcome.certificate)}. "
        f"{outcome.advice}",
        ConvergenceWarning,
        stacklevel=stacklevel,
    )


@cache
def _signature() -> Signature:
    return signature(fit)


def job(
    key: Any,
    X: Any,
    y: Any = None,
    *,
    adapt: Callable[[AnySolver], tuple[AnySolver, float]] | None = None,
    known: Known | None = None,
    **arguments: Any,
) -> Job:
    """A run of ``fit`` with these arguments, for ``run_jobs``.

    ``adapt`` makes of the solver one that takes turns with others, and says how many visits a turn has.
    ``known`` is the evaluation of the warm start, where that has been made.
    """
    bound = _signature().bind(X, y, **arguments)
    bound.apply_defaults()
    for name in ("checkpoint", "resume"):
        if bound.arguments[name] is not None:
            given = bound.arguments[name]
            named = shown(os.fspath(given) if isinstance(given, os.PathLike) else given)
            raise InputError(
                f"{name}={named}: only a single run is saved and resumed; train one class at a time, against "
                "the rest"
            )
    task, rules, settings, callbacks = prepared_run(bound.arguments)
    settings = replace(settings, known=known)
    if adapt is not None:
        solver, quantum = adapt(task.solver)
        task, settings = task._replace(solver=solver), replace(settings, max_quantum=quantum)

    def begin(ctrl_c: CtrlC) -> Running:
        run = running(task.solver, task.problem, rules, settings, callbacks, ctrl_c)
        return task.named((yield from run))

    return Job(key, begin)


def plan(X: Any, y: Any = None, **arguments: Any) -> list[str]:
    """What ``fit`` with the same arguments would do, and what the theory of its solver promises, in
    sentences.

    Takes all that ``fit`` takes. Bad data and bad options raise the same errors as in ``fit``.
    """
    bound = _signature().bind(X, y, **arguments)
    bound.apply_defaults()
    task = prepared_run(bound.arguments).task
    problem, solver = task.problem, task.solver.at_work(None)
    source, size = problem.source, Size.of(problem)
    share = size.evaluation_cost() / size.training_cost(size.epoch)
    chosen = f" (chosen as {task.auto_reason})" if task.auto_reason else ""
    in_c_form = f", {problem.value_at_zero / problem.lam:.6g} in C-form" if problem.lam > 0.0 else ""
    often = "they are meant to take a quarter of the time at most"
    if solver.capabilities.evaluated_steps:
        often = "each step begins with one"
    return [
        f"solver {solver.name}: {solver.summary}{chosen}",
        f"{problem.epoch_size:,} rows, {source.d:,} features, {source.nnz:,} nonzeros; C = {problem.C:.6g}, "
        f"lam = {problem.lam:.6g}",
        f"at w = 0 the objective is {problem.value_at_zero:.6g} in mean form{in_c_form}",
        f"a certificate costs about as much as {share:.2g} epochs; {often}",
        *task.solver.plan(problem, task.tol),
    ]
