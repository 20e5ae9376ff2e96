"""`tuneassist doctor`, and that nothing that breaks under it takes it along."""

from __future__ import annotations

import json
import subprocess
from pathlib import Path
from typing import Any

import pytest
from click.testing import CliRunner

from tuneassist.commands import doctor
from tuneassist.targets import diagnosis
from tuneassist.targets.checks import Check, CheckStatus

pytestmark = pytest.mark.tvm


def by_id(checks: list[Check]) -> dict[str, Check]:
    return {check.id: check for check in checks}


def run_json(*arguments: str) -> tuple[int, dict[str, Any]]:
    result = CliRunner().invoke(doctor.command, [*arguments, "--json"], catch_exceptions=False)
    value: dict[str, Any] = json.loads(result.stdout)
    return result.exit_code, value


def test_everything_is_checked_and_this_machine_can_tune() -> None:
    code, found = run_json()
    checks = {check["id"]: check for check in found["checks"]}
    assert {
        "python", "apache-tvm", "apache-tvm-ffi", "torch", "torch-geometric", "cores", "memory", "clock",
        "load", "environment", "fork", "save-json", "llvm", "cpu", "kernel", "noise", "peak", "pytorch",
        "disk", "store", "cuda",
    } == set(checks)  # fmt: skip
    assert len(checks) == len(found["checks"])
    assert [check["id"] for check in found["checks"] if check["status"] == "error"] == []
    assert (code, found["ok"]) == (0, True)
    assert all(check["remedy"] for check in found["checks"] if check["status"] != "ok")


def test_a_store_at_fault_is_exit_code_5(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(diagnosis, "tvm_checks", lambda: iter(()))
    db = tmp_path / "notes.txt"
    db.write_text("no database\n" * 100)
    code, found = run_json("--db", str(db))
    assert (code, found["ok"], found["exit_code"]) == (5, False, 5)


def test_lines_for_a_program(monkeypatch: pytest.MonkeyPatch) -> None:
    check = Check("load", CheckStatus.WARNING, "busy", "wait")
    monkeypatch.setattr(diagnosis, "diagnose", lambda db: iter([check]))
    result = CliRunner().invoke(doctor.command, [], catch_exceptions=False)
    assert (result.exit_code, result.stdout) == (0, "warning\tload\tbusy\twait\n")


@pytest.mark.parametrize(
    ("source", "said"),
    [
        ("import os, signal; os.kill(os.getpid(), signal.SIGSEGV)", "signal 11"),
        ("raise ImportError('libtvm.so: cannot open shared object file')", "libtvm.so"),
    ],
)
def test_a_tvm_that_can_not_be_loaded_is_one_error(
    source: str, said: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    (tmp_path / "tvm.py").write_text(source)
    monkeypatch.setenv("PYTHONPATH", str(tmp_path))
    (check,) = diagnosis.tvm_checks()
    assert (check.id, check.status) == ("tvm", CheckStatus.ERROR)
    assert said in check.seen
    assert "pip install" in check.remedy


def test_a_crash_in_one_check_is_that_checks_error(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    # What tvm-ffi 0.1.15 does with tvm.ir.save_json, done to the TVM that is installed.
    (tmp_path / "sitecustomize.py").write_text(
        "import os, signal, sys\n"
        "class Finder:\n"
        "    def find_spec(self, name, path=None, target=None):\n"
        "        if name == 'tuneassist.targets.tvm_checks':\n"
        "            import tvm.ir\n"
        "            tvm.ir.save_json = lambda *_: os.kill(os.getpid(), signal.SIGSEGV)\n"
        "sys.meta_path.insert(0, Finder())\n"
    )
    monkeypatch.setenv("PYTHONPATH", str(tmp_path))
    checks = by_id(list(diagnosis.tvm_checks()))
    assert checks["save-json"].status is CheckStatus.ERROR
    assert "SIGSEGV" in checks["save-json"].seen
    assert "<0.1.15" in checks["save-json"].remedy
    assert checks["kernel"].status is CheckStatus.OK


def test_a_torch_that_does_not_load_is_an_error(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    (tmp_path / "torch.py").write_text("raise OSError('libtorch_cpu.so is missing')")
    monkeypatch.setenv("PYTHONPATH", str(tmp_path))
    check = diagnosis.check_torch()
    assert check.status is CheckStatus.ERROR
    assert "libtorch_cpu.so is missing" in check.seen


def test_a_torch_that_hangs_is_an_error(monkeypatch: pytest.MonkeyPatch) -> None:
    def hang(*args: object, **kwargs: Any) -> None:
        raise subprocess.TimeoutExpired("python", kwargs["timeout"])

    monkeypatch.setattr(subprocess, "run", hang)
    assert diagnosis.check_torch(7.0).seen == "loading took longer than 7 s"
