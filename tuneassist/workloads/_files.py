"""Specs that name a file of one kernel: a TVMScript function or a saved IRModule."""

from __future__ import annotations

import json
import re
from pathlib import Path

from tuneassist.errors import UsageError
from tuneassist.records import TensorSpec, WorkloadInfo

SCRIPT, MODULE = "script", "module"
"""`WorkloadInfo.op` of a TVMScript function and of a saved IRModule."""

_PICKLES = (".pt", ".pth")
_UNKNOWN = TensorSpec("output", (), "")
_SCRIPT_HELP = (
    "Name the function too, as in kernels.py:matmul. The file runs when the tuning engine loads it."
)


def parse_file(spec: str) -> WorkloadInfo | None:
    """Return the workload that a file spec names, or None if the spec names no file.

    Nothing is run and TVM is not needed, so the tensors and FLOPs are unknown (no inputs, 0) until
    `tuneassist.workloads.build.describe_module` has seen the module.

    Raises:
        UsageError: The file is missing, unreadable, not JSON, or is a whole model.
    """
    if spec.lower().endswith(_PICKLES):
        raise UsageError(
            f"{spec} is named like a pickle of torch.save, which is never loaded, since that can run code.",
            remedy="Save torch.export.export(net, inputs) with torch.export.save as .pt2, or use ONNX.",
        )
    if script := re.fullmatch(r"(.+\.py):(.*)", spec):
        path, function = script.groups()
        if not function.isidentifier():
            raise UsageError(f"{spec} names no function: {function!r} is not a name.", remedy=_SCRIPT_HELP)
        return _info(SCRIPT, _existing(path), function)
    if spec.endswith(".py"):
        raise UsageError(f"{spec} names a file, but no function in it.", remedy=_SCRIPT_HELP)
    if spec.endswith(".json"):
        path_ = _existing(spec)
        try:
            json.loads(path_.read_text(encoding="utf-8"))
        except (OSError, ValueError, RecursionError) as error:
            raise UsageError(
                f"{spec} is not JSON: {error}.", remedy="Save the module with tvm.ir.save_json(module)."
            ) from error
        return _info(MODULE, path_, "")
    return None


def script_parts(info: WorkloadInfo) -> tuple[Path, str]:
    """The file and the function of a TVMScript workload."""
    path, _, function = info.spec.rpartition(":")
    return Path(path), function


def _existing(path: str) -> Path:
    found = Path(path).expanduser().absolute()
    if not found.is_file():
        problem = "is not a file" if found.exists() else "does not exist"
        raise UsageError(f"{path} {problem}.", remedy="Give the path of an existing file.")
    return found


def _info(op: str, path: Path, function: str) -> WorkloadInfo:
    suffix = f":{function}" if function else ""
    return WorkloadInfo(
        name=f"{path.name}{suffix}", spec=f"{path}{suffix}", op=op, inputs=(), output=_UNKNOWN, flops=0
    )
