"""What the header of a model file must be: every field by itself, and all of them together with the arrays.

Whether what it states of its certificates is true is for verification to say; here it is asked whether it can
be read as a model at all, before any array is unpacked.
"""

from __future__ import annotations

import math
from typing import Any

from ..runtime.checks import shown
from ..runtime.headers import (
    COUNT,
    EXTENDED,
    FLAG,
    NOT_NEGATIVE,
    NUMBER,
    SCALAR,
    TEXT,
    WHOLE,
    Each,
    Kind,
    Optional,
    check_fields,
    is_number,
    one_of,
)
from ..runtime.npy import Layout
from ..runtime.sizes import check_unpacked

_LABEL = Kind(
    lambda value: value is None or type(value) is bool or is_number(value) or TEXT.holds(value),
    "a number, a text, true, false or null",
)
_LARGEST = 2**48  # of any count of rows or columns
_MOST_BITS = 48  # of hashed columns
_PROOF = {
    "lam": EXTENDED,
    "total_weight": EXTENDED,
    "certificate": {
        **dict.fromkeys(("primal", "dual", "gap", "relative_gap", "rounding"), EXTENDED),
        "form": one_of("J", "mean"),
    },
    "converged": FLAG,
    "stop_reason": TEXT,
    "message": TEXT,
    "epochs": NOT_NEGATIVE,
    "visits": Optional(WHOLE),
    "steps": Optional(WHOLE),  # the visits of version 1
    "seconds": NOT_NEGATIVE,
}
_CUT = dict.fromkeys(("step", "zeta", "zeta_error", "constant", "error"), NUMBER)
_REGION = {
    "radius": EXTENDED,
    "rho": NOT_NEGATIVE,
    "free": FLAG,
    "intercept": Each(NUMBER),
    "below": Optional(Each(_CUT)),
    "above": Optional(Each(_CUT)),
}
_FIELDS = {
    "format": TEXT,
    "version": COUNT,
    "dualgap": TEXT,
    "task": one_of("classification", "regression", "multilabel", "classes"),
    "loss": {"name": TEXT, "parameters": Each(NUMBER, named=True)},
    "bias": {"kind": TEXT, "rho": EXTENDED},
    "C": EXTENDED,
    "n_samples": COUNT,
    "n_features": WHOLE,
    "classes": Optional(Each(_LABEL)),
    "class_weight": Optional(Each(NOT_NEGATIVE)),
    "absent": Optional(Each(_LABEL)),
    "offsets": Optional(FLAG),
    "regions": Optional(Each(_REGION)),
    "proofs": Each(_PROOF),
    "solver": {
        "name": TEXT,
        "auto_reason": Optional(TEXT),
        "options": Each(SCALAR, named=True),
        "seed": WHOLE,
        "threads": COUNT,
    },
    "trained": Optional({"data": Optional(TEXT), "date": Optional(TEXT)}),
    "fingerprint": Optional(TEXT),
    "rows": Optional({"in_order": Optional(TEXT), "in_any_order": Optional(TEXT)}),
    "zero_based": Optional(FLAG),
    "feature_names": Optional(Each(TEXT)),
    "scale": Optional(TEXT),
    "expansion": Optional({"name": TEXT, "hash_bits": Optional(COUNT), "n_inputs": COUNT}),
}
_REQUIRED = ("classes", "fingerprint", "zero_based", "feature_names")  # null where there are none
_DUALS = ("dual_starts", "dual_rows", "dual_values")
_SPARSE = ("coef_starts", "coef_columns", "coef_values")


def check_header(header: dict[str, Any], arrays: dict[str, Layout]) -> None:
    """Raise a ValueError unless a header is one of a model with arrays of these layouts."""
    check_fields(header, _FIELDS)
    for name in _REQUIRED:
        if name not in header:
            raise ValueError(f"the header lacks the field {name!r}")
    for number, proof in enumerate(header["proofs"]):
        if (proof.get("visits") is None) == (proof.get("steps") is None):
            raise ValueError(f"proofs.{number} must have visits")
    if max(header["n_samples"], header["n_features"]) > _LARGEST:
        raise ValueError(f"n_samples={header['n_samples']}, n_features={header['n_features']}")
    k = _check_arrays(header, arrays)
    _check_columns(header)
    _check_scale(header, arrays)
    _check_regions(header, arrays, k)
    _check_classes(header, k)


