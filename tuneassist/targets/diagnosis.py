"""Everything that doctor checks, in order."""

from __future__ import annotations

import subprocess
import sys
from collections.abc import Iterable, Iterator
from pathlib import Path

from tuneassist.errors import EXIT_DONE, MachineError, StoreError
from tuneassist.targets.checks import Check, CheckStatus, machine_checks
from tuneassist.targets.cores import usable_cores
from tuneassist.targets.probe import ProbeError, ask
from tuneassist.targets.store_checks import STORE_CHECKS, store_checks

_TVM_TIMEOUT_SECS = 240.0
_TORCH_TIMEOUT_SECS = 120.0
_TORCH = """
import torch, torch_geometric
ones = torch.ones(8, 8)
print(torch.get_num_threads(), float((ones @ ones).sum()))
"""


def diagnose(db: Path) -> Iterator[Check]:
    """Check this machine, TVM, PyTorch and the database; each finding as it is made."""
    yield from machine_checks()
    yield from tvm_checks()
    yield check_torch()
    yield from store_checks(db)


def exit_code(checks: Iterable[Check]) -> int:
    """0 where nothing is wrong; 3 on an error; 5 where only the store is at fault."""
    wrong = {check.id for check in checks if check.status is CheckStatus.ERROR}
    if not wrong:
        return EXIT_DONE
    return StoreError.exit_code if wrong <= set(STORE_CHECKS) else MachineError.exit_code


def tvm_checks() -> Iterator[Check]:
    """What a probe process finds out about TVM; that it can't load TVM is a finding too."""
    cores = usable_cores()
    try:
        for found in ask("tvm_checks:run", {"cores": list(cores)}, timeout_secs=_TVM_TIMEOUT_SECS):
            yield Check(found["id"], CheckStatus(found["status"]), found["seen"], found["remedy"])
    except ProbeError as error:
        yield Check(
            "tvm", CheckStatus.ERROR, f"TVM can't be loaded or stopped working. {error}",
            "Install it again: python -m pip install --force-reinstall apache-tvm "
            "'apache-tvm-ffi>=0.1.14.post0,<0.1.15'",
        )  # fmt: skip


def check_torch(timeout_secs: float = _TORCH_TIMEOUT_SECS) -> Check:
    """PyTorch and PyG load and compute, in a process of their own."""
    remedy = "Install them again: python -m pip install --force-reinstall torch torch-geometric"
    try:
        done = subprocess.run(
            [sys.executable, "-c", _TORCH], capture_output=True, text=True, timeout=timeout_secs, check=False
        )
    except subprocess.TimeoutExpired:
        return Check("pytorch", CheckStatus.ERROR, f"loading took longer than {timeout_secs:.0f} s", remedy)
    words = done.stdout.split()
    if done.returncode or len(words) != 2 or float(words[1]) != 512.0:
        lines = done.stderr.strip().splitlines() or [f"it ended with exit code {done.returncode}"]
        return Check("pytorch", CheckStatus.ERROR, lines[-1], remedy)
    return Check("pytorch", CheckStatus.OK, f"PyTorch and PyG load; PyTorch uses {words[0]} threads")
