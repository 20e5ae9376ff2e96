"""Fixtures of the whole suite."""

from __future__ import annotations

import random
import time
from collections.abc import Iterator
from pathlib import Path

import numpy as np
import pytest


@pytest.fixture(autouse=True)
def _fixed_seeds() -> None:
    random.seed(20190426)
    np.random.seed(20190426)


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
