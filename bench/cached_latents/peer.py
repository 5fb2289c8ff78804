# bench/cached_latents/peer.py - a torch DataLoader of torch.load with worker processes, on every line that comes in.
#
#   in   make FOLDER COUNT C H W   saves the tensors of FOLDER/values.f32 there, plain and inside gzip; out: made
#   in   check GZIP BATCH          reads all and compares; out: equal
#   in   run GZIP BATCH            one pass; out: SECONDS from the first batch asked for to the last one there
#
# GZIP 1 is what SimpleTuner does with compress_disk_cache: torch.save inside gzip.open's default level. The workers are
# persistent and their first pass comes before any that is timed, so no time of theirs to start is in it.
import gzip
import os
import sys
import time

import numpy
import torch

WORKERS = int(os.environ.get("BENCH_PEER_WORKERS", "2"))


class Latents(torch.utils.data.Dataset):
    def __init__(self, folder, count, zipped):
        self.folder, self.count, self.zipped = folder, count, zipped

    def __len__(self):
        return self.count

    def __getitem__(self, index):
        if not self.zipped:
            return torch.load(f"{self.folder}/{index}.pt")
        with gzip.open(f"{self.folder}/{index}.pt.gz", "rb") as file:
            return torch.load(file)


def main():
    values = None
    folder = ""
    loaders = {}
    print("ready", torch.__version__, flush=True)
    for line in sys.stdin:
        what, *rest = line.rstrip("\n").split(" ")
        if what == "make":
            folder, (count, *shape) = rest[0], (int(x) for x in rest[1:])
            values = torch.from_numpy(numpy.fromfile(folder + "/values.f32", dtype=numpy.float32)).view(count, *shape)
            for i, value in enumerate(values):
                torch.save(value.clone(), f"{folder}/{i}.pt")
                with gzip.open(f"{folder}/{i}.pt.gz", "wb") as file:
                    torch.save(value.clone(), file)
            print("made", flush=True)
            continue
        zipped, batch = (int(x) for x in rest)
        if zipped not in loaders:
            loaders[zipped] = torch.utils.data.DataLoader(
                Latents(folder, len(values), zipped), batch_size=batch, num_workers=WORKERS, persistent_workers=True)
        if what == "check":
            begin = 0
            for latents in loaders[zipped]:
                assert torch.equal(latents, values[begin:begin + len(latents)])
                begin += len(latents)
            print("equal" if begin == len(values) else "short", flush=True)
        elif what == "run":
            start = time.perf_counter()
            count = sum(len(latents) for latents in loaders[zipped])
            seconds = time.perf_counter() - start
            assert count == len(values)
            print(seconds, flush=True)


if __name__ == "__main__":
    main()
