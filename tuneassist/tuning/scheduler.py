"""Which task gets the next round."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

_BACKWARD = 3
"""Rounds over which the recent gain is taken."""
_SHARE_OF_RECENT = 0.2
"""Weight of the recent gain against the gain that the task's potential suggests."""


@dataclass(frozen=True, slots=True)
class TaskProgress:
    """What the choice depends on."""

    weight: int
    """How often the task occurs in the model."""
    flops: int
    best_by_round: tuple[float, ...]
    """Best seconds so far after each round that had a valid trial."""
    rounds: int
    open: bool
    """Whether it may get more trials."""


def next_task(tasks: Sequence[TaskProgress]) -> int | None:
    """Index of the open task with the largest expected gain of one more round; None if none is open.

    Every task gets one round first, in order. After that the gain of a round is estimated as in Ansor
    (Zheng et al. 2020, section 6.2): the recent gain per round, mixed with an optimistic guess, which is
    the smaller of "the time shrinks in proportion to the rounds spent" and "it reaches the arithmetic
    rate of the best similar task".
    """
    waiting = [index for index, task in enumerate(tasks) if task.open]
    if not waiting:
        return None
    fresh = [index for index in waiting if tasks[index].rounds == 0]
    if fresh:
        return fresh[0]
    best_rate = max(
        (task.flops / task.best_by_round[-1] for task in tasks if task.best_by_round), default=0.0
    )
    return max(waiting, key=lambda index: _gain_secs(tasks[index], best_rate))


def _gain_secs(task: TaskProgress, best_rate: float) -> float:
    if not task.best_by_round:
        return 0.0
    best = task.best_by_round[-1]
    before = task.best_by_round[max(0, len(task.best_by_round) - 1 - _BACKWARD)]
    recent = (before - best) / _BACKWARD
    by_rounds = best / task.rounds
    by_similar = best - task.flops / best_rate if best_rate and task.flops else by_rounds
    optimistic = max(0.0, min(by_rounds, by_similar))
    return task.weight * (_SHARE_OF_RECENT * recent + (1 - _SHARE_OF_RECENT) * optimistic)
