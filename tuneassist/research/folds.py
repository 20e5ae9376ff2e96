"""Splits of a data set: what is trained on, and what is judged."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass

import numpy as np

from tuneassist.errors import UsageError
from tuneassist.research.samples import WorkloadSamples

SPLITS = ("workload", "family", "within", "machine")
"""Leave one workload out (the headline), leave one operator family out, 80/20 within every workload, and
leave one machine out."""
_WITHIN_SHARE = 0.8


@dataclass(frozen=True, slots=True)
class Fold:
    """One split: every model sees these rows and no others."""

    split: str
    name: str
    """What is left out."""
    train: tuple[WorkloadSamples, ...]
    test: tuple[WorkloadSamples, ...]


def folds(
    workloads: Sequence[WorkloadSamples], split: str, *, seed: int, held_out: Sequence[str] = ()
) -> Iterator[Fold]:
    """The folds of a split.

    Args:
        workloads: All samples.
        split: One of `SPLITS`.
        seed: Decides `within`.
        held_out: Leave out only workloads (families, machines) whose names begin with one of these.

    Raises:
        UsageError: No fold is left, or nothing would remain to train on.
    """
    if split == "within":
        yield _within(workloads, seed)
        return
    groups: dict[str, list[WorkloadSamples]] = {}
    for workload in workloads:
        groups.setdefault(_group(workload, split), []).append(workload)
    names = [name for name in groups if not held_out or name.startswith(tuple(held_out))]
    if not names or len(groups) < 2:
        raise UsageError(
            f"The data set can't be split by {split}: it holds {', '.join(list(groups)[:8]) or 'nothing'}.",
            remedy="Measure more with `tuneassist dataset collect`, or choose another --split.",
        )
    for name in names:
        left_out = {id(workload) for workload in groups[name]}
        train = tuple(workload for workload in workloads if id(workload) not in left_out)
        yield Fold(split, name, train, tuple(workload.measured() for workload in groups[name]))


def _group(workload: WorkloadSamples, split: str) -> str:
    if split == "workload":
        return workload.name
    return workload.family if split == "family" else workload.machine


def _within(workloads: Sequence[WorkloadSamples], seed: int) -> Fold:
    random = np.random.default_rng(seed)
    train, test = [], []
    for workload in workloads:
        order = random.permutation(len(workload.secs))
        cut = round(_WITHIN_SHARE * len(order))
        train.append(workload.take(order[:cut]))
        test.append(workload.take(order[cut:]).measured())
    return Fold("within", "20 % of each workload", tuple(train), tuple(test))
