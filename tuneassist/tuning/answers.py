"""What processes that run a kernel say about its output, and about what went wrong."""

from __future__ import annotations

from typing import Any

import numpy as np

_ERROR_CHARS = 4000


def compared(output: Any, order: dict[str, Any]) -> dict[str, Any]:
    """Compare the output with the reference in a `.npy` file, or write it there: the `checked` answer."""
    got = output.numpy().astype(np.float64)
    if order["save"]:
        np.save(order["path"], got)
        return {"event": "checked", "correct": True, "max_relative_error": 0.0}
    want = np.load(order["path"], mmap_mode="r").reshape(got.shape)
    error = np.abs(got - want)
    correct = bool(np.all(error <= order["atol"] + order["rtol"] * np.abs(want)))
    scale = float(np.max(np.abs(want))) or 1.0
    return {"event": "checked", "correct": correct, "max_relative_error": float(np.max(error)) / scale}


def finite(output: Any) -> bool:
    """Whether the output holds neither NaN nor infinity."""
    array = output.numpy()
    if array.dtype.kind in "iub":
        return True
    return bool(np.isfinite(array.astype(np.float32) if array.dtype.itemsize < 4 else array).all())


def failure(error: BaseException) -> dict[str, Any]:
    """The error with its cause in the first line: TVM's messages may begin with a traceback."""
    lines = [line for line in str(error).splitlines() if line.strip()] or [""]
    cause = lines[-1] if lines[0].startswith("Traceback") else f"{type(error).__name__}: {lines[0]}"
    if isinstance(error, MemoryError) or "bad_alloc" in str(error):
        cause = f"Out of memory: {cause}"
    return {"event": "failed", "error": "\n".join([cause, *lines[1:]])[:_ERROR_CHARS]}
