"""How trials enter the store from elsewhere: in one transaction, none twice, marked with their origin.

Two ok trials are the same measurement if workload, target and trace are equal and so is the first repeat
to the last digit: a later confirmation appends repeats, and no two measurements agree in all digits. A
failed trial is the same if its run holds it already.
"""

from __future__ import annotations

import json
import sqlite3
import time
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from dataclasses import dataclass
from typing import Any

from tuneassist.exchange.metaschedule import trace_key
from tuneassist.records import Machine
from tuneassist.storage import rows
from tuneassist.storage.faults import store_faults
from tuneassist.storage.sqlite import SqliteStore

ORIGIN = "imported"
"""Key of `runs.config_json` that says where an imported run comes from."""

Key = tuple[bytes, float | None]


def trial_key(trace_json: str, run_secs: Sequence[float] | None) -> Key:
    """What identifies a measurement of one workload on one target; without repeats, of one run too."""
    return trace_key(trace_json), run_secs[0] if run_secs else None


@contextmanager
def one_transaction(store: SqliteStore) -> Iterator[sqlite3.Connection]:
    """Everything in the block is committed together, or nothing is."""
    conn = store.connection
    with store_faults(store.path):
        conn.execute("BEGIN IMMEDIATE")
        try:
            yield conn
            conn.execute("COMMIT")
        except BaseException:
            if conn.in_transaction:
                conn.execute("ROLLBACK")
            raise


@dataclass(slots=True)
class _Kept:
    trial_id: int
    repeats: int


class Known:
    """The ok trials of one workload on one target that the store holds, over all runs and machines."""

    def __init__(self, conn: sqlite3.Connection, workload_id: int, target_id: int) -> None:
        self._conn = conn
        found = conn.execute(
            "SELECT trials.id, trials.trace_json, trials.run_secs FROM trials"
            " JOIN tasks ON tasks.id = trials.task_id JOIN runs ON runs.id = tasks.run_id"
            " WHERE tasks.workload_id = ? AND runs.target_id = ? AND trials.status = 'ok'",
            (workload_id, target_id),
        )
        self._kept: dict[Key, _Kept] = {}
        for trial_id, trace, secs in found:
            repeats = rows.secs_from(secs)
            self._kept[trial_key(trace, repeats)] = _Kept(trial_id, len(repeats))

    def __contains__(self, key: Key) -> bool:
        return key in self._kept

    def add(self, key: Key, trial_id: int, repeats: int) -> None:
        """Take in a trial that was just inserted."""
        self._kept[key] = _Kept(trial_id, repeats)

    def confirm(self, key: Key, run_secs: str, best_of: float, repeats: int, correct: int | None) -> bool:
        """Take over what the other store learned of the same trial later; return whether that is news."""
        kept = self._kept[key]
        changed = 0
        if repeats > kept.repeats:
            kept.repeats = repeats
            changed += self._conn.execute(
                "UPDATE trials SET run_secs = ?, best_of = ? WHERE id = ?", (run_secs, best_of, kept.trial_id)
            ).rowcount
        if correct is not None:
            changed += self._conn.execute(
                "UPDATE trials SET correct = ? WHERE id = ? AND (correct IS NULL OR correct > ?)",
                (correct, kept.trial_id, correct),
            ).rowcount
        return bool(changed)


class FailedKnown:
    """The failed and duplicate trials of one task.

    Args:
        conn: The store.
        task_id: The task.
        by_time: Whether the same trace may fail again at another time; a MetaSchedule database does not
            say when.
    """

    def __init__(self, conn: sqlite3.Connection, task_id: int, *, by_time: bool) -> None:
        found = conn.execute(
            "SELECT trace_json, measured_at FROM trials WHERE task_id = ? AND status <> 'ok'", (task_id,)
        )
        self._by_time = by_time
        self._kept = {(trace_key(trace), at if by_time else 0.0) for trace, at in found}

    def add(self, trace_json: str, measured_at: float = 0.0) -> bool:
        """Take it in; return whether it is new."""
        key = (trace_key(trace_json), measured_at if self._by_time else 0.0)
        if key in self._kept:
            return False
        self._kept.add(key)
        return True


def machine_row(conn: sqlite3.Connection, machine: Machine, *, os: str = "unknown") -> int:
    """The id of a machine's row, which is added if there is none; `os` is that of the other machine."""
    key = (machine.hostname, machine.cpu, machine.cores, json.dumps(machine.features))
    conn.execute(
        "INSERT INTO machines (hostname, cpu, cores, features, os, created_at) VALUES (?, ?, ?, ?, ?, ?)"
        " ON CONFLICT (hostname, cpu, cores, features) DO NOTHING",
        (*key, os, time.time()),
    )
    found = conn.execute(
        "SELECT id FROM machines WHERE hostname = ? AND cpu = ? AND cores = ? AND features = ?", key
    ).fetchone()
    return int(found[0])


def origin_of(config_json: str) -> dict[str, Any] | None:
    """Where a run was imported from; None if it was measured into this store."""
    try:
        config = json.loads(config_json)
        origin = config.get(ORIGIN) if isinstance(config, dict) else None
    except ValueError:
        return None
    return origin if isinstance(origin, dict) else None


def with_origin(config_json: str, origin: dict[str, Any]) -> str:
    """The settings with where they came from; an earlier origin stays in it."""
    try:
        config = json.loads(config_json)
    except ValueError:
        config = {}
    before = config.get(ORIGIN)
    return json.dumps({**config, ORIGIN: {**origin, **({"before": before} if before else {})}})
