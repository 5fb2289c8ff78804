# bench/models_step/blocks.py - the models of blocks.hpp, their weights and inputs, in PyTorch eager.
import math

import numpy
import torch
import torch.nn.functional as F
from torch import nn


def fill(tensor, name, size):
    seed = 2166136261
    for c in name.encode():
        seed = ((seed ^ c) * 16777619) & 0xFFFFFFFF
    flat = tensor.view(-1)
    run = 1 << 20
    for begin in range(0, flat.numel(), run):
        count = min(run, flat.numel() - begin)
        h = numpy.arange(begin, begin + count, dtype=numpy.uint32) * numpy.uint32(2654435761) + numpy.uint32(seed)
        h = (h ^ (h >> numpy.uint32(15))) * numpy.uint32(0x2C1B3C6D)
        h ^= h >> numpy.uint32(12)
        values = (h >> numpy.uint32(8)).astype(numpy.float32) * numpy.float32(2**-24) - numpy.float32(0.5)
        flat[begin : begin + count].copy_(torch.from_numpy(values * numpy.float32(size)))


def made(name, shape, dtype):
    tensor = torch.empty(shape, dtype=dtype)
    fill(tensor, name, math.sqrt(12.0))
    return tensor


def fill_parameters(model):
    with torch.no_grad():
        for name, p in model.named_parameters():
            if p.dim() == 1:
                p.fill_(1.0 if "norm" in name and name.endswith("weight") else 0.0)
            else:
                fill(p, name, math.sqrt(12.0 / (p.numel() / p.shape[0])))


class Folder(nn.Module):
    def __init__(self, **children):
        super().__init__()
        for name, child in children.items():
            self.add_module(name.lstrip("_"), child)

    def __getitem__(self, number):
        return self._modules[str(number)]


def attend(q, k, v, heads):  # (B, L, D) each, or split into heads already
    if q.dim() == 3:
        q, k, v = (x.unflatten(2, (heads, -1)).transpose(1, 2) for x in (q, k, v))
    scores = q @ k.transpose(2, 3) * (1 / math.sqrt(q.shape[3]))
    return (scores.softmax(-1) @ v).transpose(1, 2).flatten(2)


class RmsNorm(nn.Module):
    def __init__(self, width):
        super().__init__()
        self.weight = nn.Parameter(torch.ones(width))

    def forward(self, x):
        wide = x.float()
        wide = wide * torch.rsqrt(wide.square().mean(-1, keepdim=True) + 1e-6)
        return wide.to(x.dtype) * self.weight


def rotary(ids, axes=(16, 56, 56)):
    parts = []
    for i, width in enumerate(axes):
        frequencies = 10000.0 ** (-torch.arange(0, width, 2, dtype=torch.float64) / width)
        parts.append(ids[:, i].double()[:, None] * frequencies)
    angles = torch.cat(parts, 1).repeat_interleave(2, 1)
    return angles.cos().float(), angles.sin().float()


def rotate(x, table):
    cosine, sine = table
    even, odd = x.float().unflatten(-1, (-1, 2)).unbind(-1)
    turned = torch.stack((-odd, even), -1).flatten(-2)
    return (x.float() * cosine + turned * sine).to(x.dtype)


def modulated(x, scale, shift):
    return F.layer_norm(x, x.shape[-1:], eps=1e-6) * (1 + scale[:, None]) + shift[:, None]


class Modulation(nn.Module):
    def __init__(self, width, chunks):
        super().__init__()
        self.chunks = chunks
        self.linear = nn.Linear(width, width * chunks)

    def forward(self, conditioning):
        return self.linear(conditioning).chunk(self.chunks, 1)


class FeedForward(nn.Module):
    def __init__(self, width):
        super().__init__()
        self.net = Folder(_0=Folder(proj=nn.Linear(width, 4 * width)), _2=nn.Linear(4 * width, width))

    def forward(self, x):
        up, down = self.net[0].proj, self.net[2]
        return down(F.gelu(up(x), approximate="tanh"))


def heads_of(x, norm, heads):
    return norm(x.unflatten(2, (heads, -1)).transpose(1, 2))


