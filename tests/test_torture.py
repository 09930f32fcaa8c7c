"""A short part of `make torture`, and whether its checks can fail. The checker notices certificates that are
off by one part in 10^12.
"""

from __future__ import annotations

import io
import math
from dataclasses import replace
from fractions import Fraction
from pathlib import Path
from random import Random
from types import SimpleNamespace
from typing import Any

import pytest
from torture import checker, damage, disks, kills, problems, processes
from torture.checker import Claim, evaluate, faults
from torture.losses import conjugate, value
from torture.report import BEGIN, END, write
from torture.tally import Tally
from torture.workers import Result

import dualgap

LOSSES: dict[str, dict[str, float]] = {
    "hinge": {"margin": 1.0},
    "smooth-hinge": {"gamma": 0.5},
    "squared-hinge": {"scale": 0.7},
    "logistic": {},
    "modified-huber": {"scale": 1.5},
    "squared": {"scale": 0.5},
    "huber": {"threshold": 0.8},
    "absolute": {},
    "quantile": {"quantile": 0.3},
    "epsilon-insensitive": {"epsilon": 0.1},
    "squared-epsilon-insensitive": {"epsilon": 0.1},
}
SMALL = {"quantile": 0.3}  # losses whose duals are bounded by less than 1
OFF = 1e-12


def claim(loss: str, bias: str, form: str = "J") -> Claim:
    """A true claim of a random point, whose values are the exact ones to the last bit."""
    random = Random(f"{loss} {bias}")
    n, d = 9, 4
    rows = [[(j, random.gauss(0.0, 1.0)) for j in range(d) if random.random() < 0.8] for _ in range(n)]
    y = [random.choice((-1.0, 1.0)) for _ in range(n)]
    beta = [label * random.uniform(0.05, 0.9) * SMALL.get(loss, 1.0) for label in y]
    y[0], y[1], beta[0], beta[1] = 1.0, -1.0, abs(beta[0]), -abs(beta[1])
    point = Claim(
        rows=rows,
        y=y,
        weight=[random.choice((1.0, 0.5, 3.0)) for _ in range(n)],
        loss=loss,
        parameters=LOSSES[loss],
        form=form,
        strength=0.3,
        bias=bias,
        rho=0.7,
        w=[random.gauss(0.0, 0.3) for _ in range(d)],
        b=0.0 if bias == "none" else 0.2,
        beta=beta,
        primal=0.0,
        dual=0.0,
        gap=0.0,
        relative_gap=0.0,
        rounding=0.0,
    )
    exact = evaluate(point)
    primal, dual, rounding = float(exact.primal.low), float(exact.dual.low), 1e-14
    gap = primal - dual + rounding
    relative = gap / dual if dual > 0.0 else math.inf
    return replace(point, primal=primal, dual=dual, gap=gap, relative_gap=relative, rounding=rounding)


CLAIMS = [(loss, bias) for loss in LOSSES for bias in ("none", "augmented", "exact")]


