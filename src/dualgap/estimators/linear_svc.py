"""``LinearSVC``: linear classification with a certificate."""

from __future__ import annotations

from typing import Any, ClassVar

from ..core.losses import Loss
from ._classifier import LinearClassifierBase
from ._docs import documented
from ._parameters import FLAG, Kind, one_of
from ._peers import Peer


@documented
class LinearSVC(LinearClassifierBase):
    """Linear support vector classification that says how good its solution is.

    Minimises ``1/2 |w|^2 + C sum_i c_i phi(y_i (<w, x_i> + b))`` until it is proven that the objective is at
    most ``tol`` (a fraction) above its minimum. The weight ``c_i`` of a row is its sample weight times its
    class weight. With more than two classes, one such classifier for each class against the rest, or the
    joint problem of Crammer and Singer.

    ``LinearSVC(loss="squared_hinge", bias="augmented")`` minimises what scikit-learn's ``LinearSVC()`` does.

    Parameters
    ----------
    penalty : {"l2"}, default="l2"
        The only one there is, accepted for scikit-learn's sake.
    loss : str or loss, default="hinge"
        ``"hinge"`` (the support vector machine), ``"squared-hinge"``, ``"smooth-hinge"``, ``"logistic"`` or
        ``"modified-huber"``, with parameters after a colon (``"smooth-hinge:gamma=0.5"``), or a loss of
        ``dualgap.core.losses``. An underscore will do for the hyphen. scikit-learn's own default is
        ``"squared_hinge"``.
    dual : {"auto", True, False}, default="auto"
        Accepted for scikit-learn's sake, and without effect: both problems are solved at once.
    {tol}
    C : float, default=1.0
        How much the losses count against the regularisation. It multiplies their sum, so repeating all rows
        twice is doubling C. ``inf``, for the hinge loss, is the hard margin: the smallest ``1/2 |w|^2`` of
        all models without a loss.
    {alpha}
    multi_class : {"ovr", "crammer_singer"}, default="ovr"
        With more than two classes: one classifier for each against the rest, or all at once with the loss
        ``max(0, 1 + s_k - s_y)`` of the worst class k other than y, for which ``loss`` is ignored, as in
        scikit-learn. Of two classes the latter is the hinge loss at 2 C.
    {bias}
    {class_weight}
    {solver}
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

    Notes
    -----
    X is used as it is, without a copy, where it is C-ordered or CSR, in float32 or float64. Sums
    run in float64 in any case, in training and for scores.

    ``to_model`` gives a ``dualgap.Model``, which can be saved, and verified by anybody who has the training
    rows; ``to_sklearn`` a fitted estimator of scikit-learn with the same predictions.

    Ctrl-C ends ``fit`` with a ``KeyboardInterrupt``, which stops a grid search too, after the attributes have
    been set from the best model so far.

    Examples
    --------
    >>> from sklearn.datasets import make_classification
    >>> from dualgap.estimators import LinearSVC
    >>> X, y = make_classification(n_features=5, random_state=0)
    >>> model = LinearSVC(C=1.0, tol=1e-3, random_state=0).fit(X, y)
    >>> model.certificate_[0].relative_gap <= 1e-3
    True
    >>> model.score(X, y) > 0.9
    True
    """

    _kinds: ClassVar[dict[str, Kind]] = {"dual": FLAG | one_of("auto")}

    def __init__(
        self,
        *,
        penalty: str = "l2",
        loss: str | Loss = "hinge",
        dual: str | bool = "auto",
        tol: float = 1e-3,
        C: float = 1.0,
        alpha: float | None = None,
        multi_class: str = "ovr",
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
        output: str = "best",
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
        self.loss = loss
        self.dual = dual
        self.multi_class = multi_class
        self.bias = bias
        self.intercept_scaling = intercept_scaling
        self.class_weight = class_weight
        self.output = output

    def _peer(self) -> Peer:
        return Peer("sklearn.svm", "LinearSVC", {"C": self.C, "fit_intercept": self.fit_intercept})

    def _loss_spec(self) -> str | Loss:
        return "crammer-singer" if self.multi_class == "crammer_singer" else self.loss

    def _tasks(self) -> tuple[str, ...]:
        return ("classification", "classes") if self.multi_class == "crammer_singer" else ("classification",)
