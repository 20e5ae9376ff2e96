"""What the new-run form holds, as settings, as a command line, and as an estimate. Pure."""

from __future__ import annotations

import shlex
from collections.abc import Sequence
from dataclasses import dataclass, replace
from pathlib import Path

from tuneassist.config import parse_duration
from tuneassist.errors import UsageError
from tuneassist.records import COST_MODELS, RunSettings
from tuneassist.storage.queries import RunRow
from tuneassist.ui import format as fmt

MAX_SEED = 2**31 - 1
MAX_TRIALS = 10_000_000


@dataclass(frozen=True, slots=True)
class RunForm:
    """The form's fields as typed."""

    workloads: tuple[str, ...]
    target: str
    trials: str
    time_budget: str
    cost_model: str
    seed: str

    def settings(self, defaults: RunSettings) -> RunSettings:
        """The settings that the form stands for.

        Raises:
            UsageError: A field can't be used; the message names it.
        """
        if not self.workloads:
            raise UsageError("No workload is chosen.", remedy="Mark one with space, or put the cursor on it.")
        budget = parse_duration(self.time_budget) if self.time_budget.strip() else None
        return replace(
            defaults,
            workloads=self.workloads,
            target=self.target.strip() or "native",
            trials=_whole("trials", self.trials, 1, MAX_TRIALS),
            time_budget_secs=budget,
            cost_model=_model(self.cost_model),
            seed=_whole("seed", self.seed, 0, MAX_SEED),
        )


def _whole(name: str, text: str, least: int, most: int) -> int:
    try:
        value = int(text)
    except ValueError:
        value = least - 1
    if not least <= value <= most:
        raise UsageError(f"{name} is {text!r}.", remedy=f"It takes a whole number from {least} to {most}.")
    return value


def _model(text: str) -> str:
    name = text.strip() or RunSettings().cost_model
    if name in COST_MODELS or Path(name).expanduser().is_file():
        return name
    known = ", ".join(COST_MODELS)
    raise UsageError(f"The cost model is {name!r}.", remedy=f"Known: {known}; or the path of a checkpoint.")


def command_line(settings: RunSettings, db: Path) -> str:
    """The `tuneassist --batch` line that does the same; what is at its default is left out."""
    plain = RunSettings()
    words = ["tuneassist", "--batch"]
    for workload in settings.workloads:
        words += ["--workload", workload]
    words += ["--trials", str(settings.trials)]
    if settings.target != plain.target:
        words += ["--target", settings.target]
    if settings.time_budget_secs is not None:
        words += ["--time-budget", f"{settings.time_budget_secs:g}s"]
    if settings.cost_model != plain.cost_model:
        words += ["--cost-model", settings.cost_model]
    if settings.seed != plain.seed:
        words += ["--seed", str(settings.seed)]
    return shlex.join([*words, "--db", str(db)])


def trials_per_minute(runs: Sequence[RunRow]) -> float | None:
    """Median rate of earlier runs that ended, None where there is none to go by."""
    rates = sorted(
        run.trials / (run.ended_at - run.started_at) * 60
        for run in runs
        if run.ended_at is not None and run.ended_at > run.started_at and run.trials >= 8
    )
    return rates[len(rates) // 2] if rates else None


def estimate(settings: RunSettings, rate: float | None) -> str:
    """How long the run may take, in words."""
    budget = settings.time_budget_secs
    if rate is None:
        known = f"at most {fmt.duration(budget)}" if budget else "unknown"
        return f"{known}: nothing was measured here yet that an estimate could rest on"
    secs = settings.trials / rate * 60
    if budget is not None and budget < secs:
        return f"{fmt.duration(budget)} (the time budget), about {budget * rate / 60:.0f} trials"
    return f"about {fmt.duration(secs)} at {rate:.0f} trials a minute (median of earlier runs)"
