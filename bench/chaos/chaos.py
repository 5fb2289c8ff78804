"""A run that is disturbed for minutes, by faults that a seed draws, and the same run undisturbed.

Three ranks on two "hosts", which are network namespaces with a cable between them; pictures and latents in a bucket of a real S3 server on
the first; events go to a receiver there. Standard library only. See RESULT.md; `bench/run.sh chaos` calls it.
"""

import argparse
import base64
import ctypes
import hashlib
import hmac
import http.server
import json
import os
import pathlib
import random
import re
import signal
import struct
import subprocess
import sys
import threading
import time
import urllib.request
import zlib
from email.utils import formatdate

CLONE_NEWNET = 0x40000000
S3_PORT, EVENTS_PORT = 7480, 7580
KEY, SECRET, BUCKET = "TESTKEY", "testsecret0123456789", "chaos"
PICTURES = 24
RESTARTS = 100000
# Faults in the first part of a run leave the number of ranks as it is, so that losses are to be equal bit by bit; links break in the second.
SAME_RANKS = ("kill", "interrupt", "pause", "slow", "server", "disk")


def say(text):
    print(time.strftime("%H:%M:%S ", time.gmtime()) + text, flush=True)


def does(*words, check=True):
    return subprocess.run(words, check=check, stdout=subprocess.DEVNULL, stderr=subprocess.PIPE, text=True)


class Network:
    """Two namespaces and a cable; what is made is taken away by close()."""

    def __init__(self):
        self.a, self.b = f"chaosA{os.getpid()}", f"chaosB{os.getpid()}"
        for name in (self.a, self.b):
            does("ip", "netns", "add", name)
        does("ip", "link", "add", "cable", "netns", self.a, "type", "veth", "peer", "name", "cable", "netns", self.b)
        for name, address in ((self.a, "10.77.0.1/24"), (self.b, "10.77.0.2/24")):
            does("ip", "-n", name, "addr", "add", address, "dev", "cable")
            does("ip", "-n", name, "link", "set", "cable", "up")
            does("ip", "-n", name, "link", "set", "lo", "up")

    def link(self, up):
        does("ip", "-n", self.b, "link", "set", "cable", "up" if up else "down")

    def slow(self, kilobits):
        """Both directions; None is as before."""
        for name in (self.a, self.b):
            does("ip", "netns", "exec", name, "tc", "qdisc", "del", "dev", "cable", "root", check=False)
            if kilobits:
                does("ip", "netns", "exec", name, "tc", "qdisc", "add", "dev", "cable", "root", "tbf", "rate", f"{kilobits}kbit",
                     "burst", "16kb", "latency", "400ms")

    def inside(self):
        """A context in which this thread's new sockets are of the first host."""
        libc = ctypes.CDLL(None, use_errno=True)
        name = self.a

        class Inside:
            def __enter__(self):
                self.own = os.open("/proc/thread-self/ns/net", os.O_RDONLY)
                self.enter(f"/run/netns/{name}")

            def __exit__(self, *_):
                self.set(self.own)
                os.close(self.own)

            def enter(self, path):
                there = os.open(path, os.O_RDONLY)
                self.set(there)
                os.close(there)

            @staticmethod
            def set(descriptor):
                if libc.setns(descriptor, CLONE_NEWNET) != 0:
                    raise OSError(ctypes.get_errno(), "setns")

        return Inside()

    def close(self):
        for name in (self.a, self.b):
            does("ip", "netns", "del", name, check=False)


