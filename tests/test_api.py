"""``fit``: what it takes, what it refuses, and how it says so."""

from __future__ import annotations

import re
import subprocess
import sys
import tomllib
import warnings
from dataclasses import replace
from pathlib import Path
from typing import Any

import numpy as np
import pytest
import scipy.sparse as sp
from sklearn.exceptions import ConvergenceWarning

import dualgap
from dualgap.core.certificate import Certificate, excess
from support.problems import linear_data

X = np.array([[1.0, 0.0], [0.0, 2.0], [1.0, 1.0], [0.5, -1.0]])
Y = np.array([1, -1, -1, 1])

REFUSED = [
    ({"X": [[1.0, np.nan]] * 4}, "NaN at row 0, column 1"),
    ({"X": sp.csr_matrix([[1.0, 0], [0, np.inf], [1, 1], [1, 1]])}, "infinity at row 1, column 1"),
    ({"X": X[0]}, "X has 1 dimension,"),
    ({"X": X[:3]}, "y has 4 entries and X has 3 rows"),
    ({"X": np.zeros((0, 2)), "y": []}, "X has no rows"),
    ({"X": [[1.0], [1.0, 2.0]], "y": [1, -1]}, "in rows that are equally long"),
    ({"X": np.ma.array(X, mask=X > 1.0)}, "X is a masked array; fill in what is masked"),
    ({"y": np.eye(4)}, "for several labels a row dualgap.one_vs_rest takes a matrix of 0 and 1"),
    ({"y": sp.eye_array(4)}, r"y has shape \(4, 4\); it must be one label a row"),
    ({"y": Y[:, None]}, r"in one dimension; give y.ravel\(\)"),
    ({"y": [[1], [2, 3], [1], [2]]}, "y has shape .* it must be one label a row"),
    ({"y": [{1}, {2, 3}, {1}, {2}]}, "MultiLabelBinarizer"),
    ({"checkpoint": 3}, "3 is no name of a file; give a text or a Path"),
    ({"X": np.zeros((4, 0))}, "0 features"),
    ({"X": X.astype(complex)}, "complex128 values"),
    ({"y": [1, -1, np.nan, 1]}, r"y\[2\] is nan"),
    ({"y": [1, 1, 1, 1]}, "one class only"),
    ({"y": [1, 2, 3, 1]}, r"3 classes \(1, 2, 3\)"),
    ({"y": [[1], [2], [3], [1]]}, "it must be one label a row"),
    ({"loss": "squared", "y": ["a", "b", "c", "d"]}, "a regression loss needs numbers"),
    ({"sample_weight": [1, -1, 1, 1]}, r"sample_weight\[1\] is -1"),
    ({"sample_weight": [0, 0, 0, 0]}, "all sample weights are zero"),
    ({"sample_weight": [1, np.inf, 1, 1]}, r"sample_weight\[1\] is inf"),
    ({"sample_weight": [1, 1]}, "sample_weight has 2 entries"),
    ({"C": 0}, "C=0 must be a positive finite number"),
    ({"C": -1.0}, "C=-1.0 must be"),
    ({"C": np.nan}, "C=nan must be"),
    ({"C": "x"}, "C='x' must be a number"),
    ({"lam": 0.0}, "lam=0.0 must be"),
    ({"C": 1, "lam": 1}, "both C=1 and lam=1"),
    ({"tol": -1}, "tol=-1 must be"),
    ({"tol": np.nan}, "tol=nan must be"),
    ({"max_epochs": 0}, "max_epochs=0"),
    ({"max_visits": -5}, "max_visits=-5"),
    ({"time_limit": 0}, "time_limit=0"),
    ({"threads": 0}, "threads=0"),
    ({"seed": -1}, "seed=-1"),
    ({"C": np.inf, "loss": "logistic"}, "belongs to the hinge loss"),
    (
        {"C": np.inf, "solver": "dcd", "bias": "exact"},
        "cannot train with the loss 'hard-margin'; these can: decomposition, smo",
    ),
    ({"solver": "ocas", "loss": "logistic"}, "'ocas' cannot train with the loss 'logistic'; these can: dcd"),
    ({"solver": "decomposition", "bias": "exact", "q": 3}, "q=3 must be an even number"),
    ({"solver": "smo", "bias": "exact", "q": 4}, "solver 'smo' has no option 'q'"),
    ({"solver": "svmperf", "epsilon": -1}, "epsilon=-1.0"),
    ({"solver": "ocas", "r": -1}, "r=-1.0"),
    ({"record_every": 0}, "record_every=0"),
    ({"loss": "hing"}, "unknown loss 'hing'; did you mean 'hinge'"),
    ({"loss": "hinge:gamma=1"}, "no parameter 'gamma'"),
    ({"loss": "huber:threshold=0"}, "threshold=0.0 must be a positive"),
    ({"solver": "dcdd"}, "unknown solver 'dcdd'; did you mean 'dcd'"),
    ({"shrink": True}, "solver 'dcd' has no option 'shrink'; did you mean 'shrinking'"),
    ({"shrinking": "maybe"}, "shrinking='maybe'.*true or false"),
    ({"pg_tol": "tight"}, "pg_tol='tight'.*float"),
    ({"pg_tol": -1.0}, "pg_tol=-1.0"),
    ({"bias": "free"}, "unknown bias 'free'"),
    ({"bias": "augmented", "rho": 0.0}, "rho=0.0 must lie"),
    ({"penalty": "l1"}, "skglm"),
    ({"penalty": "elasticnet"}, "SGDClassifier"),
    # of the wrong type
    ({"bias": True}, "bias=True must be 'none', 'augmented' or 'exact'"),
    ({"bias": None}, "bias=None must be"),
    ({"bias": "augmented", "rho": "x"}, "rho='x' must be a number"),
    ({"rho": None}, "rho=None must be a number"),
    ({"loss": 3}, "loss=3 is not a loss"),
    ({"loss": None}, "loss=None is not a loss"),
    ({"solver": None}, "unknown solver None; there are: accelerated-sdca, asdca"),
    ({"solver": 3.0}, "unknown solver 3.0"),
    ({"solver": ["dcd"]}, r"unknown solver \['dcd'\]"),
    ({"C": True}, "C=True must be a number"),
    ({"C": "1"}, "C='1' must be a number"),
    ({"C": np.array([1.0, 2.0])}, r"C=array\(\[1., 2.\]\) must be a number"),
    ({"C": 10**400}, r"C=1000.*must be a positive finite number"),
    ({"lam": "1"}, "lam='1' must be a number"),
    ({"tol": None}, "tol=None must be a number"),
    ({"tol": "1e-3"}, "tol='1e-3' must be a number"),
    ({"threads": "2"}, "threads='2' must be a whole number >= 1"),
    ({"threads": None}, "threads=None must be"),
    ({"threads": 1.5}, "threads=1.5 must be a whole number >= 1"),
    ({"seed": 1.5}, "seed=1.5 must be a whole number >= 0"),
    ({"seed": None}, "seed=None must be"),
    ({"max_visits": 1.5}, "max_visits=1.5 must be a whole number >= 1"),
    ({"max_epochs": "10"}, "max_epochs='10' must be a number"),
    ({"time_limit": [1]}, r"time_limit=\[1\] must be a number"),
    ({"record_every": "often"}, "record_every='often' must be a positive number of row visits"),
    ({"validation": 0.5, "patience": "5"}, "patience='5' must be a whole number"),
    ({"validation": np.array([1.0, 2.0])}, "validation y has shape"),
    ({"sample_weight": 2.0}, "sample_weight has shape"),
    ({"sample_weight": np.ones((4, 1))}, "sample_weight has shape"),
    (
        {"callbacks": print},
        r"callbacks=.* must be a list of functions of \(record, run\); put a single one in brackets",
    ),
    ({"callbacks": None}, "callbacks=None must be a list"),
    ({"measures": ["accuracy"]}, r"measures\[0\]='accuracy' cannot be called"),
    ({"measures": 3}, "measures=3 must be a list"),
    ({"measures": [lambda point: 0.5]}, "returned 0.5; it must return a dict of numbers"),
    ({"callbacks": ["stop"]}, r"callbacks\[0\]='stop' cannot be called"),
    ({"warm": "run.npz"}, r"warm='run.npz' must be an Outcome, a Model \(load_model\)"),
    ({"warm": dualgap.Point("x", 0.0, None)}, "warm: w is 'x'; it must be a vector of numbers"),
    ({"warm": dualgap.Point(np.zeros(2), None, None)}, r"warm: b is \[None\]; it must be a number"),
    ({"penalty": None}, "penalty=None is not offered"),
    ({"expand": "poly2", "hash_bits": "8"}, "hash_bits='8' must be a whole number"),
    ({"memory_budget": "2GB"}, "memory_budget='2GB' is for rows on disk"),
    ({"y": np.array([1, "a", None, 2], dtype=object)}, "labels of different types"),
    # out of range: in the terms of the caller, who gave C
    ({"C": 1e308}, r"C=1e\+308 is out of range: for these rows it must lie between 2.5e-101 and 2.5e\+99"),
    ({"C": 1e-320}, "C=1e-320 is out of range"),
]


