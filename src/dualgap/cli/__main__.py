"""``python -m dualgap.cli``: the same as ``dualgap``."""

from . import main

main()
