"""Made-up AST graphs whose time is known, without TVM."""

from __future__ import annotations

import numpy as np
import numpy.typing as npt

from tuneassist.cost_model.graph import COLUMNS, AstGraph
from tuneassist.cost_model.syntax import TYPE_ID

_ESTIMATE = [COLUMNS.index(name) for name in ("root.estimate_sum", "statement.estimate")]
_VECTOR = COLUMNS.index("statement.vector")
_EXTENT = COLUMNS.index("loop.extent")


def chain(extents: list[float], *, estimate: float, vector: float) -> AstGraph:
    """A nest of loops around one store with one load.

    Args:
        extents: log2 of each loop's extent, outermost first.
        estimate: log2 of the estimated cycles.
        vector: log2 of the vector width.
    """
    loops = len(extents)
    types = [TYPE_ID["root"], *[TYPE_ID["loop"]] * loops, TYPE_ID["store"], TYPE_ID["load"]]
    x = np.zeros((len(types), len(COLUMNS)), dtype=np.float32)
    x[1 : loops + 1, _EXTENT] = extents
    x[0, _ESTIMATE[0]] = x[loops + 1, _ESTIMATE[1]] = estimate
    x[loops + 1, _VECTOR] = vector
    parents = np.arange(-1, len(types) - 1)
    child = np.arange(1, len(types))
    edges = np.array([[*parents[1:], *child], [*child, *parents[1:]]])
    kinds = np.repeat([0, 1], len(child))
    return AstGraph(np.array(types), x, parents, edges, kinds, flops=1e6, bytes=1e4, cores=2)


def workload(count: int, *, seed: int) -> tuple[list[AstGraph], npt.NDArray[np.float64]]:
    """Graphs and seconds: as estimated, but wide vectors are much faster than the estimate says."""
    random = np.random.default_rng(seed)
    graphs, secs = [], []
    for _ in range(count):
        vector = float(random.integers(0, 6))
        estimate = float(random.uniform(18, 24))
        graphs.append(chain(list(random.uniform(1, 6, 3)), estimate=estimate, vector=vector))
        secs.append(2.0**estimate / 4e9 * 4.0 ** (2.5 - vector) * float(np.exp(random.normal(0, 0.05))))
    return graphs, np.array(secs)
