"""``LogisticRegression``: logistic and multinomial regression with a certificate."""

from __future__ import annotations

from typing import Any, ClassVar

import numpy as np

from ..core.bias import AugmentedBias, Bias
from ..core.losses import Loss
from ..runtime.checks import shown
from ..runtime.errors import InputError
from ._classifier import Encoded, LinearClassifierBase
from ._docs import documented
from ._parameters import FLAG, NON_NEGATIVE, NONE, Kind, one_of
from ._peers import Peer

# scikit-learn's names of solvers: the answer is that of "auto". LIBLINEAR regularises the intercept.
PEERS = ("lbfgs", "liblinear", "newton-cg", "newton-cholesky", "sag", "saga")


@documented
class LogisticRegression(LinearClassifierBase):
    """Logistic regression that says how good its solution is.

    Minimises ``1/2 |w|^2 + C sum_i c_i log(1 + exp(-y_i s_i))`` with ``s_i = <w, x_i> + b`` for two classes,
    and for K of them, all at once, ``1/2 sum_k |w_k|^2 + C sum_i c_i (log sum_k exp(s_ik) - s_iy)``, until it
    is proven that the objective is at most ``tol`` (a fraction) above its minimum. The weight ``c_i`` of a
    row is its sample weight times its class weight. These are the objectives of scikit-learn's
    ``LogisticRegression`` with an l2 penalty.

    Parameters
    ----------
    penalty : {"l2"}, default="l2"
        The only one there is, accepted for scikit-learn's sake; so is ``l1_ratio=0``.
    {C}
    {alpha}
    l1_ratio : float, default=0.0
        The part of an l1 penalty: 0.
    dual : bool, default=False
        Accepted for scikit-learn's sake, and without effect: both problems are solved at once.
    tol : float, default=1e-4
        The relative gap at which to stop: (primal - dual) / dual, rounding errors included. scikit-learn's
        bounds the gradient.
    multi_class : {"multinomial", "ovr"}, default="multinomial"
        With more than two classes: all at once, or one classifier for each class against the rest.
    {bias}
    {class_weight}
    solver : str, default="auto"
        A solver that ``dualgap solvers`` lists, or the one that suits the data. The names of scikit-learn's
        solvers stand for ``"auto"``; with ``"liblinear"`` the intercept is regularised, as it is there.
    solver_options : dict, default=None
        Options of the solver.
    {max_iter}
    {early_stopping}
    {warm_start}
    {random_state}
    {callbacks}

    Attributes
    ----------
    {coef_classes}
    {proofs}
    {dual_}
    n_iter_ : ndarray of shape (1,)
        Epochs, of the model that took the most, ``max_iter`` at most.
    {names}

    Examples
    --------
    >>> from sklearn.datasets import load_iris
    >>> from dualgap.estimators import LogisticRegression
    >>> X, y = load_iris(return_X_y=True)
    >>> model = LogisticRegression(tol=1e-6, random_state=0).fit(X, y)
    >>> model.certificate_[0].relative_gap <= 1e-6
    True
    >>> model.predict_proba(X[:1]).round(2).tolist()
    [[0.98, 0.02, 0.0]]
    """

    _kinds: ClassVar[dict[str, Kind]] = {
        "dual": FLAG,
        "l1_ratio": NON_NEGATIVE | NONE,
        "multi_class": one_of("multinomial", "ovr"),
    }

    def __init__(
        self,
        *,
        penalty: str = "l2",
        C: float = 1.0,
        alpha: float | None = None,
        l1_ratio: float | None = 0.0,
        dual: bool = False,
        tol: float = 1e-4,
        multi_class: str = "multinomial",
        fit_intercept: bool = True,
        bias: str = "exact",
        intercept_scaling: float = 1.0,
        class_weight: Any = None,
        solver: str = "auto",
        solver_options: dict[str, Any] | None = None,
        max_iter: float = 1000,
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
        super().__init__(
            C=C,
            alpha=alpha,
            tol=tol,
            fit_intercept=fit_intercept,
            solver=solver,
            solver_options=solver_options,
            max_iter=max_iter,
            time_limit=time_limit,
            early_stopping=early_stopping,
            validation_fraction=validation_fraction,
            n_iter_no_change=n_iter_no_change,
            warm_start=warm_start,
            keep_dual=keep_dual,
            random_state=random_state,
            n_jobs=n_jobs,
            callbacks=callbacks,
            verbose=verbose,
        )
        self.penalty = penalty
        self.l1_ratio = l1_ratio
        self.dual = dual
        self.multi_class = multi_class
        self.bias = bias
        self.intercept_scaling = intercept_scaling
        self.class_weight = class_weight

    def _validate(self) -> None:
        super()._validate()
        if self.l1_ratio:
            raise InputError(
                f"LogisticRegression(l1_ratio={shown(self.l1_ratio)}) is not offered: dualgap regularises by "
                "the squared l2 norm only; scikit-learn's LogisticRegression(solver='saga'), skglm and celer "
                "offer l1"
            )

    def _class_targets(self, y: Any, *given: Any) -> Encoded:
        encoded = super()._class_targets(y, *given)
        if self.solver == "liblinear" and len(encoded.classes) > 2:
            raise InputError(
                "The 'liblinear' solver does not support multiclass classification (n_classes >= 3). Either "
                "use another solver or wrap the estimator in a OneVsRestClassifier to keep applying a "
                "one-versus-rest scheme."
            )
        return encoded

    def _penalties(self) -> tuple[Any, ...]:
        return ("l2", "deprecated")

    def _peer(self) -> Peer:
        if self.multi_class == "ovr":
            return super()._peer()
        parameters = {"C": self.C, "fit_intercept": self.fit_intercept}
        return Peer("sklearn.linear_model", "LogisticRegression", parameters)

    def _loss_spec(self) -> str | Loss:
        return "multinomial" if self.multi_class == "multinomial" else "logistic"

    def _tasks(self) -> tuple[str, ...]:
        return ("classification", "classes")

    def _two_class_factor(self) -> float:
        return 1.0  # scikit-learn's objective of two classes

    def _solver(self, X: Any = None) -> tuple[str, dict[str, Any]]:
        name, options = super()._solver()
        return ("auto" if name in PEERS else name), options

    def _bias(self) -> Bias:
        if self.solver == "liblinear" and self.fit_intercept:
            return AugmentedBias(float(self.intercept_scaling))
        return super()._bias()

    def _conclude(self, *given: Any) -> None:
        super()._conclude(*given)
        self.n_iter_ = np.array([self.n_iter_], dtype=np.int32)
