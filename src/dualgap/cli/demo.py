"""``dualgap demo``: train, certify, score, save and load, on data that need no download."""

from __future__ import annotations

import tempfile
import time
from pathlib import Path
from typing import TYPE_CHECKING, Any, NamedTuple

import click

from .console import Spinner, counted, emit, headline, json_option, quiet_option, table
from .report import seconds_line

if TYPE_CHECKING:
    from ..outcome import Outcome
    from ..runtime.arrays import Floats
    from ..training.records import Record

FAILED = 1


class Labelled(NamedTuple):
    """Rows with their labels, -1 or +1."""

    X: Any
    y: Floats


class Example(NamedTuple):
    """Rows to train on, rows to score, and the accuracy that a sound model reaches on the latter."""

    name: str
    about: str
    train: Labelled
    held: Labelled
    floor: float


class Result(NamedTuple):
    """The outcome of one example."""

    example: Example
    outcome: Outcome
    last: Record
    accuracy: float
    reloaded_equal: bool
    seconds: float

    @property
    def passed(self) -> bool:
        """Whether the gap, the accuracy and the reloaded model are as promised."""
        return bool(self.outcome.converged) and self.reloaded_equal and self.accuracy >= self.example.floor


@click.command(short_help="See all of it work, on data that need no download.")
@click.option("--tol", type=float, default=1e-3, show_default=True, help="Relative gap to certify.")
@json_option
@quiet_option
def command(tol: float, as_json: bool, quiet: bool) -> int:
    """Train on two small data sets, certify, score held-out rows, save the models, load them back and
    compare.

    Exit codes: 0 all of it worked, 1 a gap was not reached, a reloaded model differed, or an accuracy was too
    low.
    """
    results = []
    with tempfile.TemporaryDirectory(prefix="dualgap-demo-") as folder:
        for make in (breast_cancer, text_like):
            with Spinner(not as_json and not quiet) as spinner:
                spinner.say("making data")
                example = make()
                spinner.say(f"training on {example.name}")
                result = _run(example, tol, Path(folder))
            results.append(result)
            if not as_json and not quiet:
                _show(result)
    passed = all(result.passed for result in results)
    if as_json:
        emit({"passed": passed, "tol": tol, "examples": [_summary(result) for result in results]})
    elif not quiet:
        headline("All of it works." if passed else "Something is wrong: see above.", passed)
        if passed:
            click.echo("Next: dualgap train YOUR-DATA.svm -o YOUR.model, and dualgap train --help")
    return 0 if passed else FAILED


def breast_cancer() -> Example:
    """The Wisconsin breast cancer data that come with scikit-learn, columns standardised; every third row
    held out.
    """
    import numpy as np
    from sklearn.datasets import load_breast_cancer

    X, y = load_breast_cancer(return_X_y=True)
    test = np.arange(y.size) % 3 == 0
    mean, deviation = X[~test].mean(axis=0), X[~test].std(axis=0)
    X, y = (X - mean) / deviation, 2.0 * y - 1.0
    return Example(
        "breast cancer",
        "dense, real measurements",
        Labelled(X[~test], y[~test]),
        Labelled(X[test], y[test]),
        0.93,
    )


def text_like(rows: int = 25_000, columns: int = 20_000, words: int = 50, seed: int = 0) -> Example:
    """Rows like bags of words: column j about as frequent as 1/(j + 10), row lengths 1; every fifth row held
    out.

    A hidden set of weights decides the labels, but for one row in twenty, whose label is turned over.
    """
    import numpy as np
    import scipy.sparse as sp

    rng = np.random.default_rng(seed)
    frequency = 1.0 / (np.arange(columns) + 10.0)
    lengths = 1 + rng.poisson(words - 1, rows)
    drawn = rng.choice(columns, size=lengths.sum(), p=frequency / frequency.sum())
    X: Any = sp.csr_array(
        (np.ones(drawn.size), drawn, np.append(0, np.cumsum(lengths))), shape=(rows, columns)
    )
    X.sum_duplicates()
    length = np.sqrt(X.multiply(X).sum(axis=1))
    X.data /= np.repeat(length, np.diff(X.indptr))
    score = X @ rng.standard_normal(columns)
    flipped = np.where(rng.random(rows) < 0.05, -1.0, 1.0)
    y = np.where(score > np.median(score), 1.0, -1.0) * flipped
    test = np.arange(rows) % 5 == 0
    about = "sparse, generated, like bags of words"
    return Example("text", about, Labelled(X[~test], y[~test]), Labelled(X[test], y[test]), 0.75)


def _run(example: Example, tol: float, folder: Path) -> Result:
    import numpy as np

    from ..api import fit
    from ..models.model import Model

    began = time.perf_counter()
    outcome = fit(*example.train, C=1.0, tol=tol)
    file = folder / f"{example.name}.model"
    outcome.model.save(file)
    scores = outcome.model.decision_function(example.held.X)
    again = Model.load(file).decision_function(example.held.X)
    accuracy = float(np.mean(outcome.model.predict(example.held.X) == example.held.y))
    equal = bool(np.array_equal(scores, again))
    return Result(example, outcome, outcome.trace[-1], accuracy, equal, time.perf_counter() - began)


def _show(result: Result) -> None:
    example, certificate = result.example, result.outcome.certificate
    X = example.train.X
    entries = result.outcome.problem.source.nnz
    click.secho(f"{example.name}: {example.about}", bold=True)
    click.echo(
        f"  {counted(X.shape[0], 'row')}, {counted(X.shape[1], 'feature')}, "
        f"{counted(entries, 'stored value')}"
    )
    table(
        [
            ("primal", f"{certificate.primal:.7g}", "objective: hinge loss at C = 1, of this model"),
            ("dual", f"{certificate.dual:.7g}", "lower bound: no linear model can have a smaller objective"),
            ("relative gap", f"{certificate.relative_gap:.2g}", result.outcome.reason.message),
            ("epochs", f"{result.last.epochs:.1f}", counted(result.last.visits, "row visit")),
            seconds_line(result.outcome.seconds),
            (
                "accuracy",
                f"{result.accuracy:.3f}",
                f"on {example.held.y.size:,} held-out rows (floor {example.floor})",
            ),
            (
                "reloaded",
                "equal" if result.reloaded_equal else "NOT EQUAL",
                "scores of the model saved and loaded back",
            ),
        ]
    )
    click.echo()


def _summary(result: Result) -> dict[str, Any]:
    return {
        "name": result.example.name,
        "n_samples": int(result.example.train.y.size),
        "n_features": int(result.example.train.X.shape[1]),
        **result.outcome.certificate._asdict(),
        "converged": bool(result.outcome.converged),
        "accuracy": result.accuracy,
        "accuracy_floor": result.example.floor,
        "reloaded_equal": result.reloaded_equal,
        "seconds": result.seconds,
        "train_seconds": result.last.train_seconds,
        "certify_seconds": result.last.certify_seconds,
        "compile_seconds": result.last.compile_seconds,
        "passed": result.passed,
    }
