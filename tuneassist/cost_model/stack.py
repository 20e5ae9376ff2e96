"""Rankers in several copies, each kept from a part of the trials, weighed by what they can predict of it.

With few trials a flexible ranker fits noise and ranks worse than the estimate that it corrects. What a
copy says of the trials that it was kept from tells how far to trust it (stacked generalisation, Wolpert
1992; non-negative weights after Breiman 1996): the weights shrink a correction that does not hold there.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any

import numpy as np
import numpy.typing as npt
from scipy.optimize import nnls

from tuneassist.cost_model.base import Array, Ranker
from tuneassist.cost_model.graph import AstGraph
from tuneassist.cost_model.replay import Examples

_CAUTION = 8.0
"""Trials' worth of evidence for the weights held before: none, at first."""
_CAUTION_RESTORED = 32.0
"""The same for restored weights, which many trials stand behind."""


class StackedRanker:
    """Corrects by the weighted sum of its groups; a group's correction is the mean of its copies.

    Args:
        kind: Names it.
        groups: Per group, what makes copy number i.
        copies: Copies in each group; copy i never sees every `copies`-th trial of a workload from i on.
    """

    def __init__(self, kind: str, groups: Sequence[Callable[[int], Ranker]], *, copies: int) -> None:
        self.kind = kind
        self.groups = tuple(tuple(make(i) for i in range(copies)) for make in groups)
        self.weights: Array = np.zeros(len(groups))
        self._trusted: Array = np.zeros(len(groups))
        self._caution = _CAUTION
        self._copies = copies

    @property
    def architecture(self) -> dict[str, int | float | str]:
        """What must be equal for weights to fit."""
        parts: dict[str, int | float | str] = {"kind": self.kind, "copies": self._copies}
        for number, group in enumerate(self.groups):
            parts |= {f"{number}.{name}": value for name, value in group[0].architecture.items()}
        return parts

    def inputs(self, graphs: Sequence[AstGraph]) -> tuple[int, list[Any]]:
        """How many graphs, and what the copies of each group work on: None where the group has no weight."""
        return len(graphs), [
            group[0].inputs(graphs) if weight > 0 else None
            for weight, group in zip(self.weights, self.groups, strict=True)
        ]

    def correction(self, inputs: tuple[int, list[Any]]) -> Array:
        """Return (n,) what to add to the log of the analytic estimate."""
        count, of_groups = inputs
        total = np.zeros(count)
        for weight, group, shared in zip(self.weights, self.groups, of_groups, strict=True):
            if weight > 0 and count:
                total += weight * np.mean([copy.correction(shared) for copy in group], axis=0)
        return total

    def fit(self, examples: Examples, *, budget_secs: float) -> None:
        """Train each copy on what it may see, and weigh the groups by what they predict of the rest."""
        fold = examples.ordinal % self._copies
        share = budget_secs / (len(self.groups) * self._copies)
        unseen = np.zeros((len(examples.graphs), len(self.groups)))
        for number, group in enumerate(self.groups):
            for i, copy in enumerate(group):
                copy.fit(examples.where(fold != i), budget_secs=share)
                kept = np.flatnonzero(fold == i)
                unseen[kept, number] = copy.correction(copy.inputs([examples.graphs[j] for j in kept]))
        self._weigh(examples, unseen)

    def state(self) -> dict[str, npt.NDArray[np.generic]]:
        """The copies' weights and the groups'."""
        inner = {
            f"{number}.{i}.{name}": value
            for number, group in enumerate(self.groups)
            for i, copy in enumerate(group)
            for name, value in copy.state().items()
        }
        return {**inner, "weights": self.weights.copy()}

    def restore(self, state: dict[str, npt.NDArray[np.generic]]) -> None:
        """Take over what `state` gave; KeyError or ValueError if it does not fit."""
        weights = np.asarray(state["weights"], dtype=np.float64)
        if weights.shape != self.weights.shape:
            raise ValueError(f"there are {len(weights)} groups, not {len(self.weights)}")
        for number, group in enumerate(self.groups):
            for i, copy in enumerate(group):
                prefix = f"{number}.{i}."
                copy.restore({k.removeprefix(prefix): v for k, v in state.items() if k.startswith(prefix)})
        self.weights, self._trusted = weights, weights.copy()
        self._caution = _CAUTION_RESTORED

    def _weigh(self, examples: Examples, unseen: Array) -> None:
        """Non-negative least squares of what the estimate leaves, drawn towards the weights held before."""
        known = ~examples.failed
        if not known.any():
            return
        left = examples.centred(examples.target - examples.estimate)[known]
        columns = np.stack([examples.centred(column)[known] for column in unseen.T], axis=1)
        root = np.sqrt(examples.weight[known] / examples.weight[known].mean())
        size = np.sqrt(np.mean(columns**2, axis=0) * self._caution + 1e-9)
        matrix = np.concatenate([columns * root[:, None], np.diag(size)])
        weights = nnls(matrix, np.concatenate([left * root, size * self._trusted]))[0]
        self.weights = weights / max(1.0, float(weights.sum()))
