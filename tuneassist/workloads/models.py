"""Specs of whole models, without TVM or torch: built-in networks and model files.

`model:resnet18`, `model:bert-tiny:ids=4x64`, `net.onnx:input=1x3x224x224`, `net.pt2`, `mod.relax`. After the
second colon come shapes by input name, and `layout=NHWC|NCHW`.
"""

from __future__ import annotations

import difflib
import re
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from pathlib import Path

from tuneassist.errors import UsageError
from tuneassist.records import TensorSpec, WorkloadInfo

MODEL, TASK = "model", "model-task"
"""`WorkloadInfo.op` of a whole model, and of a task extracted from one."""

_PREFIX = "model:"
_FILE = re.compile(r"(.+?\.(?:onnx|pt2|relax|json))(?::(.*))?", re.DOTALL)
_RELAX_FUNCTION = '"relax.expr.Function"'
_UNKNOWN = TensorSpec("output", (), "")
_LAYOUTS = ("NHWC", "NCHW")
_LARGEST = 2**31 - 1


@dataclass(frozen=True, slots=True)
class Network:
    """A built-in network; `tuneassist.models.networks` builds it."""

    summary: str
    inputs: tuple[TensorSpec, ...]


def _image(summary: str, size: int = 224) -> Network:
    return Network(summary, (TensorSpec("input", (1, 3, size, size), "float32"),))


def _tokens(summary: str, tokens: int = 128) -> Network:
    return Network(summary, (TensorSpec("ids", (1, tokens), "int64"),))


def _states(summary: str, tokens: int, width: int) -> Network:
    return Network(summary, (TensorSpec("input", (1, tokens, width), "float32"),))


NETWORKS = {
    "resnet18": _image("ResNet-18"),
    "resnet50": _image("ResNet-50"),
    "resnet-tiny": _image("a ResNet of four blocks, 8 channels, for trials of the tool itself", 32),
    "mobilenet-v2": _image("MobileNetV2"),
    "efficientnet-b0": _image("EfficientNet-B0, with squeeze and excite"),
    "vgg11": _image("VGG-11"),
    "unet-small": _image("U-Net of four levels, 16 to 128 channels", 128),
    "vit-tiny": _image("vision transformer, 12 layers of width 192"),
    "bert-tiny": _tokens("BERT encoder, 2 layers of width 128"),
    "bert-base": _tokens("BERT encoder, 12 layers of width 768"),
    "gpt2-block": _states("decoder block of GPT-2 small", 128, 768),
    "llama-block": _states("decoder block like LLaMA's, width 1024", 128, 1024),
    "lstm": _states("LSTM of 16 steps, width 128", 16, 64),
}


def parse_model(spec: str) -> WorkloadInfo | None:
    """Return the model that a spec names, or None if it names no model.

    Its tasks, FLOPs and (of a file) inputs are known once `tuneassist.models` has loaded it.

    Raises:
        UsageError: No network has that name, the file is missing, or what follows the name is wrong.
    """
    if spec.startswith(_PREFIX):
        name, _, rest = spec[len(_PREFIX) :].partition(":")
        return _network(name.strip().lower().replace("_", "-"), rest)
    match = _FILE.fullmatch(spec)
    if match is None:
        return None
    path, rest = Path(match[1]).expanduser().absolute(), match[2] or ""
    if path.suffix == ".json" and not _holds_relax(path):
        return None
    if not path.is_file():
        problem = "is not a file" if path.exists() else "does not exist"
        raise UsageError(f"{match[1]} {problem}.", remedy="Give the path of an existing file.")
    return _info(path.name, str(path), (), rest)


def list_models() -> list[WorkloadInfo]:
    """The built-in networks."""
    return [_network(name, "") for name in NETWORKS]


def network_name(info: WorkloadInfo) -> str:
    """The built-in network of a model, empty for a file."""
    return info.network if info.spec.startswith(_PREFIX) else ""


def model_path(info: WorkloadInfo) -> Path:
    """The file of a model that is none of the built-in networks."""
    match = _FILE.fullmatch(info.spec)
    assert match is not None
    return Path(match[1])


def model_shapes(info: WorkloadInfo) -> dict[str, tuple[int, ...]]:
    """The shapes that the spec gives, by input."""
    return {key: _shape(key, text) for key, text in _options(info).items() if key != "layout"}


def model_layout(info: WorkloadInfo) -> str:
    """The layout that convolutions are tuned in."""
    return _options(info).get("layout", _LAYOUTS[0])


def with_shapes(spec: str, shapes: Mapping[str, tuple[int, ...]]) -> str:
    """The spec of a model with these shapes in place of its own; of anything else, as it is."""
    info = parse_model(spec)
    if info is None or not shapes:
        return spec
    texts = {key: "x".join(map(str, shape)) for key, shape in shapes.items()}
    options = _options(info) | texts
    base = f"{_PREFIX}{info.network}" if network_name(info) else str(model_path(info))
    found = parse_model(_joined(base, options))
    assert found is not None
    return found.spec


