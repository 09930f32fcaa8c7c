"""What a fitted estimator keeps of its runs: plain arrays, dicts and numbers, and no rows.

Certificates, proofs and models are made of these when they are asked for, so that a pickled or otherwise
stored estimator needs no classes of this library but its own.
"""

from __future__ import annotations

from typing import Any, NamedTuple

import numpy as np
import scipy.sparse as sp
from sklearn.base import BaseEstimator
from sklearn.utils.validation import check_is_fitted

from ..core.bias import Bias
from ..core.certificate import Certificate, in_form
from ..core.losses import Loss
from ..models.building import stated
from ..models.model import Model, Proof
from ..outcome import Outcome
from ..runtime.arrays import Floats
from ..runtime.errors import InputError
from ..training.outcome import Result
from ..training.solver import AnySolver
from ..training.stopping import Reason
from ._input import rows_of


class Trained(NamedTuple):
    """The part of an outcome that an estimator keeps. It refers to no data.

    ``coef`` has a row for each score, ``dual`` one number a row of data for each of them.
    """

    coef: Floats
    intercept: Floats
    dual: Floats
    certificate: Certificate
    history: list[dict[str, Any]]
    epochs: float
    reason: Reason
    converged: bool
    remark: str
    lam: float
    total_weight: float
    visits: int
    seconds: float
    held_rows: Any

    @classmethod
    def of(cls, outcome: Result, weight: Floats) -> Trained:
        """The part of an outcome that is kept; ``weight`` are the weights of all rows, those held out too."""
        problem = outcome.problem
        scores = np.shape(outcome.intercept) or (1,)
        dual = np.zeros((problem.source.n, *scores)) if outcome.dual is None else outcome.dual
        held = np.flatnonzero((weight > 0.0) & (problem.source.weight == 0.0))
        intercept = np.atleast_1d(outcome.intercept)
        if intercept.size > 1 and problem.bias.kind == "exact":  # all K may move together: let their sum be 0
            intercept = intercept - intercept.mean()
        return cls(
            np.atleast_2d(outcome.coef),
            intercept,
            np.ascontiguousarray(dual.T).reshape(*scores, -1),
            outcome.certificate,
            [record.as_dict() for record in outcome.trace],
            outcome.epochs,
            outcome.reason,
            outcome.converged,
            outcome.remark,
            problem.lam,
            problem.total_weight,
            outcome.visits,
            sum(outcome.seconds),
            held,
        )

    @property
    def proof(self) -> dict[str, Any]:
        """The fields of the `Proof` that a model keeps of it; the certificate is in the form of the run."""
        return {
            "lam": self.lam,
            "total_weight": self.total_weight,
            "certificate": self.certificate._asdict(),
            "converged": bool(self.converged),
            "stop_reason": self.reason.name,
            "message": self.reason.message,
            "epochs": self.epochs,
            "visits": self.visits,
            "seconds": self.seconds,
        }


class Origin(NamedTuple):
    """How the models of an estimator came about, from the first of its runs. It refers to no data."""

    loss: Loss
    bias: Bias
    solver: AnySolver
    C: float
    auto_reason: str
    date: str | None
    offsets: bool

    @classmethod
    def of(cls, outcome: Result, C: float | None) -> Origin:
        """What is kept of an outcome; ``C`` is as the user gave it, if that was given."""
        assert isinstance(outcome, Outcome)  # as ``job`` makes it
        problem = outcome.problem
        own = problem.C if C is None else C
        told = outcome.auto_reason, outcome.date, outcome.offsets
        return cls(problem.loss, problem.bias, outcome.solver, own, *told)

    def fields(self, threads: int) -> dict[str, Any]:
        """The fields of a `Model` that say it."""
        told = stated(self.loss, self.bias, self.solver)
        told["offsets"] = self.offsets
        return {
            "C": self.C,
            "threads": threads,
            "auto_reason": self.auto_reason,
            "trained": self.date,
            **told,
        }


