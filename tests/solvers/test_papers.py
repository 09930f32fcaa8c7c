"""Presets: the options of a solver as its paper has them."""

from __future__ import annotations

import json

import pytest

from dualgap import InputError
from dualgap.cli import main
from dualgap.core.losses import make_loss
from dualgap.runtime.options import options_of
from dualgap.solvers import SOLVERS, can_have, make_solver

PRESETS = [(name, paper) for name in SOLVERS for paper in SOLVERS[name].papers]


def made(name, **options):
    cls = SOLVERS[name]
    loss = make_loss((cls.capabilities.losses or ("hinge",))[0])
    bias = "none" if can_have(cls, "none") else "exact"
    return make_solver(name, options, seed=0, loss=loss, bias=bias)


@pytest.mark.parametrize(("name", "paper"), PRESETS)
def test_a_preset_sets_the_options_that_it_names(name, paper):
    solver, preset = made(name, paper=paper), SOLVERS[name].papers[paper]
    values = {option.name: getattr(solver, option.name) for option in options_of(type(solver))}
    assert {key: values[key] for key in preset.options} == dict(preset.options)
    for option in options_of(type(solver)):  # whatever is not named is as by default
        if option.name not in preset.options:
            assert values[option.name] == option.default


def listing(*arguments):
    with pytest.raises(SystemExit) as end:
        main(list(arguments))
    assert end.value.code == 0


def test_options_that_are_given_win_over_the_preset():
    assert made("pegasos", paper="true").projection
    assert made("pegasos", paper=True, projection="false", k=3) == made("pegasos", k=3)
    assert made("pegasos", paper="false") == made("pegasos")


def test_an_unknown_preset_is_refused():
    with pytest.raises(InputError, match="paper='shalev' is no preset of solver 'pegasos'"):
        made("pegasos", paper="shalev")
    with pytest.raises(InputError, match=r"'newton' has no preset of a paper; these have: .*pegasos"):
        made("newton", paper="true")


def test_the_list_of_solvers_shows_presets(capsys):
    listing("solvers", "pegasos")
    shown = capsys.readouterr().out
    assert "paper=shalev-shwartz-2007" in shown
    assert "projection=True" in shown
    listing("solvers", "pegasos", "--json")
    found = json.loads(capsys.readouterr().out)
    assert found["solvers"][0]["papers"]["shalev-shwartz-2007"]["options"] == {"projection": True}


def test_every_solver_of_the_primal_problem_has_a_preset():
    missing = [name for name, cls in SOLVERS.items() if ".primal." in cls.__module__ and not cls.papers]
    assert missing == []


def test_names_that_promise_are_explained():
    """Pegasos without its projection is another solver of the list."""
    assert "steps are those of sgd-r" in SOLVERS["pegasos"].summary
    assert "pegasos" in SOLVERS["sgd-r"].summary
