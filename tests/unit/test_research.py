"""Splits, judgements and trainings over samples that stand in for a measured data set."""

from __future__ import annotations

from collections import Counter
from pathlib import Path

import numpy as np
import pytest
from cost_model_graphs import workload

from tuneassist.cost_model.bases import base_ranker
from tuneassist.cost_model.metrics import pairwise_accuracy
from tuneassist.cost_model.registry import create_cost_model
from tuneassist.cost_model.row_trees import Rows
from tuneassist.cost_model.training import batches
from tuneassist.errors import UsageError
from tuneassist.research import cache
from tuneassist.research.evaluate import Judged, Score, judge
from tuneassist.research.folds import folds
from tuneassist.research.pretrain import train
from tuneassist.research.rebuild import Rebuilt
from tuneassist.research.samples import DataSet, WorkloadSamples
from tuneassist.research.summary import difference, means
from tuneassist.tuning.strata import Stratum, pick_evenly


def samples(name: str, *, count: int = 60, seed: int = 0, op: str = "conv2d") -> WorkloadSamples:
    graphs, secs = workload(count, seed=seed)
    return WorkloadSamples(name, op, name, tuple(graphs), secs, ("random",) * count, "here")


def data_set(workloads: int = 4) -> DataSet:
    made = tuple(samples(f"w{i}", seed=i) for i in range(workloads))
    return DataSet("made up", "0" * 64, made, {}, 0, {})


def test_a_workload_that_is_left_out_is_not_trained_on() -> None:
    found = list(folds(data_set().workloads, "workload", seed=0))
    assert [fold.name for fold in found] == ["w0", "w1", "w2", "w3"]
    for fold in found:
        assert fold.name not in [each.name for each in fold.train]
        assert [each.name for each in fold.test] == [fold.name]


def test_only_what_begins_so_is_held_out() -> None:
    found = list(folds(data_set().workloads, "workload", seed=0, held_out=["w1", "w3"]))
    assert [fold.name for fold in found] == ["w1", "w3"]
    assert len(found[0].train) == 3


def test_a_family_is_left_out_as_a_whole() -> None:
    workloads = [samples("a"), samples("b", op="dense"), samples("c", op="dense")]
    found = {fold.name: fold for fold in folds(workloads, "family", seed=0)}
    assert {each.name for each in found["dense"].test} == {"b", "c"}
    assert [each.name for each in found["dense"].train] == ["a"]


def test_within_keeps_a_fifth_of_each_workload() -> None:
    (fold,) = folds(data_set(2).workloads, "within", seed=1)
    for train_part, test_part, whole in zip(fold.train, fold.test, data_set(2).workloads, strict=True):
        assert len(train_part.secs) == 48
        assert sorted([*train_part.secs, *test_part.secs]) == sorted(whole.secs)


def test_one_machine_can_not_be_left_out_of_one() -> None:
    with pytest.raises(UsageError, match="can't be split by machine"):
        list(folds(data_set().workloads, "machine", seed=0))


def test_what_others_teach_helps_on_a_workload_never_seen() -> None:
    fold = next(folds(data_set().workloads, "workload", seed=0))
    by_estimate = judge(fold, "estimate", base_ranker("estimate"), seed=0, shots=(0,))
    by_trees = judge(fold, "tree", base_ranker("tree"), seed=0, shots=(0,))
    before, after = (found[0].metrics["pairwise_accuracy"] for found in (by_estimate, by_trees))
    assert before is not None and after is not None
    assert after > before + 0.05


def test_shots_are_left_out_of_the_judgement_and_few_trials_are_not_judged() -> None:
    fold = next(folds(data_set().workloads, "workload", seed=0))
    told: list[Judged] = []
    scores = judge(fold, "estimate", base_ranker("estimate"), seed=0, shots=(0, 32, 48), told=told.append)
    assert [score.shots for score in scores] == [0, 32]
    assert [len(each.measured_secs) for each in told] == [60]


def test_all_models_are_shown_the_same_shots() -> None:
    fold = next(folds(data_set().workloads, "workload", seed=0))
    first = judge(fold, "a", base_ranker("estimate"), seed=3, shots=(16,))
    again = judge(fold, "b", base_ranker("estimate"), seed=3, shots=(16,))
    assert first[0].metrics == again[0].metrics


def _score(workload_name: str, model: str, value: float, seed: int = 0) -> Score:
    return Score("workload", workload_name, workload_name, model, seed, 0, {"top_1": value})


def test_means_average_seeds_before_workloads() -> None:
    scores = [_score("a", "m", 0.2, 0), _score("a", "m", 0.4, 1), _score("b", "m", 0.7, 0)]
    found = means(scores, "top_1", model="m", shots=0)
    assert found is not None
    assert found.mean == pytest.approx(0.5)
    assert found.error == pytest.approx(0.2)
    assert found.count == 2
    assert means(scores, "top_1", model="m", shots=8) is None


