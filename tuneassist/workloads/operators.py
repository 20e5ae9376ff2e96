"""Every operator kind by name, and the workload that parameter values make of it."""

from __future__ import annotations

from collections.abc import Mapping

from tuneassist.records import TensorSpec, WorkloadInfo
from tuneassist.workloads._convolutions import CONVOLUTIONS
from tuneassist.workloads._operator import Operator
from tuneassist.workloads._params import Value, Values, canonical
from tuneassist.workloads._products import PRODUCTS
from tuneassist.workloads._rows import ROWS

OPERATORS: dict[str, Operator] = {operator.kind: operator for operator in (*PRODUCTS, *CONVOLUTIONS, *ROWS)}

__all__ = ["OPERATORS", "Operator", "TensorSpec", "Values", "describe"]


def describe(
    operator: Operator, values: Mapping[str, Value], *, name: str = "", network: str = ""
) -> WorkloadInfo:
    """Return the workload of an operator with these values, one for each of its parameters.

    Raises:
        UsageError: The values don't go together (an empty output, groups that don't divide).
    """
    known = Values(**values)
    operator.check(known)
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
