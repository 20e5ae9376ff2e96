"""Schema version 1, as statements. The comments stay in the file: `sqlite3 FILE .schema` shows them.

Conventions: times of day are Unix time (seconds), durations end in `_secs`, sizes in `_bytes`; columns
that end in `_json` hold JSON text. Long texts come last in `trials`, so that a scan of the figures does
not read them.
"""

from __future__ import annotations

TABLES = (
    """
    CREATE TABLE machines (
        -- a machine that measured; other cores allowed make another row
        id INTEGER PRIMARY KEY,
        hostname TEXT NOT NULL,
        cpu TEXT NOT NULL, -- model name
        cores INTEGER NOT NULL, -- cores that the process was allowed, not the count in the box
        features TEXT NOT NULL, -- CPU features: JSON array of names
        os TEXT NOT NULL, -- operating system when first seen
        created_at REAL NOT NULL, -- Unix time
        UNIQUE (hostname, cpu, cores, features)
    ) STRICT
    """,
    """
    CREATE TABLE machine_facts (
        -- what was measured once for a machine (peak GFLOPS, the CPU model that compiles best)
        machine_id INTEGER NOT NULL REFERENCES machines(id) ON DELETE CASCADE,
        name TEXT NOT NULL,
        value_json TEXT NOT NULL, -- any JSON value
        PRIMARY KEY (machine_id, name)
    ) STRICT
    """,
    """
    CREATE TABLE targets (
        -- what TVM compiles for
        id INTEGER PRIMARY KEY,
        spec TEXT NOT NULL, -- as the user first wrote it
        json TEXT NOT NULL UNIQUE, -- TVM's target, keys sorted
        cores INTEGER NOT NULL, -- its num-cores
        kind TEXT NOT NULL, -- llvm, cuda, ...
        note TEXT NOT NULL -- how it was arrived at
    ) STRICT
    """,
    """
    CREATE TABLE workloads (
        -- a tensor program to tune
        id INTEGER PRIMARY KEY,
        hash TEXT NOT NULL UNIQUE, -- structural hash of the IRModule
        name TEXT NOT NULL, -- name when first seen
        spec TEXT NOT NULL, -- spec that rebuilds it
        op TEXT NOT NULL, -- operator kind
        flops INTEGER NOT NULL, -- arithmetic operations of one call
        mod_json TEXT NOT NULL -- the IRModule as TVM saves it
    ) STRICT
    """,
    """
    CREATE TABLE runs (
        -- one tuning run
        id INTEGER PRIMARY KEY AUTOINCREMENT, -- never given again, even after a delete
        target_id INTEGER NOT NULL REFERENCES targets(id),
        machine_id INTEGER NOT NULL REFERENCES machines(id),
        cost_model TEXT NOT NULL, -- gcn, mlp, xgb, random or a checkpoint path
        seed INTEGER NOT NULL,
        trials_requested INTEGER NOT NULL, -- over all tasks
        status TEXT NOT NULL CHECK (status IN ('running', 'paused', 'done', 'interrupted', 'failed')),
        started_at REAL NOT NULL, -- Unix time
        ended_at REAL, -- Unix time; null while it runs
        config_json TEXT NOT NULL, -- every setting
        note TEXT NOT NULL DEFAULT '', -- free text of the user
        pid INTEGER, -- engine process that works on it, if any
        pid_started REAL, -- start of that process, Unix time
        events_path TEXT, -- file of its events, JSON lines
        result_json TEXT -- what --batch --json printed; null until it ends
    ) STRICT
    """,
    """
    CREATE TABLE tasks (
        -- one workload within a run; counts and best are kept by triggers on trials
        id INTEGER PRIMARY KEY,
        run_id INTEGER NOT NULL REFERENCES runs(id) ON DELETE CASCADE,
        workload_id INTEGER NOT NULL REFERENCES workloads(id),
        name TEXT NOT NULL,
        weight INTEGER NOT NULL, -- times it occurs in the network
        untuned_secs REAL, -- median latency of TVM's default schedule, same cores
        pytorch_secs REAL, -- median latency of PyTorch, same cores
        error TEXT, -- why it can't be tuned
        trial_count INTEGER NOT NULL DEFAULT 0,
        ok_count INTEGER NOT NULL DEFAULT 0,
        build_error_count INTEGER NOT NULL DEFAULT 0,
        build_timeout_count INTEGER NOT NULL DEFAULT 0,
        run_error_count INTEGER NOT NULL DEFAULT 0,
        run_timeout_count INTEGER NOT NULL DEFAULT 0,
        duplicate_count INTEGER NOT NULL DEFAULT 0,
        best_trial_id INTEGER REFERENCES trials(id) ON DELETE SET NULL, -- fastest ok, not known to be wrong
        best_secs REAL -- its best_of
    ) STRICT
    """,
    """
    CREATE TABLE trials (
        -- one candidate after build and run, successful or not; committed as it ends
        id INTEGER PRIMARY KEY,
        run_id INTEGER NOT NULL REFERENCES runs(id) ON DELETE CASCADE,
        task_id INTEGER NOT NULL REFERENCES tasks(id) ON DELETE CASCADE,
        ordinal INTEGER NOT NULL, -- 1, 2, ... within the run, in the order in which trials ended
        round INTEGER NOT NULL,
        status TEXT NOT NULL CHECK (
            status IN ('ok', 'build_error', 'build_timeout', 'run_error', 'run_timeout', 'duplicate')
        ),
        run_secs TEXT, -- every repeat in seconds: JSON array; null unless ok
        best_of REAL, -- median of the repeats, used for ranking
        predicted_secs REAL, -- what the cost model said before the measurement
        score REAL, -- the search's score before the measurement, higher is better
        build_secs REAL,
        measured_at REAL NOT NULL, -- Unix time
        source TEXT NOT NULL DEFAULT 'search', -- search, random, stratified or history
        slow INTEGER NOT NULL DEFAULT 0, -- 1: the measurement ended early, clearly slow
        correct INTEGER, -- output matched a reference: 1 yes, 0 no, null not checked
        peak_rss_bytes INTEGER,
        module_hash TEXT NOT NULL DEFAULT '', -- equal hashes are equal scheduled programs
        error TEXT,
        trace_json TEXT NOT NULL, -- MetaSchedule trace: [instructions, decisions]
        UNIQUE (run_id, ordinal),
        CHECK ((status = 'ok') = (run_secs IS NOT NULL)),
        CHECK ((status = 'ok') = (best_of IS NOT NULL))
    ) STRICT
    """,
    """
    CREATE TABLE rounds (
        -- one round of search, build and measurement of one task
        id INTEGER PRIMARY KEY,
        run_id INTEGER NOT NULL REFERENCES runs(id) ON DELETE CASCADE,
        task_id INTEGER NOT NULL REFERENCES tasks(id) ON DELETE CASCADE,
        round INTEGER NOT NULL,
        trials INTEGER NOT NULL,
        valid INTEGER NOT NULL,
        spearman REAL, -- rank correlation of predicted with measured seconds
        pairwise_accuracy REAL,
        phase_secs TEXT NOT NULL, -- seconds by phase: JSON object
        rss_bytes INTEGER NOT NULL, -- resident memory of the engine after it
        ended_at REAL NOT NULL, -- Unix time
        UNIQUE (run_id, task_id, round)
    ) STRICT
    """,
    """
    CREATE TABLE cost_models (
        -- checkpoints of cost models
        id INTEGER PRIMARY KEY,
        kind TEXT NOT NULL, -- gcn, mlp, xgb
        path TEXT NOT NULL,
        sha256 TEXT NOT NULL,
        trained_on TEXT NOT NULL, -- data set or runs, in words
        metrics_json TEXT NOT NULL,
        created_at REAL NOT NULL -- Unix time
    ) STRICT
    """,
)