@pytest.mark.parametrize(("changes", "message"), REFUSED, ids=[message[:40] for _, message in REFUSED])
def test_bad_input_gets_one_clear_line(changes: dict, message: str) -> None:
    arguments = {"X": X, "y": Y, **changes}
    with pytest.raises(dualgap.InputError, match=message) as caught:
        dualgap.fit(arguments.pop("X"), arguments.pop("y"), **arguments)
    assert "\n" not in str(caught.value)


@pytest.mark.parametrize("train", [dualgap.plan, dualgap.one_vs_rest])
@pytest.mark.parametrize("wrong", [{"bias": True}, {"solver": None}, {"loss": 3}, {"C": "x"}, {"tol": None},
                                   {"threads": "2"}, {"seed": 1.5}, {"sample_weight": [1.0]},
                                   {"memory_budget": "2GB"}])  # fmt: skip
def test_plan_and_one_vs_rest_refuse_the_same(train: Any, wrong: dict) -> None:
    with pytest.raises(dualgap.InputError, match=next(iter(wrong))):
        train(X, Y, **wrong)


def test_one_vs_rest_refuses_labels_that_are_none() -> None:
    for y, message in ((None, "y is missing"), ([], "y has 0 entries"), (np.ones((4, 1)), "y has shape")):
        with pytest.raises(dualgap.InputError, match=message):
            dualgap.one_vs_rest(X, y)


