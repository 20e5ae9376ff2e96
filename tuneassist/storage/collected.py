"""Runs that were made for a data set."""

from __future__ import annotations

import json
from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from tuneassist.records import RunStatus
from tuneassist.storage.reading import reading
from tuneassist.storage.rows import run_status_from


@dataclass(frozen=True, slots=True)
class Collected:
    """One such run and how far it is."""

    run_id: int
    status: RunStatus
    requested: int
    trials: int
    valid: int


def collected_runs(path: str | Path, settings: Mapping[str, Any]) -> list[Collected]:
    """The runs whose settings hold all of these values, the newest first.

    Raises:
        StoreError: The file can't be used.
    """
    with reading(path) as conn:
        rows = conn.execute(
            "SELECT runs.id, runs.status, runs.trials_requested, runs.config_json,"
            " coalesce(sum(tasks.trial_count), 0) AS trials, coalesce(sum(tasks.ok_count), 0) AS valid"
            " FROM runs LEFT JOIN tasks ON tasks.run_id = runs.id GROUP BY runs.id ORDER BY runs.id DESC"
        ).fetchall()
    return [
        Collected(
            row["id"], run_status_from(row["status"]), row["trials_requested"], row["trials"], row["valid"]
        )
        for row in rows
        if settings.items() <= _values(row["config_json"], settings).items()
    ]


def _values(config_json: str, names: Mapping[str, Any]) -> dict[str, Any]:
    values = json.loads(config_json)
    return {name: values[name] for name in names if name in values}
