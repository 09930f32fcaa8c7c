"""Small file systems in memory, where a process may mount them."""

from __future__ import annotations

import subprocess
import tempfile
from pathlib import Path

ROOM = 4_000_000  # bytes of one


def mounted(folder: Path) -> bool:
    """Mount a small file system in memory, if this process may."""
    command = ["mount", "-t", "tmpfs", "-o", f"size={ROOM}", "tmpfs", str(folder)]
    try:
        return subprocess.run(command, capture_output=True).returncode == 0
    except OSError:
        return False


def private() -> list[str]:
    """The words before a command that let it mount file systems which nobody else sees; none where that is
    not allowed. They are gone when the command ends, however it ends.
    """
    words = ["unshare", "--map-root-user", "--mount"]
    with tempfile.TemporaryDirectory() as folder:
        trial = [*words, "mount", "-t", "tmpfs", "tmpfs", folder]
        try:
            return words if subprocess.run(trial, capture_output=True).returncode == 0 else []
        except OSError:
            return []
