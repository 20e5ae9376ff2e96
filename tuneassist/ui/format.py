"""Numbers as people read them. An absent value is a dash."""

from __future__ import annotations

import time

NONE = "–"

_LATENCY_UNITS = ((1.0, "s"), (1e-3, "ms"), (1e-6, "µs"), (1e-9, "ns"))
_COUNT_UNITS = ((1e12, "T"), (1e9, "G"), (1e6, "M"), (1e3, "k"))


def latency(secs: float | None) -> str:
    """A kernel's latency with three digits, such as `5.21 ms`."""
    if secs is None:
        return NONE
    for scale, unit in _LATENCY_UNITS:
        if abs(secs) >= scale:
            return f"{_three_digits(secs / scale)} {unit}"
    return f"{secs / 1e-9:.2g} ns"


def duration(secs: float | None) -> str:
    """A span of time such as `8s`, `3m 20s`, `2h 05m` or `4d 03h`."""
    if secs is None:
        return NONE
    whole = max(0, round(secs))
    if whole < 60:
        return f"{whole}s"
    if whole < 3600:
        return f"{whole // 60}m {whole % 60:02}s"
    if whole < 86400:
        return f"{whole // 3600}h {whole % 3600 // 60:02}m"
    return f"{whole // 86400}d {whole % 86400 // 3600:02}h"


def count(value: float | None) -> str:
    """A count with a decimal unit, such as `231 M`; below a thousand as it is."""
    if value is None:
        return NONE
    for scale, unit in _COUNT_UNITS:
        if abs(value) >= scale:
            return f"{_three_digits(value / scale)} {unit}"
    return f"{value:g}"


def ratio(value: float | None) -> str:
    """A speed-up, such as `2.41×`."""
    return NONE if value is None else f"{_three_digits(value)}×"


def number(value: float | None, digits: int = 2) -> str:
    """A plain number with fixed decimals."""
    return NONE if value is None else f"{value:.{digits}f}"


def moment(unix: float | None) -> str:
    """Local date and time to the minute."""
    return NONE if not unix else time.strftime("%Y-%m-%d %H:%M", time.localtime(unix))


def clock(unix: float) -> str:
    """Local time of day."""
    return time.strftime("%H:%M:%S", time.localtime(unix))


def plain(text: str) -> str:
    """The text on one line, with control characters escaped so that no terminal obeys them."""
    return "".join(
        c if c.isprintable() else " " if c in "\n\t" else c.encode("unicode_escape").decode() for c in text
    )


def _three_digits(value: float) -> str:
    size = abs(value)
    return f"{value:.0f}" if size >= 99.95 else f"{value:.1f}" if size >= 9.995 else f"{value:.2f}"
