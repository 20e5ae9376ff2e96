"""Real tuning from the command line: the result, the store, and every way in which it may end."""

from __future__ import annotations

import json
import os
import shutil
import signal
import subprocess
import sys
from pathlib import Path

import jsonschema
import pytest
from batch_tools import (
    RESULT_SCHEMA,
    SMALL,
    command,
    database,
    engine_processes,
    result_of,
    rows,
    tune,
    wait_for_no_process,
    wait_for_trials,
)

pytestmark = pytest.mark.tvm


@pytest.fixture(autouse=True)
def known_machine(measured_machine: Path) -> None:
    """Start from a database that knows this machine."""
    database().parent.mkdir(parents=True, exist_ok=True)
    shutil.copy(measured_machine, database())


CONV = "conv2d:n=1,ci=8,h=14,w=14,co=16,k=3,s=1,p=1"


@pytest.mark.parametrize("cost_model", ["gcn", "mlp", "xgb", "random"])
def test_a_run_measures_stores_and_reports(cost_model: str) -> None:
    finished = tune("--workload", CONV, "--trials", "24", "--cost-model", cost_model, "--seed", "3")
    assert finished.returncode == 0, finished.stderr
    result = result_of(finished)
    jsonschema.validate(result, RESULT_SCHEMA)
    (task,) = result["tasks"]
    assert (result["status"], result["cost_model"], result["seed"]) == ("done", cost_model, 3)
    assert task["trials"] == 24 and task["valid"] > 0
    assert task["correct"] is True
    assert task["baseline_secs"] > 0 and task["pytorch_secs"] > 0

    trials = rows("SELECT * FROM trials ORDER BY ordinal")
    assert [trial["ordinal"] for trial in trials] == list(range(1, 25))
    valid = [trial for trial in trials if trial["status"] == "ok"]
    assert len(valid) == task["valid"]
    for trial in valid:
        secs = json.loads(trial["run_secs"])
        assert len(secs) >= 3 and all(0 < value < 10 for value in secs)
        json.loads(trial["trace_json"])
    assert min(trial["best_of"] for trial in valid if trial["correct"] != 0) == task["best_secs"]
    if cost_model in ("gcn", "mlp"):
        assert all(trial["predicted_secs"] > 0 for trial in trials)
    assert len({trial["module_hash"] for trial in trials}) == 24
    wait_for_no_process()


def test_two_tasks_share_the_budget_and_equal_ones_are_one_task() -> None:
    finished = tune("--workload", SMALL, "--workload", CONV, "--workload", SMALL, "--trials", "32",
                    "--cost-model", "random")  # fmt: skip
    result = result_of(finished)
    assert [task["weight"] for task in result["tasks"]] == [2, 1]
    assert sum(task["trials"] for task in result["tasks"]) == 32
    assert all(task["valid"] for task in result["tasks"])


def test_the_same_seed_proposes_the_same_first_round(tmp_path: Path) -> None:
    hashes = []
    for name, seed in (("a", "5"), ("b", "5"), ("c", "6")):
        db = shutil.copy(database(), tmp_path / f"{name}.sqlite")
        finished = tune("--workload", CONV, "--trials", "8", "--seed", seed, "--cost-model", "random",
                        "--db", str(db))  # fmt: skip
        assert finished.returncode == 0, finished.stderr
        found = subprocess.run(
            [sys.executable, "-m", "sqlite_utils", "query", str(db), "select module_hash from trials"],
            capture_output=True,
            text=True,
        )
        hashes.append({row["module_hash"] for row in json.loads(found.stdout)})
    assert hashes[0] == hashes[1]
    assert hashes[0] != hashes[2]


def test_resuming_goes_on_where_the_run_stood() -> None:
    first = result_of(tune("--workload", SMALL, "--trials", "16", "--cost-model", "random"))
    again = tune("--resume", str(first["run_id"]), "--trials", "32")
    assert again.returncode == 0, again.stderr
    result = result_of(again)
    assert result["run_id"] == first["run_id"]
    assert result["tasks"][0]["trials"] == 32
    trials = rows("SELECT ordinal, module_hash FROM trials ORDER BY ordinal")
    assert [trial["ordinal"] for trial in trials] == list(range(1, 33))
    assert len({trial["module_hash"] for trial in trials}) == 32


def test_a_later_run_starts_from_what_was_measured_unless_told_not_to() -> None:
    tune("--workload", SMALL, "--trials", "16", "--cost-model", "random")
    second = tune("--workload", SMALL, "--trials", "16", "--cost-model", "random")
    assert "starts from 16 of 16 trials" in second.stderr
    assert len(rows("SELECT DISTINCT module_hash FROM trials")) == 32
    third = tune("--workload", SMALL, "--trials", "8", "--cost-model", "random", "--no-history")
    assert "starts from" not in third.stderr


