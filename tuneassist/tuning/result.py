"""The object that `--batch --json` prints, made from the store."""

from __future__ import annotations

import json
from dataclasses import asdict
from typing import Any

from tuneassist.cost_model.metrics import pairwise_accuracy, spearman
from tuneassist.records import FAILURES, Run, RunStatus, Task, Trial, TrialStatus
from tuneassist.storage.base import Store
from tuneassist.tuning.event_log import EventLog
from tuneassist.tuning.phases import PhaseClock
from tuneassist.workloads.models import TASK


def run_result(
    store: Store, run_id: int, status: RunStatus, *, clock: PhaseClock, log: EventLog,
    first_measurement_secs: float | None, models: list[dict[str, Any]],
) -> dict[str, Any]:  # fmt: skip
    """The result of a run as the store has it, with the times of this engine."""
    run = store.run(run_id)
    target = store.target(run.target_id)
    return {
        "run_id": run_id,
        "status": str(status),
        "target": {**json.loads(target.json), "spec": target.spec, "note": target.note},
        "machine": asdict(store.machine(run.machine_id)),
        "cost_model": run.cost_model,
        "seed": run.seed,
        "tasks": [
            _task_result(task, store.trials(run_id, task_id=task.id), _reused(store, run, task))
            for task in store.tasks(run_id)
        ],
        "models": models,
        "first_measurement_secs": _rounded(first_measurement_secs),
        "wall_secs": round(clock.wall_secs(), 3),
        "phase_secs": clock.secs(),
        "db": store.path,
        "events_lost": log.lost,
    }


def _reused(store: Store, run: Run, task: Task) -> Trial | None:
    """The best that earlier runs know of a model's task."""
    if task.op != TASK:
        return None
    place = {"target_id": run.target_id, "machine_id": run.machine_id}
    return next(iter(store.top_trials(task.workload_hash, **place, limit=1)), None)


def _task_result(task: Task, trials: list[Trial], reused: Trial | None) -> dict[str, Any]:
    valid = [trial for trial in trials if trial.status is TrialStatus.OK and trial.best_of is not None]
    right = [trial for trial in valid if trial.correct is not False]
    best = min(right, key=lambda trial: trial.best_of or float("inf"), default=None if valid else reused)
    best_secs = best.best_of if best else None
    pairs = [(t.predicted_secs, t.best_of) for t in valid if t.predicted_secs is not None and t.best_of]
    predicted, measured = [p for p, _ in pairs], [m for _, m in pairs]
    return {
        "name": task.name,
        "workload": task.workload_spec,
        "weight": task.weight,
        "trials": len(trials),
        "valid": len(valid),
        "failed": {str(status): sum(trial.status is status for trial in trials) for status in FAILURES},
        "best_secs": best_secs,
        "best_ordinal": best.ordinal if best else None,
        "best_run_id": best.run_id if best else None,
        "correct": best.correct if best else None,
        "wrong": len(valid) - len(right),
        "gflops": task.flops / best_secs / 1e9 if best_secs else None,
        "baseline_secs": task.untuned_secs,
        "pytorch_secs": task.pytorch_secs,
        "spearman": spearman(predicted, measured),
        "pairwise_accuracy": pairwise_accuracy(predicted, measured),
        "error": task.error,
    }


def _rounded(secs: float | None) -> float | None:
    return None if secs is None else round(secs, 3)
