"""`tuneassist --batch`: one run, followed on stderr, its result on stdout."""

from __future__ import annotations

import signal
import time
from pathlib import Path
from types import FrameType
from typing import Any

import click

from tuneassist.commands._options import print_json
from tuneassist.commands._progress import Progress, make_progress
from tuneassist.commands._report import print_report
from tuneassist.config import Config, database_path, load_config, parse_duration
from tuneassist.errors import BY_EXIT_CODE, MachineError, RunInterruptedError, TuneAssistError, UsageError
from tuneassist.records import CONTENDERS, COST_MODELS, RunSettings
from tuneassist.session import RESTARTS, EngineSession

_POLL_SECS = 0.1


class BatchError(Exception):
    """A batch run that ended in an error, with the result as far as there is one."""

    def __init__(self, error: TuneAssistError, result: dict[str, Any] | None = None) -> None:
        super().__init__(error.message)
        self.error = error
        self._result = result

    def as_result(self) -> dict[str, Any]:
        """The JSON object to print."""
        return {
            **(self._result or {"run_id": None, "status": "failed", "tasks": []}),
            "error": self.error.message,
            "remedy": self.error.remedy,
            "exit_code": self.error.exit_code,
        }


def run_batch(options: dict[str, Any]) -> int:
    """Do what `--batch` asks for and return the exit code.

    Raises:
        BatchError: It ended in an error.
    """
    try:
        db = Path(database_path(options["db"]))
        session = _session(options, db)
    except TuneAssistError as error:
        raise BatchError(error) from error
    progress = make_progress(quiet=options["quiet"])
    attached = options["attach"] is not None
    session = follow(session, progress, attached=attached)
    return _finish(session, options)


def _finish(session: EngineSession, options: dict[str, Any]) -> int:
    ended = session.ended
    if ended is None and session.alive():
        run = session.run_id
        raise BatchError(
            RunInterruptedError(
                f"Run {run} goes on without this viewer.",
                remedy=f"Follow it again with `tuneassist --batch --attach {run}`.",
            )
        )
    if ended is None:
        tail = "\n".join(session.log_tail(20))
        raise BatchError(
            MachineError(
                f"The engine died {RESTARTS + 1} times (exit code {session.exit_code}).\n{tail}".rstrip(),
                remedy=f"Its log is {session.events_path.with_suffix('.log')}; run `tuneassist doctor`.",
            )
        )
    if ended.exit_code:
        error = BY_EXIT_CODE.get(ended.exit_code, TuneAssistError)(ended.error or "", remedy=ended.remedy)
        if ended.result and not options["as_json"]:
            print_report(ended.result)
        raise BatchError(error, ended.result or None)
    if options["as_json"]:
        print_json(ended.result)
    else:
        print_report(ended.result)
    return 0


def _session(options: dict[str, Any], db: Path) -> EngineSession:
    if options["attach"] is not None:
        from tuneassist.storage.sqlite import open_store

        with open_store(db, readonly=True) as store:
            run = store.run(options["attach"])
        return EngineSession.attach(run, db=db)
    settings = settings_from_options(options, load_config())
    if options["resume"] is None:
        check_settings(settings)
    return EngineSession.start(
        settings, db=db, detachable=False, resume_run_id=options["resume"], debug=options["debug"]
    )


