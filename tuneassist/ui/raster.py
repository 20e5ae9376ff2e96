"""Lines, points and words on a grid of terminal cells, eight Braille dots a cell.

Everything is NumPy over whole arrays: a chart of a thousand points takes a millisecond or two, which is what
lets charts move while keys are pressed.
"""

from __future__ import annotations

import itertools
from collections.abc import Sequence

import numpy as np
from numpy.typing import ArrayLike, NDArray
from rich.cells import cell_len
from rich.segment import Segment
from rich.style import Style
from textual.strip import Strip

_DOTS = np.array([[0x01, 0x08], [0x02, 0x10], [0x04, 0x20], [0x40, 0x80]], dtype=np.uint8)
"""Bit of each dot of a Braille cell, (4, 2): row, column."""
_BRAILLE = 0x2800
_BLANK = ord(" ")

Floats = NDArray[np.float64]
Ints = NDArray[np.int64]


class Raster:
    """A drawing of `width` by `height` cells; coordinates are in cells from the upper left corner.

    Whatever lies outside is cut off. Of what meets in one cell the style drawn last holds; words and markers
    hide dots.

    Args:
        width: Columns.
        height: Lines.
    """

    def __init__(self, width: int, height: int) -> None:
        self.width = width
        self.height = height
        self._dots = np.zeros((height, width), dtype=np.uint8)
        self._chars = np.full((height, width), _BLANK, dtype=np.uint32)
        self._style = np.zeros((height, width), dtype=np.int16)
        self._styles = [""]

    def line(
        self, xs: ArrayLike, ys: ArrayLike, style: str, clip: tuple[int, int, int, int] | None = None
    ) -> None:
        """Join points, both (num_points,), by straight lines.

        Args:
            clip: (left, top, right, bottom) that the line must not leave, in cells.
        """
        x, y = np.asarray(xs, dtype=np.float64), np.asarray(ys, dtype=np.float64)
        self.lines(np.stack([x[:-1], y[:-1], x[1:], y[1:]], axis=1), style, clip)

    def lines(self, segments: ArrayLike, style: str, clip: tuple[int, int, int, int] | None = None) -> None:
        """Draw straight lines, (num_lines, 4): x and y of both ends."""
        left, top, right, bottom = clip or (0, 0, self.width, self.height)
        ends = np.asarray(segments, dtype=np.float64).reshape(-1, 4) * (2.0, 4.0, 2.0, 4.0)
        start, step = ends[:, :2], ends[:, 2:] - ends[:, :2]
        first, last = _inside(start, step, (2 * left, 4 * top), (2 * right - 1e-6, 4 * bottom - 1e-6))
        kept = first <= last
        start, step, first, last = start[kept], step[kept], first[kept], last[kept]
        counts = np.ceil(np.abs(step).max(axis=1, initial=0.0) * (last - first)).astype(np.int64) + 1
        which = np.repeat(np.arange(len(counts)), counts)
        number = np.arange(len(which)) - np.repeat(np.cumsum(counts) - counts, counts)
        share = first[which] + (last - first)[which] * number / np.maximum(counts - 1, 1)[which]
        self._set(np.floor(start[which] + step[which] * share[:, None]).astype(np.int64), style)

    def points(
        self, xs: ArrayLike, ys: ArrayLike, style: str, clip: tuple[int, int, int, int] | None = None
    ) -> None:
        """Draw single dots at points, both (num_points,)."""
        at = self._within(xs, ys, clip)
        self._set(np.floor(at * (2.0, 4.0)).astype(np.int64), style)

    def markers(
        self,
        xs: ArrayLike,
        ys: ArrayLike,
        marker: str,
        style: str,
        clip: tuple[int, int, int, int] | None = None,
    ) -> None:
        """Put a character at points, both (num_points,)."""
        at = np.floor(self._within(xs, ys, clip)).astype(np.int64)
        self._chars[at[:, 1], at[:, 0]] = ord(marker)
        self._style[at[:, 1], at[:, 0]] = self._number(style)

    def text(self, x: int, y: int, text: str, style: str = "") -> None:
        """Write words from (x, y) to the right."""
        if not 0 <= y < self.height:
            return
        shown = text[max(0, -x) : max(0, self.width - x)]
        codes = [ord(char) if cell_len(char) == 1 else ord("?") for char in shown]
        start = max(0, x)
        self._chars[y, start : start + len(codes)] = codes
        self._style[y, start : start + len(codes)] = self._number(style)
        self._dots[y, start : start + len(codes)] = 0

    def strips(self, base: Style) -> list[Strip]:
        """The lines of the drawing, its styles on top of `base`."""
        codes = np.where(self._dots > 0, self._dots.astype(np.uint32) + _BRAILLE, _BLANK)
        codes = np.where(self._chars == _BLANK, codes, self._chars).astype("<u4")
        styles = [base + Style.parse(style) for style in self._styles]
        strips = []
        for row, numbered in zip(codes, self._style, strict=True):
            words = row.tobytes().decode("utf-32-le")
            edges = [0, *(np.flatnonzero(np.diff(numbered)) + 1).tolist(), self.width]
            strips.append(
                Strip(
                    [Segment(words[a:b], styles[numbered[a]]) for a, b in itertools.pairwise(edges) if b > a],
                    self.width,
                )
            )
        return strips

    def _within(self, xs: ArrayLike, ys: ArrayLike, clip: tuple[int, int, int, int] | None) -> Floats:
        """Those of the points that lie inside, (num_points, 2)."""
        left, top, right, bottom = clip or (0, 0, self.width, self.height)
        at = np.stack([np.asarray(xs, dtype=np.float64), np.asarray(ys, dtype=np.float64)], axis=-1)
        at = at.reshape(-1, 2)
        inside: Floats = at[((at >= (left, top)) & (at < (right, bottom))).all(axis=1)]
        return inside

    def _set(self, dots: Ints, style: str) -> None:
        """Light dots, (num_dots, 2): column and row of each, all of them inside."""
        x, y = dots[:, 0], dots[:, 1]
        np.bitwise_or.at(self._dots, (y // 4, x // 2), _DOTS[y % 4, x % 2])
        self._style[y // 4, x // 2] = self._number(style)

    def _number(self, style: str) -> int:
        if style not in self._styles:
            self._styles.append(style)
        return self._styles.index(style)


def _inside(
    start: Floats, step: Floats, low: Sequence[float], high: Sequence[float]
) -> tuple[Floats, Floats]:
    """The shares of each line, from 0 to 1, between which it runs inside a box (Liang and Barsky, 1984).

    A line that misses the box has a first share above its last one.
    """
    first, last = np.zeros(len(start)), np.ones(len(start))
    for axis in (0, 1):
        for run, room in (
            (-step[:, axis], start[:, axis] - low[axis]),
            (step[:, axis], high[axis] - start[:, axis]),
        ):
            with np.errstate(divide="ignore", invalid="ignore"):
                share = room / run
            first = np.where(run < 0, np.maximum(first, share), first)
            last = np.where(run > 0, np.minimum(last, share), last)
            first = np.where((run == 0) & (room < 0), 2.0, first)
    return first, last
