"""dualgap itself: an arm is a solver's name, the value the relative gap at which it stops."""

from __future__ import annotations

from typing import Any

from . import Fitted


def version() -> str:
    """What is installed."""
    import dualgap

    return dualgap.__version__


def prepare(X: Any, y: Any) -> Any:
    """The arrays as they are."""
    return X, y


def stands_for(arm: str) -> list[str]:
    """The solvers that an arm may turn out to be: all of them compile at first use."""
    return ["dcd", "newton"] if arm == "auto" else [arm]


def train(data: Any, loss: str, C: float, arm: str, value: float, threads: int, limit: float | None) -> Any:
    """Train until the certificate says so, or until the time is up."""
    import dualgap

    X, y = data
    return dualgap.fit(
        X,
        y,
        loss=loss,
        C=C,
        solver=arm,
        tol=value,
        threads=threads,
        time_limit=limit,
        max_epochs=None,
        seed=0,
    )


def fitted(model: Any) -> Fitted:
    """The model with the history of its certificates; a certifying pass counts as a pass."""
    trace = tuple(
        {
            "seconds": record.seconds,
            "certify_seconds": record.certify_seconds,
            "passes": record.epochs + number,
            "primal": record.certificate.primal,
            "dual": record.certificate.dual,
            "relative_gap": record.certificate.relative_gap,
        }
        for number, record in enumerate(model.trace, start=1)
    )
    note = f"{model.solver.name}: {model.reason.name}"
    return Fitted(model.coef, model.intercept, trace[-1]["passes"], trace, model.converged, note)
