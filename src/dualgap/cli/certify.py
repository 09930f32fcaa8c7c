"""``dualgap certify``: recompute a model's certificate from scratch and say whether the stored one is true."""

from __future__ import annotations

from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Any, NamedTuple

import click

from ..errors import InputError
from .console import emit, headline, json_option
from .data import data_argument, model_argument, model_targets, read_for, stream_for, zero_based_option
from .modelling import loss_spec

if TYPE_CHECKING:
    from ..arrays import Floats
    from ..files.data import Data
    from ..files.model import Model
    from ..problem import Certificate, Problem

TRUE, NOT_TRUE, UNPROVEN = "true", "not true", "unproven"


@dataclass(frozen=True)
class Verdict:
    """What came out, and why."""

    verdict: str
    reason: str
    same_rows: bool
    duals: str  # "stored", or "slopes" for the weaker bound
    stored: Certificate
    recomputed: Certificate | None


@click.command(short_help="Recompute a certificate from scratch.")
@model_argument
@data_argument
@zero_based_option
@json_option
def command(model_file: Path, data_file: Path, zero_based: str, as_json: bool) -> int:
    """Recompute the certificate of MODEL from DATA, the rows it was trained on, and compare it with the stored one.

    The stored certificate is true if DATA has the fingerprint of the training rows, the objective of the stored
    weights is no larger than stated, and the lower bound from the stored duals is no smaller, up to rounding.

    A model saved without duals has only a weaker bound, from the slopes of the losses at its scores; if that does not
    reach the stored bound, the verdict is "unproven".

    Exit codes: 0 true, 1 not true or unproven, 2 bad input.
    """
    from ..files.model import load_model

    model = load_model(model_file)
    found = judge(model, _rows(model, data_file, zero_based))
    if as_json:
        emit(
            {
                "verdict": found.verdict,
                "reason": found.reason,
                "same_rows": found.same_rows,
                "duals": found.duals,
                "stored": found.stored._asdict(),
                "recomputed": None if found.recomputed is None else found.recomputed._asdict(),
            }
        )
    else:
        _report(found)
    return 0 if found.verdict == TRUE else 1


class Rows(NamedTuple):
    """The rows to certify with, in memory or on disk, and their fingerprint."""

    source: Any
    fingerprint: str


def _rows(model: Model, data_file: Path, zero_based: str) -> Rows:
    from ..files.reading import kind_of
    from ..files.store import Store
    from ..memory import training_bytes
    from ..opening import streaming_budget

    if kind_of(data_file) == "store" and zero_based == "auto":
        header = Store(data_file).header
        size = training_bytes(header.n, max(header.d, model.n_features), header.nnz, 8)
        if streaming_budget(size, None) is not None:
            return rows_on_disk(model, data_file)
    return rows_in_memory(model, read_for(model, data_file, zero_based))


def rows_in_memory(model: Model, data: Data) -> Rows:
    """All rows of a file."""
    from ..files.fingerprint import fingerprint
    from ..sources import in_memory

    targets = model_targets(model, data)
    source = in_memory(model.features(data.X), targets, data.weight)
    return Rows(source, fingerprint(data.X, targets, data.weight))


def rows_on_disk(model: Model, data_file: Path) -> Rows:
    """The rows of a store, read one batch at a time; their digests are computed anew, and not taken from its header."""
    import numpy as np

    from ..expanding import Expanded, make_expansion
    from ..feeds import Feed, OnDisk
    from ..files.fingerprint import RowDigests, combined
    from ..files.store import Store
    from ..files.streaming import StoreFeed

    digests = RowDigests()
    targets, weights = [], []
    for data in stream_for(model, data_file, "auto"):
        digests.add(data.X)
        targets.append(model_targets(model, data))
        weights.append(np.ones(data.y.size) if data.weight is None else data.weight)
    expansion = make_expansion(model.expand, model.hash_bits)
    feed: Feed = StoreFeed(Store(data_file))
    if expansion is not None:
        feed = Expanded(feed, expansion)
    positive = None if model.classes is None else model.classes[1]
    source = OnDisk(
        feed,
        lambda y: y if positive is None else np.where(y == positive, 1.0, -1.0),
        memory_budget=0,
        d=model.n_features,
    )
    return Rows(source, combined(digests.digests(), targets, weights))


