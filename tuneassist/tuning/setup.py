"""Puts a run together: target, workloads, rows in the store, zygote, cost model."""

from __future__ import annotations

import json
import os
import time
from collections.abc import Callable
from dataclasses import asdict, replace
from typing import TYPE_CHECKING, Any

import numpy as np

from tuneassist import events
from tuneassist.cost_model.hardware import HARDWARE_FACT, host
from tuneassist.errors import UsageError
from tuneassist.records import RunSettings, TargetInfo
from tuneassist.storage.sqlite import SqliteStore
from tuneassist.targets.cores import usable_cores
from tuneassist.targets.resolve import farm_machine, measuring_machine, peak_gflops, resolve_target
from tuneassist.targets.spec import Remote, parse_target
from tuneassist.targets.tracker import Address
from tuneassist.tuning.control import Control
from tuneassist.tuning.event_log import EventLog
from tuneassist.tuning.farm import FarmMeasurer
from tuneassist.tuning.guides import GraphGuide, Guide, StockGuide
from tuneassist.tuning.inputs import INPUT_SEED, save_inputs
from tuneassist.tuning.journal import Journal, scratch_folder
from tuneassist.tuning.known_kernels import KnownKernels
from tuneassist.tuning.loader import ModelLoader, shipped_weights
from tuneassist.tuning.measurer import LocalMeasurer
from tuneassist.tuning.measuring import Measurer, Protocol, limits_for
from tuneassist.tuning.model_run import ModelRun, Workload, load_workloads
from tuneassist.tuning.phases import PhaseClock
from tuneassist.tuning.roster import Roster
from tuneassist.tuning.run import RunParts, TuningRun
from tuneassist.tuning.search import TaskSearch
from tuneassist.tuning.task import TuneTask
from tuneassist.tuning.workers import Workers
from tuneassist.tvm_api import Target, load_tensor_intrinsics, ms, tvm
from tuneassist.workloads.reference import make_inputs
from tuneassist.workloads.spec import parse_workload

if TYPE_CHECKING:
    from tuneassist.tuning.engine import Request

_PRIMING_SECS = 10.0


