"""NVIDIA devices: whether one can be used, and its target."""

from __future__ import annotations

import ctypes.util
from pathlib import Path
from typing import Any

from tuneassist.errors import MachineError
from tuneassist.tvm_api import tvm


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
