"""Measures: those of scikit-learn, for two classes and for K."""

from __future__ import annotations

import numpy as np
import pytest
import scipy.sparse as sp
from sklearn import metrics

import dualgap
from dualgap.models.metrics import classification, multiclass
from dualgap.runtime.errors import InputError


def test_k_classes() -> None:
    rng = np.random.default_rng(0)
    codes, scores = rng.integers(0, 5, 400), rng.normal(size=(400, 5))
    scores[np.arange(400), codes] += 1.0
    values, per_class = multiclass(codes, scores)
    predicted = scores.argmax(axis=1)
    assert values["accuracy"] == metrics.accuracy_score(codes, predicted)
    for average in ("macro", "micro"):
        found = metrics.precision_recall_fscore_support(codes, predicted, average=average)
        for name, value in zip(("precision", "recall", "f1"), found, strict=False):
            assert values[f"{name}_{average}"] == pytest.approx(value)
    for k, each in enumerate(per_class):
        assert each["precision"] == metrics.precision_score(codes == k, predicted == k)
        assert each["auc"] == metrics.roc_auc_score(codes == k, scores[:, k])
        assert each["average_precision"] == metrics.average_precision_score(codes == k, scores[:, k])
    assert values["auc_macro"] == pytest.approx(np.mean([each["auc"] for each in per_class]))


@pytest.mark.filterwarnings("error")
def test_a_class_without_rows_has_no_recall_and_the_means_leave_it_out() -> None:
    codes, scores = np.array([0, 1, 1]), np.eye(3)[[0, 1, 0]]
    values, per_class = multiclass(codes, scores)
    assert np.isnan(per_class[2]["recall"])
    assert np.isnan(per_class[2]["auc"])
    assert values["recall_macro"] == pytest.approx((1 + 0.5) / 2)
    codes, scores = np.array([0, 1, 1, 2]), np.eye(3)[[0, 1, 0, 0]]  # class 2 is never predicted
    values, _ = multiclass(codes, scores)
    for name in ("precision", "recall", "f1"):
        wanted = getattr(metrics, f"{name}_score")(
            codes, scores.argmax(axis=1), average="macro", zero_division=0
        )
        assert values[f"{name}_macro"] == pytest.approx(wanted)
    values = classification(-np.ones(3), -np.ones(3))
    assert all(np.isnan(values[name]) for name in ("precision", "recall", "f1", "auc", "average_precision"))


def test_log_loss_is_that_of_the_probabilities() -> None:
    rng = np.random.default_rng(0)
    X = rng.normal(size=(200, 4))
    y = np.where(X[:, 0] + rng.normal(size=200) > 0, "yes", "no")
    model = dualgap.fit(X, y, loss="logistic", C=0.1).model
    found = model.evaluate(X, y)
    probabilities = 1 / (1 + np.exp(-model.decision_function(X)))
    assert found.values["log_loss"] == pytest.approx(metrics.log_loss(y, probabilities), rel=1e-12)
    assert found.confusion.tolist() == metrics.confusion_matrix(y, model.predict(X)).tolist()
    assert found.classes == ("no", "yes")
    assert model.score(X, y) == found.values["accuracy"] == metrics.accuracy_score(y, model.predict(X))
    assert "log_loss" not in dualgap.fit(X, y, C=0.1).model.evaluate(X, y).values
    # where probabilities round to 0 the scores still tell
    assert classification(np.array([-1.0]), np.array([800.0]), probabilistic=True)["log_loss"] == 800.0


def test_what_can_be_measured() -> None:
    rng = np.random.default_rng(0)
    X, y = rng.normal(size=(90, 3)), np.repeat(["ant", "bee", "cow"], 30)
    X[np.arange(90), np.repeat([0, 1, 2], 30)] += 2.0
    many = dualgap.one_vs_rest(X, y, C=1.0)
    found = many.model.evaluate(sp.csr_array(X), y)
    assert found.counts == [30, 30, 30]
    told = found.as_dict()
    assert [each["class"] for each in told["per_class"]] == ["ant", "bee", "cow"]
    assert np.trace(told["confusion"]) == round(90 * told["accuracy"])
    with pytest.raises(InputError, match="label dog is none of the model's, which are ant, bee, cow"):
        many.model.evaluate(X[:1], ["dog"])
    with pytest.raises(InputError, match="y is missing"):
        many.model.evaluate(X)
    for wrong in (y[:5], np.ones((90, 3))):
        with pytest.raises(InputError, match=r"y has shape .* and X has 90 rows; it must be one label a row"):
            many.model.evaluate(X, wrong)
    with pytest.raises(InputError, match="X is a masked array"):
        many.model.predict(np.ma.array(X, mask=X > 1.0))
    line = dualgap.fit(X, X @ [1.0, 2.0, 3.0], loss="squared", C=10.0).model
    assert line.score(X, X @ [1.0, 2.0, 3.0]) == pytest.approx(1.0, abs=1e-3)
    assert line.evaluate(X, X[:, 0]).as_dict().keys() == {"n_samples", "mse", "mae", "r2"}
