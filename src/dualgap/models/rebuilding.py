"""The problems that a model was trained on, built anew from its training rows: for verification, and for
bounds on scores.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import numpy as np
from scipy.optimize import minimize_scalar

from ..core.problem import AnyProblem, Point
from ..data.chunks import OnDisk
from ..data.dataset import Dataset, DataSpec, RowIdentity, open_data, scan
from ..data.fingerprint import row_hashes, values_by_hash
from ..data.labels import Labels, signs
from ..data.sources import View
from ..data.table import joined
from ..runtime.arrays import Floats
from ..runtime.errors import InputError

if TYPE_CHECKING:
    from .model import Model


def _as_trained(model: Model, data: Dataset) -> Dataset:
    """The data with weight 0 for the rows that were held out of training, which are known by their numbers
    and contents. Data that have others, or these with weight 0 already, are left as they are.
    """
    held, source = model.held_rows, data.source
    if held is None or source.n != model.n_samples:
        return data
    if not isinstance(source, View):
        raise InputError("rows were held out of training: the model is verified with all rows in memory")
    if model.held_hashes is not None:
        hashes = row_hashes(data.X, source.y, source.weight)
        if not np.array_equal(hashes[held], model.held_hashes):
            found = values_by_hash(hashes, model.held_hashes, np.ones(held.size))
            held = held[:0] if found is None else np.flatnonzero(found)
    weight = source.weight.copy()
    weight[held] = 0.0
    return data._replace(source=source.with_weight(weight))


def opened_for(model: Model, spec: DataSpec) -> Dataset:
    """Rows in the schema of a model."""
    if model.class_weight is not None or model.held_rows is not None:
        spec = spec._replace(in_memory=True)
    spec = _without_absent(model, spec) if model.absent else spec
    task = "one-vs-rest" if model.task == "classification" else model.task
    return open_data(spec, task, model.schema)


def _without_absent(model: Model, spec: DataSpec) -> DataSpec:
    """The rows in memory, with weight 0 and the label of the first class for those that training left out."""
    assert model.classes is not None
    X, y, weight = spec.X, spec.y, spec.weight
    if spec.named:
        table = joined(list(scan(spec, model.schema)))
        X, y, weight = table.X, table.y, table.weight
    absent, classes = Labels(model.absent), Labels(model.classes)
    y = np.array(y)
    out = absent.encode(absent.alike(y)) >= 0
    first = np.flatnonzero(classes.encode(classes.alike(y)) == 0)
    if not out.any() or not first.size:
        return spec
    y[out] = y[first[0]]
    weight = np.where(out, 0.0, 1.0 if weight is None else np.asarray(weight))
    return spec._replace(X=X, y=y, weight=weight, in_memory=None, memory_budget=None)


def as_weighted(model: Model, data: Dataset) -> Dataset:
    """The data with the weights of training: rows held out, class weights applied, if the model has them."""
    data = _as_trained(model, data)
    if model.class_weight is None or model.classes is None:
        return data
    source = data.source
    if not isinstance(source, View):
        raise InputError("the model has class weights: it is verified with all rows in memory")
    factors = np.array(model.class_weight)
    return data._replace(source=source.with_weight(source.weight * factors[_codes(model, source.y)]))


def _codes(model: Model, targets: Floats) -> Any:
    """The numbers of the classes that targets stand for."""
    assert model.classes is not None
    signed = len(model.classes) == 2 and not model.joint
    return (targets > 0).astype(np.intp) if signed else targets.astype(np.intp)


def against_rest(model: Model, data: Dataset, k: int) -> View | OnDisk:
    """The rows with the targets of row k of ``coef``."""
    source, labels = data.source, data.labels
    if len(model.proofs) == 1:
        return source

    def against(targets: Floats) -> Floats:
        return labels.against(targets, k) if model.multilabel and labels else signs(_codes(model, targets), k)

    if isinstance(source, View):
        return source.with_targets(against(source.y))
    targets = source.targets
    return OnDisk(
        source.feed,
        lambda y: against(targets(y)),
        memory_budget=source.memory_budget,
        d=source.d,
    )


def stored_duals(model: Model, k: int, rows: RowIdentity, *, moved: bool) -> Floats | None:
    """The duals of row k of ``coef``, or of all rows of a joint model, as a column each; None where the rows
    have moved and some of them are not found.
    """
    columns: list[Floats] = []
    for each in range(model.coef.shape[0]) if model.joint else (k,):
        part = slice(model.dual.indptr[each], model.dual.indptr[each + 1])
        if not moved:
            columns.append(model.dual[[each]].toarray()[0])
            continue
        found = values_by_hash(rows.hashes, model.dual_hashes[part], model.dual.data[part])
        if found is None:
            return None
        columns.append(found)
    return np.stack(columns, axis=1) if model.joint else columns[0]


def dual_from_slopes(problem: AnyProblem, w: Floats, b: Any) -> Floats:
    """A dual point from a primal one: ``s * beta`` with ``beta_i = -slope of the loss at row i's score``.

    In a joint problem that is a row of K slopes. At the optimum of a smooth loss it is the optimal dual
    point. Elsewhere D(s beta) is concave in s, every s in [0, 1] is feasible (the set of feasible duals is
    convex and holds 0), and the best s often makes the bound far better than s = 1. It is always
    valid, and for losses with kinks always weak.
    """
    scores = problem.evaluate(Point(w, b, None)).scores
    beta: Floats
    if problem.scores_per_row:
        beta = problem.slopes(scores)
    else:
        pairs = zip(problem.source.y.tolist(), scores.tolist(), strict=True)
        beta = np.array([-problem.loss.derivative(y, score) for y, score in pairs])
    nowhere = problem.zero_point()[0]

    def negated_bound(s: float) -> float:
        return -float(problem.evaluate(nowhere._replace(beta=s * beta)).dual)

    best: Any = minimize_scalar(negated_bound, bounds=(0.0, 1.0), method="bounded", options={"xatol": 1e-6})
    return beta if negated_bound(1.0) <= best.fun else float(best.x) * beta