class Fitted(BaseEstimator):  # type: ignore[misc]
    """The fitted attributes of all estimators, and what is made of them."""

    coef_: Any
    intercept_: Any
    dual_: Floats
    history_: list[list[dict[str, Any]]]
    gap_: Floats
    objective_: Floats
    dual_objective_: Floats
    n_features_in_: int
    _certificates: list[dict[str, Any]]
    _proofs: list[dict[str, Any]]
    _origin: dict[str, Any]
    _n_samples: int
    _held_rows: Any
    _class_weight: tuple[float, ...] | None = None
    _absent: tuple[Any, ...] = ()

    @property
    def certificate_(self) -> list[Certificate]:
        """The proofs: one for each row of ``coef_``, or one for all of them where they were trained at
        once.
        """
        check_is_fitted(self, "coef_")
        return [Certificate(**fields) for fields in self._certificates]

    def _keep(self, models: list[Trained]) -> None:
        """Set what is kept of all models; the subclass sets ``coef_`` and ``intercept_``."""
        self.history_ = [model.history for model in models]
        self._certificates = [model.certificate._asdict() for model in models]
        self._proofs = [model.proof for model in models]
        self.objective_ = np.array([model.certificate.primal for model in models])
        self.dual_objective_ = np.array([model.certificate.dual for model in models])
        self.gap_ = np.array([model.certificate.gap for model in models])
        self._n_samples = models[0].dual.shape[1]
        self._held_rows = models[0].held_rows if models[0].held_rows.size else None

    def _weights(self) -> tuple[Floats, Floats]:
        """A row of weights and an intercept for each score, however ``coef_`` is stored."""
        check_is_fitted(self, "coef_")
        return np.atleast_2d(dense(self.coef_)), np.atleast_1d(np.asarray(self.intercept_, dtype=np.float64))

    def _labels(self) -> tuple[Any, ...] | None:
        """The classes behind the scores, as plain values; None for regression."""
        return None

    def _task(self) -> str | None:
        """The task of the model, where the loss does not tell it."""
        return None

    def to_model(self, X: Any = None, y: Any = None, sample_weight: Any = None) -> Model:
        """The fitted estimator as a ``dualgap.Model``, with its certificates: to be saved, and to be verified
        by anybody who has the training rows.

        An estimator keeps no rows, so its model does not know them: ``Model.verify`` and ``dualgap certify``
        judge it by what they recompute, from the training rows in their order. Given these rows here, the
        model gets their fingerprints, and is verified from them in any order. Without ``keep_dual=True`` the
        model has no dual point, and what can be proven of it anew is a weaker bound.

        Parameters
        ----------
        X : array or sparse matrix of shape (n_samples, n_features), default=None
            The training rows.
        y : array of shape (n_samples,), default=None
            Their labels.
        sample_weight : array of shape (n_samples,), default=None
            Their weights, as given to ``fit``.

        Returns
        -------
        Model
            ``predict``, ``decision_function``, ``evaluate``, ``verify``, ``save``.
        """
        coef, intercept = self._weights()
        if not self._proofs:
            raise InputError(
                f"this {type(self).__name__} was trained by partial_fit, which proves nothing: call fit"
            )
        labels = self._labels()
        if labels is None and coef.shape[0] > 1:
            raise InputError(
                f"{coef.shape[0]} targets are {coef.shape[0]} models: fit one target at a time to get each"
            )
        dual = vars(self).get("dual_")
        names, task = getattr(self, "feature_names_in_", None), self._task()
        model = Model(
            coef=coef,
            intercept=intercept,
            classes=labels,
            n_samples=self._n_samples,
            proofs=tuple(map(_proof, self._proofs)),
            dual=None if dual is None else sp.csr_array(dual),
            feature_names=None if names is None else tuple(map(str, names)),
            class_weight=self._class_weight,
            absent=self._absent,
            held_rows=self._held_rows,
            **(self._origin if task is None else {**self._origin, "task": task}),
        )
        if X is None and y is None and sample_weight is None:
            return model
        return model.identified(rows_of(self, X, training=False), y, sample_weight)

    def sparsify(self) -> Any:
        """Store ``coef_`` as a sparse matrix, which takes less memory where most weights are 0.

        Returns
        -------
        self
            The estimator itself.
        """
        check_is_fitted(self, "coef_")
        self.coef_ = sp.csr_matrix(self.coef_)
        return self

    def densify(self) -> Any:
        """Store ``coef_`` as an array, as ``fit`` leaves it.

        Returns
        -------
        self
            The estimator itself.
        """
        check_is_fitted(self, "coef_")
        self.coef_ = dense(self.coef_)
        return self


def _proof(fields: dict[str, Any]) -> Proof:
    """A proof as models keep it, with its certificate in J form."""
    certificate = in_form(Certificate(**fields["certificate"]), "J", fields["lam"])
    return Proof(**{**fields, "certificate": certificate._asdict()})


def dense(matrix: Any) -> Any:
    """A matrix, sparse or not, as an array."""
    found: Any = matrix
    return found.toarray() if sp.issparse(matrix) else np.asarray(matrix)
