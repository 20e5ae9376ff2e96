"""Fixtures of the whole suite."""

from __future__ import annotations

import random
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
