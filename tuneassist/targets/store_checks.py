"""What doctor finds out about the database, without creating or migrating it."""

from __future__ import annotations

import os
import shutil
import sqlite3
import tempfile
from collections.abc import Iterator
from pathlib import Path

from tuneassist.errors import StoreError
from tuneassist.storage.faults import store_faults
from tuneassist.storage.version import APPLICATION_ID, SCHEMA_VERSION
from tuneassist.targets.checks import Check, CheckStatus

_MIB = 1 << 20
_BUSY_TIMEOUT_SECS = 3.0
_OTHER_FILE = "Name another file with --db PATH, or set TUNEASSIST_DB."

STORE_CHECKS = ("disk", "store")
"""Ids of these checks."""


def store_checks(db: Path) -> Iterator[Check]:
    """Free space at the database, and whether it is sound and can be written."""
    yield check_disk(db)
    try:
        with store_faults(str(db)):
            yield _check_file(db) if db.exists() else _check_folder(db)
    except StoreError as error:
        yield Check("store", CheckStatus.ERROR, error.message, error.remedy)


def check_disk(db: Path, free_bytes: int | None = None) -> Check:
    """Free space where the database is or will be.

    Args:
        db: The database.
        free_bytes: Free space; None: asked of the system.
    """
    folder = _existing(db)
    free = shutil.disk_usage(folder).free if free_bytes is None else free_bytes
    seen = f"{free / _MIB:,.0f} MiB free at {folder}"
    if free >= 1024 * _MIB:
        return Check("disk", CheckStatus.OK, seen)
    status = CheckStatus.WARNING if free >= 100 * _MIB else CheckStatus.ERROR
    return Check("disk", status, seen, f"Make room: a trial takes about 4 KB. {_OTHER_FILE}")


def _check_folder(db: Path) -> Check:
    folder = _existing(db)
    try:
        with tempfile.TemporaryFile(dir=folder):
            pass
    except OSError as error:
        seen = f"{db} is not there, and {folder} can't be written: {error.strerror}"
        return Check("store", CheckStatus.ERROR, seen, _OTHER_FILE)
    return Check("store", CheckStatus.OK, f"{db} is not there yet; its folder can be written")


def _check_file(db: Path) -> Check:
    if not db.is_file():
        return Check("store", CheckStatus.ERROR, f"{db} is no file", _OTHER_FILE)
    if not os.access(db, os.W_OK):
        return Check("store", CheckStatus.ERROR, f"{db} can't be written by this user", _OTHER_FILE)
    conn = sqlite3.connect(f"{db.absolute().as_uri()}?mode=rw", uri=True, timeout=_BUSY_TIMEOUT_SECS)
    try:
        return _check_contents(conn, db)
    finally:
        conn.close()


def _check_contents(conn: sqlite3.Connection, db: Path) -> Check:
    (application,), (version,) = (
        conn.execute(f"PRAGMA {name}").fetchone() for name in ("application_id", "user_version")
    )
    empty = conn.execute("SELECT 1 FROM sqlite_master LIMIT 1").fetchone() is None
    if application != APPLICATION_ID and not empty:
        return Check("store", CheckStatus.ERROR, f"{db} was made by another program", _OTHER_FILE)
    if version > SCHEMA_VERSION:
        seen = f"{db} has schema version {version}; this release knows up to {SCHEMA_VERSION}"
        return Check("store", CheckStatus.ERROR, seen, f"Use the tuneassist that wrote it. {_OTHER_FILE}")
    (verdict,) = conn.execute("PRAGMA quick_check(1)").fetchone()
    if verdict != "ok":
        return Check(
            "store", CheckStatus.ERROR, f"{db} is damaged: {verdict}",
            "`tuneassist history salvage` copies what is readable into a new database.",
        )  # fmt: skip
    try:
        conn.execute("BEGIN IMMEDIATE")
        conn.execute("ROLLBACK")
    except sqlite3.OperationalError as error:
        if error.sqlite_errorcode & 0xFF != sqlite3.SQLITE_BUSY:
            raise
        seen = f"{db} is sound, but another process has held its lock for {_BUSY_TIMEOUT_SECS:.0f} s"
        return Check("store", CheckStatus.WARNING, seen, "Wait for that process, or end it.")
    size = db.stat().st_size / _MIB
    return Check("store", CheckStatus.OK, f"{db} is sound and can be written ({size:.1f} MiB)")


def _existing(path: Path) -> Path:
    """The nearest folder at or above the path that exists."""
    return next((p for p in path.absolute().parents if p.is_dir()), Path("/"))
