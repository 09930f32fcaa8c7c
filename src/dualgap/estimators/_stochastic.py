"""What estimators by stochastic gradient descent share: scikit-learn's parameters as those of our solvers."""

from __future__ import annotations

from typing import Any, ClassVar, Self

from ..core.losses import Loss
from ..runtime.checks import shown
from ..runtime.errors import InputError
from ._base import LinearModel
from ._input import options_for
from ._parameters import NON_NEGATIVE, NONE, Kind, one_of, real
from ._strengths import Strength, by_alpha
from ._warm import Start

_ALPHA = 0.0001  # the default
_PARAMETERS = {  # of losses that ``epsilon`` is for
    "huber": "threshold",
    "epsilon-insensitive": "epsilon",
    "squared-epsilon-insensitive": "epsilon",
}
_POWERS = {0.5: "sqrt", 1.0: "inverse"}


class StochasticGradient(LinearModel):
    """What both estimators share: scikit-learn's parameters as those of our solvers."""

    penalty: str
    l1_ratio: float | None
    shuffle: bool
    epsilon: float
    learning_rate: str
    eta0: float
    power_t: float
    average: bool

    _kinds: ClassVar[dict[str, Kind]] = {
        "tol": NON_NEGATIVE | NONE,
        "alpha": NON_NEGATIVE,
        "learning_rate": one_of("optimal", "constant", "invscaling"),
        "power_t": real(0.0, 1.0, ends="[]"),
        "l1_ratio": real(0.0, 1.0, ends="[]") | NONE,
    }

    def fit(
        self,
        X: Any,
        y: Any,
        sample_weight: Any = None,
        *,
        coef_init: Any = None,
        intercept_init: Any = None,
        X_val: Any = None,
        y_val: Any = None,
        offset: Any = None,
    ) -> Self:
        """Train on rows and their labels or targets.

        Parameters
        ----------
        X : array or sparse matrix of shape (n_samples, n_features)
            The rows.
        y : array of shape (n_samples,) or (n_samples, n_outputs)
            Their labels or targets.
        sample_weight : array of shape (n_samples,) or float, default=None
            Weights of the rows, 1 by default. Weight 2 is the row twice, weight 0 is no row.
        coef_init, intercept_init : arrays, default=None
            The weights and intercepts to begin with.
        X_val, y_val : rows and labels or targets, default=None
            Held-out rows by which to stop early, in place of a part of X.
        offset : array of shape (n_samples,), default=None
            A known part of every score, which is not trained; for one score a row.

        Returns
        -------
        self
            The estimator itself.
        """
        given = coef_init is not None or intercept_init is not None
        start = Start(coef_init, intercept_init) if given else None
        return self._fit(X, y, sample_weight, X_val, y_val, start, offset)

    def _validate(self) -> None:
        super()._validate()
        if self.learning_rate == "invscaling" and self.power_t not in _POWERS:
            raise InputError(
                f"power_t={shown(self.power_t)} must be 0.5 or 1.0 with learning_rate='invscaling'"
            )

    def _loss_spec(self) -> str | Loss:
        name = self.loss.replace("_", "-") if isinstance(self.loss, str) else ""
        return f"{name}:{_PARAMETERS[name]}={float(self.epsilon)!r}" if name in _PARAMETERS else self.loss

    def _loss_factor(self) -> float:
        return 0.5 if self.loss == "huber" else 1.0  # scikit-learn has 1/2 z^2, ours has z^2

    def _strength(self) -> Strength:
        return by_alpha(self.C, self.alpha, _ALPHA)

    def _solver(self, X: Any = None) -> tuple[str, dict[str, Any]]:
        own = options_for(self.solver_options)
        if self.solver != "auto":
            return self.solver, own
        order: dict[str, Any] = {"bias_step": 1.0} if self.fit_intercept and self.bias == "exact" else {}
        order |= {} if self.shuffle else {"order": "given"}
        first = {"eta0": float(self.eta0)} if self.eta0 else {}
        if self.learning_rate == "optimal":
            return ("asgd" if self.average else "svmsgd"), {**order, **first, **own}
        kind = "constant" if self.learning_rate == "constant" else _POWERS[self.power_t]
        return "sgd", {"learning_rate": kind, "average": bool(self.average), **order, **first, **own}