class JointBlock(nn.Module):
    def __init__(self, width, heads):
        super().__init__()
        self.heads = heads
        self.norm1, self.norm1_context = Modulation(width, 6), Modulation(width, 6)
        K = width // heads
        names = "to_q to_k to_v add_q_proj add_k_proj add_v_proj to_add_out".split()
        self.attn = Folder(
            **{name: RmsNorm(K) for name in "norm_q norm_k norm_added_q norm_added_k".split()},
            **{name: nn.Linear(width, width) for name in names},
            to_out=Folder(_0=nn.Linear(width, width)),
        )
        self.ff, self.ff_context = FeedForward(width), FeedForward(width)

    def forward(self, image, text, conditioning, table):
        a, H, T = self.attn, self.heads, text.shape[1]
        i_shift, i_scale, i_gate, i_shift2, i_scale2, i_gate2 = self.norm1(conditioning)
        t_shift, t_scale, t_gate, t_shift2, t_scale2, t_gate2 = self.norm1_context(conditioning)
        x, y = modulated(image, i_scale, i_shift), modulated(text, t_scale, t_shift)
        split = lambda z: z.unflatten(2, (H, -1)).transpose(1, 2)  # noqa: E731
        q = torch.cat((a.norm_added_q(split(a.add_q_proj(y))), a.norm_q(split(a.to_q(x)))), 2)
        k = torch.cat((a.norm_added_k(split(a.add_k_proj(y))), a.norm_k(split(a.to_k(x)))), 2)
        v = torch.cat((split(a.add_v_proj(y)), split(a.to_v(x))), 2)
        z = attend(rotate(q, table), rotate(k, table), v, H)
        image = image + i_gate[:, None] * a.to_out[0](z[:, T:])
        text = text + t_gate[:, None] * a.to_add_out(z[:, :T])
        image = image + i_gate2[:, None] * self.ff(modulated(image, i_scale2, i_shift2))
        text = text + t_gate2[:, None] * self.ff_context(modulated(text, t_scale2, t_shift2))
        return image, text


class SingleBlock(nn.Module):
    def __init__(self, width, heads):
        super().__init__()
        self.heads = heads
        self.norm = Modulation(width, 3)
        self.proj_mlp, self.proj_out = nn.Linear(width, 4 * width), nn.Linear(5 * width, width)
        K = width // heads
        self.attn = Folder(
            norm_q=RmsNorm(K), norm_k=RmsNorm(K), **{name: nn.Linear(width, width) for name in "to_q to_k to_v".split()}
        )

    def forward(self, x, conditioning, table):
        a, H = self.attn, self.heads
        shift, scale, gate = self.norm(conditioning)
        y = modulated(x, scale, shift)
        q, k = rotate(heads_of(a.to_q(y), a.norm_q, H), table), rotate(heads_of(a.to_k(y), a.norm_k, H), table)
        z = attend(q, k, a.to_v(y).unflatten(2, (H, -1)).transpose(1, 2), H)
        hidden = F.gelu(self.proj_mlp(y), approximate="tanh")
        return x + gate[:, None] * self.proj_out(torch.cat((z, hidden), 2))


class Embedder(nn.Module):
    def __init__(self, width_in, width):
        super().__init__()
        self.linear_1, self.linear_2 = nn.Linear(width_in, width), nn.Linear(width, width)

    def forward(self, x):
        return self.linear_2(F.silu(self.linear_1(x)))


def features(numbers):
    angles = (numbers * 1000)[:, None] * (torch.arange(128) * (-math.log(10000.0) / 128)).exp()
    return torch.cat((angles.cos(), angles.sin()), 1)


