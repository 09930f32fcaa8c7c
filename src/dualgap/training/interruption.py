"""Ctrl-C during training."""

from __future__ import annotations

import signal
import threading
from typing import Any


class CtrlC:
    """While a run is on, the first Ctrl-C only raises a flag; a second one interrupts at once, as usual."""

    def __enter__(self) -> CtrlC:
        self.pressed = False
        self._before: Any = None
        self._here = threading.current_thread() is threading.main_thread()
        if self._here:
            self._before = signal.getsignal(signal.SIGINT)
            # an application's own handler is left alone
            self._here = self._before is signal.default_int_handler
        if self._here:
            signal.signal(signal.SIGINT, self._press)
        return self

    def _press(self, number: int, frame: Any) -> None:
        if self.pressed:
            raise KeyboardInterrupt
        self.pressed = True

    def __exit__(self, *_: object) -> None:
        if self._here:
            signal.signal(signal.SIGINT, self._before)