class RunSetup:
    """A run from request to end."""

    def __init__(
        self, request: Request, store: SqliteStore, clock: PhaseClock, log: EventLog, control: Control
    ) -> None:
        self._request = request
        self._store = store
        self._clock = clock
        self._control = control
        self._journal = Journal(store, log, clock)
        self._settings = request.settings if request.resume is None else self._resumed_settings()
        self._cores = self._settings.cores or usable_cores()
        self._workers: Workers | None = None
        self._model: ModelLoader | None = None
        self._run: TuningRun | None = None
        self._remote: Remote | None = None
        self._models: ModelRun | None = None
        self._reused = 0
        self.run_id: int = 0

    @property
    def valid(self) -> int:
        """Valid trials of the run, and tasks that it takes over from earlier ones."""
        return self._run.valid + self._reused if self._run else 0

    @property
    def first_measurement_secs(self) -> float | None:
        """From the engine's start to its first valid trial."""
        return self._journal.first_measurement_secs

    def model_results(self) -> list[dict[str, Any]]:
        """What the models of the run came to, for its result."""
        return self._models.results() if self._models else []

    def prepare(self) -> None:
        """Do everything up to the first round.

        Raises:
            TuneAssistError: The request, the machine or the store does not allow it.
        """
        self._journal.phase("startup")
        os.sched_setaffinity(0, self._cores)
        infos = [parse_workload(spec) for spec in self._settings.workloads]
        self._workers = Workers("llvm", self._cores, self._request.events.with_suffix(".log"))
        self._workers.start()
        target = resolve_target(self._settings.target, cores=self._cores, store=self._store)
        load_tensor_intrinsics(target.kind)
        if self._settings.cost_model not in ("xgb", "random"):
            self._model = ModelLoader(
                self._settings.cost_model, seed=self._settings.seed, threads=len(self._cores),
                checkpoint=shipped_weights(
                    self._settings.cost_model, target.kind, wanted=self._settings.pretrained
                ),
            )  # fmt: skip
        models, works = load_workloads(
            infos, self._settings.tasks, scratch_folder(self._request.events),
            lambda text: self._journal.message("info", text),
        )  # fmt: skip
        remote = parse_target(self._settings.target)
        self._remote = remote if isinstance(remote, Remote) else None
        machine = farm_machine(self._remote, target) if self._remote else measuring_machine(self._cores)
        target_id, machine_id = self._store.target_id(target), self._store.machine_id(machine)
        if self._remote is None and self._store.machine_fact(machine_id, HARDWARE_FACT) is None:
            # What features of graphs depend on, for those who rebuild them on another machine.
            self._store.set_machine_fact(machine_id, HARDWARE_FACT, asdict(host(machine.cores)))
        self._begin(target_id, machine_id)
        self._models = ModelRun(
            models, KnownKernels(self._store, target_id, machine_id), self._journal,
            target_json=target.json, cores=self._cores, against=self._settings.against,
        )  # fmt: skip
        tasks = self._tasks(works, target, target_id, machine_id)
        last_ordinal = self._store.last_ordinal(self.run_id)
        self._announce(tasks, target, machine_id, resumed=self._request.resume is not None)
        self._count_stored(tasks)
        self._end_known(tasks)
        self._workers.wait_ready()
        self._run = TuningRun(self._parts(target), tasks, last_ordinal=last_ordinal)
        if self._settings.time_budget_secs is not None:
            self._control.deadline = time.monotonic() + self._settings.time_budget_secs

    def work(self, control: Control) -> None:
        """Search, then confirm what was found."""
        assert self._run is not None
        control.starting = False
        self._run.search()
        if not control.stop_requested:
            self._run.confirm()
        assert self._models is not None
        if self._remote is None:
            self._models.compare(lambda: control.stop_requested)
        elif self._models.any:
            self._journal.message("info", "Models are not compared end to end on a remote target.")

    def close(self) -> None:
        """End every process that the run started."""
        if self._workers is not None:
            self._workers.stop()

    def _resumed_settings(self) -> RunSettings:
        """Those that the run was started with; budgets may be given anew."""
        assert self._request.resume is not None
        asked, kept = self._request.settings, self._store.settings(self._request.resume)
        return replace(
            kept,
            trials=asked.trials or kept.trials,
            time_budget_secs=asked.time_budget_secs or kept.time_budget_secs,
            cores=asked.cores or kept.cores,
        )

    def _begin(self, target_id: int, machine_id: int) -> None:
        from tuneassist.tuning.engine import process_start_time

        engine: dict[str, Any] = {
            "pid": os.getpid(),
            "pid_started": process_start_time(),
            "events_path": str(self._request.events.resolve()),
        }
        if self._request.resume is None:
            self.run_id = self._store.create_run(
                target_id=target_id, machine_id=machine_id, settings=self._settings, **engine
            )
            return
        run = self._store.run(self._request.resume)
        if (run.target_id, run.machine_id) != (target_id, machine_id):
            raise UsageError(
                f"Run {run.id} was measured on another machine, target or set of cores: "
                "its times don't compare with what would be measured here.",
                remedy="Start a new run; the same workloads are shown by "
                f"`tuneassist history show {run.id}`.",
            )
        self._store.claim_run(run.id, **engine)
        self.run_id = run.id

    def _tasks(
        self, works: list[Workload], target: TargetInfo, target_id: int, machine_id: int
    ) -> list[TuneTask]:  # fmt: skip
        stored = {task.workload_hash: task for task in self._store.tasks(self.run_id)}
        tasks = []
        for work in works:
            if work.hash in stored:
                task_id = stored[work.hash].id
            else:
                info = work.info
                workload_id = self._store.workload_id(
                    hash=work.hash, name=info.name, spec=info.spec, op=info.op, flops=info.flops,
                    mod_json=tvm.ir.save_json(work.module),
                )  # fmt: skip
                task_id = self._store.add_task(self.run_id, workload_id, name=info.name, weight=work.weight)
            tasks.append(self._task(task_id, work, target, target_id, machine_id))
        if not self._settings.retune:
            assert self._models is not None
            known = self._models.tuned_before(works, self._settings.trials)
            for task in tasks:
                task.ended = "reused" if task.workload_hash in known else None
        return tasks

    def _end_known(self, tasks: list[TuneTask]) -> None:
        """Tell which tasks an earlier run has tuned as much as this one would."""
        known = [task for task in tasks if task.ended == "reused"]
        self._reused = len(known)
        for task in known:
            self._journal.task_ended(task.id, "reused", "An earlier run has tuned it as much.")

    def _task(
        self, task_id: int, work: Workload, target: TargetInfo, target_id: int, machine_id: int
    ) -> TuneTask:
        settings, info = self._settings, work.info
        folder = scratch_folder(self._request.events) / str(task_id)
        folder.mkdir(exist_ok=True)
        return TuneTask(
            id=task_id, run_id=self.run_id, target_id=target_id, machine_id=machine_id, info=info,
            mod=work.module, workload_hash=work.hash, weight=work.weight, target_json=target.json,
            folder=folder,
            limits=limits_for(
                info.flops, info.bytes, repeat=settings.repeat, min_repeat_secs=settings.min_repeat_secs,
                build_secs=settings.build_timeout_secs, run_secs=settings.run_timeout_secs,
                memory_bytes=settings.memory_limit_bytes,
            ),
        )  # fmt: skip

    def _announce(self, tasks: list[TuneTask], target: TargetInfo, machine_id: int, *, resumed: bool) -> None:
        machine = self._store.machine(machine_id)
        done = {task.id: len(self._store.trials(self.run_id, task_id=task.id)) for task in tasks}
        self._journal.say(
            events.RunStarted(
                time.time(), self.run_id, str(self._request.db), _target_dict(target), target.note,
                asdict(machine), self._settings.cost_model, self._settings.seed, self._settings.trials,
                self._settings.time_budget_secs, peak_gflops(target, self._store, machine_id),
                tuple(
                    events.TaskStarted(
                        task.id, task.info.name, task.info.spec, task.info.op, task.weight, task.info.flops,
                        done[task.id],
                    )
                    for task in tasks
                ),
                resumed,
            )
        )  # fmt: skip

    def _count_stored(self, tasks: list[TuneTask]) -> None:
        """Take in, and tell viewers, what the run measured before it was resumed."""
        by_id = {task.id: task for task in tasks}
        for stored in self._store.tasks(self.run_id):
            for name in ("untuned", "pytorch"):
                secs = getattr(stored, f"{name}_secs")
                if secs is not None:
                    self._journal.say(events.BaselineMeasured(time.time(), stored.id, name, secs))
        for trial in self._store.trials(self.run_id):
            task = by_id[trial.task_id]
            task.count(trial)
            if trial.round > task.rounds:
                task.close_round()
            self._journal.say(events.TrialEnded(trial.measured_at, replace(trial, trace_json="")))

    def _parts(self, target: TargetInfo) -> RunParts:
        assert self._workers is not None
        settings = self._settings
        return RunParts(
            run_id=self.run_id, settings=settings, cores=self._cores, journal=self._journal,
            clock=self._clock, control=self._control, checkpoint=self._checkpoint,
            workers=self._workers, measurer=self._measurer(target),
            prepare=self._preparer(target),
            trained_secs=lambda: self._clock.secs().get("train", 0.0),
        )  # fmt: skip

    def _measurer(self, target: TargetInfo) -> Measurer:
        assert self._workers is not None
        settings = self._settings
        protocol = Protocol(
            settings.repeat, settings.min_repeat_secs, settings.flush_cache, shorten=not settings.collect
        )
        if self._remote is None:
            return LocalMeasurer(
                self._workers, self._cores, protocol, checkpoint=self._checkpoint, on_phase=self._on_phase
            )
        address = Address(self._remote.host, self._remote.port)
        roster = Roster(address, self._remote.key, self._journal.message)

        def on_waiting(waiting: bool) -> None:
            self._journal.paused(self.run_id, waiting)
            words = f"The run waits for a device. {roster.why_none()}" if waiting else "The run goes on."
            self._journal.message("warning" if waiting else "info", words)

        return FarmMeasurer(
            self._workers, self._cores, protocol, roster=roster, target=target.json,
            folder=scratch_folder(self._request.events), checkpoint=self._checkpoint,
            on_phase=self._on_phase, on_waiting=on_waiting,
        )  # fmt: skip

    def _checkpoint(self) -> bool:
        return self._control.checkpoint(lambda paused: self._journal.paused(self.run_id, paused))

    def _on_phase(self, phase: str, done: int, total: int) -> None:
        self._clock.enter(phase)
        if self._model is not None:
            self._model.start()
        self._journal.phase(phase, None, done, total)

    def _preparer(self, target: TargetInfo) -> Callable[[TuneTask], None]:
        tvm_target = Target(_target_dict(target))

        def prepare(task: TuneTask) -> None:
            if not task.inputs_path.exists():
                inputs: list[np.ndarray] = make_inputs(task.info, INPUT_SEED)
                save_inputs(task.inputs_path, inputs)
            task.guide = self._guide(task, tvm_target)
            task.search = TaskSearch(
                task.mod, tvm_target, task.guide, seed=self._settings.seed, threads=len(self._cores)
            )
            trials = list(
                self._store.measured_trials(
                    task.workload_hash, target_id=task.target_id, machine_id=task.machine_id
                )
                if self._settings.reuse_history
                else self._store.trials(self.run_id, task_id=task.id)
            )
            if trials:
                used = task.start_from(trials, budget_secs=_PRIMING_SECS)
                self._journal.message(
                    "info",
                    f"{task.info.name}: starts from {used} of {len(trials)} trials measured here before.",
                )

        return prepare

    def _guide(self, task: TuneTask, target: Target) -> Guide:
        if self._model is None:
            context = ms.TuneContext(
                task.mod, target=target, space_generator="post-order-apply", num_threads=len(self._cores)
            )
            return StockGuide(self._settings.cost_model, context, clock=self._clock)
        cores = len(self._cores) if self._remote is None else int(target.attrs.get("num-cores", 1))
        return GraphGuide(self._model, task.workload_hash, target=target, cores=cores, clock=self._clock)


def _target_dict(target: TargetInfo) -> dict[str, Any]:
    value: dict[str, Any] = json.loads(target.json)
    return value
