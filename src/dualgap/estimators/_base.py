"""What all estimators share: train linear models on the same rows, and score rows with them."""

from __future__ import annotations

import math
import warnings
from collections.abc import Callable
from itertools import chain
from typing import Any, ClassVar, NamedTuple, Self

import numpy as np
from sklearn.exceptions import ConvergenceWarning

from ..api import job
from ..core.bias import AugmentedBias, Bias, ExactBias, NoBias
from ..core.losses import Loss
from ..data.dataset import Dataset, DataSpec, open_data
from ..data.labels import Labels
from ..data.sources import View
from ..models.scoring import scores_of, shifted
from ..runtime.arrays import Floats
from ..runtime.checks import shown
from ..runtime.errors import InputError
from ..training.interruption import CtrlC
from ..training.jobs import Job, run_jobs
from ..training.progress import Progress
from . import _convergence
from ._callbacks import CallbackSupportMixin, Tasks, with_callbacks
from ._certified import CertifiedScores
from ._display import Displayed
from ._fitted import Origin, Trained
from ._input import options_for, rows_of, seed_of, thread_count
from ._parameters import Kind, validate
from ._strengths import Strength, by_C, scaled
from ._warm import Points, Start, cold, given_points, hashes_of, warm_points

_PENALTIES = (
    "dualgap regularises by the squared l2 norm only; scikit-learn's SGDClassifier and "
    "LogisticRegression(solver='saga'), skglm and celer offer others"
)


class Targets(NamedTuple):
    """What the models of an estimator are trained on, besides the rows: ``of(k)`` are the targets of number
    k, ``names`` what warnings call them. A joint problem has one model of all ``labels``.
    """

    of: Callable[[int], Floats]
    names: list[str]
    numbers: Floats  # labels or targets of the rows as numbers, by which rows are known again
    labels: Labels | None = None
    held: Callable[[int], Dataset] | None = None  # rows for early stopping, with the targets of number k
    factor: float = 1.0  # of C
    offset: Any = None  # of the rows

    @property
    def models(self) -> int:
        """The number of models."""
        return len(self.names)