INDEXES = (
    "CREATE INDEX runs_by_place ON runs (target_id, machine_id)",
    "CREATE INDEX runs_by_status ON runs (status)",
    "CREATE INDEX tasks_by_run ON tasks (run_id)",
    "CREATE INDEX tasks_by_workload ON tasks (workload_id, best_secs)",
    "CREATE INDEX tasks_by_best_trial ON tasks (best_trial_id)",
    # Holds all that the curves and scatter plots need, so that they don't read the rows with their texts.
    "CREATE INDEX trials_by_task"
    " ON trials (task_id, ordinal, status, correct, best_of, predicted_secs, measured_at)",
    # The terms of a partial index are written in queries exactly as here, or SQLite won't use it.
    "CREATE INDEX trials_ranked ON trials (task_id, best_of) WHERE status = 'ok' AND correct IS NOT 0",
    "CREATE INDEX trials_failed ON trials (run_id, status) WHERE status <> 'ok'",
    "CREATE INDEX rounds_by_task ON rounds (task_id)",
)

_STATUSES = ("ok", "build_error", "build_timeout", "run_error", "run_timeout", "duplicate")


def _count(row: str, sign: str, task: str) -> str:
    sums = ", ".join(f"{s}_count = {s}_count {sign} ({row}.status = '{s}')" for s in _STATUSES)
    return f"UPDATE tasks SET trial_count = trial_count {sign} 1, {sums} WHERE id = {task};"


def _rank_again(task: str) -> str:
    return f"""
        UPDATE tasks SET (best_trial_id, best_secs) = (
            SELECT id, best_of FROM trials
            WHERE task_id = {task} AND status = 'ok' AND correct IS NOT 0
            ORDER BY best_of, id LIMIT 1
        ) WHERE id = {task};
    """


