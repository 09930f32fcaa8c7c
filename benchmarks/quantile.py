"""``python -m benchmarks.quantile``: quantile regression beside scikit-learn's ``QuantileRegressor``.

scikit-learn solves a linear program (HiGHS) with an l1 penalty, here 0; dualgap has an l2 penalty, here small
(C = 1): what it adds to the mean pinball loss vanishes with the number of rows. Each fit is a process of its
own with a limit on its processor seconds; times are of the processor, kernels compiled before.
"""

from __future__ import annotations

import argparse
import json
import signal
import subprocess
import sys
from pathlib import Path
from typing import Any

from . import machine
from .appendix import taken_on

COLUMNS, QUANTILE = 20, 0.9
_FIT = """
import json, resource, time, warnings
import numpy as np
warnings.simplefilter("ignore")
resource.setrlimit(resource.RLIMIT_CPU, ({limit}, {limit}))
rng = np.random.default_rng(0)
X = rng.normal(size=({rows}, {columns}))
y = X @ rng.normal(size={columns}) + (1 + np.abs(X[:, 0])) * rng.exponential(size={rows})
who, q = {who!r}, {quantile}
gap = None
if who == "scikit-learn":
    from sklearn.linear_model import QuantileRegressor
    model = QuantileRegressor(quantile=q, alpha=0.0, solver="highs")
    began = time.process_time()
    model.fit(X, y)
    seconds = time.process_time() - began
    scores = model.predict(X)
else:
    import dualgap
    fit = lambda X, y: dualgap.fit(X, y, loss=f"quantile:quantile={{q}}", C=1.0, bias="exact", tol={tol})
    fit(X[:500], y[:500])
    fit(X[:3000], y[:3000])
    began = time.process_time()
    outcome = fit(X, y)
    seconds = time.process_time() - began
    scores, gap = X @ outcome.coef + outcome.intercept, outcome.certificate.relative_gap
off = y - scores
loss = float(np.maximum(q * off, (q - 1) * off).mean())
memory = resource.getrusage(resource.RUSAGE_SELF).ru_maxrss / 1e3
print(json.dumps({{"seconds": seconds, "loss": loss, "gap": gap, "megabytes": memory}}))
"""


def measured(who: str, rows: int, tol: float, limit: float) -> dict[str, Any] | None:
    """One fit in a process of its own; None where it did not end in time."""
    sizes = {"rows": rows, "columns": COLUMNS, "quantile": QUANTILE, "tol": tol, "limit": int(limit)}
    code = _FIT.format(who=who, **sizes)
    done = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True)
    if done.returncode in (-signal.SIGXCPU, -signal.SIGKILL):
        return None
    if done.returncode:
        last = (done.stderr.strip().splitlines() or [f"signal {-done.returncode}"])[-1]
        return {"error": last}
    found: dict[str, Any] = json.loads(done.stdout.splitlines()[-1])
    return found


def row_of(name: str, rows: int, found: dict[str, Any] | None, limit: float, tried: bool) -> str:
    if found is None:
        return f"| {rows:,} | {name} | {f'not within {limit:g}' if tried else 'not tried'} | | | |"
    if "error" in found:
        return f"| {rows:,} | {name} | {found['error']} | | | |"
    gap = "" if found["gap"] is None else f"{found['gap']:.1e}"
    return (
        f"| {rows:,} | {name} | {found['seconds']:.2f} | {found['loss']:.6f} | {gap} | "
        f"{found['megabytes']:.0f} |"
    )


def page(lines: list[str]) -> str:
    return "\n".join(
        [
            "# Quantile regression",
            "",
            taken_on(machine.describe()),
            "",
            f"The {QUANTILE} quantile of a target with skewed noise, {COLUMNS} columns, an intercept that is "
            "not penalised. scikit-learn's `QuantileRegressor(alpha=0, solver='highs')`; dualgap's "
            "`fit(loss='quantile:quantile=0.9', C=1, bias='exact')`. Processor seconds of one fit, the mean "
            "pinball loss on the training rows, the relative gap that is proven, and the most memory of the "
            "process.",
            "",
            "| rows | fit | seconds | mean loss | proven gap | MB |",
            "| ---: | --- | ---: | ---: | ---: | ---: |",
            *lines,
            "",
        ]
    )


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawTextHelpFormatter)
    parser.add_argument("--rows", type=int, nargs="*", default=[1_000, 10_000, 100_000, 1_000_000])
    parser.add_argument("--limit", type=float, default=300.0, help="seconds for each fit")
    parser.add_argument("--out", type=Path, help="folder for QUANTILE.md")
    given = parser.parse_args()
    fits = (("scikit-learn", 0.0), ("dualgap, tol=1e-3", 1e-3), ("dualgap, tol=1e-5", 1e-5))
    lines, late = [], set()
    for rows in given.rows:
        for name, tol in fits:
            tried = name not in late
            found = measured(name, rows, tol, given.limit) if tried else None
            if found is None or "error" in found:
                late.add(name)  # more rows take longer
            lines.append(row_of(name, rows, found, given.limit, tried))
            print(lines[-1], flush=True)
    if given.out is not None:
        (given.out / "QUANTILE.md").write_text(page(lines))


if __name__ == "__main__":
    main()
