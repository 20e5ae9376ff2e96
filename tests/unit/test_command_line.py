"""The command line's answers to bad input: exit code, cause, remedy; no engine is started for any of them."""

from __future__ import annotations

import json
import subprocess
import sys
from pathlib import Path

import click
import pytest
from click.testing import CliRunner

from tuneassist.commands import _group
from tuneassist.commands._main import cli, main
from tuneassist.config import parse_duration
from tuneassist.errors import UsageError

BATCH = ["--batch", "--workload", "matmul:m=8,n=8,k=8"]


def run(*arguments: str, monkeypatch: pytest.MonkeyPatch) -> int:
    monkeypatch.setattr(sys, "argv", ["tuneassist", *arguments])
    return main()


@pytest.mark.parametrize(
    ("arguments", "code", "cause", "remedy"),
    [
        (["--batch"], 2, "what to tune", "tuneassist workloads"),
        (["--batch", "--workload", "resnet18.c22"], 2, "resnet18.c22", "resnet18.c2"),
        (["--batch", "--workload", "matmul:m=8,n=8,k=zero"], 2, "zero", "k"),
        (["--batch", "--workload", "matmul:m=8,n=8,k=-1"], 2, "-1", ""),
        (["--batch", "--workload", "matmul:m=8,n=8,k=8,q=1"], 2, "q", ""),
        ([*BATCH, "--trials", "0"], 2, "--trials", ""),
        ([*BATCH, "--trials", "many"], 2, "many", ""),
        ([*BATCH, "--time-budget", "soon"], 2, "soon", "10m"),
        ([*BATCH, "--time-budget", "0s"], 2, "0s", "10m"),
        ([*BATCH, "--cost-model", "oracle"], 2, "oracle", "gcn"),
        ([*BATCH, "--target", '{"kind": '], 2, "JSON", ""),
        ([*BATCH, "--target", '{"kind": "llvm", "mcpu": NaN}'], 2, "JSON", ""),
        ([*BATCH, "--cores", "0-"], 2, "0-", ""),
        ([*BATCH, "--cores", "9999"], 2, "9999", ""),
        ([*BATCH, "--resume", "1"], 2, "--resume", "--workload"),
        (["--workload", "matmul:m=8,n=8,k=8"], 2, "--workload", "--batch"),
        (["--json"], 2, "--json", "--batch"),
        (["--batch", "--no-such-flag"], 2, "--no-such-flag", ""),
        (["no-such-command"], 2, "no-such-command", ""),
        ([], 2, "terminal", "--batch"),
    ],
)
def test_bad_input_is_answered_with_cause_and_remedy(
    arguments: list[str], code: int, cause: str, remedy: str, monkeypatch: pytest.MonkeyPatch,
    capsys: pytest.CaptureFixture[str],
) -> None:  # fmt: skip
    assert run(*arguments, monkeypatch=monkeypatch) == code
    said = capsys.readouterr()
    assert said.out == ""
    assert cause in said.err and remedy in said.err
    assert "Traceback" not in said.err


@pytest.mark.parametrize(
    ("arguments", "code"),
    [
        (["--batch", "--json", "--workload", "nonsense"], 2),
        (["--batch", "--json", "--attach", "7"], 5),
    ],
)
def test_json_is_one_object_whatever_happens(
    arguments: list[str], code: int, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    assert run(*arguments, monkeypatch=monkeypatch) == code
    said = capsys.readouterr()
    answer = json.loads(said.out)
    assert answer["status"] == "failed" and answer["exit_code"] == code
    assert answer["error"] and answer["error"] in said.err


def test_a_database_that_is_none_is_refused(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    other = tmp_path / "notes.txt"
    other.write_text("not a database at all, but long enough to look like a file of some kind\n" * 20)
    assert run("--batch", "--attach", "1", "--db", str(other), monkeypatch=monkeypatch) == 5
    assert str(other) in capsys.readouterr().err


def test_an_unreadable_settings_file_is_named(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    settings = tmp_path / "config.toml"
    settings.write_text("trials = 'many'\n")
    monkeypatch.setenv("TUNEASSIST_CONFIG", str(settings))
    assert run(*BATCH, monkeypatch=monkeypatch) == 2
    assert str(settings) in capsys.readouterr().err


@pytest.mark.parametrize(("text", "secs"), [("90", 90.0), ("90s", 90.0), ("10m", 600.0), ("1.5h", 5400.0)])
def test_durations(text: str, secs: float) -> None:
    assert parse_duration(text) == secs


@pytest.mark.parametrize("text", ["", "-5s", "10 minutes", "1e3", "nan", "0"])
def test_what_is_no_duration(text: str) -> None:
    with pytest.raises(UsageError):
        parse_duration(text)


@pytest.mark.parametrize("name", sorted(_group.SUBCOMMANDS))
def test_every_subcommand_has_help(name: str) -> None:
    shown = CliRunner().invoke(cli, [name, "--help"])
    assert shown.exit_code == 0, shown.output
    command = cli.get_command(click.Context(cli), name)
    assert command is not None and command.help


def test_help_loads_neither_tvm_nor_torch() -> None:
    code = (
        "import sys; from tuneassist.commands._main import main; sys.argv = ['tuneassist', '--help']; main();"
        "assert not {'tvm', 'torch', 'numpy', 'textual'} & set(sys.modules), 'heavy import'"
    )
    finished = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True)
    assert finished.returncode == 0, finished.stderr
    assert "--batch" in finished.stdout
