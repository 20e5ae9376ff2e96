"""A ranker of boosted trees over pooled AST features: `tree`."""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np
import numpy.typing as npt
import xgboost

from tuneassist.cost_model.graph import AstGraph
from tuneassist.cost_model.pooling import POOLED_COLUMNS, pool
from tuneassist.cost_model.replay import Examples

_FAILED_WEIGHT = 0.3
"""A failed trial's time is made up: it only has to come out slow."""
_ROUNDS = 120


class TreeRanker:
    """Boosted trees that correct the analytic estimate.

    Args:
        seed: Decides what each tree sees.
        threads: Threads that training and prediction may use.
    """

    kind = "tree"

    def __init__(self, *, seed: int, threads: int = 1) -> None:
        self._parameters = {
            "max_depth": 6, "eta": 0.08, "subsample": 0.8, "colsample_bynode": 0.3, "min_child_weight": 2,
            "lambda": 2, "nthread": threads, "seed": seed, "base_score": 0.0,
        }  # fmt: skip
        self._booster: xgboost.Booster | None = None

    @property
    def architecture(self) -> dict[str, int | float | str]:
        """What must be equal for weights to fit."""
        return {"kind": self.kind, "columns": len(POOLED_COLUMNS)}

    def correction(self, graphs: Sequence[AstGraph]) -> npt.NDArray[np.float64]:
        """Return (n,) what to add to the log of the analytic estimate."""
        if self._booster is None or not graphs:
            return np.zeros(len(graphs))
        predicted: npt.NDArray[np.float32] = self._booster.inplace_predict(pool(graphs))
        return predicted.astype(np.float64)

    def fit(self, examples: Examples, *, budget_secs: float) -> None:
        """Train anew on all examples; it takes a fraction of a second for some hundreds."""
        if len(examples.graphs) < 2 or budget_secs <= 0:
            return
        residual = examples.centred(examples.target - examples.estimate)
        weight = examples.weight * np.where(examples.failed, _FAILED_WEIGHT, 1.0)
        data = xgboost.DMatrix(pool(examples.graphs), residual, weight=weight)
        self._booster = xgboost.train(self._parameters, data, _ROUNDS)

    def state(self) -> dict[str, npt.NDArray[np.generic]]:
        """The trees as the bytes of XGBoost's own format."""
        if self._booster is None:
            return {}
        return {"booster": np.frombuffer(bytes(self._booster.save_raw("ubj")), dtype=np.uint8).copy()}

    def restore(self, state: dict[str, npt.NDArray[np.generic]]) -> None:
        """Take over what `state` gave; KeyError or ValueError if it does not fit."""
        if not state:
            self._booster = None
            return
        booster = xgboost.Booster(self._parameters)
        try:
            booster.load_model(bytearray(state["booster"].tobytes()))
        except xgboost.core.XGBoostError as error:
            raise ValueError(f"the trees can't be read: {error}") from error
        self._booster = booster
