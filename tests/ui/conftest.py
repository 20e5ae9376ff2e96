"""Fixtures of the app's tests: one time zone, no colour settings of the machine."""

from __future__ import annotations

import time
from collections.abc import Iterator

import pytest


@pytest.fixture(autouse=True)
def fixed_surroundings(monkeypatch: pytest.MonkeyPatch) -> Iterator[None]:
    """Times are shown in UTC, and no setting of the machine reaches the app."""
    for name in ("NO_COLOR", "TEXTUAL_THEME", "TUNEASSIST_CONFIG", "TEXTUAL_ANIMATIONS"):
        monkeypatch.delenv(name, raising=False)
    monkeypatch.setenv("TZ", "UTC")
    time.tzset()
    yield
    monkeypatch.undo()
    time.tzset()
