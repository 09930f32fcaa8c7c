"""J_opt of every problem, from a certificate of dualgap itself, cached by the fingerprint of the data."""

from __future__ import annotations

import json
from typing import Any

from .objective import objective
from .pool import Pool, WorkerError
from .roster import Contestant
from .sets import Info

GAP = 1e-7
_AGREEMENT = 1e-9  # of the certificate's primal value with the independent one


def reference(
    pool: Pool, contestant: Contestant, info: Info, X: Any, y: Any, loss: str, C: float, limit: float
) -> dict[str, Any]:
    """Bounds of J_opt: ``dual <= J_opt <= primal``.

    Where the time limit ends the run above 1e-7, the bounds are as far apart as ``relative_gap`` says, and a later call
    with a longer limit tries again.
    """
    path = pool.cache / "reference" / f"{info.name}-{info.fingerprint[:16]}-{loss}-C{C:g}.json"
    if path.exists():
        known: dict[str, Any] = json.loads(path.read_text())
        if known["relative_gap"] <= GAP or known["limit"] >= limit:
            return known
    answer, w = pool.run(contestant, info, loss, C, contestant.solver, GAP, limit)
    last = answer["trace"][-1]
    primal = objective(X, y, w, answer["b"], loss, C)
    if abs(primal - last["primal"]) > _AGREEMENT * primal:
        raise WorkerError(
            "disagreement", f"certified primal value {last['primal']!r}, computed independently {primal!r}"
        )
    found = {
        "primal": primal,
        "dual": last["dual"],
        "relative_gap": last["relative_gap"],
        "seconds": answer["seconds"],
        "solver": answer["note"],
        "limit": limit,
    }
    path.parent.mkdir(parents=True, exist_ok=True)
    path.write_text(json.dumps(found))
    return found
