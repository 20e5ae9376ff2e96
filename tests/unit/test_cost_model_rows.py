"""Trees over rows of features, alone and as a cost model, without TVM."""

from __future__ import annotations

from pathlib import Path
from typing import Any, Literal

import numpy as np
import pytest

from tuneassist.cost_model import context_relation, per_store
from tuneassist.cost_model.metrics import pairwise_accuracy
from tuneassist.cost_model.registry import MODULE_KINDS, create_cost_model
from tuneassist.cost_model.row_trees import Rows, RowTrees
from tuneassist.errors import UsageError

WIDTH = {"context-relation": len(context_relation.COLUMNS), "per-store": per_store.COLUMN_COUNT}
AMPLE_SECS = 60.0
each_kind = pytest.mark.parametrize("kind", MODULE_KINDS)


def made(count: int, columns: int, *, seed: int, most: int = 4) -> tuple[list[Any], np.ndarray]:
    """Candidates of 1 to `most` rows, whose log time is the sum over rows of what two columns say."""
    random = np.random.default_rng(seed)
    candidates, logs = [], []
    for _ in range(count):
        values = np.zeros((int(random.integers(1, most + 1)), columns), np.float32)
        values[:, :8] = random.uniform(0, 1, (len(values), 8))
        candidates.append(Rows(values))
        logs.append(0.3 * float((2 * values[:, 0] - (values[:, 3] > 0.5)).sum()) + random.normal(0, 0.02))
    return candidates, np.array(logs) - 7.0


def accuracy(trees: RowTrees, candidates: list[Any], logs: np.ndarray) -> float:
    found = pairwise_accuracy(np.exp(trees.predict(candidates)), np.exp(logs))
    assert found is not None
    return found


@pytest.mark.parametrize(("form", "least"), [("log", 0.9), ("score", 0.8)])
def test_sums_over_rows_are_learned(form: Literal["log", "score"], least: float) -> None:
    # MetaSchedule's form does not divide its steps among rows, and copes with few of them only.
    candidates, logs = made(400, 8, seed=1, most=4 if form == "log" else 1)
    trees = RowTrees(8, form=form)
    assert np.array_equal(trees.predict(candidates), np.zeros(400))
    trees.fit(candidates[:300], np.zeros(300), logs[:300], seed=0)
    assert accuracy(trees, candidates[300:], logs[300:]) > least


def test_the_level_of_a_workload_does_not_matter() -> None:
    candidates, logs = made(400, 8, seed=2)
    groups = np.array(["slow", "fast"])[np.arange(300) % 2]
    shifted = logs[:300] + np.where(groups == "slow", 9.0, 0.0)
    trees = RowTrees(8)
    trees.fit(candidates[:300], groups, shifted, seed=0)
    assert accuracy(trees, candidates[300:], logs[300:]) > 0.9


def test_weights_decide_between_contradictions() -> None:
    same = [Rows(np.array([[float(i % 2)]], dtype=np.float32)) for i in range(80)]
    logs = np.where(np.arange(80) < 40, np.arange(80) % 2, 1 - np.arange(80) % 2).astype(float)
    first = np.where(np.arange(80) < 40, 1.0, 0.01)
    trees = RowTrees(1)
    trees.fit(same, np.zeros(80), logs, seed=0, weights=first)
    assert np.diff(trees.predict(same[:2]))[0] > 0.5
    trees.fit(same, np.zeros(80), logs, seed=0, weights=1.01 - first)
    assert np.diff(trees.predict(same[:2]))[0] < -0.5


def test_a_candidate_without_rows_and_odd_input() -> None:
    candidates, logs = made(40, 8, seed=3)
    trees = RowTrees(8)
    empty = Rows(np.zeros((0, 8), np.float32))
    trees.fit([empty, *candidates], np.zeros(41), np.array([0.0, *logs]), seed=0)
    assert trees.predict([empty, candidates[0]])[0] == 0.0
    assert trees.predict([]).shape == (0,)
    trees.fit(candidates, np.zeros(40), np.full(40, -7.0), seed=0)
    assert np.allclose(trees.predict(candidates), 0.0)
    with pytest.raises(ValueError, match="40 candidates, 40 groups, 39 times"):
        trees.fit(candidates, np.zeros(40), logs[:39], seed=0)
    with pytest.raises(ValueError, match=r"\(rows, 8\), not \(1, 7\)"):
        trees.predict([Rows(np.zeros((1, 7), np.float32))])


@each_kind
def test_a_baseline_learns_and_gives_seconds(kind: str) -> None:
    candidates, logs = made(160, WIDTH[kind], seed=4, most=1)
    model = create_cost_model(kind, seed=0)
    model.update("slow", candidates[:120], np.exp(logs[:120]) * 100, budget_secs=AMPLE_SECS)
    model.update("fast", candidates[:120], np.exp(logs[:120]), budget_secs=AMPLE_SECS)
    slow, fast = (model.predict(name, candidates[120:]) for name in ("slow", "fast"))
    found = pairwise_accuracy(fast.secs, np.exp(logs[120:]))
    assert found is not None and found > 0.7
    assert found == pairwise_accuracy(-fast.score, np.exp(logs[120:]))
    assert np.log(slow.secs / fast.secs).mean() == pytest.approx(np.log(100.0), abs=0.2)
    assert np.abs(np.log(fast.secs) - logs[120:]).mean() < 0.4


@each_kind
def test_failed_trials_come_out_slow_and_only_failures_teach_nothing(kind: str) -> None:
    candidates, logs = made(80, WIDTH[kind], seed=5, most=1)
    fails = np.array([candidate.values[0, 3] > 0.5 for candidate in candidates])
    model = create_cost_model(kind, seed=0)
    model.update("w", candidates, np.full(80, np.nan), budget_secs=AMPLE_SECS)
    assert np.all(model.predict("w", candidates).score == 0.0)
    model.update("w", candidates, np.where(fails, np.nan, np.exp(logs)), budget_secs=AMPLE_SECS)
    score = model.predict("w", candidates).score
    assert score[fails].mean() < score[~fails].mean()


@each_kind
def test_one_seed_one_model_and_a_checkpoint_predicts_the_same(kind: str, tmp_path: Path) -> None:
    candidates, logs = made(60, WIDTH[kind], seed=6)

    def trained(seed: int) -> Any:
        model = create_cost_model(kind, seed=seed)
        model.update("w", candidates, np.exp(logs), budget_secs=AMPLE_SECS)
        return model

    one, same, other = (trained(seed).predict("w", candidates).score for seed in (1, 1, 2))
    assert np.array_equal(one, same)
    # MetaSchedule's parameters draw nothing at random.
    assert np.array_equal(one, other) == (kind == "per-store")
    path = tmp_path / "model.pt"
    trained(1).save(path)
    loaded = create_cost_model(str(path))
    assert loaded.kind == kind
    assert np.allclose(loaded.predict("new", candidates).score, one)
    loaded.update("w", candidates, np.exp(logs), budget_secs=AMPLE_SECS)
    again = pairwise_accuracy(loaded.predict("w", candidates).secs, np.exp(logs))
    assert again is not None and again > 0.9


def test_a_checkpoint_of_another_kind_is_refused(tmp_path: Path) -> None:
    create_cost_model("per-store").save(tmp_path / "m.pt")
    with pytest.raises(UsageError, match=r"per-store.*context-relation"):
        create_cost_model("context-relation").load(tmp_path / "m.pt")
