"""Copy what is readable of a damaged database into a new one."""

from __future__ import annotations

import heapq
import json
import shutil
import sqlite3
import tempfile
from collections.abc import Iterator
from contextlib import closing
from dataclasses import dataclass
from pathlib import Path

from tuneassist.errors import StoreError, UsageError
from tuneassist.storage.connection import connect
from tuneassist.storage.faults import folder_fault, store_faults
from tuneassist.storage.version import APPLICATION_ID

_TABLES = (
    "machines", "targets", "workloads", "machine_facts", "runs", "tasks", "trials", "rounds", "cost_models",
)  # fmt: skip
"""Each after those that it refers to."""

_INDEX_OF_IDS = {"trials": "trials_by_task", "tasks": "tasks_by_run", "rounds": "rounds_by_task"}
_JSON_COLUMNS = ("features", "json", "run_secs", "phase_secs")
_SIZE = ("page_count", "page_size")
_SMALLEST_ROW_BYTES = 64
_MOST_ERRORS = 200_000
"""Where so many reads failed, what is left of the table is given up."""


@dataclass(frozen=True, slots=True)
class Salvaged:
    """Rows of one table that were copied."""

    table: str
    rows: int
    lost: int
    """Rows that were read, but hold what is none of their column, or refer to what could not be read."""
    damaged: bool
    """Whether some part of the table could not be read."""


def salvage(source: Path, target: Path) -> list[Salvaged]:
    """Copy every readable row of `source` to the new database `target`; `source` is not touched.

    Raises:
        UsageError: There is no `source`, or `target` exists.
        StoreError: Nothing at all is readable, or `target` can't be written.
    """
    if not source.is_file():
        raise UsageError(f"There is no file {source}.", remedy="Name the damaged database.")
    if target.exists():
        raise UsageError(f"{target} exists already.", remedy="Name a file that does not exist yet.")
    with tempfile.TemporaryDirectory(dir=_folder(target)) as scratch:
        copy = _copied(source, Path(scratch))
        try:
            with closing(_damaged(copy)) as old, closing(connect(target)) as new:
                done = [_copy_table(old, new, table, str(target)) for table in _TABLES]
        except sqlite3.DatabaseError as error:
            _remove(target)
            raise StoreError(
                f"Nothing in {source} can be read: {error}.",
                remedy="Use a backup: a migration leaves one beside the file, named *.bak.",
            ) from error
    return done


def _folder(target: Path) -> Path:
    try:
        target.absolute().parent.mkdir(parents=True, exist_ok=True)
    except OSError as error:
        raise folder_fault(str(target), error) from error
    return target.absolute().parent


def _copied(source: Path, scratch: Path) -> Path:
    """A copy with its log, since opening a database in WAL mode writes to it."""
    try:
        copy = Path(shutil.copy(source, scratch / "copy.sqlite"))
        log = source.with_name(f"{source.name}-wal")
        if log.exists():
            shutil.copy(log, scratch / "copy.sqlite-wal")
    except OSError as error:
        raise folder_fault(str(source), error) from error
    return copy


def _damaged(path: Path) -> sqlite3.Connection:
    conn = sqlite3.connect(path)
    # Without this SQLite refuses a file that is shorter than its header says.
    conn.execute("PRAGMA writable_schema = ON")
    conn.text_factory = lambda raw: raw.decode(errors="replace")
    if conn.execute("PRAGMA application_id").fetchone()[0] != APPLICATION_ID:
        conn.close()
        raise sqlite3.DatabaseError("it is no database of tuneassist, or its first page is lost")
    return conn


def _copy_table(old: sqlite3.Connection, new: sqlite3.Connection, table: str, name: str) -> Salvaged:
    known = {row[1] for row in new.execute(f"PRAGMA table_info({table})")}
    columns = [row[1] for row in old.execute(f"PRAGMA table_info({table})") if row[1] in known]
    if not columns:
        return Salvaged(table, 0, 0, damaged=True)
    if table == "tasks":  # kept by triggers on trials, as the trials come
        columns = [name for name in columns if not name.endswith("_count") and not name.startswith("best_")]
    reader = _Reader(old, table, columns)
    json_columns = [at for at, name in enumerate(columns) if name.endswith("_json") or name in _JSON_COLUMNS]
    insert = f"INSERT INTO {table} ({', '.join(columns)}) VALUES ({', '.join('?' * len(columns))})"
    rows = lost = 0
    with store_faults(name):
        new.execute("BEGIN IMMEDIATE")
        for row in reader.rows():
            if not all(_is_json(row[at]) for at in json_columns):
                lost += 1
                continue
            try:
                new.execute(insert, row)
                rows += 1
            except sqlite3.IntegrityError:
                lost += 1
        new.execute("COMMIT")
    return Salvaged(table, rows, lost, reader.damaged)


class _Reader:
    """Reads a table by row id, around the pages that can't be read."""

    def __init__(self, conn: sqlite3.Connection, table: str, columns: list[str]) -> None:
        self._conn = conn
        self._table = table
        self._select = f"SELECT rowid, {', '.join(columns)} FROM {table} NOT INDEXED"
        self.damaged = False

    def rows(self) -> Iterator[tuple[object, ...]]:
        # Ranges of row ids still to be read, the longest first. One that hits a bad page is halved from
        # where it broke off.
        high = self._last_id()
        ranges = [(-high - 1, -1, high)]
        errors = 0
        while ranges and errors < _MOST_ERRORS:
            _, low, high = heapq.heappop(ranges)
            try:
                query = f"{self._select} WHERE rowid > ? AND rowid <= ? ORDER BY rowid"
                for row_id, *row in self._conn.execute(query, (low, high)):
                    low = row_id
                    yield tuple(row)
                if low < high and self._last_up_to(high) > low:
                    raise sqlite3.DatabaseError("a row id that is none ended the range")
            except sqlite3.DatabaseError:
                self.damaged = True
                errors += 1
                middle = (low + high) // 2
                for start, end in ((low, middle), (middle, high)):
                    if high - low > 1:
                        heapq.heappush(ranges, (start - end, start, end))

    def _last_up_to(self, high: int) -> int:
        query = f"SELECT rowid FROM {self._table} NOT INDEXED WHERE rowid <= ? ORDER BY rowid DESC LIMIT 1"
        row = self._conn.execute(query, (high,)).fetchone()
        return int(row[0]) if row else -1

    def _last_id(self) -> int:
        """The largest row id; of an index where the table's end is lost, else a bound by the file's size."""
        index = _INDEX_OF_IDS.get(self._table)
        for source in (self._table, f"{self._table} INDEXED BY {index}" if index else self._table):
            try:
                row = self._conn.execute(f"SELECT max(rowid) FROM {source}").fetchone()
                return int(row[0] or 0)
            except sqlite3.DatabaseError:
                self.damaged = True
        pages, page_bytes = (self._conn.execute(f"PRAGMA {name}").fetchone()[0] for name in _SIZE)
        return int(pages * page_bytes // _SMALLEST_ROW_BYTES)


def _is_json(value: object) -> bool:
    try:
        json.loads("null" if value is None else str(value))
    except ValueError:
        return False
    return True


def _remove(target: Path) -> None:
    for suffix in ("", "-wal", "-shm"):
        target.with_name(f"{target.name}{suffix}").unlink(missing_ok=True)
