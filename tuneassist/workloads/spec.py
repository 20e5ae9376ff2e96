"""Workload specs: `resnet18.c2`, `resnet18.c2:layout=NHWC`, `matmul:m=512,n=512,k=512`, `kernels.py:func`."""

from __future__ import annotations

import difflib
from collections.abc import Iterable, Mapping
from fnmatch import fnmatchcase

import psutil

from tuneassist.errors import UsageError
from tuneassist.records import TensorSpec, WorkloadInfo
from tuneassist.workloads._files import parse_file
from tuneassist.workloads._params import LARGEST, Value, Values
from tuneassist.workloads.catalogue import CATALOGUE
from tuneassist.workloads.models import parse_model
from tuneassist.workloads.operators import OPERATORS, Operator, describe

_COPIES = 5
"""Inputs exist in the engine, the zygote and PyTorch; the reference output in double precision."""


def parse_workload(spec: str) -> WorkloadInfo:
    """Return the workload that a spec names.

    Args:
        spec: A catalogue name or an operator kind, then `:` and `name=value` pairs joined by commas; or
            `file.py:function` (not run here) or `module.json`; or a whole model (see `models.parse_model`).

    Raises:
        UsageError: It names nothing (the nearest names are offered), a parameter is unknown, missing,
            ill-typed or out of range, the parameters don't go together, or its tensors exceed the
            memory that is available now.
    """
    text = spec.strip()
    if not text:
        raise UsageError("The workload spec is empty.", remedy=_SEE_LIST)
    for parse in (parse_model, parse_file):
        if (found := parse(text)) is not None:
            return found
    info = _parse_operator(text)
    _check_memory(info)
    return info


def list_workloads(filter: str | None = None) -> list[WorkloadInfo]:  # noqa: A002
    """Return the catalogue, or what of it matches.

    Args:
        filter: A whole name; part of a name, network or operator kind in any case; a pattern with `*`
            and `?` over names; or a whole spec with parameters, which gives that one workload.

    Raises:
        UsageError: The filter is a spec with parameters (or a file) that is not valid.
    """
    if filter is None or not filter.strip():
        return [_catalogued(name) for name in CATALOGUE]
    wanted = filter.strip()
    if ":" in wanted or wanted.endswith((".py", ".json")):
        return [parse_workload(wanted)]
    if wanted.lower() in CATALOGUE:
        return [_catalogued(wanted.lower())]
    return [_catalogued(name) for name in CATALOGUE if _matches(name, wanted.lower())]


def parameters(info: WorkloadInfo) -> Mapping[str, Value]:
    """Every parameter of an operator workload with its value, defaults included; empty for a file."""
    operator = OPERATORS.get(info.op)
    return _values(operator, _pairs(info.spec.partition(":")[2], info.op)) if operator else {}


def values_of(info: WorkloadInfo) -> Values:
    """The parameters of an operator workload as attributes."""
    return Values(**parameters(info))


def prepacked(info: WorkloadInfo) -> str:
    """The input whose layout the tuner may choose, since it is a constant in deployment; else empty."""
    return OPERATORS[info.op].packs if parameters(info).get("prepack") else ""


def nearest_names(name: str, limit: int = 4) -> list[str]:
    """Catalogue names and operator kinds that resemble a name, nearest first."""
    known = [*CATALOGUE, *OPERATORS]
    wanted = name.lower()
    parts = [item for item in known if len(wanted) > 2 and (wanted in item or item in wanted)]
    close = difflib.get_close_matches(wanted, known, n=limit, cutoff=0.5)
    return list(dict.fromkeys([*close, *parts]))[:limit]


def unknown_workload(name: str) -> UsageError:
    """The error for a name that is nothing we know, with the nearest names."""
    near = nearest_names(name)
    suggestion = f"Did you mean {' or '.join(near)}? " if near else ""
    return UsageError(f"No workload is called {name!r}.", remedy=suggestion + _SEE_LIST)


_SEE_LIST = "`tuneassist workloads` lists all names, `tuneassist workloads --kinds` the operators."


