"""Modules that TVM gets: arguments, hash, pre-packing, search spaces, and files."""

from __future__ import annotations

import subprocess
import sys
from pathlib import Path
from typing import Any

import pytest

from tuneassist.errors import UsageError
from tuneassist.records import TensorSpec, WorkloadInfo
from tuneassist.workloads.catalogue import CATALOGUE
from tuneassist.workloads.operators import OPERATORS
from tuneassist.workloads.reference import make_inputs
from tuneassist.workloads.spec import list_workloads, parse_workload, prepacked

pytestmark = pytest.mark.tvm

SCRIPT = """
from tvm.script import ir as I
from tvm.script import tirx as T

@T.prim_func(s_tir=True)
def add_one(A: T.Buffer((16, 8), "float32"), B: T.Buffer((16, 8), "float32")):
    for i, j in T.grid(16, 8):
        with T.sblock("add"):
            vi, vj = T.axis.remap("SS", [i, j])
            B[vi, vj] = A[vi, vj] + T.float32(1)

@T.prim_func(s_tir=True)
def symbolic(a: T.handle, b: T.handle):
    n = T.int64()
    A = T.match_buffer(a, (n, 8))
    B = T.match_buffer(b, (n, 8))
    for i, j in T.grid(n, 8):
        with T.sblock("add"):
            vi, vj = T.axis.remap("SS", [i, j])
            B[vi, vj] = A[vi, vj] + T.float32(1)

@T.prim_func(s_tir=True)
def output_first(B: T.Buffer((16, 8), "float32"), A: T.Buffer((16, 8), "float32")):
    for i, j in T.grid(16, 8):
        with T.sblock("add"):
            vi, vj = T.axis.remap("SS", [i, j])
            B[vi, vj] = A[vi, vj] + T.float32(1)

@T.prim_func
def no_blocks(A: T.Buffer((16, 8), "float32"), B: T.Buffer((16, 8), "float32")):
    for i, j in T.grid(16, 8):
        B[i, j] = A[i, j] + T.float32(1)

@T.prim_func(s_tir=True)
def scalar(x: T.int32, A: T.Buffer((16,), "int32")):
    for i in range(16):
        with T.sblock("set"):
            vi = T.axis.spatial(16, i)
            A[vi] = x

@I.ir_module
class Two:
    @T.prim_func(s_tir=True)
    def one(A: T.Buffer((4,), "float32"), B: T.Buffer((4,), "float32")):
        for i in range(4):
            with T.sblock("copy"):
                vi = T.axis.spatial(4, i)
                B[vi] = A[vi]

    @T.prim_func(s_tir=True)
    def two(A: T.Buffer((4,), "float32"), B: T.Buffer((4,), "float32")):
        for i in range(4):
            with T.sblock("copy"):
                vi = T.axis.spatial(4, i)
                B[vi] = A[vi]

number = 3
"""


@pytest.fixture(scope="module")
def script(tmp_path_factory: pytest.TempPathFactory) -> Path:
    path = tmp_path_factory.mktemp("script") / "kernels.py"
    path.write_text(SCRIPT)
    return path


def build(info: WorkloadInfo) -> Any:
    from tuneassist.workloads.build import build_prim_func

    return build_prim_func(info)


def space(spec: str) -> tuple[Any, list[Any]]:
    """The tuning context of a workload, and its search spaces."""
    from tuneassist.tvm_api import Target, load_tensor_intrinsics, ms

    load_tensor_intrinsics("llvm")
    context = ms.TuneContext(
        mod=build(parse_workload(spec)), target=Target({"kind": "llvm", "num-cores": 2}),
        space_generator="post-order-apply", search_strategy="evolutionary", task_name=spec, rand_state=1,
    )  # fmt: skip
    return context, list(context.generate_design_space())


def test_every_catalogue_entry_builds_with_the_tensors_that_its_spec_promises() -> None:
    from tuneassist.workloads._load import arguments
    from tuneassist.workloads.build import workload_hash

    hashes = set()
    for info in list_workloads():
        module = build(info)
        found = [(tensor.shape, tensor.dtype) for tensor in arguments(module["main"])]
        assert found == [(tensor.shape, tensor.dtype) for tensor in (*info.inputs, info.output)], info.name
        hashes.add(workload_hash(module))
    assert len(hashes) == len(CATALOGUE)


@pytest.mark.parametrize(
    "name", [name for name, entry in CATALOGUE.items() if entry.spec.startswith("conv2d:")]
)
def test_flops_of_convolutions_are_tvms_own_estimate(name: str) -> None:
    from tuneassist.tvm_api import estimate_tir_flops

    info = parse_workload(name)
    assert estimate_tir_flops(build(info)) == info.flops


def test_hash_is_the_same_in_another_process_and_ignores_names() -> None:
    from tuneassist.workloads.build import workload_hash

    specs = ["resnet18.c2", "resnet18.c2:layout=NHWC", "resnet18.c2:prepack=0", "bert-base.softmax"]
    code = (
        "import sys\nfrom tuneassist.workloads.spec import parse_workload\n"
        "from tuneassist.workloads.build import build_prim_func, workload_hash\n"
        "print(*(workload_hash(build_prim_func(parse_workload(spec))) for spec in sys.argv[1:]))"
    )
    other = subprocess.run(
        [sys.executable, "-c", code, *specs], capture_output=True, text=True, check=True, timeout=120,
        env={"PYTHONHASHSEED": "7"},
    )  # fmt: skip
    hashes = [workload_hash(build(parse_workload(spec))) for spec in specs]
    assert other.stdout.split() == hashes
    assert len(set(hashes)) == len(specs)


