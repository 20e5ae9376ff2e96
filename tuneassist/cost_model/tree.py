"""A ranker of boosted trees over pooled AST features: `tree`."""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np
import numpy.typing as npt
import xgboost

from tuneassist.cost_model.boosters import from_bytes, to_bytes
from tuneassist.cost_model.graph import AstGraph
from tuneassist.cost_model.pooling import POOLED_COLUMNS, pool
from tuneassist.cost_model.replay import Examples

_FAILED_WEIGHT = 0.3
"""A failed trial's time is made up: it only has to come out slow."""
ROUNDS = 120


class TreeRanker:
    """Boosted trees that correct the analytic estimate.

    Args:
        seed: Decides what each tree sees.
        threads: Threads that training and prediction may use.
        rounds: Trees that a fit grows.
    """

    kind = "tree"

    def __init__(self, *, seed: int, threads: int = 1, rounds: int = ROUNDS) -> None:
        self._rounds = rounds
        self._parameters = {
            "max_depth": 6, "eta": 0.08, "subsample": 0.8, "colsample_bynode": 0.3, "min_child_weight": 2,
            "lambda": 2, "nthread": threads, "seed": seed, "base_score": 0.0,
        }  # fmt: skip
        self._restored: list[xgboost.Booster] = []
        self._booster: xgboost.Booster | None = None

    @property
    def architecture(self) -> dict[str, int | float | str]:
        """What must be equal for weights to fit."""
        return {"kind": self.kind, "columns": len(POOLED_COLUMNS)}

    def inputs(self, graphs: Sequence[AstGraph]) -> npt.NDArray[np.float32]:
        """Return (n, len(POOLED_COLUMNS)) pooled features."""
        return pool(graphs)

    def correction(self, inputs: npt.NDArray[np.float32]) -> npt.NDArray[np.float64]:
        """Return (n,) what to add to the log of the analytic estimate."""
        grown = [] if self._booster is None else [self._booster]
        return _predict([*self._restored, *grown], inputs)

    def shares(self, inputs: npt.NDArray[np.float32]) -> npt.NDArray[np.float64]:
        """Return (n, columns + 1): what each column adds to the correction, and in the end what is constant.

        Shapley values of the trees (Lundberg et al., 2020), as XGBoost computes them.
        """
        grown = [] if self._booster is None else [self._booster]
        total = np.zeros((len(inputs), len(POOLED_COLUMNS) + 1))
        for booster in [*self._restored, *grown]:
            total += booster.predict(xgboost.DMatrix(inputs), pred_contribs=True)
        return total

    def fit(self, examples: Examples, *, budget_secs: float) -> None:
        """Grow trees anew on all examples, upon restored ones if there are any.

        It takes a fraction of a second for some hundred examples.
        """
        if len(examples.graphs) < 2 or budget_secs <= 0:
            return
        pooled = pool(examples.graphs)
        residual = examples.centred(examples.target - examples.estimate - _predict(self._restored, pooled))
        weight = examples.weight * np.where(examples.failed, _FAILED_WEIGHT, 1.0)
        data = xgboost.DMatrix(pooled, residual, weight=weight)
        self._booster = xgboost.train(self._parameters, data, self._rounds)

    def state(self) -> dict[str, npt.NDArray[np.generic]]:
        """The trees as the bytes of XGBoost's own format."""
        boosters = [*self._restored, *([] if self._booster is None else [self._booster])]
        return {f"trees{i}": to_bytes(booster) for i, booster in enumerate(boosters)}

    def restore(self, state: dict[str, npt.NDArray[np.generic]]) -> None:
        """Take over what `state` gave; KeyError or ValueError if it does not fit."""
        self._restored = [from_bytes(state[f"trees{i}"]) for i in range(len(state))]
        self._booster = None


def _predict(boosters: Sequence[xgboost.Booster], pooled: npt.NDArray[np.float32]) -> npt.NDArray[np.float64]:
    total = np.zeros(len(pooled))
    for booster in boosters if len(pooled) else ():
        total += booster.inplace_predict(pooled)
    return total