class Server:
    """shared/rgw_up.sh on the first host, listening to both; its gateway can be stopped and started, what it keeps stays."""

    def __init__(self, network, script, folder):
        self.network, self.folder = network, folder
        folder.mkdir()
        text = script.read_text().replace("beast endpoint=127.0.0.1", "beast endpoint=0.0.0.0")
        (folder / "up.sh").write_text(text)
        does("ip", "netns", "exec", network.a, "bash", str(folder / "up.sh"), str(folder / "ceph"), str(S3_PORT), KEY, SECRET)

    def put(self, key, body=b""):
        """Signature version 2 is six lines, and the gateway knows it."""
        date, path = formatdate(usegmt=True), f"/{BUCKET}" + (f"/{key}" if key else "")
        words = f"PUT\n\napplication/octet-stream\n{date}\n{path}"
        sign = base64.b64encode(hmac.new(SECRET.encode(), words.encode(), hashlib.sha1).digest()).decode()
        headers = {"Date": date, "Authorization": f"AWS {KEY}:{sign}", "Content-Type": "application/octet-stream"}
        with self.network.inside():
            request = urllib.request.Request(f"http://127.0.0.1:{S3_PORT}{path}", data=body, method="PUT", headers=headers)
            urllib.request.urlopen(request, timeout=30).read()

    def gateway(self):
        return int((self.folder / "ceph/rgw.pid").read_text())

    def stop(self):
        os.kill(self.gateway(), signal.SIGKILL)

    def start(self):
        with open(self.folder / "ceph/log/rgw.again", "ab") as log:
            process = subprocess.Popen(["ip", "netns", "exec", self.network.a, "radosgw", "-c", str(self.folder / "ceph/ceph.conf"),
                                        "-n", "client.rgw", "-f"], stdout=log, stderr=log, start_new_session=True)
        (self.folder / "ceph/rgw.pid").write_text(str(process.pid))

    def close(self):
        does("bash", str(self.folder / "up.sh"), "--down", str(self.folder / "ceph"), check=False)


class Events:
    """What webhooks told, with the time of their arrival."""

    def __init__(self, network):
        self.all = []
        events = self.all

        class Handler(http.server.BaseHTTPRequestHandler):
            def do_POST(self):
                body = self.rfile.read(int(self.headers["Content-Length"]))
                if len(body) < int(self.headers["Content-Length"]):
                    return  # its sender was killed, or its cable pulled
                events.append((time.time(), json.loads(body)))
                self.send_response(200)
                self.end_headers()

            def log_message(self, *_):
                pass

        with network.inside():
            self.server = http.server.ThreadingHTTPServer(("0.0.0.0", EVENTS_PORT), Handler)
        self.server.daemon_threads = True
        threading.Thread(target=self.server.serve_forever, daemon=True).start()

    def close(self):
        self.server.shutdown()
        self.server.server_close()


def png(shade):
    """64 x 64, one colour."""
    def chunk(kind, data):
        return struct.pack(">I", len(data)) + kind + data + struct.pack(">I", zlib.crc32(kind + data))
    row = b"\0" + bytes((shade, 100, 255 - shade)) * 64
    return (b"\x89PNG\r\n\x1a\n" + chunk(b"IHDR", struct.pack(">IIBBBBB", 64, 64, 8, 2, 0, 0, 0)) +
            chunk(b"IDAT", zlib.compress(row * 64)) + chunk(b"IEND", b""))


