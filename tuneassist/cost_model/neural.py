"""Rankers that are networks: `gcn` and `mlp`."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import asdict, dataclass

import numpy as np
import numpy.typing as npt
import torch

from tuneassist.cost_model.batch import GraphBatch, collate
from tuneassist.cost_model.features import COLUMNS
from tuneassist.cost_model.graph import EDGE_KINDS, AstGraph
from tuneassist.cost_model.networks import AstNetwork
from tuneassist.cost_model.replay import Examples
from tuneassist.cost_model.training import TrainingSettings, Watch, train

_CHUNK = 64
"""Graphs predicted at once: what fits the caches."""


@dataclass(frozen=True, slots=True)
class NetworkSettings:
    """The shape of a network."""

    width: int = 32
    layers: int = 3
    dropout: float = 0.2
    propagate: bool = True
    edge_kinds: tuple[str, ...] = EDGE_KINDS
    whole: bool = False
    gated: bool = False


PRESETS = {
    "gcn": NetworkSettings(),
    "mlp": NetworkSettings(propagate=False),
    "gnn": NetworkSettings(whole=True, gated=True),
}
"""By kind, in the size that learns within a run; pretraining takes wider ones."""


class NetworkRanker:
    """An AST network and how it is trained.

    Args:
        kind: One of `PRESETS`; it names the ranker where `network` is given.
        seed: Decides the first weights and the order of training.
        threads: Threads that torch may use (a setting of the whole process).
        network: The network's shape.
        training: How it is trained.
    """

    def __init__(
        self,
        kind: str,
        *,
        seed: int,
        threads: int = 1,
        network: NetworkSettings | None = None,
        training: TrainingSettings | None = None,
    ) -> None:
        torch.set_num_threads(threads)
        self.kind = kind
        self._settings = network or PRESETS[kind]
        self._training = training or TrainingSettings()
        self._seed = seed
        self._fits = 0
        self.watch: Watch | None = None
        """Follows trainings, if set."""
        self._scaled = False
        with torch.random.fork_rng(devices=[]):
            torch.manual_seed(seed)
            self.network = AstNetwork(**asdict(self._settings))
        self.network.eval()

    @property
    def training(self) -> TrainingSettings:
        """How it is trained."""
        return self._training

    @property
    def architecture(self) -> dict[str, int | float | str]:
        """What must be equal for weights to fit."""
        return {
            "kind": self.kind,
            "columns": len(COLUMNS),
            "width": self._settings.width,
            "layers": self._settings.layers,
        }

    def inputs(self, graphs: Sequence[AstGraph]) -> list[GraphBatch]:
        """Batches of graphs, in their order."""
        return [collate(graphs[start : start + _CHUNK]) for start in range(0, len(graphs), _CHUNK)]

    def correction(self, inputs: Sequence[GraphBatch]) -> npt.NDArray[np.float64]:
        """Return (n,) what to add to the log of the analytic estimate."""
        with torch.inference_mode():
            parts = [self.network(batch.to(self.network.device)).cpu().numpy() for batch in inputs]
        return np.concatenate([np.zeros(0), *parts])

    def fit(self, examples: Examples, *, budget_secs: float) -> None:
        """Train on from the weights as they are."""
        if not self._scaled and examples.graphs:
            features = torch.from_numpy(np.concatenate([g.features for g in examples.graphs]))
            self.network.standardise(features.to(self.network.device))
            self._scaled = True
        self._fits += 1
        train(
            self.network,
            examples,
            self._training,
            budget_secs=budget_secs,
            seed=self._seed + 7919 * self._fits,
            watch=self.watch,
        )
        if self.watch is not None:
            self.watch.finish()

    def state(self) -> dict[str, npt.NDArray[np.generic]]:
        """The weights as plain arrays."""
        return {
            name: value.detach().cpu().numpy().copy() for name, value in self.network.state_dict().items()
        }

    def restore(self, state: dict[str, npt.NDArray[np.generic]]) -> None:
        """Take over what `state` gave; KeyError or ValueError if it does not fit."""
        own = self.network.state_dict()
        if own.keys() != state.keys():
            raise KeyError(f"weights differ in name: {sorted(own.keys() ^ state.keys())}")
        for name, value in own.items():
            if tuple(value.shape) != tuple(state[name].shape):
                raise ValueError(f"{name} is {tuple(state[name].shape)}, not {tuple(value.shape)}")
        self.network.load_state_dict(
            {name: torch.from_numpy(np.array(value)) for name, value in state.items()}
        )
