"""`tuneassist dataset stats` over made-up stores."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from click.testing import CliRunner, Result
from store_rows import add_task, failed, ok, start_run

from tuneassist.commands._main import cli
from tuneassist.errors import TuneAssistError, UsageError
from tuneassist.records import TrialStatus
from tuneassist.storage.sqlite import open_store


@pytest.fixture
def store(tmp_path: Path) -> Path:
    """`matmul` in two modes with failures, `softmax` always equal, `dense` with 3 trials."""
    path = tmp_path / "measured.sqlite"
    random = np.random.default_rng(0)
    with open_store(path) as opened:
        place = start_run(opened, "matmul")
        logs = np.concatenate([random.normal(-7, 0.2, 30), random.normal(-4, 0.3, 90)])
        times = {place.task: np.exp(logs).tolist()}
        times[add_task(opened, place.run, "softmax")] = [1e-3] * 25
        times[add_task(opened, place.run, "dense")] = [1e-3, 2e-3, 4e-3]
        ordinal = 0
        for task, secs in times.items():
            for each in secs:
                ordinal += 1
                source = "random" if ordinal % 3 else "search"
                opened.add_trial(ok(place, ordinal, each, task_id=task, source=source))
        for status in (TrialStatus.BUILD_ERROR, TrialStatus.RUN_TIMEOUT):
            ordinal += 1
            opened.add_trial(failed(place, ordinal, status))
    return path


def stats(*arguments: str) -> Result:
    return CliRunner().invoke(cli, ["dataset", "stats", *arguments])


def found(*arguments: str) -> dict[str, dict[str, Any]]:
    result = stats(*arguments, "--json")
    assert result.exit_code == 0, result.output
    return {row["workload"]: row for row in json.loads(result.stdout)["workloads"]}


def test_counts_failures_span_and_distribution(store: Path) -> None:
    rows = found(str(store))
    matmul = rows["matmul"]
    assert (matmul["trials"], matmul["valid"], matmul["failed"]) == (122, 120, 2)
    assert matmul["statuses"] == {"ok": 120, "build_error": 1, "run_timeout": 1}
    assert matmul["sources"] == {"random": 80, "search": 40}
    assert matmul["mixture"]["weights"] == pytest.approx([0.25, 0.75], abs=0.01)
    assert matmul["mixture"]["bic"] < matmul["mixture"]["normal_bic"]
    assert rows["dense"]["mixture"] is None and "3 valid trials are too few" in rows["dense"]["problem"]
    assert rows["softmax"]["mixture"] is None and "same time" in rows["softmax"]["problem"]
    assert (rows["dense"]["fastest_secs"], rows["dense"]["slowest_secs"]) == (1e-3, 4e-3)


def test_the_table_says_the_same(store: Path) -> None:
    text = stats("--db", str(store)).stdout
    assert "25% around 890 µs" in text and "75% around 19.2 ms" in text
    assert "too few for a distribution" in text
    assert "█" in text


def test_a_workload_can_be_chosen(store: Path) -> None:
    assert found(str(store), "--workload", "soft*").keys() == {"softmax"}


def test_the_picture_is_drawn(store: Path, tmp_path: Path) -> None:
    picture = tmp_path / "all.svg"
    assert stats(str(store), "-o", str(picture)).exit_code == 0
    assert "<!-- softmax -->" in picture.read_text(encoding="utf-8")


def said(*arguments: str) -> TuneAssistError:
    result = CliRunner().invoke(cli, ["dataset", "stats", *arguments], standalone_mode=False)
    assert isinstance(result.exception, TuneAssistError)
    return result.exception


def test_bad_input_is_answered(store: Path, tmp_path: Path) -> None:
    absent = said(str(tmp_path / "absent.sqlite"))
    assert isinstance(absent, UsageError) and "no file" in absent.message
    with open_store(tmp_path / "empty.sqlite"):
        pass
    assert "holds no trial" in said(str(tmp_path / "empty.sqlite")).message
    assert "'bert'" in said(str(store), "--workload", "bert").message
    text = tmp_path / "text.sqlite"
    text.write_text("no database " * 100)
    assert said(str(text)).exit_code == 5