TRIGGERS = (
    f"""
    CREATE TRIGGER trials_added AFTER INSERT ON trials BEGIN
        {_count("new", "+", "new.task_id")}
        UPDATE tasks SET best_trial_id = new.id, best_secs = new.best_of
        WHERE id = new.task_id AND new.status = 'ok' AND new.correct IS NOT 0
            AND (best_secs IS NULL OR new.best_of < best_secs);
    END
    """,
    f"""
    CREATE TRIGGER trials_changed AFTER UPDATE OF task_id, status, best_of, correct ON trials BEGIN
        {_count("old", "-", "old.task_id")}
        {_count("new", "+", "new.task_id")}
        {_rank_again("old.task_id")}
        {_rank_again("new.task_id")}
    END
    """,
    f"""
    CREATE TRIGGER trials_removed AFTER DELETE ON trials BEGIN
        {_count("old", "-", "old.task_id")}
        {_rank_again("old.task_id")}
    END
    """,
)

VIEWS = (
    """
    CREATE VIEW best_trials AS
    -- the fastest valid trial of each workload on each machine and target
    SELECT
        best.workload_id, workloads.name AS workload, workloads.op, workloads.spec AS workload_spec,
        best.machine_id, machines.hostname AS machine, machines.cpu, machines.cores,
        best.target_id, targets.spec AS target, targets.json AS target_json,
        best.run_id, best.task_id, trials.id AS trial_id, trials.ordinal, trials.round,
        trials.best_of, trials.run_secs, trials.correct, trials.predicted_secs,
        workloads.flops / trials.best_of / 1e9 AS gflops,
        best.untuned_secs, best.pytorch_secs, best.cost_model, trials.measured_at,
        datetime(trials.measured_at, 'unixepoch') AS measured_utc
    FROM (
        SELECT
            tasks.workload_id, runs.machine_id, runs.target_id, runs.cost_model,
            tasks.run_id, tasks.id AS task_id, tasks.best_trial_id, min(tasks.best_secs) AS best_secs,
            tasks.untuned_secs, tasks.pytorch_secs
        FROM tasks JOIN runs ON runs.id = tasks.run_id
        WHERE tasks.best_trial_id IS NOT NULL
        -- with min() alone, SQLite takes the other columns from the row that holds the minimum
        GROUP BY tasks.workload_id, runs.machine_id, runs.target_id
    ) AS best
    JOIN trials ON trials.id = best.best_trial_id
    JOIN workloads ON workloads.id = best.workload_id
    JOIN machines ON machines.id = best.machine_id
    JOIN targets ON targets.id = best.target_id
    """,
    """
    CREATE VIEW run_summary AS
    -- one line a run: where, how, how many trials, how they ended
    SELECT
        runs.id AS run_id, runs.status, runs.note, runs.cost_model, runs.seed,
        targets.spec AS target, machines.hostname AS machine, machines.cpu, machines.cores,
        datetime(runs.started_at, 'unixepoch') AS started_utc,
        datetime(runs.ended_at, 'unixepoch') AS ended_utc,
        runs.ended_at - runs.started_at AS wall_secs,
        runs.trials_requested,
        count(tasks.id) AS tasks,
        group_concat(tasks.name, ', ') AS task_names,
        coalesce(sum(tasks.trial_count), 0) AS trials,
        coalesce(sum(tasks.ok_count), 0) AS ok,
        coalesce(sum(tasks.build_error_count), 0) AS build_error,
        coalesce(sum(tasks.build_timeout_count), 0) AS build_timeout,
        coalesce(sum(tasks.run_error_count), 0) AS run_error,
        coalesce(sum(tasks.run_timeout_count), 0) AS run_timeout,
        coalesce(sum(tasks.duplicate_count), 0) AS duplicate,
        sum(tasks.weight * tasks.best_secs) AS weighted_best_secs
    FROM runs
    JOIN targets ON targets.id = runs.target_id
    JOIN machines ON machines.id = runs.machine_id
    LEFT JOIN tasks ON tasks.run_id = runs.id
    GROUP BY runs.id
    """,
    """
    CREATE VIEW task_summary AS
    -- one line a task: its best beside the untuned and the PyTorch latency
    SELECT
        tasks.id AS task_id, tasks.run_id, tasks.name, workloads.op, workloads.spec AS workload_spec,
        tasks.weight, tasks.trial_count AS trials, tasks.ok_count AS ok, tasks.best_secs,
        workloads.flops / tasks.best_secs / 1e9 AS gflops,
        tasks.untuned_secs, tasks.untuned_secs / tasks.best_secs AS speedup_over_untuned,
        tasks.pytorch_secs, tasks.pytorch_secs / tasks.best_secs AS speedup_over_pytorch,
        tasks.best_trial_id, tasks.error
    FROM tasks JOIN workloads ON workloads.id = tasks.workload_id
    """,
    """
    CREATE VIEW failed_trials AS
    -- every trial without a measurement, with the reason
    SELECT trials.run_id, trials.ordinal, tasks.name AS task, trials.round, trials.status, trials.error,
        trials.build_secs, datetime(trials.measured_at, 'unixepoch') AS measured_utc
    FROM trials JOIN tasks ON tasks.id = trials.task_id
    WHERE trials.status <> 'ok'
    """,
)

STATEMENTS = (*TABLES, *INDEXES, *TRIGGERS, *VIEWS)
