"""Table 2 and Figure 7: accuracies and parameters of eight variants, with and without averaging."""

from __future__ import annotations

from typing import Any

import numpy as np

from ..lab import Lab
from ..report import Cell, Curve, Figure, Panel, Part, Report, Table, verdict_on
from ..sets import Rows
from . import common
from .common import Algorithm

PAPER = {  # accuracy, and that of the averaged output
    "SDCA random": (0.863, 0.872),
    "SDCA permutation": (0.881, 0.875),
    "SDCA cyclic": (0.872, 0.875),
    "PEGASOS": (0.866, 0.863),
    "PEGASOS projected": (0.860, 0.869),
    "ASDCA": (0.869, 0.875),
    "Mini-batch PEGASOS": (0.881, 0.866),
    "Mini-batch PEGASOS projected": (0.872, 0.878),
}
PAPER_BETA = 0.878
BATCH = 8
VARIANTS = [
    *(Algorithm(f"SDCA {order}", "sdca", {"order": order}) for order in ("random", "permutation", "cyclic")),
    Algorithm("PEGASOS", "pegasos", {}),
    Algorithm("PEGASOS projected", "pegasos", {"projection": True}),
    Algorithm("ASDCA", "asdca", {"m": BATCH, "gamma": "1"}, BATCH),
    Algorithm("Mini-batch PEGASOS", "pegasos", {"k": BATCH, "sampling": "distinct"}, BATCH),
    Algorithm(
        "Mini-batch PEGASOS projected",
        "pegasos",
        {"k": BATCH, "sampling": "distinct", "projection": True},
        BATCH,
    ),
]
PROJECTED = (
    ("PEGASOS", "PEGASOS projected"),
    ("Mini-batch PEGASOS", "Mini-batch PEGASOS projected"),
)


def run(lab: Lab) -> Report:
    """Train every variant twice and compare accuracies and directions."""
    training, held_out, beta = common.simulated(lab)
    epochs = 5.0 if lab.quick else 25.0
    rows: list[list[Cell]] = []
    accuracies, vectors = [], {}
    for variant in VARIANTS:
        found = []
        for iterate in ("last", "average"):
            options = {**variant.options, "iterate": iterate}
            one = common.run(
                lab, training, variant._replace(options=options), epochs=epochs, every=training.n
            )
            found.append(accuracy(np.array(one.coef), held_out))
            vectors[variant.label, iterate] = one.coef
        accuracies.append(found)
        rows.append([variant.label, *found, *PAPER[variant.label]])
    own = accuracy(beta, held_out)
    rows.append(["beta itself", own, None, PAPER_BETA, None])
    spread = [abs(value - own) for pair in accuracies for value in pair]
    gains = [averaged - last for last, averaged in accuracies]
    error = float(np.sqrt(own * (1.0 - own) / held_out.n))
    named = {variant.label: pair[1] for variant, pair in zip(VARIANTS, accuracies, strict=True)}
    claims = (
        verdict_on(
            "all variants are about as accurate as the vector behind the labels",
            max(spread) <= 3.0 * error + 0.01,
            f"at most {max(spread):.3f} away from beta's {own:.3f} (its standard error is {error:.3f})",
        ),
        verdict_on(
            "averaging makes no important difference to accuracy",
            [abs(gain) <= error for gain in gains],
            f"averaged minus last: mean {np.mean(gains):+.4f}, from {min(gains):+.3f} to {max(gains):+.3f} "
            f"(one standard error of such a share: {error:.3f})",
        ),
        verdict_on(
            "with the projection or without, the parameters come out very similar",
            [_apart(vectors, one, other) <= 0.1 for one, other in PROJECTED],
            "; ".join(
                f"{other}: {_apart(vectors, one, other):.3f} apart in direction" for one, other in PROJECTED
            ),
        ),
        verdict_on(
            "the projection improves the accuracy of the averaged output",
            [_gain(named[one], named[other], error) for one, other in PROJECTED],
            "; ".join(f"{other}: {named[one]:.3f} to {named[other]:.3f}" for one, other in PROJECTED)
            + f" (one standard error of such a share: {error:.3f})",
        ),
        verdict_on(
            "averaging does not get much closer to the true vector",
            _closer(vectors, beta),
            "; ".join(_angles(vectors, beta)),
        ),
    )
    table = Table(
        "Table 2: accuracy on held-out rows",
        ("algorithm", "last", "averaged", "last, in the paper", "averaged, in the paper"),
        rows,
        f"{training.n:,} rows to train, {held_out.n:,} held out; the paper states neither the sizes of its "
        "split nor its noise.",
    )
    return Report(claims, (table,), (figure_7(vectors, beta),), (), lab.data)


def accuracy(w: Any, rows: Rows) -> float:
    """The share of rows on the right side."""
    return float(np.mean(np.where(rows.X @ w > 0, 1.0, -1.0) == rows.y))


def unit(w: Any) -> Any:
    """The direction of a vector: lengths differ between an SVM and a model of labels."""
    return np.asarray(w) / np.linalg.norm(w)


def figure_7(vectors: dict[tuple[str, str], list[float]], beta: Any) -> Figure:
    """The ten parameters of each variant beside the true ones."""
    places = list(range(1, len(beta) + 1))
    families = {
        "(a) SDCA": VARIANTS[:3],
        "(b) PEGASOS": VARIANTS[3:5],
        "(c) ASDCA": VARIANTS[5:6],
        "(d) Mini-batch PEGASOS": VARIANTS[6:],
    }
    panels = [
        Panel(
            title,
            "parameter",
            "value, of unit length",
            [
                Curve("true beta", places, unit(beta).tolist(), marker="o"),
                *(
                    Curve(
                        f"{item.label}, {it}", places, unit(vectors[item.label, it]).tolist(), it == "average"
                    )
                    for item in members
                    for it in ("last", "average")
                ),
            ],
        )
        for title, members in families.items()
    ]
    return Figure(
        "ouillade-figure-7", "Figure 7: the parameters of every variant beside the true ones", panels
    )


def _apart(vectors: dict[tuple[str, str], list[float]], one: str, other: str) -> float:
    """How far two averaged outputs are apart in direction."""
    return float(np.linalg.norm(unit(vectors[one, "average"]) - unit(vectors[other, "average"])))


def _gain(before: float, after: float, error: float) -> Part:
    """Whether an accuracy rose by more than its standard error."""
    return "tie" if abs(after - before) <= error else after > before


def _distances(vectors: dict[tuple[str, str], list[float]], beta: Any) -> list[tuple[str, float, float]]:
    found = []
    for item in VARIANTS:
        far = [
            float(np.linalg.norm(unit(vectors[item.label, it]) - unit(beta))) for it in ("last", "average")
        ]
        found.append((item.label, far[0], far[1]))
    return found


def _angles(vectors: dict[tuple[str, str], list[float]], beta: Any) -> list[str]:
    return [f"{label}: {last:.3f} and {mean:.3f} averaged" for label, last, mean in _distances(vectors, beta)]


def _closer(vectors: dict[tuple[str, str], list[float]], beta: Any) -> list[bool]:
    """Not much closer: averaging keeps at least half of the distance."""
    return [mean > 0.5 * last for _, last, mean in _distances(vectors, beta)]
