"""The AST as a node-link graph with pan and zoom; only what lies in view is drawn."""

from __future__ import annotations

from collections.abc import Collection
from dataclasses import dataclass
from typing import ClassVar

from textual import events
from textual.binding import Binding, BindingType
from textual.message import Message
from textual.strip import Strip
from textual.widget import Widget

from tuneassist.ui.format import plain
from tuneassist.ui.program import WEIGHT_SIGNS, Node, Place, Program, layout, weight_level
from tuneassist.ui.raster import Raster

_ZOOMS = ((3, 2), (6, 2), (10, 3), (16, 3), (26, 3), (40, 4))
"""(characters a leaf, lines a level) of each zoom step."""


class AstGraph(Widget, can_focus=True):
    """Nodes from top to bottom, tree edges as lines, other edges (data flow) in another colour."""

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
        super().__init__(id=id)
        self._program: Program | None = None
        self._places: dict[int, Place] = {}
        self._zoom = 2
        self._x = 0
        self._y = 0
        self._current: int | None = None
        self._moved = False
        self._strips: list[Strip] = []
        self._drawn_for: tuple[object, ...] = ()

    def show_program(self, program: Program, folded: Collection[int] = ()) -> None:
        """Show it, as the tree is folded."""
        if program is not self._program:
            self._current = None
        self._program = program
        self._places = layout(program, folded)
        self._moved = False
        self.fit()

    def on_resize(self, event: events.Resize) -> None:
        """Draw for the new size, and fit it unless the user moved the view."""
        if self._moved:
            self.draw()
        else:
            self.fit()

    def draw(self) -> None:
        """Draw anew at the next paint."""
        self._drawn_for = ()
        self.refresh()

    def render_line(self, y: int) -> Strip:
        """One line of what lies in view."""
        now = (self.size, self.app.theme)
        if now != self._drawn_for:
            raster = Raster(max(1, self.size.width), max(1, self.size.height))
            if self._program is not None:
                self._draw_edges(raster, self._program)
                self._draw_nodes(raster, self._program)
            self._strips, self._drawn_for = raster.strips(self.rich_style), now
        return self._strips[y] if y < len(self._strips) else Strip.blank(self.size.width, self.rich_style)

    def _spot(self, place: Place) -> tuple[int, int]:
        """Where the middle of a node's label is on the screen."""
        across, down = _ZOOMS[self._zoom]
        return round((place.column + 0.5) * across) - self._x, place.level * down - self._y

    def _draw_edges(self, raster: Raster, program: Program) -> None:
        colours = self.app.theme_variables
        tree: list[tuple[float, float, float, float]] = []
        for node in program.nodes:
            if node.id in self._places and node.parent in self._places:
                x0, y0 = self._spot(self._places[node.parent])
                x1, y1 = self._spot(self._places[node.id])
                tree.append((x0 + 0.5, y0 + 1.0, x1 + 0.5, y1 - 0.01))
        raster.lines(tree, colours.get("series-quiet", ""))
        others: list[tuple[float, float, float, float]] = []
        for start, end, _ in program.edges:
            if start in self._places and end in self._places:
                x0, y0 = self._spot(self._places[start])
                x1, y1 = self._spot(self._places[end])
                others.append((x0, y0 + 0.5, x1, y1 + 0.5))
        raster.lines(others, colours.get("series-untuned", ""))

    def _draw_nodes(self, raster: Raster, program: Program) -> None:
        colours, across = self.app.theme_variables, _ZOOMS[self._zoom][0]
        heaviest = program.heaviest
        for node in program.nodes:
            place = self._places.get(node.id)
            if place is None:
                continue
            x, y = self._spot(place)
            text = self._label(node, place.span * across - 2, heaviest)
            start = max(x - len(text) // 2, -self._x)
            level = weight_level(node.contribution, heaviest)
            style = colours.get("accent" if level >= 3 else "primary", "")
            if node.id == self._current:
                style = f"reverse bold {style}"
            raster.text(start, y, text, style)

    def _label(self, node: Node, room: int, heaviest: float) -> str:
        level = weight_level(node.contribution, heaviest)
        sign = WEIGHT_SIGNS[level] if level else "●"
        label = plain(f"{node.kind} {node.label}")
        if room < 4:
            return sign
        return f"{sign}{label if len(label) < room else f'{label[: room - 2]}…'}"

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
        self._moved = True
        self._x += columns
        self._y += lines
        self.draw()

    def action_zoom(self, step: int) -> None:
        """Zoom around the middle of the view."""
        self._moved = True
        before = _ZOOMS[self._zoom]
        self._zoom = max(0, min(len(_ZOOMS) - 1, self._zoom + step))
        after = _ZOOMS[self._zoom]
        width, height = self.size.width / 2, self.size.height / 2
        self._x = round((self._x + width) * after[0] / before[0] - width)
        self._y = round((self._y + height) * after[1] / before[1] - height)
        self.draw()

    def action_home(self) -> None:
        """Back to the whole."""
        self._moved = False
        self.fit()

    def fit(self) -> None:
        """Show the root, as near as lets all leaves be seen."""
        leaves = sum(place.span for place in self._places.values() if place.level == 0)
        fitting = [i for i, zoom in enumerate(_ZOOMS) if leaves * zoom[0] <= self.size.width]
        self._zoom = max(fitting, default=1)
        self._x = min(0, (leaves * _ZOOMS[self._zoom][0] - self.size.width) // 2)
        self._y = -1
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
        at = event.get_content_offset(self)
        if at is None:
            return
        hit: tuple[int, int] | None = None
        for node_id, place in self._places.items():
            x, y = self._spot(place)
            if y == at.y and abs(x - at.x) <= max(1, place.span * _ZOOMS[self._zoom][0] // 2):
                hit = min(hit or (abs(x - at.x), node_id), (abs(x - at.x), node_id))
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
