"""Import of another tuneassist database: what it holds and this one does not.

A run is the same run in both if it was started at the same moment on the same machine and target (or, for
one that was itself imported, from the same database). Merging again, or in another order, changes nothing.
"""

from __future__ import annotations

import os
import sqlite3
import time
from collections.abc import Iterator
from contextlib import closing, contextmanager
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

from tuneassist.errors import StoreError, UsageError
from tuneassist.exchange.incoming import (
    FailedKnown,
    Known,
    machine_row,
    one_transaction,
    origin_of,
    trial_key,
    with_origin,
)
from tuneassist.records import RunStatus
from tuneassist.storage import rows
from tuneassist.storage.connection import connect
from tuneassist.storage.faults import store_faults
from tuneassist.storage.liveness import engine_alive
from tuneassist.storage.rows import machine_from
from tuneassist.storage.sqlite import SqliteStore

_ORDINALS = "SELECT ordinal FROM trials WHERE run_id = ?"
_UNFINISHED = (RunStatus.RUNNING, RunStatus.PAUSED)


@dataclass(slots=True)
class Merged:
    """What a merge did."""

    runs_added: int = 0
    runs_extended: int = 0
    """Runs that were here, and got trials that were not."""
    added: int = 0
    known: int = 0
    """Trials that were here already."""
    confirmed: int = 0
    """Of those, how many were measured again or checked there, which is taken over."""
    workloads_added: int = 0
    runs: list[int] = field(default_factory=list)
    """Ids, here, of the runs that were added or extended."""


def merge_database(store: SqliteStore, path: Path) -> Merged:
    """Take over what another database holds, in one transaction.

    Raises:
        UsageError: It is the very same file, or does not exist.
        StoreError: It can't be read, or this one can't be written.
    """
    if not path.is_file():
        raise UsageError(f"There is no database at {path}.", remedy="Name an existing file.")
    if store.path != ":memory:" and os.path.samefile(path, store.path):
        raise UsageError(f"{path} is this database itself.", remedy="Name the other one, or --db.")
    with _snapshot(path) as other, one_transaction(store):
        return _Merge(store, other, path).run()


@contextmanager
def _snapshot(path: Path) -> Iterator[sqlite3.Connection]:
    """The other database as it stands now, whatever its own engine goes on writing."""
    try:
        other = connect(path, readonly=True)
    except StoreError as error:
        raise StoreError(error.message, remedy=f"It was to be imported. {error.remedy}") from error
    with closing(other), store_faults(str(path)):
        other.row_factory = sqlite3.Row
        other.execute("BEGIN")
        yield other


