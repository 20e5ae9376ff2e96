"""Frozen records that cross package borders. Times are seconds, sizes are bytes."""

from __future__ import annotations

from dataclasses import dataclass, field
from enum import StrEnum


class TrialStatus(StrEnum):
    """How a trial ended."""

    OK = "ok"
    BUILD_ERROR = "build_error"
    BUILD_TIMEOUT = "build_timeout"
    RUN_ERROR = "run_error"
    RUN_TIMEOUT = "run_timeout"
    DUPLICATE = "duplicate"


FAILURES = (
    TrialStatus.BUILD_ERROR,
    TrialStatus.BUILD_TIMEOUT,
    TrialStatus.RUN_ERROR,
    TrialStatus.RUN_TIMEOUT,
)


class RunStatus(StrEnum):
    """How a run stands."""

    RUNNING = "running"
    PAUSED = "paused"
    DONE = "done"
    INTERRUPTED = "interrupted"
    FAILED = "failed"


COST_MODELS = ("gnn", "gcn", "mlp", "tree", "ensemble", "context-relation", "per-store", "xgb", "random")
CONTENDERS = ("tuned", "untuned", "pytorch", "torch_compile", "onnxruntime")
"""The ways to run a whole model."""


@dataclass(frozen=True, slots=True)
class TensorSpec:
    """One input or output of a workload."""

    name: str
    shape: tuple[int, ...]
    dtype: str


@dataclass(frozen=True, slots=True)
class WorkloadInfo:
    """What a workload spec names, known without TVM."""

    name: str
    """Catalogue name, or the canonical operator spec."""
    spec: str
    """Canonical operator spec that rebuilds the workload; equal specs are equal workloads."""
    op: str
    """Operator kind, such as `conv2d`."""
    inputs: tuple[TensorSpec, ...]
    output: TensorSpec
    flops: int
    """Arithmetic operations of one call; a multiply-add counts as two."""
    network: str = ""
    """The network that the catalogue takes it from; empty for an operator spec."""

    @property
    def bytes(self) -> int:
        """Bytes of all inputs and the output, each touched once."""
        return sum(tensor_bytes(tensor) for tensor in (*self.inputs, self.output))

    @property
    def intensity(self) -> float:
        """Arithmetic intensity: operations per byte."""
        return self.flops / max(self.bytes, 1)


_DTYPE_BYTES = {"float64": 8, "float32": 4, "float16": 2, "bfloat16": 2, "int64": 8, "int32": 4}


def tensor_bytes(tensor: TensorSpec) -> int:
    """Bytes that a dense tensor takes."""
    elements = 1
    for extent in tensor.shape:
        elements *= extent
    return elements * _DTYPE_BYTES.get(tensor.dtype, 1)


@dataclass(frozen=True, slots=True)
class Machine:
    """A machine that measures."""

    hostname: str
    cpu: str
    cores: int
    """Cores that a process of ours may use (affinity and quota), not the count in the box."""
    features: tuple[str, ...] = ()


@dataclass(frozen=True, slots=True)
class TargetInfo:
    """A hardware target in both of its forms."""

    spec: str
    """As the user wrote it."""
    json: str
    """TVM's target as a JSON object with sorted keys; equal text is an equal target."""
    cores: int
    """`num-cores` of the target."""
    kind: str = "llvm"
    note: str = ""
    """How it was arrived at, for people (a fallback, a measured CPU model)."""


