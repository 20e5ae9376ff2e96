"""The models of a run: what they give it to tune, and how they do in the end."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass, replace
from fnmatch import fnmatch
from pathlib import Path
from typing import Any

from tuneassist.errors import UsageError
from tuneassist.models.extract import ExtractedModel, ExtractedTask, extract
from tuneassist.records import Trial, WorkloadInfo
from tuneassist.storage.known import trials_allotted, untuned_secs
from tuneassist.storage.sqlite import SqliteStore
from tuneassist.tuning.end_to_end import CONTENDERS, Comparison, compare_model
from tuneassist.tuning.journal import Journal
from tuneassist.tvm_api import IRModule, module_from_text
from tuneassist.workloads.build import build_prim_func, describe_module, workload_hash
from tuneassist.workloads.models import MODEL

_TRIED = 3
"""Trials of a kernel that are tried where the best no longer applies."""


@dataclass(frozen=True, slots=True)
class Workload:
    """Something to tune."""

    info: WorkloadInfo
    module: IRModule
    hash: str
    weight: int


def load_workloads(
    infos: Sequence[WorkloadInfo], chosen: Sequence[str], folder: Path, say: Callable[[str], None]
) -> tuple[list[ExtractedModel], list[Workload]]:
    """Build the operators and load the models; equal workloads are one, with their weights added up.

    Args:
        infos: What was asked for.
        chosen: Patterns of the tasks of models to tune; none means all.
        folder: Takes the lowered models.
        say: Told in words what happens.

    Raises:
        UsageError: A workload can't be used, or a pattern fits no task.
    """
    models: list[ExtractedModel] = []
    found: list[Workload] = []
    for info in infos:
        if info.op == MODEL:
            say(f"Loading {info.name}.")
            place = folder / f"model-{len(models)}"
            place.mkdir(parents=True, exist_ok=True)
            model = extract(info, place)
            models.append(model)
            # Those that cost most come first, so that a small budget is spent on them.
            tasks = sorted(choose_tasks(model, chosen), key=lambda task: -task.weight * task.info.flops)
            found += [
                Workload(task.info, module_from_text(task.module), task.hash, task.weight) for task in tasks
            ]
            continue
        if info.op == "script":
            say(f"Loading {info.name}, which runs the file.")
        module = build_prim_func(info)
        found.append(Workload(describe_module(info, module), module, workload_hash(module), 1))
    distinct: dict[str, Workload] = {}
    for work in found:
        known = distinct.get(work.hash)
        distinct[work.hash] = work if known is None else replace(known, weight=known.weight + work.weight)
    return models, list(distinct.values())


def choose_tasks(model: ExtractedModel, patterns: Sequence[str]) -> list[ExtractedTask]:
    """The tunable tasks of a model that a pattern names: `3`, `3.conv2d_add`, `conv2d*`.

    Raises:
        UsageError: A pattern fits none.
    """
    tunable = [task for task in model.tasks if task.tunable]
    if not patterns:
        return tunable
    for pattern in patterns:
        if not any(_fits(task, pattern) for task in tunable):
            names = ", ".join(_short(task) for task in tunable)
            raise UsageError(f"No task of {model.info.name} fits {pattern!r}.", remedy=f"Its tasks: {names}.")
    return [task for task in tunable if any(_fits(task, pattern) for pattern in patterns)]


class ModelRun:
    """The models of one run, from what the store knows to the final comparison."""

    def __init__(
        self, store: SqliteStore, journal: Journal, models: Sequence[ExtractedModel], *, target_id: int,
        machine_id: int, target_json: str, cores: tuple[int, ...],
    ) -> None:  # fmt: skip
        self._store = store
        self._journal = journal
        self._models = models
        self._place = {"target_id": target_id, "machine_id": machine_id}
        self._target_json = target_json
        self._cores = cores
        self._compared: dict[str, Comparison] = {}

    @property
    def any(self) -> bool:
        """Whether the run has a model."""
        return bool(self._models)

    def known_already(self, works: Sequence[Workload], trials: int) -> set[str]:
        """Hashes of the models' tasks that an earlier run had at least as many trials for as this one has."""
        extracted = {task.hash for model in self._models for task in model.tasks}
        share = trials / max(len(works), 1)
        conn = self._store.connection
        return {
            work.hash
            for work in works
            if work.hash in extracted and trials_allotted(conn, work.hash, **self._place) >= share
        }

    def compare(self, stop: Callable[[], bool]) -> None:
        """Measure each model end to end, and say how it does."""
        for model in self._models:
            if stop():
                return
            self._journal.phase("compare")
            traces = {task.hash: self.traces(task) for task in model.tasks}
            done = compare_model(
                model, traces, self._target_json, self._cores, model.lowered.parent, stop=stop
            )
            self._compared[model.info.spec] = done
            self._say(model, done)

    def traces(self, task: ExtractedTask) -> list[str]:
        """What to compile a kernel with, best first; none where TVM's default schedule is as fast.

        That is so for the smallest kernels: MetaSchedule's are parallel, and waking a thread takes longer.
        """
        best = self._best(task)
        untuned = untuned_secs(self._store.connection, task.hash, **self._place)
        if best and untuned is not None and untuned <= (best[0].best_of or 0.0):
            return []
        return [trial.trace_json for trial in best]

    def results(self) -> list[dict[str, Any]]:
        """One object a model, for the result of the run."""
        return [self._result(model, self._compared.get(model.info.spec)) for model in self._models]

    def _best(self, task: ExtractedTask) -> list[Trial]:
        return self._store.top_trials(task.hash, **self._place, limit=_TRIED)

    def _say(self, model: ExtractedModel, done: Comparison) -> None:
        times = [f"{kind} {secs * 1e3:.4g} ms" for kind, secs in done.secs.items() if secs is not None]
        self._journal.message("info", f"{model.info.name} end to end: {', '.join(times) or 'nothing runs'}.")
        for kind, error in done.errors.items():
            self._journal.message("warning" if kind == "tuned" else "info", f"{kind}: {error}")
        for note in done.notes:
            self._journal.message("warning", note)
        if done.correct is False:
            self._journal.message(
                "error",
                f"{model.info.name}: the tuned module's output is wrong (compared with {done.reference}).",
            )

    def _result(self, model: ExtractedModel, done: Comparison | None) -> dict[str, Any]:
        return {
            "name": model.info.name,
            "workload": model.info.spec,
            "flops": model.flops,
            **{f"{kind}_secs": done.secs[kind] if done else None for kind in CONTENDERS},
            "run_secs": done.run_secs if done else {},
            "errors": done.errors if done else {},
            "correct": done.correct if done else None,
            "max_relative_error": done.max_relative_error if done else None,
            "tolerance": done.tolerance if done else None,
            "reference": done.reference if done else "",
            "tasks": [self._task(task) for task in model.tasks],
        }

    def _task(self, task: ExtractedTask) -> dict[str, Any]:
        best = next(iter(self._best(task)), None)
        return {
            "name": task.info.name,
            "hash": task.hash,
            "weight": task.weight,
            "flops": task.info.flops,
            "tunable": task.tunable,
            "untuned_secs": untuned_secs(self._store.connection, task.hash, **self._place),
            "best_secs": best.best_of if best else None,
            "best_run_id": best.run_id if best else None,
        }


def _short(task: ExtractedTask) -> str:
    return task.info.name.rpartition("/")[2]


def _fits(task: ExtractedTask, pattern: str) -> bool:
    short = _short(task).lower()
    index, _, plain = short.partition(".")
    wanted = pattern.strip().lower()
    return wanted == index or fnmatch(short, wanted) or fnmatch(plain, wanted)
