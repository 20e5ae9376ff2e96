"""What a viewer knows of a run: frozen snapshots folded from the engine's events.

`fold(state, event)` is pure. Memory is bounded: counts and sums are exact, series are thinned, so a run of a
million trials takes as much as one of a thousand. Events that were seen before (a stream read again after the
engine was restarted) change nothing. Times are seconds.
"""

from __future__ import annotations

from dataclasses import dataclass, field, replace
from typing import Any, NamedTuple

from tuneassist import events as ev
from tuneassist.records import Round, TrialStatus
from tuneassist.ui.format import latency
from tuneassist.ui.series import Thinned, tail
from tuneassist.ui.task_state import (
    Counts,
    QualityPoint,
    TaskState,
    positive,
    with_confirmation,
    with_trial,
)

LOG_LINES = 300
RECENT_TRIALS = 192
"""Several rounds, so that a rate spans the search between the bursts of measurements."""


class ProgressPoint(NamedTuple):
    """Trials of the run after this much working time."""

    elapsed_secs: float
    trials: int


class LogLine(NamedTuple):
    """One line of the log pane; `level` is info, warning, error or best."""

    time: float
    level: str
    text: str


@dataclass(frozen=True, slots=True)
class RunState:
    """One run as a viewer shows it."""

    run_id: int | None = None
    db: str = ""
    target: tuple[tuple[str, Any], ...] = ()
    target_note: str = ""
    machine: tuple[tuple[str, Any], ...] = ()
    cost_model: str = ""
    seed: int = 0
    trials_requested: int = 0
    time_budget_secs: float | None = None
    peak_gflops: float | None = None
    resumed: bool = False
    pid: int | None = None
    version: str = ""
    tasks: tuple[TaskState, ...] = ()
    phase: str = ""
    phase_task: int | None = None
    phase_done: int = 0
    phase_total: int = 0
    timeline_secs: tuple[tuple[str, float], ...] = ()
    """Working time by phase, from the moments at which the phase changed."""
    round_secs: tuple[tuple[str, float], ...] = ()
    """Time by phase as the engine itself summed it over its rounds."""
    last_ordinal: int = 0
    last_time: float = 0.0
    elapsed_secs: float = 0.0
    """Working time: neither pauses nor the time between two engines."""
    progress: Thinned[ProgressPoint] = field(default_factory=Thinned)
    recent: tuple[ProgressPoint, ...] = ()
    rss_bytes: int = 0
    log: tuple[LogLine, ...] = ()
    status: str = ""
    """`done`, `interrupted` or `failed` once the run has ended."""
    exit_code: int | None = None
    error: str = ""
    remedy: str = ""

    @property
    def ended(self) -> bool:
        """Whether the engine said that the run is over."""
        return bool(self.status)

    @property
    def paused(self) -> bool:
        """Whether the engine waits for a word to go on."""
        return self.phase == "paused" and not self.ended

    @property
    def trials(self) -> int:
        """Trials of all tasks."""
        return sum(task.trials for task in self.tasks)

    @property
    def counts(self) -> Counts:
        """Trials of the stream by how they ended, over all tasks."""
        sums = [sum(getattr(task.counts, name) for task in self.tasks) for name in Counts.__slots__]
        return Counts(*sums)

    def task(self, task_id: int | None) -> TaskState | None:
        """The task of that id, else the first one, else None."""
        for task in self.tasks:
            if task.task_id == task_id:
                return task
        return self.tasks[0] if self.tasks else None

    @property
    def trials_per_minute(self) -> float | None:
        """Rate over the latest trials."""
        if len(self.recent) < 2:
            return None
        first, last = self.recent[0], self.recent[-1]
        secs = last.elapsed_secs - first.elapsed_secs
        return (last.trials - first.trials) / secs * 60 if secs > 0 else None

    @property
    def eta_secs(self) -> float | None:
        """Working time left as of the last event."""
        return self.eta_after(0.0)

    def eta_after(self, idle_secs: float) -> float | None:
        """Working time left: by trials at the recent rate or by the time budget, whichever is less.

        Args:
            idle_secs: Time since the last event; the rate falls while nothing ends.
        """
        if self.ended:
            return None
        left: list[float] = []
        if len(self.recent) > 1 and self.trials_requested:
            first, last = self.recent[0], self.recent[-1]
            secs = self.elapsed_secs + idle_secs - first.elapsed_secs
            done = last.trials - first.trials
            left.append(max(0, self.trials_requested - self.trials) * secs / done)
        if self.time_budget_secs:
            left.append(max(0.0, self.time_budget_secs - self.elapsed_secs - idle_secs))
        return min(left, default=None)

    def phase_secs(self) -> tuple[tuple[str, float], ...]:
        """Time by phase: the engine's own sums where it gives them, else from the phase changes."""
        known = dict(self.round_secs)
        return (*self.round_secs, *((name, secs) for name, secs in self.timeline_secs if name not in known))


