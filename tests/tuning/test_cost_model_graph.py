"""AST graphs of real scheduled modules."""

from __future__ import annotations

import subprocess
import sys
from typing import Any

import numpy as np
import pytest

from tuneassist.cost_model.graph import COLUMNS, AstGraph, extract, extract_batch
from tuneassist.cost_model.hardware import Hardware
from tuneassist.cost_model.syntax import NODE_TYPES

pytestmark = pytest.mark.tvm
HARDWARE = Hardware(cores=2, vector_bytes=64, registers=32)


def matmul(n: int = 64) -> Any:
    """C = A B, as a schedule."""
    from tuneassist.tvm_api import Schedule, te, tvm

    a, b = te.placeholder((n, n), name="A"), te.placeholder((n, n), name="B")
    k = te.reduce_axis((0, n), name="k")
    c = te.compute((n, n), lambda i, j: te.sum(a[i, k] * b[k, j], axis=k), name="C")
    return Schedule(tvm.IRModule({"main": te.create_prim_func([a, b, c])}))


def tiled(n: int = 64) -> Any:
    """Rows in parallel, 16 columns in a vector, the reduction outside of it."""
    schedule = matmul(n)
    block = schedule.get_sblock("C")
    i, j, k = schedule.get_loops(block)
    outer, inner = schedule.split(j, [None, 16])
    schedule.reorder(i, outer, k, inner)
    schedule.parallel(i)
    schedule.vectorize(inner)
    schedule.decompose_reduction(block, k)
    return schedule


def nodes(graph: AstGraph, kind: str) -> np.ndarray:
    return np.flatnonzero(graph.types == NODE_TYPES.index(kind))


def value(graph: AstGraph, node: int, column: str) -> float:
    return float(graph.features[node, COLUMNS.index(column)])


def test_the_tree_of_a_tiled_matmul() -> None:
    graph = extract(tiled().mod, 2, hardware=HARDWARE, labelled=True)
    assert graph.labels is not None
    assert len(nodes(graph, "store")) == 2
    update = int(nodes(graph, "store")[1])
    assert value(graph, update, "statement.vector") == pytest.approx(np.log2(17))
    assert value(graph, update, "statement.vector_fills_registers") == 1
    assert value(graph, update, "statement.iterations") == pytest.approx(np.log2(64**3 + 1))
    assert value(graph, update, "statement.parallel") == pytest.approx(np.log2(65))
    loads = {graph.labels[n]: int(n) for n in nodes(graph, "load") if graph.parents[n] == update}
    assert loads.keys() == {"load A", "load B", "load C"}
    assert value(graph, loads["load C"], "access.is_repeated") == 1
    assert value(graph, loads["load A"], "access.broadcast") == 1
    assert value(graph, loads["load B"], "access.contiguous") == 1
    # From one k to the next, B moves by a row and C stays.
    assert value(graph, loads["load B"], "access.stride_1") == pytest.approx(np.log2(65))
    assert value(graph, update, "access.invariant_1") == 1
    assert graph.flops == pytest.approx(2 * 64**3)
    assert graph.bytes == 3 * 64 * 64 * 4


def test_edges_run_both_ways_and_along_the_data() -> None:
    graph = extract(tiled().mod, 2, hardware=HARDWARE)
    pairs = {
        kind: {tuple(edge) for edge in graph.edges[:, graph.edge_kinds == kind].T.tolist()}
        for kind in range(4)
    }
    assert pairs[0] == {(int(p), c) for c, p in enumerate(graph.parents) if p >= 0}
    assert pairs[1] == {(b, a) for a, b in pairs[0]}
    assert pairs[3] == {(b, a) for a, b in pairs[2]}
    stores = {int(n) for n in nodes(graph, "store")}
    assert {source for source, _ in pairs[2]} == stores
    assert all(target in nodes(graph, "load") for _, target in pairs[2])


