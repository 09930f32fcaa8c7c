"""``python -m dualgap``: the same as ``dualgap``."""

from __future__ import annotations

import sys

if __name__ == "__main__":  # processes that `dualgap warmup` starts import this file under another name
    try:
        from .cli import main
    except KeyboardInterrupt:  # pressed while click was being imported
        sys.exit(130)
    main()
