"""Fakes at the borders of the app: a store in memory, an engine that writes a real events file, commands."""

from __future__ import annotations

import json
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field, replace
from pathlib import Path
from typing import Any

from textual.app import App
from textual.pilot import Pilot
from ui_script import START, TASKS, scripted_run

from tuneassist.errors import TuneAssistError, UsageError
from tuneassist.events import Event, TrialEnded, encode
from tuneassist.records import (
    FAILURES,
    Round,
    Run,
    RunSettings,
    RunStatus,
    Task,
    TensorSpec,
    Trial,
    WorkloadInfo,
)
from tuneassist.session import EngineSession
from tuneassist.storage.models import ModelRow
from tuneassist.storage.queries import RunRow, TrialRow
from tuneassist.ui.services import KnownBest, Services

ME = 4242


class FakeSession(EngineSession):
    """The real reader of events files; the process behind it is the test."""

    def __init__(self, path: Path, engines: FakeEngines) -> None:
        super().__init__(path, db=path.with_name("tune.sqlite"), settings=RunSettings(), pid=ME)
        self.engines = engines
        self.lives = True
        self.calls: list[str] = []

    def write(self, *events: Event) -> None:
        """Append events, as an engine does."""
        self.write_text("".join(encode(event) + "\n" for event in events))

    def write_text(self, text: str) -> None:
        """Append anything."""
        with self.events_path.open("a", encoding="utf-8", errors="surrogateescape") as file:
            file.write(text)

    def alive(self) -> bool:
        return self.lives

    def stop(self) -> None:
        self.calls.append("stop")

    def pause(self) -> None:
        self.calls.append("pause")

    def resume(self) -> None:
        self.calls.append("resume")

    def restart(self) -> FakeSession:
        self.calls.append("restart")
        return self.engines.new_session()

    def log_tail(self, lines: int) -> list[str]:
        return ["Fatal Python error: Segmentation fault", "Current thread 0x01:"][:lines]


class FakeEngines:
    """Hands out fake sessions; `restarted_live` says whether an engine started again lives."""

    def __init__(self, folder: Path) -> None:
        self.folder = folder
        self.sessions: list[FakeSession] = []
        self.started: list[tuple[RunSettings, int | None]] = []
        self.restarted_live = True

    @property
    def last(self) -> FakeSession:
        return self.sessions[-1]

    def new_session(self) -> FakeSession:
        session = FakeSession(self.folder / f"events{len(self.sessions)}.jsonl", self)
        session.lives = self.restarted_live or not self.sessions
        self.sessions.append(session)
        return session

    def start(self, settings: RunSettings, *, resume_run_id: int | None = None) -> FakeSession:
        self.started.append((settings, resume_run_id))
        return self.new_session()

    def attach(self, run: Run) -> FakeSession:
        session = self.new_session()
        session.lives = run.pid == ME
        if run.events_path:
            session.events_path = Path(run.events_path)
        return session


@dataclass
class FakeReader:
    """A store in memory. `fault`, when set, is raised by every call."""

    run_rows: list[RunRow] = field(default_factory=list)
    trial_list: list[Trial] = field(default_factory=list)
    model_rows: list[ModelRow] = field(default_factory=list)
    round_list: list[Round] = field(default_factory=list)
    events_path: str | None = None
    fault: TuneAssistError | None = None
    queries: list[str] = field(default_factory=list)

    def _asked(self, what: str) -> None:
        self.queries.append(what)
        if self.fault is not None:
            raise self.fault

    def runs(
        self,
        *,
        pattern: str = "",
        order: str = "id",
        descending: bool = True,
        limit: int = 200,
        offset: int = 0,
    ) -> Sequence[RunRow]:
        self._asked("runs")
        found = [r for r in self.run_rows if pattern.lower() in f"{r.task_names} {r.note} {r.state}".lower()]
        found.sort(key=lambda r: (getattr(r, order) is not None, getattr(r, order)), reverse=descending)
        return found[offset : offset + limit]

    def run_row(self, run_id: int) -> RunRow:
        self._asked("run_row")
        for row in self.run_rows:
            if row.id == run_id:
                return row
        raise UsageError(f"There is no run {run_id}.", remedy="`tuneassist history` lists runs.")

    def run(self, run_id: int) -> Run:
        row = self.run_row(run_id)
        return Run(
            run_id, 1, 1, row.cost_model, row.seed, row.trials_requested, row.status, row.started_at,
            row.ended_at,
            "{}", row.note, ME if row.alive else None, events_path=self.events_path,
        )  # fmt: skip

    def tasks(self, run_id: int) -> Sequence[Task]:
        self._asked("tasks")
        t = TASKS[0]
        return [
            Task(t.task_id, run_id, 1, t.name, t.weight, "hash", t.workload, t.op, t.flops, 42e-3, 1.1e-3)
        ]

    def rounds(self, run_id: int) -> Sequence[Round]:
        self._asked("rounds")
        return self.round_list

    def trials(
        self,
        run_id: int,
        *,
        task_id: int | None = None,
        status: str = "",
        order: str = "ordinal",
        descending: bool = True,
        limit: int = 200,
        offset: int = 0,
    ) -> Sequence[TrialRow]:
        self._asked(f"trials {status} {order} {descending} {offset}")
        rows = [_row(t) for t in self.trial_list]
        if status == "failed":
            rows = [r for r in rows if r.status in FAILURES]
        elif status:
            rows = [r for r in rows if r.status.value == status]
        rows.sort(key=lambda r: (getattr(r, order) is not None, getattr(r, order) or 0), reverse=descending)
        return rows[offset : offset + limit]

    def trials_after(self, run_id: int, ordinal: int, *, limit: int) -> Sequence[Trial]:
        self._asked("trials_after")
        return [t for t in self.trial_list if t.ordinal > ordinal][:limit]

    def trial(self, trial_id: int) -> TrialRow:
        self._asked("trial")
        for trial in self.trial_list:
            if trial.id == trial_id:
                return _row(trial)
        raise UsageError(f"There is no trial of id {trial_id}.")

    def trial_id(self, run_id: int, ordinal: int) -> int:
        self._asked("trial_id")
        return ordinal

    def best_curve(self, task_id: int) -> Sequence[tuple[int, float, float]]:
        self._asked("best_curve")
        curve: list[tuple[int, float, float]] = []
        for trial in self.trial_list:
            if trial.best_of is not None and (not curve or trial.best_of < curve[-1][2]):
                curve.append((trial.ordinal, trial.measured_at - START, trial.best_of))
        return curve

    def known_best(self) -> Mapping[str, KnownBest]:
        self._asked("known_best")
        return {CATALOGUE[0].spec: KnownBest(1.7e-3, 256)}

    def models(self) -> Sequence[ModelRow]:
        self._asked("models")
        return self.model_rows


