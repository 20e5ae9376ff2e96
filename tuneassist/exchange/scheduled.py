"""The scheduled program of a stored trial."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

from tuneassist import __version__
from tuneassist.errors import StoreError
from tuneassist.exchange.output import new_file
from tuneassist.exchange.selection import Place, StoredWorkload, best_trial, in_words
from tuneassist.records import TargetInfo, Trial
from tuneassist.storage.sqlite import SqliteStore
from tuneassist.tuning.database import replay
from tuneassist.tvm_api import IRModule, Schedule, Target, load_tensor_intrinsics, tvm


def load_workload(workload: StoredWorkload) -> IRModule:
    """The stored module of a workload.

    Raises:
        StoreError: This TVM can't read it.
    """
    try:
        return tvm.ir.load_json(workload.mod_json)
    except Exception as error:  # whatever TVM makes of a module that another TVM wrote
        raise StoreError(
            f"The stored module of {workload.name} can't be read by this TVM: {_last_line(error)}",
            remedy="Another TVM wrote it, or the file is damaged. Tune the workload again with this release.",
        ) from error


def schedule_of(workload: StoredWorkload, trial: Trial, target: TargetInfo) -> Schedule:
    """Replay a trial's trace on its workload.

    Raises:
        StoreError: This TVM can't read the module or apply the trace.
    """
    load_tensor_intrinsics(target.kind)
    module = load_workload(workload)
    try:
        return replay(module, trial.trace_json, Target(json.loads(target.json)))
    except ValueError as error:
        raise StoreError(
            f"The trace of trial {trial.ordinal} of run {trial.run_id} does not apply: {_last_line(error)}",
            remedy="Another TVM wrote it, or the file is damaged. Tune the workload again with this release.",
        ) from error


def describe(place: Place, trial: Trial) -> list[str]:
    """What an exported program says of itself, line by line."""
    workload = place.workload
    checked = "matched a reference" if trial.correct else "was not checked against a reference"
    best = trial.best_of or float("nan")
    return [
        f"{_line(workload.name)} ({_line(workload.spec)}), scheduled by tuneassist {__version__}: "
        f"run {trial.run_id}, trial {trial.ordinal}.",
        f"Measured {best * 1e3:.4g} ms ({workload.flops / best / 1e9:.4g} GFLOPS) on "
        f"{_line(in_words(place.machine))}; its output {checked}.",
        f"Target: {place.target.json}",
    ]


def export_script(store: SqliteStore, place: Place, path: Path, *, force: bool) -> dict[str, Any]:
    """Write the best schedule as TVMScript, which TVM reads back.

    Raises:
        NoMeasurementError: There is no valid trial.
        StoreError: Its trace does not apply with this TVM.
        UsageError: The file can't be written.
    """
    trial = best_trial(store, place)
    script = schedule_of(place.workload, trial, place.target).mod.script()
    header = "\n".join(f"# {line}" for line in describe(place, trial))
    with new_file(path, force=force) as part:
        part.write_text(f"{header}\n{script}\n", encoding="utf-8")
    return {
        "run_id": trial.run_id,
        "trial_id": trial.id,
        "ordinal": trial.ordinal,
        "best_secs": trial.best_of,
    }


def _line(text: str) -> str:
    """Text that can't end a comment: one printable line, without the end mark of a C comment."""
    return "".join(c if c.isprintable() else " " for c in text).replace("*/", "* /")


def _last_line(error: BaseException) -> str:
    lines = [line for line in str(error).splitlines() if line.strip()]
    return lines[-1].strip() if lines else type(error).__name__
