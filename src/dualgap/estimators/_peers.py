"""Fitted estimators as scikit-learn's own, for whatever knows only these."""

from __future__ import annotations

from importlib import import_module
from typing import Any, NamedTuple

from sklearn.utils.validation import check_is_fitted

from ..runtime.errors import InputError
from ._fitted import Fitted
from ._probabilities import LOGISTIC, MODIFIED_HUBER, MULTINOMIAL


class Peer(NamedTuple):
    """A class of scikit-learn, and parameters of it that predicting depends on or people look at."""

    module: str
    name: str
    parameters: dict[str, Any]


def peer_of_loss(loss: str) -> Peer:
    """A linear classifier of scikit-learn that has the probabilities of a loss, if it has any."""
    if loss == MULTINOMIAL:
        return Peer("sklearn.linear_model", "LogisticRegression", {})
    names = {LOGISTIC: "log_loss", MODIFIED_HUBER: "modified_huber"}
    return Peer("sklearn.linear_model", "SGDClassifier", {"loss": names.get(loss, "hinge")})


class ToSklearn(Fitted):
    """``to_sklearn``."""

    def _peer(self) -> Peer:
        """The class of scikit-learn that predicts as this one does."""
        raise NotImplementedError

    def to_sklearn(self) -> Any:
        """A fitted estimator of scikit-learn with the same weights, and so the same predictions.

        It has no certificate. Tools that know scikit-learn's classes alone (exporters, explainers) take it.

        Returns
        -------
        estimator
            Of the class of the same name where scikit-learn has one, else one with the same methods.
        """
        check_is_fitted(self, "coef_")
        if self._task() == "multilabel":
            raise InputError(
                "scikit-learn has no linear classifier of several labels a row; fit "
                "sklearn.multiclass.OneVsRestClassifier with this estimator inside, convert its estimators_"
            )
        module, name, parameters = self._peer()
        found = getattr(import_module(module), name)(**parameters)
        for attribute in ("classes_", "n_features_in_", "feature_names_in_", "n_iter_"):
            if attribute in vars(self):
                setattr(found, attribute, vars(self)[attribute])
        found.coef_, found.intercept_ = self.coef_, self.intercept_
        return found
