"""The recipes of the guide, each where its package is installed."""

from __future__ import annotations

import itertools
from pathlib import Path
from typing import Any

import numpy as np
import pytest

import dualgap
from support.problems import noisy


def test_optuna_prunes_by_validation_loss() -> None:
    optuna = pytest.importorskip("optuna")
    optuna.logging.set_verbosity(optuna.logging.WARNING)
    X, y = noisy(seed=0, n=300, d=5, noise=0.5)

    def objective(trial: Any) -> float:
        steps = itertools.count()

        def prune(record: Any, run: Any) -> Any:
            if record.kind == "certified":
                trial.report(record.measures["validation"], next(steps))
                return trial.should_prune()
            return None

        C = trial.suggest_float("C", 1e-3, 1e2, log=True)
        outcome = dualgap.fit(X, y, C=C, validation=0.3, callbacks=[prune])
        if outcome.reason.name == "callback":
            raise optuna.TrialPruned
        return min(record.measures["validation"] for record in outcome.trace)

    pruner, sampler = optuna.pruners.MedianPruner(2, 1), optuna.samplers.RandomSampler(seed=0)
    study = optuna.create_study(pruner=pruner, sampler=sampler)
    study.optimize(objective, n_trials=12)
    states = [trial.state.name for trial in study.trials]
    assert "PRUNED" in states
    assert "COMPLETE" in states


def test_mlflow_records_objective_and_bound(tmp_path: Path) -> None:
    mlflow = pytest.importorskip("mlflow")
    mlflow.set_tracking_uri(f"sqlite:///{tmp_path / 'runs.db'}")
    X, y = noisy(seed=0, n=300, d=5, noise=0.5)

    def log(record: Any, run: Any) -> None:
        if record.kind == "certified":
            best = record.certificate
            mlflow.log_metrics({"objective": best.primal, "lower_bound": best.dual}, step=record.visits)

    with mlflow.start_run() as run:
        outcome = dualgap.fit(X, y, tol=1e-6, callbacks=[log])
    history = mlflow.MlflowClient().get_metric_history(run.info.run_id, "objective")
    assert [point.value for point in history] == [record.certificate.primal for record in outcome.trace]
    assert np.all(np.diff([point.step for point in history]) > 0)