@pytest.mark.parametrize(
    "spec",
    [
        "conv2d:ci=16,h=14,w=14,co=32,k=3,p=1",
        "conv2d:ci=16,h=14,w=14,co=32,k=3,p=1,prepack=0",
        "conv2d:ci=16,h=14,w=14,co=32,k=3,p=1,layout=NHWC",
        "conv2d:ci=16,h=14,w=14,co=32,k=3,p=1,layout=NCHWc",
        "depthwise_conv2d:c=32,h=14,w=14,k=3,p=1",
        "dense:m=32,n=64,k=64,bias=1,act=gelu",
        "matmul:m=32,n=64,k=64",
        "matmul:m=32,n=64,k=64,prepack=1",
        "attention_scores:heads=4,q=32,kv=32,d=32",
    ],
)
def test_layout_is_rewritten_just_where_prepack_allows_it(spec: str) -> None:
    from tuneassist.tvm_api import Schedule, Trace

    context, spaces = space(spec)
    # the first space may be the untiled one, which has no layout to prefer
    schedule = Schedule(context.mod, seed=3)
    Trace(spaces[-1].trace.insts, {}).apply_to_schedule(schedule, remove_postproc=True)
    assert all(postproc.apply(schedule) for postproc in context.space_generator.postprocs)
    rewritten = "layout_rewrite_preproc" in schedule.mod.script()
    assert rewritten == bool(prepacked(parse_workload(spec)))


@pytest.mark.parametrize("kind", OPERATORS)
def test_every_kind_has_a_search_space(kind: str) -> None:
    name = next((info.name for info in list_workloads() if info.op == kind), f"{kind}:m=8,n=64")
    _, spaces = space(name)
    assert spaces
    assert all(len(schedule.trace.insts) > 1 for schedule in spaces)


def test_script_function_becomes_a_known_workload(script: Path) -> None:
    from tuneassist.workloads.build import describe_module

    info = parse_workload(f"{script}:add_one")
    module = build(info)
    known = describe_module(info, module)
    assert known.inputs == (TensorSpec("A", (16, 8), "float32"),)
    assert known.output == TensorSpec("B", (16, 8), "float32")
    assert known.flops == 128
    assert make_inputs(known, 0)[0].shape == (16, 8)


@pytest.mark.parametrize(
    ("function", "said"),
    [
        ("symbolic", "symbolic dimensions: A.shape[0] = n, B.shape[0] = n"),
        ("output_first", "writes to B of its arguments B, A"),
        ("no_blocks", "can't be scheduled"),
        ("scalar", "the argument x is no buffer"),
        ("Two", "holds 2 functions: one, two"),
        ("number", "is a int, not a PrimFunc"),
        ("absent", "defines no absent"),
    ],
)
def test_script_that_can_not_be_tuned_is_explained(script: Path, function: str, said: str) -> None:
    with pytest.raises(UsageError) as caught:
        build(parse_workload(f"{script}:{function}"))
    assert said in caught.value.message
    assert caught.value.remedy


@pytest.mark.parametrize("text", ["import nothing_like_it", "1 / 0", "def f(:", "raise SystemExit(3)"])
def test_script_that_fails_is_explained(text: str, tmp_path: Path) -> None:
    path = tmp_path / "broken.py"
    path.write_text(text)
    with pytest.raises(UsageError, match="failed when it ran"):
        build(parse_workload(f"{path}:f"))


def test_saved_module_is_the_same_workload(tmp_path: Path) -> None:
    from tuneassist.tvm_api import tvm
    from tuneassist.workloads.build import describe_module, workload_hash

    original = parse_workload("dense:m=4,n=8,k=16")
    path = tmp_path / "mod.json"
    path.write_text(tvm.ir.save_json(build(original)))
    info = parse_workload(str(path))
    module = build(info)
    known = describe_module(info, module)
    assert workload_hash(module) == workload_hash(build(original))
    assert known.inputs == original.inputs
    assert known.flops == original.flops


@pytest.mark.parametrize("text", ["{}", "[1]", "null", '{"root_index": 0, "nodes": [{"type": "Nope"}]}'])
def test_json_that_is_no_module_is_explained(text: str, tmp_path: Path) -> None:
    path = tmp_path / "mod.json"
    path.write_text(text)
    with pytest.raises(UsageError, match="no saved TVM module"):
        build(parse_workload(str(path)))


def test_relax_module_in_a_script_is_explained(tmp_path: Path) -> None:
    path = tmp_path / "model.py"
    path.write_text(
        "from tvm.script import ir as I\nfrom tvm.script import relax as R\n"
        "@I.ir_module\nclass Model:\n    @R.function\n"
        '    def main(x: R.Tensor((4,), "float32")):\n        return x\n'
    )
    with pytest.raises(UsageError, match="holds a Relax program"):
        build(parse_workload(f"{path}:Model"))
