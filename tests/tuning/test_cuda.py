"""CUDA programs as graphs, compiled where a compiler is there, and run where a card is."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest

from tuneassist.cost_model.graph import extract_batch
from tuneassist.cost_model.syntax import THREAD
from tuneassist.cost_model.walk import walk
from tuneassist.errors import MachineError
from tuneassist.targets import cuda
from tuneassist.targets.catalogue import configuration
from tuneassist.targets.resolve import examine_target
from tuneassist.targets.spec import Named
from tuneassist.tvm_api import IRModule, Schedule, Target, te, tvm

pytestmark = pytest.mark.tvm

EXTENT = 256


def scheduled() -> IRModule:
    """A matrix product on a grid of threads that share a tile, with vector loads."""
    a = te.placeholder((EXTENT, EXTENT), name="A")
    b = te.placeholder((EXTENT, EXTENT), name="B")
    k = te.reduce_axis((0, EXTENT), name="k")
    c = te.compute((EXTENT, EXTENT), lambda i, j: te.sum(a[i, k] * b[k, j], axis=k), name="C")
    schedule = Schedule(te.create_prim_func([a, b, c]))
    block = schedule.get_sblock("C")
    i, j, k_loop = schedule.get_loops(block)
    by, ty = schedule.split(i, [None, 16])
    bx, tx = schedule.split(j, [None, 16])
    k_outer, k_inner = schedule.split(k_loop, [None, 16])
    schedule.reorder(by, bx, ty, tx, k_outer, k_inner)
    for loop, axis in ((by, "blockIdx.y"), (bx, "blockIdx.x"), (ty, "threadIdx.y"), (tx, "threadIdx.x")):
        schedule.bind(loop, axis)
    shared = schedule.cache_read(block, 0, "shared")
    schedule.compute_at(shared, k_outer)
    _fetch(schedule, shared)
    return schedule.mod


def _fetch(schedule: Any, block: Any) -> None:
    fused = schedule.fuse(*schedule.get_loops(block)[-2:])
    _, ty, tx, vector = schedule.split(fused, [None, 16, 4, 4])
    schedule.bind(ty, "threadIdx.y")
    schedule.bind(tx, "threadIdx.x")
    schedule.vectorize(vector)


def test_threads_shared_tiles_and_vectors_are_in_the_graph() -> None:
    found = walk(scheduled())
    assert not found.unknown
    assert sum(loop.kind == THREAD for loop in found.loops) >= 5
    assert {loop.extent for loop in found.loops if loop.kind not in (0, THREAD)} == {4}
    assert len(found.allocs) == 1
    (graph,) = extract_batch([scheduled()], 1)
    assert np.isfinite(graph.features).all()


def test_a_tag_of_a_card_that_is_not_here_says_so() -> None:
    if bool(tvm.cuda(0).exist):
        pytest.skip("there is a card")
    examined = examine_target("nvidia/nvidia-a100")
    assert examined.target.kind == "cuda"
    assert isinstance(examined.problem, MachineError) and "NVIDIA" in examined.problem.message


@pytest.mark.skipif(cuda.compiler() is None, reason="neither NVRTC nor nvcc is here")
def test_it_compiles_for_an_a100(monkeypatch: pytest.MonkeyPatch) -> None:
    for name, value in cuda.compile_environment().items():
        monkeypatch.setenv(name, value)
    assert tvm.compile(scheduled(), target=Target(configuration(Named("nvidia/nvidia-a100"))))


@pytest.mark.skipif(not tvm.cuda(0).exist or cuda.compiler() is None, reason="no card, or no compiler")
def test_it_runs_on_a_card() -> None:
    device = tvm.cuda(0)
    built = tvm.compile(scheduled(), target=Target(cuda.device_config())).jit()
    rng = np.random.default_rng(0)
    a, b = (rng.random((EXTENT, EXTENT), dtype=np.float32) for _ in range(2))
    output = tvm.runtime.empty((EXTENT, EXTENT), "float32", device)
    built["main"](tvm.runtime.tensor(a, device), tvm.runtime.tensor(b, device), output)
    np.testing.assert_allclose(output.numpy(), a @ b, rtol=1e-3)