def fold(state: RunState, event: ev.Event) -> RunState:
    """Return the state after one more event.

    Raises:
        TypeError, ValueError, AttributeError: The event holds values of the wrong types (a garbled stream);
            the caller skips it.
    """
    state = _tick(state, event)
    match event:
        case ev.TrialEnded():
            return _trial(state, event)
        case ev.PhaseChanged():
            return replace(
                state,
                phase=str(event.phase),
                phase_task=event.task_id,
                phase_done=int(event.done),
                phase_total=int(event.total),
            )
        case ev.RoundEnded():
            return _round(state, event.round)
        case ev.RunStarted():
            return _run_started(state, event)
        case ev.BaselineMeasured():
            return _baseline(state, event)
        case ev.TrialConfirmed():
            return _confirmed(state, event)
        case ev.TaskEnded():
            return _task_ended(state, event)
        case ev.Message():
            return _logged(state, event.time, str(event.level), str(event.text))
        case ev.EngineStarted():
            return _logged(
                replace(state, pid=event.pid, version=str(event.version)),
                event.time,
                "info",
                f"Engine started (pid {event.pid}).",
            )
        case ev.RunEnded():
            return _run_ended(state, event)
        case _:
            return state


def _tick(state: RunState, event: ev.Event) -> RunState:
    """Count the time since the last event as work, unless the run was paused or between two engines."""
    now = float(event.time)
    if not state.last_time:
        return replace(state, last_time=now)
    if now <= state.last_time:
        return state
    if state.phase == "paused" or state.ended or isinstance(event, ev.EngineStarted):
        return replace(state, last_time=now)
    passed = now - state.last_time
    return replace(
        state,
        last_time=now,
        elapsed_secs=state.elapsed_secs + passed,
        timeline_secs=_added(state.timeline_secs, {state.phase: passed})
        if state.phase
        else state.timeline_secs,
    )


def _added(sums: tuple[tuple[str, float], ...], more: dict[str, float]) -> tuple[tuple[str, float], ...]:
    merged = dict(sums)
    for name, secs in more.items():
        merged[str(name)] = merged.get(str(name), 0.0) + float(secs)
    return tuple(merged.items())


def _logged(state: RunState, time: float, level: str, text: str) -> RunState:
    line = LogLine(float(time), level, text)
    return state if line in state.log else replace(state, log=tail(state.log, line, LOG_LINES))


def _updated(state: RunState, task: TaskState) -> RunState:
    """Replace the task of that id, or add it (its `run_started` line may have been lost)."""
    if all(known.task_id != task.task_id for known in state.tasks):
        return replace(state, tasks=(*state.tasks, task))
    return replace(state, tasks=tuple(task if t.task_id == task.task_id else t for t in state.tasks))


def _known(state: RunState, task_id: int) -> TaskState:
    for task in state.tasks:
        if task.task_id == task_id:
            return task
    return TaskState(task_id=int(task_id), name=f"task {int(task_id)}")


def _run_started(state: RunState, event: ev.RunStarted) -> RunState:
    for started in event.tasks:
        known = _known(state, started.task_id)
        earlier = max(known.earlier_trials, int(started.trials) - known.counts.total)
        task = replace(
            known,
            name=str(started.name),
            workload=str(started.workload),
            op=str(started.op),
            weight=int(started.weight),
            flops=int(started.flops),
            earlier_trials=earlier,
            ended="",
        )
        state = _updated(state, task)
    return replace(
        state,
        run_id=int(event.run_id),
        db=str(event.db),
        target=tuple(event.target.items()),
        target_note=str(event.target_note),
        machine=tuple(event.machine.items()),
        cost_model=str(event.cost_model),
        seed=int(event.seed),
        trials_requested=int(event.trials),
        time_budget_secs=positive(event.time_budget_secs),
        peak_gflops=positive(event.peak_gflops),
        resumed=bool(event.resumed),
        status="",
        exit_code=None,
        error="",
        remedy="",
    )