def test_messages_are_one_line_and_not_endless() -> None:
    with pytest.raises(dualgap.InputError) as caught:
        dualgap.fit("no\nsuch\nfile")
    assert "\n" not in str(caught.value)
    with pytest.raises(dualgap.InputError) as caught:
        dualgap.fit(X, Y, C=np.arange(10_000.0))
    assert len(str(caught.value)) < 150


def test_a_model_that_was_saved_is_a_starting_point(tmp_path: Path) -> None:
    from dualgap.files import DataSpec, Model, load_model, open_data
    from dualgap.models.building import model_of

    data = open_data(DataSpec(X, Y), "classification")
    good = dualgap.fit(data, C=1.0, tol=1e-9, bias="augmented")
    for duals in (True, False):
        model_of(good, data, duals=duals).save(tmp_path / "m")
        assert Model.load(tmp_path / "m").classes == (-1, 1)
        again = dualgap.fit(
            X, Y, C=1.0, tol=1e-6, bias="augmented", warm=load_model(tmp_path / "m"), solver="dcd"
        )
        assert again.trace[0].certificate.primal == pytest.approx(good.certificate.primal)
        if duals:
            assert (again.trace[-1].visits, again.reason.name) == (0, "gap")
    # the other class is the positive one there: the same model with the other sign
    replace(model_of(good, data), classes=(1, -1)).save(tmp_path / "m")
    turned = dualgap.fit(
        X, -Y, C=1.0, tol=1e-6, bias="augmented", warm=load_model(tmp_path / "m"), solver="dcd"
    )
    assert turned.trace[-1].visits == 0
    with pytest.raises(dualgap.InputError, match="warm start of 4 rows and 2 columns for data of 3 rows"):
        dualgap.fit(X[:3], Y[:3], warm=load_model(tmp_path / "m"))


