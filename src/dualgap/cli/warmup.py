"""``dualgap warmup``: compile kernels ahead of the first run."""

from __future__ import annotations

import time
from itertools import product
from typing import TYPE_CHECKING, Any

import click

from .console import Spinner, counted, emit, json_option

if TYPE_CHECKING:
    from pathlib import Path

COMMON = ("hinge", "squared-hinge", "logistic", "squared")


@click.command(short_help="Compile the common kernels into the cache.")
@click.option(
    "--loss",
    "losses",
    metavar="NAME",
    multiple=True,
    help="Only this loss, for all layouts; may be repeated.",
)
@json_option
def command(losses: tuple[str, ...], as_json: bool) -> None:
    """Compile the common kernels into the cache, so that the first training does not have to.

    Common are sparse float64 rows (what data files become) with every loss, and the hinge, squared hinge,
    logistic and squared losses with dense and float32 rows, and with rows of very many columns. The
    environment variable DUALGAP_CACHE moves the cache.
    """
    began = time.perf_counter()
    with Spinner(not as_json) as spinner:
        spinner.say("loading the compiler")
        from ..core.losses import LOSSES, make_loss
        from ..runtime.kernel_cache import cache_root

        wanted = {make_loss(name).name for name in losses}
        cases = [
            (loss, layout, dtype)
            for loss, layout, dtype in product(LOSSES, ("sparse", "dense", "wide"), ("float64", "float32"))
            if (layout, dtype) != ("wide", "float32")
            and (loss in (wanted or COMMON) or (not wanted and (layout, dtype) == ("sparse", "float64")))
        ]
        for number, case in enumerate(cases, start=1):
            spinner.say(f"{number} of {len(cases)}: {' '.join(case)}")
            _fit_tiny(*case)
    seconds = time.perf_counter() - began
    folder = cache_root()
    usable = _holds_files(folder)
    if as_json:
        emit({"cache": str(folder), "usable": usable, "cases": len(cases), "seconds": seconds})
        return
    click.echo(f"{counted(len(cases), 'case')} ready in {seconds:.1f} s")
    click.echo(
        f"cache: {folder}" if usable else f"cache: {folder} cannot be written to, so every run compiles anew"
    )


def _fit_tiny(loss: str, layout: str, dtype: str) -> None:
    import numpy as np
    import scipy.sparse as sp

    from ..api import fit
    from ..data.rows import MANY

    X: Any = np.array([[1.0, 0.0], [0.0, 1.0], [1.0, 1.0]], dtype=dtype)
    if layout != "dense":
        X = sp.csr_array(X)
    if layout == "wide":
        X.resize(3, MANY + 1)
    fit(X, np.array([1.0, -1.0, 1.0]), loss=loss, max_epochs=3)


def _holds_files(folder: Path) -> bool:
    return folder.is_dir() and any(folder.rglob("*.nbi"))
