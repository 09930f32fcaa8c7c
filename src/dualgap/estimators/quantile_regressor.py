"""``QuantileRegressor``: conditional quantiles with a certificate."""

from __future__ import annotations

from typing import Any

from ..core.losses import Loss
from ._docs import documented
from ._peers import Peer
from ._regressor import LinearRegressorBase
from ._strengths import Strength, by_alpha


@documented
class QuantileRegressor(LinearRegressorBase):
    """Linear quantile regression that says how good its solution is.

    Minimises ``alpha/2 |w|^2 + 1/N sum_i c_i rho(y_i - s_i)`` with ``s_i = <w, x_i> + b``, ``N = sum c_i``
    and the pinball loss ``rho(z) = max(q z, (q - 1) z)`` at ``q = quantile``, until it is proven to be at
    most ``tol`` (a fraction) above its minimum. **The penalty is l2**: scikit-learn's ``QuantileRegressor``
    has an l1 penalty (``alpha |w|_1``) and a linear program. Without a penalty the two would agree.

    Parameters
    ----------
    quantile : float, default=0.5
        The quantile, between 0 and 1. 0.5 is the median: least absolute deviations.
    alpha : float, default=1e-4
        The strength of the penalty: positive.
    C : float, default=None
        The other way to say it: ``C = 1/(alpha N)``, the objective then being ``1/2 |w|^2 + C sum_i c_i
        rho(y_i - s_i)``. Give C or alpha.
    {tol}
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
    >>> from dualgap.estimators import QuantileRegressor
    >>> rng = np.random.default_rng(0)
    >>> X = rng.uniform(size=(400, 1))
    >>> y = X[:, 0] + rng.exponential(size=400)
    >>> model = QuantileRegressor(quantile=0.9, random_state=0).fit(X, y)
    >>> bool(abs(np.mean(y <= model.predict(X)) - 0.9) < 0.01)
    True
    """

    def __init__(
        self,
        *,
        quantile: float = 0.5,
        alpha: float = 1e-4,
        C: float | None = None,
        tol: float = 1e-3,
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
        self.quantile = quantile

    def _peer(self) -> Peer:
        return Peer("sklearn.linear_model", "QuantileRegressor", {"quantile": self.quantile})

    def _loss_spec(self) -> str | Loss:
        return f"quantile:quantile={float(self.quantile)!r}"

    def _strength(self) -> Strength:
        return by_alpha(self.C, self.alpha, 1e-4)
