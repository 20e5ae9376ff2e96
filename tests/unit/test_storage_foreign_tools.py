"""Other programs open the file: the sqlite-utils command and the real Datasette."""

from __future__ import annotations

import json
import subprocess
import sys
from pathlib import Path

import pytest
from store_rows import failed, ok, start_run

from tuneassist.records import TrialStatus
from tuneassist.storage._schema_v1 import TABLES, VIEWS
from tuneassist.storage.sqlite import open_store

NAMES = [statement.split()[2] for statement in (*TABLES, *VIEWS)]


@pytest.fixture(scope="module")
def path(tmp_path_factory: pytest.TempPathFactory) -> Path:
    path = tmp_path_factory.mktemp("store") / "history.sqlite"
    with open_store(path) as store:
        place = start_run(store)
        store.add_trial(ok(place, 1, 0.5))
        store.add_trial(failed(place, 2, TrialStatus.RUN_TIMEOUT, "took too long"))
    return path


def run(*arguments: str) -> str:
    done = subprocess.run(
        [sys.executable, "-m", *arguments], capture_output=True, text=True, timeout=120, check=True
    )
    return done.stdout


def test_sqlite_utils_lists_and_reads(path: Path) -> None:
    tables = {row["table"] for row in json.loads(run("sqlite_utils", "tables", str(path)))}
    views = {row["view"] for row in json.loads(run("sqlite_utils", "views", str(path)))}
    assert set(NAMES) <= tables | views
    (best,) = json.loads(run("sqlite_utils", "rows", str(path), "best_trials"))
    assert (best["workload"], best["best_of"], json.loads(best["run_secs"])) == (
        "matmul", 0.5, [0.45, 0.5, 0.55],
    )  # fmt: skip
    (broken,) = json.loads(run("sqlite_utils", "rows", str(path), "failed_trials"))
    assert (broken["status"], broken["error"]) == ("run_timeout", "took too long")


def test_the_schema_explains_its_columns(path: Path) -> None:
    schema = run("sqlite_utils", "schema", str(path))
    assert "-- every repeat in seconds: JSON array; null unless ok" in schema
    assert "-- the fastest valid trial of each workload on each machine and target" in schema


async def test_datasette_shows_every_table_and_view(path: Path) -> None:
    datasette = pytest.importorskip("datasette.app").Datasette([str(path)])
    await datasette.invoke_startup()
    for name in NAMES:
        page = await datasette.client.get(f"/history/{name}.json?_shape=array")
        assert page.status_code == 200, (name, page.text)
        assert all(isinstance(row, dict) for row in page.json())
    trials = (await datasette.client.get("/history/trials.json?_labels=on")).json()["rows"]
    assert (trials[0]["task_id"], trials[0]["status"]) == ({"value": 1, "label": "matmul"}, "ok")
    html = await datasette.client.get("/history/run_summary")
    assert (html.status_code, "matmul" in html.text) == (200, True)


def test_datasette_command_opens_the_file(path: Path) -> None:
    pytest.importorskip("datasette")
    found = json.loads(run("datasette", str(path), "--get", "/history/best_trials.json?_shape=array"))
    assert found[0]["workload"] == "matmul"
