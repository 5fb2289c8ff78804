# bench/update_kernels/peer.py - one step of torch.optim on every line that comes in.
#
#   in   CASE THREADS NUMEL     CASE is adamw_fp32 or adamw_mixed; torch has no Lion
#   out  SECONDS W0 W1 W2 W3    weights 0, 1, 2, 3 after the step
import sys
import time

import torch


def values(numel, factor):
    i = torch.arange(numel, dtype=torch.int64)
    return ((i * factor) % 65536).to(torch.float32) / 65536 - 0.5


class Case:
    def __init__(self, name, numel):
        self.mixed = name == "adamw_mixed"
        self.weight = torch.nn.Parameter(values(numel, 40503))
        gradient = values(numel, 30011)
        self.weight.grad = gradient
        if self.mixed:  # a bf16 gradient comes in, fp32 master and states, a bf16 parameter goes out
            self.gradient = gradient.to(torch.bfloat16)
            self.parameter = self.weight.detach().to(torch.bfloat16)
        self.optimizer = torch.optim.AdamW([self.weight], lr=1e-3, weight_decay=0.01)

    def step(self):
        if self.mixed:
            self.weight.grad = self.gradient.to(torch.float32)
        self.optimizer.step()
        if self.mixed:
            self.parameter.copy_(self.weight.detach())


cases = {}
print("ready", torch.__version__, flush=True)
for line in sys.stdin:
    name, threads, numel = line.split()
    torch.set_num_threads(int(threads))
    if name not in cases:
        cases = {name: Case(name, int(numel))}
    start = time.perf_counter()
    cases[name].step()
    seconds = time.perf_counter() - start
    print(seconds, *(float(x) for x in cases[name].weight[:4]), flush=True)
