"""A model, ready to be saved, from the outcome of a run and the data it was trained on."""

from __future__ import annotations

from dataclasses import asdict
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:  # commands import this file at once, and Numba only when they need it
    from ..core.bias import Bias
    from ..data.dataset import Dataset
    from ..training.outcome import Outcome
    from ..training.records import Record
    from .model import Model


def model_of(
    outcome: Outcome,
    data: Dataset,
    *,
    C: float | None = None,
    last: Record | None = None,
    duals: bool = True,
) -> Model:
    """A model of two classes, or of regression.

    ``C`` is the parameter as the user gave it, free of rounding; ``last`` the last record of the run, if that
    is not the last certified one. ``duals=False`` leaves the dual variables out.
    """
    import numpy as np
    import scipy.sparse as sp

    from ..core.losses import parameters_of
    from ..data.chunks import OnDisk
    from ..data.fingerprint import hashes_in_any_order, hashes_in_order
    from ..data.sources import View
    from ..solvers.exact_bias import ExactBiasSolver
    from .model import Model

    problem, schema = outcome.problem, data.schema
    dual = None
    if duals:
        beta = np.zeros(problem.source.n) if outcome.dual is None else outcome.dual
        dual = sp.csr_array(beta.reshape(1, -1))
    solver: Any = outcome.solver.inner if isinstance(outcome.solver, ExactBiasSolver) else outcome.solver
    options = asdict(solver)
    seed = options.pop("seed", 0)
    assert isinstance(problem.source, View | OnDisk)
    rows = data._replace(source=problem.source).identity()
    expansion = schema.expansion
    return Model(
        coef=outcome.coef.reshape(1, -1),
        intercept=np.array([outcome.intercept]),
        task=problem.loss.task,
        loss=problem.loss.name,
        loss_parameters=parameters_of(problem.loss),
        bias=problem.bias.kind,
        rho=rho_of(problem.bias),
        classes=None if schema.labels is None else schema.labels.plain,
        C=problem.C if C is None else C,
        n_samples=problem.source.n,
        proofs=(_proof(outcome, last or outcome.trace[-1]),),
        solver=solver.name,
        options=options,
        seed=seed,
        threads=data.spec.threads,
        fingerprint=rows.fingerprint,
        rows_in_order=hashes_in_order(rows.hashes),
        rows_in_any_order=hashes_in_any_order(rows.hashes),
        dual_hashes=None if dual is None else rows.hashes[dual.indices],
        dual=dual,
        zero_based=schema.zero_based,
        feature_names=schema.feature_names,
        expand=None if expansion is None else expansion.name,
        hash_bits=None if expansion is None else expansion.bits,
        n_inputs=None if expansion is None else schema.n_columns,
    )


def _proof(outcome: Outcome, last: Record) -> Any:
    from .model import Proof

    problem = outcome.problem
    return Proof(
        lam=problem.lam,
        total_weight=problem.total_weight,
        certificate=problem.in_form(outcome.certificate, "J")._asdict(),
        converged=bool(outcome.converged),
        stop_reason=outcome.reason.name,
        message=outcome.reason.message,
        epochs=last.epochs,
        steps=last.visits,
        seconds=last.seconds,
    )


def rho_of(bias: Bias) -> float:
    """The value of the constant feature; 1 for the kinds of bias that have none."""
    from ..core.bias import AugmentedBias

    return float(bias.rho) if isinstance(bias, AugmentedBias) else 1.0


def bias_words(kind: str, rho: float) -> str:
    """The kind of bias, for people."""
    words = {"none": "no bias", "augmented": f"augmented bias (rho = {rho:g})"}
    return words.get(kind, f"{kind} bias")


def loss_spec(name: str, parameters: dict[str, float], defaults: dict[str, float] | None = None) -> str:
    """The loss as ``--loss`` takes it; parameters that have their default may be left out."""
    told = {key: value for key, value in parameters.items() if defaults is None or value != defaults[key]}
    rest = ",".join(f"{key}={value!r}" for key, value in told.items())
    return f"{name}:{rest}" if rest else name
