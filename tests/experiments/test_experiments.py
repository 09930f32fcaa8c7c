"""The experiments, quickly and on generated data: they run, and what cannot flicker is as the papers say."""

from __future__ import annotations

import json
import math
import threading
from time import perf_counter

import numpy as np
import pytest

from dualgap import InputError
from dualgap.cli import main
from dualgap.data.formats.arrow.writing import write_store
from dualgap.experiments import EXPERIMENTS, PAPERS, chosen, generated, page
from dualgap.experiments.lab import Lab
from dualgap.experiments.ouillade import common
from dualgap.experiments.panagiotakopoulos import orderings
from dualgap.experiments.report import (
    Claim,
    Curve,
    Figure,
    Panel,
    Report,
    Table,
    apart,
    elsewhere,
    mostly,
    sooner,
    tally,
    verdict_on,
    within,
)
from dualgap.experiments.rupnik import figure_3
from dualgap.experiments.vishwanathan.slow_disk import SlowDisk

REPORT = Report(
    (Claim("a | b", "holds", "seen"),),
    (Table("to epsilon P*", ("|x|", "y"), [["one", 1.23456], [None, 10_000]], "a note"),),
    (
        Figure(
            "fig",
            "a caption",
            [Panel("p", "epochs", "P", [Curve("c", [1.0, 2.0], [3.0, 0.3])], yscale="log")],
        ),
    ),
    ("a remark on `code`",),
    ("some rows",),
)


@pytest.fixture(autouse=True)
def no_data(monkeypatch):
    monkeypatch.delenv("DUALGAP_DATA", raising=False)


@pytest.fixture(scope="module")
def reports():
    """Each experiment is run once."""
    found: dict[str, Report] = {}

    def get(name):
        if name not in found:
            found[name] = EXPERIMENTS[name].run(Lab(quick=True))
        return found[name]

    return get


@pytest.mark.parametrize("name", EXPERIMENTS)
def test_every_experiment_runs_without_any_data(name, reports):
    report = reports(name)
    assert report.claims
    assert report.tables or report.figures
    assert report.data
    for table in report.tables:
        assert all(len(row) == len(table.header) for row in table.rows)
    for figure in report.figures:
        for panel in figure.panels:
            for curve in panel.curves:
                assert len(curve.x) == len(curve.y)
                assert np.isfinite(curve.y).all()
    assert Report.of(json.loads(json.dumps(report.as_dict()))).as_dict() == json.loads(
        json.dumps(report.as_dict())
    )


@pytest.mark.parametrize("name", [name for name in EXPERIMENTS if name != "ouillade-table-2"])
def test_data_that_are_missing_are_named(name, reports):
    said = " ".join(reports(name).data)
    assert "generated" in said or "labels by the sign" in said


def test_verdicts():
    assert verdict_on("", True, "").verdict == "holds"
    assert verdict_on("", [True, False], "").verdict == "holds in part"
    assert verdict_on("", [True, None], "").verdict == "holds in part"
    assert verdict_on("", [False, None], "").verdict == "does not hold here"
    assert verdict_on("", [None, None], "").verdict == verdict_on("", None, "").verdict == "not settled here"
    assert verdict_on("", np.array([True, True]), "").verdict == "holds"


def test_a_tie_is_no_success():
    assert sooner(3.065, 3.072) == sooner(3.072, 3.065) == "tie"
    assert sooner(1.0, 2.0) is True
    assert sooner(2.0, 1.0) is False
    assert sooner(1.0, math.inf) is True
    assert sooner(math.inf, 1.0) is False
    assert sooner(math.inf, math.inf) is None
    assert verdict_on("", "tie", "").verdict == "no difference here"
    assert verdict_on("", [True, "tie"], "").verdict == "holds in part"
    assert verdict_on("", [False, "tie"], "").verdict == "does not hold here"
    assert verdict_on("", [None, "tie"], "").verdict == "no difference here"
    assert mostly([True, True, False]) is mostly([True, True, None, False]) is True
    assert mostly([False, "tie", False]) is False
    assert mostly([True, True, False, "tie"]) == "tie"  # not on more than half
    assert mostly([True, False]) == mostly(["tie", None]) == "tie"
    assert mostly([None]) is None
    assert tally([True, "tie", False, True]) == "ahead on 2 of 4 sets, behind on 1"
    assert tally([True], "cells") == "ahead on 1 of 1 cells, behind on 0"
    assert within(3.0, 2.0, 1.5)
    assert not within(3.1, 2.0, 1.5)


