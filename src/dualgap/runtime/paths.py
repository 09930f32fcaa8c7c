"""What a name stands for, told without a traceback whatever the name is."""

from __future__ import annotations

import os
import stat
from pathlib import Path
from typing import Literal

from .errors import InputError

Kind = Literal["missing", "folder", "file", "device"]


def as_path(path: object) -> Path:
    """The path that a caller names; anything that cannot be one is refused."""
    if not isinstance(path, str | os.PathLike):
        raise InputError(f"{path!r} is no name of a file; give a text or a Path")
    return Path(path)


def kind_of_path(path: str | os.PathLike[str]) -> Kind:
    """A folder, an ordinary file, anything else (a pipe, /dev/null), or nothing yet.

    Names that cannot be followed, because they are too long or a loop of symbolic links, are refused here.
    """
    try:
        mode = as_path(path).stat().st_mode
    except (FileNotFoundError, NotADirectoryError):
        return "missing"
    except (OSError, ValueError) as error:  # ValueError: a byte 0 within the name
        raise InputError(
            f"{path}: cannot be used as a file: {getattr(error, 'strerror', None) or error}"
        ) from None
    if stat.S_ISDIR(mode):
        return "folder"
    return "file" if stat.S_ISREG(mode) else "device"