def settings_from_options(options: dict[str, Any], config: Config) -> RunSettings:
    """The run's settings from flags, else the settings file, else defaults.

    Raises:
        UsageError: A flag's value can't be understood, or flags contradict each other.
    """
    resuming = options["resume"] is not None
    if resuming and options["workloads"]:
        raise UsageError(
            "--resume continues a run with its own workloads.",
            remedy="Leave --workload out, or start a new run.",
        )
    if not resuming and not options["workloads"]:
        raise UsageError(
            "--batch needs to know what to tune.",
            remedy="Name a workload, such as --workload resnet18.c2; `tuneassist workloads` lists them.",
        )
    workloads = _with_shapes(tuple(options["workloads"]), options["shapes"])
    cores = None
    if options["cores"]:
        from tuneassist.targets.cores import parse_cores

        cores = parse_cores(options["cores"])
    default_trials = 0 if resuming else RunSettings().trials
    return RunSettings(
        workloads=workloads,
        target=options["target"] or config.target or "native",
        trials=options["trials"] or (default_trials if resuming else config.trials or default_trials),
        time_budget_secs=parse_duration(options["time_budget"]) if options["time_budget"] else None,
        patience=options["patience"],
        cost_model=options["cost_model"] or config.cost_model or RunSettings().cost_model,
        pretrained=not options["from_scratch"],
        seed=options["seed"] if options["seed"] is not None else config.seed or 0,
        cores=cores,
        repeat=options["repeat"] or RunSettings().repeat,
        flush_cache=options["flush_cache"],
        reuse_history=not options["no_history"],
        tasks=_listed(options["tasks"] or ""),
        against=_against(options["against"]),
        retune=options["retune"] or options["no_history"],
    )


def _listed(text: str) -> tuple[str, ...]:
    return tuple(filter(None, (part.strip() for part in text.split(","))))


def _against(text: str | None) -> tuple[str, ...]:
    """The contenders that `--against` names."""
    known = CONTENDERS[1:]
    if text is None:
        return known
    chosen = _listed(text)
    if unknown := [name for name in chosen if name not in known]:
        raise UsageError(f"--against {unknown[0]!r} is not known.", remedy=f"Known: {', '.join(known)}.")
    return chosen


def _with_shapes(specs: tuple[str, ...], texts: tuple[str, ...]) -> tuple[str, ...]:
    """The workloads with the shapes of `--shape` in the specs of the models among them."""
    from tuneassist.workloads.models import parse_model, parse_shapes, with_shapes

    shapes = parse_shapes(texts)
    if shapes and not any(parse_model(spec) for spec in specs):
        raise UsageError("--shape goes with a model only.", remedy="Write an operator's sizes into its spec.")
    return tuple(with_shapes(spec, shapes) for spec in specs)


def check_settings(settings: RunSettings) -> None:
    """Find what is wrong with the request before an engine is started for it."""
    from tuneassist.targets.spec import parse_target
    from tuneassist.workloads.spec import parse_workload

    for spec in settings.workloads:
        parse_workload(spec)
    parse_target(settings.target)
    if settings.cost_model not in COST_MODELS and not Path(settings.cost_model).is_file():
        raise UsageError(
            f"The cost model {settings.cost_model!r} is neither a known one nor a file.",
            remedy=f"Known: {', '.join(COST_MODELS)}; or the path of a checkpoint.",
        )


def follow(session: EngineSession, progress: Progress, *, attached: bool) -> EngineSession:
    """Show the run until it ends; an engine that crashes is started again on the same run."""
    interrupts = 0

    def interrupt(number: int, frame: FrameType | None) -> None:
        nonlocal interrupts
        interrupts += 1
        if not attached:
            session.stop()
            progress.stopping(at_once=interrupts > 1)

    previous = {number: signal.signal(number, interrupt) for number in (signal.SIGINT, signal.SIGTERM)}
    restarts = 0
    try:
        with progress:
            while True:
                alive = session.alive()
                new = session.poll()
                progress.show(new)
                if session.ended is not None or (attached and interrupts):
                    break
                if not alive and not new:
                    if attached or interrupts or restarts == RESTARTS:
                        break
                    restarts += 1
                    click.echo(
                        f"The engine died (exit code {session.exit_code}); starting it again on the same run "
                        f"({restarts} of {RESTARTS}).",
                        err=True,
                    )
                    session = session.restart()
                time.sleep(_POLL_SECS)
    finally:
        for number, handler in previous.items():
            signal.signal(number, handler)
        if not attached:
            session.wait()
    return session