def _check_arrays(header: dict[str, Any], arrays: dict[str, Layout]) -> int:
    """Refuse arrays of other names, types or shapes than those of the model that the header tells of; the
    number of rows of coefficients.
    """
    known = {
        "coef": "<f8",
        "intercept": "<f8",
        "dual_starts": "<i8",
        "dual_rows": "<i8",
        "dual_values": "<f8",
    }
    known |= {"centres": "<f8", "directions": "<f8"}
    known |= {"dual_hashes": "<u8", "scale": "<f8", "held_rows": "<i8", "held_hashes": "<u8"}
    known |= {"coef_starts": "<i8", "coef_columns": "<i8", "coef_values": "<f8"}
    for name, layout in arrays.items():
        if name not in known:
            raise ValueError(f"it has an array {shown(name)}, which is not known")
        if layout.dtype.str != known[name]:
            raise ValueError(f"{name} is of type {layout.dtype.str}, and must be {known[name]}")
    present = [name for name in _DUALS if name in arrays]
    weights = [name for name in ("coef", *_SPARSE) if name in arrays]
    sound = weights in (["coef"], list(_SPARSE)) and "intercept" in arrays
    if not sound or present not in ([], list(_DUALS)):
        raise ValueError(f"of its arrays it has only {', '.join(arrays)}")
    d, proofs = header["n_features"], len(header["proofs"])
    coef = arrays["coef"].shape if "coef" in arrays else _sparse_shape(arrays, d)
    k = coef[0] if coef else 0
    expected = 1 if header["task"] == "classes" else k
    if k == 0 or coef != (k, d) or arrays["intercept"].shape != (k,) or proofs not in (0, expected):
        raise ValueError(
            f"coef has shape {coef}, intercept {arrays['intercept'].shape}, for {proofs} proofs and {d} "
            "columns"
        )
    count = arrays["dual_values"].shape if present else None
    shapes = {"dual_starts": (k + 1,), "dual_rows": count, "dual_hashes": count}
    for name, shape in shapes.items():
        if name in arrays and (arrays[name].shape != shape or (shape is not None and len(shape) != 1)):
            raise ValueError(f"{name}, of shape {arrays[name].shape}, does not go with the duals")
    held = [arrays[name].shape for name in ("held_rows", "held_hashes") if name in arrays]
    if ("held_hashes" in arrays and "held_rows" not in arrays) or any(
        shape != held[0] or len(shape) != 1 for shape in held
    ):
        raise ValueError(f"held_rows and held_hashes have the shapes {held}, and must go together")
    return k


def _sparse_shape(arrays: dict[str, Layout], d: int) -> tuple[int, ...]:
    """The shape of sparse coefficients, whose zeros are made when they are read."""
    starts, columns, values = (arrays[name].shape for name in _SPARSE)
    if len(starts) != 1 or starts[0] < 2 or len(values) != 1 or columns != values:
        raise ValueError(
            f"coef_starts, coef_columns and coef_values have shapes {starts}, {columns}, {values}"
        )
    check_unpacked(16 * values[0] + 8 * starts[0], 8 * (starts[0] - 1) * d)
    return starts[0] - 1, d


def _check_regions(header: dict[str, Any], arrays: dict[str, Layout], k: int) -> None:
    """Refuse regions that do not go with the proofs, or whose arrays do not go with k rows of ``coef``."""
    regions, coef = header.get("regions"), (k, header["n_features"])
    rays = sum(region.get(side) is not None for region in regions or () for side in ("below", "above"))
    expected = {} if regions is None else {"centres": coef}
    expected |= {"directions": (rays, coef[1])} if rays else {}
    found = {name: arrays[name].shape for name in ("centres", "directions") if name in arrays}
    if found != expected or (regions is not None and len(regions) != len(header["proofs"])):
        raise ValueError(f"its regions do not go with its proofs: arrays {found}, expected {expected}")
    each = coef[0] if header["task"] == "classes" else 1
    if any(len(region["intercept"]) != each for region in regions or ()):
        raise ValueError("the intercepts of its regions do not go with coef")


def _check_columns(header: dict[str, Any]) -> None:
    """Refuse names and an expansion for another number of columns."""
    expansion, d = header.get("expansion"), header["n_features"]
    inputs = d if expansion is None else expansion["n_inputs"]
    bits = None if expansion is None else expansion.get("hash_bits")
    if inputs > _LARGEST or (bits is not None and (bits > _MOST_BITS or 1 << bits != d)):
        raise ValueError(f"the expansion {shown(expansion)} does not make {d} columns")
    names = header["feature_names"]
    if names is not None and len(names) != inputs:
        raise ValueError(f"there are {len(names)} feature names for {inputs} columns")


def _check_scale(header: dict[str, Any], arrays: dict[str, Layout]) -> None:
    """Refuse a scale that is none, or divisors of columns that do not go with it."""
    from ..data.scaling import MAX_ABS, scale_name

    scale, expansion = header.get("scale"), header.get("expansion")
    if scale is not None and scale_name(scale) != scale:
        raise ValueError(f"scale={shown(scale)}")
    inputs = header["n_features"] if expansion is None else expansion["n_inputs"]
    expected = (inputs,) if scale == MAX_ABS else None
    found = arrays["scale"].shape if "scale" in arrays else None
    if found != expected:
        raise ValueError(f"divisors of columns have shape {found} for scale={shown(scale)}, not {expected}")


def _check_classes(header: dict[str, Any], k: int) -> None:
    """Refuse classes and weights for them that do not go with k rows of coefficients."""
    classes, factors = header["classes"], header.get("class_weight")
    count = None if classes is None else len(classes)
    several = k if k > 1 else 0
    expected = {"classification": max(k, 2), "multilabel": several, "classes": several, "regression": None}
    if count != expected[header["task"]]:
        raise ValueError(f"classes {shown(classes)} do not go with {k} rows of a {header['task']} model")
    if classes is None and header.get("absent"):
        raise ValueError(f"absent={shown(header['absent'])} are labels, and a regression model has none")
    if classes is not None:
        named = classes[1:] if k == 1 and classes[0] is None else classes
        if None in named or len(set(named)) != len(named):
            raise ValueError(f"classes {shown(classes)} are not {count} different labels")
        absent = header.get("absent") or []
        if len({isinstance(label, str) for label in (*named, *absent)}) > 1:
            raise ValueError(f"classes {shown([*named, *absent])} are words and numbers")
        if None in absent or set(named) & set(absent):
            raise ValueError(f"absent={shown(absent)} are no labels, or classes of the model")
    if factors is not None and (len(factors) != count or not math.isfinite(sum(factors))):
        raise ValueError(f"class weights {shown(factors)} do not go with the classes {shown(classes)}")