def judge(model: Model, rows: Rows) -> Verdict:
    """Build the problem anew, judge the stored point, and compare."""
    from ..bias import make_bias
    from ..losses import make_loss
    from ..problem import Point, Problem

    stored = model.certificate
    duals = "slopes" if model.dual is None else "stored"
    n = rows.source.n
    if n != model.n_samples:
        reason = f"DATA has {n} rows and the model was trained on {model.n_samples}"
        return Verdict(NOT_TRUE, reason, False, duals, stored, None)
    same = rows.fingerprint == model.fingerprint
    if model.dual is None and not rows.source.resident:
        raise InputError(
            "the model was saved without duals: its bound can be recomputed only where all rows fit in memory"
        )
    loss = make_loss(loss_spec(model.loss, model.loss_parameters))
    problem = Problem(rows.source, loss, model.proofs[0].lam, make_bias(model.bias, model.rho))
    w, b = model.coef[0], float(model.intercept[0])
    beta = dual_from_slopes(problem, w, b) if model.dual is None else model.dual.toarray()[0]
    recomputed = problem.in_form(problem.certify(Point(w, b, beta)), "J")
    if not same:
        reason = "the rows of DATA are not the training rows (others, in another order, or weighted otherwise)"
        return Verdict(NOT_TRUE, reason, same, duals, stored, recomputed)
    verdict, reason = compare(stored, recomputed, duals)
    return Verdict(verdict, reason, same, duals, stored, recomputed)


def compare(stored: Certificate, recomputed: Certificate, duals: str) -> tuple[str, str]:
    """Whether the recomputed numbers bear the stored ones out, each up to the rounding errors of both."""
    rounding = stored.rounding + recomputed.rounding
    if not recomputed.primal <= stored.primal + rounding:
        return NOT_TRUE, f"the objective is {recomputed.primal!r}, larger than the stored {stored.primal!r}"
    if not recomputed.dual >= stored.dual - rounding:
        if duals == "slopes":
            return (
                UNPROVEN,
                "the model was saved without duals, and the weaker bound from slopes does not reach its own",
            )
        return NOT_TRUE, f"the lower bound is {recomputed.dual!r}, smaller than the stored {stored.dual!r}"
    slack = 3.0 * rounding
    relative_slack = slack / recomputed.dual if recomputed.dual > slack else 0.0
    if not recomputed.gap <= stored.gap + slack:
        return NOT_TRUE, f"the gap is {recomputed.gap!r}, larger than the stored {stored.gap!r}"
    if not recomputed.relative_gap <= stored.relative_gap * (1.0 + 1e-9) + relative_slack:
        return (
            NOT_TRUE,
            f"the relative gap is {recomputed.relative_gap!r}, larger than the stored {stored.relative_gap!r}",
        )
    return TRUE, "recomputed from scratch, objective and lower bound are as good as the stored ones"


def dual_from_slopes(problem: Problem, w: Floats, b: float) -> Floats:
    """A dual point from a primal one: ``s * beta`` with ``beta_i = -slope of the loss at row i's score``.

    At the optimum of a smooth loss that is the optimal dual point. Elsewhere D(s beta) is concave in s, every s in
    [0, 1] is feasible (the set of feasible duals is convex and holds 0), and the best s often makes the bound far
    better than s = 1. It is always valid, and for losses with kinks always weak.
    """
    import numpy as np
    from scipy.optimize import minimize_scalar

    from ..problem import Point

    scores = problem.judge(Point(w, b, None)).scores
    pairs = zip(problem.source.y.tolist(), scores.tolist(), strict=True)
    beta = np.array([-problem.loss.slope(y, score) for y, score in pairs])
    nowhere = np.zeros(problem.source.d)

    def negated_bound(s: float) -> float:
        return -problem.judge(Point(nowhere, 0.0, s * beta)).dual

    best: Any = minimize_scalar(negated_bound, bounds=(0.0, 1.0), method="bounded", options={"xatol": 1e-6})
    return beta if negated_bound(1.0) <= best.fun else float(best.x) * beta


def _report(found: Verdict) -> None:
    stored, again = found.stored, found.recomputed
    bound = "lower bound" if found.duals == "stored" else "lower bound (slopes)"
    click.echo(f"{'':<22}{'stored':>18}{'recomputed':>18}")
    for name, field, digits in (
        ("objective", "primal", ".12g"),
        (bound, "dual", ".12g"),
        ("gap", "gap", ".6g"),
        ("relative gap", "relative_gap", ".6g"),
        ("rounding, at most", "rounding", ".3g"),
    ):
        right = "-" if again is None else format(getattr(again, field), digits)
        click.echo(f"{name:<22}{format(getattr(stored, field), digits):>18}{right:>18}")
    click.echo(f"training rows: {'the same, in the same order' if found.same_rows else 'NOT the same'}")
    headline(f"{found.verdict}: {found.reason}", found.verdict == TRUE)
