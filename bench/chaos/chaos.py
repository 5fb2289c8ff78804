"""A run that is disturbed for minutes, by faults that a seed draws, and the same run undisturbed.

Three ranks on two "hosts", which are network namespaces with a cable between them; pictures and latents in a bucket of a real S3 server on
the first; events go to a receiver there. Standard library only. See RESULT.md; `bench/run.sh chaos` calls it.
"""

import argparse
import collections
import json
import math
import pathlib
import random
import re
import signal
import sys
import time

import store
from events import Events
from faults import SAME_RANKS, Disturber
from judgement import equal_bit_by_bit, farthest, table
from network import Network, does, say
from training import Run


# Hosts, and micro-batches a step: 12 samples in both.
THREE_RANKS = ("hosta slots=2\nhostb slots=1\n", 2)
TWO_RANKS = ("hosta slots=2\n", 3)


class Bench:
    """What all runs stand on; what is made is taken away by close()."""

    def __init__(self, given):
        self.given, self.seed = given, given.seed
        self.interval = 20
        self.tools = pathlib.Path(given.tools).resolve()
        self.work = pathlib.Path(given.work)
        self.disk = self.work / "disk"
        self.opened = []

    def open(self):
        self.disk.mkdir()
        does("mount", "-t", "tmpfs", "-o", "size=768m", "strata_chaos", str(self.disk))
        self.opened.append(lambda: does("umount", "-l", str(self.disk), check=False))
        self.network = Network()
        self.opened.append(self.network.close)
        self.server = store.Server(self.network, pathlib.Path(self.given.server), self.work / "s3")
        self.opened.append(self.server.close)
        self.events = Events(self.network)
        self.opened.append(self.events.close)
        self.server.fill()

    def close(self):
        for end in reversed(self.opened):
            try:
                end()
            except Exception as error:  # the others end all the same
                say(f"at the end: {error}")
        self.opened.clear()

    def run(self, name, disturbed, *plan):
        made = Run(self, name, disturbed, *plan)
        self.opened.append(made.close)
        return made

    def undisturbed(self, name, *plans):
        """A run that trains each plan (steps, hosts, accumulation) in its turn."""
        run = self.run(name, False, *plans[0])
        for plan in plans:
            run.plan(*plan)
            run.start()
            if (status := run.process.wait()) != 0:
                say(f"the run {name} ended with {status}: " + run.errors.read_text()[-2000:])
                break
        run.log.close()
        return run


def disturbed_run(bench, given):
    """(the run, its faults, the first step that other ranks may have done)."""
    drawn = random.Random(given.seed)
    run = bench.run("disturbed", True, 1000000, *THREE_RANKS)
    disturber = Disturber(run, bench.network, bench.server, bench.events, drawn, bench.disk)
    disturber.before = {}
    run.start()
    if disturber.goes_on(180, 5) is None:
        raise RuntimeError("it does not train: " + run.errors.read_text()[-4000:] + (run.folder / "out.txt").read_text()[-2000:])
    begun, faults, changed_at = time.time(), [], 1 << 60
    kinds = tuple(given.kinds.split(",")) if given.kinds else SAME_RANKS
    deck = []
    while (now := time.time() - begun) < given.minutes * 60:
        late = now > given.minutes * 30 and (not given.kinds or "link" in given.kinds)
        if not deck:  # each kind once before any comes again
            deck = [*kinds, "link"] if late and "link" not in kinds else [one for one in kinds if one != "link" or late]
            drawn.shuffle(deck)
        if not deck:
            time.sleep(1)
            continue
        kind = "link" if late and changed_at == 1 << 60 else deck.pop()
        fault = disturber.disturb(kind, now)
        faults.append(fault)
        say(f"{fault.what}: {'ok' if fault.passed else 'FAILED'}"
            f"{'' if fault.line or not fault.wants_line else ', no line'}{'' if fault.event or not fault.wants_event else ', no event'}"
            f"{''.join(', ' + one for one in fault.objections)}; went on after {fault.seconds and round(fault.seconds, 1)} s")
        if kind == "link":
            changed_at = min(changed_at, fault.from_step + 1)
        if run.process.poll() is not None:
            say(f"the launch has ended with {run.process.returncode}")
            break
        time.sleep(drawn.uniform(2, 6))
    return run, faults, changed_at