class Run:
    """`strata launch` of one output directory; may be started again."""

    def __init__(self, bench, name, disturbed, steps):
        self.bench, self.name, self.process = bench, name, None
        self.elastic = ("--elastic", "1:2", "--elastic-batch", "keep", "--max-restarts", str(RESTARTS)) if disturbed else ()
        self.folder = bench.work / name
        self.output = (bench.disk if disturbed else bench.work / "plain") / name
        self.folder.mkdir()
        (self.folder / "tmp").mkdir()
        endpoint = f"http://10.77.0.1:{S3_PORT}"
        place = {"type": "aws", "aws_bucket_name": BUCKET, "aws_endpoint_url": endpoint, "aws_access_key_id": KEY,
                 "aws_secret_access_key": SECRET}
        lists = [{"id": "pictures", **place, "aws_data_prefix": "pictures", "resolution": 64, "cache_dir_vae": "vae"},
                 {"id": "texts", **place, "dataset_type": "text_embeds", "aws_data_prefix": "", "cache_dir": "texts"}]
        (self.folder / "list.json").write_text(json.dumps(lists))
        config = {"--data_backend_config": str(self.folder / "list.json"), "--output_dir": str(self.output), "--model_family": "small",
                  "--model_type": "full", "--seed": bench.seed, "--aspect_bucket_alignment": 16, "--train_batch_size": 2,
                  "--max_train_steps": steps, "--learning_rate": "1e-4", "--lr_scheduler": "constant", "--validation_disable": True,
                  "--checkpoint_step_interval": bench.interval, "--checkpoints_total_limit": 3,
                  # longer than the 30 s of silence after which a launcher takes a host for lost
                  "--collective_timeout": 40,
                  "--health_poll_interval_seconds": 1, "--health_disk_percent": 5}
        if disturbed:
            config["--webhook_config"] = {"webhook_type": "raw", "webhook_url": f"http://10.77.0.1:{EVENTS_PORT}/",
                                          "allow_private_addresses": True, "log_level": "debug", "stage_interval_seconds": 0}
        (self.folder / "config.json").write_text(json.dumps(config))
        (self.folder / "hosts").write_text("hosta slots=2\nhostb slots=1\n")
        shell = self.folder / "shell"
        network = bench.network
        shell.write_text(f"#!/bin/sh\nhost=$1; shift\nip -n {network.b} link show cable | grep -q 'state UP' || exit 255\n"
                         f"mkdir -p {self.folder}/tmp/b\nexport TMPDIR={self.folder}/tmp/b\n"
                         f"exec ip netns exec {network.b} unshare -u sh -c 'hostname \"$0\"; exec sh -c \"$1\"' $host \"$*\"\n")
        shell.chmod(0o755)
        self.errors = self.folder / "err.txt"

    def start(self):
        words = ["ip", "netns", "exec", self.bench.network.a, "unshare", "-u", "sh", "-c", "hostname hosta; exec \"$@\"", "sh",
                 str(self.bench.tools / "strata"), "launch", "--hostfile", str(self.folder / "hosts"), "--remote-shell",
                 str(self.folder / "shell"), *self.elastic, "--log-dir", str(self.folder / "logs"), "--", str(self.bench.tools / "strata-train"), "--config",
                 str(self.folder / "config.json"), "--gradient_accumulation_steps", "2"]
        environment = {**os.environ, "TMPDIR": str(self.folder / "tmp"), "OMP_NUM_THREADS": "1", "OMPI_ALLOW_RUN_AS_ROOT": "1",
                       "OMPI_ALLOW_RUN_AS_ROOT_CONFIRM": "1", "OMPI_MCA_mpi_yield_when_idle": "1", "OMP_WAIT_POLICY": "passive"}
        with open(self.folder / "out.txt", "ab") as out, open(self.errors, "ab") as err:
            self.process = subprocess.Popen(words, stdout=out, stderr=err, env=environment, start_new_session=True)

    def interrupt(self):
        os.kill(self.process.pid, signal.SIGINT)
        return self.process.wait(timeout=120)

    def ranks(self):
        """{rank: process} of strata-train with this run's configuration."""
        found = {}
        for entry in pathlib.Path("/proc").iterdir():
            if not entry.name.isdigit():
                continue
            try:
                if os.readlink(entry / "exe") != str((self.bench.tools / "strata-train").resolve()):
                    continue
                if str(self.folder / "config.json").encode() not in (entry / "cmdline").read_bytes():
                    continue
                for one in (entry / "environ").read_bytes().split(b"\0"):
                    if one.startswith(b"OMPI_COMM_WORLD_RANK="):
                        found[int(one.split(b"=")[1])] = int(entry.name)
            except (OSError, ValueError):
                continue
        return found

    def steps(self):
        """Lines of metrics.jsonl that are steps; of a step that was done again the last."""
        found = {}
        try:
            lines = (self.output / "metrics.jsonl").read_text(errors="replace").splitlines()
        except OSError:
            return found
        for line in lines:
            try:
                one = json.loads(line)
            except ValueError:
                continue
            if "loss" in one:
                found[one["step"]] = one
        return found

    def last_line(self):
        """(step, bytes of the file): it changes when a step is done."""
        path = self.output / "metrics.jsonl"
        try:
            return path.stat().st_mtime_ns, path.stat().st_size
        except OSError:
            return 0, 0

    def said(self):
        """All that the launcher and the ranks have written, as one text for each file, so that what is new can be told."""
        return {path: path.read_text(errors="replace") for path in [self.errors, *sorted(self.folder.glob("logs/*"))] if path.exists()}

    def newest(self):
        """The step of the last line of metrics.jsonl, 0 without."""
        steps = self.steps()
        return max(steps) if steps else 0

    def close(self):
        if self.process is None:
            return
        for pid in [*self.ranks().values()]:
            try:
                os.kill(pid, signal.SIGCONT)
            except ProcessLookupError:
                pass
        if self.process.poll() is None:
            self.process.send_signal(signal.SIGINT)
            try:
                self.process.wait(20)
            except subprocess.TimeoutExpired:
                self.process.send_signal(signal.SIGINT)
                try:
                    self.process.wait(10)
                except subprocess.TimeoutExpired:
                    self.process.kill()
                    self.process.wait()
        for pid in self.ranks().values():
            try:
                os.kill(pid, signal.SIGKILL)
            except ProcessLookupError:
                pass


