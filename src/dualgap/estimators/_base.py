"""What all estimators share: train linear models on the same rows, and score rows with them."""

from __future__ import annotations

import math
import warnings
from collections.abc import Callable
from itertools import chain
from typing import Any, NamedTuple

import numpy as np
import scipy.sparse as sp
from sklearn.base import BaseEstimator
from sklearn.exceptions import ConvergenceWarning
from sklearn.utils.validation import check_is_fitted

from ..api import job
from ..core.bias import AugmentedBias, Bias, ExactBias, NoBias
from ..core.losses import Loss
from ..core.problem import Certificate, Point
from ..data.dataset import DataSpec, open_data
from ..data.sources import View
from ..models.building import stated
from ..models.model import Model, Proof
from ..models.scoring import scores_of
from ..outcome import Outcome
from ..preparing import checked_C
from ..runtime.arrays import Floats
from ..runtime.checks import flag, number, shown, whole
from ..runtime.errors import InputError
from ..training.callbacks import Progress
from ..training.interruption import CtrlC
from ..training.jobs import Job, run_jobs
from ..training.outcome import Result
from ..training.solver import AnySolver
from ..training.stopping import Reason
from . import _convergence
from ._input import options_for, rows_of, seed_of, thread_count


class Trained(NamedTuple):
    """The part of an outcome that an estimator keeps. It refers to no data."""

    coef: Floats
    intercept: float
    beta: Floats
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

    @classmethod
    def of(cls, outcome: Result) -> Trained:
        """The part of an outcome that is kept."""
        problem = outcome.problem
        return cls(
            outcome.coef,
            outcome.intercept,
            np.zeros(problem.source.n) if outcome.dual is None else outcome.dual,
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
        )

    @property
    def proof(self) -> Proof:
        """What a model keeps of it."""
        reason, certificate = self.reason, self.certificate._asdict()
        return Proof(
            self.lam,
            self.total_weight,
            certificate,
            bool(self.converged),
            reason.name,
            reason.message,
            self.epochs,
            self.visits,
            self.seconds,
        )


class Origin(NamedTuple):
    """How the models of an estimator came about: what ``to_model`` needs besides its attributes."""

    loss: Loss
    bias: Bias
    C: float
    solver: AnySolver
    auto_reason: str
    date: str | None
    threads: int


