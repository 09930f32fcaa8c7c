"""``python -m benchmarks``: run, write the tables and plots, say where they are."""

from __future__ import annotations

import sys

from .options import parse
from .run import references, run, write


def main() -> int:
    """Exit code 1 if something that was promised did not hold."""
    options = parse()
    if options.references_only:
        references(options)
        return 0
    results = run(options)
    for path in write(options.out, results, set_up=not options.main_only):
        print(path)
    broken = [line for problem in results["problems"] for line in problem["broken"]]
    for line in broken:
        print(f"broken: {line}", file=sys.stderr)
    return 1 if broken else 0


if __name__ == "__main__":
    sys.exit(main())
