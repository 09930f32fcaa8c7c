"""The model file: an archive (``archive.py``) of a header and these arrays.

===============  ===============================================================================
array            content
===============  ===============================================================================
``coef``         float64, shape (k, d): one row for two classes and for regression, else one a class
                 or label
``intercept``    float64, shape (k,)
``dual_starts``  the nonzero duals of all k rows, as the three arrays of a CSR matrix of shape
``dual_rows``    (k, n); left out where the model was saved without duals
``dual_values``
``dual_hashes``  uint64, one for each of ``dual_values``: the hash of its row (``row_hashes`` in
                 fingerprint.py), whose target is -1 or +1 for two classes and else the number of
                 the class, or of the set of labels among all sets that the rows have
``scale``        float64, shape (columns before any expansion,): what each column is divided by,
                 where ``scale`` in the header is "max-abs"
===============  ===============================================================================

The header has a proof for each row of ``coef``, or none at all. Version 1 had ``steps`` in it for ``visits``,
and neither class weights nor what the model was trained on and when. Version 2 had neither a scale nor
multilabel models.
"""

from __future__ import annotations

import os
from typing import Any

import numpy as np
import scipy.sparse as sp

from ..runtime.archive import read_archive, write_archive
from ..runtime.errors import InputError
from .model import Model, Proof

FORMAT = "dualgap model"
VERSION = 3
TASKS = ("classification", "regression", "multilabel")
_CERTIFICATE = {"primal", "dual", "gap", "relative_gap", "rounding", "form"}  # the fields of a Certificate


def save_model(path: str | os.PathLike[str], model: Model) -> None:
    """Write a model, whole or not at all."""
    for label in model.classes or ():
        if label is not None and not isinstance(label, str | int | float):
            raise InputError(
                f"the label {label!r} is of type {type(label).__name__}; a model file holds numbers and words"
            )
    arrays = {"coef": np.asarray(model.coef, "<f8"), "intercept": np.asarray(model.intercept, "<f8")}
    if model.dual is not None:
        dual = sp.csr_array(model.dual)
        arrays["dual_starts"] = dual.indptr.astype("<i8")
        arrays["dual_rows"] = dual.indices.astype("<i8")
        arrays["dual_values"] = dual.data.astype("<f8")
        if model.dual_hashes is not None:
            arrays["dual_hashes"] = np.asarray(model.dual_hashes, "<u8")
    if model.scale_columns is not None:
        arrays["scale"] = np.asarray(model.scale_columns, "<f8")
    write_archive(path, header_of(model), arrays)


def load_model(path: str | os.PathLike[str]) -> Model:
    """Read a model that ``save_model`` wrote."""
    header, arrays = read_archive(path, FORMAT, VERSION)
    try:
        return _model(header, arrays)
    except (KeyError, TypeError, ValueError, AttributeError, IndexError) as error:
        raise InputError(f"{path}: not a valid {FORMAT}: {error!r}") from None


def header_of(model: Model) -> dict[str, Any]:
    """All of a model but its arrays, for JSON."""
    return {
        "format": FORMAT,
        "version": VERSION,
        "dualgap": model.written_by,
        "task": model.task,
        "loss": {"name": model.loss, "parameters": model.loss_parameters},
        "bias": {"kind": model.bias, "rho": model.rho},
        "C": model.C,
        "n_samples": model.n_samples,
        "n_features": model.n_features,
        "classes": None if model.classes is None else list(model.classes),
        "class_weight": None if model.class_weight is None else list(model.class_weight),
        "proofs": [proof._asdict() for proof in model.proofs],
        "solver": {
            "name": model.solver,
            "auto_reason": model.auto_reason,
            "options": model.options,
            "seed": model.seed,
            "threads": model.threads,
        },
        "trained": {"data": model.data_name, "date": model.trained},
        "fingerprint": model.fingerprint,
        "rows": {"in_order": model.rows_in_order, "in_any_order": model.rows_in_any_order},
        "zero_based": model.zero_based,
        "feature_names": None if model.feature_names is None else list(model.feature_names),
        "scale": model.scale,
        "expansion": None
        if model.expand is None
        else {"name": model.expand, "hash_bits": model.hash_bits, "n_inputs": model.n_inputs},
    }


