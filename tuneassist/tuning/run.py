"""The search loop of a run: rounds of propose, build, measure, learn, over its tasks."""

from __future__ import annotations

import time
from collections.abc import Callable, Sequence
from dataclasses import dataclass

import psutil

from tuneassist.cost_model.metrics import pairwise_accuracy, spearman
from tuneassist.records import Round, RunSettings, Trial, TrialStatus
from tuneassist.tuning.baseline import TorchBaseline
from tuneassist.tuning.confirm import confirm_best, measure_untuned
from tuneassist.tuning.control import Control
from tuneassist.tuning.journal import Journal
from tuneassist.tuning.measuring import Measurer, Outcome, StoppedError
from tuneassist.tuning.phases import PhaseClock
from tuneassist.tuning.scheduler import next_task
from tuneassist.tuning.search import Candidate, SpaceError
from tuneassist.tuning.task import TuneTask
from tuneassist.tuning.workers import Workers
from tuneassist.workloads.models import TASK

_ROUND = 32
_SMALLEST_ROUND = 8
_ROUNDS_WANTED = 4
"""Rounds that a task should get at least, so that the guide learns within small budgets too."""
_TRAIN_SHARE = 0.06
"""Share of the time so far that training may have taken."""
_SEARCH_SHARE = 0.15
"""Time for a guided search, as a share of what building and measuring the last round took."""
_ENOUGH_PAIRS = 32
_BASELINE_TIMEOUT_SECS = 60.0


def worse_than_chance(pairs: Sequence[tuple[float, float]]) -> bool:
    """Whether predictions of so many trials, (predicted, measured) seconds, are known to mislead."""
    if len(pairs) < _ENOUGH_PAIRS:
        return False
    rank = spearman([p for p, _ in pairs], [m for _, m in pairs])
    return rank is not None and rank < 0.0


@dataclass(frozen=True, slots=True)
class RunParts:
    """What the loop works with; the engine puts it together."""

    run_id: int
    settings: RunSettings
    cores: tuple[int, ...]
    journal: Journal
    clock: PhaseClock
    control: Control
    checkpoint: Callable[[], bool]
    """Waits while paused; true to stop."""
    workers: Workers
    measurer: Measurer
    prepare: Callable[[TuneTask], None]
    """Gives a task its search and guide; `SpaceError` if it has no schedule."""
    trained_secs: Callable[[], float]
    """Seconds spent on training so far."""


