"""A trial's program: its AST with every node's features, its TVMScript and its trace."""

from __future__ import annotations

import math
from typing import Any

import numpy as np

from tuneassist.cost_model.graph import COLUMNS, EDGE_KINDS, NODE_TYPES, AstGraph, extract
from tuneassist.cost_model.indices import Changes, address_changes
from tuneassist.cost_model.program import Access, Statement, Walk
from tuneassist.cost_model.syntax import PARALLEL, SERIAL, THREAD, UNROLLED, VECTORIZED
from tuneassist.cost_model.walk import walk
from tuneassist.errors import UsageError
from tuneassist.exchange.scheduled import load_workload, schedule_of
from tuneassist.exchange.selection import workload_by_id
from tuneassist.records import Trial
from tuneassist.storage import rows
from tuneassist.storage.faults import store_faults
from tuneassist.storage.sqlite import SqliteStore
from tuneassist.tvm_api import Schedule

_LOOP_KINDS = {
    SERIAL: "serial", PARALLEL: "parallel", VECTORIZED: "vectorized", UNROLLED: "unrolled", THREAD: "thread",
}  # fmt: skip
_SHOWN_STRIDES = 4


def inspect_trial(
    store: SqliteStore, trial_id: int, *, model: str | None = None, untuned: bool = False
) -> dict[str, Any]:
    """Replay a stored trial and describe its program.

    Args:
        store: Where it is.
        trial_id: The trial.
        untuned: Describe the trial's workload as it is before any schedule instead.
        model: Path of a cost model's checkpoint, which says what each node adds to the predicted log time.

    Returns:
        `trial_id`; `nodes`, each with `id`, `parent` (None for the root), `kind`, `label`, `detail` (facts
        and features by name) and `contribution`; `edges` as [store, load, "flow"] beside the tree's own;
        `script`, TVMScript; `trace`, MetaSchedule's Python form; `constant`, what the model adds
        whatever the nodes are; `predicted_secs`, by the model; `measured_secs`; `workload`, its name; and
        `unknown`, how often each class of AST node was seen that this version does not know.

    Raises:
        UsageError: There is no such trial, or the model can't be used.
        StoreError: Its module or trace can't be used by this TVM.
    """
    trial, workload_id, target = _stored(store, trial_id)
    workload = workload_by_id(store, workload_id)
    schedule = Schedule(load_workload(workload)) if untuned else schedule_of(workload, trial, target)
    graph = extract(schedule.mod, max(target.cores, 1), labelled=True)
    facts = _facts(walk(schedule.mod, labelled=True))
    told = _explained(graph, workload.hash, model) if model else {}
    nodes = [_node(graph, number, facts.get(number, {})) for number in range(graph.num_nodes)]
    for node, contribution in zip(nodes, told.get("contributions", ()), strict=False):
        node["contribution"] = contribution
    return {
        "trial_id": trial_id,
        "workload": workload.name,
        "measured_secs": None if untuned else trial.best_of,
        "nodes": nodes,
        "edges": _flows(graph),
        "script": schedule.mod.script(),
        "trace": "\n".join(schedule.trace.as_python()),
        "constant": told.get("constant"),
        "predicted_secs": told.get("predicted_secs"),
        "unknown": dict(graph.unknown),
    }


def _explained(graph: AstGraph, workload_hash: str, path: str) -> dict[str, Any]:
    # torch takes two seconds to import: only where a model is asked.
    from tuneassist.cost_model.explain import explain
    from tuneassist.cost_model.learned import LearnedCostModel
    from tuneassist.cost_model.registry import create_cost_model

    model = create_cost_model(path)
    assert isinstance(model, LearnedCostModel)
    found = explain(model, workload_hash, graph)
    return {
        "contributions": [float(value) for value in found.contributions],
        "constant": float(found.constant),
        "predicted_secs": math.exp(found.log_secs),
    }


def _stored(store: SqliteStore, trial_id: int) -> tuple[Trial, int, Any]:
    with store_faults(store.path):
        return _read(store, trial_id)


def _read(store: SqliteStore, trial_id: int) -> tuple[Trial, int, Any]:
    row = store.connection.execute(f"{rows.SELECT_TRIAL} WHERE trials.id = ?", (trial_id,)).fetchone()
    if row is None:
        raise UsageError(
            f"There is no trial of id {trial_id}.", remedy="`tuneassist history trials RUN` lists them."
        )
    trial = rows.trial_from(row)
    workload_id, target_id = store.connection.execute(
        "SELECT tasks.workload_id, runs.target_id FROM tasks JOIN runs ON runs.id = tasks.run_id"
        " WHERE tasks.id = ?",
        (trial.task_id,),
    ).fetchone()
    return trial, workload_id, store.target(target_id)


def _node(graph: AstGraph, number: int, facts: dict[str, Any]) -> dict[str, Any]:
    kind = NODE_TYPES[graph.types[number]]
    label = graph.labels[number] if graph.labels else kind
    parent = int(graph.parents[number])
    named = np.flatnonzero(graph.features[number])
    features = {COLUMNS[column]: round(float(graph.features[number, column]), 4) for column in named}
    return {
        "id": number,
        "parent": None if parent < 0 else parent,
        "kind": kind,
        "label": _label(kind, label, facts),
        "detail": {**facts, **features},
        "contribution": None,
    }


def _label(kind: str, label: str, facts: dict[str, Any]) -> str:
    """The graph's label without the kind, and with what matters most."""
    words = label.removeprefix("for ").removeprefix(f"{kind} ")
    if facts.get("annotation", "serial") != "serial":
        words += f", {facts['annotation']}"
    if "strides" in facts:
        strides = facts["strides"]
        shown = " ".join(map(str, strides[:_SHOWN_STRIDES])) + (
            " ..." if len(strides) > _SHOWN_STRIDES else ""
        )
        words += f"  stride {shown}" if strides else ""
    return words if words != kind else ""


def _flows(graph: AstGraph) -> list[list[Any]]:
    flow = EDGE_KINDS.index("flow")
    chosen = graph.edges[:, graph.edge_kinds == flow]
    return [[int(source), int(target), "flow"] for source, target in chosen.T]


def _facts(walked: Walk) -> dict[int, dict[str, Any]]:
    """What people want to know of a node before any feature, by node."""
    facts: dict[int, dict[str, Any]] = {}
    for loop in walked.loops:
        facts[loop.node] = {"extent": loop.extent, "annotation": _LOOP_KINDS[loop.kind]}
        if loop.unroll_max_step:
            facts[loop.node]["unroll_max_step"] = loop.unroll_max_step
    for node, spatial, reduction, *_ in walked.blocks:
        facts[node] = {"spatial_iters": spatial, "reduction_iters": reduction}
    for node, buffer in walked.allocs:
        facts[node] = {"shape": list(walked.buffers[buffer].shape)}
    for node, count, _ in walked.ops:
        facts[node] = {"count": count}
    for statement in walked.statements:
        start = 0
        for access in statement.accesses:
            changes = statement.changes[start : start + access.dims]
            start += access.dims
            facts[access.node] = _access_facts(walked, statement, access, changes)
    return facts


def _access_facts(
    walked: Walk, statement: Statement, access: Access, changes: list[Changes]
) -> dict[str, Any]:
    """Shape and strides of an access: elements by which one step of each loop moves it, innermost first."""
    shape = walked.buffers[access.buffer].shape
    address = address_changes(changes, shape)
    strides = [address.get(depth, 0) for depth in reversed(range(len(statement.loops)))]
    return {"shape": list(shape), "strides": strides}
