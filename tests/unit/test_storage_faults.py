"""Files that can't be used, each with its cause and remedy."""

from __future__ import annotations

import shutil
import sqlite3
import subprocess
import sys
from collections.abc import Iterator
from contextlib import closing, contextmanager
from pathlib import Path

import pytest
from sqlite_utils import Migrations
from sqlite_utils.db import Database
from store_rows import ok, start_run

from tuneassist.errors import StoreError
from tuneassist.storage import connection, schema
from tuneassist.storage.sqlite import open_store
from tuneassist.storage.version import SCHEMA_VERSION

RELEASED = sorted((Path(__file__).parent.parent / "data").glob("store_v*.sqlite"))


@contextmanager
def refused(match: str) -> Iterator[None]:
    with pytest.raises(StoreError, match=match) as caught:
        yield
    assert caught.value.exit_code == 5
    assert caught.value.remedy


def test_folder_and_file_are_created(tmp_path: Path) -> None:
    path = tmp_path / "a" / "b" / "t.sqlite"
    open_store(path).close()
    with closing(sqlite3.connect(path)) as conn:
        assert conn.execute("PRAGMA journal_mode").fetchone() == ("wal",)
        assert conn.execute("PRAGMA user_version").fetchone() == (SCHEMA_VERSION,)


def test_version_counts_the_migrations(tmp_path: Path) -> None:
    with open_store(tmp_path / "t.sqlite") as store:
        assert len(schema.MIGRATIONS.applied(Database(store.connection))) == SCHEMA_VERSION


@pytest.mark.parametrize("path", RELEASED, ids=lambda path: path.stem)
def test_file_of_every_released_schema_opens(path: Path, tmp_path: Path) -> None:
    copy = tmp_path / path.name
    shutil.copy(path, copy)
    with open_store(copy) as store:
        assert [trial.ordinal for trial in store.trials(1)] == [1, 2, 3]


def test_a_released_file_is_kept_for_each_version() -> None:
    assert [path.stem for path in RELEASED] == [f"store_v{n}" for n in range(1, SCHEMA_VERSION + 1)]


