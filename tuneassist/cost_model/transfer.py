"""A ranker that was trained on many workloads, and what it learns on top of that within a run."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace
from typing import Any

import numpy as np
import numpy.typing as npt

from tuneassist.cost_model.base import Array, Ranker
from tuneassist.cost_model.replay import Examples


class MeanRanker:
    """The mean of what several rankers say, each trained on the same examples.

    Args:
        kind: Names it.
        parts: At least one.
    """

    def __init__(self, kind: str, parts: Sequence[Ranker]) -> None:
        self.kind = kind
        self.parts = tuple(parts)

    @property
    def architecture(self) -> dict[str, int | float | str]:
        """What must be equal for weights to fit."""
        inner = {
            f"{number}.{name}": value
            for number, part in enumerate(self.parts)
            for name, value in part.architecture.items()
        }
        return {"kind": self.kind, **inner}

    def inputs(self, graphs: Sequence[Any]) -> list[Any]:
        """Those of each part."""
        return [part.inputs(graphs) for part in self.parts]

    def correction(self, inputs: Sequence[Any]) -> Array:
        """Return (n,) what to add to the log of the analytic estimate."""
        parts = zip(self.parts, inputs, strict=True)
        return np.asarray(np.mean([part.correction(own) for part, own in parts], axis=0))

    def fit(self, examples: Examples, *, budget_secs: float) -> None:
        """Train each part for an equal share of the time."""
        for part in self.parts:
            part.fit(examples, budget_secs=budget_secs / len(self.parts))

    def state(self) -> dict[str, npt.NDArray[np.generic]]:
        """The parts' weights."""
        return {
            f"{number}.{name}": value
            for number, part in enumerate(self.parts)
            for name, value in part.state().items()
        }

    def restore(self, state: dict[str, npt.NDArray[np.generic]]) -> None:
        """Take over what `state` gave; KeyError or ValueError if it does not fit."""
        for number, part in enumerate(self.parts):
            prefix = f"{number}."
            part.restore({k.removeprefix(prefix): v for k, v in state.items() if k.startswith(prefix)})


class TransferredRanker:
    """A pretrained ranker, kept as it is, and another that learns what it gets wrong here.

    Args:
        base: Trained on other workloads.
        residual: Learns from the trials of a run; it should say nothing before.
    """

    def __init__(self, base: Ranker, residual: Ranker) -> None:
        self.base = base
        self.residual = residual
        self._said: dict[int, tuple[Any, float]] = {}
        """What the base says of trials: it does not change, and each fit asks again."""

    @property
    def kind(self) -> str:
        """That of the base."""
        return self.base.kind

    @property
    def architecture(self) -> dict[str, int | float | str]:
        """That of the base: what is learned in a run is not kept."""
        return {**self.base.architecture, "transferred": 1}

    def inputs(self, graphs: Sequence[Any]) -> tuple[Any, Any]:
        """The base's and the residual's."""
        return self.base.inputs(graphs), self.residual.inputs(graphs)

    def correction(self, inputs: tuple[Any, Any]) -> Array:
        """Return (n,) what to add to the log of the analytic estimate."""
        of_base, of_residual = inputs
        return self.base.correction(of_base) + self.residual.correction(of_residual)

    def fit(self, examples: Examples, *, budget_secs: float) -> None:
        """Train the residual on what the base leaves."""
        new = [graph for graph in examples.graphs if id(graph) not in self._said]
        for graph, said in zip(new, self.base.correction(self.base.inputs(new)), strict=True):
            self._said[id(graph)] = (graph, float(said))
        known = np.array([self._said[id(graph)][1] for graph in examples.graphs])
        self.residual.fit(replace(examples, estimate=examples.estimate + known), budget_secs=budget_secs)

    def state(self) -> dict[str, npt.NDArray[np.generic]]:
        """The base's weights."""
        return self.base.state()

    def restore(self, state: dict[str, npt.NDArray[np.generic]]) -> None:
        """Take over what `state` gave; KeyError or ValueError if it does not fit."""
        self.base.restore(state)
        self._said.clear()
