"""`tuneassist history` as a user runs it: tables, JSON, CSV, exit codes."""

from __future__ import annotations

import csv
import io
import json
import os
import subprocess
import sys
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest
from click.testing import CliRunner, Result
from store_rows import failed, ok, start_run

from tuneassist.commands._history_print import safe, sparkline
from tuneassist.commands.history import command
from tuneassist.errors import StoreError, TuneAssistError, UsageError
from tuneassist.records import Round, RunSettings, RunStatus, TrialStatus
from tuneassist.storage.sqlite import open_store

History = Callable[..., Result]
NAME = "it's \x1b[31mred\n\u202eעברית 🚀"


@pytest.fixture
def path(tmp_path: Path) -> Path:
    """Two runs: the first done with two trials and a failure, the second lost."""
    path = tmp_path / "t.sqlite"
    with open_store(path) as store:
        first = start_run(store, settings=RunSettings(trials=3, patience=5))
        store.add_trial(ok(first, 1, 0.5, predicted_secs=0.4))
        store.add_trial(failed(first, 2, TrialStatus.BUILD_ERROR, "\nno registers left\nmore"))
        store.add_trial(ok(first, 3, 0.25, correct=True))
        store.set_task_baseline(first.task, untuned_secs=1.0)
        store.add_round(Round(first.run, first.task, 1, 3, 2, 0.75, 0.5, {"build": 3.0, "measure": 1.0}, 9))
        store.end_run(first.run, RunStatus.DONE, result_json="{}")
        second = start_run(store)
        store.add_trial(ok(second, 1, 1.0))
    return path


@pytest.fixture
def history(path: Path, monkeypatch: pytest.MonkeyPatch) -> History:
    monkeypatch.setenv("TUNEASSIST_DB", str(path))

    def invoke(*arguments: object, **options: Any) -> Result:
        return CliRunner().invoke(command, [str(argument) for argument in arguments], **options)

    return invoke


def data(result: Result) -> Any:
    assert result.exception is None, result.output
    return json.loads(result.stdout)


def error(result: Result, kind: type[TuneAssistError]) -> TuneAssistError:
    assert isinstance(result.exception, kind), result.output
    assert result.exception.remedy
    return result.exception


def test_without_a_subcommand_runs_are_listed(history: History) -> None:
    listed = data(history("--json"))
    assert listed == data(history("list", "--json"))
    assert listed["total"] == 2
    second, first = listed["runs"]
    assert (first["id"], first["state"], first["valid"], first["best_secs"]) == (1, "done", 2, 0.25)
    assert (second["state"], second["resumable"]) == ("lost", True)


def test_list_marks_what_can_be_resumed(history: History, path: Path) -> None:
    result = history("--db", path)
    assert "lost*" in result.stdout
    assert f"tuneassist --batch --resume 2 --db {path}" in result.stdout


def test_list_filters_and_csv(history: History) -> None:
    rows = list(csv.DictReader(io.StringIO(history("list", "--csv", "--status", "done").stdout)))
    assert [(row["id"], row["best_secs"], row["state"]) for row in rows] == [("1", "0.25", "done")]
    assert data(history("list", "--json", "--since", "1d"))["total"] == 2
    assert data(history("list", "--json", "--until", "2020-01-01"))["total"] == 0
    assert data(history("list", "--json", "--workload", "conv*"))["runs"] == []


def test_list_of_no_file_is_empty_and_makes_none(history: History, tmp_path: Path) -> None:
    none = tmp_path / "folder" / "none.sqlite"
    assert data(history("list", "--json", "--db", none))["runs"] == []
    result = history("list", "--db", none)
    assert (result.stdout, result.exit_code) == ("", 0)
    assert "No runs yet" in result.stderr
    assert not none.parent.exists()


def test_show(history: History) -> None:
    shown = data(history("show", 1, "--json"))
    assert shown["run"]["state"] == "done"
    assert shown["tasks"][0]["failed"]["build_error"] == 1
    assert [step["best_secs"] for step in shown["tasks"][0]["curve"]] == [0.5, 0.25]
    assert shown["failures"][0]["examples"] == ["\nno registers left\nmore"]
    assert shown["rounds"][0]["spearman"] == 0.75
    assert shown["phase_secs"] == {"build": 3.0, "measure": 1.0}
    text = history("show", 1).stdout
    for part in (
        "Run 1: done", "patience 5", "250 ms", "4.00×", "1 build_error\n    no registers left", "0.75",
        "build 3s (75%)", "500 ms ██▁ 250 ms at trial 3 of 3",
    ):  # fmt: skip
        assert part in text, text
    assert "tuneassist --batch --resume 2" in history("show", 2).stdout


