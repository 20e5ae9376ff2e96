"""A kernel that packs a constant weight, split into the packing and the rest.

In a workload whose weight is constant (`prepack=1`) the schedule stores the weight in a layout of its
own. Tuning measures the kernel on the packed weight, since deployment packs once.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

from tuneassist.records import TensorSpec
from tuneassist.tvm_api import IRModule, relax

_PACKED = "meta_schedule.layout_rewrite_preproc"


@dataclass(frozen=True, slots=True)
class Split:
    """The functions of a library."""

    whole: Any
    """Takes the workload's ordinary arguments; packs at every call where there is something to pack."""
    pack: Any | None = None
    """Takes the weight and the packed weight, and writes the latter."""
    packed: Any | None = None
    """The kernel as measured: the packed weight stands in the weight's place."""
    position: int = -1
    """Which argument is packed."""


def split_packing(module: IRModule) -> Split:
    """Split a scheduled module; only `whole` is set if it packs nothing."""
    whole = module["main"]
    position = _packed_argument(whole)
    if position is None:
        return Split(whole)
    builder = relax.BlockBuilder()
    kernel = builder.add_func(whole.without_attr("global_symbol"), "kernel")
    *inputs, output = [
        relax.Var(param.name, relax.TensorType([int(n) for n in param.ty.shape], str(param.ty.dtype)))
        for param in whole.params
    ]
    # The pass splits calls within Relax; the arguments from `num_input` on count as constants.
    constants_last = [*inputs[:position], *inputs[position + 1 :], inputs[position]]
    with builder.function("entry", constants_last, attrs={"num_input": len(inputs) - 1}):
        with builder.dataflow():
            result = builder.emit_output(relax.call_tir(kernel, inputs, output.ty))
        builder.emit_func_output(result)
    parts = relax.transform.SplitLayoutRewritePreproc()(builder.get())
    names = {var.name_hint: function for var, function in parts.functions.items() if var.name_hint != "entry"}
    pack = next(function for name, function in names.items() if name.endswith("_weight_prepack"))
    packed = next(function for name, function in names.items() if name.endswith("_prepacked"))
    return Split(whole, pack, packed, position)


def argument_specs(function: Any) -> tuple[TensorSpec, ...]:
    """Name, shape and dtype of each argument of a function."""
    return tuple(
        TensorSpec(param.name, tuple(int(extent) for extent in param.ty.shape), str(param.ty.dtype))
        for param in function.params
    )


def _packed_argument(function: Any) -> int | None:
    """Position of the argument that the schedule packs."""
    root = function.body.block.body
    for statement in getattr(root, "seq", [root]):
        while type(statement).__name__ == "For":
            statement = statement.body
        block = getattr(statement, "block", None)
        if block is not None and _PACKED in block.annotations:
            source = block.reads[0].source
            return next(at for at, param in enumerate(function.params) if param.same_as(source))
    return None
