"""Fixtures of the whole suite."""

from __future__ import annotations

import random
import subprocess
import sys
import time
from collections.abc import Iterator
from pathlib import Path

import numpy as np
import pytest


@pytest.fixture(autouse=True)
def _fixed_seeds() -> None:
    random.seed(20190426)
    np.random.seed(20190426)


@pytest.fixture(scope="session")
def measured_machine(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A database that knows this machine and nothing else: what is measured once is measured once."""
    db = tmp_path_factory.mktemp("machine") / "machine.sqlite"
    subprocess.run(
        [sys.executable, "-m", "tuneassist", "targets", "native", "--measure", "--db", str(db)],
        check=True, capture_output=True,
    )  # fmt: skip
    return db


@pytest.fixture(autouse=True)
def _own_folders(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Iterator[None]:
    """Keep tests off the user's database and settings."""
    monkeypatch.setenv("TUNEASSIST_DB", str(tmp_path / "store" / "tuneassist.sqlite"))
    monkeypatch.setenv("TUNEASSIST_CONFIG", str(tmp_path / "config.toml"))
    yield


@pytest.fixture(autouse=True)
def _fixed_surroundings(monkeypatch: pytest.MonkeyPatch) -> Iterator[None]:
    """Times are shown in UTC, and no colour setting of the terminal reaches the program."""
    for name in ("NO_COLOR", "TEXTUAL_THEME", "TEXTUAL_ANIMATIONS"):
        monkeypatch.delenv(name, raising=False)
    monkeypatch.setenv("TZ", "UTC")
    time.tzset()
    yield
    monkeypatch.undo()
    time.tzset()
