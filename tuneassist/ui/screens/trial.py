"""A trial's program: tree, graph, features, TVMScript, trace, and its difference from another one."""

from __future__ import annotations

from typing import ClassVar

from rich.syntax import Syntax
from textual import on
from textual.app import ComposeResult
from textual.binding import Binding, BindingType
from textual.containers import Container, VerticalScroll
from textual.widgets import LoadingIndicator, Static, Tree

from tuneassist.errors import TuneAssistError
from tuneassist.storage.queries import TrialRow
from tuneassist.ui import format as fmt
from tuneassist.ui.program import Node, Program
from tuneassist.ui.screens.base import BaseScreen
from tuneassist.ui.screens.dialogs import Prompt
from tuneassist.ui.widgets.ast_graph import AstGraph
from tuneassist.ui.widgets.ast_tree import AstTree
from tuneassist.ui.widgets.diff_view import DiffView
from tuneassist.ui.widgets.node_features import NodeFeatures
from tuneassist.ui.widgets.pane_bar import PaneBar

PANES = (
    ("tree", "Tree"),
    ("graph", "Graph"),
    ("features", "Features"),
    ("script", "Script"),
    ("trace", "Trace"),
    ("diff", "Diff"),
)
_LEFT = frozenset({"tree", "graph"})


class TrialScreen(BaseScreen):
    """The program of one trial, fetched from a process of its own since it takes TVM to print it."""

    NAME = "program"
    HELP = (
        "The scheduled program of one trial. Signs ▁ to ▇ before a node say how much it adds to the "
        "predicted time, where the model tells. In the graph, arrows pan, + and - zoom, n and N go from "
        "node to node. The diff is against the untuned program (or, where it can't be had, the run's first "
        "trial) until o names another trial."
    )
    BINDINGS: ClassVar[list[BindingType]] = [
        *[Binding(str(i), f"pane('{pane}')", label, show=False) for i, (pane, label) in enumerate(PANES, 1)],
        Binding("o", "other", "Diff with …"),
        Binding("c", "copy_script", "Copy script"),
    ]

    def __init__(self, trial_id: int) -> None:
        super().__init__()
        self._trial_id = trial_id
        self._trial: TrialRow | None = None
        self._program: Program | None = None
        self._left = "tree"
        self._right = "script"
        self._alone = "tree"
        self._other = ""
        """What the diff compares with: nothing yet, `untuned`, or the id of a trial."""

    def compose_body(self) -> ComposeResult:
        """All panes; which of them are shown depends on the terminal."""
        yield Static(id="trial-line", markup=False)
        yield LoadingIndicator()
        yield Static(classes="empty", markup=False)
        with Container(id="program"):
            yield AstTree(id="tree")
            yield AstGraph(id="graph")
            yield NodeFeatures(id="features")
            yield VerticalScroll(Static(markup=False), id="script")
            yield VerticalScroll(Static(markup=False), id="trace")
            yield DiffView(id="diff")
        yield PaneBar(PANES, id="pane-bar")

    def on_mount(self) -> None:
        """Fetch the program."""
        for pane, label in PANES:
            self.query_one(f"#{pane}").border_title = label
        self.query_one("#program").display = False
        self.query_one(".empty").display = False
        self.arrange_panes()
        services = self.tune_app.services

        def fetch() -> tuple[TrialRow, Program]:
            return services.reader.trial(self._trial_id), self.tune_app.program(str(self._trial_id))

        self.in_thread(fetch, self.show_program, group="program", failed=self.show_fault)

    @property
    def wide(self) -> bool:
        """Whether several panes fit."""
        return self.size.width >= 110 and self.size.height >= 20

    def show_program(self, found: tuple[TrialRow, Program]) -> None:
        """Fill all panes."""
        trial, program = self._trial, self._program = found
        said = [
            f"Trial {trial.ordinal} of run {trial.run_id}",
            fmt.plain(trial.task_name),
            f"round {trial.round}",
            trial.status.value,
            f"measured {fmt.latency(trial.best_of)}",
            f"predicted {fmt.latency(trial.predicted_secs)}",
        ]
        self.query_one("#trial-line", Static).update(" " + " · ".join(said))
        self.query_one(LoadingIndicator).display = False
        self.query_one("#program").display = True
        self.query_one(AstTree).show_program(program)
        dark = self.app.current_theme.dark
        script = Syntax(program.script or "# no script", "python", theme="monokai" if dark else "default",
                        background_color=self.app.theme_variables["background"], word_wrap=False)  # fmt: skip
        self.query_one("#script Static", Static).update(script)
        self.query_one("#trace Static", Static).update(program.trace or "This trial has no trace.")
        self.query_one("#script").border_subtitle = f"{len(program.script.splitlines())} lines"
        if program.constant is not None:
            self.query_one("#tree").border_subtitle = f"constant {program.constant:+.3g}"
        self.query_one(AstTree).focus()
        self.arrange_panes()

    def show_fault(self, error: Exception) -> None:
        """The program can't be had: say why."""
        self.query_one(LoadingIndicator).display = False
        empty = self.query_one(".empty", Static)
        empty.display = True
        empty.update(f"{error}\n\nescape goes back.")

    def action_pane(self, pane: str) -> None:
        """Show a pane."""
        if pane in _LEFT:
            self._left = pane
        elif pane != "features":
            self._right = pane
        self._alone = pane
        self.arrange_panes()
        self.query_one(f"#{pane}").focus()

    def arrange_panes(self) -> None:
        """Mark what is shown."""
        whole = self._right == "diff" and self._alone == "diff"
        for pane, _ in PANES:
            if not self.wide:
                shown = pane == self._alone
            elif whole:
                shown = pane == "diff"
            else:
                shown = pane in (self._left, "features", "script" if self._right == "diff" else self._right)
            self.query_one(f"#{pane}").display = shown
        self.query_one("#program").set_class(self.wide and not whole, "-columns")
        self.query_one(PaneBar).show(self._alone, frozenset(pane for pane, _ in PANES))
        if self._program is not None:
            if self.query_one("#graph").display:
                self.query_one(AstGraph).show_program(self._program, self.query_one(AstTree).folded())
            if self.query_one("#diff").display and not self._other:
                self.compare_with("untuned")

    def on_resize(self) -> None:
        """Another size may show other panes."""
        self.arrange_panes()

    def on_pane_bar_chosen(self, message: PaneBar.Chosen) -> None:
        """A click on a pane's name."""
        self.action_pane(message.pane)

    @on(Tree.NodeHighlighted)
    def highlighted(self, event: Tree.NodeHighlighted[Node]) -> None:
        """Show the features of the node under the cursor."""
        if event.node.data is not None:
            self.query_one(NodeFeatures).show_node(event.node.data)

    @on(AstGraph.Selected)
    def selected(self, event: AstGraph.Selected) -> None:
        """Show the features of the chosen node."""
        self.query_one(NodeFeatures).show_node(event.node)

    def compare_with(self, other: str) -> None:
        """Fetch another program and show the difference.

        Args:
            other: A trial's id, or `untuned`.
        """
        self._other = other
        diff = self.query_one(DiffView)
        diff.border_title = f"Diff: {other} | this one"
        diff.loading = True

        def show(program: Program) -> None:
            diff.loading = False
            if self._program is not None:
                diff.border_title = f"Diff: {program.title} | this one"
                diff.show_diff(program.script, self._program.script)

        def failed(error: Exception) -> None:
            diff.loading = False
            diff.border_title = "Diff: o names the other trial"
            self.tune_app.show_error(error)
            trial = self._trial
            if other == "untuned" and trial is not None and trial.ordinal > 1:
                self.in_thread(lambda: self._trial_id_of(trial.run_id, "1"), self.compare_with, group="other")

        name = other if other != "untuned" else f"{self._trial_id} --untuned"
        self.in_thread(lambda: self.tune_app.program(name), show, group="other", failed=failed)

    def action_other(self) -> None:
        """Ask which trial to compare with."""
        trial = self._trial
        if trial is None:
            return
        text = f"Compare with which trial of run {trial.run_id}? Its number, or `untuned`."

        def answered(answer: str | None) -> None:
            if not answer or not answer.strip():
                return
            self.action_pane("diff")
            if answer.strip() == "untuned":
                self.compare_with("untuned")
                return
            self.in_thread(lambda: self._trial_id_of(trial.run_id, answer), self.compare_with, group="other")

        self.app.push_screen(Prompt(text), answered)

    def _trial_id_of(self, run_id: int, answer: str) -> str:
        if not answer.strip().isdecimal():
            raise TuneAssistError(f"{answer!r} is no trial number.", remedy="Trials are numbered 1, 2, 3 …")
        return str(self.tune_app.services.reader.trial_id(run_id, int(answer)))

    def action_copy_script(self) -> None:
        """Copy the TVMScript."""
        if self._program is not None:
            self.app.copy_to_clipboard(self._program.script)
            self.notify("The script was copied.", timeout=2)
