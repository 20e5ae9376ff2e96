"""XGBoost's trees as plain arrays, for checkpoints."""

from __future__ import annotations

import numpy as np
import numpy.typing as npt
import xgboost


def to_bytes(booster: xgboost.Booster) -> npt.NDArray[np.uint8]:
    """The trees in XGBoost's own format."""
    return np.frombuffer(bytes(booster.save_raw("ubj")), dtype=np.uint8).copy()


def from_bytes(data: npt.NDArray[np.generic]) -> xgboost.Booster:
    """The trees that `to_bytes` gave.

    Raises:
        ValueError: They can't be read.
    """
    booster = xgboost.Booster({"nthread": 1})
    try:
        booster.load_model(bytearray(data.tobytes()))
    except xgboost.core.XGBoostError as error:
        raise ValueError("the trees can't be read") from error
    return booster
