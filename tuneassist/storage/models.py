"""Checkpoints of cost models: those that a store knows, and those that came with the installation."""

from __future__ import annotations

import json
import sqlite3
import time
from collections.abc import Mapping
from dataclasses import dataclass, field
from pathlib import Path
from typing import TYPE_CHECKING, Any

from tuneassist.config import assets_path
from tuneassist.errors import UsageError
from tuneassist.storage.faults import store_faults

if TYPE_CHECKING:
    from tuneassist.storage.sqlite import SqliteStore

PRETRAINED = "pretrained"
"""Names the checkpoint that came with the installation."""


@dataclass(frozen=True, slots=True)
class ModelRow:
    """A checkpoint of a cost model."""

    kind: str
    path: str
    sha256: str
    trained_on: str
    created_at: float
    metrics: Mapping[str, Any] = field(default_factory=dict)


def stored_models(conn: sqlite3.Connection) -> list[ModelRow]:
    """Checkpoints that the store knows, newest first."""
    found = conn.execute("SELECT * FROM cost_models ORDER BY created_at DESC, id DESC").fetchall()
    return [
        ModelRow(
            row["kind"], row["path"], row["sha256"], row["trained_on"], row["created_at"],
            _object(row["metrics_json"]),
        )
        for row in found
    ]  # fmt: skip


def packaged_models() -> list[ModelRow]:
    """Checkpoints in the installation's assets; a JSON file of the same name holds their figures."""
    return [described(path) for path in sorted(assets_path().glob("*.pt"))]


def packaged_checkpoint(kind: str) -> Path | None:
    """The checkpoint of that kind in the installation's assets, if there is one."""
    found = [Path(row.path) for row in packaged_models() if row.kind == kind]
    return found[0] if found else None


def checkpoint_path(name: str) -> Path:
    """The file of a checkpoint named by its path, or `pretrained`.

    Raises:
        UsageError: There is none.
    """
    packaged = sorted(assets_path().glob("*.pt")) if name == PRETRAINED else []
    path = packaged[0] if packaged else Path(name).expanduser()
    if path.is_file():
        return path
    if name == PRETRAINED:
        raise UsageError(
            f"This installation came without a pretrained model: {assets_path()} holds none.",
            remedy="Name a checkpoint file; `tuneassist model list` shows those that are known.",
        )
    raise UsageError(
        f"There is no checkpoint {name}.",
        remedy=f"Name a checkpoint file, or {PRETRAINED}; `tuneassist model list` shows what is known.",
    )


def described(path: Path) -> ModelRow:
    """A checkpoint file as the JSON file of the same name describes it, if there is one.

    Raises:
        OSError: There is no such checkpoint.
    """
    try:
        about = _object(path.with_suffix(".json").read_text(encoding="utf-8"))
    except (OSError, UnicodeDecodeError):
        about = {}
    return ModelRow(
        str(about.get("kind", "")), str(path), str(about.get("sha256", "")),
        str(about.get("trained_on", "")), path.stat().st_mtime, about,
    )  # fmt: skip


def _object(text: str) -> dict[str, Any]:
    try:
        value = json.loads(text)
    except ValueError:
        return {}
    return value if isinstance(value, dict) else {}


def add_model(
    store: SqliteStore, *, kind: str, path: str, sha256: str, trained_on: str, metrics: Mapping[str, Any]
) -> None:
    """Note a checkpoint; one of the same path is replaced.

    Raises:
        StoreError: The file can't be written.
    """
    with store_faults(store.path), store.connection as conn:
        conn.execute("DELETE FROM cost_models WHERE path = ?", (path,))
        conn.execute(
            "INSERT INTO cost_models (kind, path, sha256, trained_on, metrics_json, created_at)"
            " VALUES (?, ?, ?, ?, ?, ?)",
            (kind, path, sha256, trained_on, json.dumps(metrics), time.time()),
        )