def test_older_schema_is_backed_up_then_migrated(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    path = tmp_path / "t.sqlite"
    with open_store(path) as store:
        start_run(store)
    _next_release(monkeypatch, fails=False)
    with open_store(path, readonly=True) as store:
        assert store.connection.execute("SELECT id, more FROM runs").fetchone()[:] == (1, None)
    with closing(sqlite3.connect(f"{path}.v{SCHEMA_VERSION}.bak")) as backup:
        assert backup.execute("PRAGMA user_version").fetchone() == (SCHEMA_VERSION,)
        assert backup.execute("SELECT count(*) FROM runs").fetchone() == (1,)


def test_failed_migration_leaves_the_file_as_it_was(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    path = tmp_path / "t.sqlite"
    with open_store(path) as store:
        start_run(store)
    with monkeypatch.context() as patch:
        _next_release(patch, fails=True)
        for _ in range(2):
            with pytest.raises(RuntimeError, match="migration"):
                open_store(path)
    with open_store(path) as store:
        assert store.run(1).id == 1
    assert len(list(tmp_path.glob("*.bak"))) == 2


def _next_release(monkeypatch: pytest.MonkeyPatch, *, fails: bool) -> None:
    migrations = Migrations("tuneassist")
    migrations(name="0001_first_release")(schema._first_release)

    @migrations(name="next")
    def _next(db: Database) -> None:
        db.execute("ALTER TABLE runs ADD COLUMN more TEXT")
        db.execute(f"PRAGMA user_version = {SCHEMA_VERSION + 1}")
        if fails:
            raise RuntimeError("migration failed")

    monkeypatch.setattr(schema, "MIGRATIONS", migrations)
    monkeypatch.setattr(connection, "SCHEMA_VERSION", SCHEMA_VERSION + 1)


@pytest.mark.parametrize("readonly", [False, True])
def test_newer_schema_is_refused_with_its_version(tmp_path: Path, readonly: bool) -> None:
    path = tmp_path / "t.sqlite"
    with open_store(path) as store:
        store.connection.execute(f"PRAGMA user_version = {SCHEMA_VERSION + 6}")
    with refused(f"schema version {SCHEMA_VERSION + 6}; this release knows up to {SCHEMA_VERSION}"):
        open_store(path, readonly=readonly)


@pytest.mark.parametrize("readonly", [False, True])
@pytest.mark.parametrize(
    "content", [b"a text file, long enough to be taken for one" * 9, b"{}", b"\0" * 5000]
)
def test_file_that_is_no_database(tmp_path: Path, content: bytes, readonly: bool) -> None:
    path = tmp_path / "t.sqlite"
    path.write_bytes(content)
    with refused("is not a SQLite database"):
        open_store(path, readonly=readonly)
    assert path.read_bytes() == content


@pytest.mark.parametrize("readonly", [False, True])
def test_database_of_another_program_is_left_alone(tmp_path: Path, readonly: bool) -> None:
    path = tmp_path / "places.sqlite"
    with closing(sqlite3.connect(path)) as conn:
        conn.execute("CREATE TABLE trials (x)")
    before = path.read_bytes()
    with refused("another program"):
        open_store(path, readonly=readonly)
    assert path.read_bytes() == before


def test_truncated_file(tmp_path: Path) -> None:
    path = tmp_path / "t.sqlite"
    with open_store(path) as store:
        place = start_run(store)
        store.add_trials(ok(place, n, 1.0, trace_json="x" * 3000) for n in range(1, 200))
    with path.open("r+b") as file:
        file.truncate(path.stat().st_size // 2)
    with refused("damaged"), open_store(path) as store:
        store.trials(1)


def test_locked_by_another_process(tmp_path: Path) -> None:
    path = tmp_path / "t.sqlite"
    with open_store(path) as store:
        start_run(store)
    hold = (
        "import sqlite3, sys; c = sqlite3.connect(sys.argv[1]); c.execute('PRAGMA locking_mode=EXCLUSIVE');"
        "c.execute('BEGIN EXCLUSIVE'); print('held', flush=True); sys.stdin.read()"
    )
    with subprocess.Popen(
        [sys.executable, "-c", hold, str(path)], stdin=subprocess.PIPE, stdout=subprocess.PIPE
    ) as holder:
        assert holder.stdout is not None
        holder.stdout.readline()
        for readonly in (False, True):
            with refused("locked by another process"):
                open_store(path, readonly=readonly, busy_timeout_secs=0.1)
        holder.kill()
    with open_store(path) as store:
        assert store.run(1).id == 1


def test_absent_file_is_an_error_only_for_readers(tmp_path: Path) -> None:
    with refused("no database at"):
        open_store(tmp_path / "none.sqlite", readonly=True)
    assert not (tmp_path / "none.sqlite").exists()


@pytest.mark.parametrize("name", ["folder", "file/t.sqlite", "file/folder/t.sqlite"])
def test_path_that_can_not_be_a_file(tmp_path: Path, name: str) -> None:
    (tmp_path / "folder").mkdir()
    (tmp_path / "file").touch()
    with refused("can't be opened"):
        open_store(tmp_path / name)


def test_folder_that_can_not_be_written() -> None:
    # /proc refuses new files even to root.
    with refused("can't be opened"):
        open_store("/proc/tuneassist/t.sqlite")


def test_reader_can_not_write(tmp_path: Path) -> None:
    path = tmp_path / "t.sqlite"
    open_store(path).close()
    with open_store(path, readonly=True) as store, refused("can't be written"):
        start_run(store)


def test_full_disk_keeps_what_was_committed(tmp_path: Path) -> None:
    path = tmp_path / "t.sqlite"
    with open_store(path) as store:
        place = start_run(store)
        pages = store.connection.execute("PRAGMA page_count").fetchone()[0]
        store.connection.execute(f"PRAGMA max_page_count = {pages + 2}")
        with refused("disk is full"):
            for ordinal in range(1, 100):
                store.add_trial(ok(place, ordinal, 1.0, trace_json="x" * 4000))
        kept = store.last_ordinal(place.run)
        assert kept > 0
        store.connection.execute("PRAGMA max_page_count = 4294967294")
        store.add_trial(ok(place, kept + 1, 1.0))
        assert len(store.trials(place.run)) == kept + 1


def test_file_size_limit_is_named(tmp_path: Path) -> None:
    path = tmp_path / "t.sqlite"
    script = (
        "import resource, sys; from store_rows import *; from tuneassist.storage.sqlite import open_store;"
        "from tuneassist.errors import StoreError\n"
        "store = open_store(sys.argv[1]); place = start_run(store)\n"
        "resource.setrlimit(resource.RLIMIT_FSIZE, (600_000, 600_000))\n"
        "try:\n"
        "  for n in range(1, 1000): store.add_trial(ok(place, n, 1.0, trace_json='x' * 4000))\n"
        "except StoreError as error: print(n, error)\n"
    )
    done = subprocess.run(
        [sys.executable, "-c", script, str(path)], capture_output=True, text=True, timeout=60,
        cwd=Path(__file__).parent, env={"PYTHONPATH": f"{Path(__file__).parent}:{Path.cwd()}"},
    )  # fmt: skip
    assert "ulimit" in done.stdout, done.stderr
    with open_store(path) as store:
        assert store.last_ordinal(1) == int(done.stdout.split()[0]) - 1
