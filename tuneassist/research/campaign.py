"""Many judgements side by side: models x folds x seeds, in processes."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from concurrent.futures import ProcessPoolExecutor, as_completed
from dataclasses import dataclass
from functools import lru_cache
from multiprocessing import get_context
from pathlib import Path

from tuneassist.cost_model.bases import base_ranker
from tuneassist.cost_model.registry import MODULE_KINDS
from tuneassist.research.evaluate import Judged, Score, judge
from tuneassist.research.folds import folds
from tuneassist.research.rebuild import GRAPHS
from tuneassist.research.samples import DataSet, Progress, load_dataset
from tuneassist.research.variants import VARIANTS


@dataclass(frozen=True, slots=True)
class Plan:
    """What to judge on what."""

    data: str
    models: tuple[str, ...]
    """Kinds (`bases.BASES`), or names of `variants.VARIANTS`."""
    split: str
    held_out: tuple[str, ...]
    seeds: int
    shots: tuple[int, ...]
    epochs: int


@dataclass(frozen=True, slots=True)
class _Job:
    plan: Plan
    model: str
    fold: int
    seed: int


def rebuild_all(plan: Plan, *, processes: int, progress: Progress) -> DataSet:
    """Rebuild what the models of a plan see, once; later loads are from the cache."""
    kinds = {_what(model) for model in plan.models} - {GRAPHS}
    for kind in sorted(kinds):
        load_dataset(plan.data, what=kind, processes=processes, progress=progress)
    return load_dataset(plan.data, processes=processes, progress=progress)


def run(
    plan: Plan, *, processes: int, progress: Callable[[int, int], None] = lambda done, of: None
) -> Iterator[tuple[list[Score], list[Judged]]]:
    """Judge every model on every fold with every seed, in whatever order they end."""
    count = len(list(folds(load_dataset(plan.data).workloads, plan.split, seed=0, held_out=plan.held_out)))
    jobs = [
        _Job(plan, model, fold, seed)
        for seed in range(plan.seeds)
        for fold in range(count)
        for model in plan.models
    ]
    with ProcessPoolExecutor(processes, mp_context=get_context("spawn")) as pool:
        started = [pool.submit(_work, job) for job in jobs]
        for number, ended in enumerate(as_completed(started), start=1):
            yield ended.result()
            progress(number, len(jobs))


def _work(job: _Job) -> tuple[list[Score], list[Judged]]:
    plan = job.plan
    data = _loaded(plan.data, _what(job.model))
    fold = list(folds(data.workloads, plan.split, seed=job.seed, held_out=plan.held_out))[job.fold]
    judged: list[Judged] = []
    variant = VARIANTS.get(job.model)
    base = (
        base_ranker(job.model, seed=job.seed, epochs=plan.epochs)
        if variant is None
        else variant.make(job.seed, plan.epochs)
    )
    scores = judge(fold, job.model, base, seed=job.seed, shots=plan.shots, told=judged.append)
    return scores, judged if job.seed == 0 else []


def _what(model: str) -> str:
    return model if model in MODULE_KINDS else GRAPHS


@lru_cache(maxsize=2)
def _loaded(path: str, what: str) -> DataSet:
    return load_dataset(Path(path), what=what)
