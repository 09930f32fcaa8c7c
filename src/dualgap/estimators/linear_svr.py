"""``LinearSVR``: linear support vector regression with a certificate."""

from __future__ import annotations

from typing import Any, ClassVar

from ..core.losses import Loss
from ._docs import documented
from ._parameters import FLAG, Kind, one_of
from ._peers import Peer
from ._regressor import LinearRegressorBase

_LOSSES = ("epsilon_insensitive", "squared_epsilon_insensitive")


@documented
class LinearSVR(LinearRegressorBase):
    """Linear support vector regression that says how good its solution is.

    Minimises ``1/2 |w|^2 + C sum_i c_i max(0, |s_i - y_i| - epsilon)`` (or its square) with ``s_i = <w, x_i>
    + b``, until it is proven that the objective is at most ``tol`` (a fraction) above its minimum.
    ``LinearSVR(bias="augmented")`` minimises what scikit-learn's ``LinearSVR()`` does.

    Parameters
    ----------
    epsilon : float, default=0.0
        Residuals up to this cost nothing.
    {tol}
    {C}
    {alpha}
    loss : {"epsilon_insensitive", "squared_epsilon_insensitive"}, default="epsilon_insensitive"
        The loss, or its square.
    dual : {"auto", True, False}, default="auto"
        Accepted for scikit-learn's sake, and without effect: both problems are solved at once.
    {bias}
    {solver}
    {max_iter}
    {early_stopping}
    {warm_start}
    {random_state}
    {callbacks}

    Attributes
    ----------
    {coef_targets}
    {proofs}
    {dual_}
    {n_iter_}
    {names}

    Examples
    --------
    >>> from sklearn.datasets import make_regression
    >>> from dualgap.estimators import LinearSVR
    >>> X, y = make_regression(n_features=4, noise=1.0, random_state=0)
    >>> model = LinearSVR(C=10.0, random_state=0).fit(X, y)
    >>> model.certificate_[0].relative_gap <= 1e-3
    True
    >>> model.score(X, y) > 0.9
    True
    """

    _intercept_is_array: ClassVar[bool] = True
    _kinds: ClassVar[dict[str, Kind]] = {
        "dual": FLAG | one_of("auto"),
        "loss": one_of(*_LOSSES, *(name.replace("_", "-") for name in _LOSSES)),
    }

    def __init__(
        self,
        *,
        epsilon: float = 0.0,
        tol: float = 1e-3,
        C: float = 1.0,
        alpha: float | None = None,
        loss: str = "epsilon_insensitive",
        dual: str | bool = "auto",
        fit_intercept: bool = True,
        bias: str = "exact",
        intercept_scaling: float = 1.0,
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
            tol=tol,
            C=C,
            alpha=alpha,
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
        self.epsilon = epsilon
        self.loss = loss
        self.dual = dual
        self.bias = bias
        self.intercept_scaling = intercept_scaling

    def _peer(self) -> Peer:
        parameters = {"C": self.C, "epsilon": self.epsilon, "fit_intercept": self.fit_intercept}
        return Peer("sklearn.svm", "LinearSVR", parameters)

    def _loss_spec(self) -> str | Loss:
        return f"{self.loss}:epsilon={float(self.epsilon)!r}"
