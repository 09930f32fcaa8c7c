"""Table 2 and Figure 7: accuracies and parameters of eight variants, with and without averaging."""

from __future__ import annotations

from typing import Any, NamedTuple

import numpy as np

from ..lab import Lab
from ..report import Cell, Claim, Curve, Figure, Panel, Part, Report, Table, sooner, verdict_on
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
Vectors = dict[tuple[str, str], list[float]]  # by variant and output
PROJECTED = (
    ("PEGASOS", "PEGASOS projected"),
    ("Mini-batch PEGASOS", "Mini-batch PEGASOS projected"),
)


class Found(NamedTuple):
    """What the variants came to, last and averaged."""

    vectors: Vectors
    accuracies: dict[str, tuple[float, float]]  # of the last and of the averaged output
    own: float  # the accuracy of the vector behind the labels
    error: float  # its standard error

    @property
    def gains(self) -> list[float]:
        """What averaging adds to the accuracy."""
        return [averaged - last for last, averaged in self.accuracies.values()]


def trained(lab: Lab) -> Found:
    """Every variant twice, last and averaged."""
    training, held_out, beta = common.simulated(lab)
    epochs = 5.0 if lab.quick else 25.0
    vectors: Vectors = {}
    accuracies = {}
    for variant in VARIANTS:
        found = []
        for iterate in ("last", "average"):
            options = {**variant.options, "iterate": iterate}
            one = common.run(
                lab, training, variant._replace(options=options), epochs=epochs, every=training.n
            )
            found.append(accuracy(np.array(one.coef), held_out))
            vectors[variant.label, iterate] = one.coef
        accuracies[variant.label] = (found[0], found[1])
    own = accuracy(beta, held_out)
    return Found(vectors, accuracies, own, float(np.sqrt(own * (1.0 - own) / held_out.n)))


def projection(lab: Lab) -> list[Part]:
    """Whether the projection improves the accuracy of the averaged output, by pairs of variants."""
    return _projected(trained(lab))


def _projected(found: Found) -> list[Part]:
    named = found.accuracies
    return [_gain(named[one][1], named[other][1], found.error) for one, other in PROJECTED]


def run(lab: Lab) -> Report:
    """Train every variant twice and compare accuracies and directions."""
    training, held_out, beta = common.simulated(lab)
    found = trained(lab)
    rows: list[list[Cell]] = [[label, *pair, *PAPER[label]] for label, pair in found.accuracies.items()]
    rows.append(["beta itself", found.own, None, PAPER_BETA, None])
    table = Table(
        "Table 2: accuracy on held-out rows",
        ("algorithm", "last", "averaged", "last, in the paper", "averaged, in the paper"),
        rows,
        f"{training.n:,} rows to train, {held_out.n:,} held out; the paper states neither the sizes of its "
        "split nor its noise.",
    )
    return Report(_claims(found, beta), (table,), (figure_7(found.vectors, beta),), (), lab.data)


def _claims(found: Found, beta: Any) -> tuple[Claim, ...]:
    vectors, named, own, error = found.vectors, found.accuracies, found.own, found.error
    spread = max(abs(value - own) for pair in named.values() for value in pair)
    gains = found.gains
    nearer = [sooner(mean, last) for _, last, mean in _distances(vectors, beta)]
    return (
        verdict_on(
            "all variants are about as accurate as the vector behind the labels",
            spread <= 3.0 * error + 0.01,
            f"at most {spread:.3f} away from beta's {own:.3f} (its standard error is {error:.3f})",
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
            _projected(found),
            "; ".join(f"{other}: {named[one][1]:.3f} to {named[other][1]:.3f}" for one, other in PROJECTED)
            + f" (one standard error of such a share: {error:.3f})",
        ),
        verdict_on(
            "averaging does not get much closer to the true vector (much: by half)",
            _closer(vectors, beta),
            "distance of unit vectors: the averaged one is closer by more than a tenth in "
            f"{nearer.count(True)} of "
            f"{len(nearer)}, by half in {_closer(vectors, beta).count(False)}, farther in "
            f"{nearer.count(False)}; " + "; ".join(_angles(vectors, beta)),
        ),
    )


def accuracy(w: Any, rows: Rows) -> float:
    """The share of rows on the right side."""
    return float(np.mean(np.where(rows.X @ w > 0, 1.0, -1.0) == rows.y))


def unit(w: Any) -> Any:
    """The direction of a vector: lengths differ between an SVM and a model of labels."""
    return np.asarray(w) / np.linalg.norm(w)


def figure_7(vectors: Vectors, beta: Any) -> Figure:
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


def _apart(vectors: Vectors, one: str, other: str) -> float:
    """How far two averaged outputs are apart in direction."""
    return float(np.linalg.norm(unit(vectors[one, "average"]) - unit(vectors[other, "average"])))


def _gain(before: float, after: float, error: float) -> Part:
    """Whether an accuracy rose by more than its standard error."""
    return "tie" if abs(after - before) <= error else after > before


def _distances(vectors: Vectors, beta: Any) -> list[tuple[str, float, float]]:
    found = []
    for item in VARIANTS:
        far = [
            float(np.linalg.norm(unit(vectors[item.label, it]) - unit(beta))) for it in ("last", "average")
        ]
        found.append((item.label, far[0], far[1]))
    return found


def _angles(vectors: Vectors, beta: Any) -> list[str]:
    return [f"{label}: {last:.3f} and {mean:.3f} averaged" for label, last, mean in _distances(vectors, beta)]


def _closer(vectors: Vectors, beta: Any) -> list[bool]:
    """Not much closer: averaging keeps at least half of the distance."""
    return [mean > 0.5 * last for _, last, mean in _distances(vectors, beta)]