def test_ranges_over_seeds_that_overlap_are_no_difference():
    assert apart([1.0, 2.0, 3.0], [2.9, 8.0, 9.0]) == "tie"
    assert apart([1.0, 2.0, 3.0], [4.0, 8.0, 9.0]) is True
    assert apart([4.0, 8.0, 9.0], [1.0, 2.0, 3.0]) is False
    assert apart([1.0, 1.01, 1.02], [1.03, 1.04, 1.05]) == "tie"  # apart, but by less than a tenth
    assert apart([1.0], [2.0]) is True  # one seed


def test_a_stand_in_settles_nothing_of_the_set_that_it_stands_for():
    claim = elsewhere("fails on A", "A is", "61 epochs")
    assert claim == Claim("fails on A", "not tested here", "A is not at hand; on the stand-in: 61 epochs")


def test_a_crossing_that_is_left_again_is_not_counted():
    dip = [1.0 + excess for excess in [9.0] * 5 + [0.01] + [9.0] * 14 + [0.01] * 30]
    one = common.Run("", [float(t) for t in range(len(dip))], dip, [])
    assert one.reaches(1.0, 0.05) == 5
    assert one.settles(1.0, 0.05) == 20
    assert common.Run("", one.iterations[:20], dip[:20], []).settles(1.0, 0.05) == math.inf


def test_what_changes_with_C_is_counted_set_by_set():
    def cells(*ratios):
        return orderings.Cells({str(k): {"a": r, "b": 1.0} for k, r in enumerate(ratios)}, {})

    found = {1.0: cells(2.0, 2.0, 0.5), 10.0: cells(4.0, 8.0, 1.0, 7.0)}
    grown = orderings._changed("", found, (10.0, 1.0), [("a", "b")], orderings._plain)
    assert grown.verdict == "holds"
    assert "smaller on 3 of 3 sets, greater on 0, median 2 against 4" in grown.evidence  # of the common sets
    apart_by = orderings._changed("", found, (10.0, 1.0), [("a", "b")], orderings._factor)
    assert "smaller on 2 of 3 sets, greater on 1, median 2 against 4" in apart_by.evidence
    assert orderings._changed("", found, (1.0, 0.05), [], orderings._plain).verdict == "not settled here"


def test_a_dip_of_the_error_is_not_its_level():
    dip = [9.0] * 5 + [1.0] + [9.0] * 20 + [1.0] * 11
    assert figure_3.stays(list(range(len(dip))), dip, 2.0) == 31  # six of the last eleven are low
    assert figure_3.stays(list(range(26)), dip[:26], 2.0) == math.inf


def test_ratios_of_the_paper_are_taken_from_the_columns_of_seconds():
    found = orderings.paper(1.0, "Adult")
    names = ("pegasos", "sgd-r", "sgd-s", "sgd-m", "svmperf", "ocas", "dcd", "mpu")
    assert [found[name] for name in names] == [2.4, 0.52, 0.52, 0.23, 1.3, 0.06, 0.14, 0.09]
    assert orderings.paper(10.0, "Covertype")["pegasos"] == math.inf  # it failed


def test_genomic_rows_are_on_the_scale_of_gene_expressions():
    X, y = generated.genomic_like(184, 4654)
    assert X.shape == (184, 4654)
    assert 0.8 * 284_480 < np.median((X * X).sum(axis=1)) < 1.2 * 284_480  # that of the study's test samples
    assert 0.25 < np.mean(y > 0) < 0.45
    rows = common.genomic(Lab(quick=True))
    np.testing.assert_allclose(np.linalg.norm(rows.X, axis=1), 1.0)
    assert "generated" in rows.note


def test_a_page_is_made_of_what_a_folder_holds(tmp_path):
    experiment = EXPERIMENTS["rupnik-figure-2"]
    page.save(tmp_path, experiment, REPORT)
    assert page.load(tmp_path)[experiment.name].report.as_dict() == json.loads(json.dumps(REPORT.as_dict()))
    page.write(tmp_path)
    text, html = (tmp_path / "RESULTS.md").read_text(), (tmp_path / "index.html").read_text()
    for part in (
        "a caption",
        "a note",
        "a remark on ",
        "some rows",
        PAPERS[experiment.paper],
        "1.235",
        "10,000",
    ):
        assert part in text
        assert part in html
    assert "a \\| b" in text
    assert "| \\|x\\| | y |" in text
    assert "**to epsilon P\\***" in text
    assert "| – | Figure 1: separating" in text
    assert "not tested here" in html
    for word in page.WORDS:
        assert f"- *{word}*: " in text
        assert f"<i>{word}</i>" in html
    assert "a remark on <code>code</code>" in html
    assert "`" not in html
    assert f"<a href='#{experiment.name}'>" in html
    assert "figures/fig.png" in text
    assert "Not run for this page: " in text


