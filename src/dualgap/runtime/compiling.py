"""Time spent on compiling kernels, told apart from the time of the work that needs them.

Numba compiles a kernel, or loads it from its cache, within the first call that needs it. ``runtime/jit.py``
reports when the process begins and ends to do so, in whichever thread; everybody else asks here, and does not
need Numba for it. Several threads that compile, or wait for each other to, count once.
"""

from __future__ import annotations

import threading
import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from typing import NamedTuple

_lock = threading.Lock()
_active = 0  # threads that compile or wait for the compiler; calls may be nested
_since = 0.0  # when the first of them began
_seconds = 0.0  # in all spans that have ended
_listeners: list[Callable[[], None]] = []


def began() -> None:
    """The compiler, or the cache of compiled kernels, is at work from now on."""
    global _active, _since
    with _lock:
        if _active == 0:
            _since = time.perf_counter()
        _active += 1


def ended() -> None:
    """What ``began`` is over."""
    global _active, _seconds
    with _lock:
        _active -= 1
        if _active == 0:
            _seconds += time.perf_counter() - _since


def compile_seconds() -> float:
    """Seconds that this process has spent on compiling kernels or loading compiled ones."""
    with _lock:
        return _seconds + (time.perf_counter() - _since if _active else 0.0)


def announce() -> None:
    """Tell whoever listens that a kernel is being compiled, and not found in the cache."""
    for listener in tuple(_listeners):
        listener()


@contextmanager
def announced_to(listener: Callable[[], None]) -> Iterator[None]:
    """Call a function whenever the compilation of a kernel begins."""
    _listeners.append(listener)
    try:
        yield
    finally:
        _listeners.remove(listener)


class Elapsed(NamedTuple):
    """Seconds of work, and of compiling in the meantime."""

    working: float
    compiling: float


class Stopwatch:
    """Measures from the moment it is made."""

    def __init__(self) -> None:
        self._began, self._compiled = time.perf_counter(), compile_seconds()

    def elapsed(self) -> Elapsed:
        """Seconds since then."""
        compiling = compile_seconds() - self._compiled
        return Elapsed(max(0.0, time.perf_counter() - self._began - compiling), compiling)
