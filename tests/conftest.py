"""What every test has: a kernel cache inside the clone, and the real data sets where they are."""

from __future__ import annotations

import os
from pathlib import Path

import pytest
from hypothesis import settings

# before dualgap is imported anywhere: tests write nothing outside the clone and temporary folders
os.environ.setdefault("DUALGAP_CACHE", str(Path(__file__).parents[1] / ".cache" / "kernels"))


# programs that tests start find what tests share, as the tests themselves do
_HERE = str(Path(__file__).parent)
os.environ["PYTHONPATH"] = os.pathsep.join(filter(None, [_HERE, os.environ.get("PYTHONPATH")]))

# a first example may compile a kernel: no example has a deadline
settings.register_profile("kernels", deadline=None)
settings.load_profile("kernels")


@pytest.fixture(scope="session")
def data_folder() -> Path:
    """The folder of real data sets, or a skip with a message."""
    folder = os.environ.get("DUALGAP_DATA")
    if not folder:
        pytest.skip("DUALGAP_DATA is not set: no real data sets here")
    if not Path(folder).is_dir():
        pytest.skip(f"DUALGAP_DATA={folder} is no folder: no real data sets here")
    return Path(folder)
