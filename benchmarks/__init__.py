"""dualgap against its peers, side by side in one run: ``python -m benchmarks --help``."""

from pathlib import Path

HERE = Path(__file__).parent
ROOT = HERE.parent
CACHE = HERE / ".cache"
