"""Boosted trees over rows of features: the baselines `context-relation` and `per-store`.

A candidate is one row (context relation) or several, one for each buffer stored to (per-store). As in
MetaSchedule's XGB model, trees predict each row, a candidate's prediction is the sum over its rows, and a
custom objective passes the error of the sum to all of them.

Two forms. `score` is MetaSchedule's own: the target is the workload's best time over the candidate's, it is
also the weight, and the parameters of the trees are those of `XGBModel`. `log` fits log time, target and
prediction centred per workload, since its level is learned apart, as with every other model here.
"""

from __future__ import annotations

from collections.abc import Callable, Hashable, Sequence
from dataclasses import dataclass
from typing import Any, ClassVar, Literal

import numpy as np
import numpy.typing as npt
import xgboost

from tuneassist.cost_model.boosters import from_bytes, to_bytes
from tuneassist.cost_model.replay import Examples

Array = npt.NDArray[np.float64]
Ints = npt.NDArray[np.int64]
Objective = Callable[[npt.NDArray[Any], xgboost.DMatrix], tuple[Array, Array]]

_LOG = {
    "max_depth": 6, "eta": 0.1, "subsample": 0.8, "colsample_bynode": 0.3, "min_child_weight": 2, "lambda": 2,
    "base_score": 0.0,
}  # fmt: skip
_SCORE = {"max_depth": 10, "eta": 0.2, "gamma": 0.001, "min_child_weight": 0}
"""`XGBConfig` of MetaSchedule."""
_ROUNDS = {"log": 100, "score": 200}
_LEAST_SCORE = 0.01
"""Sums of trees may be negative: below this score the order is kept, but log time hardly grows."""
_FAILED_WEIGHT = 0.3
"""A failed trial's time is made up: it only has to come out slow."""


@dataclass(frozen=True, slots=True, eq=False)
class Rows:
    """What these models see of a candidate: `values` is (rows, columns) float32."""

    values: npt.NDArray[np.float32]
    log_estimate: ClassVar[float] = 0.0
    """No analytic estimate goes into these models (an `AstGraph` has one)."""


class RowTrees:
    """Boosted trees that give log time up to a constant of the workload.

    Args:
        columns: Features in a row.
        form: `log` or `score`, as the module says.
        threads: Threads that training and prediction may use.
    """

    def __init__(self, columns: int, *, form: Literal["log", "score"] = "log", threads: int = 1) -> None:
        self.columns = columns
        self.form = form
        self._parameters: dict[str, Any] = {
            **(_LOG if form == "log" else _SCORE), "nthread": threads,
            "disable_default_eval_metric": True,
        }  # fmt: skip
        self._restored: xgboost.Booster | None = None
        self._booster: xgboost.Booster | None = None

    def fit(
        self,
        candidates: Sequence[Rows],
        groups: Sequence[Hashable] | npt.NDArray[Any],
        log_secs: npt.ArrayLike,
        *,
        seed: int,
        weights: npt.ArrayLike | None = None,
    ) -> None:
        """Grow trees anew, upon restored ones if there are any.

        Args:
            candidates: n of them.
            groups: (n,) names the workload of each.
            log_secs: (n,) natural log of seconds; only differences within a workload count.
            seed: Decides what each tree sees.
            weights: (n,) of each candidate; None: all alike.

        Raises:
            ValueError: The lengths differ, or a row has another number of columns.
        """
        target = np.asarray(log_secs, dtype=np.float64)
        weight = np.ones(len(target)) if weights is None else np.asarray(weights, dtype=np.float64)
        _, group = np.unique(np.asarray(groups), return_inverse=True)
        if not len(candidates) == len(target) == len(weight) == len(group):
            raise ValueError(
                f"{len(candidates)} candidates, {len(group)} groups, {len(target)} times and {len(weight)} "
                "weights do not match"
            )
        values, owner = self._packed(candidates)
        if not len(values):
            return
        gradients = _log_form if self.form == "log" else _score_form
        self._booster = xgboost.train(
            {**self._parameters, "seed": seed}, xgboost.DMatrix(values), _ROUNDS[self.form],
            obj=gradients(owner, group, target, weight), xgb_model=self._restored,
        )  # fmt: skip

    def predict(self, candidates: Sequence[Rows]) -> Array:
        """Return (n,) log seconds up to a constant of the workload; 0 before anything is learned."""
        booster = self._booster or self._restored
        values, owner = self._packed(candidates)
        if booster is None or not len(values):
            return np.zeros(len(candidates))
        total = np.bincount(owner, booster.inplace_predict(values), minlength=len(candidates))
        if self.form == "log":
            return np.asarray(total, dtype=np.float64)
        above = np.maximum(total, _LEAST_SCORE)
        return np.asarray(above - total - np.log(above), dtype=np.float64)

    def state(self) -> dict[str, npt.NDArray[np.generic]]:
        """The trees as the bytes of XGBoost's own format."""
        booster = self._booster or self._restored
        return {} if booster is None else {"trees": to_bytes(booster)}

    def restore(self, state: dict[str, npt.NDArray[np.generic]]) -> None:
        """Take over what `state` gave; ValueError if it does not fit."""
        restored = from_bytes(state["trees"]) if "trees" in state else None
        if restored is not None and restored.num_features() != self.columns:
            raise ValueError(f"the trees take {restored.num_features()} features, not {self.columns}")
        self._restored, self._booster = restored, None

    def _packed(self, candidates: Sequence[Rows]) -> tuple[npt.NDArray[np.float32], Ints]:
        """All rows under each other, and the candidate of each."""
        for candidate in candidates:
            if candidate.values.ndim != 2 or candidate.values.shape[1] != self.columns:
                raise ValueError(f"rows must be (rows, {self.columns}), not {candidate.values.shape}")
        counts = [len(candidate.values) for candidate in candidates]
        values = np.concatenate(
            [np.zeros((0, self.columns), np.float32), *(candidate.values for candidate in candidates)]
        )
        return values, np.repeat(np.arange(len(candidates)), counts)


