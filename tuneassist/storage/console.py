"""One SQL statement of the user's, on a connection that can only read."""

from __future__ import annotations

import sqlite3
from collections.abc import Iterator
from contextlib import closing, contextmanager
from dataclasses import dataclass
from typing import Any

from tuneassist.errors import UsageError

_READS = {
    sqlite3.SQLITE_SELECT, sqlite3.SQLITE_READ, sqlite3.SQLITE_FUNCTION, sqlite3.SQLITE_RECURSIVE,
}  # fmt: skip
_READING_PRAGMAS = frozenset(
    {
        "table_info", "table_xinfo", "table_list", "index_list", "index_info", "index_xinfo",
        "foreign_key_list", "user_version", "application_id", "page_count", "page_size", "freelist_count",
        "compile_options", "function_list", "pragma_list", "collation_list", "database_list",
    }
)  # fmt: skip
_STEPS_BETWEEN_SIGNALS = 100_000


@dataclass(frozen=True, slots=True)
class Result:
    """Rows of a query as they come."""

    columns: tuple[str, ...]
    """Made unique: a second `name` is `name_2`."""
    rows: Iterator[tuple[Any, ...]]


@contextmanager
def query(conn: sqlite3.Connection, sql: str) -> Iterator[Result]:
    """Run one statement that reads.

    Args:
        conn: From `reading()`, which opens the file read-only; an authorizer refuses what is left
            (ATTACH, pragmas that set something).
        sql: The statement.

    Raises:
        UsageError: It is wrong, writes, or is more than one.
        KeyboardInterrupt: The user interrupted it.
    """
    conn.set_authorizer(_authorize)
    # Gives Python a chance to see Ctrl-C while SQLite works.
    conn.set_progress_handler(lambda: 0, _STEPS_BETWEEN_SIGNALS)
    try:
        with closing(conn.cursor()) as cursor:
            cursor.row_factory = None
            cursor.execute(sql)
            columns = _unique([column[0] for column in cursor.description or ()])
            yield Result(columns, iter(cursor))
    except sqlite3.Error as error:
        code = getattr(error, "sqlite_errorcode", sqlite3.SQLITE_ERROR) & 0xFF
        if code == sqlite3.SQLITE_INTERRUPT:
            raise KeyboardInterrupt from error
        if code in (sqlite3.SQLITE_AUTH, sqlite3.SQLITE_READONLY):
            raise UsageError(
                f"This statement does more than read ({error}).",
                remedy="`history sql` only reads; use `history note`, `prune` or `delete` to change history.",
            ) from error
        if code not in (sqlite3.SQLITE_ERROR, sqlite3.SQLITE_MISMATCH, sqlite3.SQLITE_TOOBIG):
            raise
        raise UsageError(
            f"SQLite refuses the statement: {str(error).rstrip('.')}.",
            remedy="`SELECT name, sql FROM sqlite_master` shows tables and views with their columns.",
        ) from error
    finally:
        conn.set_authorizer(None)
        conn.set_progress_handler(None, 0)


def _authorize(action: int, first: str | None, second: str | None, *_: str | None) -> int:
    if action == sqlite3.SQLITE_FUNCTION and second == "load_extension":
        return sqlite3.SQLITE_DENY
    if action in _READS:
        return sqlite3.SQLITE_OK
    if action == sqlite3.SQLITE_PRAGMA and first in _READING_PRAGMAS:
        return sqlite3.SQLITE_OK
    return sqlite3.SQLITE_DENY


def _unique(names: list[str]) -> tuple[str, ...]:
    unique: list[str] = []
    for name in names:
        number, candidate = 1, name
        while candidate in unique:
            number += 1
            candidate = f"{name}_{number}"
        unique.append(candidate)
    return tuple(unique)
