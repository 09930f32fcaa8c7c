"""scikit-learn's own tests with our estimators in place of its own.

    python tests/sklearn_suites.py                    every suite, a line each
    python tests/sklearn_suites.py LinearSVC Ridge    these, with every failure and why it differs
    python tests/sklearn_suites.py --json out.json    the outcomes in a file
    python tests/sklearn_suites.py --peer             scikit-learn's own classes: what passes there at all

The tests are those of the installed scikit-learn. Ours stand where its tests import its own from, before the
tests are collected; a test counts if it makes an object of our class. A failure is explained where
``REASONS`` has an entry for it, and is ours to mend where it has none; the exit code is 1 if there are any of
those."""

from __future__ import annotations

import argparse
import json
import re
import subprocess
import sys
import tempfile
import warnings
from collections import Counter
from functools import wraps
from pathlib import Path
from typing import Any, NamedTuple

sys.path[:0] = [str(Path(__file__).parents[1])]  # the reasons stand beside this file


class Suite(NamedTuple):
    """The tests of one estimator, and where scikit-learn's own class is looked up."""

    module: str
    homes: tuple[str, ...]


SUITES = {
    "LinearSVC": Suite("sklearn.svm.tests", ("sklearn.svm", "sklearn.svm._classes")),
    "LinearSVR": Suite("sklearn.svm.tests", ("sklearn.svm", "sklearn.svm._classes")),
    "LogisticRegression": Suite(
        "sklearn.linear_model.tests.test_logistic", ("sklearn.linear_model", "sklearn.linear_model._logistic")
    ),
    "Ridge": Suite(
        "sklearn.linear_model.tests.test_ridge", ("sklearn.linear_model", "sklearn.linear_model._ridge")
    ),
    "Perceptron": Suite(
        "sklearn.linear_model.tests.test_perceptron",
        ("sklearn.linear_model", "sklearn.linear_model._perceptron"),
    ),
    "SGDClassifier": Suite(
        "sklearn.linear_model.tests.test_sgd",
        ("sklearn.linear_model", "sklearn.linear_model._stochastic_gradient"),
    ),
    "SGDRegressor": Suite(
        "sklearn.linear_model.tests.test_sgd",
        ("sklearn.linear_model", "sklearn.linear_model._stochastic_gradient"),
    ),
}


class Patched:
    """A plugin of pytest: our class in the place of scikit-learn's, and the outcome of every test that uses
    it.
    """

    def __init__(self, name: str, peer: bool) -> None:
        from importlib import import_module

        homes = [import_module(home) for home in SUITES[name].homes]
        theirs = getattr(homes[0], name)
        ours = theirs
        if not peer:
            import dualgap.estimators

            ours = getattr(dualgap.estimators, name)
            for home in homes:
                setattr(home, name, ours)
        self.name, self.current, self.used = name, "", set[str]()
        self.outcomes: dict[str, tuple[str, str]] = {}
        original, made = ours.__init__, self.used

        @wraps(original)
        def noted(estimator: Any, *given: Any, **named: Any) -> None:
            made.add(self.current)
            original(estimator, *given, **named)

        ours.__init__ = noted

    def pytest_runtest_protocol(self, item: Any, nextitem: Any) -> None:
        self.current = item.nodeid

    def pytest_collection_modifyitems(self, items: list[Any]) -> None:
        """Objects that parameters hold were made when the tests were collected: look for them."""
        for item in items:
            call = getattr(item, "callspec", None)
            if call is not None and any(self._ours(value) for value in call.params.values()):
                self.used.add(item.nodeid)

    def _ours(self, value: Any) -> bool:
        kinds = value if isinstance(value, tuple | list) else [value]
        return any(type(kind).__module__.startswith("dualgap") for kind in kinds)

    def pytest_runtest_logreport(self, report: Any) -> None:
        if report.when == "call" or (report.when == "setup" and report.outcome != "passed"):
            crash = getattr(report.longrepr, "reprcrash", None)
            message = "" if crash is None else crash.message
            if f"type object {self.name!r} has no attribute" in message:
                self.used.add(report.nodeid)
            self.outcomes[report.nodeid] = report.outcome, message


def run_here(name: str, peer: bool, out: Path) -> None:
    """Run a suite in this process and write the outcomes of the tests that use the class."""
    import pytest

    warnings.simplefilter("ignore")
    plugin = Patched(name, peer)
    options = ["-q", "-p", "no:cacheprovider", "-c", "/dev/null", "--pyargs", "-W", "ignore", "--tb=short"]
    pytest.main([*options, SUITES[name].module], plugins=[plugin])
    found = {
        key.rpartition("/")[2]: plugin.outcomes.get(key, ("skipped", ""))
        for key in sorted(plugin.used)
        if key
    }
    out.write_text(json.dumps(found))


def run_suite(name: str, peer: bool) -> dict[str, tuple[str, str]]:
    """The outcomes of a suite, from a process of its own: what is patched stays there."""
    with tempfile.TemporaryDirectory() as folder:
        out = Path(folder) / "outcomes.json"
        command = [sys.executable, __file__, name, "--inside", str(out), *(["--peer"] if peer else [])]
        done = subprocess.run(command, capture_output=True, text=True, cwd=folder, check=False)
        if not out.exists():
            raise SystemExit(f"{name}: the tests did not run\n{done.stdout[-2000:]}\n{done.stderr[-2000:]}")
        found: dict[str, tuple[str, str]] = json.loads(out.read_text())
        return found


def reason_for(name: str, test: str, message: str) -> str | None:
    """Why ours differs on purpose, where it does."""
    from tests.sklearn_reasons import REASONS

    for pattern, reason in REASONS.get(name, []):
        if re.search(pattern, f"{test}\n{message}"):
            return reason
    return None


def tell(name: str, outcomes: dict[str, tuple[str, str]], whole: bool) -> bool:
    """Print a suite; whether all failures are explained."""
    counts = Counter(outcome for outcome, _ in outcomes.values())
    failures = {test: message for test, (outcome, message) in outcomes.items() if outcome == "failed"}
    reasons = {test: reason_for(name, test, message) for test, message in failures.items()}
    unexplained = [test for test, reason in reasons.items() if reason is None]
    skipped = f", {counts['skipped']} skipped" if counts["skipped"] else ""
    print(
        f"{name}: {counts['passed']} of {counts['passed'] + len(failures)} pass{skipped}; "
        f"{len(failures) - len(unexplained)} differ on purpose, {len(unexplained)} do not"
    )
    if whole:
        for reason, count in Counter(filter(None, reasons.values())).most_common():
            print(f"  {count:4d}  {reason}")
        for test in unexplained:
            print(
                f"  FAILED {test}\n         {failures[test].splitlines()[0][:200] if failures[test] else ''}"
            )
    return not unexplained


def main() -> int:
    """Run the suites that are named, or all."""
    parser = argparse.ArgumentParser(
        description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter
    )
    parser.add_argument("names", nargs="*", choices=[[], *SUITES])
    parser.add_argument("--json", type=Path)
    parser.add_argument("--peer", action="store_true", help="scikit-learn's own classes")
    parser.add_argument("--inside", type=Path, help=argparse.SUPPRESS)
    given = parser.parse_args()
    if given.inside is not None:
        run_here(given.names[0], given.peer, given.inside)
        return 0
    found, sound = {}, True
    for name in given.names or SUITES:
        found[name] = run_suite(name, given.peer)
        sound = tell(name, found[name], whole=bool(given.names)) and sound
    if given.json is not None:
        given.json.write_text(json.dumps(found, indent=1))
    return 0 if sound else 1


if __name__ == "__main__":
    sys.exit(main())
