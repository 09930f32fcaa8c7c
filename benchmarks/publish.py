"""``python -m benchmarks.publish``: tables and plots anew from a run, and the copies that are committed.

A run that was ended early may be published too: the page then says so at its head.
"""

from __future__ import annotations

import json
import shutil
import sys
from pathlib import Path

from . import HERE
from .run import write

PAGE = HERE / "RESULTS.md"
PICTURE = HERE / "overview.png"


def main() -> int:
    """From the results folder given, or the usual one, to ``benchmarks/RESULTS.md``."""
    folder = Path(sys.argv[1]) if len(sys.argv) > 1 else HERE / "results"
    results = json.loads((folder / "results.json").read_text())
    if not results["finished"]:
        print(f"{folder / 'results.json'} is of a run that did not finish, and the page says so", file=sys.stderr)
    write(folder, results, set_up=True)
    PAGE.write_text((folder / "RESULTS.md").read_text().replace("plots/overview.png", PICTURE.name))
    shutil.copyfile(folder / "plots" / "overview.png", PICTURE)
    print(PAGE)
    return 0


if __name__ == "__main__":
    sys.exit(main())
