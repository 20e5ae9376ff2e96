"""All that was ever measured, by workload, for statistics over a store."""

from __future__ import annotations

import sqlite3
from collections import Counter
from collections.abc import Iterator
from dataclasses import dataclass, field
from itertools import groupby

from tuneassist.records import TrialStatus
from tuneassist.storage.filters import like, matches


@dataclass(frozen=True, slots=True)
class Measurements:
    """The trials of one workload on one machine and target, over all runs."""

    workload: str
    workload_spec: str
    op: str
    machine: str
    target: str
    secs: tuple[float, ...] = ()
    """Median latency of each valid trial."""
    statuses: dict[str, int] = field(default_factory=dict)
    """Trials by how they ended."""
    sources: dict[str, int] = field(default_factory=dict)
    """Valid trials by where the candidate came from."""

    @property
    def trials(self) -> int:
        """All of them, failures included."""
        return sum(self.statuses.values())


def measurements(conn: sqlite3.Connection, *, workload: str = "") -> Iterator[Measurements]:
    """What was measured, by workload, machine and target.

    Args:
        conn: From `reading()`.
        workload: Pattern of a task's name or its workload's spec.
    """
    found = conn.execute(
        "SELECT workloads.id, runs.machine_id, runs.target_id, workloads.name, workloads.spec, workloads.op,"
        " machines.hostname AS machine, targets.spec AS target, trials.status, trials.source, trials.best_of"
        " FROM trials JOIN tasks ON tasks.id = trials.task_id JOIN runs ON runs.id = trials.run_id"
        " JOIN workloads ON workloads.id = tasks.workload_id JOIN machines ON machines.id = runs.machine_id"
        " JOIN targets ON targets.id = runs.target_id"
        f" WHERE {matches('pattern', 'tasks.name', 'workloads.spec')}"
        " ORDER BY workloads.name, workloads.id, runs.machine_id, runs.target_id",
        {"pattern": like(workload)},
    )
    for _, group in groupby(found, key=lambda row: tuple(row)[:3]):
        rows = list(group)
        ok = [row for row in rows if row["status"] == TrialStatus.OK and (row["best_of"] or 0) > 0]
        yield Measurements(
            rows[0]["name"], rows[0]["spec"], rows[0]["op"], rows[0]["machine"], rows[0]["target"],
            secs=tuple(row["best_of"] for row in ok),
            statuses=dict(Counter(row["status"] for row in rows)),
            sources=dict(Counter(row["source"] for row in ok)),
        )  # fmt: skip
