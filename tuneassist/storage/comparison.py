"""Two or more runs, task by task: how much faster, how sure, and how soon."""

from __future__ import annotations

import math
import sqlite3
from collections.abc import Sequence
from dataclasses import dataclass
from statistics import fmean, variance

from tuneassist.storage.queries import RunRow, run_row
from tuneassist.storage.run_detail import Improvement, TaskRow, best_curves, task_rows

CONFIDENCE = 0.95


@dataclass(frozen=True, slots=True)
class RunOnTask:
    """How one run did on one task."""

    run_id: int
    task: TaskRow
    ratio: float | None
    """Latency of the first of the runs over this one's: above 1, this one is faster. None without either."""
    ratio_low: float | None
    """95 % confidence interval of the ratio; None for the first run, or with fewer than 2 repeats."""
    ratio_high: float | None
    common_secs: float | None
    """The worst of the runs' bests: what all of them reached."""
    trials_to_common: int | None
    """Trials of this task until then, failures counted."""
    secs_to_common: float | None
    """Seconds from the start of the run until then, pauses and other tasks included."""


@dataclass(frozen=True, slots=True)
class TaskComparison:
    """One workload in all runs that have it."""

    name: str
    workload_spec: str
    runs: tuple[RunOnTask, ...]
    """In the order in which the runs were named."""


@dataclass(frozen=True, slots=True)
class Comparison:
    """What `history compare` says."""

    runs: tuple[RunRow, ...]
    tasks: tuple[TaskComparison, ...]
    """Of the workloads that at least two of the runs have, the first run's order first."""
    geomean_ratios: tuple[float | None, ...]
    """For each run, the geometric mean of its ratios over the tasks that it shares with the first run."""
    same_place: bool
    """Whether all ran on one machine and target; else the ratios compare machines, too."""


def compare(conn: sqlite3.Connection, run_ids: Sequence[int], path: str) -> Comparison:
    """Compare runs, workload by workload, with the first of them that has it.

    Args:
        conn: From `reading()`.
        run_ids: At least two.
        path: The database, for messages.

    Raises:
        UsageError: A run does not exist.
    """
    found = tuple(run_row(conn, run_id, path) for run_id in run_ids)
    tasks = {run_id: task_rows(conn, run_id) for run_id in run_ids}
    curves = {run_id: best_curves(conn, run_id) for run_id in run_ids}
    by_workload: dict[int, list[tuple[int, TaskRow]]] = {}
    for run_id in run_ids:
        for task in tasks[run_id]:
            by_workload.setdefault(task.workload_id, []).append((run_id, task))
    compared = [
        _compare_task(entries, curves)
        for entries in by_workload.values()
        if len({run_id for run_id, _ in entries}) > 1
    ]
    places = conn.execute(
        f"SELECT count(DISTINCT target_id || ' ' || machine_id) FROM runs"
        f" WHERE id IN ({', '.join('?' * len(run_ids))})",
        tuple(run_ids),
    ).fetchone()
    return Comparison(
        runs=found,
        tasks=tuple(compared),
        geomean_ratios=tuple(_geomean(compared, run_id, base=run_ids[0]) for run_id in run_ids),
        same_place=places[0] == 1,
    )


def _compare_task(
    entries: list[tuple[int, TaskRow]], curves: dict[int, dict[int, list[Improvement]]]
) -> TaskComparison:
    base = entries[0][1]
    bests = [task.best_secs for _, task in entries]
    common = None if None in bests else max(best for best in bests if best is not None)
    rows = []
    for run_id, task in entries:
        ratio, low, high = None, None, None
        if base.best_secs and task.best_secs:
            ratio = base.best_secs / task.best_secs
            if task is not base:
                low, high = ratio_interval(base.best_run_secs, task.best_run_secs, ratio)
        reached = next(
            (step for step in curves[run_id].get(task.id, []) if common and step.best_secs <= common), None
        )
        rows.append(
            RunOnTask(
                run_id=run_id,
                task=task,
                ratio=ratio,
                ratio_low=low,
                ratio_high=high,
                common_secs=common,
                trials_to_common=reached.trial if reached else None,
                secs_to_common=reached.secs_since_start if reached else None,
            )
        )
    return TaskComparison(entries[0][1].name, entries[0][1].workload_spec, tuple(rows))


def ratio_interval(
    base: Sequence[float], other: Sequence[float], ratio: float
) -> tuple[float | None, float | None]:
    """Confidence interval of `median(base) / median(other)`, by Welch's t on the logarithms.

    Logarithms make the ratio a difference; Welch's test (1947) allows the two to vary differently and
    holds for as few as 2 repeats each, where a bootstrap of 3 repeats has 10 outcomes. The interval is
    centred on the ratio of the medians, which is what tables show. It covers the noise of repeats within
    one measurement, not a drift of the machine between two.

    Args:
        base: Repeats of the first run's best, seconds.
        other: Repeats of the other run's best, seconds.
        ratio: The ratio of the medians.
    """
    if min(len(base), len(other)) < 2 or min(*base, *other) <= 0:
        return None, None
    a, b = [math.log(secs) for secs in base], [math.log(secs) for secs in other]
    share_a, share_b = variance(a) / len(a), variance(b) / len(b)
    error = math.sqrt(share_a + share_b)
    if error == 0:
        return ratio, ratio
    from scipy.special import stdtrit  # scipy.stats takes more than a second to import

    freedom = error**4 / (share_a**2 / (len(a) - 1) + share_b**2 / (len(b) - 1))
    reach = float(stdtrit(freedom, (1 + CONFIDENCE) / 2)) * error
    return ratio * math.exp(-reach), ratio * math.exp(reach)


def _geomean(tasks: list[TaskComparison], run_id: int, *, base: int) -> float | None:
    logs = [
        math.log(row.ratio)
        for task in tasks
        for row in task.runs
        if task.runs[0].run_id == base and row.run_id == run_id and row.ratio is not None
    ]
    return math.exp(fmean(logs)) if logs else None
