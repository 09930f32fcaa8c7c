"""The scikit-learn face of the library."""

from .huber_regressor import HuberRegressor
from .linear_classifier import LinearClassifier
from .linear_regressor import LinearRegressor
from .linear_svc import LinearSVC
from .linear_svr import LinearSVR
from .logistic_regression import LogisticRegression
from .perceptron import Perceptron
from .quantile_regressor import QuantileRegressor
from .ridge import Ridge
from .sgd import SGDClassifier, SGDRegressor

__all__ = [
    "HuberRegressor",
    "LinearClassifier",
    "LinearRegressor",
    "LinearSVC",
    "LinearSVR",
    "LogisticRegression",
    "Perceptron",
    "QuantileRegressor",
    "Ridge",
    "SGDClassifier",
    "SGDRegressor",
]

# All that ``skops.io.load(file, trusted=...)`` must be told: fitted attributes are plain arrays and dicts.
TRUSTED_TYPES = tuple(f"{globals()[name].__module__}.{name}" for name in __all__)
