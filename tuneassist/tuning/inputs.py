"""A workload's inputs on disk, so that zygote, baselines and checks all use the same numbers."""

from __future__ import annotations

from pathlib import Path

import numpy as np

INPUT_SEED = 20190426
"""Decides the inputs that kernels are measured and checked on."""
_ALIGNMENT = 64
"""What TVM asks of a tensor that it does not allocate itself."""


def save_inputs(path: Path, inputs: list[np.ndarray]) -> None:
    """Write the inputs to an `.npz`; dtypes that NumPy lacks are kept as raw bytes with their name."""
    arrays = {}
    for index, array in enumerate(inputs):
        arrays[f"{index}:{array.dtype.name}"] = array.view(np.uint8) if array.dtype.kind == "V" else array
    np.savez(path, **arrays)  # type: ignore[arg-type]


def load_inputs(path: str | Path) -> list[np.ndarray]:
    """Read what `save_inputs` wrote, each array C-contiguous at a 64-byte aligned address."""
    inputs = []
    with np.load(path) as data:
        for key in data.files:
            array, name = data[key], key.partition(":")[2]
            if array.dtype.name != name:
                import ml_dtypes

                array = array.view(getattr(ml_dtypes, name))
            inputs.append(_aligned(array))
    return inputs


def _aligned(array: np.ndarray) -> np.ndarray:
    room = np.empty(array.nbytes + _ALIGNMENT, dtype=np.uint8)
    offset = -room.ctypes.data % _ALIGNMENT
    aligned = room[offset : offset + array.nbytes].view(array.dtype).reshape(array.shape)
    aligned[...] = array
    return aligned
