"""The scikit-learn face of the library."""

from .linear_svc import LinearSVC

__all__ = ["LinearSVC"]