class LinearModel(CallbackSupportMixin, Displayed, CertifiedScores):  # type: ignore[misc]
    """A scikit-learn estimator whose models are trained by ``dualgap.fit``; subclasses say on which
    targets.
    """

    _kinds: ClassVar[dict[str, Kind]] = {}  # of parameters, where they are not the common ones

    loss: str | Loss
    n_iter_: Any
    _row_hashes: Any

    def __init__(
        self,
        *,
        C: float | None = None,
        alpha: float | None = None,
        tol: float | None = 1e-3,
        fit_intercept: bool = True,
        solver: str = "auto",
        solver_options: dict[str, Any] | None = None,
        max_iter: float | None = 1000,
        time_limit: float | None = None,
        early_stopping: bool = False,
        validation_fraction: float = 0.1,
        n_iter_no_change: int = 5,
        warm_start: bool = False,
        keep_dual: bool = False,
        random_state: Any = None,
        n_jobs: int | None = None,
        callbacks: Any = None,
        verbose: int = 0,
    ) -> None:
        self.C = C
        self.alpha = alpha
        self.tol = tol
        self.fit_intercept = fit_intercept
        self.solver = solver
        self.solver_options = solver_options
        self.max_iter = max_iter
        self.time_limit = time_limit
        self.early_stopping = early_stopping
        self.validation_fraction = validation_fraction
        self.n_iter_no_change = n_iter_no_change
        self.warm_start = warm_start
        self.keep_dual = keep_dual
        self.random_state = random_state
        self.n_jobs = n_jobs
        self.callbacks = callbacks
        self.verbose = verbose

    # parameters of some estimators, with the values that they have for all others
    bias: str = "exact"
    intercept_scaling: float = 1.0
    output: str = "best"

    def __sklearn_tags__(self) -> Any:
        tags = super().__sklearn_tags__()
        tags.input_tags.sparse = True
        return tags

    def _validate(self) -> None:
        """Refuse parameters that are not what they must be."""
        validate(self, self._kinds)
        penalty = getattr(self, "penalty", "l2")
        if penalty not in self._penalties():
            raise InputError(
                f"Unsupported set of arguments: {type(self).__name__}"
                f"({', '.join(f'{key}={shown(value)}' for key, value in self._penalty_words().items())}); "
                f"{_PENALTIES}"
            )

    def _penalties(self) -> tuple[Any, ...]:
        """The values that ``penalty`` may have."""
        return ("l2",)

    def _penalty_words(self) -> dict[str, Any]:
        """What an error about the penalty repeats."""
        given = self.get_params(deep=False)
        return {key: given[key] for key in ("penalty", "loss", "dual") if key in given}

    def _bias(self) -> Bias:
        """The kind of bias."""
        if not self.fit_intercept:
            return NoBias()
        return ExactBias() if self.bias == "exact" else AugmentedBias(float(self.intercept_scaling))

    def _strength(self) -> Strength:
        """How much is regularised, as ``fit`` takes it: C, or lam."""
        return by_C(self.C, self.alpha, 1.0)

    def _loss_spec(self) -> str | Loss:
        """The loss; for K classes it may be a joint one."""
        return self.loss

    def _loss_factor(self) -> float:
        """What C is multiplied by because the loss has another scale than scikit-learn's of the name."""
        return 1.0

    def _solver(self, X: Any = None) -> tuple[str, dict[str, Any]]:
        """The name of the solver for some rows, and its options."""
        return self.solver, options_for(self.solver_options)

    def _limits(self) -> dict[str, Any]:
        """When a run ends, as ``fit`` takes it."""
        return {"tol": self._tolerance(), "max_epochs": self._most_epochs(), "time_limit": self.time_limit}

    def _tolerance(self) -> float:
        """The relative gap at which to stop; None, where an estimator takes it, is 0."""
        return 0.0 if self.tol is None else float(self.tol)

    def _most_epochs(self) -> float:
        """The limit on epochs; None, where an estimator takes it, is the default of ``fit``."""
        return 1000.0 if self.max_iter is None else float(self.max_iter)

    def _watchers(self, name: str, shown_alone: bool) -> list[Any]:
        """The callbacks of a run; progress is shown of one run at a time."""
        told = list(self.callbacks or ())
        if not self.verbose or not shown_alone:
            return told
        return [*told, Progress(self._tolerance(), lines=True, label=name)]

    def _fit(
        self,
        X: Any,
        y: Any,
        sample_weight: Any,
        X_val: Any,
        y_val: Any,
        start: Start | None = None,
        offset: Any = None,
    ) -> Self:
        """Train, if need be from given weights."""
        raise NotImplementedError  # classifiers and regressors do

    @with_callbacks  # type: ignore[untyped-decorator]
    def _train(
        self, X: Any, targets: Targets, weight: Floats, loss: Loss, start: Start | None
    ) -> tuple[list[Trained], bool]:
        """All models; and whether Ctrl-C was pressed."""
        threads = thread_count(self.n_jobs)
        workers = min(threads, targets.models)
        strength, bias = scaled(self._strength(), targets.factor * self._loss_factor()), self._bias()
        solver, options = self._solver(X)
        seed, warm = seed_of(self.random_state), self._warm_points(X, targets, start)
        data = open_data(DataSpec(X, weight, weight, threads=threads // workers), "regression")
        rows, tasks = data.source, Tasks(self, targets.models)
        assert isinstance(rows, View)  # as X is
        if targets.labels is not None:
            data = data._replace(schema=data.schema._replace(labels=targets.labels))
        arguments = {
            "loss": loss, "solver": solver, "bias": bias, "seed": seed, "output": self.output,
            **strength, **self._limits(), **options,
        }  # fmt: skip

        def prepared(k: int) -> Job:
            """Rows are checked once, whatever the number of models; each has its own targets."""
            own = data._replace(source=rows.with_targets(targets.of(k)))
            name = targets.names[k] if targets.models > 1 else ""
            watchers = [*self._watchers(name, workers == 1), *tasks.of(k)]
            more = {"warm": warm(k), "callbacks": watchers, "offset": targets.offset}
            more |= self._validation(targets, k)
            return job(k, own, **arguments, **more)

        jobs = chain(  # bad arguments are refused at once
            [prepared(0)], map(prepared, range(1, targets.models))
        )
        with CtrlC() as ctrl_c, tasks:
            models = []
            for k, outcome in run_jobs(jobs, threads=workers, ctrl_c=ctrl_c):
                models.append(Trained.of(outcome, weight))
                if k == 0:
                    origin = Origin.of(outcome, strength.get("C"))
            pressed = ctrl_c.pressed
        self._origin = origin.fields(threads)
        return models, pressed

    def _validation(self, targets: Targets, k: int) -> dict[str, Any]:
        """The rows that a run is stopped by, as ``fit`` takes them: those given, or a part of all."""
        if targets.held is not None:
            return {"validation": targets.held(k), "patience": int(self.n_iter_no_change)}
        if not self.early_stopping:
            return {}
        return {
            "validation": float(self.validation_fraction),
            "patience": int(self.n_iter_no_change),
        }

    def _held_rows_of(
        self, X_val: Any, y_val: Any, targets_of: Callable[[Any], Callable[[int], Floats]]
    ) -> Callable[[int], Dataset] | None:
        """The rows that a user gives for early stopping, opened once for all models."""
        if X_val is None and y_val is None:
            return None
        if X_val is None or y_val is None:
            raise InputError("X_val and y_val belong together: give both, or neither")
        rows = rows_of(self, X_val, training=False)
        y = np.asarray(y_val)
        if y.shape[0] != rows.shape[0]:
            raise InputError(
                f"X_val has {rows.shape[0]} rows and y_val {y.shape[0]}; one label or target a row"
            )
        of = targets_of(y)
        data = open_data(DataSpec(rows, np.zeros(rows.shape[0]), None), "regression")
        source = data.source
        assert isinstance(source, View)
        return lambda k: data._replace(source=source.with_targets(of(k)))

    def _warm_points(self, X: Any, targets: Targets, start: Start | None) -> Points:
        """The starting points: those given, or those of the last fit if ``warm_start`` asks for them and they
        fit.
        """
        if start is not None:
            return given_points(start, targets.models, int(X.shape[1]))
        if not self.warm_start:
            self.__dict__.pop("_row_hashes", None)
            return cold
        now, kept = hashes_of(X, targets.numbers), vars(self)
        points: Points = cold
        if "dual_" in kept and "_row_hashes" in kept:
            coef, intercept = self._weights()
            joint = targets.labels is not None
            scores = len(targets.labels.classes) if targets.labels is not None else targets.models
            if coef.shape == (scores, X.shape[1]) and self.dual_.shape[0] == scores:
                points = warm_points(coef, intercept, self.dual_, self._row_hashes, now, joint=joint)
        self._row_hashes = now
        return points

    def _conclude(self, X: Any, models: list[Trained], pressed: bool, names: list[str]) -> None:
        """Set the fitted attributes; pass an interruption on, or warn of models that did not get to
        ``tol``.
        """
        self._set_weights(
            np.concatenate([model.coef for model in models]),
            np.concatenate([model.intercept for model in models]),
        )
        self._keep(models)
        self.__dict__.pop("dual_", None)
        if self.keep_dual or self.warm_start:
            self.dual_ = np.concatenate([model.dual for model in models])
        # a step under way is finished, even if it passes the limit
        self.n_iter_ = min(math.ceil(max(model.epochs for model in models)), math.ceil(self._most_epochs()))
        if pressed:  # even if all models were just done: whoever fits many of them is to stop too
            raise KeyboardInterrupt("training was interrupted; the estimator holds the best model so far")
        self._warn(X, models, names)

    def _set_weights(self, coef: Floats, intercept: Floats) -> None:
        """Set ``coef_`` and ``intercept_`` in the shapes that this kind of estimator has them in."""
        self.coef_, self.intercept_ = coef, intercept

    def _warn(self, X: Any, models: list[Trained], names: list[str]) -> None:
        behind = [
            k for k, model in enumerate(models) if not (model.converged or self._asked_for(model.reason.name))
        ]
        if not behind:
            return
        worst = max(behind, key=lambda k: models[k].certificate.relative_gap)
        model = models[worst]
        text = _convergence.message(
            type(self).__name__,
            X,
            certificate=model.certificate,
            tol=self._tolerance(),
            epochs=model.epochs,
            max_iter=self._most_epochs(),
            reason=model.reason.name,
            who=""
            if len(models) == 1
            else f" ({len(behind)} of {len(models)} models; the worst is {names[worst]})",
        )
        if model.remark:
            text = f"{text} Note that {model.remark}."
        warnings.warn(text, ConvergenceWarning, stacklevel=5)

    def _asked_for(self, reason: str) -> bool:
        """Whether a run ended above its tolerance because the user said so."""
        return reason in _convergence.ASKED_FOR or (self._tolerance() == 0.0 and reason == "max_epochs")

    def _scores(self, X: Any, offset: Any = None) -> Any:
        """``<w, x> + b`` in float64 for every row and model, as a ``Model`` has it, with offsets if given."""
        coef, intercept = self._weights()
        return shifted(scores_of(rows_of(self, X, training=False), coef, intercept), offset)
