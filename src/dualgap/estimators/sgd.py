"""``SGDClassifier`` and ``SGDRegressor``: stochastic gradient descent with a certificate."""

from __future__ import annotations

from typing import Any, ClassVar

from ..core.losses import Loss
from ._docs import documented
from ._stochastic import StochasticGradient
from ._streaming import StreamingClassifier, StreamingRegressor


@documented
class SGDClassifier(StochasticGradient, StreamingClassifier):
    """Linear classification by stochastic gradient descent, in memory or online (``partial_fit``).

    Minimises ``alpha/2 |w|^2 + 1/N sum_i c_i phi(s_i, y_i)`` with ``s_i = <w, x_i> + b`` and ``N = sum c_i``.
    ``fit`` proves how far its objective is above the minimum, and stops by that; ``partial_fit`` proves
    nothing.

    Parameters
    ----------
    loss : str or loss, default="hinge"
        ``"hinge"``, ``"squared_hinge"``, ``"log_loss"``, ``"modified_huber"`` or any other that ``dualgap
        losses`` lists; those for regression take -1 and +1 for targets.
    {sgd_penalty}
    {bias}
    {max_iter}
    {sgd_steps}
    {early_stopping}
    {class_weight}
    {warm_start}
    {random_state}
    {output}
    {callbacks}

    Attributes
    ----------
    {coef_classes}
    {proofs}
    {dual_}
    {n_iter_}
    t_ : float
        After ``partial_fit``: the rows seen so far, and one.
    {names}

    Examples
    --------
    >>> from sklearn.datasets import make_classification
    >>> from dualgap.estimators import SGDClassifier
    >>> X, y = make_classification(n_features=5, random_state=0)
    >>> model = SGDClassifier(loss="log_loss", alpha=0.01, random_state=0).fit(X, y)
    >>> bool(model.gap_[0] <= 0.01 * model.dual_objective_[0])
    True
    >>> SGDClassifier(random_state=0).partial_fit(X, y, classes=[0, 1]).t_
    101.0
    """

    def __init__(
        self,
        *,
        loss: str | Loss = "hinge",
        penalty: str = "l2",
        l1_ratio: float | None = 0.15,
        alpha: float = 0.0001,
        C: float | None = None,
        fit_intercept: bool = True,
        bias: str = "exact",
        intercept_scaling: float = 1.0,
        max_iter: float = 1000,
        time_limit: float | None = None,
        tol: float | None = 1e-2,
        shuffle: bool = True,
        epsilon: float = 0.1,
        learning_rate: str = "optimal",
        eta0: float = 0.0,
        power_t: float = 0.5,
        average: bool = False,
        solver: str = "auto",
        solver_options: dict[str, Any] | None = None,
        early_stopping: bool = False,
        validation_fraction: float = 0.1,
        n_iter_no_change: int = 5,
        class_weight: Any = None,
        warm_start: bool = False,
        keep_dual: bool = False,
        random_state: Any = None,
        n_jobs: int | None = None,
        output: str = "best",
        callbacks: Any = None,
        verbose: int = 0,
    ) -> None:
        super().__init__(
            alpha=alpha,
            C=C,
            fit_intercept=fit_intercept,
            max_iter=max_iter,
            time_limit=time_limit,
            tol=tol,
            solver=solver,
            solver_options=solver_options,
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
        self.loss = loss
        self.penalty = penalty
        self.l1_ratio = l1_ratio
        self.bias = bias
        self.intercept_scaling = intercept_scaling
        self.shuffle = shuffle
        self.epsilon = epsilon
        self.learning_rate = learning_rate
        self.eta0 = eta0
        self.power_t = power_t
        self.average = average
        self.class_weight = class_weight
        self.output = output

    def _tasks(self) -> tuple[str, ...]:
        return ("classification", "regression")


@documented
class SGDRegressor(StochasticGradient, StreamingRegressor):
    """Linear regression by stochastic gradient descent, in memory or online (``partial_fit``).

    Minimises ``alpha/2 |w|^2 + 1/N sum_i c_i phi(s_i, y_i)`` with ``s_i = <w, x_i> + b`` and ``N = sum c_i``.
    ``fit`` proves how far its objective is above the minimum, and stops by that; ``partial_fit`` proves
    nothing.

    Parameters
    ----------
    loss : str or loss, default="squared_error"
        ``"squared_error"``, ``"huber"``, ``"epsilon_insensitive"``, ``"squared_epsilon_insensitive"`` or any
        other for regression that ``dualgap losses`` lists.
    {sgd_penalty}
    {bias}
    {max_iter}
    {sgd_steps}
    {early_stopping}
    {warm_start}
    {random_state}
    {output}
    {callbacks}

    Attributes
    ----------
    {coef_targets}
    {proofs}
    {dual_}
    {n_iter_}
    t_ : float
        After ``partial_fit``: the rows seen so far, and one.
    {names}

    Examples
    --------
    >>> from sklearn.datasets import make_regression
    >>> from dualgap.estimators import SGDRegressor
    >>> X, y = make_regression(n_features=4, noise=1.0, random_state=0)
    >>> model = SGDRegressor(alpha=0.01, random_state=0).fit(X, y)
    >>> bool(model.gap_[0] <= 0.01 * model.dual_objective_[0])
    True
    """

    _intercept_is_array: ClassVar[bool] = True

    def __init__(
        self,
        *,
        loss: str | Loss = "squared_error",
        penalty: str = "l2",
        l1_ratio: float | None = 0.15,
        alpha: float = 0.0001,
        C: float | None = None,
        fit_intercept: bool = True,
        bias: str = "exact",
        intercept_scaling: float = 1.0,
        max_iter: float = 1000,
        time_limit: float | None = None,
        tol: float | None = 1e-2,
        shuffle: bool = True,
        epsilon: float = 0.1,
        learning_rate: str = "optimal",
        eta0: float = 0.0,
        power_t: float = 0.5,
        average: bool = False,
        solver: str = "auto",
        solver_options: dict[str, Any] | None = None,
        early_stopping: bool = False,
        validation_fraction: float = 0.1,
        n_iter_no_change: int = 5,
        warm_start: bool = False,
        keep_dual: bool = False,
        random_state: Any = None,
        n_jobs: int | None = None,
        output: str = "best",
        callbacks: Any = None,
        verbose: int = 0,
    ) -> None:
        super().__init__(
            alpha=alpha,
            C=C,
            fit_intercept=fit_intercept,
            max_iter=max_iter,
            time_limit=time_limit,
            tol=tol,
            solver=solver,
            solver_options=solver_options,
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
        self.loss = loss
        self.penalty = penalty
        self.l1_ratio = l1_ratio
        self.bias = bias
        self.intercept_scaling = intercept_scaling
        self.shuffle = shuffle
        self.epsilon = epsilon
        self.learning_rate = learning_rate
        self.eta0 = eta0
        self.power_t = power_t
        self.average = average
        self.output = output