class TuningRun:
    """Works the tasks of one run until the budget is spent or every task has ended."""

    def __init__(self, parts: RunParts, tasks: Sequence[TuneTask], *, last_ordinal: int) -> None:
        self._p = parts
        self._tasks = tasks
        self._ordinal = last_ordinal
        self._inputs_of: int | None = None
        self._process = psutil.Process()
        per_task = parts.settings.trials / max(sum(task.ended is None for task in tasks), 1)
        self._round_size = parts.settings.trials_per_round or int(
            min(_ROUND, max(_SMALLEST_ROUND, per_task / _ROUNDS_WANTED))
        )

    @property
    def trials(self) -> int:
        """Trials of this run so far, those before a resume included."""
        return sum(task.trials for task in self._tasks)

    @property
    def valid(self) -> int:
        """Valid trials of this run so far."""
        return sum(task.valid for task in self._tasks)

    def search(self) -> None:
        """Run rounds until there is nothing left to do or the control says stop."""
        while self.trials < self._p.settings.trials and not self._checkpoint():
            index = next_task([task.progress() for task in self._tasks])
            if index is None:
                return
            self._one_round(self._tasks[index])
        for task in self._tasks:
            if task.ended is None and self.trials >= self._p.settings.trials:
                self._end(task, "budget")

    def confirm(self) -> None:
        """Measure the best trials of each task again, and check the winner's output."""
        for task in self._tasks:
            if task.valid and not self._p.control.stop_requested:
                self._use_inputs(task)
                self._p.journal.phase("confirm", task.id)
                with self._p.clock.phase("confirm"):
                    try:
                        confirm_best(task, self._p.measurer, self._p.journal, self._p.settings)
                    except StoppedError as error:
                        self._p.journal.message("warning", f"{task.info.name}: not confirmed. {error}.")

    def _one_round(self, task: TuneTask) -> None:
        before = self._p.clock.secs()
        self._p.journal.phase("search", task.id)
        try:
            with self._p.clock.phase("search"):
                if task.search is None:
                    self._p.prepare(task)
                candidates = self._propose(task)
        except SpaceError as error:
            self._end(task, "error", str(error))
            return
        if candidates:
            self._measure(task, candidates, before)
        elif task.search is not None and task.search.exhausted:
            self._end(task, "exhausted", "Every schedule that the search finds has been measured.")
        patience = self._p.settings.patience
        if task.ended is None and patience is not None and task.since_better >= patience:
            self._end(task, "patience", f"No better trial among the last {task.since_better}.")

    def _propose(self, task: TuneTask) -> list[Candidate]:
        assert task.search is not None
        count = min(self._round_size, self._p.settings.trials - self.trials)
        budget_secs = _SEARCH_SHARE * task.round_secs
        if self._p.settings.collect:
            share = task.trials * len(self._tasks) / self._p.settings.trials
            proposed = task.search.collect(count, share=share, budget_secs=budget_secs)
        else:
            proposed = task.search.propose(count, budget_secs=budget_secs)
        return task.search.costliest_first(proposed)

    def _measure(self, task: TuneTask, candidates: list[Candidate], before: dict[str, float]) -> None:
        assert task.search is not None and task.guide is not None
        self._use_inputs(task)
        baseline = None if task.baselined or task.info.op == TASK else self._start_baseline(task)
        predicted = list(candidates)
        outcomes: dict[int, Outcome] = {}
        first_pair = len(task.pairs)

        def before_measuring() -> None:
            assert task.search is not None
            if predicted[0].score is None and predicted[0].predicted_secs is None:
                predicted[:] = task.search.predict(candidates)
            if not task.baselined:
                self._measure_baselines(task, baseline)

        def on_outcome(index: int, outcome: Outcome) -> None:
            outcomes[index] = outcome
            self._ordinal += 1
            trial = self._trial(task, predicted[index], outcome)
            task.count(trial)
            self._p.journal.trial(trial)

        self._p.journal.phase("build", task.id, 0, len(candidates))
        with self._p.clock.phase("build"):
            self._p.measurer.run(
                [task.job(candidate.schedule.mod) for candidate in candidates],
                task.limits_now(),
                best_secs=task.best_secs,
                on_outcome=on_outcome,
                before_measuring=before_measuring,
            )
        if baseline is not None and not task.baselined:
            baseline.close()
        spent = self._p.clock.secs()
        task.round_secs = sum(spent[name] - before[name] for name in ("build", "measure"))
        self._learn(task, candidates, outcomes)
        task.close_round()
        self._report_round(task, outcomes, task.pairs[first_pair:], before)

    def _trial(self, task: TuneTask, candidate: Candidate, outcome: Outcome) -> Trial:
        return Trial(
            run_id=self._p.run_id,
            task_id=task.id,
            ordinal=self._ordinal,
            round=task.rounds + 1,
            status=outcome.status,
            trace_json=candidate.trace_json,
            run_secs=outcome.run_secs,
            best_of=outcome.median_secs,
            predicted_secs=candidate.predicted_secs,
            score=candidate.score,
            error=outcome.error,
            build_secs=outcome.build_secs,
            measured_at=time.time(),
            source=candidate.source,
            slow=outcome.slow,
            peak_rss_bytes=outcome.peak_rss_bytes,
            module_hash=candidate.module_hash,
            device=outcome.device,
        )

    def _learn(self, task: TuneTask, candidates: list[Candidate], outcomes: dict[int, Outcome]) -> None:
        assert task.search is not None and task.guide is not None
        done = [(candidates[index], outcome) for index, outcome in sorted(outcomes.items())]
        task.search.learn_builds(
            [candidate for candidate, _ in done], [outcome.build_secs for _, outcome in done]
        )
        for candidate, outcome in done:
            if outcome.status is TrialStatus.OK and outcome.run_secs:
                task.search.add_measured(candidate.schedule, outcome.run_secs)
        last = self.trials >= self._p.settings.trials and len(self._tasks) == 1
        if last or self._p.control.should_stop():
            return  # Nothing will be proposed any more.
        self._p.journal.phase("train", task.id)
        budget = max(0.3, _TRAIN_SHARE * self._p.clock.wall_secs() - self._p.trained_secs())
        budget = min(budget, 5.0)
        task.guide.learn(
            [candidate.schedule for candidate, _ in done],
            [outcome.median_secs for _, outcome in done],
            budget_secs=budget,
        )
        if task.guide.transferred and worse_than_chance(task.pairs):
            task.guide.learn_alone(budget_secs=budget)
            self._p.journal.message(
                "warning",
                f"{task.info.name}: the pretrained model orders these schedules worse than chance; "
                "from here on a new one learns from this task alone.",
            )

    def _report_round(
        self, task: TuneTask, outcomes: dict[int, Outcome], pairs: Sequence[tuple[float, float]],
        before: dict[str, float],
    ) -> None:  # fmt: skip
        predicted, measured = [p for p, _ in pairs], [m for _, m in pairs]
        after = self._p.clock.secs()
        self._p.journal.round(
            Round(
                run_id=self._p.run_id,
                task_id=task.id,
                round=task.rounds,
                trials=len(outcomes),
                valid=sum(outcome.status is TrialStatus.OK for outcome in outcomes.values()),
                spearman=spearman(predicted, measured),
                pairwise_accuracy=pairwise_accuracy(predicted, measured),
                phase_secs={
                    name: round(secs - before.get(name, 0.0), 4)
                    for name, secs in after.items()
                    if secs > before.get(name, 0.0)
                },
                rss_bytes=self._process.memory_info().rss,
                ended_at=time.time(),
            )
        )

    def _start_baseline(self, task: TuneTask) -> TorchBaseline:
        return TorchBaseline(
            task.info.spec, task.inputs_path, task.reference_path, cores=self._p.cores,
            repeat=self._p.settings.repeat, min_repeat_secs=self._p.settings.min_repeat_secs,
        )  # fmt: skip

    def _measure_baselines(self, task: TuneTask, baseline: TorchBaseline | None) -> None:
        task.baselined = True
        self._p.journal.phase("baseline", task.id)
        with self._p.clock.phase("baseline"):
            if baseline is not None:
                result = baseline.measure(timeout_secs=_BASELINE_TIMEOUT_SECS)
                if self._p.measurer.local:
                    self._p.journal.baseline(task.id, "pytorch", result.secs, result.error)
            secs, error = measure_untuned(task, self._p.measurer)
            self._p.journal.baseline(task.id, "untuned", secs, error)

    def _use_inputs(self, task: TuneTask) -> None:
        if self._inputs_of != task.id:
            self._p.workers.set_inputs(task.inputs_path)
            self._inputs_of = task.id

    def _checkpoint(self) -> bool:
        return self._p.checkpoint()

    def _end(self, task: TuneTask, reason: str, detail: str = "") -> None:
        task.ended = reason
        self._p.journal.task_ended(task.id, reason, detail)
