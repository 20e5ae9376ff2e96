"""The app's `Reader` over the SQLite file: one read-only connection a call, so that any thread may read."""

from __future__ import annotations

import sqlite3
from collections.abc import Sequence
from pathlib import Path
from typing import Any

from tuneassist.errors import UsageError
from tuneassist.records import Round, Run, Task, Trial
from tuneassist.storage import queries, rows
from tuneassist.storage.faults import no_such_run
from tuneassist.storage.filters import RunFilter
from tuneassist.storage.models import ModelRow, stored_models
from tuneassist.storage.queries import RunRow, TrialRow
from tuneassist.storage.reading import reading
from tuneassist.ui.services import KnownBest

_BUSY_SECS = 3.0


class StoreReader:
    """Reads one database; an absent file is an empty store."""

    def __init__(self, path: Path) -> None:
        self._path = path

    def runs(
        self,
        *,
        pattern: str = "",
        order: str = "id",
        descending: bool = True,
        limit: int = 200,
        offset: int = 0,
    ) -> Sequence[RunRow]:
        """Runs whose workloads, note, target or state match the pattern."""
        if not self._path.exists():
            return []
        wanted = RunFilter(text=pattern.strip())
        with reading(self._path, busy_timeout_secs=_BUSY_SECS) as conn:
            return queries.runs(conn, wanted, order=order, descending=descending, limit=limit, offset=offset)

    def run_row(self, run_id: int) -> RunRow:
        """One run. Raises `UsageError` if there is none."""
        with reading(self._path, busy_timeout_secs=_BUSY_SECS) as conn:
            return queries.run_row(conn, run_id, str(self._path))

    def run(self, run_id: int) -> Run:
        """One run in full. Raises `UsageError` if there is none."""
        with reading(self._path, busy_timeout_secs=_BUSY_SECS) as conn:
            row = conn.execute(f"{rows.SELECT_RUN} WHERE id = ?", (run_id,)).fetchone()
            if row is None:
                raise no_such_run(conn, run_id, str(self._path))
            return rows.run_from(row)

    def trials(
        self,
        run_id: int,
        *,
        task_id: int | None = None,
        status: str = "",
        order: str = "ordinal",
        descending: bool = True,
        limit: int = 200,
        offset: int = 0,
    ) -> Sequence[TrialRow]:
        """One page of trials."""
        with reading(self._path, busy_timeout_secs=_BUSY_SECS) as conn:
            return queries.trials(
                conn, run_id, task_id=task_id, status=status, order=order, descending=descending, limit=limit,
                offset=offset,
            )  # fmt: skip

    def trial(self, trial_id: int) -> TrialRow:
        """One trial. Raises `UsageError` if there is none."""
        with reading(self._path, busy_timeout_secs=_BUSY_SECS) as conn:
            return queries.trial_row(conn, trial_id)

    def tasks(self, run_id: int) -> Sequence[Task]:
        """The run's tasks."""
        found = self._all(f"{rows.SELECT_TASK} WHERE tasks.run_id = ? ORDER BY tasks.id", (run_id,))
        return [rows.task_from(row) for row in found]

    def rounds(self, run_id: int) -> Sequence[Round]:
        """The run's rounds."""
        found = self._all("SELECT * FROM rounds WHERE run_id = ? ORDER BY round, id", (run_id,))
        return [rows.round_from(row) for row in found]

    def trials_after(self, run_id: int, ordinal: int, *, limit: int) -> Sequence[Trial]:
        """Full trials in order of ordinal."""
        sql = f"{rows.SELECT_TRIAL} WHERE run_id = ? AND ordinal > ? ORDER BY ordinal LIMIT ?"
        return [rows.trial_from(row) for row in self._all(sql, (run_id, ordinal, limit))]

    def trial_id(self, run_id: int, ordinal: int) -> int:
        """The id of a run's trial. Raises `UsageError` if there is none."""
        found = self._all("SELECT id FROM trials WHERE run_id = ? AND ordinal = ?", (run_id, ordinal))
        if not found:
            raise UsageError(
                f"Run {run_id} has no trial {ordinal} in the store.", remedy="Try again in a moment."
            )
        return int(found[0]["id"])

    def best_curve(self, task_id: int) -> Sequence[tuple[int, float, float]]:
        """(trial of the task, seconds since the run started, best latency) at each improvement."""
        sql = """
            SELECT number, measured_at - started_at AS secs, best_of FROM (
                SELECT row_number() OVER (ORDER BY ordinal) AS number, measured_at, started_at, best_of,
                    min(best_of) OVER (
                        ORDER BY ordinal ROWS BETWEEN UNBOUNDED PRECEDING AND 1 PRECEDING
                    ) AS before
                FROM trials JOIN runs ON runs.id = trials.run_id
                WHERE task_id = ? AND trials.correct IS NOT 0
            ) WHERE best_of IS NOT NULL AND (before IS NULL OR best_of < before) ORDER BY number
        """
        return [(row["number"], row["secs"], row["best_of"]) for row in self._all(sql, (task_id,))]

    def known_best(self) -> dict[str, KnownBest]:
        """By workload spec, over the runs of the machine that ran last."""
        sql = """
            SELECT workloads.spec, min(tasks.best_secs) AS best_secs, sum(tasks.trial_count) AS trials
            FROM tasks JOIN runs ON runs.id = tasks.run_id JOIN workloads ON workloads.id = tasks.workload_id
            WHERE runs.machine_id = (SELECT machine_id FROM runs ORDER BY id DESC LIMIT 1)
            GROUP BY workloads.id
        """
        return {row["spec"]: KnownBest(row["best_secs"], row["trials"]) for row in self._all(sql)}

    def models(self) -> Sequence[ModelRow]:
        """Checkpoints that the store knows, newest first."""
        with reading(self._path, busy_timeout_secs=_BUSY_SECS) as conn:
            return stored_models(conn)

    def _all(self, sql: str, values: Sequence[Any] = ()) -> list[sqlite3.Row]:
        if not self._path.exists():
            return []
        with reading(self._path, busy_timeout_secs=_BUSY_SECS) as conn:
            return conn.execute(sql, values).fetchall()
