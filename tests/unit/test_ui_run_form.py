"""The new-run form as settings, as a command and as an estimate."""

from __future__ import annotations

import shlex
from dataclasses import replace
from pathlib import Path

import pytest

from tuneassist.errors import UsageError
from tuneassist.records import RunSettings, RunStatus
from tuneassist.storage.queries import RunRow
from tuneassist.ui.run_form import RunForm, command_line, estimate, trials_per_minute

FORM = RunForm(("resnet18.c2",), "native", "64", "10m", "gnn", "3")


def test_fields_become_settings() -> None:
    settings = FORM.settings(RunSettings())
    assert settings == RunSettings(("resnet18.c2",), trials=64, time_budget_secs=600.0, seed=3)


@pytest.mark.parametrize(
    ("changes", "named"),
    [
        ({"trials": "0"}, "trials"), ({"trials": "many"}, "many"), ({"trials": "1e9"}, "1e9"),
        ({"seed": "-1"}, "seed"),
        ({"seed": ""}, "seed"), ({"time_budget": "soon"}, "soon"), ({"time_budget": "0s"}, "0s"),
        ({"cost_model": "oracle"}, "oracle"), ({"workloads": ()}, "workload"),
    ],
)  # fmt: skip
def test_a_field_that_cant_be_used_is_named(changes: dict[str, object], named: str) -> None:
    with pytest.raises(UsageError, match=named) as caught:
        replace(FORM, **changes).settings(RunSettings())  # type: ignore[arg-type]
    assert caught.value.remedy


def test_the_command_is_quoted_and_leaves_defaults_out(tmp_path: Path) -> None:
    db = tmp_path / "my runs.sqlite"
    settings = replace(FORM, target='{"kind": "llvm"}', workloads=("a", "m:m=1,n=2")).settings(RunSettings())
    words = shlex.split(command_line(settings, db))
    assert words[:6] == ["tuneassist", "--batch", "--workload", "a", "--workload", "m:m=1,n=2"]
    assert words[words.index("--target") + 1] == '{"kind": "llvm"}'
    assert words[-1] == str(db) and "--cost-model" not in words


def row(trials: int, secs: float | None) -> RunRow:
    ended = 100.0 + secs if secs is not None else None
    return RunRow(
        1, RunStatus.DONE, False, 100.0, ended, 1, "t", "native", "m", "gcn", 0, trials, trials, trials, None
    )


def test_the_rate_is_the_median_of_runs_that_ended() -> None:
    assert (
        trials_per_minute([row(60, 60.0), row(120, 60.0), row(600, 60.0), row(50, None), row(2, 1.0)]) == 120
    )
    assert trials_per_minute([]) is None


def test_the_estimate_says_what_bounds_it() -> None:
    settings = RunSettings(trials=600, time_budget_secs=60.0)
    assert "time budget" in estimate(settings, 60.0)
    assert "10m 00s" in estimate(RunSettings(trials=600), 60.0)
    assert "unknown" in estimate(RunSettings(), None)
