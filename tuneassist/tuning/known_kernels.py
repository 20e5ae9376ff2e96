"""What the store knows of a model's kernels on one machine and target, and the result that is made of it."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

from tuneassist.models.extract import ExtractedModel, ExtractedTask
from tuneassist.records import CONTENDERS, Trial
from tuneassist.storage.known import trials_allotted, untuned_secs
from tuneassist.storage.sqlite import SqliteStore
from tuneassist.tuning.end_to_end import Comparison

_TRIED = 3
"""Trials of a kernel that are tried where the best no longer applies."""


@dataclass(frozen=True, slots=True)
class KnownKernels:
    """Looks kernels up by their hash."""

    store: SqliteStore
    target_id: int
    machine_id: int

    def best(self, task: ExtractedTask) -> list[Trial]:
        """The best trials of a kernel over all runs, fastest first."""
        return self.store.top_trials(
            task.hash, target_id=self.target_id, machine_id=self.machine_id, limit=_TRIED
        )

    def untuned_secs(self, task: ExtractedTask) -> float | None:
        """The latency of TVM's default schedule as it was measured last."""
        return untuned_secs(
            self.store.connection, task.hash, target_id=self.target_id, machine_id=self.machine_id
        )

    def share(self, workload_hash: str) -> float:
        """Trials that an earlier run could have spent on a kernel: see `trials_allotted`."""
        return trials_allotted(
            self.store.connection, workload_hash, target_id=self.target_id, machine_id=self.machine_id
        )

    def traces(self, task: ExtractedTask) -> list[str]:
        """What to compile a kernel with, best first; none where TVM's default schedule is as fast.

        That is so for the smallest kernels: MetaSchedule's are parallel, and waking a thread takes longer.
        """
        best, untuned = self.best(task), self.untuned_secs(task)
        if best and untuned is not None and untuned <= (best[0].best_of or 0.0):
            return []
        return [trial.trace_json for trial in best]

    def all_traces(self, model: ExtractedModel) -> dict[str, list[str]]:
        """The traces of each tunable kernel by its hash."""
        return {task.hash: self.traces(task) for task in model.tasks if task.tunable}


def model_result(
    model: ExtractedModel, known: KnownKernels, compared: Comparison | None
) -> dict[str, Any]:  # fmt: skip
    """A model as results show it: latencies end to end, and each kernel before and after."""
    return {
        "name": model.info.name,
        "workload": model.info.spec,
        "flops": model.flops,
        **{f"{kind}_secs": compared.secs[kind] if compared else None for kind in CONTENDERS},
        "run_secs": compared.run_secs if compared else {},
        "errors": compared.errors if compared else {},
        "correct": compared.correct if compared else None,
        "max_relative_error": compared.max_relative_error if compared else None,
        "tolerance": compared.tolerance if compared else None,
        "reference": compared.reference if compared else "",
        "notes": compared.notes if compared else [],
        "tasks": [_task_result(task, known) for task in model.tasks],
    }


def _task_result(task: ExtractedTask, known: KnownKernels) -> dict[str, Any]:
    best = next(iter(known.best(task)), None)
    return {
        "name": task.info.name,
        "hash": task.hash,
        "weight": task.weight,
        "flops": task.info.flops,
        "tunable": task.tunable,
        "untuned_secs": known.untuned_secs(task),
        "best_secs": best.best_of if best else None,
        "best_run_id": best.run_id if best else None,
        "kept_untuned": not known.traces(task),
    }
