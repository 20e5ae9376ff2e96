"""The workload catalogue, with what is known of each on this machine."""

from __future__ import annotations

from collections.abc import Collection, Mapping, Sequence

from rich.text import Text

from tuneassist.records import WorkloadInfo
from tuneassist.ui import format as fmt
from tuneassist.ui.services import KnownBest
from tuneassist.ui.widgets.table import Column, Row, Table

_COLUMNS = (
    Column("", width=1),
    Column("Workload", "name", width=30),
    Column("FLOP", "flops", right=True, width=7),
    Column("Best here", "best", right=True, width=9),
    Column("Trials", "trials", right=True, width=7),
    Column("Op", "op", width=14),
    Column("Shapes", width=44),
    Column("Network", "network", width=14),
)


class WorkloadTable(Table):
    """One row a workload; several may be marked."""

    def __init__(self, id: str | None = None) -> None:  # noqa: A002
        super().__init__(_COLUMNS, order="", descending=False, id=id)

    def show_workloads(
        self, found: Sequence[WorkloadInfo], known: Mapping[str, KnownBest], marked: Collection[str]
    ) -> None:
        """Show workloads in the chosen order; the marked ones bear a sign."""
        orders = {
            "name": lambda w: w.name,
            "op": lambda w: (w.op, w.name),
            "flops": lambda w: w.flops,
            "network": lambda w: (w.network, w.name),
            "best": lambda w: known[w.spec].best_secs or 0.0 if w.spec in known else 0.0,
            "trials": lambda w: known[w.spec].trials if w.spec in known else 0,
        }
        shown = list(found)
        if self.order in orders:
            shown.sort(key=orders[self.order], reverse=self.descending)
        self.show([self._row(info, known.get(info.spec), info.name in marked) for info in shown])

    def _row(self, info: WorkloadInfo, known: KnownBest | None, marked: bool) -> Row:
        return Row(
            info.name,
            (
                Text("●" if marked else " ", style="success"),
                info.name,
                fmt.count(info.flops or None),
                fmt.latency(known.best_secs if known else None),
                str(known.trials) if known else fmt.NONE,
                info.op,
                shapes(info),
                info.network,
            ),
        )


def shapes(info: WorkloadInfo) -> str:
    """Input and output shapes on one line."""
    if not info.inputs:
        return "known when the file is loaded"
    *inputs, output = ("×".join(map(str, tensor.shape)) for tensor in (*info.inputs, info.output))
    # What a model gives is known when it is loaded.
    arrow = f" → {output}" if output else ""
    return f"{', '.join(inputs)}{arrow} {info.inputs[0].dtype}"