class Fault:
    """What was done, and what came of it."""

    def __init__(self, kind, at):
        self.kind, self.at = kind, at
        self.what, self.line, self.event, self.lost, self.seconds, self.from_step = kind, None, None, 0, None, 0
        self.wants = ()        # any of these in the new lines of a log
        self.wants_event = ()  # any of these in the new events


class Bench:
    def __init__(self, given):
        self.given, self.seed = given, given.seed
        self.interval = 20
        self.tools = pathlib.Path(given.tools).resolve()
        self.work = pathlib.Path(given.work)
        self.disk = self.work / "disk"
        self.opened = []
        self.random = random.Random(given.seed)

    def open(self):
        self.disk.mkdir()
        does("mount", "-t", "tmpfs", "-o", "size=768m", "strata_chaos", str(self.disk))
        self.opened.append(lambda: does("umount", "-l", str(self.disk), check=False))
        self.network = Network()
        self.opened.append(self.network.close)
        self.server = Server(self.network, pathlib.Path(self.given.server), self.work / "s3")
        self.opened.append(self.server.close)
        self.events = Events(self.network)
        self.opened.append(self.events.close)
        self.server.put("")
        for i in range(PICTURES):
            self.server.put(f"pictures/p{10 + i}.png", png(10 * i))
            self.server.put(f"pictures/p{10 + i}.txt", f"colour {i}\n".encode())

    def close(self):
        for end in reversed(self.opened):
            try:
                end()
            except Exception as error:  # the others end all the same
                say(f"at the end: {error}")
        self.opened.clear()

    def run(self, name, disturbed, steps):
        made = Run(self, name, disturbed, steps)
        self.opened.append(made.close)
        return made

    def goes_on(self, run, seconds, steps=3):
        """Waits until so many more lines of steps are there; seconds that it took, or None."""
        begun, seen, count = time.time(), run.last_line(), 0
        while time.time() - begun < seconds:
            time.sleep(0.05)
            now = run.last_line()
            if now != seen:
                seen, count = now, count + 1
                if count >= steps:
                    return time.time() - begun
            if run.process.poll() is not None:
                return None
        return None

    # Each fault ends when the cause is gone; whether training goes on is looked at behind it.

    def kill(self, run, fault):
        rank, pid = self.random.choice(sorted(run.ranks().items()))
        fault.what, fault.wants = f"SIGKILL of rank {rank}", ("was ended by SIGKILL",)
        fault.wants_event = ("lifecycle.stage",)
        os.kill(pid, signal.SIGKILL)

    def pause(self, run, fault):
        rank, pid = self.random.choice(sorted(run.ranks().items()))
        fault.what, fault.wants = f"SIGSTOP of rank {rank} until the others end", ("[ST2303]",)
        fault.wants_event = ("ST2303",)
        os.kill(pid, signal.SIGSTOP)
        until = time.time() + 90
        while time.time() < until and not any("[ST2303]" in text for text in self.new_lines(run)):
            time.sleep(0.2)
        try:
            os.kill(pid, signal.SIGCONT)
        except ProcessLookupError:
            pass

    def interrupt(self, run, fault):
        fault.what, fault.wants, fault.wants_event = "SIGINT of the launcher, and a start", (), ("training.checkpoint",)
        status = run.interrupt()
        fault.line = f"exit status {status}" if status == 0 else None
        if status != 0:
            fault.wants = ("exit status 0",)
        run.start()

    def slow(self, run, fault):
        kilobits, seconds = self.random.choice((500, 1000, 2000)), self.random.randint(5, 10)
        fault.what, fault.line, fault.event = f"{kilobits} kbit/s for {seconds} s", "none expected", "none expected"
        self.network.slow(kilobits)
        time.sleep(seconds)
        self.network.slow(None)

    def server_stop(self, run, fault):
        seconds = self.random.randint(3, 8)
        rank, pid = self.random.choice(sorted(run.ranks().items()))
        fault.what = f"S3 gateway and rank {rank} killed, the gateway started {seconds} s after the first failure"
        fault.wants, fault.wants_event = ("[ST20",), ("[ST20",)
        # Latents that are at hand hide a server that is away; a start needs it for certain.
        self.server.stop()
        os.kill(pid, signal.SIGKILL)
        until = time.time() + 60
        while time.time() < until and not any("[ST20" in text for text in self.new_lines(run)):
            time.sleep(0.2)
        time.sleep(seconds)
        self.server.start()

    def disk_full(self, run, fault):
        seconds = self.random.randint(5, 10)
        fault.what, fault.wants, fault.wants_event = f"a full disk for {seconds} s", ("% left",), ("disk_space",)
        big = self.disk / "big"
        try:
            with open(big, "wb") as file:
                while True:
                    file.write(b"\0" * (1 << 16))
                    file.flush()
        except OSError:
            pass
        time.sleep(seconds)
        big.unlink()

    def link(self, run, fault):
        fault.what, fault.wants, fault.wants_event = "the cable of hostb is pulled, and put back", ("[ST2124]", "[ST2303]"), ("lifecycle.stage",)
        self.network.link(False)
        until = time.time() + 90
        while time.time() < until and not any("[ST2124]" in text or "[ST2303]" in text for text in self.new_lines(run)):
            time.sleep(0.2)
        if self.goes_on(run, 60) is None:
            fault.what += " (hosta did not go on alone)"
        self.network.link(True)
        until = time.time() + 90
        while time.time() < until and not any("a host has come back" in text for text in self.new_lines(run)):
            time.sleep(0.2)

    def new_lines(self, run):
        return [text[len(self.before.get(path, "")):] for path, text in run.said().items()]

    def disturb(self, run, kind, begun):
        fault = Fault(kind, time.time() - begun)
        self.before, self.told = run.said(), len(self.events.all)
        step = run.newest()
        {"kill": self.kill, "pause": self.pause, "interrupt": self.interrupt, "slow": self.slow, "server": self.server_stop,
         "disk": self.disk_full, "link": self.link}[kind](run, fault)
        fault.seconds = self.goes_on(run, 120)
        for _ in range(100):  # an event has its queue and its server
            fresh = self.new_lines(run)
            if fault.wants and fault.line is None:
                fault.line = next((line.strip() for text in fresh for line in text.splitlines()
                                   for words in fault.wants if words in line), None)
            if fault.wants_event and fault.event is None:
                fault.event = next((one.get("type") + ": " + (one.get("message") or one.get("title") or "")
                                    for _, one in self.events.all[self.told:]
                                    for words in fault.wants_event if words in json.dumps(one)), None)
            if (fault.line or not fault.wants) and (fault.event or not fault.wants_event):
                break
            time.sleep(0.1)
        fault.from_step = min(self.resumed(run, fresh), default=step)
        fault.lost = max(0, step - fault.from_step)
        say(f"{fault.what}: line {'found' if fault.line else 'MISSING'}, event {'found' if fault.event else 'MISSING'}, "
            f"went on after {fault.seconds if fault.seconds is None else round(fault.seconds, 1)} s")
        return fault

    @staticmethod
    def resumed(run, fresh):
        for text in fresh:
            for found in re.finditer(r"resuming from .* \(step (\d+),", text):
                yield int(found[1])

    def compare(self, disturbed, plain, changed_at):
        """Bit by bit up to the step of the first change of ranks, within the bound behind it."""
        ours, theirs = disturbed.steps(), plain.steps()
        missing = [step for step in range(1, max(ours) + 1) if step not in ours]
        equal = [step for step in ours if step in theirs and ours[step]["loss"] == theirs[step]["loss"]]
        wrong = [step for step in ours if step < changed_at and ours[step]["loss"] != theirs.get(step, {}).get("loss")]
        apart = max((abs(ours[s]["loss"] - theirs[s]["loss"]) / abs(theirs[s]["loss"]) for s in ours if s >= changed_at and s in theirs),
                    default=0.0)
        lacking = [step for step in ours if step not in theirs]
        print(f"steps: {len(ours)}; equal bit by bit: {len(equal)}; before the first change of ranks: {min(changed_at - 1, len(ours))}, "
              f"of these different: {len(wrong)}; farthest behind it: {apart:.3g} (bound {self.given.bound:g}); "
              f"steps without a line: {len(missing)}")
        return not wrong and apart <= self.given.bound and not lacking, len(equal), apart


