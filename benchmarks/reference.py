"""J_opt of every problem, from a certificate of dualgap itself, cached by the fingerprint of the data."""

from __future__ import annotations

import json
import math
from collections.abc import Sequence
from typing import Any

from .objective import objective
from .pool import Pool, WorkerError
from .roster import Contestant
from .sets import Info

GAP = 1e-7
_AGREEMENT = 1e-9  # of the certificate's primal value with the independent one


def reference(
    pool: Pool,
    contestants: Sequence[Contestant],
    info: Info,
    X: Any,
    y: Any,
    loss: str,
    C: float,
    limit: float,
) -> dict[str, Any]:
    """Bounds of J_opt: ``dual <= J_opt <= primal``, the best that the contestants find, asked one after the
    other.

    Where the time limit ends all of them above 1e-7, the bounds are as far apart as ``relative_gap`` says,
    and a later call with a longer limit tries again.
    """
    path = pool.cache / "reference" / f"{info.name}-{info.fingerprint[:16]}-{loss}-C{C:g}.json"
    found: dict[str, Any] = {
        "primal": math.inf,
        "dual": 0.0,
        "relative_gap": math.inf,
        "seconds": 0.0,
        "limit": 0.0,
    }
    if path.exists():
        found = json.loads(path.read_text())
    if found["relative_gap"] <= GAP or found["limit"] >= limit:
        return found
    found |= {"seconds": 0.0, "limit": limit, "solver": ""}
    for contestant in contestants:
        try:
            answer, w = pool.run(contestant, info, loss, C, contestant.solver, GAP, limit)
        except WorkerError as error:
            if error.kind == "InputError" and found["solver"]:  # a later one that cannot do this loss
                continue
            raise
        last, primal = answer["trace"][-1], objective(X, y, w, answer["b"], loss, C)
        if abs(primal - last["primal"]) > _AGREEMENT * primal:
            message = f"certified primal value {last['primal']!r}, computed independently {primal!r}"
            raise WorkerError("disagreement", message)
        found["primal"], found["dual"] = min(found["primal"], primal), max(found["dual"], last["dual"])
        found["relative_gap"] = found["primal"] / found["dual"] - 1.0 if found["dual"] > 0 else math.inf
        found["seconds"] += answer["seconds"]
        found["solver"] = ", ".join(filter(None, [found["solver"], answer["note"]]))
        if last["relative_gap"] <= GAP:
            break
    path.parent.mkdir(parents=True, exist_ok=True)
    path.write_text(json.dumps(found))
    return found
