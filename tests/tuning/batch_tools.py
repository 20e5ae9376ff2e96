"""Runs the command line as a user does, and looks at what it left behind."""

from __future__ import annotations

import json
import os
import sqlite3
import subprocess
import sys
import time
from pathlib import Path
from typing import Any

import psutil

SMALL = "matmul:m=64,n=64,k=64"
NUMBER_OR_NULL = {"type": ["number", "null"]}
RESULT_SCHEMA = {
    "type": "object",
    "required": [
        "run_id", "status", "target", "machine", "cost_model", "seed", "tasks", "first_measurement_secs",
        "wall_secs", "phase_secs", "db",
    ],
    "properties": {
        "run_id": {"type": "integer"},
        "status": {"enum": ["done", "interrupted", "failed"]},
        "target": {"type": "object", "required": ["kind", "num-cores"]},
        "machine": {"type": "object", "required": ["hostname", "cpu", "cores"]},
        "cost_model": {"type": "string"},
        "seed": {"type": "integer"},
        "tasks": {
            "type": "array",
            "minItems": 1,
            "items": {
                "type": "object",
                "required": [
                    "name", "workload", "weight", "trials", "valid", "failed", "best_secs", "gflops",
                    "baseline_secs", "spearman", "pairwise_accuracy",
                ],
                "properties": {
                    "name": {"type": "string"},
                    "workload": {"type": "string"},
                    "weight": {"type": "integer", "minimum": 1},
                    "trials": {"type": "integer", "minimum": 0},
                    "valid": {"type": "integer", "minimum": 0},
                    "failed": {
                        "type": "object",
                        "required": ["build_error", "build_timeout", "run_error", "run_timeout"],
                        "additionalProperties": {"type": "integer", "minimum": 0},
                    },
                    "best_secs": NUMBER_OR_NULL,
                    "gflops": NUMBER_OR_NULL,
                    "baseline_secs": NUMBER_OR_NULL,
                    "spearman": NUMBER_OR_NULL,
                    "pairwise_accuracy": NUMBER_OR_NULL,
                },
            },
        },
        "first_measurement_secs": NUMBER_OR_NULL,
        "wall_secs": {"type": "number"},
        "phase_secs": {
            "type": "object",
            "required": ["startup", "search", "predict", "build", "measure", "train", "store"],
            "additionalProperties": {"type": "number", "minimum": 0},
        },
        "db": {"type": "string"},
    },
}  # fmt: skip
"""The contract of `--batch --json`."""


def command(*arguments: str) -> list[str]:
    """The command line that runs tuneassist with these arguments."""
    return [sys.executable, "-m", "tuneassist", *arguments]


def tune(*arguments: str, timeout_secs: float = 240.0) -> subprocess.CompletedProcess[str]:
    """Run `tuneassist --batch ... --json` to its end."""
    return subprocess.run(
        command("--batch", "--json", *arguments), capture_output=True, text=True, timeout=timeout_secs
    )


def result_of(finished: subprocess.CompletedProcess[str]) -> dict[str, Any]:
    """The one JSON object on stdout."""
    value: dict[str, Any] = json.loads(finished.stdout)
    return value


def database() -> Path:
    """The database of this test."""
    return Path(os.environ["TUNEASSIST_DB"])


def rows(sql: str, *parameters: Any) -> list[sqlite3.Row]:
    """Rows of a query on the database, read as a foreign tool does."""
    connection = sqlite3.connect(f"file:{database()}?mode=ro", uri=True)
    connection.row_factory = sqlite3.Row
    try:
        return connection.execute(sql, parameters).fetchall()
    finally:
        connection.close()


def wait_for_trials(count: int, *, timeout_secs: float = 120.0) -> None:
    """Wait until the database holds that many trials."""
    deadline = time.monotonic() + timeout_secs
    while time.monotonic() < deadline:
        try:
            if rows("SELECT count(*) AS n FROM trials")[0]["n"] >= count:
                return
        except sqlite3.Error:
            pass
        time.sleep(0.05)
    raise AssertionError(f"no {count} trials after {timeout_secs:.0f} s")


def engine_processes() -> list[psutil.Process]:
    """Every process of ours that works on this test's database."""
    marks = ("tuneassist.tuning.engine", "tuneassist.tuning.zygote", "tuneassist.tuning.baseline")
    found = []
    for process in psutil.process_iter():
        try:
            if any(mark in process.cmdline() for mark in marks) and _works_here(process):
                found.append(process)
        except psutil.Error:
            continue
    return found


def _works_here(process: psutil.Process) -> bool:
    return process.environ().get("TUNEASSIST_DB") == str(database())


def wait_for_no_process(*, timeout_secs: float = 30.0) -> None:
    """Wait until nothing of ours runs any more."""
    deadline = time.monotonic() + timeout_secs
    while engine_processes():
        assert time.monotonic() < deadline, f"left behind: {engine_processes()}"
        time.sleep(0.1)
