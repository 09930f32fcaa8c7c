"""scikit-learn's protocol of callbacks (experimental there, from 1.9 on), in this one file.

``estimator.set_callbacks(...)`` takes callbacks such as ``sklearn.callback.ProgressBar``; a search or a
pipeline hands its own on. A fit is a task with one subtask for each model, and that one a subtask for each
certificate, whose ``metadata`` is the record (epochs, gap...). A hook that returns True ends the run of that
model. The hooks are given no data and no fitted estimator. Earlier versions of scikit-learn have no such
thing; the estimators' own parameter ``callbacks`` is there with all of them.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import TYPE_CHECKING, Any, Self, TypeVar

from ..training.callbacks import Callback

if TYPE_CHECKING:
    from ..core.problem import Regularised
    from ..training.records import Record
    from ..training.run import Run
    from ..training.solver import AnySolver
    from ..training.stopping import Reason

F = TypeVar("F", bound=Callable[..., Any])

try:
    from sklearn.callback import CallbackSupportMixin as CallbackSupportMixin
    from sklearn.callback import with_callbacks as with_callbacks
except ImportError:  # scikit-learn before 1.9

    class CallbackSupportMixin:  # type: ignore[no-redef]
        """No support."""

    def with_callbacks(method: F) -> F:
        """The method itself."""
        return method


class Tasks:
    """The tasks of one fit, where the estimator has callbacks; else nothing happens."""

    def __init__(self, estimator: Any, models: int) -> None:
        self._estimator, self._root = estimator, None
        if vars(estimator).get("_skl_callbacks"):
            self._root = estimator._init_callback_context(max_subtasks=models, sequential_subtasks=False)

    def of(self, k: int) -> list[Callback]:
        """The callbacks of the run of model k."""
        return [] if self._root is None else [_ModelTask(self._estimator, self._root, k)]

    def __enter__(self) -> Self:
        if self._root is not None:
            self._root.call_on_fit_task_begin(estimator=self._estimator)
        return self

    def __exit__(self, kind: Any, *_: object) -> None:
        if self._root is not None and kind is None:
            self._root.call_on_fit_task_end(estimator=self._estimator)


class _ModelTask(Callback):
    """Tells scikit-learn's callbacks of the certificates of one run."""

    def __init__(self, estimator: Any, root: Any, k: int) -> None:
        self._estimator = estimator
        self._context = root.subcontext(task_name="model", task_id=k, max_subtasks=None)

    def begin(self, problem: Regularised, solver: AnySolver, auto_reason: str) -> None:
        self._context.call_on_fit_task_begin(estimator=self._estimator)

    def __call__(self, record: Record, run: Run) -> bool:
        """A certificate is a task that has ended."""
        if record.kind != "certified":
            return False
        task = self._context.subcontext(task_name="certificate")
        told = {"estimator": self._estimator, "metadata": record.as_dict()}
        task.call_on_fit_task_begin(**told)
        return bool(task.call_on_fit_task_end(**told))

    def close(self, reason: Reason | None) -> None:
        if reason is not None:
            self._context.call_on_fit_task_end(estimator=self._estimator)