def test_a_long_curve_is_saved_with_fewer_points():
    curve = Curve("c", list(range(10_000)), [1.0 / (1 + x) for x in range(10_000)]).thinned(100)
    assert len(curve.x) <= 101
    assert (curve.x[0], curve.x[-1]) == (0, 9999)
    assert all(y == 1.0 / (1 + x) for x, y in zip(curve.x, curve.y, strict=True))


def test_measurements_are_kept_and_not_made_twice(tmp_path):
    calls = []

    def measure():
        calls.append(1)
        return {"T": 3}

    for _ in range(2):
        assert Lab(quick=False, kept=tmp_path).once({"a": 1}, measure) == {"T": 3}
    assert len(calls) == 1
    Lab(quick=False, kept=tmp_path).once({"a": 2}, measure)
    assert len(calls) == 2


def test_a_figure_has_its_lines_labels_and_scales(tmp_path):
    from matplotlib import image

    from dualgap.experiments.pictures import draw

    picture = image.imread(draw(REPORT.figures[0], tmp_path))
    assert picture.shape[0] > 300
    assert np.unique(picture[..., :3].reshape(-1, 3), axis=0).shape[0] > 10


def test_experiments_are_chosen_by_name_or_paper():
    assert [item.name for item in chosen(["ouillade-table-2"])] == ["ouillade-table-2"]
    assert {item.paper for item in chosen(["rupnik"])} == {"rupnik"}
    assert len(chosen([])) == len(EXPERIMENTS)
    with pytest.raises(InputError, match="unknown experiment 'rupnick'"):
        chosen(["rupnick"])


def test_the_command_writes_a_page(tmp_path, capsys):
    with pytest.raises(SystemExit) as end:
        main(["reproduce", "ouillade-rates", "--quick", "-o", str(tmp_path)])
    assert end.value.code == 0
    assert (tmp_path / "quick" / "figures" / "ouillade-rates.png").is_file()
    assert "ouillade-rates" in (tmp_path / "quick" / "RESULTS.md").read_text()
    assert "RESULTS.md" in capsys.readouterr().out
    with pytest.raises(SystemExit):
        main(["reproduce", "--list"])
    shown = capsys.readouterr().out
    assert all(name in shown for name in EXPERIMENTS)


def test_the_shape_of_curves(reports):
    """Pegasos begins far above SDCA and comes down; larger work is better."""
    simulated = reports("ouillade-figures-1-to-3").figures[0].panels[0]
    curves = {curve.label: curve for curve in simulated.curves}
    assert curves["PEGASOS"].y[0] > 10.0 * curves["SDCA"].y[0]
    assert curves["PEGASOS"].y[-1] < 0.1 * curves["PEGASOS"].y[0]
    assert curves["mini-batch PEGASOS"].y[0] < curves["PEGASOS"].y[0]
    work = reports("rupnik-figure-4").figures[0].panels[0].curves
    assert all(more < less for less, more in zip(work[0].y, work[-1].y, strict=True))


@pytest.mark.parametrize(
    ("name", "text"),
    [
        ("panagiotakopoulos-propositions", "Proposition 3"),
        ("panagiotakopoulos-propositions", "the updates (1) to (3)"),
        ("zhang-theorems", "the seven losses"),
        ("zhang-theorems", "the modified Huber loss"),
        ("vishwanathan-implicit-updates", "the three cases of an implicit update"),
        ("zhang-online", "Theorem 5.1"),
        ("zhang-online", "its consequence: SGD with the smoothed hinge has a bound"),
    ],
)
def test_what_is_proven_is_found(name, text, reports):
    (claim,) = [claim for claim in reports(name).claims if claim.text.startswith(text)]
    assert claim.verdict == "holds", claim.evidence


def test_a_slow_disk_takes_its_time_and_counts_for_whom(tmp_path):
    path = tmp_path / "rows.arrow"
    write_store(path, np.eye(40, dtype=np.float32), np.tile([-1.0, 1.0], 20))
    disk = SlowDisk(path, 0.2)
    began = perf_counter()
    for k in range(disk.chunks):
        disk.load(k, True)
    assert perf_counter() - began >= 0.2
    assert disk.paused >= 0.2
    reader = threading.Thread(target=disk.load, args=(0, False))
    before = disk.paused
    reader.start()
    reader.join()
    assert disk.paused == before  # it was not the thread that trains
