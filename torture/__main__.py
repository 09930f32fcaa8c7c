"""``python -m torture``: break the world underneath the library and see which promises hold.

Five parts, all from one seed: kills, damaged files, full disks, random problems re-proved in exact
arithmetic, many processes at once. ``--only PART --item K`` repeats a single item. ``--write`` puts the
result into RELIABILITY.md.
"""

from __future__ import annotations

import argparse
import os
import signal
import sys
import tempfile
from pathlib import Path

from .parts import PARTS, counts_at
from .report import table, write
from .tally import Tally
from .workers import Overseer

PAGE = Path(__file__).parent.parent / "RELIABILITY.md"


def main() -> int:
    """The command."""
    options = _options()
    names = options.only or list(PARTS)
    if options.worker is not None:
        return work(options.only[0], options.seed, range(*options.worker), options.folder)
    if options.item is not None:
        if len(names) != 1:
            raise SystemExit("python -m torture: --item K is an item of one part: --only PART --item K")
        with tempfile.TemporaryDirectory() as folder:
            return work(names[0], options.seed, range(options.item, options.item + 1), Path(folder))
    counts = counts_at(options.scale)
    signal.signal(signal.SIGTERM, signal.default_int_handler)  # ends as Ctrl-C does, the workers too
    signal.signal(signal.SIGINT, signal.default_int_handler)  # also in the background of a shell
    overseer = Overseer(options.seed, options.jobs, options.minutes)
    results = overseer.run({name: counts[name] for name in names})
    print("\n".join(table(results, options.seed)))
    failures = [f"{result.name}, {failure}" for result in results for failure in result.failures]
    for failure in failures:
        print(failure)
    print(
        f"seed {options.seed}: {sum(part.tried for part in results):,} tries in {overseer.seconds:.0f} s; "
        f"promises broken: {len(failures)}{'; interrupted' if overseer.interrupted else ''}"
    )
    if failures:
        print(f"to repeat one: python -m torture --seed {options.seed} --only PART --item K")
    if options.write and not overseer.interrupted:
        write(PAGE, results, options.seed)
        print(f"written to {PAGE.name}")
    return 1 if failures else 130 if overseer.interrupted else 0


def _options() -> argparse.Namespace:
    parser = argparse.ArgumentParser(prog="python -m torture", description=__doc__)
    parser.add_argument("--seed", type=int, default=1)
    parser.add_argument("--only", choices=PARTS, action="append", help="this part; may be repeated")
    parser.add_argument("--scale", type=float, default=1.0, help="so many times the usual number of tries")
    parser.add_argument(
        "--minutes", type=float, help="end after so many minutes, with what has been tried by then"
    )
    parser.add_argument("--jobs", type=int, default=len(os.sched_getaffinity(0)), help="processes at a time")
    parser.add_argument("--item", type=int, metavar="K", help="repeat one item of a part")
    parser.add_argument("--write", action="store_true", help="put the result into RELIABILITY.md")
    parser.add_argument("--worker", type=int, nargs=3, help=argparse.SUPPRESS)
    parser.add_argument("--folder", type=Path, default=Path(), help=argparse.SUPPRESS)
    return parser.parse_args()


def work(name: str, seed: int, items: range, folder: Path) -> int:
    """Try some items of a part in this process, and tell on standard output."""
    import faulthandler

    faulthandler.enable()
    marker = os.open(folder / "item", os.O_CREAT | os.O_WRONLY)
    tally = Tally(sys.stdout, marker)
    PARTS[name].run(seed, items, folder, tally)
    tally.tell(done=True)
    return 1 if tally.failures else 0


if __name__ == "__main__":
    sys.exit(main())
