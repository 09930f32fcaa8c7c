"""``Perceptron``: Rosenblatt's, plain or averaged."""

from __future__ import annotations

import math
from typing import Any, ClassVar

from ..core.losses import Loss
from ..training.callbacks import Callback
from ._docs import documented
from ._parameters import NON_NEGATIVE, NONE, Kind, real
from ._peers import Peer
from ._streaming import StreamingClassifier
from ._strengths import Strength

_LAM = 1e-4  # of the SVM that certificates compare it with


class MistakesLevelOff(Callback):
    """Ends a run after an epoch without mistakes, or when epochs have had no fewer for a while."""

    def __init__(self, tol: float | None, patience: int) -> None:
        self._tol, self._patience = tol, patience

    def begin(self, problem: Any, solver: Any, auto_reason: str) -> None:
        """Nothing has been seen yet."""
        self._epoch, self._updates, self._best, self._since = 0.0, 0, math.inf, 0

    def __call__(self, record: Any, run: Any) -> Any:
        """Compare the mistakes of the last epoch with the fewest so far."""
        epochs = record.epochs - self._epoch
        if epochs < 1.0:
            return False
        mistakes = (record.updates - self._updates) / epochs
        self._epoch, self._updates = record.epochs, record.updates
        if mistakes == 0.0:
            return "no mistakes in an epoch"
        fewer = self._tol is not None and mistakes < (1.0 - self._tol) * self._best
        self._best, self._since = min(self._best, mistakes), 0 if fewer else self._since + 1
        return self._tol is not None and self._since >= self._patience and "the mistakes level off"


@documented
class Perceptron(StreamingClassifier):
    """The perceptron: ``w <- w + y x`` at each mistake.

    It minimises no objective: it ends with an epoch without mistakes, where the classes can be separated,
    and otherwise when the mistakes of an epoch level off. ``certificate_`` says how far its model is from
    being that of the SVM, ``5e-5 |w|^2 + 1/N sum_i c_i max(0, 1 - y_i s_i)``.

    Parameters
    ----------
    penalty : None, default=None
        There is none; accepted for scikit-learn's sake.
    l1_ratio : float or None, default=0.15
        Of ``penalty="elasticnet"`` in scikit-learn; accepted, and without effect.
    {fit_intercept}
    {max_iter}
    tol : float or None, default=1e-3
        An epoch counts as progress if its mistakes are fewer than the fewest so far by this part of them.
        None stops at ``max_iter`` only, or where there are no mistakes.
    shuffle : bool, default=True
        Whether rows are presented in a fresh random order in every epoch, or as they come.
    average : bool, default=False
        Whether the model is the mean of all iterates: the averaged perceptron.
    n_iter_no_change : int, default=5
        The number of epochs without progress after which to stop.
    {class_weight}
    warm_start : bool, default=False
        Whether ``fit`` begins at the last model.
    {random_state}
    {callbacks}

    Attributes
    ----------
    {coef_classes}
    {proofs}
    {n_iter_}
    t_ : float
        After ``partial_fit``: the rows seen so far, and one.
    {names}

    Examples
    --------
    >>> from sklearn.datasets import make_blobs
    >>> from dualgap.estimators import Perceptron
    >>> X, y = make_blobs(centers=[[0, 0], [4, 4]], random_state=0)
    >>> model = Perceptron(random_state=0).fit(X, y)
    >>> model.score(X, y)
    1.0
    """

    _kinds: ClassVar[dict[str, Kind]] = {
        "tol": NON_NEGATIVE | NONE,
        "l1_ratio": real(0.0, 1.0, ends="[]") | NONE,
    }
    output = "last"
    loss = "hinge"
    bias = "exact"

    def __init__(
        self,
        *,
        penalty: str | None = None,
        l1_ratio: float | None = 0.15,
        fit_intercept: bool = True,
        max_iter: float = 1000,
        time_limit: float | None = None,
        tol: float | None = 1e-3,
        shuffle: bool = True,
        average: bool = False,
        n_iter_no_change: int = 5,
        class_weight: Any = None,
        warm_start: bool = False,
        random_state: Any = None,
        n_jobs: int | None = None,
        callbacks: Any = None,
        verbose: int = 0,
    ) -> None:
        super().__init__(
            fit_intercept=fit_intercept,
            max_iter=max_iter,
            time_limit=time_limit,
            tol=tol,
            n_iter_no_change=n_iter_no_change,
            warm_start=warm_start,
            random_state=random_state,
            n_jobs=n_jobs,
            callbacks=callbacks,
            verbose=verbose,
        )
        self.penalty = penalty
        self.l1_ratio = l1_ratio
        self.shuffle = shuffle
        self.average = average
        self.class_weight = class_weight

    def _penalties(self) -> tuple[Any, ...]:
        return (None, "l2")

    def _strength(self) -> Strength:
        return {"lam": _LAM}

    def _peer(self) -> Peer:
        return Peer("sklearn.linear_model", "Perceptron", {"fit_intercept": self.fit_intercept})

    def _loss_spec(self) -> str | Loss:
        return "hinge"

    def _solver(self, X: Any = None) -> tuple[str, dict[str, Any]]:
        order = "permutation" if self.shuffle else "given"
        return "perceptron", {"order": order, "averaged": bool(self.average), "bias_step": 1.0}

    def _limits(self) -> dict[str, Any]:
        return {**super()._limits(), "tol": 0.0, "record_every": "1 epochs"}

    def _watchers(self, name: str, shown_alone: bool) -> list[Any]:
        rule = MistakesLevelOff(self.tol, int(self.n_iter_no_change))
        return [*super()._watchers(name, shown_alone), rule]

    def _asked_for(self, reason: str) -> bool:
        return reason != "max_epochs" or self.tol is None