def test_loops_of_one_iteration_leave_no_node() -> None:
    schedule = matmul()
    loop = schedule.get_loops(schedule.get_sblock("C"))[0]
    schedule.split(loop, [1, None])
    assert np.array_equal(extract(schedule.mod, 2).types, extract(matmul().mod, 2).types)


def test_blocks_that_compilation_removes_leave_no_node() -> None:
    schedule = matmul()
    copied = schedule.cache_read(schedule.get_sblock("C"), 1, "global")
    before = extract(schedule.mod, 2)
    schedule.annotate(copied, "meta_schedule.layout_rewrite_preproc", 1)
    after = extract(schedule.mod, 2)
    assert len(nodes(before, "store")) == len(nodes(after, "store")) + 1
    assert len(nodes(before, "loop")) == len(nodes(after, "loop")) + 2


def test_the_estimate_knows_a_good_schedule() -> None:
    naive, good = extract_batch([matmul(256).mod, tiled(256).mod], 2, hardware=HARDWARE)
    assert good.log_estimate < naive.log_estimate - np.log(4.0)


def test_a_batch_is_its_modules_one_by_one() -> None:
    mods = [matmul().mod, tiled().mod, matmul(128).mod]
    batch = extract_batch(mods, 2)
    for graph, mod in zip(batch, mods, strict=True):
        alone = extract(mod, 2)
        assert np.array_equal(graph.features, alone.features)
        assert np.array_equal(graph.edges, alone.edges)
    assert extract_batch([], 2) == []


def test_a_statement_does_not_depend_on_those_after_it() -> None:
    from tuneassist.tvm_api import te, tvm

    def double(source: Any) -> Any:
        return te.compute(source.shape, lambda i, j: source[i, j] * 2.0, name="B")

    def doubled(*shapes: tuple[int, int]) -> AstGraph:
        sources = [te.placeholder(shape, name="A") for shape in shapes]
        function = te.create_prim_func([*sources, *(double(source) for source in sources)])
        return extract(tvm.IRModule({"main": function}), 2)

    alone, first = doubled((32, 64)), doubled((32, 64), (4, 8))
    for node in (int(nodes(alone, "store")[0]), int(nodes(alone, "load")[0])):
        assert np.array_equal(alone.features[node], first.features[node])


def test_a_lowered_module_and_unknown_nodes_do_not_crash() -> None:
    from tuneassist.tvm_api import te, tvm

    a = te.placeholder((8, 8), name="A")
    b = te.compute((8, 8), lambda i, j: te.if_then_else(i > j, tvm.tirx.exp(a[i, j]), a[j, i]), name="B")
    mod = tvm.IRModule({"main": te.create_prim_func([a, b])})
    assert extract(mod, 2).unknown == {}
    lowered = tvm.s_tir.transform.ConvertBlocksToOpaque()(mod)
    lowered = tvm.s_tir.transform.CompactBufferAllocation()(lowered)
    graph = extract(tvm.s_tir.transform.LowerOpaqueBlock()(lowered), 2)
    assert len(nodes(graph, "store")) == 1
    assert np.isfinite(graph.features).all()
    assert extract(tvm.IRModule({}), 2).num_nodes == 1


def test_a_class_never_seen_is_counted() -> None:
    class Novel:
        """Neither a statement nor an expression that TVM has."""

    function = type("PrimFunc", (), {"body": Novel()})()
    name = type("GlobalVar", (), {"name_hint": "main"})()
    mod: Any = type("IRModule", (), {"functions": {name: function}})()
    graph = extract(mod, 2)
    assert graph.unknown == {"Novel": 1}
    assert len(nodes(graph, "unknown")) == 1


def test_metrics_base_and_graph_do_not_import_torch() -> None:
    code = (
        "import sys, tuneassist.cost_model.graph, tuneassist.cost_model.base, tuneassist.cost_model.metrics;"
        "sys.exit('torch' in sys.modules or 'tvm' in sys.modules)"
    )
    assert subprocess.run([sys.executable, "-c", code], check=False).returncode == 0
