"""From the outcome of a fit to a model that can be saved."""

from __future__ import annotations

from dataclasses import fields
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from ..runtime.arrays import Floats, Words
    from ..training.outcome import Outcome
    from ..training.records import Record
    from .model import Model


def model_of(
    outcome: Outcome,
    last: Record,
    X: Any,
    *,
    classes: tuple[Any, Any] | None,
    C: float | None = None,
    threads: int = 1,
    zero_based: bool | None = None,
    duals: bool = True,
    feature_names: tuple[str, ...] | None = None,
    digests: tuple[str, ...] | None = None,
    n_inputs: int | None = None,
) -> Model:
    """A model of one row; ``last`` is the last record of the run, ``X`` the matrix it was trained on.

    ``digests`` are those of the rows, where they are known (see `fingerprint`).
    """
    import numpy as np
    import scipy.sparse as sp

    from ..core.losses import parameters_of
    from ..data.fingerprint import hashes_in_any_order, hashes_in_order
    from ..solvers.free_bias import FreeBias
    from .model import Model, Proof

    problem, expansion = outcome.problem, outcome.expansion
    dual = None
    if duals:
        dual = sp.csr_array(
            np.zeros((1, problem.source.n)) if outcome.dual is None else outcome.dual.reshape(1, -1)
        )
    solver: Any = outcome.solver.inner if isinstance(outcome.solver, FreeBias) else outcome.solver
    hashes = _row_hashes(problem.source, X)
    options = {item.name: getattr(solver, item.name) for item in fields(solver)}
    seed = options.pop("seed", 0)
    return Model(
        coef=outcome.coef.reshape(1, -1),
        intercept=np.array([outcome.intercept]),
        task=problem.loss.task,
        loss=problem.loss.name,
        loss_parameters=parameters_of(problem.loss),
        bias=problem.bias.kind,
        rho=problem.bias.rho or 1.0,  # models without a constant feature store 1
        classes=classes,
        C=problem.C if C is None else C,  # as given, free of rounding
        n_samples=problem.source.n,
        proofs=(
            Proof(
                lam=problem.lam,
                total_weight=problem.total_weight,
                certificate=problem.in_form(outcome.certificate, "J")._asdict(),
                converged=bool(outcome.converged),
                stop_reason=outcome.reason.name,
                message=outcome.reason.message,
                epochs=last.epochs,
                steps=last.visits,
                seconds=last.seconds,
            ),
        ),
        solver=solver.name,
        options=options,
        seed=seed,
        threads=threads,
        fingerprint=_fingerprint(problem.source, X, digests),
        rows_in_order=hashes_in_order(hashes),
        rows_in_any_order=hashes_in_any_order(hashes),
        dual_hashes=None if dual is None else hashes[dual.indices],
        dual=dual,
        zero_based=zero_based,
        feature_names=feature_names,
        expand=None if expansion is None else expansion.name,
        hash_bits=getattr(expansion, "bits", None),
        n_inputs=None if expansion is None else n_inputs,
    )


def _fingerprint(source: Any, X: Any, digests: tuple[str, ...] | None) -> str:
    from ..data.fingerprint import combined, fingerprint

    if digests is None or source.in_memory:
        return fingerprint(X, *_labelled(source), digests=digests)
    y, weight = _labelled(source)
    return combined(digests, [y], [weight])


def _row_hashes(source: Any, X: Any) -> Words:
    """Of the rows before any expansion: those of a store that stayed on disk take one more pass over it."""
    import numpy as np

    from ..data.chunks import OnDisk
    from ..data.fingerprint import row_hashes
    from ..data.formats.arrow.store import Store

    if not isinstance(X, OnDisk):
        return row_hashes(X, *_labelled(source))
    blocks = Store(source.feed.name).blocks()
    return np.concatenate([row_hashes(data.X, source.targets(data.y), data.weight) for data in blocks])


def _labelled(source: Any) -> tuple[Floats, Floats]:
    """The targets and weights of all rows."""
    import numpy as np

    if source.in_memory:
        return source.y, source.weight
    parts = [source.feed.labelled(k) for k in range(source.feed.chunks)]
    y = np.concatenate([source.targets(labels) for labels, _ in parts])
    return y, np.concatenate([np.ones(labels.size) if weight is None else weight for labels, weight in parts])


def bias_words(kind: str, rho: float) -> str:
    """The kind of bias for people."""
    words = {"none": "no bias", "augmented": f"augmented bias (rho = {rho:g})"}
    return words.get(kind, f"{kind} bias")


def loss_spec(name: str, parameters: dict[str, float], defaults: dict[str, float] | None = None) -> str:
    """The loss as ``--loss`` takes it; parameters that have their default may be left out."""
    told = {key: value for key, value in parameters.items() if defaults is None or value != defaults[key]}
    rest = ",".join(f"{key}={value!r}" for key, value in told.items())
    return f"{name}:{rest}" if rest else name
