"""Connections to the file: found to be ours, of this release's schema, in WAL mode.

Readers go through `sqlite3` alone; sqlite-utils is imported only where there is something to migrate.
"""

from __future__ import annotations

import sqlite3
import time
from pathlib import Path

from tuneassist.errors import StoreError
from tuneassist.storage.faults import folder_fault, store_faults
from tuneassist.storage.version import APPLICATION_ID, SCHEMA_VERSION

BUSY_TIMEOUT_SECS = 15.0
"""How long a statement waits for another process before it gives up."""

MEMORY = ":memory:"

_PAGE_BYTES = 8192
"""A trial takes 1 to 4 KB, most of it one text: on the usual 4 KB pages half of each page stays empty."""


def connect(
    path: str | Path, *, readonly: bool = False, busy_timeout_secs: float = BUSY_TIMEOUT_SECS
) -> sqlite3.Connection:
    """Open the database, for this thread alone; create or migrate it where needed.

    Args:
        path: The file, or `:memory:`.
        readonly: Refuse writes; an absent file is then an error. A file of an older schema is still
            migrated, where it can be written.
        busy_timeout_secs: How long to wait for another process.

    Raises:
        StoreError: The file can't be used; the message says why.
    """
    name = str(path)
    try:
        with store_faults(name):
            if readonly:
                return _connect_current(Path(path), busy_timeout_secs)
            if name != MEMORY:
                Path(path).parent.mkdir(parents=True, exist_ok=True)
            return _connect_writable(name, busy_timeout_secs)
    except OSError as error:
        raise folder_fault(name, error) from error


def _connect_current(path: Path, busy_timeout_secs: float) -> sqlite3.Connection:
    if not path.exists():
        raise StoreError(
            f"There is no database at {path}.",
            remedy="Tune something first, or name the file with --db PATH.",
        )
    conn = _connect_readonly(path, busy_timeout_secs)
    try:
        if _version(conn, str(path)) == SCHEMA_VERSION:
            return conn
    except BaseException:
        conn.close()
        raise
    conn.close()
    _connect_writable(str(path), busy_timeout_secs).close()
    return _connect_readonly(path, busy_timeout_secs)


def _connect_writable(name: str, busy_timeout_secs: float) -> sqlite3.Connection:
    conn = sqlite3.connect(name, timeout=busy_timeout_secs)
    try:
        version = _version(conn, name)
        if version == 0:
            conn.execute(f"PRAGMA page_size = {_PAGE_BYTES}")
        _use_wal(conn, busy_timeout_secs)
        conn.execute("PRAGMA synchronous = NORMAL")
        if version < SCHEMA_VERSION:
            _migrate(conn, name)
        conn.execute("PRAGMA foreign_keys = ON")
    except BaseException:
        conn.close()
        raise
    return conn


def _connect_readonly(path: Path, busy_timeout_secs: float) -> sqlite3.Connection:
    uri = path.absolute().as_uri()
    conn = sqlite3.connect(f"{uri}?mode=ro", uri=True, timeout=busy_timeout_secs)
    try:
        conn.execute("SELECT 1 FROM sqlite_master").fetchone()
    except sqlite3.OperationalError as error:
        conn.close()
        wal = path.with_name(f"{path.name}-wal")
        unwritable = (sqlite3.SQLITE_CANTOPEN, sqlite3.SQLITE_READONLY)
        if error.sqlite_errorcode & 0xFF not in unwritable or (wal.is_file() and wal.stat().st_size):
            raise
        # A file in WAL mode on a read-only medium can be read only if we vouch that nobody writes it.
        conn = sqlite3.connect(f"{uri}?immutable=1", uri=True, timeout=busy_timeout_secs)
    except BaseException:
        conn.close()
        raise
    conn.execute("PRAGMA query_only = ON")
    return conn


def _use_wal(conn: sqlite3.Connection, busy_timeout_secs: float) -> None:
    """Switch to WAL; two processes that do so to one new file don't wait for each other by themselves."""
    deadline = time.monotonic() + busy_timeout_secs
    while True:
        try:
            conn.execute("PRAGMA journal_mode = WAL")
            return
        except sqlite3.OperationalError as error:
            if error.sqlite_errorcode & 0xFF != sqlite3.SQLITE_BUSY or time.monotonic() > deadline:
                raise
            time.sleep(0.02)


def _version(conn: sqlite3.Connection, name: str) -> int:
    """The file's schema version, 0 for an empty one.

    Raises:
        StoreError: It belongs to another program, or to a newer release.
    """
    application: int = conn.execute("PRAGMA application_id").fetchone()[0]
    version: int = conn.execute("PRAGMA user_version").fetchone()[0]
    empty = conn.execute("SELECT 1 FROM sqlite_master LIMIT 1").fetchone() is None
    if empty and application == 0:
        return 0
    if application != APPLICATION_ID:
        raise StoreError(
            f"The database {name} was made by another program.",
            remedy="Name another file with --db PATH, or set TUNEASSIST_DB.",
        )
    if version > SCHEMA_VERSION:
        raise StoreError(
            f"The database {name} has schema version {version}; this release knows up to {SCHEMA_VERSION}.",
            remedy="Use the newer tuneassist that wrote it, or name another file with --db PATH.",
        )
    return version


def _migrate(conn: sqlite3.Connection, name: str) -> None:
    from sqlite_utils.db import Database

    from tuneassist.storage.schema import MIGRATIONS

    conn.execute("BEGIN IMMEDIATE")  # another process may be migrating: what we saw can be out of date
    try:
        version = _version(conn, name)
        if 0 < version < SCHEMA_VERSION:
            _back_up(conn, name, version)
        MIGRATIONS.apply(Database(conn))
        conn.execute("COMMIT")
    except BaseException:
        if conn.in_transaction:
            conn.execute("ROLLBACK")
        raise


def _back_up(conn: sqlite3.Connection, name: str, version: int) -> Path:
    """Copy the file aside, complete and consistent, before its schema changes."""
    target = Path(f"{name}.v{version}.bak")
    number = 1
    while target.exists():
        number += 1
        target = Path(f"{name}.v{version}.{number}.bak")
    source = sqlite3.connect(name)
    copy = sqlite3.connect(target)
    try:
        source.backup(copy)
    finally:
        copy.close()
        source.close()
    return target
