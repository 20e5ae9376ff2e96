"""Guides: cost models in the form in which the search asks them.

The models over AST graphs are ours, as are the baselines over features of the module; `xgb` and `random`
are MetaSchedule's own, for comparison.
"""

from __future__ import annotations

import os
from collections.abc import Sequence
from typing import Any, Protocol

import numpy as np

from tuneassist.cost_model.base import CostModel
from tuneassist.cost_model.graph import extract_batch
from tuneassist.cost_model.registry import MODULE_KINDS, create_cost_model, module_rows
from tuneassist.tuning.phases import PhaseClock
from tuneassist.tvm_api import Schedule, Target, derived_object, ms


class Guide(Protocol):
    """Scores the schedules of one task, and learns from its trials."""

    @property
    def informed(self) -> bool:
        """Whether its scores are better than chance: whether to search under it."""
        ...

    @property
    def transferred(self) -> bool:
        """Whether it stands on what was learned before this run; `learn_alone` ends that."""
        ...

    def learn_alone(self, *, budget_secs: float) -> None:
        """Give up what was learned before this run."""
        ...

    def for_search(self) -> Any:
        """MetaSchedule's cost model for evolutionary search."""
        ...

    def prior(self, schedules: Sequence[Schedule]) -> np.ndarray | None:
        """(n,) what is known before any trial and without loading a model, lower is faster; or None."""
        ...

    def predict(self, schedules: Sequence[Schedule]) -> tuple[list[float | None], list[float | None]]:
        """Score (higher is better) and predicted seconds of each; None where the guide has none."""
        ...

    def learn(
        self, schedules: Sequence[Schedule], secs: Sequence[float | None], *, budget_secs: float
    ) -> None:
        """Take in measured seconds (None: failed), and train for about that long."""
        ...


class ModelSource(Protocol):
    """Gives the cost model of a run."""

    @property
    def kind(self) -> str:
        """As the run names it: a kind, or the path of a checkpoint; known before the model is loaded."""
        ...

    @property
    def pretrained(self) -> bool:
        """Whether it knows something before the first trial."""
        ...

    def get(self) -> CostModel:
        """The model; waits until it is loaded."""
        ...


@derived_object
class _GraphSearchModel(ms.cost_model.PyCostModel):  # type: ignore[misc]
    """A graph guide as MetaSchedule calls it during evolution."""

    def __init__(self, guide: GraphGuide) -> None:
        super().__init__()
        self._guide = guide

    def load(self, path: str) -> None:
        raise NotImplementedError("Checkpoints are loaded by the engine.")

    def save(self, path: str) -> None:
        raise NotImplementedError("Checkpoints are saved by the engine.")

    def update(self, context: Any, candidates: list[Any], results: list[Any]) -> None:
        """Nothing: the guide learns from the run's trials itself."""

    def predict(self, context: Any, candidates: list[Any]) -> np.ndarray:
        return self._guide.fitness([candidate.sch for candidate in candidates])


