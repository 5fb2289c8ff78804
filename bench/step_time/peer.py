# bench/step_time/peer.py SAMPLES LR - the same model trained by torch on two ranks, which this program starts.
#
#   in   CASE      build it: alone (no communication), ddp or zero (DDP and ZeroRedundancyOptimizer); "-" drops it
#   in   N         N steps
#   out  N lines   SECONDS CPU_SECONDS LOSS0 LOSS1 PEAK_MIB: the slower rank's time, processor time of both, both losses,
#                  the larger peak of resident memory
import os
import subprocess
import sys
import tempfile
import time

import torch
import torch.distributed as dist
from torch.distributed.optim import ZeroRedundancyOptimizer
from torch.nn.parallel import DistributedDataParallel

sys.path.insert(0, os.path.join(os.path.dirname(os.path.abspath(__file__)), "..", "models"))
import gpt  # noqa: E402

rank = int(os.environ.setdefault("BENCH_PEER_RANK", "0"))
other = None
if rank == 0:
    folder = tempfile.TemporaryDirectory()
    os.environ["BENCH_PEER_STORE"] = os.path.join(folder.name, "store")
    environment = dict(os.environ, BENCH_PEER_RANK="1")
    other = subprocess.Popen([sys.executable, *sys.argv], stdin=subprocess.PIPE, env=environment, text=True)
samples, lr = int(sys.argv[1]), float(sys.argv[2])
store = os.environ["BENCH_PEER_STORE"]
dist.init_process_group("gloo", init_method=f"file://{store}", rank=rank, world_size=2)


def peak_mib():
    with open("/proc/self/status") as file:
        return next(int(line.split()[1]) for line in file if line.startswith("VmHWM")) / 1024


class Case:
    def __init__(self, name):
        model = gpt.Gpt()
        self.model = model
        if name != "alone":
            self.model = DistributedDataParallel(model, gradient_as_bucket_view=True)
        if name == "zero":
            self.optimizer = ZeroRedundancyOptimizer(model.parameters(), torch.optim.AdamW, lr=lr, weight_decay=0.01)
        else:
            self.optimizer = torch.optim.AdamW(model.parameters(), lr=lr, weight_decay=0.01)
        self.batch = gpt.random_tokens(samples, 1000 + rank)

    def step(self):
        dist.barrier()
        start, cpu_start = time.perf_counter(), time.process_time()
        self.optimizer.zero_grad(set_to_none=True)
        loss = self.model(self.batch)
        loss.backward()
        self.optimizer.step()
        return time.perf_counter() - start, time.process_time() - cpu_start, loss.item(), peak_mib()


case = None
if rank == 0:
    print("ready", torch.__version__, flush=True)
for line in sys.stdin:
    if other:
        other.stdin.write(line)
        other.stdin.flush()
    word = line.strip()
    if not word.isdigit():
        case = None
        case = Case(word) if word != "-" else None
        continue
    for _ in range(int(word)):
        mine = torch.tensor(case.step(), dtype=torch.float64)
        both = [torch.empty_like(mine) for _ in range(2)]
        dist.all_gather(both, mine)
        if rank == 0:
            seconds, cpu, loss, peak = zip(*(x.tolist() for x in both))
            print(max(seconds), sum(cpu), *loss, max(peak), flush=True)
if other:
    other.stdin.close()
    other.wait()
