"""Networks over sequences: transformer encoders and decoder blocks, a vision transformer, an LSTM.

Vaswani et al. 2017 (arXiv 1706.03762); BERT: Devlin et al. 2018 (1810.04805); ViT: Dosovitskiy et al. 2020
(2010.11929); GPT-2: Radford et al. 2019; LLaMA: Touvron et al. 2023 (2302.13971).
"""

from __future__ import annotations

import torch
from torch import Tensor, nn
from torch.nn import functional


class Attention(nn.Module):
    """Multi-head self-attention over (batch, tokens, width)."""

    def __init__(self, width: int, heads: int, *, bias: bool = True, causal: bool = False) -> None:
        super().__init__()
        self.heads = heads
        self.causal = causal
        self.qkv = nn.Linear(width, 3 * width, bias=bias)
        self.out = nn.Linear(width, width, bias=bias)

    def forward(self, x: Tensor, rotation: tuple[Tensor, Tensor] | None = None) -> Tensor:
        batch, tokens, width = x.shape
        split = self.qkv(x).reshape(batch, tokens, 3, self.heads, width // self.heads)
        q, k, v = split.permute(2, 0, 3, 1, 4).unbind(0)
        if rotation is not None:
            q, k = _rotate(q, *rotation), _rotate(k, *rotation)
        scores = q @ k.transpose(-2, -1) * (width // self.heads) ** -0.5
        if self.causal:
            later = torch.ones(tokens, tokens, dtype=torch.bool).triu(1)
            scores = scores.masked_fill(later, -1e9)
        mixed = torch.softmax(scores, dim=-1) @ v
        out: Tensor = self.out(mixed.transpose(1, 2).reshape(batch, tokens, width))
        return out


def _rotate(x: Tensor, cos: Tensor, sin: Tensor) -> Tensor:
    """Rotary position embedding (Su et al. 2021, arXiv 2104.09864)."""
    first, second = x.chunk(2, dim=-1)
    return x * cos + torch.cat([-second, first], dim=-1) * sin


class EncoderBlock(nn.Module):
    """BERT's block (normalised after each part), or ViT's and GPT-2's (before)."""

    def __init__(
        self, width: int, heads: int, *, norm_first: bool, causal: bool = False, tanh_gelu: bool = False
    ) -> None:
        super().__init__()
        self.norm_first = norm_first
        self.attention = Attention(width, heads, causal=causal)
        self.norms = nn.ModuleList([nn.LayerNorm(width), nn.LayerNorm(width)])
        gelu = nn.GELU(approximate="tanh") if tanh_gelu else nn.GELU()
        self.feed_forward = nn.Sequential(nn.Linear(width, 4 * width), gelu, nn.Linear(4 * width, width))

    def forward(self, x: Tensor) -> Tensor:
        for part, norm in zip((self.attention, self.feed_forward), self.norms, strict=True):
            x = x + part(norm(x)) if self.norm_first else norm(x + part(x))
        return x


class Bert(nn.Module):
    """An encoder over token ids (batch, tokens); gives the last hidden states."""

    def __init__(self, layers: int, width: int, heads: int, *, tokens: int, vocabulary: int = 30522) -> None:
        super().__init__()
        self.embed = nn.Embedding(vocabulary, width)
        self.position = nn.Parameter(0.02 * torch.randn(1, tokens, width))
        self.norm = nn.LayerNorm(width)
        self.blocks = nn.Sequential(*(EncoderBlock(width, heads, norm_first=False) for _ in range(layers)))

    def forward(self, ids: Tensor) -> Tensor:
        out: Tensor = self.blocks(self.norm(self.embed(ids) + self.position[:, : ids.shape[1]]))
        return out


class VisionTransformer(nn.Module):
    """A ViT over (batch, 3, size, size)."""

    def __init__(
        self, layers: int, width: int, heads: int, *, size: int = 224, patch: int = 16, classes: int = 1000
    ) -> None:
        super().__init__()
        self.patches = nn.Conv2d(3, width, patch, patch)
        self.token = nn.Parameter(0.02 * torch.randn(1, 1, width))
        self.position = nn.Parameter(0.02 * torch.randn(1, (size // patch) ** 2 + 1, width))
        self.blocks = nn.Sequential(*(EncoderBlock(width, heads, norm_first=True) for _ in range(layers)))
        self.norm = nn.LayerNorm(width)
        self.head = nn.Linear(width, classes)

    def forward(self, x: Tensor) -> Tensor:
        tokens = self.patches(x).flatten(2).transpose(1, 2)
        tokens = torch.cat([self.token.expand(x.shape[0], -1, -1), tokens], dim=1) + self.position
        out: Tensor = self.head(self.norm(self.blocks(tokens))[:, 0])
        return out


class _RmsNorm(nn.Module):
    def __init__(self, width: int) -> None:
        super().__init__()
        self.scale = nn.Parameter(torch.ones(width))

    def forward(self, x: Tensor) -> Tensor:
        return x * torch.rsqrt((x * x).mean(-1, keepdim=True) + 1e-5) * self.scale


class LlamaBlock(nn.Module):
    """A LLaMA decoder block over (batch, tokens, width): RMSNorm, rotary attention, SwiGLU."""

    def __init__(self, width: int, heads: int, hidden: int, *, tokens: int) -> None:
        super().__init__()
        self.norms = nn.ModuleList([_RmsNorm(width), _RmsNorm(width)])
        self.attention = Attention(width, heads, bias=False, causal=True)
        self.gate = nn.Linear(width, hidden, bias=False)
        self.up = nn.Linear(width, hidden, bias=False)
        self.down = nn.Linear(hidden, width, bias=False)
        size = width // heads
        frequency = 10000.0 ** (-torch.arange(0, size, 2) / size)
        angle = (torch.arange(tokens)[:, None] * frequency[None]).repeat(1, 2)
        self.register_buffer("cos", angle.cos())
        self.register_buffer("sin", angle.sin())

    def forward(self, x: Tensor) -> Tensor:
        rotation = (self.get_buffer("cos")[: x.shape[1]], self.get_buffer("sin")[: x.shape[1]])
        x = x + self.attention(self.norms[0](x), rotation)
        y = self.norms[1](x)
        out: Tensor = x + self.down(functional.silu(self.gate(y)) * self.up(y))
        return out


class Lstm(nn.Module):
    """An LSTM over (batch, steps, features), unrolled, and a linear head on its last state."""

    def __init__(self, features: int, width: int, *, classes: int = 10) -> None:
        super().__init__()
        self.width = width
        self.step = nn.Linear(features + width, 4 * width)
        self.head = nn.Linear(width, classes)

    def forward(self, x: Tensor) -> Tensor:
        hidden = cell = x.new_zeros(x.shape[0], self.width)
        for index in range(x.shape[1]):
            gates = self.step(torch.cat([x[:, index], hidden], dim=1))
            forget, inward, outward, new = gates.chunk(4, dim=1)
            cell = torch.sigmoid(forget) * cell + torch.sigmoid(inward) * torch.tanh(new)
            hidden = torch.sigmoid(outward) * torch.tanh(cell)
        out: Tensor = self.head(hidden)
        return out
