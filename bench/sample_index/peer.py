# bench/sample_index/peer.py - the same start from a JSON file of metadata, on every line that comes in.
#
#   in   run FILE BATCH SEED   out: PICTURES BUCKETS BATCHES WIDTHS and the seconds of opening, buckets, epoch
#
# FILE is what SimpleTuner keeps beside a data set (aspect_ratio_bucket_metadata_<id>.json): one object, the name of a
# picture to its sizes and crop. Captions are not in it; SimpleTuner reads those from a text file each.
import json
import platform
import random
import sys
import time


def run(file, batch, seed):
    t0 = time.perf_counter()
    with open(file) as lines:
        metadata = json.load(lines)
    t1 = time.perf_counter()
    buckets = {}
    for name, picture in metadata.items():
        buckets.setdefault(tuple(picture["target_size"]), []).append(name)
    t2 = time.perf_counter()
    order = random.Random(seed)
    batches = []
    for names in buckets.values():
        order.shuffle(names)
        whole = len(names) // batch * batch  # the rest of a bucket is left out
        batches += [names[i:i + batch] for i in range(0, whole, batch)]
    order.shuffle(batches)
    widths = 0
    for names in batches:
        for name in names:
            widths += metadata[name]["original_size"][0]
    t3 = time.perf_counter()
    return len(metadata), len(buckets), len(batches), widths, t1 - t0, t2 - t1, t3 - t2


def main():
    print("ready", platform.python_version(), flush=True)
    for line in sys.stdin:
        _, file, batch, seed = line.rstrip("\n").split(" ")
        print(*run(file, int(batch), int(seed)), flush=True)


if __name__ == "__main__":
    main()
