"""The best trials measured again, side by side, and their outputs checked against a reference."""

from __future__ import annotations

import statistics
import time
from dataclasses import replace
from typing import Any

from tuneassist import events
from tuneassist.records import RunSettings, Trial, TrialStatus
from tuneassist.tuning.journal import Journal
from tuneassist.tuning.measuring import Measurer, Outcome, StoppedError
from tuneassist.tuning.task import TuneTask
from tuneassist.workloads.reference import tolerance

_AT_ONCE = 3
_AT_MOST = 9
"""Trials that are confirmed, where the first ones turn out slower than they looked, or wrong."""
_PASSES = 3
_NOTABLE = 0.05
_UNTUNED_TIMEOUT_SECS = 20.0


def measure_untuned(task: TuneTask, measurer: Measurer) -> tuple[float | None, str | None]:
    """Latency of TVM's default schedule: seconds, or None and the reason.

    Writes the task's reference output where nothing else did.
    """
    limits = replace(task.limits, run_secs=min(task.limits.run_secs, _UNTUNED_TIMEOUT_SECS))
    (opened,) = measurer.open([task.job(task.mod)], limits)
    if isinstance(opened, Outcome):
        return None, opened.error
    try:
        outcome = opened.measure(quick=True)
        if outcome.status is TrialStatus.RUN_TIMEOUT:
            return None, f"One call takes more than {limits.run_secs:.0f} s or nearly so."
        if outcome.status is TrialStatus.OK and not task.reference_path.exists():
            opened.check(task.reference_path, rtol=0.0, atol=0.0, save=True)
        return outcome.median_secs, outcome.error
    except StoppedError as error:
        return None, str(error)
    finally:
        opened.close()


def confirm_best(task: TuneTask, measurer: Measurer, journal: Journal, settings: RunSettings) -> None:
    """Measure the leaders again, interleaved, until the first is one of those measured again and is right.

    The new repeats are added to the trial's own, so that its median, and with it the order of trials,
    rests on all of them. On a machine so noisy that the order keeps changing, the first is checked as it is.
    """
    confirmed: set[int] = set()
    checks = 0
    before = task.best_secs
    while leaders := task.leaders(journal.store, _AT_ONCE):
        fresh = [trial for trial in leaders if trial.ordinal not in confirmed]
        if leaders[0] in fresh and len(confirmed) < _AT_MOST:
            _measure_again(task, measurer, journal, fresh)
            confirmed.update(trial.ordinal for trial in fresh)
        elif leaders[0].correct is None and settings.verify and checks < _AT_MOST:
            if not task.reference_path.exists():
                journal.message("warning", f"{task.info.name}: nothing to check the output against.")
                return
            _check(task, measurer, journal, leaders[0])
            checks += 1
        else:
            _say_what_changed(task, journal, before, leaders[0].best_of)
            return


def _say_what_changed(task: TuneTask, journal: Journal, before: float | None, after: float | None) -> None:
    if before and after and abs(after / before - 1) > _NOTABLE:
        journal.message(
            "info",
            f"{task.info.name}: measured again side by side, the best is {after * 1e3:.4g} ms "
            f"(it was {before * 1e3:.4g} ms).",
        )


def _measure_again(task: TuneTask, measurer: Measurer, journal: Journal, trials: list[Trial]) -> None:
    assert task.search is not None
    jobs = [task.job(task.search.replay(trial.trace_json).mod) for trial in trials]
    repeats: dict[int, list[float]] = {trial.ordinal: [] for trial in trials}
    opened = measurer.open(jobs, task.limits)
    try:
        for _ in range(_PASSES):
            for trial, job in zip(trials, opened, strict=True):
                if not isinstance(job, Outcome):
                    repeats[trial.ordinal] += job.measure().run_secs or ()
    finally:
        for job in opened:
            if not isinstance(job, Outcome):
                job.close()
    for trial in trials:
        again = repeats[trial.ordinal]
        if again:
            run_secs = (*(trial.run_secs or ()), *again)
            best_of = statistics.median(run_secs)
            journal.store.update_measurement(_id(trial), run_secs=run_secs, best_of=best_of)
            journal.say(events.TrialConfirmed(time.time(), task.id, trial.ordinal, best_of, None, None))


def _check(task: TuneTask, measurer: Measurer, journal: Journal, trial: Trial) -> None:
    """Compare the whole kernel, packing of weights included, with the reference."""
    assert task.search is not None
    module = task.search.replay(trial.trace_json).mod
    rtol, atol = tolerance(task.info)
    (opened,) = measurer.open([task.job(module, prepacked=False)], task.limits)
    answer: Any = opened
    if not isinstance(opened, Outcome):
        answer = opened.check(task.reference_path, rtol=rtol, atol=atol)
        opened.close()
    if isinstance(answer, Outcome):
        correct, error, text = False, None, answer.error
    else:
        correct, error, text = answer["correct"], answer["max_relative_error"], None
    journal.store.set_correct(_id(trial), correct)
    assert trial.best_of is not None
    journal.say(
        events.TrialConfirmed(time.time(), task.id, trial.ordinal, trial.best_of, correct, error, text)
    )
    if not correct:
        found = text or f"it differs from the reference by {error:.2g} of its largest value"
        journal.message(
            "warning", f"{task.info.name}: trial {trial.ordinal} is wrong and does not count: {found}."
        )


def _id(trial: Trial) -> int:
    assert trial.id is not None
    return trial.id
