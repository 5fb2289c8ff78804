# bench/real_data/adapters.py - LoRA (Hu et al. 2021, arXiv:2106.09685) around linear layers, without dropout.
import torch.nn.functional as F
from torch import nn

TARGETS = ("to_q", "to_k", "to_v", "to_out.0")  # of attentions, as diffusers' scripts have them


class LoraLinear(nn.Linear):
    """x W + b + (x down) up * alpha / rank; parameters weight and bias, which are frozen, lora.down and lora.up."""

    def __init__(self, linear, rank, alpha):
        super().__init__(linear.in_features, linear.out_features, linear.bias is not None)
        self.requires_grad_(False)  # what it had is frozen; what follows is trained
        self.lora = nn.Module()
        self.lora.down = nn.Parameter(self.weight.new_zeros(rank, linear.in_features))
        self.lora.up = nn.Parameter(self.weight.new_zeros(linear.out_features, rank))
        self.scale = alpha / rank

    def forward(self, x):
        return super().forward(x) + F.linear(F.linear(x, self.lora.down), self.lora.up) * self.scale


def with_lora(model, rank, alpha):
    """Freezes the model and puts adapters at TARGETS."""
    for p in model.parameters():
        p.requires_grad_(False)
    for name, module in list(model.named_modules()):
        if isinstance(module, nn.Linear) and any(name == t or name.endswith("." + t) for t in TARGETS):
            parent, _, child = name.rpartition(".")
            setattr(model.get_submodule(parent), child, LoraLinear(module, rank, alpha))
