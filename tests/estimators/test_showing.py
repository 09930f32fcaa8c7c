"""What estimators show: progress, HTML, and scikit-learn's callbacks."""

from __future__ import annotations

import io
import pickle
from typing import Any

import numpy as np
import pytest
from sklearn.base import clone
from sklearn.model_selection import GridSearchCV

import dualgap
from dualgap.core.certificate import Certificate
from dualgap.estimators import LinearSVC, LogisticRegression, Ridge
from dualgap.training import progress
from dualgap.training.progress import Progress
from support.problems import noisy


def rows() -> tuple[np.ndarray, np.ndarray]:
    return noisy(seed=0, n=150, d=5, noise=0.6)


class TestRepr:
    def test_html_says_what_is_proven(self) -> None:
        X, y = rows()
        model = LinearSVC(random_state=0)
        assert "proven" not in model._repr_mimebundle_()["text/html"]
        html = model.fit(X, y)._repr_mimebundle_()["text/html"]
        share = f"{100 * model.certificate_[0].relative_gap:.2g}%"
        assert f"LinearSVC: proven within {share} of the optimum" in html
        assert html.index("proven") < html.index("sk-")  # above scikit-learn's own
        many = LinearSVC(random_state=0).fit(X, np.arange(150) % 3)
        assert "each of 3 models proven within" in many._repr_mimebundle_()["text/html"]

    def test_certificates_and_records_are_short(self) -> None:
        outcome = dualgap.fit(*rows())
        assert "proven within" in repr(outcome.certificate)
        assert all(len(repr(record)) < 80 for record in outcome.trace)
        assert repr(Certificate(2.0, -1.0, 3.0, np.inf, 0.0, "J")) == "<Certificate: J = 2, gap 3>"
        assert "nothing is proven" in repr(Certificate(np.inf, 0.0, np.inf, np.inf, 0.0, "mean"))
        assert repr(Certificate(6.0, 2.0, 4.0, 2.0, 0.0, "mean")).endswith("within 2 times the optimum>")


class TestProgress:
    def test_lines_where_there_is_no_terminal(
        self, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
    ) -> None:
        X, y = rows()
        monkeypatch.setattr(progress, "PERIOD", 1e6)
        Ridge(verbose=1).fit(X, X[:, 0])
        assert capsys.readouterr().err == ""  # it was done before the first line was due
        monkeypatch.setattr(progress, "PERIOD", 0.0)
        LinearSVC(verbose=1, random_state=0, tol=1e-6).fit(X, np.arange(150) % 3)
        lines = capsys.readouterr().err.splitlines()
        assert {line.split("  ")[0] for line in lines} == {"class 0", "class 1", "class 2"}
        assert all("epoch" in line and "relative gap" in line for line in lines)
        assert any("left" in line for line in lines)
        LinearSVC(random_state=0).fit(X, y)
        assert capsys.readouterr().err == ""

    def test_time_left_and_bar_follow_the_logarithm_of_the_gap(self) -> None:
        shown = Progress(1e-4, io.StringIO())
        assert shown.share_done() is None
        assert shown.seconds_left() is None
        shown._seen = [(1.0, np.log(1.0)), (3.0, np.log(1e-2))]
        assert shown.share_done() == pytest.approx(0.5)
        assert shown.seconds_left() == pytest.approx(2.0)  # two decades in two seconds, two to go
        shown._seen.append((5.0, np.log(1e-2)))
        shown._seen = shown._seen[-2:]
        assert shown.seconds_left() is None  # it does not fall
        shown._seen.append((6.0, np.log(1e-5)))
        assert shown.share_done() == 1.0
        assert shown.seconds_left() == 0.0


callback = pytest.importorskip("sklearn.callback", reason="scikit-learn has callbacks from 1.9 on")


class Seen:
    """Counts tasks, and may stop a run."""

    max_propagation_depth = 2

    def __init__(self, stop_after: int | None = None) -> None:
        self.begun: list[str] = []
        self.gaps: list[float] = []
        self.stop_after = stop_after
        self.torn_down = 0

    def setup(self, estimator: Any, context: Any) -> None: ...

    def teardown(self, estimator: Any, context: Any) -> None:
        self.torn_down += 1

    def on_fit_task_begin(self, estimator: Any, context: Any) -> None:
        self.begun.append(context.task_name)

    def on_fit_task_end(self, estimator: Any, context: Any, *, metadata: Any = None) -> bool:
        if context.task_name == "certificate":
            self.gaps.append(metadata["relative_gap"])
        return context.task_name == "certificate" and len(self.gaps) == self.stop_after


class TestCallbacks:
    def test_every_certificate_is_a_task(self) -> None:
        X, y = rows()
        seen = Seen()
        model = LinearSVC(random_state=0).set_callbacks(seen).fit(X, y)
        assert seen.begun[:2] == ["fit", "model"]
        assert len(seen.gaps) == len(model.history_[0])
        assert seen.gaps[-1] == model.certificate_[0].relative_gap
        assert seen.torn_down == 1
        plain = LinearSVC(random_state=0).fit(X, y)
        assert np.array_equal(plain.coef_, model.coef_)
        pickle.loads(pickle.dumps(plain))
        clone(model)

    def test_a_hook_can_end_a_run(self) -> None:
        X, y = rows()
        model = LogisticRegression(tol=1e-12).set_callbacks(Seen(stop_after=2)).fit(X, y)
        assert len(model.history_[0]) == 2

    def test_a_search_hands_its_callbacks_on(self) -> None:
        X, y = rows()
        seen = Seen()
        search = GridSearchCV(LinearSVC(random_state=0), {"C": [0.1, 1.0]}, cv=2)
        search.set_callbacks(seen).fit(X, y)
        assert seen.begun.count("model") >= 5  # two values, two folds, and the last fit
        search.set_callbacks(callback.ProgressBar(max_propagation_depth=2)).fit(X, y)
