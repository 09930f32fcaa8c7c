"""What the layouts of rows share: the length of a cache line, and the codes of faults."""

from __future__ import annotations

LINE = 16  # entries of 4 bytes in a cache line

# what may be wrong with a row, from the mildest to the worst
UNORDERED, EXTREME, NOT_FINITE, BROKEN = 1, 2, 3, 4
