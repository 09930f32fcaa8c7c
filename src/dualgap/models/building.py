"""Models, ready to be saved, from the results of runs and the data they were trained on."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import asdict
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:  # commands import this file at once, and Numba only when they need it
    from ..core.bias import Bias
    from ..core.losses import Loss
    from ..core.problem import Problem
    from ..data.dataset import Dataset, RowIdentity
    from ..data.labels import Labels
    from ..training.outcome import Result
    from ..training.solver import AnySolver
    from .model import Model, Proof


def model_of(
    results: Result | Sequence[Result],
    data: Dataset,
    *,
    C: float | None = None,
    auto_reason: str = "",
    date: str | None = None,
    duals: bool = True,
    identify: bool = True,
    offsets: bool = False,
) -> Model:
    """A model of two classes, of regression or of K classes at once from one result; of K classes, each
    against the rest, from K of them, in their order.

    ``data`` are the rows as they were opened; with K classes their targets are the numbers of the classes.
    ``C`` is the parameter as the user gave it, free of rounding. ``duals=False`` leaves the dual variables
    out, ``identify=False`` what the training rows are known by, which takes a pass over them. ``offsets``
    says that the training rows had some.
    """
    import numpy as np
    import scipy.sparse as sp

    from .model import Model

    found = [results] if not isinstance(results, Sequence) else results
    first, schema = found[0], data.schema
    problem, path = first.problem, data.spec.path
    dual: Any = None
    if duals:
        dual = sp.vstack([sp.csr_array(dual_point(result)) for result in found], format="csr")
    rows = _trained_on(data, problem, len(found), offsets).identity() if identify else None
    expansion = schema.expansion
    return Model(
        coef=np.vstack([result.coef for result in found]),
        intercept=np.hstack([result.intercept for result in found]),
        classes=None if schema.labels is None else schema.labels.plain,
        C=problem.C if C is None else C,
        n_samples=problem.source.n,
        proofs=tuple(proof_of(result) for result in found),
        threads=data.spec.threads,
        dual=dual,
        zero_based=schema.zero_based,
        feature_names=schema.feature_names,
        expand=None if expansion is None else expansion.name,
        hash_bits=None if expansion is None else expansion.bits,
        n_inputs=None if expansion is None else schema.n_columns,
        scale=None if schema.scaling is None else schema.scaling.name,
        scale_columns=None if schema.scaling is None else schema.scaling.columns,
        offsets=offsets,
        auto_reason=auto_reason,
        data_name=None if path is None else path.name,
        trained=date,
        **stated(problem.loss, problem.bias, first.solver)
        | {
            "task": _task(schema.labels),
            "solver": ", ".join(dict.fromkeys(result.solver.name for result in found)),
        },
        **({} if rows is None else known_by(rows, dual)),
        **_held_out(data, problem, rows),
    )


def _task(labels: Labels | None) -> str:
    from ..data.label_sets import LabelSets
    from ..data.labels import ClassNumbers

    if labels is None:
        return "regression"
    if isinstance(labels, ClassNumbers):
        return "classes"
    return "multilabel" if isinstance(labels, LabelSets) else "classification"


def stated(loss: Loss, bias: Bias, solver: AnySolver) -> dict[str, Any]:
    """The fields of a model that say what was minimised, and by whom."""
    from ..core.losses import parameters_of
    from ..core.losses.offsets import without_offsets
    from ..solvers.exact_bias import ExactBiasSolver

    own: Any = solver.inner if isinstance(solver, ExactBiasSolver) else solver
    options = asdict(own)
    return {
        "task": loss.task,
        "loss": loss.name,
        "loss_parameters": parameters_of(without_offsets(loss)),
        "bias": bias.kind,
        "rho": rho_of(bias),
        "solver": own.name,
        "seed": options.pop("seed", 0),
        "options": options,
    }


def known_by(rows: RowIdentity, dual: Any) -> dict[str, Any]:
    """The fields of a model by which its training rows are known again."""
    from ..data.fingerprint import hashes_in_any_order, hashes_in_order

    return {
        "fingerprint": rows.fingerprint,
        "rows_in_order": hashes_in_order(rows.hashes),
        "rows_in_any_order": hashes_in_any_order(rows.hashes),
        "dual_hashes": None if dual is None else rows.hashes[dual.indices],
    }


def _trained_on(data: Dataset, problem: Problem, models: int, offsets: bool) -> Dataset:
    """The data with the weights that training gave their rows: some may have been held out. Offsets are no
    part of the rows.
    """
    from ..data.chunks import OnDisk
    from ..data.sources import View

    source = problem.source
    assert isinstance(source, View | OnDisk)
    if models == 1 and not offsets:
        return data._replace(source=source)
    whole = data.source
    return data if isinstance(whole, OnDisk) else data._replace(source=whole.with_weight(source.weight))


def _held_out(data: Dataset, problem: Problem, rows: RowIdentity | None) -> dict[str, Any]:
    """The fields of a model that say which rows were held out: data have a weight for them, training none."""
    import numpy as np

    from ..data.fingerprint import reweighted
    from ..data.sources import View

    if not isinstance(data.source, View):
        return {}
    before, after = data.source.weight, problem.source.weight
    held = np.flatnonzero((before > 0.0) & (after == 0.0))
    if not held.size:
        return {}
    hashes = None if rows is None else reweighted(rows.hashes[held], after[held], before[held])
    return {"held_rows": held, "held_hashes": hashes}


def proof_of(result: Result) -> Proof:
    """The certificate of a result in C-form, and how it was reached."""
    from .model import Proof

    problem = result.problem
    return Proof(
        lam=problem.lam,
        total_weight=problem.total_weight,
        certificate=problem.in_form(result.certificate, "J")._asdict(),
        converged=bool(result.converged),
        stop_reason=result.reason.name,
        message=result.reason.message,
        epochs=result.epochs,
        visits=result.visits,
        seconds=sum(result.seconds),
    )


def dual_point(result: Result) -> Any:
    """The dual point of a result: a row of numbers, one for each row, or K such rows."""
    import numpy as np

    problem = result.problem
    several: tuple[int, ...] = problem.scores_per_row or (1,)
    if result.dual is None:
        return np.zeros((*several, problem.source.n))
    return result.dual.T.reshape(*several, -1)


def rho_of(bias: Bias) -> float:
    """The value of the constant feature; 1 for the kinds of bias that have none."""
    from ..core.bias import AugmentedBias

    return float(bias.rho) if isinstance(bias, AugmentedBias) else 1.0


def bias_words(kind: str, rho: float) -> str:
    """The kind of bias, for people."""
    words = {"none": "no bias", "augmented": f"augmented bias (rho = {rho:g})"}
    return words.get(kind, f"{kind} bias")


def scale_words(scale: str) -> str:
    """How rows are scaled, for people."""
    words = {
        "max-abs": "columns divided by their largest absolute values",
        "unit-rows": "rows divided by their lengths",
    }
    return words.get(scale, f"rows multiplied by {scale}")


def loss_spec(name: str, parameters: dict[str, float], defaults: dict[str, float] | None = None) -> str:
    """The loss as ``--loss`` takes it; parameters that have their default may be left out."""
    told = {key: value for key, value in parameters.items() if defaults is None or value != defaults[key]}
    rest = ",".join(f"{key}={value!r}" for key, value in told.items())
    return f"{name}:{rest}" if rest else name
