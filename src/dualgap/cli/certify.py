"""``dualgap certify``: recompute a model's certificates and say whether the stored ones are true."""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING, Any

import click

from .console import columns, emit, headline, json_option, quiet_option
from .data import array_options, data_argument, model_argument, reading_options, spec_of

if TYPE_CHECKING:
    from ..models.verification import ClassVerdict, Verification


@click.command(short_help="Recompute a certificate from scratch.")
@model_argument
@data_argument
@reading_options
@array_options
@json_option
@quiet_option
def command(model_file: Path, data_file: Path, as_json: bool, quiet: bool, **reading: Any) -> int:
    """Recompute the certificate of MODEL from DATA, the rows it was trained on, and compare it with the
    stored one.

    The stored certificate is true if DATA holds the training rows, the objective of the stored weights
    (primal) and the lower bound from the stored duals (dual) are as stated, up to rounding, and nothing else
    that the model says of them contradicts what is recomputed. The rows may be in another order (a store is
    shuffled, the text it was made of is not): every dual is then brought to its row, which is known by a hash
    of its content. A model of K classes has K certificates, and all of them must be true.

    A model that does not know its rows (from an estimator) is judged by what is recomputed alone, which is
    a proof where it agrees; the rows must then be in the order of training.

    A model saved without duals has only a weaker bound, from the slopes of the losses at its scores; if that
    does not reach the stored bound, the verdict is "unproven".

    Exit codes: 0 true, 1 not true or unproven, 2 bad input, or a model without a certificate.
    """
    from ..models.comparison import TRUE
    from ..models.saving import load_model
    from ..models.verification import SAME
    from ..runtime.errors import InputError

    model = load_model(model_file)
    if not model.proofs:
        raise InputError(f"{model_file}: the model has no certificate, so there is nothing to verify")
    found = model.verify(spec_of(data_file, reading))
    if as_json:
        emit(
            {
                "verdict": found.verdict,
                "reason": found.reason,
                "same_rows": found.same_rows,
                "same_order": found.rows == SAME,
                "duals": found.duals,
                **_certificates(found),
                **({"per_class": list(map(_class, found.per_class))} if len(found.per_class) > 1 else {}),
            }
        )
    elif not quiet:
        _report(found)
    return 0 if found.verdict == TRUE else 1


def _certificates(found: Verification | ClassVerdict) -> dict[str, Any]:
    again = found.recomputed
    return {"stored": found.stored._asdict(), "recomputed": None if again is None else again._asdict()}


def _class(found: ClassVerdict) -> dict[str, Any]:
    told = {"class": found.label, "verdict": found.verdict, "reason": found.reason}
    return {**told, **_certificates(found)}


def _report(found: Verification) -> None:
    from ..models.comparison import TRUE
    from ..models.verification import ANOTHER, SAME, UNKNOWN

    if len(found.per_class) > 1:
        _report_classes(found)
    else:
        _report_one(found)
    words = {
        SAME: "the same, in the same order",
        ANOTHER: "the same, in another order",
        UNKNOWN: "not known to the model",
        None: "NOT the same",
    }
    click.echo(f"training rows: {words[found.rows]}")
    headline(f"{found.verdict}: {found.reason}", found.verdict == TRUE)


def _report_one(found: Verification) -> None:
    stored = found.stored._asdict()
    again = None if found.recomputed is None else found.recomputed._asdict()
    bound = "dual" if found.duals == "stored" else "dual (from slopes)"
    click.echo(f"{'':<22}{'stored':>18}{'recomputed':>18}")
    for name, field, digits in (
        ("primal", "primal", ".12g"),
        (bound, "dual", ".12g"),
        ("gap", "gap", ".6g"),
        ("relative gap", "relative_gap", ".6g"),
        ("rounding, at most", "rounding", ".3g"),
    ):
        right = "-" if again is None else format(again[field], digits)
        click.echo(f"{name:<22}{format(stored[field], digits):>18}{right:>18}")


def _report_classes(found: Verification) -> None:
    """A line for each class: stored and recomputed."""
    from ..data.labels import shown_label

    rows = []
    for each in found.per_class:
        stored, again = each.stored, each.recomputed
        numbers = [
            "-" if certificate is None else f"{value:.10g}"
            for certificate, value in (
                (stored, stored.primal),
                (again, 0.0 if again is None else again.primal),
                (stored, stored.dual),
                (again, 0.0 if again is None else again.dual),
            )
        ]
        rows.append([shown_label(each.label), *numbers, f"{stored.relative_gap:.3g}", each.verdict])
    columns(["class", "primal", "recomputed", "dual", "recomputed", "relative gap", "verdict"], rows)