class _Merge:
    def __init__(self, store: SqliteStore, other: sqlite3.Connection, path: Path) -> None:
        self._store = store
        self._conn = store.connection
        self._other = other
        self._path = path
        self._done = Merged()
        self._machines: dict[int, int] = {}
        self._known: dict[tuple[int, int], Known] = {}

    def run(self) -> Merged:
        for model in self._all("SELECT * FROM cost_models ORDER BY id"):
            same = self._conn.execute("SELECT 1 FROM cost_models WHERE sha256 = ?", (model["sha256"],))
            if same.fetchone() is None:
                self._insert("cost_models", model)
        for run in self._all("SELECT * FROM runs ORDER BY id"):
            self._merge_run(run)
        return self._done

    def _merge_run(self, run: sqlite3.Row) -> None:
        machine_id, target_id = self._machine(run["machine_id"]), self._target(run["target_id"])
        found = self._same_run(run, machine_id, target_id)
        if found is not None and engine_alive(found["pid"], found["pid_started"]):
            return  # An engine of ours works on it: it knows more than any copy.
        run_id = self._add_run(run, machine_id, target_id) if found is None else found["id"]
        used = {ordinal for (ordinal,) in self._conn.execute(_ORDINALS, (run_id,))}
        held = added = 0
        for task in self._all("SELECT * FROM tasks WHERE run_id = ? ORDER BY id", (run["id"],)):
            workload_id = self._workload(task["workload_id"])
            task_id = self._task(task, run_id, workload_id)
            found_there, new_here = self._merge_trials(
                task["id"], run_id, task_id, used, workload_id, target_id
            )
            held, added = held + found_there, added + new_here
            for record in self._all("SELECT * FROM rounds WHERE task_id = ? ORDER BY id", (task["id"],)):
                self._insert("rounds", record, run_id=run_id, task_id=task_id)
        if found is None and held and not added:
            # Another run holds all of it: it came here as a MetaSchedule database before.
            self._conn.execute("DELETE FROM runs WHERE id = ?", (run_id,))
            return
        if found is not None:
            self._advance(found, run)
        if found is None or added:
            self._done.runs.append(run_id)
        self._done.runs_added += found is None
        self._done.runs_extended += found is not None and added > 0

    def _merge_trials(
        self, from_task: int, run_id: int, task_id: int, used: set[int], workload_id: int, target_id: int
    ) -> tuple[int, int]:
        """Copy the trials that are not here; return how many there are and how many of them are new."""
        place = (workload_id, target_id)
        if place not in self._known:
            self._known[place] = Known(self._conn, workload_id, target_id)
        known, failed = self._known[place], FailedKnown(self._conn, task_id, by_time=True)
        held = added = 0
        for trial in self._other.execute(
            "SELECT * FROM trials WHERE task_id = ? ORDER BY ordinal", (from_task,)
        ):
            held += 1
            repeats = rows.secs_from(trial["run_secs"]) if trial["run_secs"] else ()
            key = trial_key(trial["trace_json"], repeats)
            if repeats and key in known:
                self._done.known += 1
                self._done.confirmed += known.confirm(
                    key, trial["run_secs"], trial["best_of"], len(repeats), trial["correct"]
                )
                continue
            if not repeats and not failed.add(trial["trace_json"], trial["measured_at"]):
                self._done.known += 1
                continue
            ordinal = trial["ordinal"] if trial["ordinal"] not in used else max(used) + 1
            used.add(ordinal)
            row_id = self._insert("trials", trial, run_id=run_id, task_id=task_id, ordinal=ordinal)
            if repeats:
                known.add(key, row_id, len(repeats))
            added += 1
        self._done.added += added
        return held, added

    def _same_run(self, run: sqlite3.Row, machine_id: int, target_id: int) -> sqlite3.Row | None:
        origin = origin_of(run["config_json"]) or {}
        where, value = (
            "started_at = ? AND seed = ? AND cost_model = ?",
            [run["started_at"], run["seed"], run["cost_model"]],
        )
        if "fingerprint" in origin:
            where, value = "json_extract(config_json, '$.imported.fingerprint') = ?", [origin["fingerprint"]]
        found: sqlite3.Row | None = self._conn.execute(
            f"SELECT * FROM runs WHERE machine_id = ? AND target_id = ? AND {where} ORDER BY id LIMIT 1",
            (machine_id, target_id, *value),
        ).fetchone()
        return found

    def _add_run(self, run: sqlite3.Row, machine_id: int, target_id: int) -> int:
        origin = {
            **(origin_of(run["config_json"]) or {"format": "tuneassist"}),
            "database": str(self._path.absolute()), "run": run["id"], "imported_at": time.time(),
        }  # fmt: skip
        return self._insert(
            "runs", run, machine_id=machine_id, target_id=target_id, status=_ended(run["status"]),
            config_json=with_origin(run["config_json"], origin), pid=None, pid_started=None, events_path=None,
            note=run["note"] or f"imported from {self._path.name}, run {run['id']}",
        )  # fmt: skip

    def _advance(self, here: sqlite3.Row, there: sqlite3.Row) -> None:
        """Take over how a run went on in the other database after it was copied."""
        if (there["ended_at"] or 0.0) > (here["ended_at"] or 0.0):
            self._conn.execute(
                "UPDATE runs SET status = ?, ended_at = ?, result_json = ?, trials_requested = ?"
                " WHERE id = ?",
                (_ended(there["status"]), there["ended_at"], there["result_json"], there["trials_requested"],
                 here["id"]),
            )  # fmt: skip

    def _machine(self, other_id: int) -> int:
        if other_id not in self._machines:
            row = self._one("SELECT * FROM machines WHERE id = ?", other_id)
            machine_id = machine_row(self._conn, machine_from(row), os=row["os"])
            self._machines[other_id] = machine_id
            for fact in self._all("SELECT * FROM machine_facts WHERE machine_id = ?", (other_id,)):
                self._insert("machine_facts", fact, machine_id=machine_id)
        return self._machines[other_id]

    def _target(self, other_id: int) -> int:
        return self._store.target_id(
            rows.target_from(self._one("SELECT * FROM targets WHERE id = ?", other_id))
        )

    def _workload(self, other_id: int) -> int:
        row = self._one("SELECT * FROM workloads WHERE id = ?", other_id)
        found = self._conn.execute("SELECT id FROM workloads WHERE hash = ?", (row["hash"],)).fetchone()
        if found:
            return int(found[0])
        self._done.workloads_added += 1
        return self._insert("workloads", row)

    def _task(self, task: sqlite3.Row, run_id: int, workload_id: int) -> int:
        found = self._conn.execute(
            "SELECT id FROM tasks WHERE run_id = ? AND workload_id = ? AND name = ? ORDER BY id LIMIT 1",
            (run_id, workload_id, task["name"]),
        ).fetchone()
        task_id = (
            int(found[0])
            if found
            else self._store.add_task(run_id, workload_id, name=task["name"], weight=task["weight"])
        )
        self._conn.execute(
            "UPDATE tasks SET untuned_secs = coalesce(untuned_secs, ?),"
            " pytorch_secs = coalesce(pytorch_secs, ?),"
            " error = coalesce(error, ?) WHERE id = ?",
            (task["untuned_secs"], task["pytorch_secs"], task["error"], task_id),
        )
        return task_id

    def _insert(self, table: str, row: sqlite3.Row, **changed: Any) -> int:
        """Copy a row, with other values where given; one that is there already (by its key) stays."""
        values = {**{name: row[name] for name in row.keys() if name != "id"}, **changed}  # noqa: SIM118
        columns = ", ".join(values)
        cursor = self._conn.execute(
            f"INSERT OR IGNORE INTO {table} ({columns}) VALUES ({', '.join(f':{name}' for name in values)})",
            values,
        )
        return cursor.lastrowid or 0

    def _all(self, sql: str, parameters: tuple[Any, ...] = ()) -> list[sqlite3.Row]:
        return self._other.execute(sql, parameters).fetchall()

    def _one(self, sql: str, row_id: int) -> sqlite3.Row:
        row: sqlite3.Row | None = self._other.execute(sql, (row_id,)).fetchone()
        if row is None:
            raise StoreError(
                f"The database {self._path} lacks rows that its runs refer to.",
                remedy="Copy what is readable with `tuneassist history salvage`, and import the copy.",
            )
        return row


def _ended(status: str) -> str:
    """An engine of another store is not ours to follow: its run counts as interrupted here."""
    return RunStatus.INTERRUPTED.value if status in _UNFINISHED else status