def _parse_operator(text: str) -> WorkloadInfo:
    head, _, rest = (part.strip() for part in text.partition(":"))
    overrides = _pairs(rest, head)
    if head in OPERATORS:
        return _described(OPERATORS[head], overrides)
    name = head if head in CATALOGUE else head.lower()
    if name not in CATALOGUE:
        raise unknown_workload(head)
    base = _catalogued(name)
    if not overrides:
        return base
    operator = OPERATORS[base.op]
    before = {key: str(value) for key, value in parameters(base).items()}
    after = _values(operator, {**before, **overrides})
    changed = ",".join(f"{key}={value}" for key, value in after.items() if str(value) != before[key])
    title = f"{name}:{changed}" if changed else name
    return describe(operator, after, name=title, network=base.network)


def _catalogued(name: str) -> WorkloadInfo:
    entry = CATALOGUE[name]
    kind, _, rest = entry.spec.partition(":")
    return _described(OPERATORS[kind], _pairs(rest, kind), name=name, network=entry.network)


def _described(
    operator: Operator, texts: dict[str, str], *, name: str = "", network: str = ""
) -> WorkloadInfo:
    return describe(operator, _values(operator, texts), name=name, network=network)


def _matches(name: str, wanted: str) -> bool:
    entry = CATALOGUE[name]
    kind = entry.spec.partition(":")[0]
    if "*" in wanted or "?" in wanted:
        return fnmatchcase(name, wanted)
    return wanted in name or wanted in entry.network.lower() or wanted in kind


def _pairs(text: str, head: str) -> dict[str, str]:
    """Split `a=1,b=2` into texts by name."""
    pairs: dict[str, str] = {}
    for part in filter(None, (item.strip() for item in text.split(","))):
        key, equals, value = (item.strip() for item in part.partition("="))
        if not equals or not key or not value:
            raise UsageError(
                f"{head}: {part!r} is not name=value.", remedy=f"Write {head}:name=value,name=value."
            )
        if key in pairs:
            raise UsageError(
                f"{head}: {key} is given twice, as {pairs[key]} and {value}.", remedy="Give it once."
            )
        pairs[key] = value
    return pairs


def _values(operator: Operator, texts: Mapping[str, str]) -> dict[str, Value]:
    """Turn texts into the value of every parameter, in the operator's order."""
    known = {param.name: param for param in operator.params}
    for key in texts:
        if key not in known:
            near = difflib.get_close_matches(key, known, n=1, cutoff=0.6)
            suggestion = f"Did you mean {near[0]}? " if near else ""
            raise UsageError(
                f"{operator.kind} has no parameter {key!r}.", remedy=f"{suggestion}It takes {_and(known)}."
            )
    missing = [param.name for param in operator.params if param.default is None and param.name not in texts]
    if missing:
        raise UsageError(f"{operator.kind} lacks {_and(missing)}.", remedy=f"Write {operator.usage}.")
    values: dict[str, Value] = {}
    for param in operator.params:
        if param.name not in texts:
            assert param.default is not None
            values[param.name] = param.default
            continue
        try:
            values[param.name] = param.parse(texts[param.name])
        except ValueError as problem:
            raise UsageError(
                f"{operator.kind}: {param.name}={_cut(texts[param.name])} {problem}.",
                remedy=f"{param.name} takes {param.accepts}.",
            ) from problem
    return values


def _check_memory(info: WorkloadInfo) -> None:
    for tensor in (*info.inputs, info.output):
        if _elements(tensor) > LARGEST:
            raise UsageError(
                f"{info.name} is too large: {tensor.name} would have {_elements(tensor):,} elements.",
                remedy=f"TVM indexes with 32 bits: keep every tensor below {LARGEST:,} elements.",
            )
    available = psutil.virtual_memory().available
    if _COPIES * info.bytes > available:
        raise UsageError(
            f"{info.name} is too large for memory: its tensors take {info.bytes / 2**30:.1f} GiB, tuning "
            f"holds about {_COPIES} times that, and {available / 2**30:.1f} GiB are available.",
            remedy="Take smaller sizes, a smaller dtype, or free memory.",
        )


def _elements(tensor: TensorSpec) -> int:
    elements = 1
    for extent in tensor.shape:
        elements *= extent
    return elements


def _and(names: Iterable[str]) -> str:
    *head, last = names
    return f"{', '.join(head)} and {last}" if head else last


def _cut(text: str) -> str:
    return text if len(text) <= 40 else f"{text[:37]}..."
