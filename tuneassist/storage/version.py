"""How a file says that it is ours, and of which schema."""

from __future__ import annotations

APPLICATION_ID = 0x54554E45
"""`PRAGMA application_id` of our files ("TUNE")."""

SCHEMA_VERSION = 2
"""`PRAGMA user_version` that this release reads and writes: the number of migrations."""
