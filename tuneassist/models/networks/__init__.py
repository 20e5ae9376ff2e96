"""Networks that are built in, defined with `torch.nn`; `tuneassist.workloads.models` lists them."""

from __future__ import annotations

from collections.abc import Callable

import torch
from torch import Tensor, nn

from tuneassist.models.networks import convolutional as images
from tuneassist.models.networks import sequence as sequences
from tuneassist.records import WorkloadInfo

_SEED = 20190426
_CALIBRATION_BATCH = 4

_Shape = tuple[int, ...]


def _encoder(layers: int, width: int, heads: int) -> Callable[[_Shape], nn.Module]:
    return lambda shape: sequences.Bert(layers, width, heads, tokens=shape[1])


_BUILDERS: dict[str, Callable[[_Shape], nn.Module]] = {
    "resnet18": lambda shape: images.resnet((2, 2, 2, 2), bottleneck=False),
    "resnet50": lambda shape: images.resnet((3, 4, 6, 3), bottleneck=True),
    "resnet-tiny": lambda shape: images.resnet((2, 2), bottleneck=False, width=8, classes=10),
    "mobilenet-v2": lambda shape: images.inverted_residual_network(images.MOBILENET_V2, excite=False),
    "efficientnet-b0": lambda shape: images.inverted_residual_network(images.EFFICIENTNET_B0, excite=True),
    "vgg11": lambda shape: images.vgg(((64,), (128,), (256, 256), (512, 512), (512, 512))),
    "unet-small": lambda shape: images.UNet((16, 32, 64, 128)),
    "vit-tiny": lambda shape: sequences.VisionTransformer(12, 192, 3, size=shape[2]),
    "bert-tiny": _encoder(2, 128, 2),
    "bert-base": _encoder(12, 768, 12),
    "gpt2-block": lambda shape: sequences.EncoderBlock(
        shape[2], 12, norm_first=True, causal=True, tanh_gelu=True
    ),
    "llama-block": lambda shape: sequences.LlamaBlock(shape[2], 16, 2816, tokens=shape[1]),
    "lstm": lambda shape: sequences.Lstm(shape[2], 128),
}
"""By name, from the shape of the input."""


def build_network(info: WorkloadInfo) -> nn.Module:
    """The network of a built-in model in evaluation mode; the same weights at every call.

    Convolutions start as in He et al. 2015 (arXiv 1502.01852), and batch norms hold the statistics of one
    random batch, so that activations keep their size through all layers, as in a trained network.
    """
    (tensor,) = info.inputs
    with torch.random.fork_rng(devices=[]), torch.no_grad():
        torch.manual_seed(_SEED)
        network = _BUILDERS[info.network](tensor.shape)
        norms = [module for module in network.modules() if isinstance(module, nn.BatchNorm2d)]
        for module in network.modules():
            if isinstance(module, nn.Conv2d):
                nn.init.kaiming_normal_(module.weight, nonlinearity="relu")
        if norms:
            _calibrate(network, norms, torch.randn(_CALIBRATION_BATCH, *tensor.shape[1:]))
    return network.eval()


def _calibrate(network: nn.Module, norms: list[nn.BatchNorm2d], batch: Tensor) -> None:
    for norm in norms:
        norm.momentum = 1.0
    network.train()
    network(batch)