def test_best(history: History) -> None:
    (best,) = data(history("best", "--json", "--all-machines"))["best"]
    assert (best["workload"], best["best_secs"], best["run_id"]) == ("matmul", 0.25, 1)
    assert best["spread"] == pytest.approx(0.2)
    assert data(history("best", "--json", "--machine", "host"))["best"] == [best]
    assert data(history("best", "--json"))["best"] == []  # of this machine nothing is measured
    assert "matmul" in error(history("best", "matmull", "--json"), UsageError).remedy


def test_trials(history: History) -> None:
    listed = data(history("trials", 1, "--json"))
    assert [trial["ordinal"] for trial in listed["trials"]] == [1, 2, 3]
    assert data(history("trials", 1, "--json", "--status", "failed"))["trials"][0]["ordinal"] == 2
    rows = list(csv.DictReader(io.StringIO(history("trials", 1, "--csv", "--sort", "best_of").stdout)))
    assert [row["ordinal"] for row in rows] == ["3", "1", "2"]
    assert rows[2]["error"] == "\nno registers left\nmore"
    assert "no registers left" in history("trials", 1).stdout


def test_compare(history: History) -> None:
    compared = data(history("compare", 2, 1, "--json"))
    assert [row["ratio"] for row in compared["tasks"][0]["runs"]] == [1.0, 4.0]
    rows = list(csv.DictReader(io.StringIO(history("compare", 2, 1, "--csv").stdout)))
    assert [(row["run_id"], row["trials_to_common"]) for row in rows] == [("2", "1"), ("1", "1")]
    assert "4.00×" in history("compare", 2, 1).stdout
    error(history("compare", 1), UsageError)
    error(history("compare", 1, 1), UsageError)


@pytest.mark.parametrize(
    "arguments", [("show", 9), ("trials", 9), ("compare", 1, 9), ("note", 9, "x"), ("delete", 9)]
)
def test_unknown_run_names_those_that_are(history: History, arguments: tuple[object, ...]) -> None:
    assert "Nearest: 1, 2" in error(history(*arguments), UsageError).remedy
    result = history(*arguments, "--json")
    error(result, UsageError)
    assert json.loads(result.stdout)["exit_code"] == 2


def test_file_that_is_no_database(history: History, tmp_path: Path) -> None:
    bad = tmp_path / "bad.sqlite"
    bad.write_text("not a database, and long enough to be sure of it")
    for arguments in (("list",), ("show", 1), ("best",), ("sql", "SELECT 1"), ("vacuum",)):
        result = history(*arguments, "--db", bad, "--json")
        error(result, StoreError)
        assert json.loads(result.stdout)["exit_code"] == 5


@pytest.mark.parametrize("option", ["--since", "--until", "--older-than"])
@pytest.mark.parametrize("text", ["yesterday", "2026-13-01", "", "-3d", "9" * 400 + "d"])
def test_time_that_is_none(history: History, option: str, text: str) -> None:
    subcommand = "prune" if option == "--older-than" else "list"
    result = history(subcommand, f"{option}={text}")
    assert result.exit_code != 0
    assert isinstance(result.exception, UsageError | SystemExit), result.exception


def test_note(history: History) -> None:
    assert data(history("note", 1, NAME, "--json"))["note"] == NAME
    assert history("note", 1).stdout == "it's \\x1b[31mred\\n\\u202eעברית 🚀\n"
    assert "\x1b" not in history("list").stdout
    assert data(history("note", 1, "", "--json"))["note"] == ""


def test_prune_asks_and_keeps_the_best(history: History) -> None:
    error(history("prune"), UsageError)
    plan = data(history("prune", "--workload", "matmul", "--dry-run", "--json"))
    assert (plan["matching"], plan["kept_best"], plan["removed"]) == ([2], [1], [])
    assert "nobody to ask" in error(history("prune", "--workload", "matmul"), UsageError).message
    assert data(history("list", "--json"))["total"] == 2
    assert data(history("prune", "--workload", "matmul", "--yes", "--json"))["removed"] == [2]
    assert [run["id"] for run in data(history("list", "--json"))["runs"]] == [1]


def test_delete_then_vacuum(history: History) -> None:
    error(history("delete", 1), UsageError)
    assert data(history("delete", 1, 2, "--yes", "--json"))["removed"] == [1, 2]
    assert set(data(history("vacuum", "--json"))) == {"db", "bytes_before", "bytes_after"}