def table(faults):
    print("\n| at | fault | line | event | steps lost | s until it went on |\n|---|---|---|---|---|---|")
    for one in faults:
        seconds = "NEVER" if one.seconds is None else f"{one.seconds:.1f}"
        print(f"| {one.at:.0f} s | {one.what} | {(one.line or 'MISSING')[:110]} | {(one.event or 'MISSING')[:60]} | {one.lost} | {seconds} |")
    print()


def main():
    options = argparse.ArgumentParser(prog="bench/run.sh chaos")
    options.add_argument("--minutes", type=float, default=30)
    options.add_argument("--seed", type=int, default=16)
    options.add_argument("--bound", type=float, default=1e-3, help="relative, behind a change of ranks")
    options.add_argument("--kinds", default="", help="only these faults, with commas")
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


def trial(bench, given):
    run = bench.run("disturbed", True, 1000000)
    run.start()
    if bench.goes_on(run, 180, 5) is None:
        print(run.errors.read_text()[-4000:], (run.folder / "out.txt").read_text()[-2000:], sep="\n")
        return 1
    begun, faults, changed_at = time.time(), [], 1 << 60
    kinds = tuple(given.kinds.split(",")) if given.kinds else SAME_RANKS
    deck = []
    while (now := time.time() - begun) < given.minutes * 60:
        late = now > given.minutes * 30 and (not given.kinds or "link" in given.kinds)
        if not deck:  # each kind once before any comes again
            deck = [*kinds, "link"] if late and "link" not in kinds else [one for one in kinds if one != "link" or late]
            bench.random.shuffle(deck)
        if late and changed_at == 1 << 60:
            kind = "link"
        else:
            kind = deck.pop()
        faults.append(bench.disturb(run, kind, begun))
        if kind == "link":
            changed_at = min(changed_at, faults[-1].from_step + 1)
        if run.process.poll() is not None:
            say(f"the launch has ended with {run.process.returncode}")
            break
        time.sleep(bench.random.uniform(2, 6))
    (bench.work / "events.jsonl").write_text("".join(json.dumps(one) + "\n" for _, one in bench.events.all))
    ended = run.interrupt() if run.process.poll() is None else run.process.returncode
    last = run.newest()
    say(f"{last} steps, the launcher's exit status {ended}; now the same undisturbed")
    plain = bench.run("undisturbed", False, last)
    plain.start()
    code = plain.process.wait()
    table(faults)
    same, equal, apart = bench.compare(run, plain, changed_at)
    told = {one["id"] for _, one in bench.events.all}
    passed = (same and ended == 0 and code == 0 and
              all(one.line and one.event and one.seconds is not None for one in faults))
    print(json.dumps({"bench": "chaos", "minutes": given.minutes, "seed": given.seed, "faults": len(faults), "steps": last,
                      "equal": equal, "changed_at": None if changed_at == 1 << 60 else changed_at, "apart": apart,
                      "events": len(told), "told_again": len(bench.events.all) - len(told), "passed": passed}))
    return 0 if passed else 1


if __name__ == "__main__":
    sys.exit(main())
