"""The schema, as migrations: the only place that creates or changes a table."""

from __future__ import annotations

from sqlite_utils import Migrations
from sqlite_utils.db import Database

from tuneassist.storage import _schema_v1
from tuneassist.storage.version import APPLICATION_ID

MIGRATIONS = Migrations("tuneassist")


@MIGRATIONS(name="0001_first_release")
def _first_release(db: Database) -> None:
    for statement in _schema_v1.STATEMENTS:
        db.execute(statement)
    db.execute(f"PRAGMA application_id = {APPLICATION_ID}")
    # A reader learns the version from `user_version` without loading sqlite-utils, which costs 0.2 s.
    db.execute("PRAGMA user_version = 1")


@MIGRATIONS(name="0002_devices")
def _devices(db: Database) -> None:
    db.execute(
        "ALTER TABLE trials ADD COLUMN device TEXT /* device behind the RPC tracker that ran it, else null */"
    )
    db.execute("PRAGMA user_version = 2")
