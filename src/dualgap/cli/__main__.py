"""``python -m dualgap.cli``: the same as ``dualgap``."""

from __future__ import annotations

import sys

try:
    from . import main
except KeyboardInterrupt:  # pressed while click was being imported
    sys.exit(130)

main()
