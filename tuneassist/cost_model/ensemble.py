"""The mean of several rankers: `ensemble`."""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np
import numpy.typing as npt

from tuneassist.cost_model.base import Ranker
from tuneassist.cost_model.graph import AstGraph
from tuneassist.cost_model.replay import Examples


class EnsembleRanker:
    """Averages the log time of its members; each trains on its share of the budget."""

    kind = "ensemble"

    def __init__(self, members: Sequence[Ranker]) -> None:
        self._members = tuple(members)

    @property
    def architecture(self) -> dict[str, int | float | str]:
        """What must be equal for weights to fit."""
        parts: dict[str, int | float | str] = {"kind": self.kind}
        for number, member in enumerate(self._members):
            parts |= {f"{number}.{name}": value for name, value in member.architecture.items()}
        return parts

    def relative(self, graphs: Sequence[AstGraph]) -> npt.NDArray[np.float64]:
        """Return (n,) natural log of seconds, up to a constant of the workload."""
        return np.asarray(np.mean([member.relative(graphs) for member in self._members], axis=0))

    def fit(self, examples: Examples, *, budget_secs: float) -> None:
        """Train each member on all examples."""
        for member in self._members:
            member.fit(examples, budget_secs=budget_secs / len(self._members))

    def state(self) -> dict[str, npt.NDArray[np.generic]]:
        """The members' weights."""
        return {
            f"{number}.{name}": value
            for number, member in enumerate(self._members)
            for name, value in member.state().items()
        }

    def restore(self, state: dict[str, npt.NDArray[np.generic]]) -> None:
        """Take over what `state` gave; KeyError or ValueError if it does not fit."""
        for number, member in enumerate(self._members):
            prefix = f"{number}."
            member.restore({k.removeprefix(prefix): v for k, v in state.items() if k.startswith(prefix)})
