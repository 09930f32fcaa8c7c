"""A model in words: the objective it minimises, what its certificates prove, its largest weights."""

from __future__ import annotations

import math
from typing import TYPE_CHECKING, Any

import numpy as np

from .saving import header_of

if TYPE_CHECKING:  # the command line imports this for its sentences, and Numba only when it needs it
    from ..core.certificate import Certificate
    from .model import Model

LARGEST = 5  # weights of either sign
FORMULAS = {  # of the losses, whose classes bring Numba; a test holds that they are the losses' own
    "hinge": "max(0, margin - y s)",
    "smooth-hinge": "the hinge with its kink rounded over a width of gamma; gamma -> 0 is the hinge",
    "squared-hinge": "scale * max(0, 1 - y s)^2",
    "logistic": "ln(1 + exp(-y s))",
    "modified-huber": "scale * max(0, 1 - y s)^2, continued by a line below y s = -1",
    "squared": "scale * (s - y)^2",
    "huber": "(s - y)^2 for residuals up to the threshold, a line beyond it",
    "absolute": "|s - y|",
    "quantile": "max(quantile (y - s), (1 - quantile) (s - y))",
    "epsilon-insensitive": "max(0, |s - y| - epsilon)",
    "squared-epsilon-insensitive": "max(0, |s - y| - epsilon)^2",
    "multinomial": "ln sum_k exp(s_k - s_y)",
    "crammer-singer": "max(0, 1 + max_{k != y} s_k - s_y)",
    "hard-margin": "infinite below the margin, else 0",
}


def statement(certificate: Certificate, lam: float) -> str:
    """What a certificate proves, in one sentence."""
    if lam == 0:
        return (
            "Nothing is proven: at lam = 0 no lower bound is known but 0, as a dual point would have to make "
            "a combination of the rows vanish exactly."
        )
    if math.isinf(certificate.primal):
        return "Nothing is proven of this model: it violates the hard margin, so its objective is infinite."
    if certificate.dual > 0 and certificate.relative_gap < math.inf:
        share = 100 * certificate.relative_gap
        return f"Proven: the objective is at most {share:.3g}% above the smallest possible."
    return f"Proven: the objective is at most {certificate.gap:.3g} above the smallest possible."


def statements(model: Model) -> str:
    """What the certificates of a model prove together."""
    if not model.proofs:
        return "The model has no certificate."
    found = statement(model.certificate, min(proof.lam for proof in model.proofs))
    return found.replace("the objective is", "each objective is") if len(model.proofs) > 1 else found


def objective(model: Model) -> str:
    """The objective that is minimised, for one class of several too, as a formula with its constants."""
    meaning = FORMULAS.get(model.loss, f"{model.loss!r}, which this version does not know")
    constants = {"C": model.C, **model.loss_parameters}
    norm, score = "|w|^2", "<w, x_i>" if model.bias == "none" else "<w, x_i> + b"
    score += " + o_i" * model.offsets
    if model.joint:
        norm, score = "|W|^2", score.replace("<w, x_i>", "W x_i")
    if model.bias == "augmented":
        norm, constants["rho"] = f"({norm} + {'|b|' if model.joint else 'b'}^2/rho^2)", model.rho
    weighted = model.class_weight is not None or any(
        proof.total_weight != model.n_samples for proof in model.proofs
    )
    terms = f"1/2 {norm} + C sum_i {'c_i ' * weighted}loss(s_i, y_i)"
    if np.isinf(model.C):
        terms = "mean of loss(s_i, y_i)"
        del constants["C"]
    told = ", ".join(f"{name} = {value:g}" for name, value in constants.items())
    return f"{terms}, s_i = {score}, loss(s, y) = {meaning}{' with ' if told else ''}{told}"


def largest_weights(model: Model, k: int = 0) -> dict[str, list[tuple[str, float]]]:
    """The largest weights of either sign in row k of ``coef``, by the names of their columns.

    Columns without names go by the numbers that the training file has for them; expanded ones have neither,
    and go by their own numbers, from 0.
    """
    row = model.coef[k]
    base = 1 if model.zero_based is False and model.expand is None else 0
    names: Any = model.feature_names if model.expand is None else None
    order = np.argsort(row, kind="stable")

    def named(columns: Any) -> list[tuple[str, float]]:
        return [
            (str(j + base if names is None else names[j]), float(row[j])) for j in columns.tolist() if row[j]
        ]

    first, last = order[:LARGEST], order[::-1][:LARGEST]
    return {"positive": named(last[row[last] > 0]), "negative": named(first[row[first] < 0])}


def card(model: Model) -> dict[str, Any]:
    """All that there is to say of a model but its arrays: its header, and what follows from it."""
    return {
        **header_of(model),
        "objective": objective(model),
        "statement": statements(model),
        "nonzero_weights": int(np.count_nonzero(model.coef)),
        "nonzero_duals": None if model.dual is None else int(model.dual.nnz),
        "intercept": model.intercept.tolist(),
        "largest_weights": [largest_weights(model, k) for k in range(model.coef.shape[0])],
    }
