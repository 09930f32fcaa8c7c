"""``python -m benchmarks.probe_growth``: what a probe of a million rows and a thousand classes would take, on
paper.

Multinomial fits of generated embeddings (``classes.embeddings``) at several sizes give the exponents of

    seconds = a n^p d^q K^r

by least squares of logarithms, and fits on one thread and on two the part of the work that threads share
(Amdahl's law). The table is what these say of the ImageNet probe: 1.28 million rows of 512 columns, 1,000
classes. Every size beyond those measured is an extrapolation, and so is every number of cores beyond 2.
"""

from __future__ import annotations

import argparse
import math
import time
from typing import Any, NamedTuple

import numpy as np

import dualgap

from .cells import markdown, short

SIZES = (
    (8_000, 128, 25),
    (16_000, 128, 25),
    (32_000, 128, 25),
    (16_000, 256, 25),
    (16_000, 512, 25),
    (16_000, 128, 50),
    (16_000, 128, 100),
    (16_000, 128, 200),
    (32_000, 256, 100),
)
QUICK = ((2000, 32, 5), (4000, 32, 5), (2000, 64, 5), (2000, 32, 10), (4000, 64, 10))
PROBE, SWEEP = (1_280_000, 512, 1000), 10  # rows, columns, classes; values of C
CORES = (1, 2, 8, 32)
C = 10.0


class Growth(NamedTuple):
    """The law that was fitted, and the largest factor by which it misses a measurement."""

    scale: float
    exponents: tuple[float, float, float]
    shared: float  # part of the work that threads share
    misses: float

    def seconds(self, size: tuple[int, int, int], cores: int = 1) -> float:
        """Of one fit."""
        alone = self.scale * math.prod(x**power for x, power in zip(size, self.exponents, strict=True))
        return alone * (1.0 - self.shared + self.shared / cores)


def seconds_of(size: tuple[int, int, int], threads: int, repeats: int) -> float:
    """Wall-clock seconds of a fit, the least of several."""
    from .classes import embeddings

    X, y = embeddings(*size)
    told: dict[str, Any] = {"loss": "multinomial", "C": C, "bias": "exact", "threads": threads}
    found = []
    for _ in range(repeats):
        begin = time.perf_counter()
        dualgap.fit(X, y, **told)
        found.append(time.perf_counter() - begin)
    return min(found)


def law(sizes: list[tuple[int, int, int]], seconds: list[float]) -> tuple[float, Any, float]:
    """Scale, exponents, and the largest factor between the law and a measurement."""
    logs = np.log(np.array(sizes, dtype=float))
    matrix = np.column_stack([np.ones(len(sizes)), logs])
    found = np.linalg.lstsq(matrix, np.log(seconds), rcond=None)[0]
    missed = float(np.exp(np.abs(matrix @ found - np.log(seconds)).max()))
    return float(np.exp(found[0])), tuple(float(x) for x in found[1:]), missed


def measured(quick: bool, repeats: int) -> tuple[Growth, list[list[str]]]:
    """The law, and the lines of what it was fitted to."""
    sizes = list(QUICK if quick else SIZES)
    seconds_of(sizes[0], 2, 1)  # kernels
    alone = [seconds_of(size, 1, repeats) for size in sizes]
    largest = max(range(len(sizes)), key=lambda k: alone[k])
    both = seconds_of(sizes[largest], 2, repeats)
    shared = min(max(2.0 * (1.0 - both / alone[largest]), 0.0), 1.0)
    scale, exponents, misses = law(sizes, alone)
    growth = Growth(scale, exponents, shared, misses)
    lines = [
        [f"{n:,}", str(d), f"{k:,}", short(took), short(growth.seconds((n, d, k)))]
        for (n, d, k), took in zip(sizes, alone, strict=True)
    ]
    return growth, lines


def section(quick: bool, repeats: int) -> list[str]:
    """The paragraphs of ``CLASSES.md``."""
    growth, lines = measured(quick, repeats)
    p, q, r = growth.exponents
    n, d, k = PROBE
    hours = [growth.seconds(PROBE, cores) / 3600.0 for cores in CORES]
    table = [[str(cores), short(one), short(SWEEP * one)] for cores, one in zip(CORES, hours, strict=True)]
    return [
        "## The ImageNet probe, on paper",
        f"Multinomial at C = {C:g} to 1e-3, wall-clock seconds of one thread: seconds = {growth.scale:.2g} "
        f"n^{p:.2f} d^{q:.2f} K^{r:.2f}, which misses these measurements by a factor of {growth.misses:.2f} "
        f"at most; {100.0 * growth.shared:.0f}% of the work is shared by threads, by a run on two.",
        markdown(["rows", "columns", "classes", "seconds", "by the law"], lines),
        f"Extrapolated to {n:,} rows of {d} columns and {k:,} classes ({n * d * 4 / 1e9:.1f} GB in float32), "
        f"and to a sweep over {SWEEP} values of C that takes {SWEEP} times as long (warm starts would take "
        "less). The law is used far beyond what was measured: an order of magnitude, no more.",
        markdown(["cores", "hours", f"hours of {SWEEP} values of C"], table),
    ]


def main() -> None:
    """Measure and print."""
    parser = argparse.ArgumentParser(
        description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter
    )
    parser.add_argument("--quick", action="store_true", help="small sizes: does it work?")
    parser.add_argument("--repeats", type=int, default=2)
    options = parser.parse_args()
    print("\n\n".join(section(options.quick, options.repeats)))


if __name__ == "__main__":
    main()
