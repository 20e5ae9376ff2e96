"""Named operators as real networks use them, batch 1, float32.

Image shapes are those of the torchvision models at 224x224; the transformers are taken at the sequence
lengths named beside them. ResNet-18 C1 to C12 are the bare convolutions that the field measures, and so
are the other networks' convolutions unless their spec says bias or act.
"""

from __future__ import annotations

from dataclasses import dataclass


@dataclass(frozen=True, slots=True)
class Entry:
    """One named operator."""

    spec: str
    network: str


def _conv(ci: int, h: int, co: int, k: int, s: int = 1, p: int = 0, rest: str = "") -> str:
    """A square conv2d."""
    return f"conv2d:ci={ci},h={h},w={h},co={co},k={k},s={s},p={p}{rest}"


def _depthwise(c: int, h: int, k: int, s: int = 1) -> str:
    """A square depthwise conv2d with padding that keeps the size at stride 1."""
    return f"depthwise_conv2d:c={c},h={h},w={h},k={k},s={s},p={k // 2}"


def _dense(m: int, n: int, k: int, rest: str = ",bias=1") -> str:
    return f"dense:m={m},n={n},k={k}{rest}"


def _attention(heads: int, tokens: int, d: int = 64) -> dict[str, str]:
    """Scores, softmax and the weighted sum of self-attention."""
    return {
        "scores": f"attention_scores:heads={heads},q={tokens},kv={tokens},d={d}",
        "softmax": f"softmax:m={heads * tokens},n={tokens}",
        "context": f"batch_matmul:b={heads},m={tokens},n={d},k={tokens}",
    }


_RESNET18 = {
    "c1": _conv(3, 224, 64, 7, 2, 3),
    "c2": _conv(64, 56, 64, 3, 1, 1),
    "c3": _conv(64, 56, 64, 1),
    "c4": _conv(64, 56, 128, 3, 2, 1),
    "c5": _conv(64, 56, 128, 1, 2),
    "c6": _conv(128, 28, 128, 3, 1, 1),
    "c7": _conv(128, 28, 256, 3, 2, 1),
    "c8": _conv(128, 28, 256, 1, 2),
    "c9": _conv(256, 14, 256, 3, 1, 1),
    "c10": _conv(256, 14, 512, 3, 2, 1),
    "c11": _conv(256, 14, 512, 1, 2),
    "c12": _conv(512, 7, 512, 3, 1, 1),
    "c2-bias-relu": _conv(64, 56, 64, 3, 1, 1, ",bias=1,act=relu"),
    "bn1": "batch_norm:c=64,h=112,w=112",
    "maxpool": "max_pool2d:c=64,h=112,w=112,k=3,s=2,p=1",
    "add-relu": "elementwise:m=64,n=3136,chain=add+relu",
    "avgpool": "global_avg_pool2d:c=512,h=7,w=7",
    "fc": _dense(1, 1000, 512),
}

_RESNET50 = {
    "layer1.conv1": _conv(256, 56, 64, 1),
    "layer1.conv3": _conv(64, 56, 256, 1),
    "layer2.conv1": _conv(512, 28, 128, 1),
    "layer2.conv2-down": _conv(128, 56, 128, 3, 2, 1),
    "layer2.conv3": _conv(128, 28, 512, 1),
    "layer2.shortcut": _conv(256, 56, 512, 1, 2),
    "layer3.conv1": _conv(1024, 14, 256, 1),
    "layer3.conv2-down": _conv(256, 28, 256, 3, 2, 1),
    "layer3.conv3": _conv(256, 14, 1024, 1),
    "layer3.shortcut": _conv(512, 28, 1024, 1, 2),
    "layer4.conv1": _conv(2048, 7, 512, 1),
    "layer4.conv3": _conv(512, 7, 2048, 1),
    "layer4.shortcut": _conv(1024, 14, 2048, 1, 2),
    "fc": _dense(1, 1000, 2048),
}

_MOBILENET_V2 = {
    "stem": _conv(3, 224, 32, 3, 2, 1),
    "dw32": _depthwise(32, 112, 3),
    "dw96-down": _depthwise(96, 112, 3, 2),
    "dw144": _depthwise(144, 56, 3),
    "dw192": _depthwise(192, 28, 3),
    "dw384": _depthwise(384, 14, 3),
    "dw576-down": _depthwise(576, 14, 3, 2),
    "dw960": _depthwise(960, 7, 3),
    "expand96": _conv(16, 112, 96, 1),
    "expand384": _conv(64, 14, 384, 1),
    "project24": _conv(144, 56, 24, 1),
    "project160": _conv(960, 7, 160, 1),
    "head": _conv(320, 7, 1280, 1),
    "relu6": "elementwise:m=96,n=12544,chain=relu6",
}

_EFFICIENTNET_B0 = {
    "dw144-k5": _depthwise(144, 56, 5, 2),
    "dw240-k5": _depthwise(240, 28, 5),
    "dw480-k3": _depthwise(480, 14, 3),
    "dw672-k5": _depthwise(672, 14, 5),
    "dw1152-k5": _depthwise(1152, 7, 5),
    "expand240": _conv(40, 28, 240, 1),
    "expand672": _conv(112, 14, 672, 1),
    "project192": _conv(1152, 7, 192, 1),
    "squeeze": _dense(1, 28, 672),
    "silu": "silu:m=672,n=196",
}