def trial(bench, given):
    run, faults, changed_at = disturbed_run(bench, given)
    ended = run.interrupt() if run.process.poll() is None else run.process.returncode
    run.log.close()
    heard = [one for _, one in bench.events.all]
    (bench.work / "events.jsonl").write_text("".join(json.dumps(one) + "\n" for one in heard))
    last, ours = run.newest(), run.log.losses
    say(f"{last} steps, the launcher's exit status {ended}; now the same undisturbed")
    plain = bench.undisturbed("undisturbed", (last, *THREE_RANKS)).log.losses
    # How far the same samples in the same effective batch lead on 2 ranks from the same step on: by what a change of ranks may be measured.
    yardstick = bound = apart = 0.0
    if changed_at < 1 << 60:
        say(f"and from step {changed_at} on on the 2 ranks of hosta alone, for the bound")
        fewer = bench.undisturbed("fewer", (changed_at - 1, *THREE_RANKS), (last, *TWO_RANKS)).log.losses
        yardstick, at = farthest(fewer, plain, changed_at)
        # Rounding takes another way with each change, there and back, and ways that know nothing of each other add up by their root.
        changes = 2 * sum(one.kind == "link" for one in faults)
        bound = 4 * math.sqrt(changes) * yardstick
        apart, where = farthest(ours, plain, changed_at)
        print(f"2 ranks from 3 undisturbed behind that step: {yardstick:.3g} at step {at}; behind the first change of ranks: {apart:.3g} at step {where}")
    same, wrong = equal_bit_by_bit(ours, plain, changed_at)

    table(faults)
    objections = [f"{one.what}" for one in faults if not one.passed]
    if ended != 0:
        objections.append(f"the launcher ended with {ended}")
    if wrong:
        objections.append(f"{len(wrong)} steps have other losses than undisturbed, the first {wrong[0]}: {ours[wrong[0]]}, {plain.get(wrong[0])}")
    if missing := [step for step in range(1, last + 1) if step not in ours]:
        objections.append(f"{len(missing)} steps have no line, the first {missing[0]}")
    if not same:
        objections.append("no step was compared bit by bit")
    if changed_at < 1 << 60 and not (apart <= bound and 0 < yardstick < 0.01):
        objections.append(f"behind a change of ranks losses are {apart:.3g} apart; bound {bound:.3g}")
    said = "\n".join(run.said().values())
    if dropped := re.findall(r"\[ST2813\].*", said):
        objections.append("events were dropped: " + dropped[0])
    if left := list((run.output / "webhooks").glob("*")):
        objections.append(f"{len(left)} files of events are left that nobody has delivered")
    ids = collections.Counter(one["id"] for one in heard)
    twice = collections.Counter(json.dumps({key: one[key] for key in one if key not in ("id", "attempt")}, sort_keys=True)
                                for one in {one["id"]: one for one in heard}.values())
    if doubled := [text for text, count in twice.items() if count > 1]:
        objections.append(f"{len(doubled)} events came under two ids: {doubled[0][:200]}")
    for one in objections:
        print("NOT PASSED: " + one)
    print(json.dumps({"bench": "chaos", "minutes": given.minutes, "seed": given.seed, "faults": len(faults), "steps": last,
                      "lines": run.log.count, "equal": len(same) - len(wrong), "of": len(same),
                      "changed_at": None if changed_at == 1 << 60 else changed_at, "apart": apart, "bound": bound,
                      "events": len(ids), "told_again": sum(ids.values()) - len(ids), "passed": not objections}))
    return 0 if not objections else 1


def main():
    options = argparse.ArgumentParser(prog="bench/run.sh chaos")
    options.add_argument("--minutes", type=float, default=30)
    options.add_argument("--seed", type=int, default=16)
    options.add_argument("--kinds", default="", help="only these faults, with commas")
    options.add_argument("--own-folders", action="store_true", help="hostb has an output directory of its own")
    options.add_argument("--keep", action="store_true", help="the work folder stays")
    options.add_argument("--tools", required=True)
    options.add_argument("--server", required=True)
    options.add_argument("--work", required=True)
    given = options.parse_args()
    signal.signal(signal.SIGINT, signal.default_int_handler)  # a shell's background has it ignored
    signal.signal(signal.SIGTERM, lambda *_: sys.exit(143))
    bench = Bench(given)
    status = 1
    try:
        bench.open()
        status = trial(bench, given)
    except KeyboardInterrupt:
        status = 130
    finally:
        bench.close()
    return status


if __name__ == "__main__":
    sys.exit(main())
