"""The AST as a node-link graph with pan and zoom; only what lies in view is drawn."""

from __future__ import annotations

from collections.abc import Collection
from dataclasses import dataclass
from typing import ClassVar

from rich.markup import escape
from textual import events
from textual.binding import Binding, BindingType
from textual.geometry import Size
from textual.message import Message
from textual_hires_canvas import Canvas

from tuneassist.ui.format import plain
from tuneassist.ui.program import WEIGHT_SIGNS, Node, Place, Program, layout, weight_level

_ZOOMS = ((3, 1, 0), (8, 1, 5), (14, 1, 11), (24, 2, 20), (36, 3, 32))
"""(columns a level, lines a leaf, characters of a label) of each zoom step."""


class AstGraph(Canvas, can_focus=True):
    """Nodes from left to right, tree edges as lines, other edges (data flow) in another colour."""

    BINDINGS: ClassVar[list[BindingType]] = [
        Binding("left", "pan(-8, 0)", "Pan left", show=False),
        Binding("right", "pan(8, 0)", "Pan right", show=False),
        Binding("up", "pan(0, -3)", "Pan up", show=False),
        Binding("down", "pan(0, 3)", "Pan down", show=False),
        Binding("plus,equals_sign", "zoom(1)", "Zoom in", show=False, key_display="+"),
        Binding("minus", "zoom(-1)", "Zoom out", show=False, key_display="-"),
        Binding("n,tab", "step(1)", "Next node", show=False),
        Binding("N,shift+tab", "step(-1)", "Previous node", show=False),
        Binding("0", "home", "Whole graph", show=False),
    ]

    @dataclass
    class Selected(Message):
        """A node was chosen."""

        node: Node

    def __init__(self, id: str | None = None) -> None:  # noqa: A002
        super().__init__(1, 1, id=id)
        self._program: Program | None = None
        self._places: dict[int, Place] = {}
        self._zoom = 2
        self._x = 0
        self._y = 0
        self._current: int | None = None

    def show_program(self, program: Program, folded: Collection[int] = ()) -> None:
        """Show it, as the tree is folded."""
        if program is not self._program:
            self._current = None
        self._program = program
        self._places = layout(program, folded)
        self._x = self._y = 0
        self.draw()

    def on_resize(self, event: events.Resize) -> None:
        """Draw for the new size."""
        self.draw()

    def draw(self) -> None:
        """Draw what lies in view."""
        size = self.size
        if self._program is None or size.width < 2 or size.height < 1:
            return
        with self.batch_refresh():
            self.reset(size=size)
            self._draw_edges()
            self._draw_nodes(size)

    def _spot(self, place: Place) -> tuple[int, int]:
        across, down, _ = _ZOOMS[self._zoom]
        return place.column * across - self._x + 1, round(place.row * down) - self._y

    def _draw_edges(self) -> None:
        assert self._program is not None
        colours = self.app.theme_variables
        chars = _ZOOMS[self._zoom][2]
        tree: list[tuple[float, float, float, float]] = []
        for node in self._program.nodes:
            if node.id in self._places and node.parent in self._places:
                x0, y0 = self._spot(self._places[node.parent])
                x1, y1 = self._spot(self._places[node.id])
                start = min(x0 + max(1, min(chars, len(node.label))), x1 - 1)
                tree.append((start, y0 + 0.5, x1 - 0.5, y1 + 0.5))
        self.draw_hires_lines(tree, style=colours.get("series-quiet", "white"))
        others = [
            (*self._spot(self._places[a]), *self._spot(self._places[b]))
            for a, b, _ in self._program.edges
            if a in self._places and b in self._places
        ]
        lines = [(x0, y0 + 0.5, x1, y1 + 0.5) for x0, y0, x1, y1 in others]
        self.draw_hires_lines(lines, style=colours.get("series-untuned", "white"))

    def _draw_nodes(self, size: Size) -> None:
        assert self._program is not None
        colours, chars = self.app.theme_variables, _ZOOMS[self._zoom][2]
        heaviest = self._program.heaviest
        for node in self._program.nodes:
            place = self._places.get(node.id)
            if place is None:
                continue
            x, y = self._spot(place)
            if not (0 <= y < size.height and -chars <= x < size.width):
                continue
            level = weight_level(node.contribution, heaviest)
            sign = WEIGHT_SIGNS[level] if heaviest > 0 and level else "●"
            label = plain(f"{node.kind} {node.label}")
            text = f"{sign}{label[:chars]}" if chars else sign
            style = colours.get("accent" if level >= 3 else "primary", "white")
            if node.id == self._current:
                style = f"reverse bold {style}"
            self.write_text(x, y, f"[{style}]{escape(text)}")

    def select(self, node_id: int) -> None:
        """Make a node the current one and bring it into view."""
        place = self._places.get(node_id)
        if place is None or self._program is None:
            return
        self._current = node_id
        x, y = self._spot(place)
        if not 0 <= x < self.size.width - 4:
            self._x += x - self.size.width // 3
        if not 0 <= y < self.size.height:
            self._y += y - self.size.height // 2
        self.draw()
        self.post_message(self.Selected(next(node for node in self._program.nodes if node.id == node_id)))

    def action_pan(self, columns: int, lines: int) -> None:
        """Move the view."""
        self._x += columns
        self._y += lines
        self.draw()

    def action_zoom(self, step: int) -> None:
        """Zoom around the middle of the view."""
        before = _ZOOMS[self._zoom]
        self._zoom = max(0, min(len(_ZOOMS) - 1, self._zoom + step))
        after = _ZOOMS[self._zoom]
        self._x = round((self._x + self.size.width / 2) * after[0] / before[0] - self.size.width / 2)
        self._y = round((self._y + self.size.height / 2) * after[1] / before[1] - self.size.height / 2)
        self.draw()

    def action_home(self) -> None:
        """Back to the root, as far away as needed to see all of it where that is possible."""
        self._x = self._y = 0
        columns = max((place.column for place in self._places.values()), default=0) + 1
        fitting = [i for i, zoom in enumerate(_ZOOMS) if columns * zoom[0] <= self.size.width]
        self._zoom = max(fitting, default=0)
        self.draw()

    def action_step(self, step: int) -> None:
        """Go to the next or previous node in program order."""
        if self._program is None:
            return
        ids = [node.id for node in self._program.nodes if node.id in self._places]
        if ids:
            at = ids.index(self._current) if self._current in ids else -step
            self.select(ids[(at + step) % len(ids)])

    def on_click(self, event: events.Click) -> None:
        """Choose the node under the pointer, or the nearest one of that line."""
        hit: tuple[int, int] | None = None
        for node_id, place in self._places.items():
            x, y = self._spot(place)
            if y == event.y and x <= event.x < x + max(2, _ZOOMS[self._zoom][2] + 1):
                hit = max(hit or (x, node_id), (x, node_id))
        if hit is not None:
            self.select(hit[1])

    def on_mouse_scroll_down(self, event: events.MouseScrollDown) -> None:
        """Zoom out with ctrl, else pan."""
        self._wheel(event, 1)

    def on_mouse_scroll_up(self, event: events.MouseScrollUp) -> None:
        """Zoom in with ctrl, else pan."""
        self._wheel(event, -1)

    def on_mouse_move(self, event: events.MouseMove) -> None:
        """Drag the view."""
        if event.button:
            self.action_pan(-event.delta_x, -event.delta_y)

    def _wheel(self, event: events.MouseEvent, direction: int) -> None:
        event.stop()
        if event.ctrl:
            self.action_zoom(-direction)
        else:
            self.action_pan(0, 3 * direction)
