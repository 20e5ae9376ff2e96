"""A viewer's hold on an engine: what it makes of engines that end in every way."""

from __future__ import annotations

import subprocess
import sys
import time
from pathlib import Path

import pytest

from tuneassist import events
from tuneassist.events import RunEnded
from tuneassist.records import RunSettings
from tuneassist.session import EngineSession
from tuneassist.tuning.event_log import EventLog


def session_of(code: str, path: Path, workloads: tuple[str, ...] = ()) -> EngineSession:
    """A session over a process that runs that Python code in place of an engine."""
    process = subprocess.Popen([sys.executable, "-c", code])
    process.wait()
    return EngineSession(
        path, db=path.with_name("store.sqlite"), settings=RunSettings(workloads=workloads), pid=process.pid,
        process=process,
    )  # fmt: skip


def started(run_id: int) -> events.RunStarted:
    return events.RunStarted(
        1.0, run_id, "store.sqlite", {"kind": "llvm"}, "", {}, "gcn", 0, 8, None, None, ()
    )  # fmt: skip


def test_an_engine_that_could_not_write_its_last_event_has_ended_on_purpose(tmp_path: Path) -> None:
    path = tmp_path / "events.jsonl"
    EventLog(path).write(started(3))
    session = session_of("import os; os._exit(5)", path)
    first, last = session.poll(), session.poll()
    assert isinstance(first[0], events.RunStarted)
    (ended,) = last
    assert isinstance(ended, RunEnded) and ended.exit_code == 5
    assert "--resume 3" in ended.remedy and "free" in (ended.error or "")
    assert session.poll() == []


def test_an_engine_that_dies_before_there_is_a_run_is_not_worth_another(tmp_path: Path) -> None:
    session = session_of("import os; os._exit(0)", tmp_path / "events.jsonl", ("kernels.py:func",))
    (ended,) = session.poll()
    assert isinstance(ended, RunEnded) and ended.exit_code == 3
    assert "kernels.py:func" in ended.remedy


def test_an_engine_that_crashes_in_a_run_is_left_to_be_restarted(tmp_path: Path) -> None:
    path = tmp_path / "events.jsonl"
    EventLog(path).write(started(3))
    session = session_of("import os, signal; os.kill(os.getpid(), signal.SIGKILL)", path)
    assert len(session.poll()) == 1
    assert session.poll() == [] and session.ended is None
    assert not session.alive()


def test_a_line_cut_short_spoils_only_itself(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    import os

    path = tmp_path / "events.jsonl"
    log = EventLog(path)
    write = os.write
    monkeypatch.setattr(os, "write", lambda fd, data: write(fd, data[: len(data) // 2]))
    log.write(events.Message(time.time(), "info", "cut"))
    monkeypatch.setattr(os, "write", write)
    log.write(events.Message(time.time(), "info", "whole"))
    session = session_of("", path)
    texts = [event.text for event in session.poll() if isinstance(event, events.Message)]
    assert texts == ["whole"] and log.lost == 1


def test_an_engine_starts_in_a_folder_that_holds_our_names(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    (tmp_path / "tuneassist").mkdir()
    (tmp_path / "json.py").write_text("raise RuntimeError('the wrong json')\n")
    monkeypatch.chdir(tmp_path)
    session = EngineSession.start(
        RunSettings(workloads=("no-such-workload",)), db=tmp_path / "store.sqlite", detachable=False
    )
    deadline = time.monotonic() + 60
    while session.ended is None and time.monotonic() < deadline:
        session.poll()
        time.sleep(0.05)
    session.wait()
    assert session.ended is not None
    assert session.ended.exit_code == 2 and "no-such-workload" in (session.ended.error or "")
