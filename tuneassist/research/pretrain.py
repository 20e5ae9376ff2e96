"""Trains a checkpoint on a data set: with early stopping, and so that it can be interrupted and resumed."""

from __future__ import annotations

import copy
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import numpy as np
import torch

from tuneassist.cost_model import checkpoint
from tuneassist.cost_model.base import Ranker
from tuneassist.cost_model.bases import transferable
from tuneassist.cost_model.learned import LearnedCostModel
from tuneassist.cost_model.metrics import evaluate
from tuneassist.cost_model.networks import AstNetwork
from tuneassist.cost_model.neural import NetworkRanker
from tuneassist.cost_model.replay import Examples
from tuneassist.cost_model.training import TrainingSettings, held_out_loss
from tuneassist.cost_model.transfer import MeanRanker
from tuneassist.errors import UsageError
from tuneassist.research.evaluate import NO_LIMIT_SECS, common_level, examples
from tuneassist.research.samples import DataSet, WorkloadSamples

PATIENCE = 5
"""Epochs without a better held-out loss after which training stops."""
_HELD_OUT_EVERY = 10

Told = Callable[[int, float, float], None]
"""Epoch, training loss, held-out loss."""


@dataclass(frozen=True, slots=True)
class Trained:
    """A model that was trained, and how good it is on what it was kept from."""

    model: LearnedCostModel
    metrics: dict[str, float | None]
    """Means over workloads, on every tenth trial of each, which was not trained on."""
    trials: int


class _Resumable:
    """Follows a training: keeps the best weights, and what it takes to go on after an interruption."""

    def __init__(
        self, kept: Examples, settings: TrainingSettings, path: Path, identity: str, told: Told
    ) -> None:
        self._kept = kept
        self._settings = settings
        self._path = path
        self._identity = identity
        self._told = told
        self._best_loss = float("inf")
        self._best: dict[str, Any] = {}
        self._since_better = 0

    def begin(self, network: AstNetwork, optimizer: torch.optim.Optimizer) -> int:
        self._network, self._optimizer = network, optimizer
        saved = self._read()
        if saved is None:
            return 0
        network.load_state_dict(saved["network"])
        optimizer.load_state_dict(saved["optimizer"])
        self._best, self._best_loss = saved["best"], float(saved["best_loss"])
        self._since_better = int(saved["since_better"])
        return int(saved["epoch"])

    def epoch(self, number: int, loss: float) -> bool:
        kept = held_out_loss(self._network, self._kept, self._settings)
        if kept < self._best_loss:
            self._best = copy.deepcopy(self._network.state_dict())
            self._best_loss, self._since_better = kept, 0
        else:
            self._since_better += 1
        self._told(number, loss, kept)
        self._write(number)
        return self._since_better >= PATIENCE

    def finish(self) -> None:
        """Take the best weights; nothing is left to resume."""
        if self._best:
            self._network.load_state_dict(self._best)
        self._path.unlink(missing_ok=True)

    def _write(self, epoch: int) -> None:
        partial = self._path.with_name(self._path.name + ".new")
        torch.save(
            {
                "identity": self._identity, "epoch": epoch, "network": self._network.state_dict(),
                "optimizer": self._optimizer.state_dict(), "best": self._best,
                "best_loss": self._best_loss, "since_better": self._since_better,
            },
            partial,
        )  # fmt: skip
        partial.replace(self._path)

    def _read(self) -> dict[str, Any] | None:
        """What an interrupted training of the same model on the same data left."""
        if not self._path.is_file():
            return None
        try:
            saved: dict[str, Any] = torch.load(self._path, weights_only=True)
        except Exception:  # damaged in whatever way: begin anew
            return None
        return saved if saved.get("identity") == self._identity else None


def train(
    data: DataSet, kind: str, *, seed: int, epochs: int, output: Path, threads: int = 1,
    told: Told = lambda epoch, loss, kept: None,
) -> Trained:  # fmt: skip
    """Train a model of a kind on all workloads of a data set.

    After an interruption the same call goes on where it was; the result is the same.

    Args:
        data: Samples.
        kind: One of `bases.BASES`.
        seed: Decides everything.
        epochs: At most.
        output: Where the checkpoint will be; what is needed to resume is kept beside it.
        threads: Threads that torch may use.
        told: Told of each epoch.

    Raises:
        UsageError: There is no such kind.
    """
    ranker = transferable(kind, seed=seed, threads=threads, epochs=epochs)
    kept, known = _held_out(data.workloads)
    torch.set_num_threads(threads)
    identity = f"{data.sha256} {sorted(ranker.architecture.items())} {seed} {epochs}"
    for number, network in enumerate(_networks(ranker.base)):
        path = output.with_name(f"{output.name}.{number}.resume")
        watch = _Resumable(examples(kept), network.training, path, identity, told)
        if torch.cuda.is_available():
            network.network.to("cuda")
        network.watch = watch
    ranker.base.fit(examples(known), budget_secs=NO_LIMIT_SECS)
    for network in _networks(ranker.base):
        network.network.to("cpu")
        network.watch = None
    model = LearnedCostModel(ranker, level=common_level(ranker.base, known))
    return Trained(model, _metrics(model, kept), data.samples)


def describe(trained: Trained, data: DataSet, path: Path, *, seed: int, trained_on: str) -> dict[str, Any]:
    """What is known of a checkpoint, for the JSON file beside it."""
    import tuneassist

    header = checkpoint.header(path)
    return {
        "kind": trained.model.kind, "sha256": header["sha256"], "feature_version": header["feature_version"],
        "trained_on": trained_on, "data_sha256": data.sha256, "trials": trained.trials,
        "workloads": [workload.name for workload in data.workloads], "seed": seed,
        "versions": {"tuneassist": tuneassist.__version__, "torch": torch.__version__.partition("+")[0]},
        "held_out_trials": trained.metrics,
    }  # fmt: skip


def _networks(ranker: Ranker) -> Iterator[NetworkRanker]:
    parts = ranker.parts if isinstance(ranker, MeanRanker) else (ranker,)
    for part in parts:
        if isinstance(part, NetworkRanker):
            yield part


def _held_out(
    workloads: Sequence[WorkloadSamples],
) -> tuple[list[WorkloadSamples], list[WorkloadSamples]]:
    """Every tenth trial of each workload, and the others."""
    kept, known = [], []
    for workload in workloads:
        out = np.arange(len(workload.secs)) % _HELD_OUT_EVERY == _HELD_OUT_EVERY - 1
        kept.append(workload.take(np.flatnonzero(out)).measured())
        known.append(workload.take(np.flatnonzero(~out)))
    return [workload for workload in kept if len(workload.secs) > 1], known


def _metrics(model: LearnedCostModel, kept: Sequence[WorkloadSamples]) -> dict[str, float | None]:
    rows = [evaluate(model.predict(w.key, w.seen).secs, w.secs) for w in kept]
    if not rows:
        raise UsageError("Too few trials to hold any out.", remedy="Measure more.")
    found = {name: [v for row in rows if (v := row[name]) is not None] for name in rows[0]}
    return {name: float(np.mean(values)) if values else None for name, values in found.items()}