def _model(header: dict[str, Any], arrays: dict[str, Any]) -> Model:
    coef, intercept = arrays["coef"], arrays["intercept"]
    k = int(coef.shape[0])
    _check_shapes(header, coef, intercept)
    expansion, rows = header.get("expansion") or {}, header.get("rows") or {}
    trained, names, classes = header.get("trained") or {}, header["feature_names"], header["classes"]
    dual, hashes = _duals(arrays, (k, header["n_samples"]))
    factors = header.get("class_weight")
    return Model(
        coef=coef,
        intercept=intercept,
        task=header["task"],
        loss=header["loss"]["name"],
        loss_parameters={str(key): float(value) for key, value in header["loss"]["parameters"].items()},
        bias=header["bias"]["kind"],
        rho=float(header["bias"]["rho"]),
        classes=None if classes is None else tuple(classes),
        C=float(header["C"]),  # "inf" of a hard margin or lam = 0
        n_samples=header["n_samples"],
        proofs=tuple(_proof(values) for values in header["proofs"]),
        solver=header["solver"]["name"],
        options=header["solver"]["options"],
        seed=header["solver"]["seed"],
        threads=header["solver"]["threads"],
        fingerprint=header["fingerprint"],
        dual=dual,
        zero_based=header["zero_based"],
        feature_names=None if names is None else tuple(names),
        expand=expansion.get("name"),
        hash_bits=expansion.get("hash_bits"),
        n_inputs=expansion.get("n_inputs"),
        scale=header.get("scale"),
        scale_columns=_scale_columns(header, arrays),
        rows_in_order=rows.get("in_order"),
        rows_in_any_order=rows.get("in_any_order"),
        dual_hashes=hashes,
        class_weight=None if factors is None else tuple(float(value) for value in factors),
        auto_reason=header["solver"].get("auto_reason", ""),
        data_name=trained.get("data"),
        trained=trained.get("date"),
        written_by=header["dualgap"],
    )


def _check_shapes(header: dict[str, Any], coef: Any, intercept: Any) -> None:
    """Refuse parts that do not go together."""
    k, d, n = coef.shape[0], header["n_features"], header["n_samples"]
    if k == 0 or coef.shape != (k, d) or intercept.shape != (k,) or len(header["proofs"]) not in (0, k):
        raise ValueError(
            f"coef has shape {coef.shape}, intercept {intercept.shape}, for {len(header['proofs'])} proofs "
            f"and {d} columns"
        )
    if not (np.isfinite(coef).all() and np.isfinite(intercept).all()):
        raise ValueError("coef or intercept holds numbers that are not finite")
    if header["task"] not in TASKS:
        raise ValueError(f"the task is {header['task']!r}")
    classes, factors = header["classes"], header.get("class_weight")
    count = None if classes is None else len(classes)
    expected = {"classification": max(k, 2), "multilabel": k if k > 1 else None}
    if count != expected.get(header["task"]) or (header["task"] == "multilabel" and count is None):
        raise ValueError(f"classes {classes} do not go with {k} rows of a {header['task']} model")
    if k > 1 and len({*classes} - {None}) != count:
        raise ValueError(f"classes {classes} are not {count} different labels")
    if factors is not None and (
        len(factors) != count or not all(0.0 <= float(value) < np.inf for value in factors)
    ):
        raise ValueError(f"class weights {factors} do not go with the classes {classes}")
    if type(n) is not int or n < 1:
        raise ValueError(f"n_samples is {n!r}")
    for kind in (header["loss"]["name"], header["bias"]["kind"]):
        if not isinstance(kind, str):
            raise TypeError(f"the name of a loss or bias is {kind!r}")


def _scale_columns(header: dict[str, Any], arrays: dict[str, Any]) -> Any:
    """What columns are divided by; refuse a scale that is none, or does not go with it."""
    from ..data.scaling import MAX_ABS, scale_name

    scale, columns = header.get("scale"), arrays.get("scale")
    if scale is not None and (not isinstance(scale, str) or scale_name(scale) != scale):
        raise ValueError(f"the scale is {scale!r}")
    if (columns is not None) != (scale == MAX_ABS):
        raise ValueError(f"divisors of columns are {'missing' if columns is None else 'there'} for {scale=}")
    if columns is None:
        return None
    expected = (header["expansion"]["n_inputs"] if header.get("expansion") else header["n_features"],)
    sound = columns.shape == expected and columns.dtype == np.float64
    if not sound or not (np.isfinite(columns) & (columns > 0.0)).all():
        raise ValueError(
            f"the divisors of {expected[0]} columns have shape {columns.shape} or are not positive"
        )
    return columns


def _duals(arrays: dict[str, Any], shape: tuple[int, int]) -> tuple[Any, Any]:
    """The duals as a CSR matrix and the hashes of their rows, each None where it is left out."""
    dual, hashes = None, arrays.get("dual_hashes")
    if "dual_values" in arrays:
        dual = sp.csr_array((arrays["dual_values"], arrays["dual_rows"], arrays["dual_starts"]), shape=shape)
        dual.check_format(full_check=True)
    if hashes is not None and (dual is None or hashes.shape != dual.data.shape or hashes.dtype != np.uint64):
        raise ValueError(
            f"dual_hashes, of type {hashes.dtype} and shape {hashes.shape}, do not go with the duals"
        )
    return dual, hashes


def _proof(values: dict[str, Any]) -> Proof:
    certificate = {
        key: value if key == "form" else float(value) for key, value in values["certificate"].items()
    }
    if set(certificate) != _CERTIFICATE:
        raise ValueError(f"the certificate has the fields {', '.join(certificate)}")
    told = {"visits" if key == "steps" else key: value for key, value in values.items()}
    numbers = {key: float(values[key]) for key in ("lam", "total_weight")}
    return Proof(**{**told, **numbers, "certificate": certificate})
