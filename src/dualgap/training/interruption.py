"""Ctrl-C, and the signal by which schedulers end programs, during training."""

from __future__ import annotations

import os
import signal
import threading
from dataclasses import KW_ONLY, dataclass, field
from typing import Any

from .stopping import INTERRUPTED, TERMINATED, Reason

_DEFAULTS: dict[signal.Signals, Any] = {
    signal.SIGINT: signal.default_int_handler,
    signal.SIGTERM: signal.SIG_DFL,
}
_REASONS = {signal.SIGINT: INTERRUPTED, signal.SIGTERM: TERMINATED}


@dataclass(eq=False)
class CtrlC:
    """While a run is on, the first Ctrl-C only raises a flag; a second one interrupts at once, as usual.

    With ``terminate`` the same is true of SIGTERM: that is for programs that save and exit once the run has
    ended. Elsewhere a program that is told to end must end, and not return from ``fit`` and go on.
    """

    _: KW_ONLY
    terminate: bool = False
    reason: Reason | None = field(default=None, init=False)  # to end the run, once a signal has come
    _taken: list[signal.Signals] = field(default_factory=list, init=False)

    @property
    def pressed(self) -> bool:
        """Whether the run is to end."""
        return self.reason is not None

    def __enter__(self) -> CtrlC:
        self.reason = None
        if threading.current_thread() is threading.main_thread():
            # an application's own handlers are left alone
            wanted = [signal.SIGINT, signal.SIGTERM] if self.terminate else [signal.SIGINT]
            self._taken = [which for which in wanted if signal.getsignal(which) is _DEFAULTS[which]]
        for which in self._taken:
            signal.signal(which, self._press)
        return self

    def _press(self, number: int, frame: Any) -> None:
        which = signal.Signals(number)
        if self.reason is None:
            self.reason = _REASONS[which]
        elif which is signal.SIGINT:
            raise KeyboardInterrupt
        else:
            signal.signal(which, signal.SIG_DFL)
            os.kill(os.getpid(), which)

    def __exit__(self, *_: object) -> None:
        for which in self._taken:
            signal.signal(which, _DEFAULTS[which])
        self._taken = []
