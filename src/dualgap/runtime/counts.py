"""What a solver has done so far, in numbers that do not depend on the machine."""

from __future__ import annotations

from typing import NamedTuple


class Counts(NamedTuple):
    """Row visits, updates and stored entries; part of every solver's state."""

    visits: int = 0  # a row presented to the solver
    updates: int = 0  # visits that changed the model
    entries: int = 0  # stored entries read or written; dot and add are counted separately
