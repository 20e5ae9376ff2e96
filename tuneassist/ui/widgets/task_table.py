"""The tasks of a run: MetaSchedule's own columns, and what was gained."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

from tuneassist.ui import format as fmt
from tuneassist.ui.run_state import RunState
from tuneassist.ui.task_state import TaskState
from tuneassist.ui.widgets.table import Column, Row, Table

_COLUMNS = (
    Column("Task", "name", width=24),
    Column("Weight", "weight", right=True),
    Column("Latency", "best", right=True),
    Column("GFLOPS", "gflops", right=True),
    Column("Trials", "trials", right=True),
    Column("Failed", "failed", right=True),
    Column("Untuned", "untuned", right=True),
    Column("PyTorch", "pytorch", right=True),
    Column("Weighted", "weighted", right=True),
    Column("FLOP", "flops", right=True),
    Column("ρ", "spearman", right=True),
    Column("Pairs", "pairs", right=True),
    Column("State", "state"),
)

_ORDERS: dict[str, Callable[[TaskState], Any]] = {
    "name": lambda t: t.name,
    "weight": lambda t: t.weight,
    "best": lambda t: t.best_secs,
    "gflops": lambda t: t.gflops,
    "trials": lambda t: t.trials,
    "failed": lambda t: t.counts.failed,
    "untuned": lambda t: t.speedup(t.untuned_secs),
    "pytorch": lambda t: t.speedup(t.pytorch_secs),
    "weighted": lambda t: t.best_secs * t.weight if t.best_secs else None,
    "flops": lambda t: t.flops,
    "spearman": lambda t: t.quality.last.spearman if t.quality.last else None,
    "pairs": lambda t: t.quality.last.pairwise_accuracy if t.quality.last else None,
    "state": lambda t: t.ended,
}


class TaskTable(Table):
    """One row a task; the row under the cursor is the one that the charts show."""

    def __init__(self, id: str | None = None) -> None:  # noqa: A002
        super().__init__(_COLUMNS, order="", descending=False, id=id)

    def show_state(self, state: RunState) -> None:
        """Show the run's tasks in the chosen order; absent values come last."""
        tasks = list(state.tasks)
        order = _ORDERS.get(self.order)
        if order is not None:
            have = [task for task in tasks if order(task) is not None]
            have.sort(key=order, reverse=self.descending)
            tasks = have + [task for task in tasks if order(task) is None]
        self.show([_row(task, state) for task in tasks])


def _row(task: TaskState, state: RunState) -> Row:
    last = task.quality.last
    return Row(
        str(task.task_id),
        (
            task.name,
            str(task.weight),
            fmt.latency(task.best_secs),
            fmt.number(task.gflops, 1),
            str(task.trials),
            str(task.counts.failed),
            fmt.ratio(task.speedup(task.untuned_secs)),
            fmt.ratio(task.speedup(task.pytorch_secs)),
            fmt.latency(task.best_secs * task.weight if task.best_secs else None),
            fmt.count(task.flops or None),
            fmt.number(last.spearman if last else None),
            fmt.number(last.pairwise_accuracy if last else None),
            task_words(task, state),
        ),
    )


def task_words(task: TaskState, state: RunState) -> str:
    """What the task does now, or why it ended."""
    if task.ended:
        return f"{'✗' if task.ended == 'error' else '✓'} {task.ended} {task.detail}".rstrip()
    if state.phase_task == task.task_id and not state.ended:
        return f"● {state.phase}"
    return "" if state.ended else "waiting"
