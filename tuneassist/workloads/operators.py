"""Every operator kind by name, and the workload that parameter values make of it."""

from __future__ import annotations

from collections.abc import Mapping

from tuneassist.errors import UsageError
from tuneassist.records import TensorSpec, WorkloadInfo
from tuneassist.workloads._convolutions import CONVOLUTIONS
from tuneassist.workloads._operator import Operator
from tuneassist.workloads._params import Value, Values, canonical
from tuneassist.workloads._products import PRODUCTS
from tuneassist.workloads._rows import ROWS

OPERATORS: dict[str, Operator] = {operator.kind: operator for operator in (*PRODUCTS, *CONVOLUTIONS, *ROWS)}

_LARGEST_INT8_SUM = 2**31 // 128**2 - 1

__all__ = ["OPERATORS", "Operator", "TensorSpec", "Values", "describe"]


def describe(
    operator: Operator, values: Mapping[str, Value], *, name: str = "", network: str = ""
) -> WorkloadInfo:
    """Return the workload of an operator with these values, one for each of its parameters.

    Raises:
        UsageError: The values don't go together (an empty output, groups that don't divide, int8 sums
            that can overflow).
    """
    known = Values(**values)
    operator.check(known)
    if known.dtype == "int8" and operator.fan_in(known) > _LARGEST_INT8_SUM:
        raise UsageError(
            f"{operator.kind}: a sum of {operator.fan_in(known):.0f} products of int8 can overflow int32.",
            remedy=f"Sum at most {_LARGEST_INT8_SUM} products, or take a floating-point dtype.",
        )
    inputs, output = operator.tensors(known)
    spec = f"{operator.kind}:{canonical(operator.params, values)}"
    return WorkloadInfo(
        name=name or spec,
        spec=spec,
        op=operator.kind,
        inputs=inputs,
        output=output,
        flops=operator.flops(known),
        network=network,
    )
