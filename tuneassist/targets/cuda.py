"""NVIDIA devices: whether one can be used, and its target."""

from __future__ import annotations

import ctypes.util
import importlib.util
import os
import shutil
from pathlib import Path
from typing import Any

from tuneassist.errors import MachineError
from tuneassist.tvm_api import tvm

_MODE = "TVM_CUDA_COMPILE_MODE"


def check_device() -> None:
    """Refuse to go on without a CUDA device.

    Raises:
        MachineError: There is none; the message says what is missing.
    """
    if bool(tvm.cuda(0).exist):
        return
    if not Path("/dev/nvidia0").exists():
        missing = "no NVIDIA device is there (/dev/nvidia0 does not exist)"
    elif ctypes.util.find_library("cuda") is None:
        missing = "the driver's library libcuda is not installed"
    else:
        missing = "the driver reports no device that this process may use"
    raise MachineError(
        f"The target cuda can't be used: {missing}.",
        remedy="Check `nvidia-smi` and CUDA_VISIBLE_DEVICES, or choose --target native.",
    )


def device_config() -> dict[str, Any]:
    """The limits of the first device, in TVM's dict form."""
    device = tvm.cuda(0)
    return {
        "kind": "cuda",
        "arch": "sm_" + str(device.compute_version).replace(".", ""),
        "max_threads_per_block": int(device.max_threads_per_block),
        "max_shared_memory_per_block": int(device.max_shared_memory_per_block),
        "thread_warp_size": int(device.warp_size),
    }


def compiler() -> str | None:
    """What compiles kernels here: `nvrtc` (NVIDIA's Python bindings), the toolkit's `nvcc`, or None."""
    try:
        if importlib.util.find_spec("cuda.bindings") is not None:
            return "nvrtc"
    except ModuleNotFoundError:
        pass
    return "nvcc" if shutil.which("nvcc") else None


def compile_environment() -> dict[str, str]:
    """Variables that make TVM compile with what is there: it tries NVRTC unless told otherwise."""
    if _MODE in os.environ or compiler() != "nvcc":
        return {}
    return {_MODE: "nvcc"}


def check_compiler() -> None:
    """Refuse to go on without a compiler for CUDA.

    Raises:
        MachineError: There is none.
    """
    if compiler() is None:
        raise MachineError(
            "Nothing here compiles CUDA kernels: neither NVRTC's Python bindings nor nvcc is installed.",
            remedy="python -m pip install cuda-bindings nvidia-cuda-nvrtc-cu12, or install the toolkit.",
        )
