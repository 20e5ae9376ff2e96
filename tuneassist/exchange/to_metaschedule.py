"""Export of trials as a MetaSchedule JSON database, checked by loading it with TVM itself."""

from __future__ import annotations

import json
from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from tuneassist.errors import NoMeasurementError, StoreError, UsageError
from tuneassist.exchange.metaschedule import RECORDS, WORKLOADS, RecordLine, record_line, workload_line
from tuneassist.exchange.output import new_folder
from tuneassist.exchange.selection import Place, usable_trials
from tuneassist.exchange.sidecar import SIDECAR, NamedWorkload, write_sidecar
from tuneassist.storage.sqlite import SqliteStore
from tuneassist.tvm_api import Schedule, Trace, load_tensor_intrinsics, ms, tvm

FILES = (WORKLOADS, RECORDS, SIDECAR)


@dataclass(frozen=True, slots=True)
class _Record:
    line: RecordLine
    module: Any
    args_info: list[Any]


def export_database(
    store: SqliteStore, places: Sequence[Place], path: Path, *, force: bool, top: int | None = None
) -> dict[str, Any]:
    """Write the ok trials that are not known to be wrong, fastest first, as a database folder.

    Stock TVM takes the record with the lowest mean of its repeats and looks at no target; hence the
    trials of each workload come from one machine and target.

    Args:
        store: From where.
        places: What to export; one for each workload, all on one machine.
        path: The folder to make.
        force: Replace a database that is there.
        top: At most so many trials of each workload; None for all.

    Returns:
        How many `records` and `workloads` were written, and how many traces were `dropped`, since this TVM
        can't apply them.

    Raises:
        NoMeasurementError: No trial may leave.
        UsageError: The folder can't be written, or the trials come from different machines.
    """
    _check_one_machine(places)
    records = _records(store, places, top)
    if not records:
        raise NoMeasurementError(
            "There is no valid trial to export.",
            remedy="Failed and wrong trials never leave as records; see `tuneassist history`.",
        )
    load_tensor_intrinsics(places[0].target.kind)
    with new_folder(path, force=force, holds=FILES) as part:
        workloads = [workload_line(place.workload.hash, place.workload.mod_json) for place in places]
        _write_lines(part / WORKLOADS, workloads)
        kept = _write_records(part, records)
        named = [
            NamedWorkload(p.workload.hash, p.workload.name, p.workload.spec, p.workload.op, p.workload.flops)
            for p in places
        ]
        write_sidecar(part, places[0].machine, named)
    return {"records": kept, "workloads": len(places), "dropped": len(records) - kept}


def _check_one_machine(places: Sequence[Place]) -> None:
    if len({place.machine_id for place in places}) > 1:
        raise UsageError(
            "The trials come from different machines, whose times don't compare.",
            remedy="Export one machine at a time, with --machine PATTERN.",
        )


def _records(store: SqliteStore, places: Sequence[Place], top: int | None) -> list[_Record]:
    records = []
    for index, place in enumerate(places):
        try:
            module = tvm.ir.load_json(place.workload.mod_json)
            arguments = ms.arg_info.ArgInfo.from_entry_func(module, remove_preproc=False)
            args_info = json.loads(json.dumps([info.as_json() for info in arguments], default=list))
        except Exception as error:  # whatever TVM makes of a module that another TVM wrote
            raise StoreError(
                f"The stored module of {place.workload.name} can't be read by this TVM: {error}",
                remedy="Tune it again with this release.",
            ) from error
        records += [
            _Record(RecordLine(index, trial.trace_json, trial.run_secs, place.target.json), module, args_info)
            for trial in usable_trials(store, place, limit=-1 if top is None else top)
        ]
    return records


def _write_records(folder: Path, records: list[_Record]) -> int:
    """Write the records and load them as a user will; those that TVM refuses are left out."""
    _write_lines(folder / RECORDS, (record_line(record.line, record.args_info) for record in records))
    try:
        ms.database.JSONDatabase(work_dir=str(folder))
        return len(records)
    except Exception:  # one bad trace makes TVM refuse the database, without saying which
        applied = [record for record in records if _applies(record)]
    if not applied:
        raise NoMeasurementError(
            "None of the traces applies to its workload with this TVM.",
            remedy="They were measured with another TVM: export there, or tune again here.",
        )
    _write_lines(folder / RECORDS, (record_line(record.line, record.args_info) for record in applied))
    ms.database.JSONDatabase(work_dir=str(folder))
    return len(applied)


def _applies(record: _Record) -> bool:
    try:
        Trace.apply_json_to_schedule(json.loads(record.line.trace_json), Schedule(record.module))
        return True
    except Exception:  # TVM raises many types here
        return False


def _write_lines(path: Path, lines: Any) -> None:
    with path.open("w", encoding="utf-8") as file:
        file.writelines(f"{line}\n" for line in lines)
