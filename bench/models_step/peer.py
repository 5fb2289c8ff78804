# bench/models_step/peer.py [--peak-of CASE] - steps of the blocks of blocks.py, for ours.cpp.
#
#   in   CASE      build it: flux-fp32, flux-bf16, sdxl-fp32 or sdxl-bf16; "-" drops it
#   in   N         N steps
#   out  N lines   FORWARD BACKWARD UPDATE LOSS CPU_PASSES CPU_STEP: seconds of the step's parts, the loss that it began with,
#                  and processor time of forward and backward, and of all
#
# With --peak-of CASE prints the MiB of resident memory that three steps take at most.
import gc
import os
import sys
import time

import torch

sys.path.insert(0, os.path.dirname(os.path.abspath(__file__)))
from blocks import Flux, Sdxl  # noqa: E402

LR = 1e-5
FIRST_STEPS = 3


class Training:
    def __init__(self, case):
        family, precision = case.split("-")
        dtype = torch.float32 if precision == "fp32" else torch.bfloat16
        torch.set_default_dtype(dtype)
        self.model = (Flux if family == "flux" else Sdxl)(dtype)
        torch.set_default_dtype(torch.float32)
        self.optimizer = torch.optim.AdamW(self.model.parameters(), lr=LR, weight_decay=0.01)

    def step(self):
        begin, cpu_begin = time.perf_counter(), time.process_time()
        loss = self.model()
        forward = time.perf_counter()
        loss.backward()
        backward, cpu_backward = time.perf_counter(), time.process_time()
        self.optimizer.step()
        self.optimizer.zero_grad(set_to_none=True)
        end, cpu_end = time.perf_counter(), time.process_time()
        cpu = cpu_backward - cpu_begin, cpu_end - cpu_begin
        return forward - begin, backward - forward, end - backward, loss.item(), *cpu


if sys.argv[1:2] == ["--peak-of"]:
    training = Training(sys.argv[2])
    for _ in range(FIRST_STEPS):
        training.step()
    with open("/proc/self/status") as file:
        print(next(int(line.split()[1]) for line in file if line.startswith("VmHWM")) // 1024)
    sys.exit()

training = None
print("ready", torch.__version__, flush=True)
for line in sys.stdin:
    word = line.strip()
    if word.isdigit():
        for _ in range(int(word)):
            print(*training.step(), flush=True)
    else:
        training = None
        gc.collect()
        training = Training(word) if word != "-" else None
