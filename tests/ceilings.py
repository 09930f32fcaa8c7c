"""Measure the work of runs at fixed seeds, and rewrite ``ceilings.json``.

    python tests/ceilings.py             all of it
    python tests/ceilings.py passes      or only one part: passes, epochs or compiled

A ceiling that lies between what is measured and FACTORS times that stays as it is; others become FACTORS
times what is measured. Every change is printed: what rose, what fell. Real data sets are measured where they
are; without them their ceilings stay.
"""

from __future__ import annotations

import json
import math
import sys
import warnings
from collections.abc import Iterator
from pathlib import Path
from typing import Any

sys.path.insert(1, str(Path(__file__).parents[1]))  # as pytest has it: benchmarks make some of the data

from support import compiling, matrix, passes
from support.ceilings import TABLE, table

Keys = tuple[str, ...]
FACTORS = {"epochs": 1.2, "passes": 1.15, "compiled": 1.0}
DECIMALS = {"epochs": 0, "passes": 1, "compiled": 0}


def epochs() -> Iterator[tuple[Keys, float]]:
    """The worst case of each solver and loss: those of the test, and every bias."""
    every_bias = (case for case in matrix.full_product() if (case.rows, case.dtype) == ("csr", "float64"))
    worst: dict[Keys, float] = {}
    for case in dict.fromkeys([*matrix.all_pairs(), *every_bias]):
        key = "epochs", case.solver, case.loss
        worst[key] = max(worst.get(key, 0.0), matrix.epochs_needed(case))
    yield from worst.items()


def all_passes() -> Iterator[tuple[Keys, float]]:
    """Every set that is here."""
    for case in (*passes.MADE, *(case for case in passes.REAL if passes.file_of(case.name))):
        yield from passes.measured(case)


def compiled() -> Iterator[tuple[Keys, float]]:
    """Functions that first fits compile."""
    for layout in compiling.LAYOUTS:
        for loss, found in compiling.compiled_by_first_fits(layout).items():
            yield ("compiled", layout, loss), len(found)


def revised(before: float | None, measured: float, kind: str) -> float:
    """The ceiling for what was measured: the one there is, if that is neither too low nor too high."""
    unit = 10 ** DECIMALS[kind]
    highest = math.floor(FACTORS[kind] * measured * unit + 1e-9)
    highest = max(highest, math.ceil(measured * unit)) / unit  # few epochs: no lower than what is measured
    if before is not None and measured <= before <= highest:
        return before
    return highest if DECIMALS[kind] else int(highest)


def put(into: dict[str, Any], keys: Keys, value: float) -> None:
    """Set one number of a nested table."""
    for key in keys[:-1]:
        into = into.setdefault(key, {})
    into[keys[-1]] = value


def got(source: dict[str, Any], keys: Keys) -> float | None:
    """One number of a nested table, or None."""
    found: Any = source
    for key in keys:
        found = found.get(key, {})
    return None if found == {} else float(found)


def rewrite(found: dict[Keys, float], into: dict[str, Any]) -> list[str]:
    """Put ceilings for what was measured into the table; a line for each that changes."""
    changes = []
    for keys, measured in found.items():
        before = got(into, keys)
        after = revised(before, measured, keys[0])
        if before is None or after != before:
            word = "new " if before is None else "rose" if after > before else "fell"
            was = "" if before is None else f"{before:g} -> "
            changes.append(f"{word}  {' / '.join(keys)}: {was}{after:g} (measured {measured:.4g})")
            put(into, keys, after)
    return sorted(changes)


def main(parts: list[str]) -> int:
    """Measure, rewrite and tell."""
    warnings.simplefilter("ignore")
    known = {"epochs": epochs, "passes": all_passes, "compiled": compiled}
    found: dict[Keys, float] = {}
    for part in parts or known:
        found.update(known[part]())
    ceilings = json.loads(json.dumps(table()))
    changes = rewrite(found, ceilings)
    TABLE.write_text(json.dumps(ceilings, indent=1) + "\n")
    print(*changes, f"{len(found)} measured, {len(changes)} changed in {TABLE.name}", sep="\n")
    return 0


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
