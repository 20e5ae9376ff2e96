"""A cost model made of a ranker, all trials seen, and each workload's level."""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path

import numpy as np
import numpy.typing as npt

from tuneassist.cost_model import checkpoint
from tuneassist.cost_model.base import Array, Prediction, Ranker
from tuneassist.cost_model.estimate import CLOCK_HZ
from tuneassist.cost_model.graph import AstGraph
from tuneassist.cost_model.replay import Replay

_PRIOR_TRIALS = 0.5
"""The level of all workloads together counts as this many trials of one."""


class LearnedCostModel:
    """Ranks by its ranker; seconds are the ranker's log time plus the workload's level.

    Before any trial the level is that of the analytic estimate (cycles at `CLOCK_HZ`), then the mean
    over the workloads seen; a workload's own trials soon outweigh it.

    Args:
        ranker: The trainable part.
        level: That of workloads of which nothing was measured, where it is known.
    """

    def __init__(self, ranker: Ranker, *, level: float | None = None) -> None:
        self._ranker = ranker
        self._replay = Replay()
        self._levels: dict[str, float] = {}
        self._common = -float(np.log(CLOCK_HZ)) if level is None else level
        self._pretrained = level is not None

    @property
    def kind(self) -> str:
        """One of the kinds of `cost_model/registry.py`."""
        return self._ranker.kind

    @property
    def ranker(self) -> Ranker:
        """The trainable part."""
        return self._ranker

    def predict(self, workload_hash: str, graphs: Sequence[AstGraph]) -> Prediction:
        """Predict candidates of one workload."""
        relative = self._relative(graphs)
        log_secs = relative + self.level(workload_hash)
        return Prediction(score=-relative, secs=np.exp(np.clip(log_secs, -25.0, 12.0)))

    def update(
        self, workload_hash: str, graphs: Sequence[AstGraph], secs: npt.ArrayLike, *, budget_secs: float
    ) -> None:
        """Take in trials of one workload (nan: failed), and train on all that was ever taken in."""
        self._replay.add(workload_hash, graphs, secs)
        self._ranker.fit(self._replay.examples(), budget_secs=budget_secs)
        self._set_levels()

    def level(self, workload_hash: str) -> float:
        """What is added to the ranker's log time to give the natural log of seconds."""
        return self._levels.get(workload_hash, self._common)

    def trials(self, workload_hash: str) -> tuple[list[AstGraph], Array]:
        """What was taken in of a workload: n graphs and (n,) seconds, nan where failed."""
        return self._replay.trials(workload_hash)

    def save(self, path: str | Path) -> None:
        """Write the weights, and nothing of the trials."""
        state: dict[str, npt.NDArray[np.generic]] = {
            f"ranker.{k}": v for k, v in self._ranker.state().items()
        }
        state["level"] = np.array([self._common])
        checkpoint.write(path, architecture=self._ranker.architecture, state=state)

    def load(self, path: str | Path) -> None:
        """Take over weights that `save` wrote.

        Raises:
            UsageError: The file is no checkpoint, is damaged, or holds another architecture.
        """
        state = checkpoint.read(path, architecture=self._ranker.architecture)
        with checkpoint.fitting(path):
            level = float(np.asarray(state["level"], dtype=np.float64)[0])
            ranker = {k.removeprefix("ranker."): v for k, v in state.items() if k.startswith("ranker.")}
            self._ranker.restore(ranker)
        self._common = level
        self._pretrained = True
        self._set_levels()

    def _set_levels(self) -> None:
        residuals = {key: self._residuals(key) for key in self._replay.workloads}
        if not residuals:
            return
        if not self._pretrained:
            self._common = float(np.mean([np.mean(residual) for residual in residuals.values()]))
        for key, residual in residuals.items():
            total = residual.sum() + _PRIOR_TRIALS * self._common
            self._levels[key] = float(total / (len(residual) + _PRIOR_TRIALS))

    def _residuals(self, workload_hash: str) -> Array:
        graphs, secs = self._replay.measured(workload_hash)
        return np.asarray(np.log(secs) - self._relative(graphs))

    def _relative(self, graphs: Sequence[AstGraph]) -> Array:
        """(n,) natural log of seconds, up to a constant of the workload."""
        estimate = np.array([graph.log_estimate for graph in graphs], dtype=np.float64)
        return estimate + self._ranker.correction(self._ranker.inputs(graphs))
