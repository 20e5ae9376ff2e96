"""The TVM module of a workload, its hash, and what a module that came from a file holds."""

from __future__ import annotations

from dataclasses import replace

from tuneassist.errors import UsageError
from tuneassist.records import WorkloadInfo
from tuneassist.tvm_api import IRModule, Schedule, estimate_tir_flops, structural_hash, te
from tuneassist.workloads._files import MODULE, SCRIPT
from tuneassist.workloads._load import arguments, load_module
from tuneassist.workloads._te import EXPRESSIONS
from tuneassist.workloads.models import MODEL
from tuneassist.workloads.operators import OPERATORS
from tuneassist.workloads.spec import prepacked, values_of

_LAYOUT_FREE = "layout_free_buffers"
"""Function attribute: positions of the arguments that MetaSchedule's RewriteLayout may re-lay out."""

_NAMED_RULE = "schedule_rule"
"""Block annotation: the one schedule rule to apply there."""


def build_prim_func(info: WorkloadInfo) -> IRModule:
    """Return a module whose one function `main` computes the workload, ready for MetaSchedule.

    The arguments are `info.inputs` and then `info.output`. Which input may have its layout rewritten is
    decided by `prepack` alone (`spec.prepacked`), whatever topi would say. A `file.py:function`
    workload is loaded here, which runs the file: call this in the engine process only.

    Raises:
        UsageError: A file does not hold a single static, schedulable function with one output.
    """
    if info.op == MODEL:
        raise UsageError(
            f"{info.name} is a whole model, not one kernel.",
            remedy=f"`tuneassist workloads {info.spec}` lists its kernels.",
        )
    if info.op in (SCRIPT, MODULE):
        return load_module(info)
    inputs = [te.placeholder(tensor.shape, dtype=tensor.dtype, name=tensor.name) for tensor in info.inputs]
    output = EXPRESSIONS[info.op](values_of(info), *inputs)
    function = te.create_prim_func([*inputs, output]).without_attr(_LAYOUT_FREE)
    packed = prepacked(info)
    if packed:
        position = [tensor.name for tensor in info.inputs].index(packed)
        function = function.with_attr(_LAYOUT_FREE, [position])
    return without_named_rules(IRModule({"main": function}))


def without_named_rules(module: IRModule) -> IRModule:
    """Drop the schedule rules that topi names for pooling: no CPU has them, and TVM warns of each by then."""
    schedule = Schedule(module)
    for block in schedule.get_child_blocks(schedule.get_sblock("root")):
        if _NAMED_RULE in schedule.get(block).annotations:
            schedule.unannotate(block, _NAMED_RULE)
    return schedule.mod


def workload_hash(module: IRModule) -> str:
    """Identify a module: 16 hexadecimal digits, the same in every process for structurally equal modules.

    Names of variables and buffers don't count; shapes, types, layout permissions and arithmetic do.
    """
    return f"{structural_hash(module) & 0xFFFF_FFFF_FFFF_FFFF:016x}"


def describe_module(info: WorkloadInfo, module: IRModule) -> WorkloadInfo:
    """Complete the workload of a file with the tensors and FLOPs of its module; others come back as they are.

    FLOPs are TVM's estimate, which does not count calls such as exp.
    """
    if info.op in OPERATORS:
        return info
    *inputs, output = arguments(module["main"])
    return replace(info, inputs=tuple(inputs), output=output, flops=int(estimate_tir_flops(module)))
