"""Two themes, dark and light. The series colours are Okabe and Ito's, told apart by colour-blind eyes too.

Colour never says a thing alone: states have a sign of their own (`SIGNS`), series a marker or a place.
"""

from __future__ import annotations

from textual.theme import Theme

DARK = Theme(
    name="tuneassist-dark",
    primary="#56B4E9",
    secondary="#7FA6C0",
    accent="#E69F00",
    warning="#E69F00",
    error="#E8743B",
    success="#2BB58C",
    foreground="#D8DEE4",
    background="#0F1419",
    surface="#151B22",
    panel="#1E2731",
    dark=True,
    variables={
        "series-measured": "#56B4E9",
        "series-newest": "#E69F00",
        "series-best": "#2BB58C",
        "series-untuned": "#CC79A7",
        "series-pytorch": "#F0E442",
        "series-quiet": "#6B7885",
    },
)

LIGHT = Theme(
    name="tuneassist-light",
    primary="#0072B2",
    secondary="#4A6475",
    accent="#A65300",
    warning="#A65300",
    error="#B03A00",
    success="#00694E",
    foreground="#1B2127",
    background="#FBFBF9",
    surface="#F3F3EF",
    panel="#E6E7E3",
    dark=False,
    variables={
        "series-measured": "#0072B2",
        "series-newest": "#C24E00",
        "series-best": "#00694E",
        "series-untuned": "#99366E",
        "series-pytorch": "#7A6A00",
        "series-quiet": "#8A939B",
    },
)

THEMES = (DARK, LIGHT)

SIGNS = {
    "running": ("●", "success"),
    "paused": ("‖", "warning"),
    "done": ("✓", "success"),
    "interrupted": ("◐", "warning"),
    "failed": ("✗", "error"),
    "lost": ("?", "error"),
    "ok": ("✓", "success"),
    "build_error": ("✗", "error"),
    "build_timeout": ("◔", "warning"),
    "run_error": ("✗", "error"),
    "run_timeout": ("◔", "warning"),
    "duplicate": ("=", "secondary"),
    "warning": ("!", "warning"),
    "error": ("✗", "error"),
}
"""Sign and colour role of each state."""