@pytest.mark.parametrize("labels", [[1, -1], [1, 0], [7.5, 3.0], ["spam", "ham"], [True, False]])
def test_any_two_labels_will_do_and_the_larger_is_positive(labels: list) -> None:
    low, high = sorted(labels)
    outcome = dualgap.fit(X, np.where(Y > 0, np.array(high, dtype=object), low).astype(type(low)), C=1.0)
    assert list(outcome.classes) == [low, high]
    reference = dualgap.fit(X, Y, C=1.0)
    assert outcome.coef.tobytes() == reference.coef.tobytes()


def test_forms_agree() -> None:
    by_c = dualgap.fit(X, Y, C=2.0, tol=1e-9)
    by_lam = dualgap.fit(X, Y, lam=1 / (2.0 * 4), tol=1e-9)
    assert by_c.certificate.form == "J"
    assert by_lam.certificate.form == "mean"
    assert by_c.certificate.primal == pytest.approx(by_lam.certificate.primal * 8, rel=1e-12)
    np.testing.assert_allclose(by_c.coef, by_lam.coef)


def test_outcome_is_complete() -> None:
    outcome = dualgap.fit(X, Y, C=1.0, bias="augmented", shrinking=False, seed=9)
    assert outcome.solver.shrinking is False
    assert outcome.solver.seed == 9
    assert outcome.solver.name == "dcd"
    # the signed duals rebuild the model: w = C sum beta x, b = C rho^2 sum beta
    np.testing.assert_allclose(outcome.coef, X.T @ outcome.dual, atol=1e-2)
    assert outcome.reason.name == "gap"
    assert outcome.trace[-1].certificate == outcome.certificate


def test_the_callers_arrays_are_left_alone() -> None:
    matrix, labels, weight = sp.csr_matrix(X), Y.astype(float), np.ones(4)
    copies = [a.copy() for a in (matrix.data, matrix.indices, matrix.indptr, labels, weight)]
    dualgap.fit(matrix, labels, C=1.0, sample_weight=weight)
    for before, after in zip(
        copies, (matrix.data, matrix.indices, matrix.indptr, labels, weight), strict=True
    ):
        assert np.array_equal(before, after)
        assert after.flags.writeable


def test_import_is_light() -> None:
    code = (
        "import dualgap, sys; print([m for m in ('numba', 'sklearn', 'scipy', 'numpy') if m in sys.modules])"
    )
    run = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True)
    assert run.stdout.strip() == "[]"
    assert set(dir(dualgap)) >= {"fit", "Certificate", "__version__"}
    with pytest.raises(AttributeError, match="no attribute 'nothing'"):
        dualgap.nothing  # noqa: B018


def test_threads_do_not_change_the_certificate() -> None:
    rng = np.random.default_rng(0)
    big = sp.random(60_000, 100, density=0.4, format="csr", rng=rng, dtype=np.float32)
    y = np.where(rng.random(60_000) < 0.4, 1, -1)
    one, two = (dualgap.fit(big, y, C=1e-4, tol=1e-2, threads=threads) for threads in (1, 2))
    assert len(one.problem.source._edges) > 2  # several parts, so that threads have something to share
    assert one.certificate == two.certificate
    assert one.coef.tobytes() == two.coef.tobytes()


def tall(n: int, d: int, density: float = 1.0) -> tuple[Any, np.ndarray]:
    return linear_data(n, d, seed=3, density=density)


