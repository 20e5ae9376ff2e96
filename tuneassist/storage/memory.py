"""The store in memory, for tests and fakes: the same schema and statements, no file."""

from __future__ import annotations

from tuneassist.storage.connection import MEMORY, connect
from tuneassist.storage.sqlite import SqliteStore


def memory_store() -> SqliteStore:
    """A new, empty store that is gone when closed."""
    return SqliteStore(connect(MEMORY), MEMORY)
