"""``LinearClassifier``: any loss and any solver, with a certificate."""

from __future__ import annotations

from typing import Any

from ..core.losses import Loss
from ._docs import documented
from ._streaming import StreamingClassifier


@documented
class LinearClassifier(StreamingClassifier):
    """Linear classification with any loss and any solver.

    Minimises ``1/2 |w|^2 + C sum_i c_i phi(s_i, y_i)`` with ``s_i = <w, x_i> + b`` until it is proven that
    the objective is at most ``tol`` (a fraction) above its minimum.

    Parameters
    ----------
    loss : str or loss, default="hinge"
        A loss that ``dualgap losses`` lists, with parameters after a colon. ``"multinomial"`` and
        ``"crammer-singer"`` train K classes at once; losses for regression take -1 and +1 for targets.
    solver : str, default="auto"
        A solver that ``dualgap solvers`` lists, or the one that suits the loss and the data.
    solver_options : dict, default=None
        Options of that solver, such as ``{"shrinking": False}``. ``{"paper": True}`` stands for those of the
        paper that it is from.
    {tol}
    {C}
    {alpha}
    {bias}
    {class_weight}
    {max_iter}
    {early_stopping}
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
    {names}

    Examples
    --------
    >>> from sklearn.datasets import make_classification
    >>> from dualgap.estimators import LinearClassifier
    >>> X, y = make_classification(n_features=5, random_state=0)
    >>> model = LinearClassifier(loss="modified-huber", solver="sdca", random_state=0).fit(X, y)
    >>> model.predict_proba(X[:2]).shape
    (2, 2)
    """

    def __init__(
        self,
        *,
        loss: str | Loss = "hinge",
        solver: str = "auto",
        solver_options: dict[str, Any] | None = None,
        tol: float = 1e-3,
        C: float = 1.0,
        alpha: float | None = None,
        fit_intercept: bool = True,
        bias: str = "exact",
        intercept_scaling: float = 1.0,
        class_weight: Any = None,
        max_iter: float = 1000,
        time_limit: float | None = None,
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
            solver=solver,
            solver_options=solver_options,
            tol=tol,
            C=C,
            alpha=alpha,
            fit_intercept=fit_intercept,
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
        self.loss = loss
        self.bias = bias
        self.intercept_scaling = intercept_scaling
        self.class_weight = class_weight
        self.output = output

    def _tasks(self) -> tuple[str, ...]:
        return ("classification", "regression", "classes")