def _log_form(owner: Ints, group: Ints, target: Array, weight: Array) -> Objective:
    """Squared error of (n,) log times, centred per group."""
    rows = np.bincount(owner, minlength=len(target))[owner]
    mass = np.maximum(np.bincount(group, weight), 1e-12)

    def objective(predicted: npt.NDArray[Any], _: xgboost.DMatrix) -> tuple[Array, Array]:
        error = np.bincount(owner, predicted, minlength=len(target)) - target
        error -= (np.bincount(group, weight * error) / mass)[group]
        # Rows of one candidate often fall into one leaf and move together, so a step counts once a row.
        return (weight * error)[owner], weight[owner] * rows

    return objective


def _score_form(owner: Ints, group: Ints, target: Array, weight: Array) -> Objective:
    """Squared error of (n,) scores, the best time of the group over each, weighted by the score itself."""
    best = np.full(group.max() + 1, np.inf)
    np.minimum.at(best, group, target)
    score = np.exp(best[group] - target)
    importance = score * weight

    def objective(predicted: npt.NDArray[Any], _: xgboost.DMatrix) -> tuple[Array, Array]:
        error = np.bincount(owner, predicted, minlength=len(target)) - score
        return (importance * error)[owner], importance[owner]

    return objective


class RowRanker:
    """`RowTrees` as the trainable part of a cost model; its `graphs` are `Rows`.

    Args:
        kind: `context-relation` or `per-store`.
        columns: Features in a row.
        form: `log` or `score`, as the module says.
        seed: Decides what each tree sees.
        threads: Threads that training and prediction may use.
    """

    def __init__(
        self, kind: str, columns: int, *, form: Literal["log", "score"], seed: int, threads: int = 1
    ) -> None:
        self.kind = kind
        self._seed = seed
        self._trees = RowTrees(columns, form=form, threads=threads)

    @property
    def architecture(self) -> dict[str, int | float | str]:
        """What must be equal for weights to fit."""
        return {"kind": self.kind, "columns": self._trees.columns, "form": self._trees.form}

    def inputs(self, graphs: Sequence[Any]) -> Sequence[Any]:
        """The rows as they are."""
        return graphs

    def correction(self, inputs: Sequence[Any]) -> Array:
        """Return (n,) log time up to a constant of the workload."""
        return self._trees.predict(inputs)

    def fit(self, examples: Examples, *, budget_secs: float) -> None:
        """Grow trees anew; it takes a second or so for some hundred examples."""
        if len(examples.graphs) < 2 or budget_secs <= 0:
            return
        rows: list[Any] = list(examples.graphs)
        weight = examples.weight * np.where(examples.failed, _FAILED_WEIGHT, 1.0)
        left = examples.target - examples.estimate
        self._trees.fit(rows, examples.workload, left, seed=self._seed, weights=weight)

    def state(self) -> dict[str, npt.NDArray[np.generic]]:
        """The trees as plain arrays."""
        return self._trees.state()

    def restore(self, state: dict[str, npt.NDArray[np.generic]]) -> None:
        """Take over what `state` gave; ValueError if it does not fit."""
        self._trees.restore(state)
