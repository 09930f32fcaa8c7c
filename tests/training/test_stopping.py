"""Stopping rules: what they look at, what they remember, and what they say."""

from __future__ import annotations

import math
from typing import Any

from dualgap.core.problem import Certificate
from dualgap.training.callbacks import stop_reason
from dualgap.training.patience import GapIsRounding, NotImproving, Rounding, Stalled
from dualgap.training.records import Record
from dualgap.training.stopping import (
    GapBelow,
    MaxEpochs,
    MaxVisits,
    Reason,
    Rules,
    TimeLimit,
)


def record(**changes: Any) -> Record:
    certificate = Certificate(
        2.0, 1.0, 1.0, changes.pop("relative_gap", 1.0), changes.pop("rounding", 0.0), "mean"
    )
    values = {
        "kind": "certified",
        "visits": 10,
        "epochs": 1.0,
        "updates": 0,
        "entries": 0,
        "train_seconds": 1.0,
    }
    values |= {"certify_seconds": 0.5, "compile_seconds": 0.0, "measures": {}}
    values |= dict.fromkeys(("certificate", "current", "output"), certificate) | changes
    return Record(**values)  # type: ignore[arg-type]


def test_only_a_certificate_proves_a_gap() -> None:
    assert GapBelow(0.1).reason(record(relative_gap=0.05)) is not None
    assert GapBelow(0.1).reason(record(relative_gap=0.05, kind="estimate")) is None
    assert GapBelow(0.1).reason(record(relative_gap=math.nan)) is None


def test_limits_say_what_to_do_next() -> None:
    for rule in (MaxVisits(10), MaxEpochs(0.5, 20), TimeLimit(1.5)):
        reason = rule.reason(record())
        assert reason is not None
        assert reason.name == rule.name
        assert rule.name in reason.message


def test_rules_combine_and_the_stricter_allowance_holds() -> None:
    rules = Rules((GapBelow(1e-9),)) | MaxVisits(100) | MaxEpochs(3, 20)
    assert rules.allowance(40) == 20
    memory = rules.begin({})
    assert rules.look(record(visits=60), memory)[0].name == "max_epochs"
    assert rules.look(record(visits=59), memory)[0] is None


def test_stalled_needs_a_whole_window_without_progress() -> None:
    rule = Stalled(visits=100)
    memory = rule.begin()

    def at(visits: int, gap: float) -> Reason | None:
        nonlocal memory
        certificate = Certificate(1 + gap, 1.0, gap, gap, 0.0, "mean")
        reason, memory = rule.look(record(visits=visits, certificate=certificate), memory)
        return reason

    assert at(0, 1.0) is None
    assert at(90, 1.0) is None
    assert at(100, 0.9) is None
    assert at(199, 0.9) is None
    assert at(200, 0.9).name == "stalled"
    assert memory.visits.size <= 4  # no more than it looks back


def test_stalled_without_a_lower_bound_looks_at_the_gap_itself() -> None:
    rule = Stalled(visits=100)
    memory = rule.begin()

    def at(visits: int, primal: float, dual: float) -> Reason | None:
        nonlocal memory
        gap = primal - dual
        certificate = Certificate(primal, dual, gap, gap / dual if dual > 0.0 else math.inf, 0.0, "mean")
        reason, memory = rule.look(record(visits=visits, certificate=certificate), memory)
        return reason

    assert at(0, 1.0, 0.0) is None
    assert at(100, 0.9, 0.0) is None  # the objective falls
    assert at(200, 0.9, 1e-9) is None  # a lower bound at last
    assert at(300, 0.9, 1e-9).name == "stalled"
    memory = rule.begin()
    assert at(0, 1.0, 0.0) is None
    assert at(100, 1.0, 0.0).name == "stalled"


def test_a_gap_of_rounding_errors_is_recognised() -> None:
    certificate = Certificate(1.0, 1.0, 1e-12, 1e-12, 9e-13, "mean")
    rule = GapIsRounding()

    def reason(before: float = 1e-12, **changes: Any) -> Reason | None:
        return rule.look(record(**{"output": certificate} | changes), Rounding(before))[0]

    assert reason().name == "rounding"
    assert reason(kind="estimate") is None
    assert reason(output=certificate._replace(rounding=4e-13)) is None
    assert reason(before=2e-12) is None  # the bound still falls: the next one may be better
    assert rule.look(record(output=certificate), rule.begin())[1] == Rounding(9e-13)


def test_rules_remember_in_what_they_are_handed() -> None:
    """The same rule can serve two runs, and a resumed one goes on with what was kept."""
    rules = Rules((GapBelow(0.0), NotImproving(2)))
    memory = rules.begin({})
    for value in (1.0, 1.5):
        reason, memory = rules.look(record(measures={"validation": value}), memory)
        assert reason is None
    assert rules.look(record(measures={"validation": 1.2}), rules.begin({}))[0] is None
    kept = {name: value for name, value in memory.items() if value is not None}
    reason, _ = rules.look(record(measures={"validation": 1.2}), rules.begin(kept))
    assert reason.name == "early"
    again = record(measures={"validation": 9.9})
    assert rules.look_again(again, rules.begin(kept)) is None  # it has been counted before


def test_what_the_answer_of_a_callback_means() -> None:
    assert stop_reason(None) is None
    assert stop_reason(True).name == "callback"
    assert stop_reason("enough").message == "enough"
    assert stop_reason(Reason("mine", "so")).name == "mine"
