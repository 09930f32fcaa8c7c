"""The model file: an archive (``archive.py``) of a header and these arrays.

===============  ===============================================================================
array            content
===============  ===============================================================================
``coef``         float64, shape (k, d): one row for two classes and for regression, else one a class
                 or label
``coef_starts``  in place of ``coef``, where that was asked for (``sparse``): its nonzeros, as the three
``coef_columns`` arrays of a CSR matrix of shape (k, d)
``coef_values``
``intercept``    float64, shape (k,)
``dual_starts``  the nonzero duals of all k rows, as the three arrays of a CSR matrix of shape
``dual_rows``    (k, n); left out where the model was saved without duals
``dual_values``
``dual_hashes``  uint64, one for each of ``dual_values``: the hash of its row (``row_hashes`` in
                 fingerprint.py), whose target is -1 or +1 for two classes and else (and in joint
                 models) the number of the class, or of the set of labels among all sets that the rows have
``held_rows``    int64, rising: the rows that were held out of training for validation, if any were
``held_hashes``  uint64, one for each of these: the hash of the row as the data have it
``scale``        float64, shape (columns before any expansion,): what each column is divided by,
                 where ``scale`` in the header is "max-abs"
===============  ===============================================================================

The header (``header.py``) has a proof for each row of ``coef``, or none at all; a joint model (task
"classes") has one for all k rows, which are its classes. Version 1 had ``steps`` in it for ``visits``, and
neither class weights nor what the model was trained on and when. Version 2 had neither a scale nor multilabel
models.
"""

from __future__ import annotations

import os
from typing import Any

import numpy as np
import scipy.sparse as sp

from ..runtime.archive import read_archive, write_archive
from ..runtime.errors import InputError
from .header import check_header
from .model import Model, Proof
from .regions import region_arrays, region_fields, regions_from

FORMAT = "dualgap model"
VERSION = 3


def save_model(path: str | os.PathLike[str], model: Model, *, sparse: bool = False) -> None:
    """Write a model, whole or not at all; ``sparse``: of its coefficients only those that are not 0."""
    for label in (*(model.classes or ()), *model.absent):
        if label is not None and not isinstance(label, str | int | float):
            raise InputError(
                f"the label {label!r} is of type {type(label).__name__}; a model file holds numbers and words"
            )
    if sparse:
        coef = sp.csr_array(model.coef)
        arrays = {"coef_starts": coef.indptr.astype("<i8"), "coef_columns": coef.indices.astype("<i8")}
        arrays["coef_values"] = coef.data.astype("<f8")
    else:
        arrays = {"coef": np.asarray(model.coef, "<f8")}
    arrays["intercept"] = np.asarray(model.intercept, "<f8")
    if model.dual is not None:
        dual, hashes = sp.csr_array(model.dual), model.dual_hashes
        if not dual.has_sorted_indices:
            places = sp.csr_array((np.arange(dual.nnz), dual.indices, dual.indptr), shape=dual.shape)
            hashes = None if hashes is None else np.asarray(hashes)[places.sorted_indices().data]
            dual = dual.sorted_indices()  # a copy
        arrays["dual_starts"] = dual.indptr.astype("<i8")
        arrays["dual_rows"] = dual.indices.astype("<i8")
        arrays["dual_values"] = dual.data.astype("<f8")
        if hashes is not None:
            arrays["dual_hashes"] = np.asarray(hashes, "<u8")
    if model.held_rows is not None:
        arrays["held_rows"] = np.asarray(model.held_rows, "<i8")
    if model.held_rows is not None and model.held_hashes is not None:
        arrays["held_hashes"] = np.asarray(model.held_hashes, "<u8")
    if model.regions is not None:
        arrays |= region_arrays(model.regions)
    if model.scale_columns is not None:
        arrays["scale"] = np.asarray(model.scale_columns, "<f8")
    write_archive(path, header_of(model), arrays)


