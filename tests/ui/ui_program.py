"""What `tuneassist trial --json` prints for a small program."""

from __future__ import annotations

from typing import Any

_NODES = (
    (0, None, "func", "main", None),
    (1, 0, "loop", "i0_i1_fused in [0, 64) parallel", 0.21),
    (2, 1, "loop", "i2 in [0, 56) serial", -0.1),
    (3, 2, "block", "conv2d_nchw", 1.4),
    (4, 3, "load", "pad_temp[b, rc, y + ry, x + rx] stride 1", 0.7),
    (5, 3, "load", "weight[co, rc, ry, rx] stride 9", 0.4),
    (6, 3, "store", "out[b, co, y, x] stride 1", 0.1),
)


def program(trial_id: int, *, extent: int = 56) -> dict[str, Any]:
    """The object for one trial; another extent is another schedule."""
    head = f"@T.prim_func\ndef main(A: T.Buffer(({extent},))):"
    loops = "\n".join(f"    for i{n} in range({n + 2}):\n        C[i{n}] = A[i{n}] * {n}.0" for n in range(8))
    return {
        "trial_id": trial_id,
        "nodes": [
            {"id": i, "parent": parent, "kind": kind, "label": label, "contribution": weight,
             "detail": {"extent": extent, "strides": [1, 56], "reuse": 56.0}}
            for i, parent, kind, label, weight in _NODES
        ],
        "edges": [[4, 6, "flow"], [5, 6, "flow"]],
        "script": f"{head}\n{loops}\n    for last in range({extent}): pass",
        "trace": "sch.split(l1, factors=[8, 8])",
        "constant": -6.25,
    }  # fmt: skip
