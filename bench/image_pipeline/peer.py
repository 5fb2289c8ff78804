# bench/image_pipeline/peer.py - a torch DataLoader with PIL and worker processes, on every line that comes in.
#
#   in   files LIST             a file with one path a line; out: files N
#   in   run DRAFT SIZE BATCH   one pass over the list, DRAFT 1 lets PIL decode at a reduced scale; out: SECONDS
#   in   look PATH SIZE         out: the means of 8 x 8 blocks of each plane, 192 numbers
import os
import sys
import time

import numpy
import PIL
import torch
from PIL import Image, ImageOps

WORKERS = int(os.environ.get("BENCH_PEER_WORKERS", "2"))


def tensor_of(path, size, draft):
    image = Image.open(path)
    if draft:
        image.draft("RGB", (size, size))
    image = ImageOps.exif_transpose(image)
    if image.mode == "RGBA":
        white = Image.new("RGBA", image.size, (255, 255, 255))
        white.alpha_composite(image)
        image = white
    image = ImageOps.fit(image.convert("RGB"), (size, size), Image.LANCZOS)
    return torch.from_numpy(numpy.array(image)).permute(2, 0, 1).to(torch.float32).div_(127.5).sub_(1)


class Pictures(torch.utils.data.Dataset):
    def __init__(self, paths, size, draft):
        self.paths, self.size, self.draft = paths, size, draft

    def __len__(self):
        return len(self.paths)

    def __getitem__(self, index):
        return tensor_of(self.paths[index], self.size, self.draft)


def main():
    paths = []
    loaders = {}
    print("ready", torch.__version__, "PIL", PIL.__version__, flush=True)
    for line in sys.stdin:
        what, *rest = line.rstrip("\n").split(" ")
        if what == "files":
            with open(rest[0]) as lines:
                paths = lines.read().splitlines()
            loaders = {}
            print("files", len(paths), flush=True)
        elif what == "run":
            draft, size, batch = (int(x) for x in rest)
            if draft not in loaders:
                loaders[draft] = torch.utils.data.DataLoader(
                    Pictures(paths, size, draft), batch_size=batch, num_workers=WORKERS, persistent_workers=True)
                for _ in loaders[draft]:  # workers start, files come into memory
                    pass
            start = time.perf_counter()
            pictures = sum(len(batch) for batch in loaders[draft])
            seconds = time.perf_counter() - start
            assert pictures == len(paths)
            print(seconds, flush=True)
        elif what == "look":
            picture = tensor_of(rest[0], int(rest[1]), False)
            blocks = torch.nn.functional.adaptive_avg_pool2d(picture, 8).flatten()
            print(*(float(x) for x in blocks), flush=True)


if __name__ == "__main__":
    main()
