"""The model file: an archive (``archive.py``) of a header and these arrays.

===============  ===============================================================================
array            content
===============  ===============================================================================
``coef``         float64, shape (k, d): one row for two classes and for regression, else one a class
``intercept``    float64, shape (k,)
``dual_starts``  the nonzero duals of all k rows, as the three arrays of a CSR matrix of shape
``dual_rows``    (k, n); left out where the model was saved without duals
``dual_values``
``dual_hashes``  uint64, one for each of ``dual_values``: the hash of its row (``row_hashes`` in
                 fingerprint.py)
===============  ===============================================================================
"""

from __future__ import annotations

import os
from collections.abc import Iterator
from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Any, NamedTuple

import numpy as np
import scipy.sparse as sp

from .._version import __version__
from ..runtime.archive import read_archive, write_archive
from ..runtime.arrays import Floats
from ..runtime.errors import InputError

if TYPE_CHECKING:  # Numba comes with these, and loading a model to predict does without
    from ..core.problem import Certificate
    from ..data.dataset import DataSpec
    from ..data.schema import Schema
    from .verification import Verification

FORMAT = "dualgap model"
VERSION = 1
_CERTIFICATE = {"primal", "dual", "gap", "relative_gap", "rounding", "form"}  # the fields of a Certificate


class Proof(NamedTuple):
    """The certificate of one row of ``coef``, and how it was reached."""

    lam: float
    total_weight: float
    certificate: dict[str, Any]  # the fields of a Certificate, in J form
    converged: bool
    stop_reason: str
    message: str
    epochs: float
    steps: int
    seconds: float


@dataclass(frozen=True, eq=False)
class Model:
    """A linear model with its certificate.

    ``classes`` are the labels behind the scores: (negative, positive) where ``coef`` has one row, one a row
    where it has more, None for regression. A negative class of None stands for every label but the positive
    one.
    """

    coef: Floats
    intercept: Floats
    task: str
    loss: str
    loss_parameters: dict[str, float]
    bias: str
    rho: float
    classes: tuple[Any, ...] | None
    C: float
    n_samples: int
    proofs: tuple[Proof, ...]
    solver: str
    options: dict[str, Any]
    seed: int
    threads: int
    fingerprint: str | None = None  # of the training rows, see fingerprint.py
    dual: Any = None  # scipy CSR array of shape (k, n_samples), or None where it was left out
    zero_based: bool | None = (
        None  # whether indices in the training file count from 0; None if it was no file
    )
    feature_names: tuple[str, ...] | None = None
    expand: str | None = None  # what makes features of rows, as `make_expansion` reads it
    hash_bits: int | None = None
    n_inputs: int | None = None  # columns of the rows before they are expanded
    rows_in_order: str | None = (
        None  # a fingerprint made of hashes of single rows (None in models of earlier versions),
    )
    rows_in_any_order: str | None = None  # and one for the same rows in whatever order
    dual_hashes: Any = None  # of the rows that have the nonzero duals: these are found again in another order
    written_by: str = field(default=__version__)

    @property
    def n_features(self) -> int:
        """The number of columns."""
        return int(self.coef.shape[1])

    @property
    def certificate(self) -> Certificate:
        """The certificate of the first row, in J form."""
        from ..core.problem import Certificate

        return Certificate(**self.proofs[0].certificate)

    def decision(self, X: Any) -> Floats:
        """``<w, x> + b``: one number a row of X, before any expansion, or k of them for one-vs-rest."""
        scores: Floats = np.asarray(self.features(X) @ self.coef.T) + self.intercept
        return scores[:, 0] if self.coef.shape[0] == 1 else scores

    def scores(self, spec: DataSpec) -> Iterator[Floats]:
        """The decision values of the rows of a file, some thousands at a time, in bounded memory."""
        from ..data.dataset import scan

        for table in scan(spec, self.schema):
            yield self.decision(table.X)

    @property
    def n_columns(self) -> int:
        """The number of columns of its rows, before any expansion."""
        return self.n_features if self.n_inputs is None else self.n_inputs

    @property
    def schema(self) -> Schema:
        """The columns, features and labels that rows must have for this model."""
        from ..data.features import make_expansion
        from ..data.labels import Labels
        from ..data.schema import Schema

        expansion = make_expansion(self.expand, self.hash_bits)
        labels = None if self.classes is None else Labels(self.classes)
        return Schema(self.n_columns, self.zero_based, self.feature_names, expansion, labels, "the model")

    def features(self, X: Any) -> Any:
        """The rows that the weights belong to: expanded, if the model was trained so."""
        return X if self.expand is None else self.schema.expand(X)

    def labels(self, scores: Floats) -> list[Any]:
        """The labels that decision values stand for; a score of 0 counts as negative."""
        if self.classes is None:
            raise InputError(f"the {self.loss} loss is for regression: the model has scores, but no labels")
        chosen = (scores > 0).astype(int) if scores.ndim == 1 else scores.argmax(axis=1)
        from ..data.labels import plain

        classes = [plain(label) for label in self.classes]
        return [classes[k] for k in chosen.tolist()]

    def save(self, path: str | os.PathLike[str]) -> None:
        """Write the model to a file, whole or not at all."""
        save_model(path, self)

    @staticmethod
    def load(path: str | os.PathLike[str]) -> Model:
        """Read a model that was saved."""
        return load_model(path)

    def verify(self, data: Any) -> Verification:
        """Recompute the certificate from the training rows: a path, a DataSpec, or a Dataset opened in this
        schema.
        """
        from .verification import verify

        return verify(self, data)


