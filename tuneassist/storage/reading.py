"""Read-only connections for the queries of history; any number may be open beside a writing engine."""

from __future__ import annotations

import sqlite3
from collections.abc import Iterator
from contextlib import closing, contextmanager
from pathlib import Path

from tuneassist.storage.connection import BUSY_TIMEOUT_SECS, MEMORY, connect
from tuneassist.storage.faults import store_faults


@contextmanager
def reading(
    path: str | Path, *, busy_timeout_secs: float = BUSY_TIMEOUT_SECS
) -> Iterator[sqlite3.Connection]:
    """A read-only connection for a `with` block; a file that does not exist yet reads as an empty store.

    Raises:
        StoreError: The file can't be used, on entry or inside the block.
    """
    absent = not Path(path).exists()
    conn = connect(MEMORY) if absent else connect(path, readonly=True, busy_timeout_secs=busy_timeout_secs)
    with closing(conn), store_faults(str(path)):
        conn.row_factory = sqlite3.Row
        conn.text_factory = lambda raw: raw.decode(errors="replace")  # a damaged name is still shown
        conn.execute("PRAGMA query_only = ON")
        yield conn