def _row(trial: Trial) -> TrialRow:
    return TrialRow(
        trial.id or 0, trial.run_id, trial.task_id, "resnet18.c2", trial.ordinal, trial.round, trial.status,
        trial.best_of, trial.predicted_secs, trial.build_secs, trial.source, trial.error, trial.correct,
    )  # fmt: skip


class FakeCommands:
    """Answers subcommands from a table of their first words; an error there is raised."""

    def __init__(self, answers: Mapping[str, Any] | None = None) -> None:
        self.answers = dict(answers or {})
        self.calls: list[tuple[str, ...]] = []

    def close(self) -> None:
        """Nothing runs."""

    def run(self, *args: str, timeout_secs: float = 120.0, ok_codes: Sequence[int] = (0,)) -> str:
        self.calls.append(args)
        for words, answer in self.answers.items():
            if " ".join(args).startswith(words):
                if isinstance(answer, Exception):
                    raise answer
                return answer if isinstance(answer, str) else json.dumps(answer)
        raise UsageError(f"`tuneassist {' '.join(args)}` failed (exit 2).", remedy="No such command.")


def workload(name: str, op: str, flops: int, network: str = "") -> WorkloadInfo:
    """A catalogue entry."""
    tensor = TensorSpec("x", (1, 64, 56, 56), "float32")
    return WorkloadInfo(name, f"{op}:of={name}", op, (tensor,), tensor, flops, network)


CATALOGUE = (
    workload("resnet18.c2", "conv2d", 231_211_008, "resnet18"),
    workload("resnet18.c5", "conv2d", 12_845_056, "resnet18"),
    workload("bert-base.ffn1", "dense", 603_979_776, "bert-base"),
)


class FakeCatalogue:
    """Three workloads, and targets that begin with a known word."""

    def workloads(self) -> Sequence[WorkloadInfo]:
        return CATALOGUE

    def parse_workload(self, spec: str) -> WorkloadInfo:
        for info in CATALOGUE:
            if spec == info.name:
                return info
        if spec.startswith("matmul:m="):
            return workload(spec, "matmul", 268_435_456)
        raise UsageError(f"No workload is called {spec!r}.", remedy="Did you mean resnet18.c2?")

    def describe_target(self, spec: str) -> str:
        if spec.split(" ")[0] not in ("native", "cuda", "llvm"):
            raise UsageError(f"The target {spec!r} can't be read.", remedy="Write native.")
        return "AMD EPYC, 2 cores allowed" if spec == "native" else f"the TVM tag or kind {spec}"


def run_row(run_id: int = 7, **changes: Any) -> RunRow:
    """A finished run."""
    row = RunRow(
        run_id, RunStatus.DONE, False, START, START + 240.0, 1, "resnet18.c2", "native", "bench", "gcn",
        0, 128, 117,
        128, 1.7e-3,
    )  # fmt: skip
    return replace(row, **changes)


def fake_services(folder: Path, **changes: Any) -> Services:
    """Services over fakes; the clock stands still at the end of the scripted run."""
    trials = [event.trial for event in scripted_run() if isinstance(event, TrialEnded)]
    values: dict[str, Any] = {
        "db": Path("/data/tune.sqlite"),
        "reader": FakeReader([run_row()], trials),
        "engines": FakeEngines(folder),
        "commands": FakeCommands(),
        "catalogue": FakeCatalogue(),
        "clock": lambda: START + 100.0,
        **changes,
    }
    return Services(**values)


async def until(pilot: Pilot[Any], condition: Callable[[], bool], *, secs: float = 10.0) -> None:
    """Let the app work until the condition holds; fail when it takes too long."""
    waited = 0.0
    while not condition():
        if waited > secs:
            raise AssertionError("the app did not get there")
        await pilot.pause(0.05)
        waited += 0.05


def screen_text(app: App[Any]) -> str:
    """What the screen shows, line by line."""
    strips = app.screen._compositor.render_strips()
    return "\n".join("".join(segment.text for segment in strip).rstrip() for strip in strips)
