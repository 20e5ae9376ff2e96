"""What tuning asks of a cost model. Nothing here knows TVM or torch."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any, Protocol

import numpy as np
import numpy.typing as npt

from tuneassist.cost_model.graph import AstGraph
from tuneassist.cost_model.replay import Examples

Array = npt.NDArray[np.float64]


@dataclass(frozen=True, slots=True)
class Prediction:
    """What a model says of n candidates of one workload.

    Attributes:
        score: (n,) higher is better; comparable within one call.
        secs: (n,) predicted seconds.
    """

    score: Array
    secs: Array


class CostModel(Protocol):
    """Predicts candidates of any workload and learns from trials.

    A model is used by one thread at a time. It is useful before its first update: then an analytic
    estimate ranks (the baselines of `MODULE_KINDS` have none). Workloads are told apart by their hash
    alone. `graphs` are `AstGraph`s, or, for those baselines, what `module_rows` extracts.
    """

    @property
    def kind(self) -> str:
        """One of the kinds of `cost_model/registry.py`."""
        ...

    def predict(self, workload_hash: str, graphs: Sequence[AstGraph]) -> Prediction:
        """Predict candidates of one workload."""
        ...

    def update(
        self, workload_hash: str, graphs: Sequence[AstGraph], secs: npt.ArrayLike, *, budget_secs: float
    ) -> None:
        """Take in trials of one workload, and train on all that was ever taken in.

        Args:
            workload_hash: Names the workload.
            graphs: n of them.
            secs: (n,) measured seconds; nan for a failed trial, which is learned as slower than all others.
            budget_secs: About how long training may take.
        """
        ...

    def trials(self, workload_hash: str) -> tuple[list[AstGraph], Array]:
        """What was taken in of a workload: n graphs and (n,) seconds, nan where failed."""
        ...

    def save(self, path: str | Path) -> None:
        """Write the weights, and nothing of the trials."""
        ...

    def load(self, path: str | Path) -> None:
        """Take over weights that `save` wrote.

        Raises:
            UsageError: The file is no checkpoint, is damaged, or holds another architecture.
        """
        ...


class Ranker(Protocol):
    """The trainable part of a cost model: it corrects the analytic estimate."""

    @property
    def kind(self) -> str:
        """Names it in checkpoints."""
        ...

    @property
    def architecture(self) -> dict[str, int | float | str]:
        """What must be equal for weights to fit."""
        ...

    def inputs(self, graphs: Sequence[AstGraph]) -> Any:
        """What `correction` works on: the same for all rankers of one architecture, which can share it."""
        ...

    def correction(self, inputs: Any) -> Array:
        """Return (n,) what to add to the log of the analytic estimate; the mean over a workload is free."""
        ...

    def fit(self, examples: Examples, *, budget_secs: float) -> None:
        """Train on these examples, from where it stands."""
        ...

    def state(self) -> dict[str, npt.NDArray[np.generic]]:
        """The weights as plain arrays."""
        ...

    def restore(self, state: dict[str, npt.NDArray[np.generic]]) -> None:
        """Take over what `state` gave; KeyError or ValueError if it does not fit."""
        ...
