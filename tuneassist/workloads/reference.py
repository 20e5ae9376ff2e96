"""Inputs, the PyTorch computation that a user would make, and how closely a kernel must agree with it."""

from __future__ import annotations

import math
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

import ml_dtypes
import numpy as np
from numpy.typing import NDArray

from tuneassist.errors import UsageError
from tuneassist.records import TensorSpec, WorkloadInfo
from tuneassist.workloads.models import TASK
from tuneassist.workloads.operators import OPERATORS
from tuneassist.workloads.spec import values_of

if TYPE_CHECKING:
    import torch

Array = NDArray[Any]


@dataclass(frozen=True, slots=True)
class Reference:
    """A PyTorch computation of a workload; calling it maps the kernel's inputs to the kernel's output.

    To time it as a baseline, call `prepare` once and time `run`: a user holds weights in PyTorch's own
    layout, and does not convert them at each call.
    """

    prepare: Callable[[list[torch.Tensor]], list[torch.Tensor]]
    run: Callable[[list[torch.Tensor]], torch.Tensor]
    restore: Callable[[torch.Tensor], torch.Tensor]
    comparable: bool
    """Whether `run` is a fair baseline: False where PyTorch has no such call (int8 convolutions)."""

    def __call__(self, inputs: list[torch.Tensor]) -> torch.Tensor:
        """Compute the output, in the kernel's layout and type, from its inputs in order."""
        return self.restore(self.run(self.prepare(inputs)))


def reference_torch(info: WorkloadInfo) -> Reference | None:
    """Return the PyTorch computation of a workload; None for a workload from a file, which has none."""
    if info.op not in OPERATORS:
        return None
    from tuneassist.workloads._torch import CALLS

    call = CALLS[info.op](values_of(info))
    return Reference(call.prepare, call.run, call.restore, call.comparable)


def make_inputs(info: WorkloadInfo, seed: int) -> list[Array]:
    """Return random inputs in the order of the kernel's arguments; equal seeds give equal inputs.

    Floats are standard normal; the second operand of a product is divided by the root of the number of
    products summed, so that outputs are about 1 whatever the size. `gamma` is about 1 and `variance`
    within 0.5 to 1.5. int8 takes its whole range.

    Raises:
        UsageError: The inputs of a file's workload are unknown (complete it with `build.describe_module`),
            or have a type that random data can't be made of.
    """
    if not info.inputs:
        raise UsageError(f"The inputs of {info.name} are not known before its file is loaded.")
    rng = np.random.default_rng(seed)
    operator = OPERATORS.get(info.op)
    fan_in = operator.fan_in(values_of(info)) if operator else 1.0
    # Whole numbers in a model are mostly indices: 0 and 1 are within every table.
    most = 1 if info.op == TASK else None
    return [
        _random(rng, tensor, fan_in**-0.5 if position == 1 else 1.0, most)
        for position, tensor in enumerate(info.inputs)
    ]


def to_torch(arrays: Sequence[Array]) -> list[torch.Tensor]:
    """Share NumPy arrays with PyTorch, bfloat16 (which NumPy knows through ml_dtypes) included."""
    import torch

    def share(array: Array) -> torch.Tensor:
        if array.dtype == ml_dtypes.bfloat16:
            return torch.from_numpy(array.view(np.int16)).view(torch.bfloat16)
        return torch.from_numpy(array)

    return [share(np.ascontiguousarray(array)) for array in arrays]


def to_numpy(tensor: torch.Tensor) -> Array:
    """Return a PyTorch tensor as a NumPy array, bfloat16 through ml_dtypes."""
    import torch

    whole = tensor.detach().contiguous()
    if whole.dtype == torch.bfloat16:
        return whole.view(torch.int16).numpy().view(ml_dtypes.bfloat16)
    return whole.numpy()


_TOLERANCE = {
    # Sums of up to tens of thousands of float32 products in another order differ by a few 1e-6 of their
    # size, and TVM's exp, tanh and erf by as much: 1e-4 leaves room and still shows one wrong product.
    "float32": 1e-4,
    "float64": 1e-10,
    # 16-bit results are computed in float32 and rounded; PyTorch rounds between the steps of a chain as
    # well: four units in the last place.
    "float16": 4 * float(np.finfo(np.float16).eps),
    "bfloat16": 4 * 2.0**-7,
}


def tolerance(info: WorkloadInfo) -> tuple[float, float]:
    """Return (rtol, atol) within which a kernel agrees with the reference on `make_inputs`.

    By the inputs' type: 1e-4 for float32, four units in the last place for 16-bit floats, exact for
    integers. `atol` is that share of a typical output element, so that it can't hide an error where
    outputs are small (a softmax over n has elements of about 1/n). The size of what a file's function
    computes is not known: it is taken for a sum of as many standard normal numbers as it has FLOPs for
    each output element.
    """
    dtype = info.inputs[0].dtype if info.inputs else info.output.dtype
    share = _TOLERANCE.get(dtype, 0.0)
    operator = OPERATORS.get(info.op)
    if operator:
        return share, share * operator.magnitude(values_of(info))
    return share, share * max(1.0, info.flops / math.prod(info.output.shape)) ** 0.5


def _random(rng: np.random.Generator, tensor: TensorSpec, scale: float, most: int | None) -> Array:
    if tensor.dtype == "bool" or (most is not None and "int" in tensor.dtype):
        return np.asarray(rng.integers(0, 2, size=tensor.shape)).astype(tensor.dtype)
    if tensor.dtype in ("int8", "int16", "int32", "int64", "uint8"):
        # a whole range only where sums of products can't overflow 32 bits
        low, high = (-128, 128) if tensor.dtype == "int8" else (0, 128)
        return rng.integers(low, high, size=tensor.shape, dtype=tensor.dtype)
    if tensor.dtype not in _TOLERANCE:
        raise UsageError(
            f"No inputs can be made up for {tensor.name}, whose type is {tensor.dtype}.",
            remedy=f"Use one of {', '.join(_TOLERANCE)}, or int8.",
        )
    if tensor.name == "variance":
        values = rng.uniform(0.5, 1.5, size=tensor.shape).astype(np.float32)
    else:
        values = rng.standard_normal(size=tensor.shape, dtype=np.float32) * np.float32(scale)
        if tensor.name == "gamma":
            values = np.float32(1) + values * np.float32(0.1)
    dtype = ml_dtypes.bfloat16 if tensor.dtype == "bfloat16" else np.dtype(tensor.dtype)
    return values.astype(dtype)