def test_differences_are_paired() -> None:
    scores = [
        _score("a", "m", 0.5), _score("b", "m", 0.9), _score("c", "m", 0.1),
        _score("a", "n", 0.4), _score("b", "n", 0.6),
    ]  # fmt: skip
    found = difference(scores, "top_1", model="m", against="n", shots=0)
    assert found is not None
    assert found.mean == pytest.approx(0.2)
    assert found.error == pytest.approx(0.1)
    assert (found.better, found.count) == (2, 2)


def test_the_cache_gives_back_what_was_put_in(tmp_path: Path) -> None:
    graphs, _ = workload(5, seed=0)
    rows = [Rows(np.full((count, 3), count, np.float32)) for count in (2, 1)]
    made = [Rebuilt((graphs[0], None, graphs[1]), {"While": 2}), Rebuilt((None,)), Rebuilt(tuple(rows))]
    cache.write(tmp_path / "kept.npz", made)
    found = cache.read(tmp_path / "kept.npz")
    assert found is not None
    assert found[0].unknown == {"While": 2}
    assert [seen is None for seen in found[0].seen] == [False, True, False]
    for old, new in zip((graphs[0], graphs[1]), (found[0].seen[0], found[0].seen[2]), strict=True):
        for name in ("types", "features", "parents", "edges", "edge_kinds"):
            assert np.array_equal(getattr(old, name), getattr(new, name))
        assert (old.flops, old.bytes, old.cores) == (new.flops, new.bytes, new.cores)
    assert [seen.values.tolist() for seen in found[2].seen] == [row.values.tolist() for row in rows]


@pytest.mark.parametrize("content", [b"", b"PK\x03\x04 cut short", b"\x93NUMPY"])
def test_a_damaged_cache_is_as_none(tmp_path: Path, content: bytes) -> None:
    (tmp_path / "kept.npz").write_bytes(content)
    assert cache.read(tmp_path / "kept.npz") is None


def test_the_rarest_stratum_comes_first() -> None:
    keys: list[Stratum] = [*[(1,)] * 5, *[(2,)] * 2, (3,)]
    taken: Counter[Stratum] = Counter({(3,): 4})
    picked = pick_evenly(keys, 5, taken)
    assert Counter(keys[position] for position in picked) == {(1,): 3, (2,): 2}
    assert len(set(picked)) == 5
    assert taken[(1,)] == 3


def test_batches_hold_company_of_each_workload() -> None:
    numbers = np.repeat(np.arange(10), 64)
    found = batches(numbers, 128, np.random.default_rng(0))
    assert sorted(np.concatenate(found).tolist()) == list(range(640))
    for batch in found:
        assert min(Counter(numbers[batch].tolist()).values()) >= 16


class _StopError(Exception):
    pass


@pytest.mark.parametrize("kind", ["gcn", "gnn"])
def test_an_interrupted_training_resumes_to_the_same_model(tmp_path: Path, kind: str) -> None:
    data = data_set(3)

    def stop(epoch: int, loss: float, kept: float) -> None:
        if epoch == 2:
            raise _StopError

    whole = train(data, kind, seed=0, epochs=4, output=tmp_path / "whole.pt")
    with pytest.raises(_StopError):
        train(data, kind, seed=0, epochs=4, output=tmp_path / "cut.pt", told=stop)
    epochs: list[int] = []
    resumed = train(
        data, kind, seed=0, epochs=4, output=tmp_path / "cut.pt",
        told=lambda epoch, loss, kept: epochs.append(epoch),
    )  # fmt: skip
    assert epochs[0] > 1
    test = samples("new", seed=9)
    assert np.allclose(
        whole.model.predict("new", test.seen).secs, resumed.model.predict("new", test.seen).secs
    )
    assert not list(tmp_path.glob("*.resume"))


def test_a_checkpoint_ranks_what_it_never_saw_and_learns_on(tmp_path: Path) -> None:
    trained = train(data_set(), "gnn", seed=0, epochs=8, output=tmp_path / "m.pt")
    trained.model.save(tmp_path / "m.pt")
    test = samples("new", seed=9, count=120)
    estimate = pairwise_accuracy([graph.log_estimate for graph in test.seen], test.secs)
    model = create_cost_model(str(tmp_path / "m.pt"))
    before = pairwise_accuracy(model.predict("new", test.seen).secs[60:], test.secs[60:])
    assert before is not None and estimate is not None
    assert before > estimate + 0.03
    model.update("new", test.seen[:60], 50.0 * test.secs[:60], budget_secs=60.0)
    ratio = model.predict("new", test.seen[60:]).secs / (50.0 * test.secs[60:])
    assert 0.7 < np.exp(np.mean(np.log(ratio))) < 1.4