class LinearModel(BaseEstimator):  # type: ignore[misc]
    """A scikit-learn estimator whose models are trained by ``dualgap.fit``; subclasses say on which
    targets.
    """

    C: float
    tol: float
    fit_intercept: bool
    bias: str
    intercept_scaling: float
    solver: str
    solver_options: dict[str, Any] | None
    max_iter: float
    warm_start: bool
    random_state: Any
    n_jobs: int | None
    output: str
    verbose: int

    coef_: Floats
    intercept_: Floats
    dual_: Floats
    certificate_: list[Certificate]
    history_: list[list[dict[str, Any]]]
    n_iter_: int
    _origin: Origin
    _proofs: tuple[Proof, ...]
    _class_weight: tuple[float, ...] | None
    _absent: tuple[Any, ...]

    def __sklearn_tags__(self) -> Any:
        tags = super().__sklearn_tags__()
        tags.input_tags.sparse = True
        return tags

    def _bias(self) -> Bias:
        """The kind of bias."""
        if not flag("fit_intercept", self.fit_intercept):
            return NoBias()
        if not isinstance(self.bias, str) or self.bias not in ("exact", "augmented"):
            raise InputError(
                f"bias={shown(self.bias)} must be 'exact' or 'augmented' (fit_intercept=False is no bias)"
            )
        return (
            ExactBias()
            if self.bias == "exact"
            else AugmentedBias(number("intercept_scaling", self.intercept_scaling))
        )

    def _train(
        self, X: Any, target: Callable[[int], Floats], count: int, weight: Floats, loss: Loss
    ) -> tuple[list[Trained], bool]:
        """Models 0 to count - 1, number k trained on ``target(k)``; and whether Ctrl-C was pressed."""
        threads = thread_count(self.n_jobs)
        workers = min(threads, count)
        C = checked_C(self.C)
        tol = number("tol", self.tol, zero=True)
        max_iter = number("max_iter", self.max_iter)
        bias, options = self._bias(), options_for(self.solver_options)
        seed = seed_of(self.random_state)
        warm = self._warm_points(count, *X.shape)
        verbose = whole("verbose", int(self.verbose) if isinstance(self.verbose, bool) else self.verbose, 0)
        data = open_data(DataSpec(X, weight, weight, threads=threads // workers), "regression")
        rows = data.source
        assert isinstance(rows, View)  # as X is
        callbacks = [Progress(tol)] if verbose and workers == 1 else []

        def prepared(k: int) -> Job:
            """Rows are checked once, whatever the number of models; each has its own targets."""
            return job(
                k,
                data._replace(source=rows.with_targets(target(k))),
                loss=loss,
                C=C,
                solver=self.solver,
                tol=tol,
                bias=bias,
                max_epochs=max_iter,
                seed=seed,
                output=self.output,
                callbacks=callbacks,
                warm=warm(k),
                **options,
            )

        jobs = chain([prepared(0)], map(prepared, range(1, count)))  # bad arguments are refused at once
        with CtrlC() as ctrl_c:
            models = []
            for k, outcome in run_jobs(jobs, threads=workers, ctrl_c=ctrl_c):
                models.append(Trained.of(outcome))
                if k == 0:
                    assert isinstance(outcome, Outcome)  # as ``job`` makes it
                    how = outcome.solver, outcome.auto_reason, outcome.date, threads
                    self._origin = Origin(outcome.problem.loss, outcome.problem.bias, C, *how)
        return models, ctrl_c.pressed

    def _conclude(self, X: Any, models: list[Trained], pressed: bool, names: list[str]) -> None:
        """Set the fitted attributes; pass an interruption on, or warn of models that did not get to
        ``tol``.
        """
        self.coef_ = np.stack([model.coef for model in models])
        self.intercept_ = np.array([model.intercept for model in models])
        self.dual_ = np.stack([model.beta for model in models])
        self.certificate_ = [model.certificate for model in models]
        self.history_ = [model.history for model in models]
        self.n_iter_ = math.ceil(max(model.epochs for model in models))
        self._proofs = tuple(model.proof for model in models)
        if pressed:  # even if all models were just done: whoever fits many of them is to stop too
            raise KeyboardInterrupt("training was interrupted; the estimator holds the best model so far")
        self._warn(X, models, names)

    def _warm_points(self, count: int, n: int, d: int) -> Callable[[int], Point | None]:
        """The starting points: those of the last fit if ``warm_start`` asks for them and they fit."""
        if not flag("warm_start", self.warm_start) or not hasattr(self, "dual_"):
            return lambda k: None
        coef, intercept, dual = self.coef_, self.intercept_, self.dual_
        if dual.shape != (count, n) or coef.shape != (count, d):
            return lambda k: None
        return lambda k: Point(coef[k], float(intercept[k]), dual[k])

    def _warn(self, X: Any, models: list[Trained], names: list[str]) -> None:
        behind = [k for k, model in enumerate(models) if not model.converged]
        if not behind:
            return
        worst = max(behind, key=lambda k: models[k].certificate.relative_gap)
        model = models[worst]
        text = _convergence.message(
            type(self).__name__,
            X,
            certificate=model.certificate,
            tol=self.tol,
            epochs=model.epochs,
            max_iter=self.max_iter,
            reason=model.reason.name,
            who=""
            if len(models) == 1
            else f" ({len(behind)} of {len(models)} classes; the worst is {names[worst]})",
        )
        if model.remark:
            text = f"{text} Note that {model.remark}."
        warnings.warn(text, ConvergenceWarning, stacklevel=4)

    def to_model(self, X: Any = None, y: Any = None, sample_weight: Any = None) -> Model:
        """The fitted estimator as a ``dualgap.Model``, with its certificates: to be saved, and to be verified
        by anybody who has the training rows.

        An estimator keeps no rows, so its model does not know them: ``Model.verify`` and ``dualgap certify``
        judge it by what they recompute, from the training rows in their order. Given these rows here, the
        model gets their fingerprints, and is verified from them in any order.

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
        check_is_fitted(self, "coef_")
        origin, names = self._origin, getattr(self, "feature_names_in_", None)
        model = Model(
            coef=self.coef_,
            intercept=self.intercept_,
            classes=self._labels(),
            C=origin.C,
            n_samples=self.dual_.shape[1],
            proofs=self._proofs,
            threads=origin.threads,
            dual=sp.csr_array(self.dual_),
            feature_names=None if names is None else tuple(map(str, names)),
            class_weight=self._class_weight,
            absent=self._absent,
            auto_reason=origin.auto_reason,
            trained=origin.date,
            **stated(origin.loss, origin.bias, origin.solver),
        )
        if X is None and y is None and sample_weight is None:
            return model
        rows = rows_of(self, X, training=False)
        return model.identified(rows, y, sample_weight)

    def _labels(self) -> tuple[Any, ...] | None:
        """The classes behind the scores, as plain values; None for regression."""
        return None

    def _scores(self, X: Any) -> Any:
        """``<w, x> + b`` in float64 for every row and model, as a ``Model`` has it."""
        check_is_fitted(self, "coef_")
        return scores_of(rows_of(self, X, training=False), self.coef_, self.intercept_)
