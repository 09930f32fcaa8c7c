"""The machine and the software that figures were taken with: figures mean nothing without them."""

from __future__ import annotations

import hashlib
import os
import platform
import subprocess
import time
from importlib.metadata import PackageNotFoundError, version
from pathlib import Path
from typing import Any

from . import HERE, ROOT


def describe() -> dict[str, Any]:
    """All that a reader needs to judge the figures."""
    return {
        "cpu": _cpu(),
        "cores": os.cpu_count(),
        "memory_gb": round(os.sysconf("SC_PAGE_SIZE") * os.sysconf("SC_PHYS_PAGES") / 2**30, 1),
        "system": f"{platform.system()} {platform.machine()}",
        "python": platform.python_version(),
        "libraries": {
            name: _version(name) for name in ("dualgap", "numpy", "scipy", "numba", "scikit-learn")
        },
        "commit": _commit(),
        "load": os.getloadavg()[0],
        "date": time.strftime("%Y-%m-%d"),
    }


def code_fingerprint() -> str:
    """Changes with the library or the harness: figures of different code do not belong in one table."""
    digest = hashlib.sha256()
    for path in sorted(
        [*(ROOT / "src" / "dualgap").rglob("*.py"), *HERE.rglob("*.py"), *HERE.glob("peers/*.txt")]
    ):
        digest.update(path.read_bytes())
    return digest.hexdigest()[:16]


def _cpu() -> str:
    try:
        lines = Path("/proc/cpuinfo").read_text().splitlines()
    except OSError:
        return platform.processor() or "unknown"
    return next(
        (line.partition(":")[2].strip() for line in lines if line.startswith("model name")), "unknown"
    )


def _version(name: str) -> str:
    try:
        return version(name)
    except PackageNotFoundError:
        return "not installed"


def _commit() -> str:
    def ask(*words: str) -> str:
        return subprocess.run(
            ["git", "-C", str(ROOT), *words], capture_output=True, text=True, check=True
        ).stdout

    try:
        changed = bool(ask("status", "--porcelain", "--", "src").strip())
        return ask("rev-parse", "--short", "HEAD").strip() + (" with changes" if changed else "")
    except (OSError, subprocess.CalledProcessError):
        return "unknown"
