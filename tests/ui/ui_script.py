"""A deterministic run as the engine would report it, in the real event protocol."""

from __future__ import annotations

import random
from collections.abc import Iterator

from tuneassist import events as ev
from tuneassist.records import Round, Trial, TrialStatus

START = 1_760_000_000.0
"""Unix time at which the scripted run starts."""

TASKS = (
    ev.TaskStarted(1, "resnet18.c2", "conv2d:n=1,ci=64,h=56,w=56,co=64,k=3", "conv2d", 4, 231_211_008),
    ev.TaskStarted(2, "matmul:m=512,n=512,k=512", "matmul:m=512,n=512,k=512", "matmul", 1, 268_435_456),
)
_ERRORS = {
    TrialStatus.BUILD_ERROR: "Check failed: (ok) is false\nCannot vectorize a loop of extent 7",
    TrialStatus.BUILD_TIMEOUT: "LLVM code generation took more than 10 s",
    TrialStatus.RUN_ERROR: "the process ended with signal 11 (segmentation fault)",
    TrialStatus.RUN_TIMEOUT: "the kernel ran longer than 4 s",
}


def run_started(*, trials: int = 256, tasks: int = 1, resumed: bool = False, done: int = 0) -> ev.RunStarted:
    """The run's first line."""
    started = tuple(
        ev.TaskStarted(t.task_id, t.name, t.workload, t.op, t.weight, t.flops, done if resumed else 0)
        for t in TASKS[:tasks]
    )
    target = {"kind": "llvm", "mcpu": "znver5", "num-cores": 2}
    machine = {"hostname": "bench", "cpu": "AMD EPYC", "cores": 2}
    return ev.RunStarted(
        START, 7, "/data/tune.sqlite", target, "", machine, "gcn", 0, trials, None, 310.0, started, resumed
    )


def scripted_run(
    *, trials: int = 128, tasks: int = 1, per_round: int = 16, end: bool = True, seed: int = 3
) -> Iterator[ev.Event]:
    """Every event of a run, in order."""
    rng = random.Random(seed)
    now = START
    yield ev.EngineStarted(now, 4242, "0.1.0")
    yield ev.PhaseChanged(now + 0.1, "startup")
    yield run_started(trials=trials, tasks=tasks)
    for task in TASKS[:tasks]:
        now += 1.0
        yield ev.PhaseChanged(now, "baseline", task.task_id)
        yield ev.BaselineMeasured(now + 0.5, task.task_id, "untuned", 42e-3)
        yield ev.BaselineMeasured(now + 0.9, task.task_id, "pytorch", 1.1e-3)
    now += 1.0
    ordinal, round_ = 0, 0
    while ordinal < trials:
        round_ += 1
        task = TASKS[(round_ - 1) % tasks]
        for phase, secs in (("search", 0.8), ("predict", 0.1), ("build", 2.4), ("measure", 0.0)):
            yield ev.PhaseChanged(now, phase, task.task_id, 0, per_round)
            now += secs
        for _ in range(min(per_round, trials - ordinal)):
            ordinal += 1
            now += 0.15
            yield ev.TrialEnded(now, scripted_trial(rng, ordinal, round_, task.task_id, now, trials))
        yield ev.PhaseChanged(now, "train", task.task_id)
        now += 0.7
        progress = ordinal / trials
        phases = {"search": 0.8, "predict": 0.1, "build": 2.4, "measure": 0.15 * per_round, "train": 0.7}
        quality = 0.25 + 0.6 * progress
        record = Round(
            7,
            task.task_id,
            round_,
            per_round,
            per_round - 1,
            quality,
            0.5 + quality / 2.4,
            phases,
            900 << 20,
            now,
        )
        yield ev.RoundEnded(now, record)
    if end:
        for task in TASKS[:tasks]:
            yield ev.TaskEnded(now, task.task_id, "budget")
        yield ev.RunEnded(now + 1, "done", 0, None, "", {"run_id": 7})


def scripted_trial(
    rng: random.Random, ordinal: int, round_: int, task_id: int, now: float, trials: int
) -> Trial:
    """A trial; one in eleven fails, and the others get faster as the run goes on."""
    if ordinal % 11 == 5:
        status = list(_ERRORS)[(ordinal // 11) % 4]
        return Trial(
            7,
            task_id,
            ordinal,
            round_,
            status,
            "[]",
            error=_ERRORS[status],
            build_secs=0.2,
            measured_at=now,
            id=ordinal,
        )
    floor = 1.6e-3 if task_id == 1 else 2.1e-3
    measured = floor * (1 + rng.expovariate(0.25) * (1.15 - ordinal / trials))
    predicted = measured * rng.lognormvariate(0.1, 0.55 - 0.35 * ordinal / trials)
    return Trial(
        7, task_id, ordinal, round_, TrialStatus.OK, "[]", (measured,) * 3, measured, predicted, -predicted,
        build_secs=0.31, measured_at=now, id=ordinal,
    )  # fmt: skip
