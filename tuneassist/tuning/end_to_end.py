"""A whole model, tuned, beside untuned TVM, PyTorch, torch.compile and ONNX Runtime: on the same cores."""

from __future__ import annotations

import contextlib
import json
import os
import select
import statistics
import subprocess
import time
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

import numpy as np

from tuneassist.models.extract import ExtractedModel
from tuneassist.models.load import example_inputs
from tuneassist.processes import module_command
from tuneassist.records import CONTENDERS
from tuneassist.tuning.inputs import INPUT_SEED, save_inputs

_REFERENCES = ("pytorch", "onnxruntime", "untuned")
"""What outputs are compared with: the first that runs."""
_TOLERANCE = {"float32": 5e-4, "float64": 1e-8}
"""Largest difference, as a share of the largest output: sums in another order, over all layers."""
_TOLERANCE_16_BITS = 3e-2
_PASSES = 7
_PREPARE_TIMEOUT_SECS = 300.0
_MEASURE_TIMEOUT_SECS = 120.0


@dataclass(slots=True)
class Comparison:
    """What was measured. Seconds are medians over the passes, None where one does not run."""

    secs: dict[str, float | None]
    run_secs: dict[str, list[float]]
    errors: dict[str, str]
    correct: bool | None
    """None: nothing to compare with, or the tuned module does not run."""
    max_relative_error: float | None
    """Largest difference of an output, as a share of that output's largest value."""
    tolerance: float
    reference: str
    notes: list[str] = field(default_factory=list)


def compare_model(
    model: ExtractedModel,
    traces: Mapping[str, Sequence[str]],
    target_json: str,
    cores: Sequence[int],
    folder: Path,
    *,
    contenders: Sequence[str] = CONTENDERS,
    stop: Callable[[], bool] = lambda: False,
) -> Comparison:
    """Prepare every contender, then measure them in turn, one at a time.

    Args:
        model: What is compared.
        traces: The traces of each kernel by its hash, best first; kernels without one keep TVM's default.
        target_json: What the traces were measured for.
        cores: CPU ids that each contender may use.
        folder: Takes inputs and outputs.
        contenders: Some of `CONTENDERS`.
        stop: Asked between any two steps; true ends the comparison with what there is.
    """
    save_inputs(folder / "model-inputs.npz", example_inputs(model.inputs, INPUT_SEED))
    common = {
        "spec": model.info.spec, "lowered": str(model.lowered), "inputs": str(folder / "model-inputs.npz"),
        "target": target_json, "cores": list(cores),
    }  # fmt: skip
    started = {
        kind: _Contender(
            {
                **common, "kind": kind, "outputs": str(folder / f"{kind}.npz"),
                "traces": {key: list(value) for key, value in traces.items()} if kind == "tuned" else {},
            }
        )
        for kind in contenders
    }  # fmt: skip
    try:
        for contender in started.values():
            contender.await_ready(stop)
        for _ in range(_PASSES):
            for contender in started.values():
                if not stop():
                    contender.measure()
    finally:
        for contender in started.values():
            contender.close()
    correct, off, share, reference = _verdict(folder, started)
    return Comparison(
        secs={kind: started[kind].median_secs if kind in started else None for kind in CONTENDERS},
        run_secs={kind: contender.run_secs for kind, contender in started.items()},
        errors={kind: contender.error for kind, contender in started.items() if contender.error},
        correct=correct, max_relative_error=off, tolerance=share, reference=reference,
        notes=[note for contender in started.values() for note in contender.notes],
    )  # fmt: skip


class _Contender:
    """The process of one contender."""

    def __init__(self, request: dict[str, Any]) -> None:
        threads = str(len(request["cores"]))
        environment = {key: value for key, value in os.environ.items() if not key.startswith("OPENBLAS_")}
        environment |= {"OMP_NUM_THREADS": threads, "TVM_NUM_THREADS": threads, "TVM_BIND_THREADS": "0"}
        self._process = subprocess.Popen(
            module_command("tuneassist.tuning.contender"),
            stdin=subprocess.PIPE, stdout=subprocess.PIPE, stderr=subprocess.DEVNULL, env=environment,
        )  # fmt: skip
        self._buffer = b""
        self.error = ""
        self.notes: list[str] = []
        self.run_secs: list[float] = []
        self._tell(json.dumps(request))

    @property
    def median_secs(self) -> float | None:
        return statistics.median(self.run_secs) if self.run_secs else None

    def await_ready(self, stop: Callable[[], bool]) -> None:
        answer = self._answer(_PREPARE_TIMEOUT_SECS, stop)
        self.notes = answer.get("notes", [])
        self.error = answer.get("error", "")

    def measure(self) -> None:
        if not self.error:
            self._tell("measure")
            answer = self._answer(_MEASURE_TIMEOUT_SECS)
            self.run_secs += answer.get("secs", [])
            self.error = answer.get("error", "")

    def close(self) -> None:
        self._process.kill()
        self._process.communicate()

    def _tell(self, line: str) -> None:
        assert self._process.stdin is not None
        with contextlib.suppress(OSError):  # It died: the answer will show it.
            self._process.stdin.write(line.encode() + b"\n")
            self._process.stdin.flush()

    def _answer(self, timeout_secs: float, stop: Callable[[], bool] = lambda: False) -> dict[str, Any]:
        assert self._process.stdout is not None
        deadline = time.monotonic() + timeout_secs
        while b"\n" not in self._buffer:
            if stop():
                return {"error": "Stopped."}
            if time.monotonic() > deadline:
                return {"error": f"No answer after {timeout_secs:.0f} s."}
            if select.select([self._process.stdout], [], [], 0.2)[0]:
                part = os.read(self._process.stdout.fileno(), 1 << 16)
                if not part:
                    return {"error": f"Its process ended with exit code {self._process.wait()}."}
                self._buffer += part
        line, _, self._buffer = self._buffer.partition(b"\n")
        answer: dict[str, Any] = json.loads(line)
        return answer


def _verdict(
    folder: Path, started: Mapping[str, _Contender]
) -> tuple[bool | None, float | None, float, str]:  # fmt: skip
    """Whether the tuned outputs agree with the reference, how far they are off, within what, and which."""
    ran = [kind for kind in _REFERENCES if kind in started and (folder / f"{kind}.npz").exists()]
    if not ran or not (folder / "tuned.npz").exists():
        return None, None, _TOLERANCE["float32"], ""
    with np.load(folder / "tuned.npz") as tuned, np.load(folder / f"{ran[0]}.npz") as wanted:
        pairs = [(tuned[key], wanted[key]) for key in wanted.files if key in tuned.files]
        same = len(pairs) == len(wanted.files) == len(tuned.files)
        share = max((_TOLERANCE.get(want.dtype.name, _TOLERANCE_16_BITS) for _, want in pairs), default=0.0)
        off = max((_difference(got, want) for got, want in pairs), default=float("inf"))
    return same and off <= share, off if np.isfinite(off) else None, share, ran[0]


def _difference(got: np.ndarray, want: np.ndarray) -> float:
    if got.shape != want.shape:
        return float("inf")
    if want.dtype.kind in "iub":
        return 0.0 if np.array_equal(got, want) else float("inf")
    got, want = got.astype(np.float64), want.astype(np.float64)
    difference = float(np.max(np.abs(got - want), initial=0.0))
    return (
        difference / (float(np.max(np.abs(want), initial=0.0)) or 1.0)
        if np.isfinite(difference)
        else float("inf")
    )
