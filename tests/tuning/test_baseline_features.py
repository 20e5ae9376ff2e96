"""Context relation and per-store features of real modules, and tuning under them."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest
from test_cost_model_graph import matmul, tiled

from tuneassist.cost_model import context_relation, per_store
from tuneassist.cost_model.base import CostModel
from tuneassist.cost_model.registry import MODULE_KINDS, create_cost_model
from tuneassist.tuning.guides import GraphGuide
from tuneassist.tuning.phases import PhaseClock
from tuneassist.tuning.search import TaskSearch

pytestmark = pytest.mark.tvm


def target() -> Any:
    from tuneassist.tvm_api import Target

    return Target({"kind": "llvm", "num-cores": 2})


def value(row: np.ndarray, name: str) -> float:
    return float(row[context_relation.COLUMNS.index(name)])


def log(x: float) -> float:
    return float(np.sign(x) * np.log2(abs(x) + 1))


def test_the_context_of_a_tiled_matmul() -> None:
    [rows] = context_relation.features([tiled().mod])
    assert rows.values.shape == (1, len(context_relation.COLUMNS))
    row = rows.values[0]
    # i in parallel(64), outer in 4, k in 64, inner in vectorized(16): C[i, j] += A[i, k] B[k, j]
    expected = {
        "loop0.length": 16, "loop0.level": 4, "loop0.top_down": 64 * 4 * 64 * 16, "loop0.bottom_up": 16,
        "loop3.length": 64, "loop3.level": 1, "loop3.top_down": 64, "loop3.bottom_up": 64 * 4 * 64 * 16,
        # The store C, then the loads of C, A and B.
        "loop0.buffer0.stride": 1, "loop1.buffer0.stride": 0, "loop3.buffer0.stride": 64,
        "loop1.buffer0.count": 16, "loop1.buffer0.reuse": 64, "loop0.buffer0.mod": -1,
        "loop3.buffer2.count": 64 * 64, "loop3.buffer2.reuse": 4 * 16, "loop1.buffer2.stride": 1,
        "loop2.buffer3.count": 4 * 64 * 16, "loop3.buffer3.reuse": 64, "loop1.buffer3.stride": 64,
        "loop3.buffer0.thread_count": 64, "loop3.buffer3.thread_count": 1, "loop3.buffer3.thread_reuse": 64,
        "loop2.buffer3.thread_count": 0,
    }  # fmt: skip
    for name, number in expected.items():
        assert value(row, name) == pytest.approx(log(number), abs=1e-5), name
    assert [value(row, f"loop0.{kind}") for kind in ("serial", "parallel", "vectorized")] == [0, 0, 1]
    assert value(row, "loop3.parallel") == 1
    assert value(row, "loop4.length") == 0


def test_relations_are_the_largest_under_a_threshold() -> None:
    row = context_relation.features([tiled().mod])[0].values[0]
    # Counts of B, from the innermost loop: 16, 1024, 4096, 4096; reuses: 1, 1, 1, 64.
    curve = [value(row, f"buffer3.reuse_by_count.{t}") for t in range(context_relation.THRESHOLDS)]
    assert curve[:5] == [0.0] * 5
    assert curve[5:13] == [1.0] * 8
    assert curve[13:] == pytest.approx([log(64)] * 7)
    back = [value(row, f"buffer3.count_by_reuse.{t}") for t in range(context_relation.THRESHOLDS)]
    assert back[0] == 0.0
    assert back[1:] == pytest.approx([log(4096)] * 19)


def test_a_loop_that_runs_through_a_division_has_a_modulus() -> None:
    schedule = matmul()
    i, j, _ = schedule.get_loops(schedule.get_sblock("C"))
    schedule.fuse(i, j)
    row = context_relation.features([schedule.mod])[0].values[0]
    # A[fused // 64, k], B[k, fused % 64]
    assert value(row, "loop1.buffer3.mod") == pytest.approx(log(64))
    assert value(row, "loop1.buffer3.stride") == pytest.approx(log(1))
    assert value(row, "loop1.buffer2.mod") == -1
    assert value(row, "loop1.buffer2.stride") == pytest.approx(log(64 * 63 / 4095), abs=1e-5)


def test_modules_without_a_store_and_unknown_nodes_do_not_crash() -> None:
    from tuneassist.tvm_api import tvm

    empty = context_relation.features([tvm.IRModule({})])[0].values
    assert empty.shape == (1, len(context_relation.COLUMNS)) and not empty.any()
    assert context_relation.features([]) == []
    assert per_store.features([], target()) == []


def test_per_store_gives_a_row_for_each_buffer_stored_to() -> None:
    cached = tiled()
    cached.cache_read(cached.get_sblock("C_update"), 1, "global")
    mods = [matmul().mod, tiled().mod, cached.mod]
    found = per_store.features(mods, target(), threads=2)
    assert [rows.values.shape for rows in found] == [(n, per_store.COLUMN_COUNT) for n in (1, 1, 2)]
    assert all(np.isfinite(rows.values).all() for rows in found)
    alone = per_store.features(mods[1:2], target())[0]
    assert np.array_equal(found[1].values, alone.values)
    assert not np.array_equal(found[0].values, found[1].values)


class Loaded:
    """A model source that is there at once."""

    pretrained = False

    def __init__(self, kind: str) -> None:
        self.kind = kind
        self._model = create_cost_model(kind, seed=0)

    def get(self) -> CostModel:
        return self._model


@pytest.mark.parametrize("kind", MODULE_KINDS)
def test_a_search_is_guided_by_a_baseline(kind: str) -> None:
    guide = GraphGuide(Loaded(kind), "w", target=target(), cores=2, clock=PhaseClock())
    search = TaskSearch(matmul().mod, target(), guide, seed=1, threads=2)
    first = search.predict(search.propose(8, budget_secs=5.0))
    assert len(first) == 8
    assert all(candidate.predicted_secs is None for candidate in first)
    secs = [1e-4 * (1 + i) for i in range(8)]
    for candidate, each in zip(first, secs, strict=True):
        search.add_measured(candidate.schedule, (each,))
    guide.learn([candidate.schedule for candidate in first], secs, budget_secs=5.0)
    second = search.predict(search.propose(8, budget_secs=5.0))
    assert any(candidate.source == "search" for candidate in second)
    assert all(1e-5 < (candidate.predicted_secs or 0.0) < 1e-2 for candidate in second)