class TestChecker:
    @pytest.mark.parametrize(("loss", "bias"), CLAIMS)
    def test_falsified_certificates_are_noticed(self, loss: str, bias: str) -> None:
        for form in ("J", "mean"):
            true = claim(loss, bias, form)
            assert faults(true) == []
            for name in ("primal", "dual", "gap", "relative_gap"):
                for sign in (1.0, -1.0):
                    right = getattr(true, name)
                    changed = right * (1.0 + sign * OFF) if math.isfinite(right) else 1e6 + sign
                    assert faults(replace(true, **{name: changed})), f"{name} is off by {sign * OFF}"

    def test_where_the_bound_is_0_a_relative_gap_needs_an_optimum_of_0(self) -> None:
        """With equal targets and a free bias there is one; the gap is then a part of P(0)."""
        true = claim("squared", "exact")
        known = replace(true, beta=None, dual=0.0, y=[2.0] * len(true.y))
        exact = evaluate(known)
        primal = float(exact.primal.low)
        gap, share = primal + known.rounding, 1e-6 * float(exact.at_zero.low)
        known = replace(known, primal=primal, gap=gap, relative_gap=gap / share)
        assert faults(known) == []
        for wrong in (math.inf, 0.0, 2.0 * gap / share):
            assert faults(replace(known, relative_gap=wrong))
        unknown = replace(known, y=[2.0] * (len(true.y) - 1) + [2.0 + 1e-9])
        primal = float(evaluate(unknown).primal.low)
        unknown = replace(unknown, primal=primal, gap=primal + known.rounding, relative_gap=math.inf)
        assert faults(unknown) == []
        assert faults(replace(unknown, relative_gap=unknown.gap / share))

    @pytest.mark.parametrize("loss", LOSSES)
    def test_changed_points_are_noticed(self, loss: str) -> None:
        """The values are no longer those of the point, where a coefficient, a dual, a row or C is another."""
        true = claim(loss, "augmented")
        assert true.beta is not None
        for change in (
            {"w": [true.w[0] * (1.0 + 1e-11), *true.w[1:]]},
            {"b": true.b * (1.0 + 1e-11)},
            {"beta": [true.beta[0] * (1.0 + 1e-11), *true.beta[1:]]},
            {"strength": true.strength * (1.0 + OFF)},
            {"rho": true.rho * (1.0 + 1e-11)},
            {"weight": [true.weight[0] * (1.0 + 1e-11), *true.weight[1:]]},
            {"y": [-true.y[0], *true.y[1:]]},
        ):
            assert faults(replace(true, **change)), change

    def test_dual_points_outside_of_the_bounds_are_noticed(self) -> None:
        bounds = (("hinge", 1.0), ("logistic", 1.0), ("absolute", 1.0), ("huber", 1.6), ("quantile", 0.3))
        for loss, most in (*bounds, ("quantile", 0.3 - 1.0)):
            true = claim(loss, "none")
            assert true.beta is not None
            assert not any(
                "infinite" in fault for fault in faults(replace(true, beta=[most, *true.beta[1:]]))
            )
            wrong = replace(true, beta=[most * (1.0 + OFF), *true.beta[1:]])
            assert any("infinite" in fault for fault in faults(wrong))

    def test_history_and_infinite_values(self) -> None:
        true = claim("hinge", "none")
        assert (
            faults(replace(true, history=[(math.inf, -math.inf, 0.0), (9.9 * true.primal, 0.0, 0.0)])) == []
        )
        assert faults(replace(true, history=[(true.dual * (1.0 - OFF), 0.0, 0.0)]))
        assert faults(replace(true, history=[(math.inf, true.primal * (1.0 + OFF), 0.0)]))
        assert faults(replace(true, dual=-math.inf, gap=math.inf, relative_gap=math.inf)) == []
        assert faults(replace(true, dual=-math.inf))
        assert faults(replace(true, w=[math.nan, *true.w[1:]]))
        assert faults(replace(true, b=1.0))

    @pytest.mark.parametrize("loss", LOSSES)
    def test_losses_and_conjugates_belong_together(self, loss: str) -> None:
        """phi*(-beta) is the largest of -beta s - phi(s), by a grid of scores."""
        like = claim(loss, "none")
        for y in (Fraction(1), Fraction(-1)):
            for beta in (y / 7, y * Fraction(3, 5) * Fraction(SMALL.get(loss, 1.0))):
                star = conjugate(like, y, beta)
                assert star is not None
                grid = [Fraction(k, 40) for k in range(-120, 121)]
                best = max(-beta * s - value(like, y, s).high for s in grid)
                assert best <= star.high
                assert float(star.low - best) < 1e-3

    def test_known_values(self) -> None:
        """One row x = 2, y = 1, C = 1 at w = 1/4: 1/32 + phi(1/2); beta = 1/4 has w(beta) = 1/2."""
        values = {"hinge": 0.5, "squared-hinge": 0.175, "squared": 0.125, "absolute": 0.5, "logistic": None}
        for loss, expected in values.items():
            like = replace(claim(loss, "none"), rows=[[(0, 2.0)]], y=[1.0], weight=[1.0], strength=1.0)
            exact = evaluate(replace(like, w=[0.25], beta=[0.25]))
            phi = math.log1p(math.exp(-0.5)) if expected is None else expected
            assert float(exact.primal.low) == pytest.approx(1.0 / 32.0 + phi, rel=1e-15)
        exact = evaluate(replace(like, loss="hinge", parameters={"margin": 1.0}, w=[0.25], beta=[0.25]))
        assert exact.dual.low == Fraction(1, 4) - Fraction(1, 8)

    def test_far_logistic_values_are_enclosed(self) -> None:
        like = claim("logistic", "none")
        for score in (
            Fraction(0),
            Fraction(99),
            Fraction(101),
            Fraction(1001),
            Fraction(-2000),
            Fraction(1, 3),
        ):
            found = value(like, Fraction(1), score)
            near = math.log1p(math.exp(-float(score))) if score > -700 else float(-score)
            assert found.low <= found.high
            assert float(found.high) == pytest.approx(near, rel=1e-14, abs=1e-300)

    def test_it_imports_nothing_of_the_library(self) -> None:
        for module in ("checker", "losses", "joint"):
            text = (Path(checker.__file__).parent / f"{module}.py").read_text()
            assert "dualgap" not in text
            assert "numpy" not in text