_RESNEXT50 = {
    "group-conv1": _conv(128, 56, 128, 3, 1, 1, ",groups=32"),
    "group-conv3": _conv(512, 14, 512, 3, 1, 1, ",groups=32"),
}

_BERT_BASE = {  # 128 tokens
    "query": _dense(128, 768, 768),
    **_attention(12, 128),
    "ffn1": _dense(128, 3072, 768),
    "ffn1-gelu": _dense(128, 3072, 768, ",bias=1,act=gelu"),
    "ffn2": _dense(128, 768, 3072),
    "gelu": "gelu:m=128,n=3072",
    "bias-gelu": "elementwise:m=128,n=3072,chain=bias+gelu",
    "layer-norm": "layer_norm:m=128,n=768",
}

_GPT2 = {  # 256 tokens; lm-head generates one
    "qkv": _dense(256, 2304, 768),
    **_attention(12, 256),
    "mlp-fc": _dense(256, 3072, 768, ",bias=1,act=gelu_tanh"),
    "mlp-proj": _dense(256, 768, 3072),
    "layer-norm": "layer_norm:m=256,n=768",
    "lm-head": _dense(1, 50257, 768, ""),
}

_VIT_B16 = {  # 197 tokens
    "patches": _conv(3, 224, 768, 16, 16, 0, ",bias=1"),
    "qkv": _dense(197, 2304, 768),
    **_attention(12, 197),
    "mlp1": _dense(197, 3072, 768, ",bias=1,act=gelu"),
    "mlp2": _dense(197, 768, 3072),
    "layer-norm": "layer_norm:m=197,n=768",
}

_LLAMA_7B = {  # 32 tokens; decode generates one with 512 before it
    "q-proj": _dense(32, 4096, 4096, ""),
    "gate-proj": _dense(32, 11008, 4096, ""),
    "down-proj": _dense(32, 4096, 11008, ""),
    **_attention(32, 32, 128),
    "rms-norm": "rms_norm:m=32,n=4096",
    "swiglu": "elementwise:m=32,n=11008,chain=silu+mul",
    "decode-q-proj": _dense(1, 4096, 4096, ""),
    "decode-scores": "attention_scores:heads=32,q=1,kv=512,d=128,softmax=1",
}

_OTHERS = {
    "wav2vec2.conv2": ("conv1d:ci=512,w=3199,co=512,k=3,s=2,act=gelu", "wav2vec2"),
    "whisper-base.conv1": ("conv1d:ci=80,w=3000,co=512,k=3,p=1,bias=1,act=gelu", "whisper-base"),
    "r3d-18.layer1": ("conv3d:ci=64,depth=8,h=56,w=56,co=64,k=3,p=1", "r3d-18"),
    "dcgan.up2": ("conv2d_transpose:ci=512,h=4,w=4,co=256,k=4,s=2,p=1", "dcgan"),
    "dcgan.up4": ("conv2d_transpose:ci=128,h=16,w=16,co=64,k=4,s=2,p=1", "dcgan"),
    "unet.up1": ("conv2d_transpose:ci=1024,h=28,w=28,co=512,k=2,s=2,bias=1", "unet"),
    "inception-v3.avgpool": ("avg_pool2d:c=192,h=35,w=35,k=3,s=1,p=1", "inception-v3"),
    "vgg16.maxpool1": ("max_pool2d:c=64,h=224,w=224,k=2,s=2", "vgg16"),
    "generic.matmul-512": ("matmul:m=512,n=512,k=512", ""),
    "generic.matmul-1024": ("matmul:m=1024,n=1024,k=1024", ""),
    "generic.matvec-4096": ("matmul:m=1,n=4096,k=4096", ""),
    "generic.batch-matmul": ("batch_matmul:b=16,m=128,n=128,k=128", ""),
    "generic.sum-rows": ("reduction:m=1024,n=1024,func=sum,axis=1", ""),
    "generic.sum-columns": ("reduction:m=1024,n=1024,func=sum,axis=0", ""),
    "generic.max-rows": ("reduction:m=1024,n=1024,func=max,axis=1", ""),
    "generic.mean-rows": ("reduction:m=1024,n=1024,func=mean,axis=1", ""),
    "generic.transpose": ("transpose:m=1024,n=1024", ""),
    "generic.nchw-to-nhwc": ("transpose:m=64,n=3136", ""),
    "generic.bias-relu": ("elementwise:m=1024,n=1024,chain=bias+relu", ""),
    "generic.add-mul-tanh": ("elementwise:m=1024,n=1024,chain=add+mul+tanh", ""),
    "generic.log-softmax": ("log_softmax:m=128,n=1000", ""),
}

_NETWORKS = {
    "resnet18": _RESNET18,
    "resnet50": _RESNET50,
    "mobilenet-v2": _MOBILENET_V2,
    "efficientnet-b0": _EFFICIENTNET_B0,
    "resnext50": _RESNEXT50,
    "bert-base": _BERT_BASE,
    "gpt2": _GPT2,
    "vit-b16": _VIT_B16,
    "llama-7b": _LLAMA_7B,
}

CATALOGUE: dict[str, Entry] = {
    f"{network}.{name}": Entry(spec, network)
    for network, operators in _NETWORKS.items()
    for name, spec in operators.items()
} | {name: Entry(spec, network) for name, (spec, network) in _OTHERS.items()}
"""Every named operator, in the order of listing."""
