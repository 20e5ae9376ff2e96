"""What SQLite complains of, in words that say what to do next."""

from __future__ import annotations

import errno
import sqlite3
from collections.abc import Iterator
from contextlib import contextmanager

from tuneassist.errors import StoreError, UsageError

_OTHER_FILE = "Name another file with --db PATH, or set TUNEASSIST_DB."

_FAULTS: dict[int, tuple[str, str]] = {
    sqlite3.SQLITE_NOTADB: (
        "is not a SQLite database",
        f"{_OTHER_FILE} If it was one, `tuneassist history salvage` copies what is readable.",
    ),
    sqlite3.SQLITE_CORRUPT: (
        "is damaged",
        "Copy what is readable with `tuneassist history salvage OLD NEW`, then use the new file.",
    ),
    sqlite3.SQLITE_BUSY: (
        "is locked by another process",
        "Wait for that process or end it, then try again; `lsof` or `fuser` on the file names it.",
    ),
    sqlite3.SQLITE_FULL: (
        "can't grow: the disk is full",
        "Free some space (`tuneassist history prune`, `vacuum`), or move the file and name it with --db.",
    ),
    sqlite3.SQLITE_READONLY: (
        "can't be written: the file or its folder is read-only",
        f"Give yourself write permission on both. {_OTHER_FILE}",
    ),
    sqlite3.SQLITE_PERM: ("can't be opened: permission denied", _OTHER_FILE),
    sqlite3.SQLITE_CANTOPEN: (
        "can't be opened",
        f"Check that its folder exists and that you may write there. {_OTHER_FILE}",
    ),
    sqlite3.SQLITE_IOERR: (
        "can't be read or written: the disk reports an error",
        "Check the disk, its free space and the file size limit (`ulimit -f`).",
    ),
    sqlite3.SQLITE_CONSTRAINT: (
        "refuses a row",
        "Another process may write the same run; let only one engine work on it.",
    ),
}
_FAULTS[sqlite3.SQLITE_LOCKED] = _FAULTS[sqlite3.SQLITE_PROTOCOL] = _FAULTS[sqlite3.SQLITE_BUSY]


@contextmanager
def store_faults(path: str) -> Iterator[None]:
    """Turn what SQLite raises about the file into a `StoreError`.

    Errors of our own making (a wrong statement, a closed store, another thread) pass unchanged.
    """
    try:
        yield
    except sqlite3.Error as error:
        # An extended code such as SQLITE_IOERR_WRITE holds its kind in the low byte.
        code = getattr(error, "sqlite_errorcode", 0) & 0xFF
        if code == sqlite3.SQLITE_ERROR and str(error).startswith("no such"):
            code = sqlite3.SQLITE_CORRUPT  # our statements fit the schema, so the schema is not as we made it
        fault = _FAULTS.get(code)
        if fault is None:
            raise
        what, remedy = fault
        raise StoreError(f"The database {path} {what} ({error}).", remedy=remedy) from error
    except UnicodeDecodeError as error:
        # Text of the file, or SQLite's message that quotes it, is no text any more.
        what, remedy = _FAULTS[sqlite3.SQLITE_CORRUPT]
        raise StoreError(f"The database {path} {what} ({error.reason}).", remedy=remedy) from error


def garbled(what: str, seen: object) -> StoreError:
    """The error for a value that only damage can have put into its column."""
    return StoreError(
        f"The database holds {str(seen)[:80]!r} for {what}; it is damaged.",
        remedy=_FAULTS[sqlite3.SQLITE_CORRUPT][1],
    )


def folder_fault(path: str, error: OSError) -> StoreError:
    """The error for a folder that can't be made or looked into."""
    code = sqlite3.SQLITE_FULL if error.errno == errno.ENOSPC else sqlite3.SQLITE_CANTOPEN
    what, remedy = _FAULTS[code]
    return StoreError(f"The database {path} {what} ({error.strerror or error}).", remedy=remedy)


def no_such_run(conn: sqlite3.Connection, run_id: int, path: str) -> UsageError:
    """The error for a run id that names nothing, with the nearest ids that do."""
    near = conn.execute("SELECT id FROM runs ORDER BY abs(id - ?), id LIMIT 3", (run_id,)).fetchall()
    if not near:
        return UsageError(
            f"There is no run {run_id}: {path} holds no run.", remedy="Tune something first, or name --db."
        )
    ids = ", ".join(str(near_id) for near_id in sorted(row[0] for row in near))
    return UsageError(f"There is no run {run_id}.", remedy=f"Nearest: {ids}; `tuneassist history` lists all.")
