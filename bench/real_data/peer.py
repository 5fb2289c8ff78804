# bench/real_data/peer.py FOLDER CASE - the run that ours left in FOLDER, again in PyTorch eager; compares losses step by step.
#
# CASE is sd15 or flux, -full or -lora. Of ours: start.safetensors, steps.safetensors, losses.txt, config.json with the numbers of the run. Prints a
# table and a line of JSON; the exit status is 1 when losses are further apart than the bounds below.
import json
import math
import os
import sys

import numpy
import torch

from adapters import with_lora
from models import Flux, Unet

FIRST, FIRST_BOUND = 20, 1e-4  # losses of the first steps, each: rounding alone
LAST_BOUND = 0.005  # of the mean over the last fifth of the steps: rounding that training has made larger


def read_safetensors(path):
    data = numpy.memmap(path, dtype=numpy.uint8, mode="r")
    begin = 8 + int(data[:8].view(numpy.uint64)[0])
    tensors = {}
    for name, entry in json.loads(bytes(data[8:begin])).items():
        if name == "__metadata__":
            continue
        assert entry["dtype"] == "F32", name
        first, end = entry["data_offsets"]
        values = numpy.array(data[begin + first : begin + end]).view(numpy.float32)
        tensors[name] = torch.from_numpy(values.reshape(entry["shape"]))
    return tensors


def load(model, tensors):
    own = dict(model.named_parameters())
    assert own.keys() == tensors.keys(), sorted(own.keys() ^ tensors.keys())[:6]
    with torch.no_grad():
        for name, p in own.items():
            assert p.numel() == tensors[name].numel(), name
            p.copy_(tensors[name].view(p.shape))  # a projection that is a convolution 1x1 in files is a linear layer here


def main(folder, case):
    family, kind = case.split("-")
    with open(os.path.join(folder, "config.json")) as file:
        config = json.load(file)
    with open(os.path.join(folder, "losses.txt")) as file:
        ours = [float(line) for line in file]
    records = read_safetensors(os.path.join(folder, "steps.safetensors"))
    model = Unet() if family == "sd15" else Flux()
    if kind == "lora":
        with_lora(model, config["lora_rank"], config["lora_alpha"])
    load(model, read_safetensors(os.path.join(folder, "start.safetensors")))
    trained = [p for p in model.parameters() if p.requires_grad]
    optimizer = torch.optim.AdamW(trained, lr=config["learning_rate"], weight_decay=config["optimizer_weight_decay"])
    peers = []
    for i in range(len(ours)):
        step = {name.split(".", 1)[1]: tensor for name, tensor in records.items() if name.startswith(f"{i}.")}
        loss = model.loss(step)
        loss.backward()
        torch.nn.utils.clip_grad_norm_(trained, config["max_grad_norm"])
        optimizer.step()
        optimizer.zero_grad(set_to_none=True)
        peers.append(loss.item())
    apart = [abs(a - b) / b for a, b in zip(ours, peers)]
    fifth = max(1, len(ours) // 5)
    mean = lambda values: sum(values) / len(values)  # noqa: E731
    for i in sorted({0, 1, 2, 5, 10, 20, 50, *range(0, len(ours), 50), len(ours) - 1}):
        if i < len(ours):
            print(f"  step {i:4d}: {ours[i]:.6f}, peer {peers[i]:.6f}, {apart[i]:.1e} apart")
    ends = mean(ours[-fifth:]), mean(peers[-fifth:])
    first = max(apart[:FIRST])
    last = abs(ends[0] - ends[1]) / ends[1]
    # Adapters of a model that knows nothing move it only a little.
    learnt = ends[0] < (0.9 if kind == "full" else 1.0) * mean(ours[:fifth])
    right = first < FIRST_BOUND and last < LAST_BOUND and learnt and all(map(math.isfinite, ours))
    print(
        json.dumps(
            {
                "bench": "real_data",
                "case": f"{case}, {sum(p.numel() for p in trained) / 1e6:.2f} million trained, {len(ours)} steps",
                "ours": round(ends[0], 6),
                "unit": "mean loss of the last fifth",
                "peer": round(ends[1], 6),
                "peer_name": f"torch {torch.__version__} eager",
                "apart_last_fifth": float(f"{last:.2e}"),
                "bound_last_fifth": LAST_BOUND,
                f"apart_first_{FIRST}": float(f"{first:.2e}"),
                f"bound_first_{FIRST}": FIRST_BOUND,
                "apart_most": float(f"{max(apart):.2e}"),
                "first_fifth": round(mean(ours[:fifth]), 6),
            }
        ),
        flush=True,
    )
    if not right:
        print(f"WRONG: {case}: losses differ by more than the bounds, or did not fall", file=sys.stderr)
    return 0 if right else 1


if __name__ == "__main__":
    sys.exit(main(sys.argv[1], sys.argv[2]))
