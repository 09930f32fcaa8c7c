"""``dualgap certify``: recompute a model's certificate and say whether the stored one is true."""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING, Any

import click

from .console import emit, headline, json_option
from .data import data_argument, model_argument, reading_options, spec_of

if TYPE_CHECKING:
    from ..models.verification import Verification


@click.command(short_help="Recompute a certificate from scratch.")
@model_argument
@data_argument
@reading_options
@json_option
def command(model_file: Path, data_file: Path, as_json: bool, **reading: Any) -> int:
    """Recompute the certificate of MODEL from DATA, the rows it was trained on, and compare it with the
    stored one.

    The stored certificate is true if DATA holds the training rows, the objective of the stored weights and
    the lower bound from the stored duals are as stated, up to rounding, and nothing else that the model says
    of them contradicts what is recomputed. The rows may be in another order (a store is shuffled, the text it
    was made of is not): every dual is then brought to its row, which is known by a hash of its content.

    A model saved without duals has only a weaker bound, from the slopes of the losses at its scores; if that
    does not reach the stored bound, the verdict is "unproven".

    Exit codes: 0 true, 1 not true or unproven, 2 bad input.
    """
    from ..models.model import load_model
    from ..models.verification import SAME, TRUE

    found = load_model(model_file).verify(spec_of(data_file, reading))
    if as_json:
        emit(
            {
                "verdict": found.verdict,
                "reason": found.reason,
                "same_rows": found.rows is not None,
                "same_order": found.rows == SAME,
                "duals": found.duals,
                "stored": found.stored._asdict(),
                "recomputed": None if found.recomputed is None else found.recomputed._asdict(),
            }
        )
    else:
        _report(found)
    return 0 if found.verdict == TRUE else 1


def _report(found: Verification) -> None:
    from ..models.verification import ANOTHER, SAME, TRUE

    stored = found.stored._asdict()
    again = None if found.recomputed is None else found.recomputed._asdict()
    bound = "lower bound" if found.duals == "stored" else "lower bound (slopes)"
    click.echo(f"{'':<22}{'stored':>18}{'recomputed':>18}")
    for name, field, digits in (
        ("objective", "primal", ".12g"),
        (bound, "dual", ".12g"),
        ("gap", "gap", ".6g"),
        ("relative gap", "relative_gap", ".6g"),
        ("rounding, at most", "rounding", ".3g"),
    ):
        right = "-" if again is None else format(again[field], digits)
        click.echo(f"{name:<22}{format(stored[field], digits):>18}{right:>18}")
    words = {SAME: "the same, in the same order", ANOTHER: "the same, in another order", None: "NOT the same"}
    click.echo(f"training rows: {words[found.rows]}")
    headline(f"{found.verdict}: {found.reason}", found.verdict == TRUE)