class GraphGuide:
    """One of our models, over AST graphs or, for the baselines, over features of the module.

    Args:
        loader: Gives the cost model, which the tasks of a run share; it may still be loading.
        workload_hash: Names the task to the model.
        target: What the task is tuned for.
        cores: Cores of the target.
        clock: Charged with prediction and training.
    """

    def __init__(
        self, loader: ModelSource, workload_hash: str, *, target: Target, cores: int, clock: PhaseClock
    ) -> None:
        self._loader = loader
        self._workload_hash = workload_hash
        self._target = target
        self._cores = cores
        self._clock = clock
        self._learned = 0
        self._own: CostModel | None = None

    @property
    def informed(self) -> bool:
        return self._learned > 0 or self._loader.pretrained

    @property
    def transferred(self) -> bool:
        """Whether it still stands on what was learned before this run."""
        return self._loader.pretrained and self._own is None

    def learn_alone(self, *, budget_secs: float) -> None:
        """Give up what was learned before this run: train a new model on this task's trials alone."""
        before = self._loader.get()
        graphs, secs = before.trials(self._workload_hash)
        self._own = create_cost_model("ensemble")
        with self._clock.phase("train"):
            self._own.update(self._workload_hash, graphs, secs, budget_secs=budget_secs)

    def for_search(self) -> Any:
        return _GraphSearchModel(self)

    def prior(self, schedules: Sequence[Schedule]) -> np.ndarray | None:
        if self._loader.kind in MODULE_KINDS:
            return None  # A baseline goes without our analytic estimate.
        if self._loader.pretrained:
            with self._clock.phase("predict"):
                return -self._model().predict(self._workload_hash, self._graphs(schedules)).score
        return np.array([graph.log_estimate for graph in self._graphs(schedules)])

    def fitness(self, schedules: Sequence[Schedule]) -> np.ndarray:
        """Predicted throughput relative to the fastest of these: the weights by which evolution samples."""
        with self._clock.phase("predict"):
            model = self._model()
            secs = model.predict(self._workload_hash, self._seen(model, schedules)).secs
        return np.asarray(np.min(secs) / secs, dtype=np.float64)

    def predict(self, schedules: Sequence[Schedule]) -> tuple[list[float | None], list[float | None]]:
        if not schedules:
            return [], []
        with self._clock.phase("predict"):
            model = self._model()
            if model.kind in MODULE_KINDS and not self.informed:
                return [None] * len(schedules), [None] * len(schedules)
            prediction = model.predict(self._workload_hash, self._seen(model, schedules))
        return [float(value) for value in prediction.score], [float(value) for value in prediction.secs]

    def learn(
        self, schedules: Sequence[Schedule], secs: Sequence[float | None], *, budget_secs: float
    ) -> None:
        if not schedules:
            return
        with self._clock.phase("train"):
            values = np.array([np.nan if value is None else value for value in secs])
            model = self._model()
            model.update(self._workload_hash, self._seen(model, schedules), values, budget_secs=budget_secs)
        self._learned += int(np.isfinite(values).sum())

    def _model(self) -> CostModel:
        return self._own or self._loader.get()

    def _seen(self, model: CostModel, schedules: Sequence[Schedule]) -> list[Any]:
        """What the model sees of each schedule."""
        if model.kind not in MODULE_KINDS:
            return self._graphs(schedules)
        mods = [schedule.mod for schedule in schedules]
        return list(module_rows(model.kind, mods, self._target, threads=len(os.sched_getaffinity(0))))

    def _graphs(self, schedules: Sequence[Schedule]) -> list[Any]:
        return list(extract_batch([schedule.mod for schedule in schedules], self._cores))


class StockGuide:
    """One of MetaSchedule's own cost models.

    Args:
        kind: `xgb` or `random`.
        context: A `TuneContext` of the task, which MetaSchedule's models extract features with.
        clock: Charged with prediction and training.
    """

    def __init__(self, kind: str, context: Any, *, clock: PhaseClock) -> None:
        self._kind = kind
        self._context = context
        self._clock = clock
        self._model = ms.cost_model.CostModel.create(kind)
        self._best_secs: float | None = None

    @property
    def informed(self) -> bool:
        return True

    @property
    def transferred(self) -> bool:
        return False

    def learn_alone(self, *, budget_secs: float) -> None:
        """Nothing: it knows nothing else."""

    def for_search(self) -> Any:
        return self._model

    def prior(self, schedules: Sequence[Schedule]) -> np.ndarray | None:
        return None

    def predict(self, schedules: Sequence[Schedule]) -> tuple[list[float | None], list[float | None]]:
        if not schedules:
            return [], []
        with self._clock.phase("predict"):
            scores = np.asarray(self._model.predict(self._context, [_candidate(s) for s in schedules]))
        if self._kind == "random" or self._best_secs is None:
            return [float(score) for score in scores], [None] * len(scores)
        # XGB's score is the throughput relative to the best of the task.
        secs = [self._best_secs / score if score > 0.01 else None for score in map(float, scores)]
        return [float(score) for score in scores], secs

    def learn(
        self, schedules: Sequence[Schedule], secs: Sequence[float | None], *, budget_secs: float
    ) -> None:
        ok = [(s, value) for s, value in zip(schedules, secs, strict=True) if value is not None]
        if not ok or self._kind == "random":
            return
        best = min(value for _, value in ok)
        self._best_secs = min(best, self._best_secs or best)
        results = [ms.runner.RunnerResult([value], None) for _, value in ok]
        with self._clock.phase("train"):
            self._model.update(self._context, [_candidate(s) for s, _ in ok], results)


def _candidate(schedule: Schedule) -> Any:
    arguments = ms.arg_info.ArgInfo.from_entry_func(schedule.mod, remove_preproc=True)
    return ms.search_strategy.MeasureCandidate(schedule, arguments)
