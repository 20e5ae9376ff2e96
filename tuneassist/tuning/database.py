"""MetaSchedule's database on top of the store: what evolutionary search draws its parents from."""

from __future__ import annotations

import bisect
import json
from typing import Any

from tuneassist.tvm_api import IRModule, Schedule, Target, Trace, derived_object, ms, structural_equal


@derived_object
class StoreDatabase(ms.database.PyDatabase):  # type: ignore[misc]
    """The ok trials of one workload on one target, fastest first, as tuning records.

    The store is written by the run's journal, a row per trial; this holds what the search asks for, so
    that neither a query nor the parsing of a trace happens inside the search.

    Args:
        target: The target of the records.
    """

    def __init__(self, target: Target) -> None:
        super().__init__()
        self._target = target
        self._workloads: list[Any] = []
        self._records: list[tuple[float, int, Any]] = []
        self._count = 0

    def has_workload(self, mod: IRModule) -> bool:
        return any(structural_equal(workload.mod, mod) for workload in self._workloads)

    def commit_workload(self, mod: IRModule) -> Any:
        for workload in self._workloads:
            if structural_equal(workload.mod, mod):
                return workload
        self._workloads.append(ms.database.Workload(mod))
        return self._workloads[-1]

    def commit_tuning_record(self, record: Any) -> None:
        secs = [float(value) for value in record.run_secs or ()]
        if secs:
            self._count += 1
            median = sorted(secs)[len(secs) // 2]
            bisect.insort(self._records, (median, self._count, record))

    def get_top_k(self, workload: Any, top_k: int) -> list[Any]:
        same = (record for _, _, record in self._records if record.workload.same_as(workload))
        return [record for record, _ in zip(same, range(top_k), strict=False)]

    def get_all_tuning_records(self) -> list[Any]:
        return [record for _, _, record in self._records]

    def query_tuning_record(self, mod: IRModule, target: Target, workload_name: str) -> Any:
        records = self.get_top_k(self.commit_workload(mod), 1) if self.has_workload(mod) else []
        return records[0] if records else None

    def query_schedule(self, mod: IRModule, target: Target, workload_name: str) -> Any:
        record = self.query_tuning_record(mod, target, workload_name)
        if record is None:
            return None
        schedule = Schedule(mod)
        record.trace.apply_to_schedule(schedule, remove_postproc=False)
        return schedule

    def query_ir_module(self, mod: IRModule, target: Target, workload_name: str) -> Any:
        schedule = self.query_schedule(mod, target, workload_name)
        return None if schedule is None else schedule.mod

    def __len__(self) -> int:
        return len(self._records)

    def add(self, mod: IRModule, trace: Trace, run_secs: tuple[float, ...]) -> None:
        """Commit an ok trial."""
        record = ms.database.TuningRecord(trace, self.commit_workload(mod), list(run_secs), self._target)
        self.commit_tuning_record(record)


def trace_to_json(trace: Trace) -> str:
    """The sampling decisions of a trace as MetaSchedule's own JSON.

    What postprocessing added is left out: it follows from the rest, and is two thirds of the text.
    """
    instructions, decisions = trace.as_json(remove_postproc=True)
    return json.dumps([instructions, decisions], separators=(",", ":"), default=lambda number: number.value)


class Replayer:
    """Makes the schedules that stored traces of one workload describe.

    Args:
        mod: The workload.
        target: What it was tuned for, which decides the postprocessing.
    """

    def __init__(self, mod: IRModule, target: Target) -> None:
        self._mod = mod
        self._context = ms.TuneContext(mod, target=target, space_generator="post-order-apply", num_threads=1)

    def __call__(self, text: str) -> Schedule:
        """The schedule of a stored trace, postprocessed as it was when it was measured.

        Raises:
            ValueError: It is no trace of this workload.
        """
        schedule = Schedule(self._mod)
        try:
            trace = json.loads(text)
            Trace.apply_json_to_schedule(trace, schedule)
            if not any(instruction[0] == "EnterPostproc" for instruction in trace[0]):
                self._postprocess(schedule)
        except Exception as error:
            raise ValueError(f"A stored trace does not apply to its workload: {error}") from error
        return schedule

    def _postprocess(self, schedule: Schedule) -> None:
        schedule.enter_postproc()
        for postprocessor in self._context.space_generator.postprocs:
            if not postprocessor.apply(schedule):
                raise ValueError(f"{postprocessor} refuses it")


def replay(mod: IRModule, text: str, target: Target) -> Schedule:
    """The schedule of one stored trace; see `Replayer`, which is cheaper for many."""
    return Replayer(mod, target)(text)
