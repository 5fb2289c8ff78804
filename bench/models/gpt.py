# bench/models/gpt.py - bench/models/gpt.hpp in Python: the same operations, weights and batches.
import math

import torch
from torch import nn
from torch.nn import functional as F


class Block(nn.Module):
    def __init__(self, width, heads):
        super().__init__()
        self.heads = heads
        self.norm1 = nn.LayerNorm(width)
        self.qkv = nn.Linear(width, 3 * width)
        self.out = nn.Linear(width, width)
        self.norm2 = nn.LayerNorm(width)
        self.up = nn.Linear(width, 4 * width)
        self.down = nn.Linear(4 * width, width)

    def attention(self, qkv, mask):
        B, T, _ = qkv.shape
        K = qkv.shape[2] // 3 // self.heads
        parts = qkv.view(B, T, 3, self.heads, K).permute(2, 0, 3, 1, 4).reshape(3, B * self.heads, T, K)
        q, k, v = parts.unbind(0)
        scores = torch.baddbmm(mask, q, k.transpose(1, 2), beta=1.0, alpha=1 / math.sqrt(K))
        mixed = torch.bmm(scores.softmax(-1), v)
        return mixed.view(B, self.heads, T, K).transpose(1, 2).reshape(B, T, self.heads * K)

    def forward(self, x, mask):
        x = x + self.out(self.attention(self.qkv(self.norm1(x)), mask))
        return x + self.down(F.gelu(self.up(self.norm2(x))))


class Gpt(nn.Module):
    def __init__(self, width=512, heads=8, layers=12, vocabulary=4096, context=256, seed=1):
        super().__init__()
        self.position = nn.Parameter(torch.empty(context, width))
        self.token = nn.Embedding(vocabulary, width)
        self.layers = layers
        for i in range(layers):
            setattr(self, f"block{i}", Block(width, heads))
        self.norm = nn.LayerNorm(width)
        self.head = nn.Linear(width, vocabulary, bias=False)
        self.mask = torch.full((context, context), -math.inf).triu(1)
        torch.manual_seed(seed)
        with torch.no_grad():
            for name, parameter in self.named_parameters():
                if parameter.dim() > 1:
                    parameter.normal_(0.0, 0.02)
                else:
                    parameter.fill_(1.0 if "norm" in name and name.endswith("weight") else 0.0)

    def forward(self, ids):  # (B, T + 1) tokens; the mean cross entropy of the tokens 1 .. T, so that DDP wraps all of it
        x = self.token(ids[:, :-1]) + self.position
        for i in range(self.layers):
            x = getattr(self, f"block{i}")(x, self.mask)
        logits = self.head(self.norm(x))
        return F.cross_entropy(logits.view(-1, logits.shape[2]), ids[:, 1:].reshape(-1))


def random_tokens(samples, seed, vocabulary=4096, context=256):
    torch.manual_seed(seed)
    return torch.randint(vocabulary, (samples, context + 1))