def parse_shapes(texts: Sequence[str]) -> dict[str, tuple[int, ...]]:
    """Shapes as flags give them: `input=1,3,224,224`.

    Raises:
        UsageError: One can't be understood, or an input is named twice.
    """
    shapes: dict[str, tuple[int, ...]] = {}
    for text in texts:
        name, equals, extents = text.rpartition("=")
        if not equals or not name.strip():
            raise UsageError(f"--shape {text!r} names no input.", remedy="Write --shape input=1,3,224,224.")
        if name.strip() in shapes:
            raise UsageError(f"--shape gives {name.strip()} twice.", remedy="Give each input once.")
        shapes[name.strip()] = _shape(name.strip(), extents)
    return shapes


def _network(name: str, rest: str) -> WorkloadInfo:
    if name not in NETWORKS:
        near = difflib.get_close_matches(name, NETWORKS, n=3, cutoff=0.4)
        near = near or [known for known in NETWORKS if name and name in known]
        raise UsageError(
            f"No network is called {name!r}.",
            remedy=(f"Did you mean {' or '.join(near)}? " if near else "") + f"Known: {', '.join(NETWORKS)}.",
        )
    info = _info(f"{_PREFIX}{name}", f"{_PREFIX}{name}", NETWORKS[name].inputs, rest)
    return replace(info, network=name)


def _info(name: str, base: str, inputs: tuple[TensorSpec, ...], rest: str) -> WorkloadInfo:
    options = _parsed(base, rest)
    known = {tensor.name: tensor for tensor in inputs}
    for key, text in options.items():
        if key == "layout":
            if text not in _LAYOUTS:
                raise UsageError(
                    f"{base}: layout={text} is not known.", remedy=f"Take {' or '.join(_LAYOUTS)}."
                )
            continue
        shape = _shape(key, text)
        if inputs and key not in known:
            raise UsageError(f"{base} has no input {key!r}.", remedy=f"Its inputs: {', '.join(known)}.")
        if inputs and len(shape) != len(known[key].shape):
            usual = "x".join(map(str, known[key].shape))
            raise UsageError(
                f"{base}: {key}={text} has {len(shape)} dimensions, not {len(known[key].shape)}.",
                remedy=f"Its usual shape is {usual}.",
            )
    given = tuple(
        replace(t, shape=_shape(t.name, options[t.name])) if t.name in options else t for t in inputs
    )
    options = {key: text for key, text in options.items() if (key, text) != ("layout", _LAYOUTS[0])}
    title = _joined(name, options)
    return WorkloadInfo(title, _joined(base, options), MODEL, given, _UNKNOWN, 0)


def _joined(base: str, options: Mapping[str, str]) -> str:
    text = ",".join(f"{key}={value}" for key, value in sorted(options.items()))
    return f"{base}:{text}" if text else base


def _options(info: WorkloadInfo) -> dict[str, str]:
    if network_name(info):
        return _parsed(info.spec, info.spec[len(_PREFIX) :].partition(":")[2])
    match = _FILE.fullmatch(info.spec)
    assert match is not None
    return _parsed(info.spec, match[2] or "")


def _parsed(base: str, rest: str) -> dict[str, str]:
    """Split `a=1x3,layout=NHWC`; the names of inputs may hold anything but a comma."""
    options: dict[str, str] = {}
    for part in filter(None, (item.strip() for item in rest.split(","))):
        key, equals, value = (item.strip() for item in part.rpartition("="))
        if not equals or not key or not value:
            raise UsageError(f"{base}: {part!r} is not name=value.", remedy="Write input=1x3x224x224.")
        if key in options:
            raise UsageError(f"{base}: {key} is given twice.", remedy="Give each input once.")
        options[key] = value
    return options


def _shape(name: str, text: str) -> tuple[int, ...]:
    parts = re.split(r"[x,]", text.strip())
    if not all(part.strip().isascii() and part.strip().isdigit() for part in parts):
        raise UsageError(
            f"The shape {text!r} of {name} is none.", remedy="Write whole numbers, as in 1x3x224x224."
        )
    shape = tuple(int(part) for part in parts)
    elements = 1
    for extent in shape:
        elements *= extent
    if not 0 < elements <= _LARGEST:
        raise UsageError(
            f"The shape {text} of {name} has {elements:,} elements.",
            remedy=f"Every extent is at least 1, and a tensor holds at most {_LARGEST:,} elements.",
        )
    return shape


def _holds_relax(path: Path) -> bool:
    """Whether a saved module is a Relax program; what is wrong with the file is found by its reader."""
    try:
        return _RELAX_FUNCTION in path.read_text(encoding="utf-8")
    except (OSError, ValueError):
        return False
