"""`tuneassist workloads`."""

from __future__ import annotations

import io
import json
import subprocess
import sys

import pytest
from click.testing import CliRunner
from rich.console import Console

from tuneassist.commands import workloads
from tuneassist.errors import UsageError
from tuneassist.workloads.spec import list_workloads


def run(*arguments: str) -> str:
    result = CliRunner().invoke(workloads.command, arguments, catch_exceptions=False)
    assert result.exit_code == 0
    return result.stdout


def test_lines_for_a_program() -> None:
    header, line = run("resnet18.c2:layout=NHWC").splitlines()
    assert header.split("\t") == ["name", "shapes", "dtype", "flops", "bytes", "intensity"]
    name, shapes, dtype, flops, size, intensity = line.split("\t")
    assert (name, dtype, flops, size) == ("resnet18.c2:layout=NHWC", "float32", "231211008", "1753088")
    assert shapes == "1x56x56x64, 3x3x64x64* -> 1x56x56x64"
    assert float(intensity) == pytest.approx(231211008 / 1753088, abs=0.01)


def test_json_is_one_object() -> None:
    found = json.loads(run("--json"))["workloads"]
    assert len(found) >= 90
    c2 = next(item for item in found if item["name"] == "resnet18.c2")
    assert c2["inputs"][1] == {"name": "weight", "shape": [64, 64, 3, 3], "dtype": "float32"}
    assert c2["prepacked"] == "weight"
    assert c2["flops"] == 231_211_008


def test_unknown_filter_names_the_nearest() -> None:
    with pytest.raises(UsageError, match=r"resnet18\.c2"):
        CliRunner().invoke(workloads.command, ["resnt18.c2"], catch_exceptions=False)


def test_json_tells_of_an_unknown_filter() -> None:
    result = CliRunner().invoke(workloads.command, ["resnt18.c2", "--json"])
    assert isinstance(result.exception, UsageError)
    said = json.loads(result.stdout)
    assert said["workloads"] == [] and said["exit_code"] == 2
    assert "resnet18.c2" in said["remedy"]


def test_kinds_name_every_parameter() -> None:
    assert "trans_b" in run("matmul", "--kinds")
    kinds = json.loads(run("--kinds", "--json"))["kinds"]
    conv2d = next(kind for kind in kinds if kind["kind"] == "conv2d")
    layout = next(param for param in conv2d["parameters"] if param["name"] == "layout")
    assert layout["default"] == "NCHW" and "NCHWc" in layout["accepts"]


@pytest.mark.parametrize("width", [80, 140])
def test_table_fits_the_terminal(width: int, monkeypatch: pytest.MonkeyPatch) -> None:
    screen = io.StringIO()
    monkeypatch.setattr(workloads, "Console", lambda: Console(file=screen, width=width))
    workloads.print_table(list_workloads("resnet18.c2:layout=NHWC,dtype=float16"))
    text = screen.getvalue()
    assert max(map(len, text.splitlines())) <= width
    assert "231 M" in text and "float16" in text


def test_listing_imports_neither_tvm_nor_torch() -> None:
    code = (
        "import sys; from tuneassist.commands.workloads import command\n"
        "command(['--json'], standalone_mode=False)\n"
        "sys.exit(bool({'tvm', 'torch', 'textual'} & set(sys.modules)))"
    )
    assert subprocess.run([sys.executable, "-c", code], stdout=subprocess.DEVNULL, timeout=60).returncode == 0
