"""What the store knows of a workload on one machine and target, over all runs."""

from __future__ import annotations

import sqlite3

_HERE = (
    " FROM tasks JOIN runs ON runs.id = tasks.run_id JOIN workloads ON workloads.id = tasks.workload_id"
    " WHERE workloads.hash = :hash AND runs.target_id = :target AND runs.machine_id = :machine"
)


def trials_allotted(
    conn: sqlite3.Connection, workload_hash: str, *, target_id: int, machine_id: int
) -> float:
    """The largest share of its trials that a finished run had for each workload that it tuned, this one
    among them; 0 if there is no such run.

    The share, not what the workload got: the scheduler gives fewer trials to what gains less.
    """
    row = conn.execute(
        "SELECT max(runs.trials_requested * 1.0 / (SELECT count(*) FROM tasks AS others"
        " WHERE others.run_id = runs.id AND others.trial_count > 0))"
        f"{_HERE} AND tasks.ok_count > 0 AND runs.status = 'done'",
        {"hash": workload_hash, "target": target_id, "machine": machine_id},
    ).fetchone()
    return float(row[0] or 0.0)


def times_on_host(
    conn: sqlite3.Connection, workload_hash: str, hostname: str
) -> tuple[float | None, float | None]:
    """The untuned latency measured last on a host, and the best tuned one, whatever target and cores."""
    row = conn.execute(
        "SELECT (SELECT tasks.untuned_secs FROM tasks JOIN runs ON runs.id = tasks.run_id"
        "   WHERE tasks.workload_id = workloads.id AND tasks.untuned_secs IS NOT NULL"
        "   AND runs.machine_id IN (SELECT id FROM machines WHERE hostname = :host)"
        "   ORDER BY tasks.id DESC LIMIT 1),"
        " (SELECT min(tasks.best_secs) FROM tasks JOIN runs ON runs.id = tasks.run_id"
        "   WHERE tasks.workload_id = workloads.id"
        "   AND runs.machine_id IN (SELECT id FROM machines WHERE hostname = :host))"
        " FROM workloads WHERE hash = :hash",
        {"hash": workload_hash, "host": hostname},
    ).fetchone()
    return (None, None) if row is None else (row[0], row[1])


def untuned_secs(
    conn: sqlite3.Connection, workload_hash: str, *, target_id: int, machine_id: int
) -> float | None:
    """The latency of TVM's default schedule as it was measured last."""
    row = conn.execute(
        f"SELECT tasks.untuned_secs{_HERE} AND tasks.untuned_secs IS NOT NULL ORDER BY tasks.id DESC LIMIT 1",
        {"hash": workload_hash, "target": target_id, "machine": machine_id},
    ).fetchone()
    return None if row is None else float(row[0])
