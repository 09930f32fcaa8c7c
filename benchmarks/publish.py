"""``python -m benchmarks.publish [FOLDER ...]``: tables and plots anew from a run, and the copies that are
committed.

Several runs of the same code and rules, of different problems, make one page. A run that was ended early may
be published too: the page then says so at its head.
"""

from __future__ import annotations

import json
import shutil
import sys
import tempfile
from pathlib import Path
from typing import Any

from . import HERE
from .run import write

PAGE = HERE / "RESULTS.md"
PICTURE = HERE / "overview.png"


def merged(runs: list[dict[str, Any]]) -> dict[str, Any]:
    """One run out of several: what was measured by other code or other rules does not belong together."""
    first, *others = runs
    for other in others:
        for kind, names in (
            ("machine", ("commit", "cpu")),
            ("options", ("repeats", "time_limit", "targets")),
        ):
            for name in names:
                if other[kind][name] != first[kind][name]:
                    raise SystemExit(f"runs of different {name}: {first[kind][name]} and {other[kind][name]}")
        first["problems"] += other["problems"]
        first["sets"] |= other["sets"]
        first["solvers"] = {**first["solvers"], **other["solvers"]}
        first["finished"] &= other["finished"]
        first["machine"]["load_at_end"] = other["machine"].get("load_at_end", 0.0)
    return first


def main() -> int:
    """From the results folders given, or the usual one, to ``benchmarks/RESULTS.md``."""
    folders = [Path(name) for name in sys.argv[1:]] or [HERE / "results"]
    results = merged([json.loads((each / "results.json").read_text()) for each in folders])
    if not results["finished"]:
        print(
            f"{folders[0] / 'results.json'} is of a run that did not finish, and the page says so",
            file=sys.stderr,
        )
    with tempfile.TemporaryDirectory() as name:
        folder = Path(name)
        (folder / "results.json").write_text(json.dumps(results))
        write(folder, results, set_up=True)
        PAGE.write_text((folder / "RESULTS.md").read_text().replace("plots/overview.png", PICTURE.name))
        shutil.copyfile(folder / "plots" / "overview.png", PICTURE)
    print(PAGE)
    return 0


if __name__ == "__main__":
    sys.exit(main())
