"""Converters to ONNX for ``skl2onnx``, which is an optional dependency: ``pip install skl2onnx``.

    from dualgap.estimators import onnx
    onnx.register()
    skl2onnx.to_onnx(make_pipeline(StandardScaler(), LinearSVC()).fit(X, y), X[:1])

A fitted estimator is converted as the estimator of scikit-learn with the same weights that ``to_sklearn``
gives, by scikit-learn's own converter. Scores are float32 where the input is.
"""

from __future__ import annotations

from typing import Any

from ..runtime.errors import InputError


def register() -> None:
    """Tell ``skl2onnx`` how the estimators of this package are converted; once in a process is enough."""
    from sklearn.base import is_classifier

    from .. import estimators

    try:
        from skl2onnx import update_registered_converter
        from skl2onnx.common.shape_calculator import calculate_linear_regressor_output_shapes
    except ImportError:
        raise InputError("dualgap.estimators.onnx needs the package skl2onnx: pip install skl2onnx") from None
    choices = {
        "nocl": [True, False],
        "zipmap": [True, False, "columns"],
        "output_class_labels": [False, True],
        "raw_scores": [True, False],
    }
    for name in estimators.__all__:
        cls = getattr(estimators, name)
        classifier = is_classifier(cls())
        update_registered_converter(
            cls,
            f"Dualgap{name}",
            _classifier_shapes if classifier else calculate_linear_regressor_output_shapes,
            _convert_classifier if classifier else _convert,
            overwrite=True,
            options=choices if classifier else None,
        )


def _classifier_shapes(operator: Any) -> None:
    """Two classes have one column of scores, or two, by the class of scikit-learn that stands in."""
    from skl2onnx.common.shape_calculator import calculate_linear_classifier_output_shapes

    calculate_linear_classifier_output_shapes(operator)
    if len(operator.raw_operator.classes_) == 2:
        operator.outputs[1].type.shape = [operator.outputs[1].type.shape[0], None]


def _convert(scope: Any, operator: Any, container: Any) -> None:
    """The graph of the same model as scikit-learn has it."""
    _add(scope, operator, container, None)


def _convert_classifier(scope: Any, operator: Any, container: Any) -> None:
    """Its labels and scores: probabilities where the loss has them, else what ``raw_scores`` asks for."""
    options = container.get_options(operator.raw_operator, {"raw_scores": False, "nocl": False})
    _add(scope, operator, container, {"raw_scores": options.get("raw_scores", False)})


def _add(scope: Any, operator: Any, container: Any, options: dict[str, Any] | None) -> None:
    from skl2onnx.algebra.onnx_operator import OnnxSubEstimator

    peer = operator.raw_operator.to_sklearn()
    graph = OnnxSubEstimator(
        peer,
        operator.inputs[0],
        op_version=container.target_opset,
        output_names=operator.outputs,
        options=options,
    )
    graph.add_to(scope, container)
