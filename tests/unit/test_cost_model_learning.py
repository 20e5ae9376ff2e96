"""What every cost model must do: rank before data, learn from trials, reproduce, and be saved."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import numpy as np
import pytest
import torch
from cost_model_graphs import chain, workload

from tuneassist.cost_model.explain import explain
from tuneassist.cost_model.learned import LearnedCostModel
from tuneassist.cost_model.metrics import pairwise_accuracy
from tuneassist.cost_model.registry import KINDS, create_cost_model
from tuneassist.errors import UsageError

AMPLE_SECS = 60.0
each_kind = pytest.mark.parametrize("kind", KINDS)


@each_kind
def test_before_any_trial_the_estimate_ranks_and_gives_seconds(kind: str) -> None:
    graphs = [chain([3.0], estimate=value, vector=2.0) for value in (20.0, 18.0, 22.0)]
    prediction = create_cost_model(kind).predict("w", graphs)
    assert list(np.argsort(-prediction.score)) == [1, 0, 2]
    assert prediction.secs == pytest.approx(np.exp2([20.0, 18.0, 22.0]) / 4e9, rel=1e-4)


@each_kind
def test_trials_teach_what_the_estimate_misses(kind: str) -> None:
    graphs, secs = workload(160, seed=1)
    model = create_cost_model(kind, seed=0)
    before = pairwise_accuracy(model.predict("w", graphs[96:]).secs, secs[96:])
    for start in range(0, 96, 16):
        model.update("w", graphs[start : start + 16], secs[start : start + 16], budget_secs=AMPLE_SECS)
    prediction = model.predict("w", graphs[96:])
    after = pairwise_accuracy(prediction.secs, secs[96:])
    assert before is not None and after is not None
    assert after > before + 0.05
    assert after == pairwise_accuracy(-prediction.score, secs[96:])


@each_kind
def test_eight_trials_do_not_spoil_the_ranking(kind: str) -> None:
    graphs, secs = workload(108, seed=2)
    model = create_cost_model(kind, seed=0)
    before = pairwise_accuracy(model.predict("w", graphs[8:]).secs, secs[8:])
    model.update("w", graphs[:8], secs[:8], budget_secs=AMPLE_SECS)
    after = pairwise_accuracy(model.predict("w", graphs[8:]).secs, secs[8:])
    assert before is not None and after is not None
    assert after > before - 0.05


@each_kind
def test_the_level_follows_the_workload(kind: str) -> None:
    graphs, secs = workload(48, seed=3)
    model = create_cost_model(kind, seed=0)
    model.update("slow", graphs, 100.0 * secs, budget_secs=AMPLE_SECS)
    model.update("fast", graphs, secs, budget_secs=AMPLE_SECS)
    slow, fast = model.predict("slow", graphs).secs, model.predict("fast", graphs).secs
    assert np.log(slow / fast).mean() == pytest.approx(np.log(100.0), abs=0.2)


@each_kind
def test_failed_trials_come_out_slower(kind: str) -> None:
    random = np.random.default_rng(0)
    # Every candidate of vector width 2**5 fails; all are estimated alike.
    vectors = [5.0 if i % 2 else 1.0 for i in range(64)]
    graphs = [chain(list(random.uniform(1, 6, 3)), estimate=20.0, vector=v) for v in vectors]
    secs = [np.nan if v == 5.0 else 2.6e-4 * float(np.exp(random.normal(0, 0.05))) for v in vectors]
    model = create_cost_model(kind, seed=0)
    for _ in range(3):
        model.update("w", graphs, secs, budget_secs=AMPLE_SECS)
    predicted = model.predict("w", graphs)
    assert np.all(np.isfinite(predicted.secs))
    assert predicted.secs.max() < 100 * predicted.secs.min()
    assert predicted.score[0::2].mean() >= predicted.score[1::2].mean()


@each_kind
def test_only_failures_teach_nothing_and_break_nothing(kind: str) -> None:
    graphs, _ = workload(8, seed=4)
    model = create_cost_model(kind, seed=0)
    before = model.predict("w", graphs)
    model.update("w", graphs, np.full(8, np.nan), budget_secs=AMPLE_SECS)
    assert np.array_equal(model.predict("w", graphs).secs, before.secs)


@each_kind
def test_one_seed_one_model(kind: str) -> None:
    graphs, secs = workload(40, seed=5)

    def predictions(seed: int) -> np.ndarray:
        torch.rand(3)  # Other users of the global generator must not matter.
        model = create_cost_model(kind, seed=seed)
        model.update("w", graphs[:32], secs[:32], budget_secs=AMPLE_SECS)
        return model.predict("w", graphs).secs

    assert np.array_equal(predictions(1), predictions(1))
    assert not np.array_equal(predictions(1), predictions(2))


@each_kind
def test_empty_and_equal_input(kind: str) -> None:
    graphs, _ = workload(4, seed=6)
    model = create_cost_model(kind, seed=0)
    model.update("w", [], [], budget_secs=1.0)
    assert model.predict("w", []).secs.shape == (0,)
    model.update("w", graphs, np.full(4, 1e-3), budget_secs=1.0)
    assert np.all(np.isfinite(model.predict("w", graphs).secs))
    with pytest.raises(ValueError, match="4 graphs need as many seconds"):
        model.update("w", graphs, [1.0], budget_secs=1.0)


@each_kind
def test_a_checkpoint_predicts_the_same(kind: str, tmp_path: Path) -> None:
    graphs, secs = workload(48, seed=7)
    model = create_cost_model(kind, seed=0)
    model.update("w", graphs, secs, budget_secs=AMPLE_SECS)
    model.save(tmp_path / "model.pt")
    loaded = create_cost_model(str(tmp_path / "model.pt"), seed=3)
    assert loaded.kind == kind
    assert np.allclose(loaded.predict("new", graphs).score, model.predict("w", graphs).score)


def test_checkpoints_that_do_not_fit_are_refused(tmp_path: Path) -> None:
    path = tmp_path / "model.pt"
    create_cost_model("mlp").save(path)
    with pytest.raises(UsageError, match=r"mlp.*gcn"):
        create_cost_model("gcn").load(path)
    (tmp_path / "text.pt").write_text("not a checkpoint")
    with pytest.raises(UsageError, match="no cost model checkpoint"):
        create_cost_model(str(tmp_path / "text.pt"))
    (tmp_path / "cut.pt").write_bytes(path.read_bytes()[:2000])
    with pytest.raises(UsageError, match="no cost model checkpoint"):
        create_cost_model(str(tmp_path / "cut.pt"))
    with pytest.raises(UsageError, match="neither a cost model nor a file"):
        create_cost_model("gnc")


def test_a_changed_weight_is_noticed(tmp_path: Path) -> None:
    path = tmp_path / "model.pt"
    create_cost_model("gcn").save(path)
    data = torch.load(path, weights_only=True)
    next(iter(data["state"].values())).view(-1)[0] += 1
    torch.save(data, path)
    with pytest.raises(UsageError, match="damaged"):
        create_cost_model(str(path))


def test_a_pickled_object_is_not_run(tmp_path: Path) -> None:
    class Trap:
        def __reduce__(self) -> tuple[Any, ...]:
            return (open, (str(tmp_path / "sprung"), "w"))

    torch.save({"header": Trap(), "state": {}}, tmp_path / "trap.pt")
    with pytest.raises(UsageError):
        create_cost_model(str(tmp_path / "trap.pt"))
    assert not (tmp_path / "sprung").exists()


@each_kind
def test_contributions_add_up_to_the_prediction(kind: str) -> None:
    graphs, secs = workload(48, seed=8)
    model = create_cost_model(kind, seed=0)
    model.update("w", graphs, secs, budget_secs=AMPLE_SECS)
    assert isinstance(model, LearnedCostModel)
    for graph, predicted in zip(graphs[:4], model.predict("w", graphs[:4]).secs, strict=True):
        explanation = explain(model, "w", graph)
        assert explanation.contributions.shape == (graph.num_nodes,)
        assert explanation.constant + explanation.contributions.sum() == pytest.approx(
            np.log(predicted), abs=1e-4
        )


def test_a_model_that_does_not_see_the_graph_is_not_explained() -> None:
    model = create_cost_model("per-store", seed=0)
    assert isinstance(model, LearnedCostModel)
    with pytest.raises(UsageError, match="can't be explained"):
        explain(model, "w", workload(1, seed=0)[0][0])