@pytest.mark.parametrize(
    ("loss", "C", "shape", "first"),
    [
        ("hinge", 1.0, (3000, 4, 1.0), "dcd"),
        ("hinge", 1.0, (60, 40, 1.0), "dcd"),
        ("hinge", 10.0, (3000, 40, 0.02), "dcd"),
        ("logistic", 10.0, (3000, 40, 0.5), "newton"),
        ("logistic", 10.0, (2000, 4000, 0.02), "dcd"),
    ],
)
def test_auto_begins_by_shape_and_says_why(loss: str, C: float, shape: Any, first: str) -> None:
    rows, y = tall(*shape)
    arguments: dict[str, Any] = {"loss": loss, "C": C, "tol": 1e-2}
    outcome = dualgap.fit(rows, y, **arguments)
    assert outcome.converged
    assert outcome.trace[0].solver == first
    assert f"{shape[0]:,} rows of {shape[1]:,} columns" in outcome.auto_reason
    assert all(change in outcome.auto_reason for change in outcome.story)
    assert dualgap.fit(rows, y, solver="dcd", **arguments).auto_reason == ""
    lines = dualgap.plan(rows, y, **arguments)
    assert lines[0].startswith(f"solver {first}: ")
    assert "goes on from there" in lines[-1]


def test_auto_takes_a_solver_that_has_the_options() -> None:
    rows, y = tall(3000, 4)
    assert dualgap.fit(rows, y, C=1.0, tol=1e-1, shrinking=False).solver.name == "dcd"


def readme(heading: str) -> str:
    """The Python code that follows a heading of the README."""
    text = (Path(__file__).parents[1] / "README.md").read_text()
    return text.split(f"# {heading}\n")[1].split("```python\n")[1].split("```")[0]


@pytest.mark.parametrize("container", [np.asarray, sp.csr_array])
@pytest.mark.parametrize("gap", [1e-1, 1e-6])
def test_a_certificate_can_be_checked_in_ten_lines(container: Any, gap: float) -> None:
    code = readme("Check a certificate yourself")
    assert len(code.strip().splitlines()) <= 10
    rng = np.random.default_rng(0)
    rows = rng.standard_normal((80, 6))
    labels = np.where(rows @ rng.standard_normal(6) + rng.standard_normal(80) > 0, "yes", "no")
    outcome = dualgap.fit(container(rows), labels, C=0.7, tol=gap)
    names = {"np": np, "X": container(rows), "labels": labels, "C": 0.7, "outcome": outcome}
    exec(code, names)
    assert names["objective"] == pytest.approx(outcome.certificate.primal, rel=1e-12)
    assert names["bound"] == pytest.approx(outcome.certificate.dual, rel=1e-12)
    names["outcome"] = replace(outcome, dual=outcome.dual * 0.5)
    with pytest.raises(AssertionError):
        exec(code, names)


def test_no_extra_is_for_nothing() -> None:
    """Every package of an extra is imported somewhere in the library, and `all` names all extras."""
    root = Path(__file__).parents[1]
    extras = tomllib.loads((root / "pyproject.toml").read_text())["project"]["optional-dependencies"]
    sources = "".join(path.read_text() for path in (root / "src").rglob("*.py"))
    (everything,) = extras.pop("all")
    assert everything == f"dualgap[{','.join(extras)}]"
    for packages in extras.values():
        for package in packages:
            name = re.split(r"[\[<>=]", package)[0]
            assert re.search(rf'(import|from) {name}\b|"{name}"', sources), f"nothing imports {name}"


@pytest.mark.parametrize("solver", ["auto", "dcd", "sdca"])
def test_the_solver_of_an_outcome_is_the_one_asked_for(solver: str) -> None:
    """And not what finds its bias."""
    outcome = dualgap.fit(*linear_data(60, 3, 1), solver=solver, bias="exact")
    kinds = {"auto": ("DCD", "Newton", "InteriorPoint"), "dcd": ("DCD",), "sdca": ("SDCA",)}
    assert type(outcome.solver).__name__ in kinds[solver]
    assert outcome.solver.name == outcome.trace[-1].solver


