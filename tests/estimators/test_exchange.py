"""Estimators in the formats of others: skops and ONNX, each where it is installed."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import numpy as np
import pytest
from sklearn.base import is_classifier
from sklearn.pipeline import make_pipeline
from sklearn.preprocessing import StandardScaler

from dualgap import estimators
from dualgap.estimators import TRUSTED_TYPES
from dualgap.runtime.errors import InputError
from support.problems import noisy

pytestmark = pytest.mark.filterwarnings("ignore::sklearn.exceptions.ConvergenceWarning")
NAMES = estimators.__all__
every_estimator = pytest.mark.parametrize("name", NAMES)


def fitted(name: str, classes: int = 2) -> tuple[Any, np.ndarray]:
    """In a pipeline, as people have it; the rows are float32, as those of ONNX models usually are."""
    X, y = noisy(seed=0, n=80, d=4, noise=0.5)
    X = X.astype(np.float32)
    model = getattr(estimators, name)(random_state=0)
    if is_classifier(model):
        y = np.array(["ham", "eggs", "spam"])[(y > 0).astype(int) if classes == 2 else np.arange(80) % 3]
    return make_pipeline(StandardScaler(), model).fit(X, y), X


@every_estimator
def test_skops_needs_no_trust_but_in_our_classes(name: str, tmp_path: Path) -> None:
    io = pytest.importorskip("skops.io")
    model, X = fitted(name)
    io.dump(model, tmp_path / "m")
    assert set(io.get_untrusted_types(file=tmp_path / "m")) <= set(TRUSTED_TYPES)
    loaded = io.load(tmp_path / "m", trusted=list(TRUSTED_TYPES))
    assert np.array_equal(loaded.predict(X), model.predict(X))
    if "certificate_" in dir(model[-1]):
        assert loaded[-1].certificate_ == model[-1].certificate_


@pytest.mark.parametrize("classes", [2, 3])
@every_estimator
def test_onnx_models_predict_the_same(name: str, classes: int) -> None:
    skl2onnx, runtime = pytest.importorskip("skl2onnx"), pytest.importorskip("onnxruntime")
    from dualgap.estimators import onnx

    onnx.register()
    onnx.register()  # again is harmless
    model, X = fitted(name, classes)
    classifier = is_classifier(model)
    graph = skl2onnx.to_onnx(model, X[:1], options={"zipmap": False} if classifier else None)
    session = runtime.InferenceSession(graph.SerializeToString(), providers=["CPUExecutionProvider"])
    found = session.run(None, {"X": X})
    if not classifier:
        np.testing.assert_allclose(found[0].reshape(-1), model.predict(X), rtol=1e-4, atol=1e-4)
        return
    scores = model.decision_function(X)
    near = np.abs(scores) if classes == 2 else np.diff(np.sort(scores, axis=1)[:, -2:], axis=1)[:, 0]
    sure = near > 1e-4  # float32 may see a tie otherwise
    assert (found[0] == model.predict(X))[sure].all()
    if hasattr(model, "predict_proba"):
        np.testing.assert_allclose(found[1], model.predict_proba(X), atol=1e-5)


def test_onnx_without_its_package(monkeypatch: pytest.MonkeyPatch) -> None:
    import sys

    from dualgap.estimators import onnx

    monkeypatch.setitem(sys.modules, "skl2onnx", None)
    with pytest.raises(InputError, match="needs the package skl2onnx"):
        onnx.register()
