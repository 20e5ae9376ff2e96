"""From a Relax model to one TIR function an operator group: what is tuned, and what is put together again."""

from __future__ import annotations

import re
from dataclasses import dataclass
from typing import Any

from tuneassist.errors import UsageError
from tuneassist.models.faults import cause
from tuneassist.records import TensorSpec, WorkloadInfo
from tuneassist.tvm_api import IRModule, PrimFunc, Target, relax, tirx, tvm
from tuneassist.workloads.build import describe_module, without_named_rules, workload_hash
from tuneassist.workloads.models import TASK, model_layout

_LAYOUT_FREE = "layout_free_buffers"
_WEIGHT_LAYOUT = {"NHWC": "HWIO", "NCHW": "OIHW"}
_NO_OUTPUT = TensorSpec("output", (), "")


@dataclass(frozen=True, slots=True)
class ModelTask:
    """One distinct kernel of a model."""

    info: WorkloadInfo
    module: IRModule
    """Its one function is `main`."""
    hash: str
    weight: int
    """How often the model calls it."""
    tunable: bool
    functions: tuple[str, ...]
    """The functions of the lowered module that it stands for."""


def lower(info: WorkloadInfo, module: IRModule) -> IRModule:
    """Fold batch norms, lay convolutions out, and fuse operators into TIR functions without a schedule.

    The same model gives the same functions in every process. Weights are constants of `main`, and the
    functions that take them say that these may be laid out anew.

    Raises:
        UsageError: TVM can't lower the model.
    """
    transform = relax.transform
    layout = model_layout(info)
    convert = [
        transform.ConvertLayout(
            {
                "relax.nn.conv2d": [layout, _WEIGHT_LAYOUT[layout]],
                # TVM lowers it in this layout alone, but lets another pass through to it
                "relax.nn.conv2d_transpose": ["NCHW", "IOHW"],
            }
        ),
        transform.Normalize(),
    ]
    with Target("llvm"):
        module = _run(info, "simplified", module, [
            transform.FoldBatchnormToConv2D(), transform.FoldConstant(), transform.CanonicalizeBindings(),
        ])  # fmt: skip
        module["main"] = _without_clips(module)
        if layout != "NCHW":
            module = _run(info, f"laid out as {layout}", module, convert)
        return _run(info, "lowered", module, [
            transform.DecomposeOpsForInference(), transform.CanonicalizeBindings(), transform.FoldConstant(),
            transform.LegalizeOps(), transform.AnnotateTIROpPattern(), transform.FoldConstant(),
            transform.FuseOps(), transform.FuseTIR(), transform.DeadCodeElimination(),
            transform.AttachAttrLayoutFreeBuffers(),
        ])  # fmt: skip


def model_tasks(info: WorkloadInfo, lowered: IRModule) -> list[ModelTask]:
    """The distinct kernels of a lowered model in the order of their first call.

    Kernels that only reshape (they cost nothing) or have several outputs are not tunable.
    """
    calls = _calls(lowered["main"])
    found: dict[str, list[str]] = {}
    modules: dict[str, IRModule] = {}
    for name in calls:
        module = kernel_module(lowered[name])
        key = workload_hash(module)
        modules.setdefault(key, module)
        found.setdefault(key, []).append(name)
    tasks = []
    for index, (key, names) in enumerate(found.items(), start=1):
        title = f"{info.name.removeprefix('model:')}/{index}.{_plain(names[0])}"
        spec = f"{info.spec}/{index}.{_plain(names[0])}"
        tunable = _tunable(lowered[names[0]], calls[names[0]].outputs)
        described = WorkloadInfo(title, spec, TASK, (), _NO_OUTPUT, 0, network=info.network)
        if tunable:
            described = describe_module(described, modules[key])
        weight = sum(calls[name].count for name in names)
        tasks.append(ModelTask(described, modules[key], key, weight, tunable, tuple(names)))
    return tasks


def kernel_module(function: PrimFunc) -> IRModule:
    """A kernel of a lowered model as a workload: equal kernels of any model give equal modules."""
    attributes = function.attrs.keys() if function.attrs else ()
    free = [at for at in _layout_free(function) if _is_weight(function, at)]
    kernel = function
    for name in attributes:
        kernel = kernel.without_attr(name)
    if free:
        kernel = kernel.with_attr(_LAYOUT_FREE, free)
    kernel = kernel.with_attr("global_symbol", "main").with_attr("tirx.noalias", True)
    return without_named_rules(IRModule({"main": kernel}))


def _layout_free(function: PrimFunc) -> list[int]:
    """Positions of the arguments that are constants of the model."""
    if not function.attrs or _LAYOUT_FREE not in function.attrs.keys():  # noqa: SIM118 (no dict)
        return []
    return [int(at) for at in function.attrs[_LAYOUT_FREE]]


@dataclass(slots=True)
class _Calls:
    count: int
    outputs: int


def _calls(main: Any) -> dict[str, _Calls]:
    """The kernels that `main` calls, in order."""
    found: dict[str, _Calls] = {}
    call_tir = tvm.ir.Op.get("relax.call_tir")
    for block in main.body.blocks:
        for binding in block.bindings:
            value = getattr(binding, "value", None)
            if isinstance(value, relax.Call) and value.op == call_tir:
                outputs = len(value.ty.fields) if isinstance(value.ty, relax.TupleType) else 1
                found.setdefault(value.args[0].name_hint, _Calls(0, outputs)).count += 1
    return found


def _tunable(function: PrimFunc, outputs: int) -> bool:
    static = all(
        isinstance(param.ty, tirx.BufferType) and all(isinstance(n, tirx.IntImm) for n in param.ty.shape)
        for param in function.params
    )
    return static and outputs == 1 and not relax.analysis.has_reshape_pattern(function)


def _is_weight(function: PrimFunc, position: int) -> bool:
    """Whether a constant is worth a layout of its own: a bias is not."""
    return sum(int(extent) > 1 for extent in function.params[position].ty.shape) > 1


def _plain(name: str) -> str:
    """`fused_conv2d10_add71_relu` as `conv2d_add_relu`."""
    text = re.sub(r"(?<=[a-z])\d+(?=_|$)", "", name.removeprefix("fused_"))
    return re.sub(r"\btir_|(?<=_)tir_", "", text)


def _run(info: WorkloadInfo, verb: str, module: IRModule, passes: list[Any]) -> IRModule:
    try:
        return tvm.transform.Sequential(passes)(module)
    except Exception as error:  # TVM raises many types here
        raise UsageError(
            f"{info.name} can't be {verb}: {cause(error)}.",
            remedy="Another layout may do: add :layout=NCHW to the spec."
            if "laid out" in verb
            else "TVM has no lowering for part of it: write the network without that operator.",
        ) from error


def _without_clips(module: IRModule) -> Any:
    """`main` with each clip as a minimum of a maximum: layouts pass through these, not through a clip."""
    clip = tvm.ir.Op.get("relax.clip")

    class Rewriter(relax.PyExprMutator):  # type: ignore[misc]
        def visit_call_(self, call: Any) -> Any:
            call = self.visit_expr_post_order(call)
            if call.op != clip or not str(call.args[0].ty.dtype).startswith("float"):
                return call
            low, high = (relax.const(_number(arg), str(call.args[0].ty.dtype)) for arg in call.args[1:])
            return relax.op.minimum(self.builder_.emit(relax.op.maximum(call.args[0], low)), high)

    mutator = relax.expr_functor.mutator(Rewriter)(module)
    return mutator.visit_expr(module["main"])


def _number(value: Any) -> float:
    inner = getattr(value, "value", value)
    return float(getattr(inner, "value", inner))
