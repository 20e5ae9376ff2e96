"""The models of a run: what they give it to tune, and how they do in the end."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass, replace
from fnmatch import fnmatch
from pathlib import Path
from typing import Any

from tuneassist.errors import UsageError
from tuneassist.models.extract import ExtractedModel, ExtractedTask, extract
from tuneassist.records import CONTENDERS, WorkloadInfo
from tuneassist.tuning.end_to_end import Comparison, compare_model
from tuneassist.tuning.journal import Journal
from tuneassist.tuning.known_kernels import KnownKernels, model_result
from tuneassist.tvm_api import IRModule, module_from_text
from tuneassist.workloads.build import build_prim_func, describe_module, workload_hash
from tuneassist.workloads.models import MODEL


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
        self, models: Sequence[ExtractedModel], known: KnownKernels, journal: Journal, *, target_json: str,
        cores: tuple[int, ...], against: tuple[str, ...],
    ) -> None:  # fmt: skip
        self._models = models
        self._contenders = (CONTENDERS[0], *against)
        self._known = known
        self._journal = journal
        self._target_json = target_json
        self._cores = cores
        self._compared: dict[str, Comparison] = {}

    @property
    def any(self) -> bool:
        """Whether the run has a model."""
        return bool(self._models)

    def tuned_before(self, works: Sequence[Workload], trials: int) -> set[str]:
        """Hashes of the models' tasks that an earlier run had at least as many trials for as this one has."""
        extracted = {task.hash for model in self._models for task in model.tasks}
        share = trials / max(len(works), 1)
        return {
            work.hash for work in works if work.hash in extracted and self._known.share(work.hash) >= share
        }

    def compare(self, stop: Callable[[], bool]) -> None:
        """Measure each model end to end, and say how it does."""
        for model in self._models:
            if stop():
                return
            self._journal.phase("compare")
            self._journal.message("info", f"Comparing {model.info.name} end to end.")
            done = compare_model(
                model, self._known.all_traces(model), self._target_json, self._cores, model.lowered.parent,
                contenders=self._contenders, stop=stop,
            )  # fmt: skip
            self._compared[model.info.spec] = done
            self._say(model, done)

    def results(self) -> list[dict[str, Any]]:
        """One object a model, for the result of the run."""
        return [
            model_result(model, self._known, self._compared.get(model.info.spec)) for model in self._models
        ]

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


def _short(task: ExtractedTask) -> str:
    return task.info.name.rpartition("/")[2]


def _fits(task: ExtractedTask, pattern: str) -> bool:
    short = _short(task).lower()
    index, _, plain = short.partition(".")
    wanted = pattern.strip().lower()
    return wanted == index or fnmatch(short, wanted) or fnmatch(plain, wanted)