class TestUnknownNames:
    @pytest.mark.parametrize(
        ("name", "meant"),
        [
            ("max_epoch", "did you mean 'max_epochs'?"),
            ("max_iter", "did you mean 'max_epochs'?"),
            ("random_state", "did you mean 'seed'?"),
            ("sample_weights", "did you mean 'sample_weight'?"),
            ("k", "these have: pegasos"),
        ],
    )
    def test_arguments_of_fit_are_suggested_too(self, name: str, meant: str) -> None:
        with pytest.raises(dualgap.InputError, match=f"has no option '{name}'") as caught:
            dualgap.fit(X, [1, -1, 1, -1], **{name: 3})
        assert meant in str(caught.value)


class TestConvergenceWarning:
    X = np.random.default_rng(0).normal(size=(60, 3)) * [1.0, 1e-5, 1e5]
    y = np.where(np.random.default_rng(1).random(60) < 0.5, 1, -1)

    def test_a_limit_that_nobody_set(self) -> None:
        told: dict[str, Any] = {"solver": "dcd", "C": 10.0, "tol": 1e-6}
        with pytest.warns(ConvergenceWarning, match="its columns have norms from") as caught:
            outcome = dualgap.fit(self.X, self.y, **told)
        assert caught[0].filename == __file__
        assert outcome.reason.name in ("max_epochs", "stalled")
        assert outcome.advice in str(caught[0].message)

    def test_where_coordinates_are_slow_auto_may_not_be(self) -> None:
        """What the advice says is so."""
        X = np.random.default_rng(2).normal(size=(200, 150))
        y = np.where(np.random.default_rng(3).random(200) < 0.4, 1, -1)
        told: dict[str, Any] = {"C": 1e4, "max_epochs": 100, "bias": "exact"}
        assert "or take solver='auto', which leaves dcd" in dualgap.fit(X, y, solver="dcd", **told).advice
        assert dualgap.fit(X, y, **told).converged
        assert "solver='auto'" not in dualgap.fit(X, y, C=1e4, max_epochs=1).advice

    def test_nothing_known_is_not_called_a_fraction(self) -> None:
        X, y = np.eye(2)[[0, 0, 1, 1]], [1, -1, 1, -1]
        with pytest.warns(ConvergenceWarning, match="it violates the hard margin, and nothing is proven"):
            dualgap.LinearSVC(C=np.inf).fit(X, y)
        certificate = Certificate(1.0, 0.0, 1.0, np.inf, 0.0, "J")
        assert excess(certificate).startswith("no positive lower bound is known")

    def test_of_several_classes_the_worst(self) -> None:
        labels = np.arange(60) % 3
        with pytest.warns(ConvergenceWarning, match=r"one_vs_rest \(\d of 3 classes; the worst is") as caught:
            dualgap.one_vs_rest(self.X, labels, solver="dcd", C=10.0, tol=1e-6)
        (told,) = (each for each in caught if each.category is ConvergenceWarning)
        assert told.filename == __file__

    def test_a_limit_that_was_asked_for(self) -> None:
        with warnings.catch_warnings():
            warnings.simplefilter("error", ConvergenceWarning)
            outcome = dualgap.fit(self.X, self.y, solver="dcd", C=10.0, tol=1e-6, max_epochs=2)
            assert "Otherwise raise max_epochs" in outcome.advice
            assert dualgap.fit(self.X / self.X.std(0), self.y).advice == ""


@pytest.mark.parametrize(
    ("arguments", "complaint"),
    [
        ({"loss": "squared"}, r"y: the labels are words \(a, b, c\).* say task='classification'"),
        ({"patience": 3, "task": "classification"}, "patience=3 is for early stopping; give validation="),
        ({"c": 3}, r"no option 'c', and there is no argument of that name; did you mean 'C'\?"),
    ],
)
def test_what_was_meant(arguments: dict[str, Any], complaint: str) -> None:
    words = np.repeat(["a", "b", "c"], 10)
    y = words if "loss" in arguments else words == "a"
    with pytest.raises(dualgap.InputError, match=complaint):
        dualgap.fit(np.random.default_rng(0).normal(size=(30, 3)), y, **arguments)
