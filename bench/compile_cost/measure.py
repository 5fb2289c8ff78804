#!/usr/bin/env python3
"""bench/compile_cost/measure.py COMPILE_COMMANDS [--rounds N] [--cases stage,tier,...,all] - called by run.sh.

Compiles compositions.cpp with the flags of the release preset, without ccache: with one composition, and with one more, or
with all five more. The two are compiled at the same time, a core each, because seconds of one core drift by a third from
minute to minute: a case's cost is the median of their ratios less 1, times the median of the seconds of one composition.
"""

import argparse
import json
import os
import shlex
import statistics
import subprocess
import sys
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


class Compilation:
    """Under way from the start; end() waits."""

    def __init__(self, command, cases, folder):
        self.out = os.path.join(folder, "-".join(cases or ["one"]) + ".o")
        words = command + ["-DONE_MORE_" + case.upper() for case in cases] + ["-o", self.out]
        self.process = subprocess.Popen(words, env=dict(os.environ, CCACHE_DISABLE="1"))

    def end(self):
        """Seconds of one core and bytes of code."""
        _, status, usage = os.wait4(self.process.pid, 0)
        self.process.returncode = os.waitstatus_to_exitcode(status)
        if self.process.returncode != 0:
            sys.exit("compile_cost: the compiler failed")
        size = subprocess.run(["size", self.out], check=True, capture_output=True, text=True).stdout.split("\n")[1]
        return usage.ru_utime + usage.ru_stime, int(size.split()[0])


def main():
    parser = argparse.ArgumentParser()
    parser.add_argument("database")
    parser.add_argument("--rounds", type=int, default=3)
    parser.add_argument("--cases", default=",".join(CASES + ["all"]))
    arguments = parser.parse_args()
    command = command_for(arguments.database)
    first = []
    more = {case: [] for case in arguments.cases.split(",")}
    with tempfile.TemporaryDirectory() as folder:
        for _ in range(arguments.rounds):
            for case, found in more.items():
                pair = [Compilation(command, [], folder),
                        Compilation(command, CASES if case == "all" else [case], folder)]
                one, two = (compilation.end() for compilation in pair)
                first.append(one[0])
                found.append((two[0] / one[0] - 1, two[1] - one[1]))
    seconds = statistics.median(first)
    print(f"one composition: {seconds:.1f} s")
    for case, found in more.items():
        count = len(CASES) if case == "all" else 1
        print(json.dumps({
            "bench": "compile_cost",
            "case": "each of all five more" if case == "all" else "one more " + case,
            "ours": round(statistics.median(ratio for ratio, _ in found) * seconds / count, 2),
            "unit": "s of one core",
            "spread": [round(end(ratio for ratio, _ in found) * seconds / count, 2) for end in (min, max)],
            "code_bytes": found[0][1] // count,
        }))


if __name__ == "__main__":
    main()