class Flux(nn.Module):
    def __init__(self, dtype):
        super().__init__()
        D, H = 3072, 24
        self.time_text_embed = Folder(
            timestep_embedder=Embedder(256, D), guidance_embedder=Embedder(256, D), text_embedder=Embedder(768, D)
        )
        self.context_embedder, self.x_embedder = nn.Linear(4096, D), nn.Linear(64, D)
        self.transformer_blocks = nn.ModuleList([JointBlock(D, H)])
        self.single_transformer_blocks = nn.ModuleList([SingleBlock(D, H), SingleBlock(D, H)])
        self.norm_out, self.proj_out = Modulation(D, 2), nn.Linear(D, 64)
        fill_parameters(self)
        self.tokens, self.text = made("tokens", (1, 256, 64), dtype), made("text", (1, 128, 4096), dtype)
        self.pooled, self.target = made("pooled", (1, 768), dtype), made("target", (1, 256, 64), torch.float32)
        self.sigma, self.guidance = torch.tensor([0.7], dtype=torch.float32), torch.tensor([3.5], dtype=torch.float32)
        places = torch.arange(256)
        ids = torch.cat((torch.zeros(128, 3), torch.stack((0 * places, places // 16, places % 16), 1)))
        self.table = rotary(ids)
        self.dtype = dtype

    def forward(self):
        e = self.time_text_embed
        conditioning = e.timestep_embedder(features(self.sigma).to(self.dtype))
        conditioning = conditioning + e.guidance_embedder(features(self.guidance).to(self.dtype))
        conditioning = F.silu(conditioning + e.text_embedder(self.pooled))
        image, text = self.x_embedder(self.tokens), self.context_embedder(self.text)
        for block in self.transformer_blocks:
            image, text = block(image, text, conditioning, self.table)
        x = torch.cat((text, image), 1)
        for block in self.single_transformer_blocks:
            x = block(x, conditioning, self.table)
        scale, shift = self.norm_out(conditioning)
        y = self.proj_out(modulated(x[:, 128:], scale, shift))
        return (y.float() - self.target).square().mean()


class Resnet(nn.Module):
    def __init__(self, c_in, c_out, time=1280, groups=32):
        super().__init__()
        self.norm1, self.norm2 = nn.GroupNorm(groups, c_in), nn.GroupNorm(groups, c_out)
        self.conv1, self.conv2 = nn.Conv2d(c_in, c_out, 3, padding=1), nn.Conv2d(c_out, c_out, 3, padding=1)
        self.time_emb_proj = nn.Linear(time, c_out)
        self.conv_shortcut = nn.Conv2d(c_in, c_out, 1) if c_in != c_out else None

    def forward(self, x, time):
        h = self.conv1(F.silu(self.norm1(x))) + self.time_emb_proj(F.silu(time))[:, :, None, None]
        h = self.conv2(F.silu(self.norm2(h)))
        return (x if self.conv_shortcut is None else self.conv_shortcut(x)) + h


class CrossAttention(nn.Module):
    def __init__(self, C, E, heads=10):
        super().__init__()
        self.heads = heads
        self.to_q = nn.Linear(C, C, bias=False)
        self.to_k, self.to_v = nn.Linear(E, C, bias=False), nn.Linear(E, C, bias=False)
        self.to_out = Folder(_0=nn.Linear(C, C))

    def forward(self, x, context):
        return self.to_out[0](attend(self.to_q(x), self.to_k(context), self.to_v(context), self.heads))


class TransformerBlock(nn.Module):
    def __init__(self, C, E, heads=10):
        super().__init__()
        self.norm1, self.norm2, self.norm3 = nn.LayerNorm(C), nn.LayerNorm(C), nn.LayerNorm(C)
        self.attn1, self.attn2 = CrossAttention(C, C, heads), CrossAttention(C, E, heads)
        self.ff = Folder(net=Folder(_0=Folder(proj=nn.Linear(C, 8 * C)), _2=nn.Linear(4 * C, C)))

    def forward(self, x, context):
        y = self.norm1(x)
        x = x + self.attn1(y, y)
        x = x + self.attn2(self.norm2(x), context)
        value, gate = self.ff.net[0].proj(self.norm3(x)).chunk(2, -1)
        return x + self.ff.net[2](value * F.gelu(gate))


class SpatialTransformer(nn.Module):
    def __init__(self, C, E, depth, heads=10, groups=32):
        super().__init__()
        self.norm = nn.GroupNorm(groups, C, eps=1e-6)
        self.proj_in, self.proj_out = nn.Linear(C, C), nn.Linear(C, C)
        self.transformer_blocks = nn.ModuleList([TransformerBlock(C, E, heads) for _ in range(depth)])

    def forward(self, x, context):
        y = self.proj_in(self.norm(x).flatten(2).transpose(1, 2))
        for block in self.transformer_blocks:
            y = block(y, context)
        return x + self.proj_out(y).transpose(1, 2).reshape(x.shape)


class Sdxl(nn.Module):
    def __init__(self, dtype):
        super().__init__()
        self.resnets = nn.ModuleList([Resnet(320, 640), Resnet(640, 640)])
        self.attentions = nn.ModuleList([SpatialTransformer(640, 2048, 2), SpatialTransformer(640, 2048, 2)])
        self.downsamplers = nn.ModuleList([Folder(conv=nn.Conv2d(640, 640, 3, stride=2, padding=1))])
        fill_parameters(self)
        self.x, self.time = made("x", (1, 320, 32, 32), dtype), made("time", (1, 1280), dtype)
        self.context = made("context", (1, 77, 2048), dtype)
        self.target = made("target", (1, 640, 16, 16), torch.float32)

    def forward(self):
        x = self.x
        for resnet, attention in zip(self.resnets, self.attentions):
            x = attention(resnet(x, self.time), self.context)
        return (self.downsamplers[0].conv(x).float() - self.target).square().mean()
