"""Lines, points and words on a grid of Braille cells."""

from __future__ import annotations

import numpy as np
import pytest
from rich.style import Style

from tuneassist.ui.raster import Raster
from tuneassist.ui.widgets.axes import CountAxis, ElapsedAxis, LogLatencyAxis, ShareAxis


def drawn(raster: Raster) -> list[str]:
    return [strip.text for strip in raster.strips(Style.null())]


def test_a_line_lights_every_dot_between_its_ends() -> None:
    raster = Raster(4, 1)
    raster.line([0, 3.99], [0, 0], "red")
    assert drawn(raster) == ["⠉⠉⠉⠉"]
    down = Raster(1, 2)
    down.line([0, 0], [0, 1.99], "red")
    assert drawn(down) == ["⡇", "⡇"]


@pytest.mark.parametrize("far", [1e3, 1e9])
def test_a_line_that_leaves_the_drawing_is_cut_off(far: float) -> None:
    raster = Raster(6, 3)
    raster.line([-far, far], [1.5, 1.5], "red", clip=(2, 0, 5, 3))
    assert drawn(raster) == ["      ", "  ⠤⠤⠤ ", "      "]
    raster = Raster(6, 3)
    raster.line([-far, far], [-1, -1], "red")
    raster.line([-1, far], [-far, -1], "red")
    assert drawn(raster) == ["      "] * 3


def test_points_and_markers_outside_are_left_out() -> None:
    raster = Raster(3, 1)
    raster.points([-0.1, 0.6, 3.0, np.nan], [0, 0, 0, 0], "red")
    raster.markers([1, 2, 1], [0, 5, -1], "◆", "blue")
    assert drawn(raster) == ["⠈◆ "]


def test_words_are_cut_at_both_edges_and_wide_characters_keep_the_columns() -> None:
    raster = Raster(4, 2)
    raster.text(-2, 0, "abcdefgh")
    raster.text(1, 1, "日本")
    raster.text(0, 7, "below")
    assert drawn(raster) == ["cdef", " ?? "]
    assert all(strip.cell_length == 4 for strip in raster.strips(Style.null()))


def test_what_is_drawn_last_has_the_cell_and_its_style() -> None:
    raster = Raster(3, 1)
    raster.line([0, 2.9], [0, 0], "red")
    raster.text(1, 0, "x y", "bold")
    (strip,) = raster.strips(Style.parse("on black"))
    assert [(s.text, str(s.style)) for s in strip] == [("⠉", "red on black"), ("x ", "bold on black")]


def test_nothing_to_draw_is_drawn() -> None:
    raster = Raster(2, 1)
    raster.lines([], "red")
    raster.line([1.0], [0.0], "red")
    raster.points([], [], "red")
    assert drawn(raster) == ["  "]


def test_ticks_are_round_and_not_too_many() -> None:
    axis = LogLatencyAxis()
    ticks = axis.ticks(-3.0, -1.0, 4)
    assert [axis.label(tick) for tick in ticks] == ["1 ms", "10 ms", "100 ms"]
    assert [axis.label(t) for t in axis.ticks(-2.9, -2.1, 6)] == ["1.5 ms", "2 ms", "3 ms", "5 ms", "7 ms"]
    assert len(axis.ticks(-30.0, 30.0, 5)) <= 5 and axis.label(30.0) == ""
    assert [CountAxis().label(t) for t in CountAxis().ticks(0, 2000, 5)] == [
        "0",
        "500",
        "1.00k",
        "1.50k",
        "2.00k",
    ]
    assert [ShareAxis().label(t) for t in ShareAxis().ticks(0.4, 1.0, 3)] == ["0.50", "1.00"]
    assert [ElapsedAxis().label(t) for t in ElapsedAxis().ticks(0, 100, 3)] == ["0s", "50s", "1m 40s"]
