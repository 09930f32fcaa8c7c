"""``Ridge``: least squares with an l2 penalty and a certificate."""

from __future__ import annotations

from typing import Any, ClassVar

from ..core.losses import Loss
from ..runtime.errors import InputError
from ._docs import documented
from ._parameters import FLAG, NONE, POSITIVE, Kind
from ._peers import Peer
from ._regressor import LinearRegressorBase
from ._strengths import Strength, by_sum

# scikit-learn's names of solvers: the answer is that of "auto".
FACTORISED = 1000  # the smaller side of X up to which equations are factorised: the answer is all but exact
PEERS = ("svd", "cholesky", "lsqr", "sparse_cg", "sag", "saga", "lbfgs")


@documented
class Ridge(LinearRegressorBase):
    """Linear least squares with an l2 penalty that says how good its solution is.

    Minimises ``sum_i c_i (s_i - y_i)^2 + alpha |w|^2`` with ``s_i = <w, x_i> + b``, which is scikit-learn's
    objective, until it is proven to be at most ``tol`` (a fraction) above its minimum. The certificates are
    about ``1/2 |w|^2 + C sum_i c_i 1/2 (s_i - y_i)^2`` with ``C = 1/alpha``, which is that over 2 alpha.

    Parameters
    ----------
    alpha : float, default=1.0
        The strength of the penalty: positive. (Without one there is no lower bound to stop by;
        ``sklearn.linear_model.LinearRegression`` solves that.)
    C : float, default=None
        The other way to say it: ``alpha = 1/C``. Give C or alpha.
    {fit_intercept}
    copy_X : bool, default=True
        Accepted for scikit-learn's sake: X is never changed.
    tol : float, default=1e-10
        The relative gap at which to stop: (primal - dual) / dual, rounding errors included.
    positive : bool, default=False
        Accepted for scikit-learn's sake; True is refused.
    solver : str, default="auto"
        A solver that ``dualgap solvers`` lists, or the one that suits the data. The names of scikit-learn's
        solvers stand for ``"auto"``.
    solver_options : dict, default=None
        Options of the solver.
    max_iter : float, default=None
        The largest number of epochs for each model: 1000 unless given. An epoch is one visit per row of
        positive weight. Solvers may pass it by one step.
    time_limit : float, default=None
        Seconds after which training of a model ends with the best so far, and a warning that states its gap.
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
    >>> from sklearn.linear_model import Ridge as PeerRidge
    >>> from dualgap.estimators import Ridge
    >>> X, y = make_regression(n_features=4, noise=1.0, random_state=0)
    >>> model = Ridge(alpha=0.5).fit(X, y)
    >>> bool(abs(model.coef_ - PeerRidge(alpha=0.5).fit(X, y).coef_).max() < 1e-8)
    True
    """

    _kinds: ClassVar[dict[str, Kind]] = {"copy_X": FLAG, "positive": FLAG, "max_iter": POSITIVE | NONE}

    def __init__(
        self,
        *,
        alpha: float = 1.0,
        C: float | None = None,
        fit_intercept: bool = True,
        copy_X: bool = True,
        tol: float = 1e-10,
        positive: bool = False,
        solver: str = "auto",
        solver_options: dict[str, Any] | None = None,
        max_iter: float | None = None,
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
            fit_intercept=fit_intercept,
            tol=tol,
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
        self.copy_X = copy_X
        self.positive = positive

    def _validate(self) -> None:
        super()._validate()
        if self.positive:
            raise InputError(
                "Ridge(positive=True) is not offered: dualgap has no constraints on weights; "
                "sklearn.linear_model.Ridge(positive=True) has"
            )

    def _peer(self) -> Peer:
        return Peer(
            "sklearn.linear_model", "Ridge", {"alpha": self.alpha, "fit_intercept": self.fit_intercept}
        )

    def _loss_spec(self) -> str | Loss:
        return "squared:scale=0.5"

    def _strength(self) -> Strength:
        return by_sum(self.C, self.alpha, 1.0, 1.0)

    def _solver(self, X: Any = None) -> tuple[str, dict[str, Any]]:
        name, options = super()._solver()
        if name not in (*PEERS, "auto"):
            return name, options
        small = X is not None and min(X.shape) <= FACTORISED
        return ("newton" if small and not options else "auto"), options
