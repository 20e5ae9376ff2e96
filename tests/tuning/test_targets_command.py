"""`tuneassist targets`."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import pytest
from click.testing import CliRunner

from tuneassist.commands import targets
from tuneassist.errors import MachineError, TuneAssistError, UsageError

pytestmark = pytest.mark.tvm


def run(*arguments: str) -> str:
    result = CliRunner().invoke(targets.command, arguments, catch_exceptions=False)
    assert result.exit_code == 0
    return result.stdout


def run_json(*arguments: str) -> tuple[dict[str, Any], TuneAssistError | None]:
    result = CliRunner().invoke(targets.command, [*arguments, "--json"])
    assert result.exception is None or isinstance(result.exception, TuneAssistError)
    value: dict[str, Any] = json.loads(result.stdout)
    return value, result.exception


def test_the_list_holds_this_machine_the_kinds_and_the_tags() -> None:
    found, problem = run_json()
    assert problem is None
    assert found["native"]["kind"] == "llvm"
    assert "llvm" in found["kinds"]
    tag = next(tag for tag in found["tags"] if tag["name"] == "nvidia/geforce-rtx-3090")
    assert (tag["kind"], tag["model"]) == ("cuda", "sm_86")
    assert not next(tag for tag in found["tags"] if tag["kind"] == "metal")["available"]


def test_a_filter_narrows_the_tags() -> None:
    header, *lines = run("RTX-309").splitlines()
    assert header.startswith("tag\t")
    assert [line.partition("\t")[0] for line in lines] == [
        "nvidia/geforce-rtx-3090",
        "nvidia/geforce-rtx-3090-ti",
    ]


def test_an_old_style_string_is_shown_in_its_new_form() -> None:
    found, problem = run_json("llvm -mcpu=x86-64 -num-cores 1")
    assert problem is None
    assert found["usable"] and found["exit_code"] == 0
    assert (found["target"]["mcpu"], found["target"]["num-cores"]) == ("x86-64", 1)


def test_a_target_that_can_not_be_measured_is_explained_all_the_same() -> None:
    found, problem = run_json("rpc:pi@10.0.0.2:9190/raspberry-pi/4b-aarch64")
    assert isinstance(problem, MachineError)
    assert not found["usable"]
    assert (found["exit_code"], found["error"]) == (3, problem.message)
    assert found["target"]["mcpu"] == "cortex-a72"


@pytest.mark.parametrize(
    ("arguments", "kind"),
    [
        (["warp"], UsageError),
        (["{"], UsageError),
        (["opencl"], MachineError),
        (["cuda", "--measure"], UsageError),
    ],
)
def test_a_refusal_is_one_json_object_too(arguments: list[str], kind: type[TuneAssistError]) -> None:
    found, problem = run_json(*arguments)
    assert isinstance(problem, kind)
    assert found == {"error": problem.message, "remedy": problem.remedy, "exit_code": kind.exit_code}


def test_looking_makes_no_database_and_measuring_keeps_its_result(tmp_path: Path) -> None:
    db = tmp_path / "facts.sqlite"
    run("native", "--db", str(db))
    assert not db.exists()
    measured, _ = run_json("--measure", "--db", str(db))
    fact = measured["cpu_model"]
    assert fact["results"][0]["ratio"] == 1.0
    explained, _ = run_json("native", "--db", str(db))
    assert explained["note"] == fact["note"]
    assert explained["target"]["mcpu"] == fact["config"]["mcpu"]
