"""Learning from rows that come and go is a fit in the order of the rows."""

from __future__ import annotations

import itertools
from typing import Any

import numpy as np
import pytest
import scipy.sparse as sp

import dualgap
from dualgap import Stream
from dualgap.runtime.errors import InputError
from dualgap.solvers import SOLVERS
from dualgap.solvers.primal.perceptron import Perceptron
from support.problems import linear_data

BIASES = ("none", "augmented", "exact")

# what a solver would choose by a look at the data, a stream chooses by its first chunk; so it is given here
GIVEN: dict[str, dict[str, Any]] = {
    "sgd": {"eta0": 0.3},
    "svmsgd": {"eta0": 0.3},
    "asgd": {"eta0": 0.3, "tstart": 5},
    "norma": {"eta0": 0.3, "tstart": 5},
    "sgd-qn": {"eta0": 0.3, "skip": 5},
}

VARIANTS: list[tuple[str, dict[str, Any]]] = [
    *((name, GIVEN.get(name, {})) for name in Stream.solvers()),
    ("sgd", {"eta0": 0.3, "average": True, "weights": "simple", "T0": 7}),
    ("sgd", {"eta0": 0.3, "average": True, "weights": "simple", "lazy": False}),
    ("sgd", {"eta0": 0.1, "preconditioner": np.array([1.0, 2.0, 0.5, 3.0])}),
    ("sgd", {"learning_rate": "inverse"}),
    ("perceptron", {"averaged": True}),
    ("implicit", {"eta": 0.4}),
    ("svmsgd", {"eta0": 0.3, "precision": "float32"}),
]


def data(n: int = 50) -> tuple[np.ndarray, np.ndarray]:
    X, y = linear_data(n, 4, seed=8, noise=0.5, density=0.7)
    return X, y.astype(int)


def pieces(n: int) -> list[slice]:
    edges = [0, 12, 13, 30, n]
    return [slice(*pair) for pair in itertools.pairwise(edges)]


def fitted(X: Any, y: Any, solver: str, epochs: int = 1, **options: Any) -> tuple[np.ndarray, float]:
    """The last model of a fit in the order of the rows (a fit itself hands back the best one it has seen)."""
    outcome = dualgap.fit(X, y, solver=solver, order="given", tol=0.0, max_epochs=epochs, polish=0, **options)
    point = outcome.solver.point(outcome.problem, outcome.run.state)
    return point.w, point.b


@pytest.mark.parametrize("bias", BIASES)
@pytest.mark.parametrize(
    ("solver", "options"), VARIANTS, ids=lambda value: value if isinstance(value, str) else ""
)
def test_chunks_are_one_fit_in_the_order_of_the_rows(solver: str, options: dict[str, Any], bias: str) -> None:
    X, y = data()
    stream = Stream(0.1, solver=solver, bias=bias, rho=0.7, classes=(-1, 1), **options)
    for epochs in (1, 2):
        for part in pieces(50):
            stream.learn(X[part], y[part])
        w, b = fitted(X, y, solver, epochs, lam=0.1, bias=bias, rho=0.7, **options)
        assert np.array_equal(stream.coef, w)
        assert stream.intercept == b
        assert stream.visits == 50 * epochs
        assert stream.coef.any()


@pytest.mark.parametrize("loss", ["logistic", "squared"])
def test_other_losses(loss: str) -> None:
    X, y = data()
    targets = y if loss == "logistic" else X @ [1.0, -2.0, 0.5, 0.0]
    stream = Stream(0.01, loss=loss, solver="svmsgd", eta0=0.1, bias="exact")
    for part in (slice(0, 20), slice(20, 50)):
        stream.learn(X[part], targets[part])
    w, b = fitted(X, targets, "svmsgd", loss=loss, lam=0.01, eta0=0.1, bias="exact")
    assert np.array_equal(stream.coef, w)
    assert stream.intercept == b


