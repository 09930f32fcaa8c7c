"""``Outcome``: what ``fit`` hands back."""

from __future__ import annotations

import re
from collections.abc import Sequence
from dataclasses import dataclass, fields
from functools import cached_property
from typing import Any

from .data.dataset import Dataset
from .data.labels import listed, shown_label
from .data.scales import advice
from .models.building import model_of
from .models.model import Model
from .training.outcome import Result

_LISTED = 10  # labels that a remark names


@dataclass(frozen=True, eq=False)
class Outcome(Result):
    """A model with its proof and its history.

    ``coef``, ``intercept``, ``dual``, ``certificate``, ``trace``, ``reason``... are what the run found;
    ``model`` puts them together with labels and columns, to predict with, to be saved and to be verified.

    ``dual`` is the dual point behind the lower bound: one signed number beta_i a row (-beta_i is a slope of
    its loss), with ``w(beta) = 1/(lam N) sum_i c_i beta_i x_i = C sum_i c_i beta_i x_i``. It is None where no
    dual point beats the trivial one, beta = 0. ``LinearSVC.dual_``, ``Point.beta`` and model files have the
    same scale. For K classes at once (a joint loss) ``coef`` has shape (K, d), ``intercept`` (K,) and
    ``dual`` (n, K): row i is e_y - p with p in the simplex.
    """

    classes: Any = None  # the labels behind -1 and +1, or behind the K scores, where ``fit`` translated them
    expansion: Any = None  # what made the features of the rows, if anything did
    auto_reason: str = ""  # why ``solver="auto"`` chose this solver
    data: Dataset | None = None  # what it was trained on
    C: float | None = None  # as it was given; None: lam was
    date: str | None = None  # when training ended, in UTC
    offsets: bool = False  # the training rows had offsets

    @classmethod
    def of(cls, result: Result, **more: Any) -> Outcome:
        """A result with what the run did not know."""
        return cls(**{field.name: getattr(result, field.name) for field in fields(Result)}, **more)

    def __repr__(self) -> str:
        """In one line: it holds all rows."""
        source, gap = self.problem.source, self.certificate.relative_gap
        return (
            f"<Outcome of {self.solver.name}: {source.n:,} rows, {source.d:,} columns, "
            f"relative gap {gap:.3g}, {self.reason.name}>"
        )

    @property
    def advice(self) -> str:
        """What to do about a run that ended above the accuracy asked for: the likely cause, if that is the
        scale of the data, and the remedy; nothing where it converged. Rows on disk are not read again.
        """
        if self.converged:
            return ""
        remedy = self.reason.message.partition("; ")[2] or "train longer or try another solver"
        rows = self.data
        if rows is None or rows.X is None or not self.problem.source.in_memory:
            return f"You can {remedy}."
        if rows.schema.scaling is not None or rows.schema.expansion is not None:
            return f"You can {remedy}."
        return advice(rows.X, remedy, "scale='{}'")

    @cached_property
    def model(self) -> Model:
        """The model: ``predict``, ``decision_function``, ``evaluate``, ``save``, ``verify``."""
        assert self.data is not None  # as ``fit`` gives it
        return model_of(
            self, self.data, C=self.C, auto_reason=self.auto_reason, date=self.date, offsets=self.offsets
        )

    @cached_property
    def bounded_model(self) -> Model:
        """The model with the tightest bounds on the scores of the exact optimum (``decision_bounds``,
        ``decided``); they take some passes over the rows.
        """
        from .models.bounding import bounded

        return bounded(self.model, [self])


def remarks_on_classes(classes: Sequence[Any], outcomes: Sequence[Result]) -> list[str]:
    """The remarks on the models of some classes; what is said of several is said once, without figures."""
    remarked = [(label, one.remark) for label, one in zip(classes, outcomes, strict=True) if one.remark]
    if len(remarked) == 1:
        return [f"class {shown_label(remarked[0][0])}: {remarked[0][1]}"]
    told: dict[str, list[Any]] = {}
    for label, remark in remarked:
        told.setdefault(re.sub(r" \([^)]*\)", "", remark), []).append(label)
    return [
        f"class{'es' * (len(labels) > 1)} {listed(labels, _LISTED)}: {remark}"
        for remark, labels in told.items()
    ]
