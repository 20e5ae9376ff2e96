"""A dry run: candidates for a target that is not here, written down and never taken for measured."""

from __future__ import annotations

import json
import subprocess
from pathlib import Path
from typing import Any

import pytest
from batch_tools import SMALL, command, database

from tuneassist.exchange.candidates import CANDIDATES
from tuneassist.tvm_api import ms

pytestmark = pytest.mark.tvm

FAR = 'rpc:nobody@127.0.0.1:1/{"kind": "llvm", "mcpu": "x86-64-v3", "num-cores": 4}'


def dry(*arguments: str) -> tuple[int, dict[str, Any]]:
    words = command("--batch", "--dry-run", "--json", "--workload", SMALL, *arguments)
    done = subprocess.run(words, capture_output=True, text=True)
    return done.returncode, json.loads(done.stdout)


def test_the_best_by_prediction_are_written_for_a_device_that_is_not_there(tmp_path: Path) -> None:
    folder = tmp_path / "candidates"
    code, answer = dry("--target", FAR, "--keep", "4", "--output", str(folder))
    assert code == 0 and answer["measured"] is False
    assert answer["target"]["mcpu"] == "x86-64-v3"
    (task,) = answer["tasks"]
    secs = [candidate["predicted_secs"] for candidate in task["candidates"]]
    assert len(secs) == 4 == len({candidate["program"] for candidate in task["candidates"]})
    assert secs == sorted(secs) and task["spread"]["best_secs"] == secs[0] > 0
    assert json.loads((folder / CANDIDATES).read_text()) == answer
    records = ms.database.JSONDatabase(work_dir=str(folder)).get_all_tuning_records()
    assert len(records) == 4 and not any(record.run_secs for record in records)
    assert not database().exists()


@pytest.mark.parametrize(
    ("arguments", "words"),
    [
        (("--cost-model", "xgb"), "knows nothing before the first measurement"),
        (("--target", "rpc:nobody@127.0.0.1:1/llvm -mcpu=znver4"), "names no num-cores"),
    ],
)
def test_what_can_not_be_predicted_is_refused(tmp_path: Path, arguments: tuple[str, ...], words: str) -> None:
    code, answer = dry("--output", str(tmp_path / "candidates"), *arguments)
    assert code == answer["exit_code"] != 0
    assert words in answer["error"]
