"""Matrix products: matmul, batch_matmul, dense and attention scores."""

from __future__ import annotations

from tuneassist.records import TensorSpec
from tuneassist.workloads._operator import (
    FLOATS,
    FLOATS_AND_INT8,
    Operator,
    Tensors,
    check_epilogue,
    dtype_param,
    epilogue_flops,
    epilogue_params,
    output_dtype,
    prepack_param,
    with_bias,
)
from tuneassist.workloads._params import Values, flag, size


def _matmul(v: Values) -> Tensors:
    second = (v.n, v.k) if v.trans_b else (v.k, v.n)
    inputs = (TensorSpec("a", (v.m, v.k), v.dtype), TensorSpec("b", second, v.dtype))
    return inputs, TensorSpec("c", (v.m, v.n), output_dtype(v.dtype))


def _batch_matmul(v: Values) -> Tensors:
    second = (v.b, v.n, v.k) if v.trans_b else (v.b, v.k, v.n)
    inputs = (TensorSpec("a", (v.b, v.m, v.k), v.dtype), TensorSpec("b", second, v.dtype))
    return inputs, TensorSpec("c", (v.b, v.m, v.n), output_dtype(v.dtype))


def _dense(v: Values) -> Tensors:
    inputs = (TensorSpec("data", (v.m, v.k), v.dtype), TensorSpec("weight", (v.n, v.k), v.dtype))
    return with_bias(v, inputs, v.n), TensorSpec("output", (v.m, v.n), output_dtype(v.dtype))


def _attention_scores(v: Values) -> Tensors:
    query = TensorSpec("query", (v.heads, v.q, v.d), v.dtype)
    key = TensorSpec("key", (v.heads, v.kv, v.d), v.dtype)
    return (query, key), TensorSpec("scores", (v.heads, v.q, v.kv), v.dtype)


def _attention_flops(v: Values) -> int:
    scores = v.heads * v.q * v.kv
    return int(scores * (2 * v.d + 1 + (5 if v.softmax else 0)))


_M, _N, _K = (
    size("m", help="rows of the output"),
    size("n", help="columns of the output"),
    size("k", help="summed"),
)
_TRANS_B = flag("trans_b", 0, help="1: the second input is stored as (n, k)")

PRODUCTS = (
    Operator(
        "matmul",
        "c[m,n] = sum over k of a[m,k] b[k,n]",
        (_M, _N, _K, _TRANS_B, dtype_param(FLOATS_AND_INT8), prepack_param(0)),
        _matmul,
        lambda v: 2 * v.m * v.n * v.k,
        fan_in=lambda v: v.k,
        packs="b",
    ),
    Operator(
        "batch_matmul",
        "a matmul for each of b batches",
        (size("b", help="batches"), _M, _N, _K, _TRANS_B, dtype_param(FLOATS_AND_INT8), prepack_param(0)),
        _batch_matmul,
        lambda v: 2 * v.b * v.m * v.n * v.k,
        fan_in=lambda v: v.k,
        packs="b",
    ),
    Operator(
        "dense",
        "a linear layer: data[m,k] times weight[n,k] transposed",
        (_M, _N, _K, *epilogue_params(), dtype_param(FLOATS_AND_INT8), prepack_param(1)),
        _dense,
        lambda v: 2 * v.m * v.n * v.k + epilogue_flops(v, v.m * v.n),
        check=check_epilogue,
        fan_in=lambda v: v.k,
        packs="weight",
    ),
    Operator(
        "attention_scores",
        "query times key transposed, scaled by 1/sqrt(d), with softmax=1 normalised over kv",
        (
            size("heads", help="heads times batch"),
            size("q", help="queries"),
            size("kv", help="keys"),
            size("d", help="width of a head"),
            flag("softmax", 0, help="1: softmax over the keys"),
            dtype_param(FLOATS),
        ),
        _attention_scores,
        _attention_flops,
        magnitude=lambda v: 1.0 / v.kv if v.softmax else 1.0,
    ),
)