def tried(part: Any, items: range, folder: Path, **more: Any) -> Tally:
    tally = Tally(io.StringIO())
    part.run(3, items, folder, tally, **more)
    assert tally.failures == []
    return tally


class TestShort:
    """A few tries of each part."""

    @pytest.mark.slow
    def test_problems(self, tmp_path: Path) -> None:
        """Of the kernels that most tests use."""
        drawn = ((k, problems.problem(3, k)) for k in range(2000))
        chosen = [k for k, found in drawn if found.case.solver == "dcd" and found.layout.endswith("64")]
        tally = Tally(io.StringIO())
        for k in chosen[:50]:
            problems.run(3, range(k, k + 1), tmp_path, tally)
        assert tally.failures == []
        assert tally.counts["converged"] > 5
        assert tally.counts["limited"] > 5

    def test_problems_cover_everything(self) -> None:
        drawn = [problems.problem(3, k) for k in range(3000)]
        assert {found.case for found in drawn} == set(problems.cases())
        assert {found.source for found in drawn} == {"memory", "feed", "store"}
        assert {found.layout for found in drawn} == set(problems.LAYOUTS)

    def test_damage(self, tmp_path: Path) -> None:
        tally = tried(damage, range(400), tmp_path)
        assert 200 < tally.counts["refused"] < 400
        assert tally.counts["same"] > 5

    @pytest.mark.slow
    def test_kills(self, tmp_path: Path) -> None:
        """Of training from memory and of a loop that saves its runs."""
        tally = tried(kills, range(6, 20, 13), tmp_path, big=100)
        assert tally.counts["SIGKILL"] + tally.counts["SIGTERM"] == 2

    @pytest.mark.slow
    def test_full_disks(self, tmp_path: Path) -> None:
        """Of converting, of training and of a program that saves its runs, by a limit on sizes."""
        tally = tried(disks, range(0, 8, 3), tmp_path)
        assert tally.counts["limit"] == 3
        assert tally.counts["refused"] > 0

    @pytest.mark.parametrize("way", ["threads", "fork"])
    def test_processes(self, way: str) -> None:
        assert set(processes.WAYS[way]("dcd")) == {processes.digest("dcd")}


class TestChecksCanFail:
    def test_a_model_that_reads_as_another(self, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
        at_hand = damage.Damage(tmp_path)
        right = dualgap.Model.load
        at_hand("model", Random(1))

        def wrong(path: Any) -> dualgap.Model:
            model = right(tmp_path / "good.model")
            return replace(model, coef=model.coef * (1.0 + 1e-15)) if path.name.startswith("input") else model

        monkeypatch.setattr(dualgap.Model, "load", wrong)
        assert at_hand("model", Random(1))[1] == "it gives other numbers"

    def test_files_that_are_not_whole(self, tmp_path: Path) -> None:
        bench: Any = SimpleNamespace(rows=processes.rows())
        outcome = dualgap.fit(*bench.rows, max_epochs=3)
        outcome.model.save(tmp_path / "whole.model")
        dualgap.save_state(tmp_path / "whole.run", outcome)
        (tmp_path / "whole.txt").write_text("1\n-1\n")
        for suffix in (".model", ".run", ".txt"):
            whole, cut = tmp_path / f"whole{suffix}", tmp_path / f"cut{suffix}"
            cut.write_bytes(whole.read_bytes()[:-1])
            assert kills.unsound(bench, whole, whole) == ""
            assert kills.unsound(bench, cut, whole)
        lying = replace(outcome.model, coef=outcome.model.coef * (1.0 + 1e-9))
        lying.save(tmp_path / "lying.model")
        assert "objective" in kills.unsound(bench, tmp_path / "lying.model")

    def test_anything_raised_is_a_failure(self) -> None:
        tally = Tally(io.StringIO())
        with tally.item(5):
            raise KeyError("x")
        assert tally.failures[0].startswith("item 5: KeyError at test_torture.py")


def test_page_holds_what_was_run(tmp_path: Path) -> None:
    page = tmp_path / "page.md"
    page.write_text(f"before\n{BEGIN}\nold\n{END}\nafter\n")
    write(page, [Result("kills", 12, failures=["item 3: x"]), Result("disks", 5)], 7)
    write(page, [Result("kills", 300)], 8)
    text = page.read_text()
    assert text.startswith("before\n")
    assert text.endswith("after\n")
    assert "old" not in text
    assert text.count("| kills |") == 1
    assert "| kills | 300 | 300 | 0 | 8 |" in text
    assert "| full disks | 5 | 180 | 0 | 7 |" in text
