"""Numbers as people read them."""

from __future__ import annotations

import pytest

from tuneassist.ui import format as fmt


@pytest.mark.parametrize(
    ("secs", "text"),
    [
        (None, "–"),
        (1.5, "1.50 s"),
        (5.214e-3, "5.21 ms"),
        (9.999e-5, "100 µs"),
        (42e-6, "42.0 µs"),
        (1e-10, "0.1 ns"),
    ],
)
def test_latency(secs: float | None, text: str) -> None:
    assert fmt.latency(secs) == text


@pytest.mark.parametrize(
    ("secs", "text"),
    [(None, "–"), (-3, "0s"), (59.6, "1m 00s"), (200, "3m 20s"), (7500, "2h 05m"), (360_000, "4d 04h")],
)
def test_duration(secs: float | None, text: str) -> None:
    assert fmt.duration(secs) == text


def test_counts_and_ratios() -> None:
    assert [fmt.count(value) for value in (None, 999, 231_211_008, 2e12)] == ["–", "999", "231 M", "2.00 T"]
    assert [fmt.ratio(value) for value in (None, 2.414, 123.4)] == ["–", "2.41×", "123×"]


def test_control_characters_reach_no_terminal() -> None:
    assert fmt.plain("a\x1b[31mb\nc\u202ed") == "a\\x1b[31mb c\\u202ed"