def test_salvage(history: History, path: Path, tmp_path: Path) -> None:
    tables = data(history("salvage", path, tmp_path / "new.sqlite", "--json"))["tables"]
    assert {table["table"]: table["rows"] for table in tables}["trials"] == 4
    assert data(history("show", 1, "--json", "--db", tmp_path / "new.sqlite"))["run"]["valid"] == 2


def test_sql_reads(history: History) -> None:
    result = data(history("sql", "SELECT run_id, status, run_id FROM run_summary ORDER BY 1", "--json"))
    assert result["columns"] == ["run_id", "status", "run_id_2"]
    assert result["rows"][0] == {"run_id": 1, "status": "done", "run_id_2": 1}
    assert history("sql", "SELECT 1 AS a, NULL AS b, x'00ff' AS c", "--csv").stdout == "a,b,c\n1,,00ff\n"
    assert history("sql", "-", input="PRAGMA table_info(runs)").exit_code == 0
    assert data(history("sql", f"SELECT '{NAME.replace(chr(39), '')}' AS n", "--json"))["rows"][0]["n"]


@pytest.mark.parametrize(
    "statement",
    [
        "DELETE FROM runs", "UPDATE runs SET note = 'x'", "DROP TABLE trials", "CREATE TABLE t (x)",
        "ATTACH '/tmp/other.sqlite' AS other", "PRAGMA query_only = 0", "PRAGMA user_version = 9", "VACUUM",
        "PRAGMA journal_mode = DELETE", "SELECT load_extension('x')", "BEGIN IMMEDIATE", "REINDEX",
        "SELECT 1; DROP TABLE runs", "INSERT INTO runs SELECT * FROM runs", "CREATE TEMP TABLE t (x)",
        "nonsense", "SELECT * FROM nothing", "SELECT ?", "", " ", "\0",
    ],
)  # fmt: skip
def test_sql_refuses_what_is_more_than_reading(history: History, path: Path, statement: str) -> None:
    before = path.read_bytes()
    error(history("sql", statement), UsageError)
    assert path.read_bytes() == before


def test_sql_stops_on_interrupt(path: Path) -> None:
    endless = "WITH RECURSIVE c(x) AS (SELECT 1 UNION ALL SELECT x + 1 FROM c) SELECT count(*) FROM c"
    script = (
        "import sys, threading, os, signal; from tuneassist.commands.history import command\n"
        "threading.Timer(0.5, os.kill, (os.getpid(), signal.SIGINT)).start()\n"
        "command(sys.argv[1:])"
    )
    done = subprocess.run(
        [sys.executable, "-c", script, "sql", endless, "--db", str(path)], timeout=30, capture_output=True
    )
    assert done.returncode == 1  # click's own answer to an interrupt
    assert b"Aborted" in done.stderr


def test_narrow_terminal_folds_and_loses_nothing(path: Path) -> None:
    import pty

    leader, follower = pty.openpty()
    script = "import sys; from tuneassist.commands.history import command; command(sys.argv[1:])"
    environment = {**os.environ, "COLUMNS": "80", "TERM": "dumb"}
    done = subprocess.run(
        [sys.executable, "-c", script, "list", "--db", str(path)],
        timeout=30,
        stdout=follower,
        env=environment,
    )
    os.close(follower)
    text = os.read(leader, 65536).decode()
    os.close(leader)
    assert done.returncode == 0
    assert max(len(line) for line in text.splitlines() if "--resume" not in line) <= 80
    for part in ("lost*", "done", "matmul", "2/3", "250 ms"):
        assert part in text


def test_listing_loads_neither_sqlite_utils_nor_numpy(path: Path) -> None:
    script = (
        "import sys; from tuneassist.commands.history import command\n"
        "command(sys.argv[1:], standalone_mode=False)\n"
        "print(sorted({'sqlite_utils', 'numpy', 'scipy', 'tvm', 'torch', 'textual'} & set(sys.modules)))"
    )
    done = subprocess.run(
        [sys.executable, "-c", script, "list", "--db", str(path)], capture_output=True, text=True, timeout=30
    )
    assert done.stdout.endswith("[]\n"), done.stdout + done.stderr


def test_safe_text() -> None:
    assert safe("a\tb\x9b\u2066\udc80") == "a\\tb\\x9b\\u2066\\udc80"
    assert safe("naïve 東京 👩‍🔬 עברית") == "naïve 東京 👩‍🔬 עברית"


def test_sparkline() -> None:
    assert sparkline([]) == ""
    assert sparkline([1.0, 1.0]) == "▁▁"
    assert sparkline([2.0, 1.0, 1.5]) == "█▁▅"
    assert len(sparkline([float(n) for n in range(1000)], width=10)) == 10
