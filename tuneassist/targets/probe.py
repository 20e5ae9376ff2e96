"""A process of its own that loads TVM, runs no kernel itself, and forks one process per experiment.

Whoever wants to know something asks `ask(...)`, whatever state its own process is in; a crash or a hang of
TVM or of a kernel is then an answer like any other.
"""

from __future__ import annotations

import importlib
import json
import os
import subprocess
import sys
import tempfile
import threading
from collections.abc import Iterable, Iterator
from typing import Any

from tuneassist.processes import die_with_parent, module_command

_ERROR_CHARS = 500


class ProbeError(Exception):
    """The probe process itself failed; the text says how."""


def ask(experiment: str, argument: dict[str, Any], *, timeout_secs: float) -> Iterator[Any]:
    """Run an experiment in a probe process.

    Args:
        experiment: `module:function` within `tuneassist.targets`; the function takes the argument and
            yields JSON values.
        argument: A JSON object.
        timeout_secs: Limit for the whole experiment.

    Yields:
        What the experiment yields, as it comes.

    Raises:
        ProbeError: The process could not load TVM, crashed, or ran out of time.
    """
    command = module_command("tuneassist.targets.probe", experiment)
    environment = {**os.environ, "TVM_NUM_THREADS": "1", "OMP_NUM_THREADS": "1"}
    with (
        tempfile.TemporaryFile("w+") as log,
        subprocess.Popen(
            command,
            stdin=subprocess.PIPE,
            stdout=subprocess.PIPE,
            stderr=log,
            env=environment,
            text=True,
            # Ctrl-C is for whoever asks, who then kills this process.
            start_new_session=True,
        ) as process,
    ):
        assert process.stdin is not None and process.stdout is not None
        late = threading.Event()

        def give_up() -> None:
            late.set()
            process.kill()

        timer = threading.Timer(timeout_secs, give_up)
        timer.start()
        try:
            process.stdin.write(json.dumps(argument))
            process.stdin.close()
            for line in process.stdout:
                if line.endswith("\n"):
                    yield json.loads(line)
            code = process.wait()
        except BrokenPipeError:
            code = process.wait()
        finally:
            timer.cancel()
            process.kill()
        if late.is_set():
            raise ProbeError(f"It took longer than {timeout_secs:.0f} s.")
        if code:
            log.seek(0)
            raise ProbeError(_last_words(log, code))


def _last_words(log: Iterable[str], code: int) -> str:
    lines = [line.strip() for line in log if line.strip()]
    reason = lines[-1][-_ERROR_CHARS:] if lines else "it said nothing"
    return f"It ended with exit code {code}: {reason}" if code > 0 else f"It died of signal {-code}: {reason}"


def main() -> None:
    """Run the experiment named on the command line."""
    die_with_parent()
    results = os.fdopen(os.dup(1), "w", buffering=1)
    # What TVM and LLVM print must not get between the results.
    os.dup2(2, 1)
    module, _, function = sys.argv[1].partition(":")
    argument = json.load(sys.stdin)
    for value in getattr(importlib.import_module(f"tuneassist.targets.{module}"), function)(**argument):
        results.write(json.dumps(value) + "\n")


if __name__ == "__main__":
    main()
