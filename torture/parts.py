"""The parts: what each promises, how often it is tried, and what does it."""

from __future__ import annotations

from importlib import import_module
from pathlib import Path
from typing import NamedTuple

from .tally import Tally


class Part(NamedTuple):
    """One part of the test."""

    module: str
    tries: int  # at scale 1
    title: str
    promise: str
    fixed: bool = False  # as many tries at any scale
    whole: bool = False  # all by one worker
    mounts: bool = False  # it wants to mount file systems

    def run(self, seed: int, items: range, folder: Path, tally: Tally) -> None:
        """Try some items. (The module is imported here: the overseer needs no dualgap.)"""
        import_module(f".{self.module}", __package__).run(seed, items, folder, tally)


PARTS = {
    "processes": Part(
        "processes",
        33,
        "many processes",
        "Fits are equal bit for bit in threads, forks, loky, spawned processes, and in eight processes that "
        "compile into one empty cache.",
        fixed=True,
        whole=True,
    ),
    "kills": Part(
        "kills",
        300,
        "kills",
        "After SIGKILL or SIGTERM a file under its final name is absent, the one from before, or whole; a "
        "resumed run equals one that was never stopped, bit for bit; the cache of kernels works; temporary "
        "files are removed by the next command that writes there.",
    ),
    "problems": Part(
        "problems",
        10_000,
        "random problems",
        "Certificates are true: primal, dual, gap and rounding bound, re-proved in exact arithmetic from the "
        "rows, the weights and the reported dual point.",
    ),
    "damage": Part(
        "damage",
        100_000,
        "damaged files",
        "A damaged model, store, saved run or kernel is refused in one line or gives the same numbers; a "
        "doctored one, whose checksums agree, is refused or does no harm.",
    ),
    "disks": Part(
        "disks",
        180,
        "full disks",
        "A command on a full disk ends with one line and leaves nothing behind; a run goes on where only its "
        "checkpoint, its trace or the cache of kernels cannot be written.",
        mounts=True,
    ),
}


def counts_at(scale: float) -> dict[str, int]:
    """How often each part is tried."""
    return {
        name: part.tries if part.fixed else max(1, round(part.tries * scale)) for name, part in PARTS.items()
    }