def save_model(path: str | os.PathLike[str], model: Model) -> None:
    """Write a model, whole or not at all."""
    arrays = {"coef": np.asarray(model.coef, "<f8"), "intercept": np.asarray(model.intercept, "<f8")}
    if model.dual is not None:
        dual = sp.csr_array(model.dual)
        arrays["dual_starts"] = dual.indptr.astype("<i8")
        arrays["dual_rows"] = dual.indices.astype("<i8")
        arrays["dual_values"] = dual.data.astype("<f8")
        if model.dual_hashes is not None:
            arrays["dual_hashes"] = np.asarray(model.dual_hashes, "<u8")
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
        "proofs": [proof._asdict() for proof in model.proofs],
        "solver": {
            "name": model.solver,
            "options": model.options,
            "seed": model.seed,
            "threads": model.threads,
        },
        "fingerprint": model.fingerprint,
        "rows": {"in_order": model.rows_in_order, "in_any_order": model.rows_in_any_order},
        "zero_based": model.zero_based,
        "feature_names": None if model.feature_names is None else list(model.feature_names),
        "expansion": None
        if model.expand is None
        else {"name": model.expand, "hash_bits": model.hash_bits, "n_inputs": model.n_inputs},
    }


def _model(header: dict[str, Any], arrays: dict[str, Any]) -> Model:
    coef, intercept = arrays["coef"], arrays["intercept"]
    k, d, n = len(header["proofs"]), header["n_features"], header["n_samples"]
    if k == 0 or coef.shape != (k, d) or intercept.shape != (k,):
        raise ValueError(
            f"coef has shape {coef.shape}, intercept {intercept.shape}, for {k} rows of {d} columns"
        )
    if not (np.isfinite(coef).all() and np.isfinite(intercept).all()):
        raise ValueError("coef or intercept holds numbers that are not finite")
    classes, names = header["classes"], header["feature_names"]
    if (None if classes is None else len(classes)) != (
        max(k, 2) if header["task"] == "classification" else None
    ):
        raise ValueError(f"classes {classes} do not go with {k} rows of a {header['task']} model")
    expansion, rows = header.get("expansion") or {}, header.get("rows") or {}
    if type(n) is not int or n < 1:
        raise ValueError(f"n_samples is {n!r}")
    for kind in (header["loss"]["name"], header["bias"]["kind"]):
        if not isinstance(kind, str):
            raise TypeError(f"the name of a loss or bias is {kind!r}")
    parameters = {str(key): float(value) for key, value in header["loss"]["parameters"].items()}
    dual, hashes = None, arrays.get("dual_hashes")
    if "dual_values" in arrays:
        dual = sp.csr_array((arrays["dual_values"], arrays["dual_rows"], arrays["dual_starts"]), shape=(k, n))
        dual.check_format(full_check=True)
    if hashes is not None and (dual is None or hashes.shape != dual.data.shape or hashes.dtype != np.uint64):
        raise ValueError(
            f"dual_hashes, of type {hashes.dtype} and shape {hashes.shape}, do not go with the duals"
        )
    return Model(
        coef,
        intercept,
        header["task"],
        header["loss"]["name"],
        parameters,
        header["bias"]["kind"],
        float(header["bias"]["rho"]),
        None if classes is None else tuple(classes),
        float(header["C"]),  # "inf" of a hard margin or lam = 0
        n,
        tuple(_proof(values) for values in header["proofs"]),
        header["solver"]["name"],
        header["solver"]["options"],
        header["solver"]["seed"],
        header["solver"]["threads"],
        header["fingerprint"],
        dual,
        header["zero_based"],
        None if names is None else tuple(names),
        expansion.get("name"),
        expansion.get("hash_bits"),
        expansion.get("n_inputs"),
        rows.get("in_order"),
        rows.get("in_any_order"),
        hashes,
        header["dualgap"],
    )


def _proof(values: dict[str, Any]) -> Proof:
    certificate = {
        key: value if key == "form" else float(value) for key, value in values["certificate"].items()
    }
    if set(certificate) != _CERTIFICATE:
        raise ValueError(f"the certificate has the fields {', '.join(certificate)}")
    numbers = {key: float(values[key]) for key in ("lam", "total_weight")}
    return Proof(**{**values, **numbers, "certificate": certificate})
