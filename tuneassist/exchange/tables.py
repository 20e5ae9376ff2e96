"""Trials as a table: CSV, and Parquet where pyarrow is installed."""

from __future__ import annotations

import csv
import importlib.util
import itertools
import json
import sqlite3
from collections.abc import Iterator, Sequence
from pathlib import Path
from typing import Any

from tuneassist.errors import MachineError, UsageError
from tuneassist.exchange.output import new_file
from tuneassist.exchange.selection import Wanted, find_workload
from tuneassist.storage.filters import like, matches
from tuneassist.storage.sqlite import SqliteStore

COLUMNS = {
    "trial_id": "trials.id", "run_id": "trials.run_id", "ordinal": "trials.ordinal", "task": "tasks.name",
    "workload": "workloads.name", "workload_spec": "workloads.spec", "workload_hash": "workloads.hash",
    "op": "workloads.op", "flops": "workloads.flops", "machine": "machines.hostname", "cpu": "machines.cpu",
    "cores": "machines.cores", "target": "targets.spec", "target_json": "targets.json",
    "cost_model": "runs.cost_model", "round": "trials.round", "status": "trials.status",
    "best_of": "trials.best_of", "run_secs": "trials.run_secs", "predicted_secs": "trials.predicted_secs",
    "score": "trials.score", "build_secs": "trials.build_secs", "source": "trials.source",
    "slow": "trials.slow", "correct": "trials.correct", "peak_rss_bytes": "trials.peak_rss_bytes",
    "measured_at": "trials.measured_at", "module_hash": "trials.module_hash", "error": "trials.error",
    "trace_json": "trials.trace_json",
}  # fmt: skip
"""Columns of the table and where they come from. Times of day are Unix time, durations seconds."""

_BATCH = 5000


def export_csv(store: SqliteStore, wanted: Wanted, path: Path, *, force: bool) -> dict[str, Any]:
    """Write every trial that is asked for, failed ones included, as CSV with a header line.

    `run_secs` is a JSON array; absent values are empty.
    """
    count = 0
    with new_file(path, force=force) as part, part.open("w", newline="", encoding="utf-8") as file:
        writer = csv.writer(file, lineterminator="\n")
        writer.writerow(COLUMNS)
        for row in _rows(store, wanted):
            writer.writerow(row)
            count += 1
        _refuse_empty(count, wanted)
    return {"trials": count}


def export_parquet(store: SqliteStore, wanted: Wanted, path: Path, *, force: bool) -> dict[str, Any]:
    """Write the same table as Parquet; `run_secs` is a list of doubles.

    Raises:
        MachineError: pyarrow is not installed.
    """
    if importlib.util.find_spec("pyarrow") is None:
        raise MachineError(
            "Parquet needs pyarrow, which is not installed.",
            remedy="Install it with `pip install pyarrow`, or use --format csv.",
        )
    import pyarrow
    from pyarrow import parquet

    schema = _arrow_schema(pyarrow)
    count = 0
    with new_file(path, force=force) as part:
        with parquet.ParquetWriter(part, schema, compression="zstd") as writer:
            found = _rows(store, wanted)
            while batch := list(itertools.islice(found, _BATCH)):
                writer.write_table(pyarrow.Table.from_pylist([_typed(row) for row in batch], schema))
                count += len(batch)
        _refuse_empty(count, wanted)
    return {"trials": count}


def _arrow_schema(pyarrow: Any) -> Any:
    whole = ("trial_id", "run_id", "ordinal", "flops", "cores", "round", "peak_rss_bytes")
    real = ("best_of", "predicted_secs", "score", "build_secs", "measured_at")
    types = {
        **dict.fromkeys(whole, pyarrow.int64()),
        **dict.fromkeys(real, pyarrow.float64()),
        "slow": pyarrow.bool_(),
        "correct": pyarrow.bool_(),
        "run_secs": pyarrow.list_(pyarrow.float64()),
    }
    return pyarrow.schema([(name, types.get(name, pyarrow.string())) for name in COLUMNS])


def _typed(row: sqlite3.Row) -> dict[str, Any]:
    values = dict(zip(COLUMNS, row, strict=True))
    for name in ("slow", "correct"):
        values[name] = None if values[name] is None else bool(values[name])
    values["run_secs"] = None if values["run_secs"] is None else json.loads(values["run_secs"])
    return values


def _rows(store: SqliteStore, wanted: Wanted) -> Iterator[sqlite3.Row]:
    terms, parameters = _conditions(store, wanted)
    columns = ", ".join(f"{column} AS {name}" for name, column in COLUMNS.items())
    return store.connection.execute(
        f"SELECT {columns} FROM trials JOIN tasks ON tasks.id = trials.task_id"
        " JOIN workloads ON workloads.id = tasks.workload_id JOIN runs ON runs.id = trials.run_id"
        " JOIN machines ON machines.id = runs.machine_id JOIN targets ON targets.id = runs.target_id"
        f" WHERE {' AND '.join(terms)} ORDER BY trials.run_id, trials.ordinal",
        parameters,
    )


def _conditions(store: SqliteStore, wanted: Wanted) -> tuple[Sequence[str], dict[str, Any]]:
    terms: list[str] = []
    parameters: dict[str, Any] = {}
    if wanted.run_id is not None:
        store.run(wanted.run_id)  # UsageError if there is none
        terms.append("trials.run_id = :run")
        parameters["run"] = wanted.run_id
    if wanted.workload:
        terms.append("tasks.workload_id = :workload")
        parameters["workload"] = find_workload(store, wanted.workload).id
    if not terms:
        raise UsageError(
            "Nothing is named to export.", remedy="Name a run, or a workload with --workload SPEC."
        )
    if wanted.machine:
        terms.append(matches("machine", "machines.hostname", "machines.cpu"))
        parameters["machine"] = like(wanted.machine)
    if wanted.target:
        terms.append(matches("target", "targets.spec", "targets.json"))
        parameters["target"] = like(wanted.target)
    return terms, parameters


def _refuse_empty(count: int, wanted: Wanted) -> None:
    if not count:
        raise UsageError(
            "There is no trial to export.",
            remedy="`tuneassist history` lists the runs"
            + ("; leave --machine and --target out." if wanted.machine or wanted.target else "."),
        )
