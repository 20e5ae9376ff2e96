"""Doctor's look at the database, which it neither makes nor migrates."""

from __future__ import annotations

import sqlite3
from pathlib import Path

import pytest

from tuneassist.storage.sqlite import open_store
from tuneassist.storage.version import APPLICATION_ID, SCHEMA_VERSION
from tuneassist.targets import store_checks as module
from tuneassist.targets.checks import Check, CheckStatus
from tuneassist.targets.store_checks import check_disk, store_checks

MIB = 1 << 20


def store_check(db: Path) -> Check:
    (check,) = (check for check in store_checks(db) if check.id == "store")
    return check


@pytest.fixture
def db(tmp_path: Path) -> Path:
    path = tmp_path / "runs.sqlite"
    open_store(path).close()
    return path


def test_no_database_yet(tmp_path: Path) -> None:
    db = tmp_path / "deep" / "down" / "runs.sqlite"
    assert store_check(db).status is CheckStatus.OK
    assert not db.parent.exists()


def test_a_sound_database_is_left_as_it_is(db: Path) -> None:
    before = db.read_bytes()
    assert store_check(db).status is CheckStatus.OK
    assert db.read_bytes() == before


def test_another_programs_database(tmp_path: Path) -> None:
    path = tmp_path / "other.sqlite"
    with sqlite3.connect(path) as conn:
        conn.execute("CREATE TABLE mine (a)")
    check = store_check(path)
    assert check.status is CheckStatus.ERROR
    assert "another program" in check.seen


def test_a_newer_schema(db: Path) -> None:
    with sqlite3.connect(db) as conn:
        conn.execute(f"PRAGMA user_version = {SCHEMA_VERSION + 1}")
    check = store_check(db)
    assert check.status is CheckStatus.ERROR
    assert str(SCHEMA_VERSION + 1) in check.seen


def test_an_older_schema_is_not_migrated_by_looking(tmp_path: Path) -> None:
    path = tmp_path / "old.sqlite"
    with sqlite3.connect(path) as conn:
        conn.execute("CREATE TABLE runs (id)")
        conn.execute(f"PRAGMA application_id = {APPLICATION_ID}")
    assert store_check(path).status is CheckStatus.OK
    with sqlite3.connect(path) as conn:
        assert conn.execute("PRAGMA user_version").fetchone() == (0,)


def test_text_is_no_database(tmp_path: Path) -> None:
    path = tmp_path / "notes.txt"
    path.write_text("no database at all\n" * 100)
    check = store_check(path)
    assert check.status is CheckStatus.ERROR
    assert check.remedy


def test_a_damaged_database(db: Path) -> None:
    with sqlite3.connect(db) as conn:
        conn.execute("PRAGMA journal_mode = DELETE")
        pages = conn.execute("PRAGMA page_count").fetchone()[0]
        size = conn.execute("PRAGMA page_size").fetchone()[0]
    data = bytearray(db.read_bytes())
    for page in range(1, pages):
        data[page * size : page * size + 100] = b"\xff" * 100
    db.write_bytes(data)
    check = store_check(db)
    assert check.status is CheckStatus.ERROR
    assert check.remedy


def test_a_folder_in_place_of_the_file(tmp_path: Path) -> None:
    assert store_check(tmp_path).status is CheckStatus.ERROR


def test_a_lock_that_another_connection_holds(db: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(module, "_BUSY_TIMEOUT_SECS", 0.05)
    conn = sqlite3.connect(db)
    conn.execute("BEGIN IMMEDIATE")
    try:
        check = store_check(db)
    finally:
        conn.close()
    assert check.status is CheckStatus.WARNING
    assert "lock" in check.seen


@pytest.mark.skipif(not Path("/proc/self").exists(), reason="needs a folder that nobody may write")
def test_a_folder_that_can_not_be_written() -> None:
    check = store_check(Path("/proc/tuneassist/runs.sqlite"))
    assert check.status is CheckStatus.ERROR
    assert "/proc" in check.seen


@pytest.mark.parametrize(
    ("free", "status"),
    [(5000 * MIB, CheckStatus.OK), (500 * MIB, CheckStatus.WARNING), (50 * MIB, CheckStatus.ERROR)],
)
def test_disk(free: int, status: CheckStatus, tmp_path: Path) -> None:
    check = check_disk(tmp_path / "not" / "there.sqlite", free)
    assert check.status is status
    assert str(tmp_path) in check.seen
