"""Image networks: ResNet, MobileNetV2, an EfficientNet-B0, VGG, a U-Net.

Layer sizes are those of the papers: He et al. 2015 (arXiv 1512.03385), Sandler et al. 2018 (1801.04381), Tan
and Le 2019 (1905.11946), Simonyan and Zisserman 2014 (1409.1556), Ronneberger et al. 2015 (1505.04597).
"""

from __future__ import annotations

import torch
from torch import Tensor, nn


def _conv(
    ci: int, co: int, k: int, stride: int = 1, groups: int = 1, act: nn.Module | None = None
) -> nn.Sequential:
    """Convolution that keeps the size at stride 1, batch norm, activation."""
    layers: list[nn.Module] = [
        nn.Conv2d(ci, co, k, stride, (k - 1) // 2, groups=groups, bias=False),
        nn.BatchNorm2d(co),
    ]
    return nn.Sequential(*layers, *([act] if act is not None else []))


class _Residual(nn.Module):
    """A body added to its input, which is projected where sizes differ."""

    def __init__(self, body: nn.Module, ci: int, co: int, stride: int) -> None:
        super().__init__()
        self.body = body
        self.project = nn.Identity() if (ci, stride) == (co, 1) else _conv(ci, co, 1, stride)

    def forward(self, x: Tensor) -> Tensor:
        return torch.relu(self.body(x) + self.project(x))


def _basic(ci: int, width: int, stride: int) -> _Residual:
    body = nn.Sequential(_conv(ci, width, 3, stride, act=nn.ReLU()), _conv(width, width, 3))
    return _Residual(body, ci, width, stride)


def _bottleneck(ci: int, width: int, stride: int) -> _Residual:
    body = nn.Sequential(
        _conv(ci, width, 1, act=nn.ReLU()),
        _conv(width, width, 3, stride, act=nn.ReLU()),
        _conv(width, 4 * width, 1),
    )
    return _Residual(body, ci, 4 * width, stride)


def resnet(depths: tuple[int, ...], *, bottleneck: bool, width: int = 64, classes: int = 1000) -> nn.Module:
    """A ResNet with that many blocks a stage."""
    block, growth = (_bottleneck, 4) if bottleneck else (_basic, 1)
    layers: list[nn.Module] = [_conv(3, width, 7, 2, act=nn.ReLU()), nn.MaxPool2d(3, 2, 1)]
    channels = width
    for stage, depth in enumerate(depths):
        for index in range(depth):
            inner = width << stage
            layers.append(block(channels, inner, 2 if stage and not index else 1))
            channels = inner * growth
    return nn.Sequential(*layers, nn.AdaptiveAvgPool2d(1), nn.Flatten(), nn.Linear(channels, classes))


class _SqueezeExcite(nn.Module):
    def __init__(self, channels: int, squeezed: int) -> None:
        super().__init__()
        self.gate = nn.Sequential(
            nn.AdaptiveAvgPool2d(1), nn.Conv2d(channels, squeezed, 1), nn.SiLU(),
            nn.Conv2d(squeezed, channels, 1), nn.Sigmoid(),
        )  # fmt: skip

    def forward(self, x: Tensor) -> Tensor:
        gated: Tensor = x * self.gate(x)
        return gated


class _Inverted(nn.Module):
    """Expand, depthwise, (squeeze and excite,) project; with a shortcut where sizes allow it."""

    def __init__(
        self, ci: int, co: int, k: int, stride: int, expand: int, act: type[nn.Module], *, excite: bool
    ) -> None:
        super().__init__()
        inner = ci * expand
        layers: list[nn.Module] = [_conv(ci, inner, 1, act=act())] if expand > 1 else []
        layers.append(_conv(inner, inner, k, stride, groups=inner, act=act()))
        if excite:
            layers.append(_SqueezeExcite(inner, max(1, ci // 4)))
        self.body = nn.Sequential(*layers, _conv(inner, co, 1))
        self.shortcut = stride == 1 and ci == co

    def forward(self, x: Tensor) -> Tensor:
        out: Tensor = self.body(x)
        return x + out if self.shortcut else out


Stage = tuple[int, int, int, int, int]
"""Expansion, channels, blocks, stride, kernel."""

MOBILENET_V2: tuple[Stage, ...] = (
    (1, 16, 1, 1, 3), (6, 24, 2, 2, 3), (6, 32, 3, 2, 3), (6, 64, 4, 2, 3), (6, 96, 3, 1, 3),
    (6, 160, 3, 2, 3), (6, 320, 1, 1, 3),
)  # fmt: skip
EFFICIENTNET_B0: tuple[Stage, ...] = (
    (1, 16, 1, 1, 3), (6, 24, 2, 2, 3), (6, 40, 2, 2, 5), (6, 80, 3, 2, 3), (6, 112, 3, 1, 5),
    (6, 192, 4, 2, 5), (6, 320, 1, 1, 3),
)  # fmt: skip


def inverted_residual_network(
    stages: tuple[Stage, ...], *, excite: bool, stem: int = 32, head: int = 1280, classes: int = 1000
) -> nn.Module:
    """MobileNetV2 (ReLU6) or, with squeeze and excite, EfficientNet (SiLU)."""
    act: type[nn.Module] = nn.SiLU if excite else nn.ReLU6
    layers: list[nn.Module] = [_conv(3, stem, 3, 2, act=act())]
    channels = stem
    for expand, width, blocks, stride, k in stages:
        for index in range(blocks):
            step = 1 if index else stride
            layers.append(_Inverted(channels, width, k, step, expand, act, excite=excite))
            channels = width
    layers += [_conv(channels, head, 1, act=act()), nn.AdaptiveAvgPool2d(1), nn.Flatten()]
    return nn.Sequential(*layers, nn.Linear(head, classes))


def vgg(widths: tuple[tuple[int, ...], ...], *, classes: int = 1000, hidden: int = 4096) -> nn.Module:
    """A VGG: groups of 3x3 convolutions, each ended by a pooling."""
    layers: list[nn.Module] = []
    channels = 3
    for group in widths:
        for width in group:
            layers += [nn.Conv2d(channels, width, 3, padding=1), nn.ReLU()]
            channels = width
        layers.append(nn.MaxPool2d(2))
    layers += [nn.AdaptiveAvgPool2d(7), nn.Flatten(), nn.Linear(49 * channels, hidden), nn.ReLU()]
    return nn.Sequential(*layers, nn.Linear(hidden, hidden), nn.ReLU(), nn.Linear(hidden, classes))


class UNet(nn.Module):
    """Encoder and decoder with skips, upsampling by transposed convolutions."""

    def __init__(self, widths: tuple[int, ...], *, classes: int = 2) -> None:
        super().__init__()

        def double(ci: int, co: int) -> nn.Module:
            return nn.Sequential(_conv(ci, co, 3, act=nn.ReLU()), _conv(co, co, 3, act=nn.ReLU()))

        inputs = (3, *widths[:-1])
        self.down = nn.ModuleList(double(ci, co) for ci, co in zip(inputs, widths, strict=True))
        pairs = list(zip(widths[:0:-1], widths[-2::-1], strict=True))
        self.up = nn.ModuleList(nn.ConvTranspose2d(ci, co, 2, 2) for ci, co in pairs)
        self.merge = nn.ModuleList(double(2 * co, co) for _, co in pairs)
        self.head = nn.Conv2d(widths[0], classes, 1)

    def forward(self, x: Tensor) -> Tensor:
        skips: list[Tensor] = []
        for index, block in enumerate(self.down):
            x = block(torch.max_pool2d(x, 2) if index else x)
            skips.append(x)
        for up, merge, skip in zip(self.up, self.merge, skips[-2::-1], strict=True):
            x = merge(torch.cat([up(x), skip], dim=1))
        out: Tensor = self.head(x)
        return out