def test_one_row_at_a_time_sparse_or_dense() -> None:
    X, y = data(20)
    stream = Stream(0.1, classes=[-1, 1], eta0=0.3)
    for i in range(20):
        row: Any = X[i : i + 1]
        stream.learn(sp.csr_matrix(row) if i % 2 else row, y[i : i + 1])
    np.testing.assert_allclose(
        stream.coef, fitted(X, y, "svmsgd", lam=0.1, eta0=0.3)[0], rtol=1e-9, atol=1e-12
    )


def test_without_a_regulariser() -> None:
    X, y = data()
    stream = Stream(0.0, solver="sgd", eta0=0.1)
    for part in (slice(0, 20), slice(20, 50)):
        stream.learn(X[part], y[part])
    assert np.array_equal(stream.coef, fitted(X, y, "sgd", lam=0.0, eta0=0.1)[0])


@pytest.mark.parametrize("solver", ["svmsgd", "asgd", "norma", "implicit", "sgd-qn"])
def test_solvers_that_need_a_regulariser_say_so(solver: str) -> None:
    X, y = data()
    with pytest.raises(InputError, match="lam"):
        Stream(0.0, solver=solver).learn(X, y)


class TestWeights:
    def test_a_weight_multiplies_the_loss_of_its_row(self) -> None:
        """As in a fit whose weights have the mean 1; a weight of 0 is no row."""
        X, y = data(48)
        weight = np.resize([0.5, 0.0, 1.5, 1.0, 0.25, 1.75], 48)
        for solver in ("svmsgd", "implicit", "perceptron"):
            options = GIVEN.get(solver, {})
            stream = Stream(0.1, solver=solver, classes=(-1, 1), **options)
            for part in pieces(48):
                stream.learn(X[part], y[part], weight[part])
            assert stream.visits == np.count_nonzero(weight)
            w, _ = fitted(X, y, solver, lam=0.1, sample_weight=weight, **options)
            assert np.array_equal(stream.coef, w)

    def test_a_chunk_without_weight_changes_nothing(self) -> None:
        X, y = data()
        stream = Stream(0.1, eta0=0.3).learn(X, y)
        before = stream.coef.copy()
        stream.learn(X[:3], y[:3], np.zeros(3))
        assert np.array_equal(stream.coef, before)
        assert stream.visits == 50

    def test_they_do_not_depend_on_the_chunks(self) -> None:
        X, y = data()
        weight = np.random.default_rng(0).uniform(0.1, 3.0, size=50)
        models = []
        for parts in ([slice(0, 50)], pieces(50)):
            stream = Stream(0.1, eta0=0.3, classes=(-1, 1))
            for part in parts:
                stream.learn(X[part], y[part], weight[part])
            models.append(stream.coef)
        assert np.array_equal(*models)

    def test_a_weight_of_2_is_not_that_of_1(self) -> None:
        X, y = data()
        light, heavy = (Stream(0.1, eta0=0.3).learn(X, y, np.full(50, c)).coef for c in (1.0, 2.0))
        assert not np.allclose(light, heavy)


class TestClasses:
    def test_labels_of_any_kind(self) -> None:
        X, y = data()
        names = np.where(y > 0, "spam", "ham")
        stream = Stream(0.1, eta0=0.3)
        for part in (slice(0, 20), slice(20, 50)):
            stream.learn(X[part], names[part])
        assert list(stream.classes) == ["ham", "spam"]
        assert np.array_equal(stream.coef, Stream(0.1, eta0=0.3).learn(X, y).coef)

    def test_a_chunk_of_one_class_will_do_once_the_classes_are_known(self) -> None:
        X, y = data()
        up, down = y > 0, y < 0
        expected = (
            Stream(0.1, eta0=0.3).learn(np.vstack([X[up], X[down]]), np.concatenate([y[up], y[down]])).coef
        )
        known = Stream(0.1, eta0=0.3, classes=(-1, 1)).learn(X[up], y[up]).learn(X[down], y[down])
        assert np.array_equal(known.coef, expected)
        first = Stream(0.1, eta0=0.3).learn(X[:10], y[:10])
        assert first.learn(X[up], y[up]).visits == 10 + up.sum()

    def test_a_first_chunk_of_one_class_will_not(self) -> None:
        X, y = data()
        with pytest.raises(InputError, match="one class only"):
            Stream(0.1).learn(X[y > 0], y[y > 0])

    def test_an_unknown_label(self) -> None:
        X, y = data()
        stream = Stream(0.1, eta0=0.3).learn(X, y)
        before = stream.coef.copy()
        with pytest.raises(InputError, match=r"y\[1\] is 3; the classes are -1 and 1"):
            stream.learn(X[:3], [1, 3, -1])
        assert np.array_equal(stream.coef, before)
        assert stream.visits == 50

    @pytest.mark.parametrize("classes", [(1,), (1, 1), (-1, 0, 1)])
    def test_there_are_two(self, classes: Any) -> None:
        X, y = data()
        with pytest.raises(InputError, match="classes"):
            Stream(0.1, eta0=0.3, classes=classes).learn(X[y > 0], y[y > 0])


