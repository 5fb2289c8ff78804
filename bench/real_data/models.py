# bench/real_data/models.py - the models of models.hpp in PyTorch eager, of the plain blocks of models_step, and their losses.
import math
import os
import sys

import torch
import torch.nn.functional as F
from torch import nn

sys.path.insert(0, os.path.join(os.path.dirname(os.path.abspath(__file__)), "..", "models_step"))
from blocks import Embedder, Folder, JointBlock, Modulation, Resnet, SingleBlock, SpatialTransformer  # noqa: E402
from blocks import features, modulated, rotary  # noqa: E402


def squared_error(prediction, target):  # the mean over pictures of each picture's mean
    return (prediction - target).square().flatten(1).mean(1).mean()


class Unet(nn.Module):
    """Stable Diffusion 1.5's with levels of WIDTHS channels: attention on all but the last, and in the middle."""

    WIDTHS, HEADS, GROUPS, TEXT, LAYERS = (32, 64, 128, 128), 4, 8, 128, 2

    def __init__(self):
        super().__init__()
        W, T, G = self.WIDTHS, 4 * self.WIDTHS[0], self.GROUPS
        resnet = lambda a, b: Resnet(a, b, T, G)  # noqa: E731
        attention = lambda c: SpatialTransformer(c, self.TEXT, 1, self.HEADS, G)  # noqa: E731

        def block(resnets, attentions, **more):
            parts = {"resnets": nn.ModuleList(resnets), **more}
            if attentions:
                parts["attentions"] = nn.ModuleList(attentions)
            return Folder(**parts)

        self.conv_in = nn.Conv2d(4, W[0], 3, padding=1)
        self.time_embedding = Embedder(W[0], T)
        self.time_embedding.linear_2 = nn.Linear(T, T)
        last = len(W) - 1
        down, skips, c = [], [W[0]], W[0]
        for i, width in enumerate(W):
            resnets = [resnet(c if n == 0 else width, width) for n in range(self.LAYERS)]
            more = {}
            if i < last:
                more["downsamplers"] = nn.ModuleList([Folder(conv=nn.Conv2d(width, width, 3, stride=2, padding=1))])
            down.append(block(resnets, [attention(width) for _ in range(self.LAYERS)] if i < last else [], **more))
            skips += [width] * (self.LAYERS + (i < last))
            c = width
        self.down_blocks = nn.ModuleList(down)
        self.mid_block = block([resnet(c, c), resnet(c, c)], [attention(c)])
        up = []
        for i in reversed(range(len(W))):
            resnets = []
            for _ in range(self.LAYERS + 1):
                resnets.append(resnet(c + skips.pop(), W[i]))
                c = W[i]
            more = {"upsamplers": nn.ModuleList([Folder(conv=nn.Conv2d(c, c, 3, padding=1))])} if i > 0 else {}
            up.append(block(resnets, [attention(c) for _ in resnets] if i < last else [], **more))
        self.up_blocks = nn.ModuleList(up)
        self.conv_norm_out = nn.GroupNorm(G, W[0])
        self.conv_out = nn.Conv2d(W[0], 4, 3, padding=1)
        betas = torch.linspace(0.00085**0.5, 0.012**0.5, 1000, dtype=torch.float64) ** 2
        self.kept = (1 - betas).cumprod(0)

    def forward(self, x, timestep, text):
        half = self.WIDTHS[0] // 2
        angles = timestep[:, None] * (torch.arange(half) * (-math.log(10000.0) / half)).exp()
        time = self.time_embedding(torch.cat((angles.cos(), angles.sin()), 1))

        def layer(block, n, x):
            x = block.resnets[n](x, time)
            return block.attentions[n](x, text) if n < len(getattr(block, "attentions", ())) else x

        x = self.conv_in(x)
        skips = [x]
        for block in self.down_blocks:
            for n in range(self.LAYERS):
                x = layer(block, n, x)
                skips.append(x)
            if hasattr(block, "downsamplers"):
                x = block.downsamplers[0].conv(x)
                skips.append(x)
        x = self.mid_block.resnets[1](layer(self.mid_block, 0, x), time)
        for block in self.up_blocks:
            for n in range(self.LAYERS + 1):
                x = layer(block, n, torch.cat((x, skips.pop()), 1))
            if hasattr(block, "upsamplers"):
                x = block.upsamplers[0].conv(F.interpolate(x, size=skips[-1].shape[2:], mode="nearest"))
        return self.conv_out(F.silu(self.conv_norm_out(x)))

    def loss(self, step):
        x, noise, timestep = step["latents"], step["noise"], step["level"]
        kept = self.kept[timestep.long()][:, None, None, None]
        noisy = kept.sqrt().float() * x + (1 - kept).sqrt().float() * noise
        return squared_error(self(noisy, timestep, step["text"]), noise)


class Flux(nn.Module):
    """Flux.1's of width D, with H heads, 2 joint and 4 single blocks."""

    D, H, AXES, TEXT = 192, 6, (8, 12, 12), 128

    def __init__(self):
        super().__init__()
        D, H = self.D, self.H
        self.time_text_embed = Folder(
            timestep_embedder=Embedder(256, D), guidance_embedder=Embedder(256, D), text_embedder=Embedder(self.TEXT, D)
        )
        self.context_embedder, self.x_embedder = nn.Linear(self.TEXT, D), nn.Linear(64, D)
        self.transformer_blocks = nn.ModuleList([JointBlock(D, H) for _ in range(2)])
        self.single_transformer_blocks = nn.ModuleList([SingleBlock(D, H) for _ in range(4)])
        self.norm_out, self.proj_out = Modulation(D, 2), nn.Linear(D, 64)

    def forward(self, x, sigma, text, pooled):
        B, C, h, w = x.shape
        tokens = x.view(B, C, h // 2, 2, w // 2, 2).permute(0, 2, 4, 1, 3, 5).reshape(B, -1, 4 * C)
        e = self.time_text_embed
        conditioning = e.timestep_embedder(features(sigma)) + e.guidance_embedder(features(torch.ones_like(sigma)))
        conditioning = F.silu(conditioning + e.text_embedder(pooled))
        places, T = torch.arange(tokens.shape[1]), text.shape[1]
        ids = torch.stack((0 * places, places // (w // 2), places % (w // 2)), 1)
        table = rotary(torch.cat((torch.zeros(T, 3), ids)), self.AXES)
        image, text = self.x_embedder(tokens), self.context_embedder(text)
        for block in self.transformer_blocks:
            image, text = block(image, text, conditioning, table)
        y = torch.cat((text, image), 1)
        for block in self.single_transformer_blocks:
            y = block(y, conditioning, table)
        scale, shift = self.norm_out(conditioning)
        y = self.proj_out(modulated(y[:, T:], scale, shift))
        return y.view(B, h // 2, w // 2, C, 2, 2).permute(0, 3, 1, 4, 2, 5).reshape(x.shape)

    def loss(self, step):
        x, noise, sigma = step["latents"], step["noise"], step["level"]
        level = sigma[:, None, None, None]
        return squared_error(self((1 - level) * x + level * noise, sigma, step["text"], step["pooled"]), noise - x)