def _trial(state: RunState, event: ev.TrialEnded) -> RunState:
    trial = event.trial
    if trial.ordinal <= state.last_ordinal:
        return state
    before = _known(state, trial.task_id)
    after = with_trial(before, trial, state.elapsed_secs)
    state = _updated(state, after)
    point = ProgressPoint(state.elapsed_secs, state.trials)
    state = replace(
        state,
        last_ordinal=trial.ordinal,
        progress=state.progress.add(point),
        recent=tail(state.recent, point, RECENT_TRIALS),
    )
    if trial.status not in (TrialStatus.OK, TrialStatus.DUPLICATE):
        reason = (trial.error or "no error text").strip().splitlines()
        text = f"{_which(state, after, trial.ordinal)}: {trial.status.value}: {reason[0] if reason else ''}"
        return _logged(state, event.time, "warning", text)
    if after.best_trial != before.best_trial and after.best_secs is not None:
        text = f"{_which(state, after, trial.ordinal)} is the best so far: {latency(after.best_secs)}"
        return _logged(state, event.time, "best", text)
    return state


def _which(state: RunState, task: TaskState, ordinal: int) -> str:
    return f"Trial {ordinal}" + (f" of {task.name}" if len(state.tasks) > 1 else "")


def _round(state: RunState, record: Round) -> RunState:
    task = _known(state, record.task_id)
    last = task.quality.last
    if last is not None and record.round <= last.round:
        return state
    point = QualityPoint(int(record.round), _share(record.spearman), _share(record.pairwise_accuracy))
    state = _updated(state, replace(task, quality=task.quality.add(point)))
    return replace(
        state, round_secs=_added(state.round_secs, record.phase_secs), rss_bytes=int(record.rss_bytes)
    )


def _share(value: float | None) -> float | None:
    """A coefficient between -1 and 1, or None where it is undefined."""
    return float(value) if value is not None and -1.0 <= value <= 1.0 else None


def _baseline(state: RunState, event: ev.BaselineMeasured) -> RunState:
    task = _known(state, event.task_id)
    secs = positive(event.secs)
    if secs is None:
        errors = (*task.baseline_errors, (str(event.name), str(event.error or "not measured")))[-4:]
        task = replace(task, baseline_errors=errors)
    elif event.name == "untuned":
        task = replace(task, untuned_secs=secs)
    elif event.name == "pytorch":
        task = replace(task, pytorch_secs=secs)
    return _updated(state, task)


def _confirmed(state: RunState, event: ev.TrialConfirmed) -> RunState:
    secs = positive(event.best_of)
    if secs is None:
        return state
    task = with_confirmation(
        _known(state, event.task_id), int(event.ordinal), secs, event.correct, state.elapsed_secs
    )
    state = _updated(state, task)
    if event.correct is False:
        text = f"Trial {event.ordinal} of {task.name} is wrong and left out. {event.error or ''}".rstrip()
        return _logged(state, event.time, "error", text)
    return state


def _task_ended(state: RunState, event: ev.TaskEnded) -> RunState:
    task = replace(_known(state, event.task_id), ended=str(event.reason), detail=str(event.detail))
    state = _updated(state, task)
    text = f"{task.name} ended ({event.reason}). {event.detail}".rstrip()
    return _logged(state, event.time, "error" if event.reason == "error" else "info", text)


def _run_ended(state: RunState, event: ev.RunEnded) -> RunState:
    phases = event.result.get("phase_secs")
    sums = tuple((str(name), float(secs)) for name, secs in phases.items()) if phases else state.round_secs
    state = replace(
        state,
        status=str(event.status) or "failed",
        exit_code=int(event.exit_code),
        error=str(event.error or ""),
        remedy=str(event.remedy or ""),
        round_secs=sums,
        phase="",
    )
    text = f"Run {state.run_id} {event.status}." + (f" {event.error}" if event.error else "")
    return _logged(state, event.time, "error" if event.error else "info", text)
