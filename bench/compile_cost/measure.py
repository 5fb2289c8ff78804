#!/usr/bin/env python3
"""bench/compile_cost/measure.py COMPILE_COMMANDS [--rounds N] [--cases stage,tier,...] - called by run.sh.

Compiles compositions.cpp with the flags of the release preset, without ccache: with one composition, and with one more.
The two take turns, and a case's cost is the median of the differences of neighbours, in seconds of one core.
"""

import argparse
import json
import os
import resource
import shlex
import statistics
import subprocess
import tempfile

CASES = ["stage", "tier", "rule", "precision", "average"]


def command_for(database):
    """The compiler and its flags, without ccache, output and source."""
    with open(database, encoding="utf-8") as file:
        entry = next(e for e in json.load(file) if e["file"].endswith("bench/compile_cost/compositions.cpp"))
    words = shlex.split(entry["command"])
    if os.path.basename(words[0]) == "ccache":
        words = words[1:]
    output = words.index("-o")
    del words[output : output + 2]
    return words


def compiled(command, definition, folder):
    """Seconds of one core, peak MiB and bytes of code."""
    out = os.path.join(folder, "out.o")
    before = resource.getrusage(resource.RUSAGE_CHILDREN)
    subprocess.run(command + definition + ["-o", out], check=True, env=dict(os.environ, CCACHE_DISABLE="1"))
    after = resource.getrusage(resource.RUSAGE_CHILDREN)
    seconds = after.ru_utime + after.ru_stime - before.ru_utime - before.ru_stime
    size = subprocess.run(["size", out], check=True, capture_output=True, text=True).stdout.split("\n")[1]
    return seconds, int(size.split()[0])


def main():
    parser = argparse.ArgumentParser()
    parser.add_argument("database")
    parser.add_argument("--rounds", type=int, default=3)
    parser.add_argument("--cases", default=",".join(CASES))
    arguments = parser.parse_args()
    command = command_for(arguments.database)
    first = []
    more = {case: [] for case in arguments.cases.split(",")}
    with tempfile.TemporaryDirectory() as folder:
        for _ in range(arguments.rounds):
            for case, found in more.items():
                one = compiled(command, [], folder)
                two = compiled(command, ["-DONE_MORE_" + case.upper()], folder)
                first.append(one[0])
                found.append((two[0] - one[0], two[1] - one[1]))
    print(f"one composition: {statistics.median(first):.1f} s")
    for case, found in more.items():
        print(json.dumps({
            "bench": "compile_cost",
            "case": "one more " + case,
            "ours": round(statistics.median(s for s, _ in found), 2),
            "unit": "s of one core",
            "code_bytes": found[0][1],
        }))


if __name__ == "__main__":
    main()
