"""PyTorch's latency and output for a workload, from a process of its own.

Started by the engine as `python -m tuneassist.tuning.baseline`; the request comes on stdin as one JSON
line. It loads torch and answers `ready`; on the next line it measures, writes the output to the
reference file, and answers with the seconds.
"""

from __future__ import annotations

import json
import math
import os
import subprocess
import sys
import time
from collections.abc import Callable
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from tuneassist.processes import die_with_parent, module_command


@dataclass(frozen=True, slots=True)
class BaselineResult:
    """`secs` is None where PyTorch could not do it; `error` then says why."""

    secs: float | None
    error: str | None = None


class TorchBaseline:
    """A baseline process: started early, so that torch loads while something else happens."""

    def __init__(
        self, spec: str, inputs: Path, reference: Path, *, cores: tuple[int, ...], repeat: int,
        min_repeat_secs: float,
    ) -> None:  # fmt: skip
        request = {
            "spec": spec, "inputs": str(inputs), "reference": str(reference), "cores": cores,
            "repeat": repeat, "min_repeat_secs": min_repeat_secs,
        }  # fmt: skip
        environment = {key: value for key, value in os.environ.items() if not key.startswith("OPENBLAS_")}
        environment["OMP_NUM_THREADS"] = str(len(cores))
        self._process = subprocess.Popen(
            module_command("tuneassist.tuning.baseline"),
            stdin=subprocess.PIPE, stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True, env=environment,
        )  # fmt: skip
        self._say(json.dumps(request))

    def measure(self, *, timeout_secs: float) -> BaselineResult:
        """Wait until torch is loaded, measure, and end the process."""
        try:
            out, err = self._process.communicate("measure\n", timeout=timeout_secs)
        except subprocess.TimeoutExpired:
            self.close()
            return BaselineResult(None, f"PyTorch took more than {timeout_secs:.0f} s.")
        except OSError as error:
            self.close()
            return BaselineResult(None, f"The process that runs PyTorch is gone: {error}")
        for line in reversed(out.splitlines()):
            if line.startswith("{"):
                answer = json.loads(line)
                return BaselineResult(answer.get("secs"), answer.get("error"))
        last = err.strip().splitlines()[-1:] or [f"exit code {self._process.returncode}"]
        return BaselineResult(None, f"PyTorch failed: {last[0]}")

    def close(self) -> None:
        """End the process now."""
        self._process.kill()
        self._process.communicate()

    def _say(self, line: str) -> None:
        assert self._process.stdin is not None
        try:
            self._process.stdin.write(line + "\n")
            self._process.stdin.flush()
        except OSError:
            pass  # It died at once: `measure` finds out why.


def main() -> None:
    """Serve one request."""
    die_with_parent()
    request = json.loads(sys.stdin.readline())
    try:
        os.sched_setaffinity(0, request["cores"])
        run = _prepared(request)
        if sys.stdin.readline():
            print(json.dumps({"secs": _measured(run, request)}))
    except LookupError as error:
        print(json.dumps({"error": str(error)}))
    except Exception as error:
        print(
            json.dumps(
                {"error": f"{type(error).__name__}: {str(error).splitlines()[0] if str(error) else ''}"}
            )
        )


def _prepared(request: dict[str, Any]) -> Callable[[], Any]:
    """Write the reference output and return the call to be timed.

    Raises:
        LookupError: PyTorch has no such computation, or none that a user would call.
    """
    import numpy as np
    import torch

    from tuneassist.tuning.inputs import load_inputs
    from tuneassist.workloads.reference import reference_torch, to_torch
    from tuneassist.workloads.spec import parse_workload

    torch.set_num_threads(len(request["cores"]))
    reference = reference_torch(parse_workload(request["spec"]))
    if reference is None:
        raise LookupError("PyTorch has no counterpart of a workload from a file.")
    with torch.inference_mode():
        tensors = reference.prepare(to_torch(load_inputs(request["inputs"])))
        output = reference.restore(reference.run(tensors))
    np.save(request["reference"], output.to(torch.float64).contiguous().numpy())
    if not reference.comparable:
        raise LookupError("PyTorch has no call for this that would be a fair baseline.")

    def run() -> None:
        with torch.inference_mode():
            reference.run(tensors)

    return run


def _measured(run: Callable[[], Any], request: dict[str, Any]) -> float:
    """Median of the repeats, timed as the candidates are."""
    call_secs = min(_timed(run, 1) for _ in range(3))
    number = max(1, math.ceil(request["min_repeat_secs"] / call_secs))
    repeats = sorted(_timed(run, number) for _ in range(request["repeat"]))
    return repeats[len(repeats) // 2]


def _timed(run: Callable[[], Any], number: int) -> float:
    started = time.perf_counter()
    for _ in range(number):
        run()
    return (time.perf_counter() - started) / number


if __name__ == "__main__":
    main()
