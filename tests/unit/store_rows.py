"""Rows for tests of the store: a run to stand on, and trials."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

from tuneassist.records import Machine, RunSettings, TargetInfo, Trial, TrialStatus
from tuneassist.storage.sqlite import SqliteStore

MACHINE = Machine("host", "Some CPU @ 2 GHz", 4, ("avx2", "avx512f"))
TARGET = TargetInfo("native", '{"kind":"llvm","num-cores":4}', 4, note="detected")


@dataclass(frozen=True)
class Place:
    """Ids of what `start_run` made or found."""

    run: int
    task: int
    target: int
    machine: int


def start_run(
    store: SqliteStore,
    workload: str = "matmul",
    *,
    machine: Machine = MACHINE,
    target: TargetInfo = TARGET,
    settings: RunSettings | None = None,
    pid: int = 2**22 + 1,
    pid_started: float = 1.0,
) -> Place:
    """Create a run of one task; the default engine is a process that can't exist."""
    settings = settings or RunSettings(workloads=(workload,))
    target_id, machine_id = store.target_id(target), store.machine_id(machine)
    run = store.create_run(
        target_id=target_id, machine_id=machine_id, settings=settings, pid=pid, pid_started=pid_started,
        events_path="events.jsonl",
    )  # fmt: skip
    return Place(run, add_task(store, run, workload), target_id, machine_id)


def add_task(store: SqliteStore, run: int, workload: str, weight: int = 1) -> int:
    """Add a task whose workload's hash is `hash of NAME`."""
    workload_id = store.workload_id(
        hash=f"hash of {workload}", name=workload, spec=f"{workload}:m=8", op="matmul", flops=1000,
        mod_json="{}",
    )  # fmt: skip
    return store.add_task(run, workload_id, name=workload, weight=weight)


def ok(place: Place, ordinal: int, secs: float, **values: Any) -> Trial:
    """A valid trial with three repeats around `secs`."""
    return Trial(
        **{
            "run_id": place.run, "task_id": place.task, "ordinal": ordinal, "round": 1,
            "status": TrialStatus.OK, "trace_json": "[[],[]]", "run_secs": (secs * 0.9, secs, secs * 1.1),
            "best_of": secs, "measured_at": 1000.0 + ordinal, **values,
        }
    )  # fmt: skip


def failed(place: Place, ordinal: int, status: TrialStatus, error: str = "it broke", **values: Any) -> Trial:
    """A trial without a measurement."""
    return Trial(
        **{
            "run_id": place.run, "task_id": place.task, "ordinal": ordinal, "round": 1, "status": status,
            "trace_json": "[[],[]]", "error": error, "measured_at": 1000.0 + ordinal, **values,
        }
    )  # fmt: skip
