"""``solvers``, ``losses``, ``demo`` and ``warmup``."""

from __future__ import annotations

import os

from cli_tools import Forks, forks, run  # noqa: F401  (a fixture)
from dualgap.losses import LOSSES, parameters_of
from dualgap.solvers import SOLVERS, options_of


def test_every_solver_with_every_option(forks: Forks) -> None:
    found = forks("solvers", "--json").json["solvers"]
    told = forks("solvers")
    assert [solver["name"] for solver in found] == list(SOLVERS)
    for solver in found:
        options = options_of(SOLVERS[solver["name"]])
        assert [(o["name"], o["type"], o["help"]) for o in solver["options"]] == [
            (o.name, o.type, o.help) for o in options
        ]
        assert solver["name"] in told.out
        assert all(option.help in told.out for option in options)
    assert (told.code, told.err) == (0, "")


def test_every_loss_with_every_parameter(forks: Forks) -> None:
    found = {loss["name"]: loss for loss in forks("losses", "--json").json["losses"]}
    told = forks("losses").out
    assert list(found) == list(LOSSES)
    for name, loss in LOSSES.items():
        assert found[name]["task"] == loss.task
        assert found[name]["parameters"] == parameters_of(loss)
        assert f" {name} " in told
        assert loss.meaning in told


def test_the_demo_works_and_a_failed_demo_says_so(forks: Forks) -> None:
    done = run("demo")
    assert (done.code, done.err) == (0, "")
    assert "All of it works." in done.out
    found = forks("demo", "--json").json
    assert found["passed"]
    assert [example["n_samples"] for example in found["examples"]] == [379, 20000]
    assert all(example["relative_gap"] <= 1e-3 and example["reloaded_equal"] for example in found["examples"])
    hopeless = forks("demo", "--gap", "0", "--json")
    assert (hopeless.code, hopeless.json["passed"]) == (1, False)


def test_warmup_fills_the_cache_and_says_where_it_is() -> None:
    done = run("warmup", "--loss", "hinge", "--json")
    assert done.code == 0
    assert done.json["cases"] == 4
    assert done.json["cache"] == os.environ["DUALGAP_CACHE"]
    assert done.json["usable"]
    assert "unknown loss 'hing'" in run("warmup", "--loss", "hing").error