class TestErrors:
    def test_other_columns(self) -> None:
        X, y = data()
        stream = Stream(0.1, eta0=0.3).learn(X, y)
        with pytest.raises(InputError, match="X has 3 columns and the rows before had 4"):
            stream.learn(X[:, :3], y)
        assert stream.learn(X, y).visits == 100

    @pytest.mark.parametrize("solver", [name for name in SOLVERS if name not in Stream.solvers()])
    def test_solvers_that_cannot(self, solver: str) -> None:
        with pytest.raises(
            InputError, match=f"solver '{solver}' cannot learn from a stream; these can: .*svmsgd"
        ):
            Stream(0.1, solver=solver)

    @pytest.mark.parametrize(
        ("options", "complaint"),
        [
            ({"solver": "sgd", "average": True}, "weights='full' depends on the longest of all rows"),
            ({"solver": "sgd", "preconditioner": "features", "eta0": 0.1}, "preconditioner='features'"),
            ({"solver": "perceptron", "voted": True}, "voted"),
            ({"solver": "norma", "loss": "logistic"}, "cannot train with the loss 'logistic'"),
            ({"solver": "magic"}, "'magic'"),
            ({"speed": 3}, "no option 'speed'"),
            ({"eta0": -1.0}, "eta0=-1.0"),
            ({"lam": -1.0}, "lam=-1.0"),
            ({"solver": "sgd", "learning_rate": "constant", "eta0": 20.0}, "at most 1/lam = 10"),
            ({"loss": "hinges"}, "unknown loss 'hinges'"),
            ({"bias": "some"}, "unknown bias 'some'"),
            ({"seed": -1}, "seed=-1"),
            ({"order": "random"}, "order='random' is nothing for a stream"),
        ],
    )
    def test_bad_options(self, options: dict[str, Any], complaint: str) -> None:
        X, y = data()
        with pytest.raises(InputError, match=complaint) as error:
            Stream(**{"lam": 0.1, **options}).learn(X, y).learn(X, y)
        assert "\n" not in str(error.value)

    def test_bad_rows(self) -> None:
        X, y = data()
        stream = Stream(0.1, eta0=0.3).learn(X, y)
        for bad_X, bad_y, complaint in (
            (X[:3], y[:2], "y has 2 entries and X has 3 rows"),
            (X[:0], y[:0], "X has no rows"),
            (np.full((2, 4), np.nan), y[:2], "NaN"),
        ):
            with pytest.raises(InputError, match=complaint):
                stream.learn(bad_X, bad_y)
        assert stream.visits == 50


def test_nothing_is_kept_of_a_row() -> None:
    X, y = data()
    for solver in Stream.solvers():
        state = Stream(0.1, solver=solver).learn(X, y).state
        assert state.means.slopes.size == state.means.looks.size == 0


def test_a_mean_begins_at_once_as_a_stream_knows_no_epochs() -> None:
    assert Stream(0.1, solver="asgd").solver.tstart == 1
    assert Stream(0.1, solver="norma").solver.tstart == 1
    assert isinstance(Stream(0.1, solver="perceptron").solver, Perceptron)