def test_a_killed_engine_is_started_again_and_loses_nothing() -> None:
    viewer = subprocess.Popen(
        command("--batch", "--json", "--workload", SMALL, "--trials", "120", "--cost-model", "random"),
        stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True,
    )  # fmt: skip
    wait_for_trials(20)
    before = rows("SELECT ordinal, run_secs FROM trials ORDER BY ordinal")
    engine = next(p for p in engine_processes() if "tuneassist.tuning.engine" in p.cmdline())
    os.kill(engine.pid, signal.SIGKILL)
    out, err = viewer.communicate(timeout=240)
    assert viewer.returncode == 0, err
    assert "starting it again" in err
    result = json.loads(out)
    trials = rows("SELECT ordinal, run_secs, module_hash FROM trials ORDER BY ordinal")
    assert [trial["ordinal"] for trial in trials] == list(range(1, 121))
    kept = {trial["ordinal"]: trial["run_secs"] for trial in trials}
    # Those measured again at the end have more repeats; the ones from before the kill are still the first.
    assert all(
        kept[row["ordinal"]].startswith(row["run_secs"].rstrip("]")) for row in before if row["run_secs"]
    )
    assert len({trial["module_hash"] for trial in trials}) == 120
    assert result["tasks"][0]["trials"] == 120
    wait_for_no_process()


def test_killing_the_viewer_ends_the_engine_and_the_run_can_be_resumed() -> None:
    viewer = subprocess.Popen(
        command("--batch", "--json", "--workload", SMALL, "--trials", "400", "--cost-model", "random"),
        stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL,
    )  # fmt: skip
    wait_for_trials(10)
    viewer.kill()
    viewer.wait()
    wait_for_no_process()
    (run,) = rows("SELECT id, status FROM runs")
    assert run["status"] == "interrupted"
    measured = rows("SELECT count(*) AS n FROM trials")[0]["n"]
    again = tune("--resume", str(run["id"]), "--trials", str(measured + 8))
    assert again.returncode == 0, again.stderr
    assert result_of(again)["tasks"][0]["trials"] == measured + 8


@pytest.mark.parametrize("number", [signal.SIGINT, signal.SIGTERM])
def test_an_interrupt_keeps_what_was_measured_and_names_the_resume_command(number: signal.Signals) -> None:
    viewer = subprocess.Popen(
        command("--batch", "--json", "--workload", SMALL, "--trials", "400", "--cost-model", "random"),
        stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True,
    )  # fmt: skip
    wait_for_trials(10)
    viewer.send_signal(number)
    out, err = viewer.communicate(timeout=60)
    assert viewer.returncode == 130
    result = json.loads(out)
    jsonschema.validate(result, RESULT_SCHEMA)
    assert result["status"] == "interrupted"
    assert result["tasks"][0]["trials"] >= 10
    assert f"--resume {result['run_id']}" in err
    wait_for_no_process()


def test_two_runs_at_once_share_one_database() -> None:
    arguments = command("--batch", "--json", "--trials", "24", "--cost-model", "random", "--no-history")
    both = [
        subprocess.Popen(
            [*arguments, "--workload", spec], text=True, stdout=subprocess.PIPE, stderr=subprocess.PIPE
        )
        for spec in (SMALL, CONV)
    ]
    results = []
    for process in both:
        out, err = process.communicate(timeout=240)
        assert process.returncode == 0, err
        results.append(json.loads(out))
    assert results[0]["run_id"] != results[1]["run_id"]
    counts = rows("SELECT run_id, count(*) AS n FROM trials GROUP BY run_id")
    assert [row["n"] for row in counts] == [24, 24]


def test_a_time_budget_ends_the_search() -> None:
    finished = tune(
        "--workload", SMALL, "--trials", "100000", "--time-budget", "15s", "--cost-model", "random"
    )
    assert finished.returncode == 0, finished.stderr
    result = result_of(finished)
    assert result["status"] == "done"
    assert 0 < result["tasks"][0]["trials"] < 100000


def test_patience_ends_a_task_that_no_longer_gets_better() -> None:
    finished = tune("--workload", SMALL, "--trials", "2000", "--patience", "12", "--cost-model", "random")
    assert finished.returncode == 0, finished.stderr
    assert result_of(finished)["tasks"][0]["trials"] < 2000
    assert "patience" in finished.stderr


def test_a_run_without_a_valid_trial_fails_and_says_why(tmp_path: Path) -> None:
    script = tmp_path / "kernels.py"
    script.write_text(
        "from tvm import te\n"
        "a = te.placeholder((64, 64), name='A')\n"
        "b = te.compute((64, 64), lambda i, j: te.sqrt(-1.0 - a[i, j] * a[i, j]), name='B')\n"
        "func = te.create_prim_func([a, b])\n"
    )
    finished = tune("--workload", f"{script}:func", "--trials", "8", "--cost-model", "random")
    assert finished.returncode == 4
    result = result_of(finished)
    assert result["status"] == "failed" and result["exit_code"] == 4
    assert "NaN" in result["error"]
    assert result["tasks"][0]["failed"]["run_error"] == result["tasks"][0]["trials"] > 0
    assert database().exists()
