"""``HuberRegressor``: regression that outliers move little, with a certificate."""

from __future__ import annotations

from typing import Any, ClassVar

from ..core.losses import Loss
from ._docs import documented
from ._parameters import POSITIVE, Kind
from ._peers import Peer
from ._regressor import LinearRegressorBase
from ._strengths import Strength, by_sum


@documented
class HuberRegressor(LinearRegressorBase):
    """Linear regression with the Huber loss that says how good its solution is.

    Minimises ``sum_i c_i H(s_i - y_i) + alpha |w|^2`` with ``s_i = <w, x_i> + b``, ``H(z) = z^2`` up to
    ``|z| = epsilon`` and ``2 epsilon |z| - epsilon^2`` beyond, until it is proven to be at most ``tol`` (a
    fraction) above its minimum. **No scale is estimated**: scikit-learn's ``HuberRegressor`` divides
    residuals by a scale sigma that it finds too, here ``epsilon`` is in the units of y. The two agree where
    sigma is 1. The certificates are about ``1/2 |w|^2 + C sum_i c_i H(s_i - y_i)`` with ``C = 1/(2 alpha)``.

    Parameters
    ----------
    epsilon : float, default=1.35
        Residuals beyond this count as outliers, in the units of y.
    alpha : float, default=0.0001
        The strength of the penalty: positive.
    C : float, default=None
        The other way to say it: ``C = 1/(2 alpha)``. Give C or alpha.
    tol : float, default=1e-5
        The relative gap at which to stop: (primal - dual) / dual, rounding errors included.
    {fit_intercept}
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
    >>> import numpy as np
    >>> from dualgap.estimators import HuberRegressor
    >>> X = np.arange(20.0).reshape(-1, 1)
    >>> y = 3.0 * X[:, 0] + 1.0
    >>> y[3] = 1000.0
    >>> model = HuberRegressor(random_state=0).fit(X, y)
    >>> [round(float(value), 1) for value in (model.coef_[0], model.intercept_)]
    [3.0, 1.2]
    """

    _kinds: ClassVar[dict[str, Kind]] = {"epsilon": POSITIVE}

    def __init__(
        self,
        *,
        epsilon: float = 1.35,
        alpha: float = 0.0001,
        C: float | None = None,
        tol: float = 1e-5,
        fit_intercept: bool = True,
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
            alpha=alpha,
            C=C,
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
        self.epsilon = epsilon

    def _peer(self) -> Peer:
        return Peer("sklearn.linear_model", "HuberRegressor", {"epsilon": self.epsilon, "alpha": self.alpha})

    def _loss_spec(self) -> str | Loss:
        return f"huber:threshold={float(self.epsilon)!r}"

    def _strength(self) -> Strength:
        return by_sum(self.C, self.alpha, 0.0001, 0.5)