def load_model(path: str | os.PathLike[str]) -> Model:
    """Read a model that ``save_model`` wrote."""
    header, arrays = read_archive(path, FORMAT, VERSION, check_header)
    try:
        return _model(header, arrays)
    except ValueError as fault:
        raise InputError(f"{path}: not a valid {FORMAT}: {fault}") from None


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
        **({"absent": list(model.absent)} if model.absent else {}),
        **({"offsets": True} if model.offsets else {}),
        **({} if model.regions is None else {"regions": region_fields(model.regions)}),
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
    """The model of a header that has been checked."""
    coef, intercept = _coef(arrays, header["n_features"]), arrays["intercept"]
    if not (np.isfinite(coef).all() and np.isfinite(intercept).all()):
        raise ValueError("coef or intercept holds numbers that are not finite")
    expansion, rows = header.get("expansion") or {}, header.get("rows") or {}
    trained, names, classes = header.get("trained") or {}, header["feature_names"], header["classes"]
    dual, hashes = _duals(arrays, (coef.shape[0], header["n_samples"]))
    factors, solver = header.get("class_weight"), header["solver"]
    return Model(
        coef=coef,
        intercept=intercept,
        task=header["task"],
        loss=header["loss"]["name"],
        loss_parameters={key: float(value) for key, value in header["loss"]["parameters"].items()},
        bias=header["bias"]["kind"],
        rho=float(header["bias"]["rho"]),
        classes=None if classes is None else tuple(classes),
        C=float(header["C"]),  # "inf" of a hard margin or lam = 0
        n_samples=header["n_samples"],
        proofs=tuple(_proof(values) for values in header["proofs"]),
        solver=solver["name"],
        options=solver["options"],
        seed=solver["seed"],
        threads=solver["threads"],
        fingerprint=header["fingerprint"],
        dual=dual,
        zero_based=header["zero_based"],
        feature_names=None if names is None else tuple(names),
        expand=expansion.get("name"),
        hash_bits=expansion.get("hash_bits"),
        n_inputs=expansion.get("n_inputs"),
        scale=header.get("scale"),
        scale_columns=_scale_columns(arrays),
        rows_in_order=rows.get("in_order"),
        rows_in_any_order=rows.get("in_any_order"),
        dual_hashes=hashes,
        class_weight=None if factors is None else tuple(float(value) for value in factors),
        held_rows=_held_rows(arrays, header["n_samples"]),
        held_hashes=arrays.get("held_hashes"),
        absent=tuple(header.get("absent") or ()),
        offsets=bool(header.get("offsets")),
        regions=None if header.get("regions") is None else regions_from(header["regions"], arrays),
        auto_reason=solver.get("auto_reason") or "",
        data_name=trained.get("data"),
        trained=trained.get("date"),
        written_by=header["dualgap"],
    )


def _coef(arrays: dict[str, Any], d: int) -> Any:
    """The coefficients, dense however they were saved."""
    if "coef" in arrays:
        return arrays["coef"]
    starts, columns, values = (arrays[f"coef_{name}"] for name in ("starts", "columns", "values"))
    if starts[0] != 0 or starts[-1] != columns.size or (np.diff(starts) < 0).any():
        raise ValueError("coef_starts are no offsets into the coefficients")
    if columns.size and not 0 <= columns.min() <= columns.max() < d:
        raise ValueError(f"coef_columns names columns beyond the {d} that there are")
    coef = np.zeros((starts.size - 1, d))
    coef[np.repeat(np.arange(starts.size - 1), np.diff(starts)), columns] = values
    return coef


def _scale_columns(arrays: dict[str, Any]) -> Any:
    """What columns are divided by, or None."""
    columns = arrays.get("scale")
    if columns is not None and not (np.isfinite(columns) & (columns > 0.0)).all():
        raise ValueError("the divisors of columns are not all positive numbers")
    return columns


def _held_rows(arrays: dict[str, Any], n: int) -> Any:
    rows = arrays.get("held_rows")
    if rows is None:
        return None
    if not (0 < rows.size < n and rows[0] >= 0 and rows[-1] < n and (np.diff(rows) > 0).all()):
        raise ValueError(f"held_rows are no numbers, in rising order, of some of the {n} rows")
    return rows


def _duals(arrays: dict[str, Any], shape: tuple[int, int]) -> tuple[Any, Any]:
    """The duals as a CSR matrix and the hashes of their rows, each None where it is left out."""
    if "dual_values" not in arrays:
        return None, None
    values, rows, starts = (arrays[f"dual_{name}"] for name in ("values", "rows", "starts"))
    # SciPy looks at offsets only where the last of them is positive
    if starts[0] != 0 or starts[-1] != rows.size or (np.diff(starts) < 0).any():
        raise ValueError("dual_starts are no offsets into the duals")
    if rows.size and not 0 <= rows.min() <= rows.max() < shape[1]:
        raise ValueError(f"dual_rows names rows beyond the {shape[1]} that there are")
    rises, between = np.diff(rows) > 0, starts[(starts > 0) & (starts < rows.size)]
    rises[between - 1] = True  # from the rows of one model to those of the next
    if not rises.all() or not np.isfinite(values).all():
        raise ValueError("the rows of the duals do not rise, or their numbers are not finite")
    return sp.csr_array((values, rows, starts), shape=shape), arrays.get("dual_hashes")


def _proof(values: dict[str, Any]) -> Proof:
    told = {"visits" if key == "steps" else key: value for key, value in values.items()}
    certificate = {
        key: value if key == "form" else float(value) for key, value in told["certificate"].items()
    }
    numbers = {key: float(told[key]) for key in ("lam", "total_weight", "epochs", "seconds")}
    return Proof(**{**told, **numbers, "certificate": certificate})
