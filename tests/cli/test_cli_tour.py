"""``solvers``, ``losses`` and ``demo``."""

from __future__ import annotations

import json

import pytest

from dualgap.cli import demo, main
from dualgap.core.losses import NAMES, every_loss, parameters_of
from dualgap.runtime.options import options_of
from dualgap.solvers import SOLVERS, can_train
from support.commands import Forks, forks_fixture, run  # noqa: F401


@pytest.mark.slow
def test_every_solver_with_every_option(forks: Forks) -> None:
    found = forks("solvers", "--json").json["solvers"]
    told = forks("solvers")
    assert [solver["name"] for solver in found] == list(SOLVERS)
    for solver in found:
        options = options_of(SOLVERS[solver["name"]])
        assert set(solver["losses"]) == {name for name in NAMES if can_train(SOLVERS[solver["name"]], name)}
        assert [(o["name"], o["type"], o["help"]) for o in solver["options"]] == [
            (o.name, o.type, o.help) for o in options
        ]
        assert solver["name"] in told.out
        assert all(option.help in told.out for option in options)
    assert (told.code, told.err) == (0, "")


def test_every_loss_with_every_parameter(forks: Forks) -> None:
    found = {loss["name"]: loss for loss in forks("losses", "--json").json["losses"]}
    told = forks("losses").out
    bounds = {name: [(pair["A"], pair["B"]) for pair in loss["slope_bounds"]] for name, loss in found.items()}
    assert bounds == {name: list(loss().zhang_pairs) for name, loss in every_loss().items()}
    assert "0, 16 or 4, 0" in told
    assert list(found) == list(NAMES)
    for name, loss in every_loss().items():
        assert found[name]["task"] == loss.task
        assert found[name]["parameters"] == parameters_of(loss)
        assert f" {name} " in told
        assert loss.summary in told


@pytest.mark.slow
def test_the_demo_works() -> None:
    done = run("demo")
    assert (done.code, done.err) == (0, "")
    assert "20,000 rows, 20,000 features" in done.out
    assert done.out.count(" equal ") == 2
    assert "All of it works." in done.out


@pytest.mark.parametrize("floor", [0.5, 1.1])
def test_a_demo_that_fails_says_so(
    floor: float, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    small = demo.text_like(rows=500, columns=300)._replace(floor=floor)
    monkeypatch.setattr(demo, "text_like", lambda: small)
    monkeypatch.setattr(demo, "breast_cancer", lambda: small)
    with pytest.raises(SystemExit) as end:
        main(["demo", "--json"])
    found = json.loads(capsys.readouterr().out)
    assert end.value.code == (0 if floor < 1 else 1)
    assert found["passed"] == (floor < 1)
    for example in found["examples"]:
        assert example["reloaded_equal"]
        assert example["relative_gap"] <= 1e-3
        assert (example["accuracy"] >= example["accuracy_floor"]) == found["passed"]
