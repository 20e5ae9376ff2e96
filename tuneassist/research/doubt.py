"""Trials that took much longer than a model of all the others expects: perhaps something else ran."""

from __future__ import annotations

import numpy as np

from tuneassist.cost_model.base import Array, Ranker
from tuneassist.cost_model.bases import base_ranker
from tuneassist.research.evaluate import NO_LIMIT_SECS, examples
from tuneassist.research.samples import DataSet, WorkloadSamples

_PARTS = 5


def doubtful_trials(data: DataSet, ratio: float) -> frozenset[int]:
    """Ids of the ok trials measured slower than expected by at least that ratio.

    Each fifth of every workload's trials is expected by trees that are trained on the other four.
    """
    found: set[int] = set()
    for part in range(_PARTS):
        known = [w.take(np.flatnonzero(np.arange(len(w.secs)) % _PARTS != part)) for w in data.workloads]
        trees = base_ranker("tree", seed=part)
        trees.fit(examples(known), budget_secs=NO_LIMIT_SECS)
        for workload, others in zip(data.workloads, known, strict=True):
            left = workload.take(np.flatnonzero(np.arange(len(workload.secs)) % _PARTS == part)).measured()
            level = np.median(_excess(trees, others.measured()))
            slow = _excess(trees, left) - level > np.log(ratio)
            found |= {trial for trial, is_slow in zip(left.ids, slow, strict=True) if is_slow}
    return frozenset(found)


def _excess(ranker: Ranker, workload: WorkloadSamples) -> Array:
    """(n,) log of measured over predicted seconds, up to the workload's level."""
    estimate = np.array([seen.log_estimate for seen in workload.seen])
    said = ranker.correction(ranker.inputs(workload.seen))
    return np.asarray(np.log(workload.secs) - estimate - said)
