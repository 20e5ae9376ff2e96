"""What changes history: notes, removal of runs, and giving space back."""

from __future__ import annotations

import shutil
import sqlite3
from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path

from tuneassist.errors import StoreError, UsageError
from tuneassist.storage.connection import connect
from tuneassist.storage.faults import no_such_run, store_faults
from tuneassist.storage.filters import RunFilter, alive_runs
from tuneassist.storage.queries import RunRow, runs

_RUNS_AT_ONCE = 20
"""Runs removed in one transaction: an engine that writes meanwhile waits for no longer than that."""


@dataclass(frozen=True, slots=True)
class Prunable:
    """What `prune` would do."""

    gone: tuple[RunRow, ...]
    kept_best: tuple[RunRow, ...]
    """Match as well, but hold the best of a workload on their machine and target."""
    kept_alive: tuple[RunRow, ...]
    """Match as well, but an engine works on them."""


def prunable(conn: sqlite3.Connection, wanted: RunFilter) -> Prunable:
    """Sort the runs that match into those that may go and those that stay.

    Args:
        conn: From `reading()`.
        wanted: Which runs.
    """
    holders = {run_id for (run_id,) in conn.execute("SELECT run_id FROM best_trials")}
    found = runs(conn, wanted)
    return Prunable(
        gone=tuple(run for run in found if not run.alive and run.id not in holders),
        kept_best=tuple(run for run in found if not run.alive and run.id in holders),
        kept_alive=tuple(run for run in found if run.alive),
    )


def delete_runs(path: str, run_ids: Sequence[int], *, keep_best: bool) -> list[int]:
    """Remove runs with their tasks, trials and rounds; return the ids that went.

    Runs that an engine works on stay, and with `keep_best` those that hold the best of a workload at
    the moment of removal.

    Raises:
        StoreError: The file can't be written.
    """
    gone: list[int] = []
    conn = connect(path)
    with store_faults(path):
        try:
            for start in range(0, len(run_ids), _RUNS_AT_ONCE):
                conn.execute("BEGIN IMMEDIATE")
                stay = set(alive_runs(conn))
                if keep_best:
                    stay |= {run_id for (run_id,) in conn.execute("SELECT run_id FROM best_trials")}
                chosen = [run_id for run_id in run_ids[start : start + _RUNS_AT_ONCE] if run_id not in stay]
                conn.executemany("DELETE FROM runs WHERE id = ?", [(run_id,) for run_id in chosen])
                conn.execute("COMMIT")
                gone += chosen
        finally:
            conn.close()
    return gone


def set_note(path: str, run_id: int, note: str) -> None:
    """Replace the note of a run.

    Raises:
        UsageError: There is no such run.
        StoreError: The file can't be written.
    """
    conn = connect(path)
    with store_faults(path):
        try:
            with conn:
                changed = conn.execute("UPDATE runs SET note = ? WHERE id = ?", (note, run_id)).rowcount
            if not changed:
                raise no_such_run(conn, run_id, path)
        finally:
            conn.close()


def problems(conn: sqlite3.Connection, most: int = 5) -> list[str]:
    """What SQLite finds wrong with the file, at most so many findings; empty for a sound one.

    Reads the whole file: seconds for each gigabyte.

    Args:
        conn: From `reading()`.
        most: Findings after which the check stops.
    """
    try:
        found = [str(text) for (text,) in conn.execute(f"PRAGMA quick_check({int(most)})") if text != "ok"]
        orphans = conn.execute("PRAGMA foreign_key_check").fetchmany(most - len(found))
    except sqlite3.DatabaseError as error:
        return [str(error)]
    return [*found, *(f"row {row[1]} of {row[0]} refers to no row of {row[2]}" for row in orphans)]


def vacuum(path: str) -> tuple[int, int]:
    """Rewrite the file without its free pages; return its size before and after, in bytes.

    Raises:
        UsageError: There is no such file.
        StoreError: An engine works on the file, the disk has no room for the copy, or another fault.
    """
    file = Path(path)
    if not file.exists():
        raise UsageError(f"There is no database at {path}.", remedy="Name the file with --db PATH.")
    conn = connect(path)
    with store_faults(path):
        try:
            running = alive_runs(conn)
            if running:
                raise StoreError(
                    f"Run {running[0]} is being worked on, and would have to wait for long.",
                    remedy="Vacuum when no run is under way.",
                )
            conn.execute("PRAGMA wal_checkpoint(TRUNCATE)")
            before = file.stat().st_size
            free = shutil.disk_usage(file.absolute().parent).free
            if free < before * 2:  # the copy, and the log through which it comes back
                raise StoreError(
                    f"To vacuum {path} ({before} bytes) twice its size must be free; {free} bytes are.",
                    remedy="Free some space, or move the file to a larger disk.",
                )
            conn.execute("VACUUM")
            conn.execute("PRAGMA wal_checkpoint(TRUNCATE)")
        finally:
            conn.close()
    return before, file.stat().st_size
