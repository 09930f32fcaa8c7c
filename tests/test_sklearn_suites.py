"""The script that runs scikit-learn's own tests with our classes in place of its own."""

from __future__ import annotations

import pytest
from tests.sklearn_reasons import L2, REASONS
from tests.sklearn_suites import SUITES, reason_for, run_suite


@pytest.mark.slow
def test_every_failure_of_a_suite_has_its_reason() -> None:
    """The shortest of the suites; the others take minutes."""
    outcomes = run_suite("Perceptron", peer=False)
    assert sum(outcome == "passed" for outcome, _ in outcomes.values()) >= 5
    failures = [(test, message) for test, (outcome, message) in outcomes.items() if outcome == "failed"]
    assert all(reason_for("Perceptron", *failure) == L2 for failure in failures)


def test_a_failure_without_a_reason_is_told_apart() -> None:
    assert set(REASONS) == set(SUITES)
    assert reason_for("Ridge", "test_new", "AssertionError") is None
    assert reason_for("LinearSVC", "test_linearsvc", "LinearSVC(penalty='l1')") == L2
