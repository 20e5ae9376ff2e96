"""The store over a SQLite file; `storage/base.py` says what each method promises."""

from __future__ import annotations

import json
import platform
import sqlite3
import time
from collections.abc import Iterable, Iterator, Sequence
from contextlib import contextmanager
from pathlib import Path
from types import TracebackType
from typing import Any, Self

from sqlite_utils.db import Database

from tuneassist.errors import StoreError
from tuneassist.records import Machine, Round, Run, RunSettings, RunStatus, TargetInfo, Task, Trial
from tuneassist.storage import rows
from tuneassist.storage.connection import BUSY_TIMEOUT_SECS, connect
from tuneassist.storage.faults import no_such_run, store_faults
from tuneassist.storage.liveness import engine_alive

Parameters = Sequence[Any] | dict[str, Any]


def open_store(
    path: str | Path, *, readonly: bool = False, busy_timeout_secs: float = BUSY_TIMEOUT_SECS
) -> SqliteStore:
    """Open the store; its folder and the file are created, an older schema migrated (a copy is kept).

    Raises:
        StoreError: The file can't be used; with `readonly`, also if there is none.
    """
    conn = connect(path, readonly=readonly, busy_timeout_secs=busy_timeout_secs)
    return SqliteStore(conn, str(path))


class SqliteStore:
    """The store over one connection, for the thread that opened it."""

    def __init__(self, conn: sqlite3.Connection, path: str) -> None:
        conn.row_factory = sqlite3.Row
        self._db = Database(conn)
        self.path = path

    def __enter__(self) -> Self:
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        self.close()

    def close(self) -> None:
        """Close the connection; closing twice is fine."""
        with store_faults(self.path):
            self._db.close()

    @property
    def connection(self) -> sqlite3.Connection:
        """For the functions of `storage/queries.py` and `storage/maintenance.py`."""
        return self._db.conn

    # what a run stands on

    def machine_id(self, machine: Machine) -> int:
        return self._added(
            "INSERT INTO machines (hostname, cpu, cores, features, os, created_at) VALUES (?, ?, ?, ?, ?, ?)"
            " ON CONFLICT (hostname, cpu, cores, features) DO NOTHING",
            (machine.hostname, machine.cpu, machine.cores, json.dumps(machine.features),
             f"{platform.system()} {platform.release()}", time.time()),
            "SELECT id FROM machines WHERE hostname = ? AND cpu = ? AND cores = ? AND features = ?",
            (machine.hostname, machine.cpu, machine.cores, json.dumps(machine.features)),
        )  # fmt: skip

    def target_id(self, target: TargetInfo) -> int:
        return self._added(
            "INSERT INTO targets (spec, json, cores, kind, note) VALUES (?, ?, ?, ?, ?)"
            " ON CONFLICT (json) DO NOTHING",
            (target.spec, target.json, target.cores, target.kind, target.note),
            "SELECT id FROM targets WHERE json = ?",
            (target.json,),
        )

    def workload_id(
        self,
        *,
        hash: str,  # noqa: A002
        name: str,
        spec: str,
        op: str,
        flops: int,
        mod_json: str,
    ) -> int:
        return self._added(
            "INSERT INTO workloads (hash, name, spec, op, flops, mod_json) VALUES (?, ?, ?, ?, ?, ?)"
            " ON CONFLICT (hash) DO NOTHING",
            (hash, name, spec, op, flops, mod_json),
            "SELECT id FROM workloads WHERE hash = ?",
            (hash,),
        )

    # runs

    def create_run(
        self, *, target_id: int, machine_id: int, settings: RunSettings, pid: int, pid_started: float,
        events_path: str,
    ) -> int:  # fmt: skip
        return self._insert(
            "INSERT INTO runs (target_id, machine_id, cost_model, seed, trials_requested, status, started_at,"
            " config_json, pid, pid_started, events_path) VALUES (?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?)",
            (target_id, machine_id, settings.cost_model, settings.seed, settings.trials,
             RunStatus.RUNNING.value, time.time(), rows.settings_json(settings), pid, pid_started,
             events_path),
        )  # fmt: skip

    def claim_run(self, run_id: int, *, pid: int, pid_started: float, events_path: str) -> None:
        with self._transaction():
            run = self.run(run_id)
            ours = (run.pid, run.pid_started) == (pid, pid_started)
            if not ours and engine_alive(run.pid, run.pid_started):
                raise StoreError(
                    f"Run {run_id} is worked on by another engine (process {run.pid}).",
                    remedy=f"Follow it with `tuneassist --batch --attach {run_id}`, or stop it first.",
                )
            self._db.execute(
                "UPDATE runs SET status = ?, ended_at = NULL, result_json = NULL, pid = ?, pid_started = ?,"
                " events_path = ? WHERE id = ?",
                (RunStatus.RUNNING.value, pid, pid_started, events_path, run_id),
            )

    def set_run_status(self, run_id: int, status: RunStatus) -> None:
        self._update("UPDATE runs SET status = ? WHERE id = ?", (status.value, run_id))

    def end_run(self, run_id: int, status: RunStatus, *, result_json: str) -> None:
        self._update(
            "UPDATE runs SET status = ?, ended_at = ?, result_json = ?, pid = NULL, pid_started = NULL"
            " WHERE id = ?",
            (status.value, time.time(), result_json, run_id),
        )

    def run(self, run_id: int) -> Run:
        row = self._one(f"{rows.SELECT_RUN} WHERE id = ?", (run_id,))
        if row is None:
            raise no_such_run(self.connection, run_id, self.path)
        return rows.run_from(row)

    def settings(self, run_id: int) -> RunSettings:
        return rows.settings_from(self.run(run_id).config_json)

    def target(self, target_id: int) -> TargetInfo:
        return rows.target_from(self._row("SELECT * FROM targets WHERE id = ?", target_id, "target"))

    def machine(self, machine_id: int) -> Machine:
        return rows.machine_from(self._row("SELECT * FROM machines WHERE id = ?", machine_id, "machine"))

    # tasks

    def add_task(self, run_id: int, workload_id: int, *, name: str, weight: int) -> int:
        return self._insert(
            "INSERT INTO tasks (run_id, workload_id, name, weight) VALUES (?, ?, ?, ?)",
            (run_id, workload_id, name, weight),
        )

    def set_task_baseline(
        self, task_id: int, *, untuned_secs: float | None = None, pytorch_secs: float | None = None
    ) -> None:
        self._update(
            "UPDATE tasks SET untuned_secs = coalesce(?, untuned_secs),"
            " pytorch_secs = coalesce(?, pytorch_secs) WHERE id = ?",
            (untuned_secs, pytorch_secs, task_id),
        )

    def set_task_error(self, task_id: int, error: str) -> None:
        self._update("UPDATE tasks SET error = ? WHERE id = ?", (rows.clip(error), task_id))

    def tasks(self, run_id: int) -> list[Task]:
        found = self._all(f"{rows.SELECT_TASK} WHERE tasks.run_id = ? ORDER BY tasks.id", (run_id,))
        return [rows.task_from(row) for row in found]

    # trials

    def add_trial(self, trial: Trial) -> int:
        return self._insert(rows.INSERT_TRIAL, rows.trial_values(trial))

    def add_trials(self, trials: Iterable[Trial]) -> int:
        added = 0
        with self._transaction():
            for trial in trials:
                self._db.execute(rows.INSERT_TRIAL, rows.trial_values(trial))
                added += 1
        return added

    def update_measurement(self, trial_id: int, *, run_secs: Sequence[float], best_of: float) -> None:
        self._update(
            "UPDATE trials SET run_secs = ?, best_of = ? WHERE id = ? AND status = 'ok'",
            (rows.secs_json(run_secs), float(best_of), trial_id),
        )

    def set_correct(self, trial_id: int, correct: bool) -> None:
        self._update("UPDATE trials SET correct = ? WHERE id = ?", (int(correct), trial_id))

    def trials(self, run_id: int, *, task_id: int | None = None, after_ordinal: int = 0) -> list[Trial]:
        where, parameters = "run_id = ? AND ordinal > ?", [run_id, after_ordinal]
        if task_id is not None:
            where, parameters = f"{where} AND task_id = ?", [*parameters, task_id]
        found = self._all(f"{rows.SELECT_TRIAL} WHERE {where} ORDER BY ordinal", parameters)
        return [rows.trial_from(row) for row in found]

    def last_ordinal(self, run_id: int) -> int:
        row = self._one("SELECT coalesce(max(ordinal), 0) FROM trials WHERE run_id = ?", (run_id,))
        return int(row[0]) if row else 0

    def top_trials(
        self, workload_hash: str, *, target_id: int, machine_id: int, limit: int, run_id: int | None = None
    ) -> list[Trial]:
        # The first `limit` trials all belong to the first `limit` tasks in order of their best.
        found = self._all(
            f"{rows.SELECT_TRIAL} WHERE id IN ("
            "  SELECT id FROM trials WHERE status = 'ok' AND correct IS NOT 0 AND task_id IN ("
            "    SELECT tasks.id FROM tasks JOIN runs ON runs.id = tasks.run_id"
            "    WHERE tasks.workload_id = (SELECT id FROM workloads WHERE hash = :hash)"
            "      AND runs.target_id = :target AND runs.machine_id = :machine"
            "      AND (:run IS NULL OR runs.id = :run) AND tasks.best_secs IS NOT NULL"
            "    ORDER BY tasks.best_secs LIMIT :limit"
            "  ) ORDER BY best_of, id LIMIT :limit"
            ") ORDER BY best_of, id",
            {"hash": workload_hash, "target": target_id, "machine": machine_id, "run": run_id,
             "limit": limit},
        )  # fmt: skip
        return [rows.trial_from(row) for row in found]

    def measured_trials(
        self, workload_hash: str, *, target_id: int, machine_id: int, limit: int | None = None
    ) -> Iterator[Trial]:
        tasks = self._all(
            "SELECT tasks.id FROM tasks JOIN runs ON runs.id = tasks.run_id"
            " WHERE tasks.workload_id = (SELECT id FROM workloads WHERE hash = ?)"
            " AND runs.target_id = ? AND runs.machine_id = ? ORDER BY runs.id DESC, tasks.id",
            (workload_hash, target_id, machine_id),
        )
        left = -1 if limit is None else limit
        for (task_id,) in tasks:
            found = self._all(
                f"{rows.SELECT_TRIAL} WHERE task_id = ? ORDER BY ordinal LIMIT ?", (task_id, left)
            )
            yield from (rows.trial_from(row) for row in found)
            left -= len(found) if limit is not None else 0

    # rounds

    def add_round(self, record: Round) -> None:
        self._update(rows.INSERT_ROUND, rows.round_values(record))

    def rounds(self, run_id: int) -> list[Round]:
        found = self._all("SELECT * FROM rounds WHERE run_id = ? ORDER BY round, id", (run_id,))
        return [rows.round_from(row) for row in found]

    # facts about a machine

    def machine_fact(self, machine_id: int, name: str) -> Any | None:
        row = self._one(
            "SELECT value_json FROM machine_facts WHERE machine_id = ? AND name = ?", (machine_id, name)
        )
        return None if row is None else json.loads(row[0])

    def set_machine_fact(self, machine_id: int, name: str, value: Any) -> None:
        self._update(
            "INSERT OR REPLACE INTO machine_facts (machine_id, name, value_json) VALUES (?, ?, ?)",
            (machine_id, name, json.dumps(value)),
        )

    # statements

    @contextmanager
    def _transaction(self) -> Iterator[None]:
        # IMMEDIATE: a transaction that first reads and then writes fails if another process wrote between.
        with store_faults(self.path):
            self._db.execute("BEGIN IMMEDIATE")
            try:
                yield
                self._db.execute("COMMIT")
            except BaseException:
                self._db.rollback()
                raise

    def _insert(self, sql: str, parameters: Parameters) -> int:
        with store_faults(self.path):
            row_id = self._db.execute(sql, parameters).lastrowid
        assert row_id is not None
        return row_id

    def _added(self, insert: str, values: Parameters, select: str, key: Parameters) -> int:
        """The id of the row that `select` finds, which `insert` adds if there is none."""
        row = self._one(select, key)
        if row is None:
            self._update(insert, values)
            row = self._one(select, key)
        assert row is not None
        return int(row[0])

    def _update(self, sql: str, parameters: Parameters) -> None:
        with store_faults(self.path):
            self._db.execute(sql, parameters)

    def _one(self, sql: str, parameters: Parameters) -> sqlite3.Row | None:
        with store_faults(self.path):
            row: sqlite3.Row | None = self._db.execute(sql, parameters).fetchone()
            return row

    def _all(self, sql: str, parameters: Parameters) -> list[sqlite3.Row]:
        with store_faults(self.path):
            return self._db.execute(sql, parameters).fetchall()

    def _row(self, sql: str, row_id: int, what: str) -> sqlite3.Row:
        row = self._one(sql, (row_id,))
        if row is None:
            raise StoreError(
                f"The database {self.path} has no {what} {row_id}, which a run refers to.",
                remedy="Check the file with `tuneassist doctor`; `tuneassist history salvage` copies it.",
            )
        return row
