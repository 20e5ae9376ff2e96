"""A store with two real runs, made once for the tests of a module, and the commands that use it."""

from __future__ import annotations

import json
import os
import subprocess
from pathlib import Path
from typing import Any

import numpy as np
from batch_tools import command

from tuneassist.storage.sqlite import open_store
from tuneassist.workloads.reference import make_inputs, reference_torch, to_torch, tolerance
from tuneassist.workloads.spec import parse_workload

MATMUL = "matmul:m=64,n=64,k=64"
CONV = "conv2d:ci=16,h=14,w=14,co=16,k=3,p=1"
"""Its weight is packed by the schedule."""


def tuned_store(folder: Path) -> Path:
    """Tune both workloads into a new database; run 1 is the matmul, run 2 the convolution."""
    db = folder / "tuned.sqlite"
    for spec in (MATMUL, CONV):
        finished = run(
            "--batch", "--json", "--workload", spec, "--cost-model", "random", "--trials", "16", db=db
        )
        assert finished.returncode == 0, finished.stderr
    open_store(db).close()  # Moves what the write-ahead log holds into the file, which tests copy.
    return db


def run(*arguments: str, db: Path, **environment: str) -> subprocess.CompletedProcess[str]:
    """Run `tuneassist` on a database."""
    return subprocess.run(
        command(*arguments), capture_output=True, text=True, timeout=240,
        env={**os.environ, "TUNEASSIST_DB": str(db), **environment},
    )  # fmt: skip


def result(*arguments: str, db: Path) -> dict[str, Any]:
    """The JSON object that a command prints, which must succeed."""
    finished = run(*arguments, "--json", db=db)
    assert finished.returncode == 0, finished.stderr
    value: dict[str, Any] = json.loads(finished.stdout)
    return value


def inputs_and_output(spec: str) -> tuple[list[np.ndarray], np.ndarray]:
    """Inputs of a workload and what PyTorch makes of them."""
    info = parse_workload(spec)
    inputs = make_inputs(info, 7)
    reference = reference_torch(info)
    assert reference is not None
    return inputs, reference(to_torch(inputs)).numpy()


def assert_right(spec: str, got: np.ndarray, want: np.ndarray) -> None:
    """Within the tolerance of the workload."""
    rtol, atol = tolerance(parse_workload(spec))
    np.testing.assert_allclose(got, want, rtol=rtol, atol=atol)