@dataclass(frozen=True, slots=True)
class RunSettings:
    """Everything that decides a run. Serialised into `runs.config_json`."""

    workloads: tuple[str, ...] = ()
    target: str = "native"
    trials: int = 256
    """Trials over all tasks of the run."""
    time_budget_secs: float | None = None
    patience: int | None = None
    """Stop a task after this many trials without a better one; None: never."""
    cost_model: str = "gnn"
    """One of `COST_MODELS`, or the path of a checkpoint."""
    pretrained: bool = True
    """Start from the shipped weights, where there are some of that kind."""
    seed: int = 0
    cores: tuple[int, ...] | None = None
    """CPU ids to compile and measure on; None: all that this process may use."""
    repeat: int = 3
    """Repeats of each measurement; the median counts."""
    min_repeat_secs: float = 0.01
    """Each repeat runs the kernel until this much time has passed."""
    flush_cache: bool = False
    """Evict the caches before every repeat."""
    reuse_history: bool = True
    """Start from what earlier runs measured on this workload, target and machine."""
    build_timeout_secs: float | None = None
    """None: scaled with the workload's FLOPs."""
    run_timeout_secs: float | None = None
    memory_limit_bytes: int | None = None
    trials_per_round: int | None = None
    """None: chosen by the search."""
    verify: bool = True
    """Check the winner's output against a reference."""
    tasks: tuple[str, ...] = ()
    """Patterns of the tasks of models to tune; empty: all."""
    against: tuple[str, ...] = CONTENDERS[1:]
    """Ways to run a model that the tuned one is compared with."""
    retune: bool = False
    """Tune the tasks of models further that earlier runs have tuned as much."""
    collect: bool = False
    """Measure a spread of schedules (random, stratified, searched) for a data set."""


@dataclass(frozen=True, slots=True)
class Trial:
    """A candidate after build and run, successful or not: one row of `trials`."""

    run_id: int
    task_id: int
    ordinal: int
    """1, 2, ... within the run, in the order in which trials ended."""
    round: int
    status: TrialStatus
    trace_json: str
    run_secs: tuple[float, ...] | None = None
    """Every repeat; None unless ok."""
    best_of: float | None = None
    """Median of the repeats: the figure used for ranking."""
    predicted_secs: float | None = None
    """What the cost model said before the measurement."""
    score: float | None = None
    """The search's score before the measurement; higher is better."""
    error: str | None = None
    build_secs: float | None = None
    measured_at: float = 0.0
    """Unix time."""
    source: str = "search"
    """Where the candidate came from: `search`, `random`, `stratified`, `history`."""
    slow: bool = False
    """The measurement ended early because the candidate was clearly slow (fewer calls a repeat)."""
    correct: bool | None = None
    """Whether its output matched the reference; None: not checked."""
    peak_rss_bytes: int | None = None
    module_hash: str = ""
    """Identifies the scheduled module: equal hashes are equal programs, whatever their traces."""
    device: str | None = None
    """The device behind the RPC tracker that ran it; None: the run's machine itself."""
    id: int | None = None


@dataclass(frozen=True, slots=True)
class Task:
    """One tunable workload of a run with its weight: one row of `tasks`."""

    id: int
    run_id: int
    workload_id: int
    name: str
    weight: int = 1
    workload_hash: str = ""
    workload_spec: str = ""
    op: str = ""
    flops: int = 0
    untuned_secs: float | None = None
    """Median latency of TVM's default schedule on the same cores."""
    pytorch_secs: float | None = None
    """Median latency of PyTorch on the same cores."""
    error: str | None = None
    """Why this task can't be tuned; the run goes on without it."""


@dataclass(frozen=True, slots=True)
class Run:
    """One row of `runs`."""

    id: int
    target_id: int
    machine_id: int
    cost_model: str
    seed: int
    trials_requested: int
    status: RunStatus
    started_at: float
    ended_at: float | None
    config_json: str
    note: str = ""
    pid: int | None = None
    """The engine that works on it, while there is one."""
    pid_started: float | None = None
    """Start time of that process (Unix time), so that a reused pid is not taken for it."""
    events_path: str | None = None
    result_json: str | None = None
    """The object that `--batch --json` prints, once the run has ended."""


@dataclass(frozen=True, slots=True)
class Round:
    """One round of search, build and measurement of one task: one row of `rounds`."""

    run_id: int
    task_id: int
    round: int
    trials: int
    valid: int
    spearman: float | None
    """Rank correlation of predicted with measured seconds over this round."""
    pairwise_accuracy: float | None
    phase_secs: dict[str, float] = field(default_factory=dict)
    rss_bytes: int = 0
    """Resident memory of the engine after the round."""
    ended_at: float = 0.0
