"""Trains an AST network: regression of log time centred per workload, and pairwise ranking within it."""

from __future__ import annotations

import time
from dataclasses import dataclass
from typing import Protocol

import numpy as np
import numpy.typing as npt
import torch
from torch import Tensor
from torch.nn import functional

from tuneassist.cost_model.batch import collate
from tuneassist.cost_model.networks import AstNetwork
from tuneassist.cost_model.replay import Examples

Indices = npt.NDArray[np.int64]
_COMPANY = 32
"""Trials of a workload that stay together in a batch."""
NOISE = 0.04
"""Pairs closer than this in log time are not ranked: repeats of one kernel differ as much."""


@dataclass(frozen=True, slots=True)
class TrainingSettings:
    """How to train."""

    max_steps: int = 25
    """Steps at most, however much time is left: more of them overfit few trials."""
    epochs: int | None = None
    """Passes over all examples, instead of `max_steps`."""
    batch_size: int = 64
    learning_rate: float = 1e-3
    weight_decay: float = 0.1
    rank_weight: float = 1.0
    """Of the ranking loss beside the regression's."""
    sharpness: float = 2.0
    """The ranking loss is softplus of this times the difference in log time, the wrong way round."""
    clip: float = 1.0

    def steps(self, examples: int) -> int:
        """How many steps that is for so many examples."""
        return self.max_steps if self.epochs is None else self.epochs * -(-examples // self.batch_size)


class Watch(Protocol):
    """Follows a training from epoch to epoch."""

    def begin(self, network: AstNetwork, optimizer: torch.optim.Optimizer) -> int:
        """Told once, before the first step; returns how many epochs are done already (on resuming)."""
        ...

    def epoch(self, number: int, loss: float) -> bool:
        """Told after epoch `number` (1, 2, ...) and its mean loss; returns whether to stop."""
        ...

    def finish(self) -> None:
        """Told once, by the ranker, after the training."""
        ...


def train(
    network: AstNetwork,
    examples: Examples,
    settings: TrainingSettings,
    *,
    budget_secs: float,
    seed: int,
    watch: Watch | None = None,
) -> int:
    """Train in place for at most the time given, and return the steps taken.

    The learning rate falls to zero over the steps, or over the time where that is shorter. With enough
    time the result depends on the seed alone, whether it was interrupted and resumed or not.
    """
    count = len(examples.graphs)
    if count < 2 or budget_secs <= 0:
        return 0
    total = settings.steps(count)
    optimizer = torch.optim.AdamW(
        network.parameters(), lr=settings.learning_rate, weight_decay=settings.weight_decay
    )
    epoch = watch.begin(network, optimizer) if watch is not None else 0
    start, taken = time.perf_counter(), 0
    steps = epoch * -(-count // settings.batch_size)
    with torch.random.fork_rng(devices=[]):
        while steps < total:
            # Seeded by epoch, so that a resumed training goes on as it would have.
            torch.manual_seed(seed + 7919 * epoch)
            losses = []
            network.train()
            for chosen in batches(
                examples.workload, settings.batch_size, np.random.default_rng([seed, epoch])
            ):
                spent = time.perf_counter() - start
                if steps == total or (taken and spent * (taken + 1) / taken > budget_secs):
                    network.eval()
                    return taken
                left = 1.0 - max(steps / total, spent / budget_secs)
                for group in optimizer.param_groups:
                    group["lr"] = settings.learning_rate * min(1.0, 2 * left)
                loss = _loss(network, examples, chosen, settings)
                optimizer.zero_grad()
                loss.backward()  # type: ignore[no-untyped-call]
                torch.nn.utils.clip_grad_norm_(network.parameters(), settings.clip)
                optimizer.step()
                losses.append(loss.item())
                steps, taken = steps + 1, taken + 1
            network.eval()
            epoch += 1
            if watch is not None and watch.epoch(epoch, float(np.mean(losses))):
                break
    return taken


def held_out_loss(network: AstNetwork, examples: Examples, settings: TrainingSettings) -> float:
    """The same loss on examples that are not trained on, without dropout."""
    with torch.inference_mode():
        losses = [
            (len(chosen), float(_loss(network, examples, chosen, settings)))
            for chosen in batches(examples.workload, 4 * settings.batch_size, np.random.default_rng(0))
        ]
    return sum(size * loss for size, loss in losses) / sum(size for size, _ in losses)


def batches(workload: Indices, size: int, random: np.random.Generator) -> list[Indices]:
    """All positions once, shuffled, in batches of about `size`.

    Of each workload in a batch there are many trials: centring and ranking are within a workload.

    Args:
        workload: (n,) number of each example's workload.
        size: Examples in a batch.
        random: Shuffles.
    """
    pieces: list[Indices] = []
    for number in np.unique(workload):
        members = random.permutation(np.flatnonzero(workload == number))
        pieces += np.array_split(members, -(-len(members) // _COMPANY))
    order = np.concatenate([pieces[i] for i in random.permutation(len(pieces))])
    return list(np.array_split(order, -(-len(order) // size)))


def _loss(network: AstNetwork, examples: Examples, chosen: Indices, settings: TrainingSettings) -> Tensor:
    device = network.device
    correction = network(collate([examples.graphs[i] for i in chosen]).to(device))
    predicted = correction + torch.from_numpy(examples.estimate[chosen]).float().to(device)
    target = torch.from_numpy(examples.target[chosen]).float().to(device)
    weight = torch.from_numpy(examples.weight[chosen]).float().to(device)
    ran = torch.from_numpy(~examples.failed[chosen]).to(device)
    workload = torch.from_numpy(examples.workload[chosen]).to(device)
    regression = _regression(predicted, target, weight * ran, workload)
    return regression + settings.rank_weight * _ranking(
        predicted, target, weight, workload, settings.sharpness
    )


def _regression(predicted: Tensor, target: Tensor, weight: Tensor, workload: Tensor) -> Tensor:
    """Weighted smooth L1 of log time, both sides centred per workload; failed trials weigh nothing."""
    error = functional.smooth_l1_loss(
        _centred(predicted, weight, workload), _centred(target, weight, workload), reduction="none"
    )
    return (weight * error).sum() / weight.sum().clamp(min=1e-6)


def _centred(values: Tensor, weight: Tensor, workload: Tensor) -> Tensor:
    count = int(workload.max()) + 1
    total = torch.zeros(count, device=values.device).index_add(0, workload, weight * values)
    mass = torch.zeros(count, device=values.device).index_add(0, workload, weight)
    return values - (total / mass.clamp(min=1e-6))[workload]


def _ranking(predicted: Tensor, target: Tensor, weight: Tensor, workload: Tensor, sharpness: float) -> Tensor:
    """Logistic loss of all pairs of a workload (RankNet, Burges et al. 2005), weighted by their distance."""
    distance = target[:, None] - target[None, :]
    pairs = (workload[:, None] == workload[None, :]) & (distance > NOISE)
    if not pairs.any():
        return predicted.sum() * 0.0
    loss = functional.softplus(sharpness * (predicted[None, :] - predicted[:, None])) / sharpness
    importance = distance.clamp(max=1.0) * (weight[:, None] + weight[None, :])
    return (loss * importance)[pairs].sum() / importance[pairs].sum()
