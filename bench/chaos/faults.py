"""What is done to a run, and what has to come of each: a line of the launcher or a rank, an event that names it, and that training goes on."""

import os
import re
import signal
import time

# Those in the first part of a run leave the number of ranks as it is, so that losses are to be equal bit by bit; links break in the second.
SAME_RANKS = ("kill", "interrupt", "pause", "slow", "server", "disk", "breaker")
STATUS_OF_FAULT = 69


class Fault:
    """What was done, and what came of it."""

    def __init__(self, kind, at):
        self.kind, self.at, self.what = kind, at, kind
        self.line = self.event = None  # what was found
        self.wants_line = None         # a pattern in what launcher and ranks say
        self.wants_event = None        # (types, pattern in its message)
        self.proof = None              # why it did happen, where neither a line nor an event is to be expected
        self.objections = []           # what is wrong beside a line or an event that is missing
        self.seconds, self.from_step, self.lost = None, 0, 0

    @property
    def passed(self):
        return (not self.objections and self.seconds is not None and (self.line is not None or self.wants_line is None) and
                (self.event is not None or self.wants_event is None) and
                (self.wants_line is not None or self.wants_event is not None or self.proof is not None))


class Disturber:
    def __init__(self, run, network, server, events, random, disk):
        self.run, self.network, self.server, self.events = run, network, server, events
        self.random, self.disk = random, disk
        self.credited = set()  # ids of events that have been taken for a fault's
        self.disk_errors = {"hosta": 0, "hostb": 0}

    # ---- looking ---------------------------------------------------------------------------------------------------------

    def new_text(self):
        return "\n".join(text[len(self.before.get(path, "")):] for path, text in self.run.said().items())

    def waits_for(self, happened, seconds):
        until = time.time() + seconds
        while time.time() < until:
            if happened():
                return True
            time.sleep(0.1)
        return False

    def says(self, pattern, seconds):
        return self.waits_for(lambda: re.search(pattern, self.new_text()), seconds)

    def goes_on(self, seconds, steps=3):
        """Seconds until so many more lines of steps are there, or None."""
        begun, seen = time.time(), self.run.log.count
        if self.waits_for(lambda: self.run.log.count >= seen + steps or self.run.process.poll() is not None, seconds):
            return time.time() - begun if self.run.log.count >= seen + steps else None
        return None

    def find_event(self, fault):
        kind, pattern = fault.wants_event
        for came, one in self.events.all:
            text = " ".join(str(one.get(key, "")) for key in ("title", "message"))
            if one["type"] == "gpu.fault":
                text += " " + str(one.get("fault"))
            if came >= fault.begun and re.fullmatch(kind, one["type"]) and one["id"] not in self.credited and re.search(pattern, text):
                self.credited.add(one["id"])
                return f"{one['type']}: {text.strip()}"
        return None

    def a_rank(self):
        return self.random.choice(sorted(self.run.ranks().items()))

    # ---- doing: each ends when its cause is gone ---------------------------------------------------------------------------

    def kill(self, fault):
        rank, pid = self.a_rank()
        fault.what = f"SIGKILL of rank {rank}"
        fault.wants_line = rf"\[ST2606\] rank {rank}/\d+ .*was ended by SIGKILL"
        fault.wants_event = ("error", fault.wants_line)
        os.kill(pid, signal.SIGKILL)

    def pause(self, fault):
        rank, pid = self.a_rank()
        fault.what = f"SIGSTOP of rank {rank} until the others end"
        fault.wants_line = rf"\[ST2303\].*rank {rank} does not answer"
        fault.wants_event = ("error", fault.wants_line + r".*what the threads of all ranks did is in ")
        os.kill(pid, signal.SIGSTOP)
        self.says(r"\[ST2303\]", 90)
        try:
            os.kill(pid, signal.SIGCONT)
        except ProcessLookupError:
            pass

    def interrupt(self, fault):
        fault.what, fault.wants_event = "SIGINT of the launcher, and a start", ("training.checkpoint", "")
        step = self.run.newest()
        status = self.run.interrupt()
        if status != 0:
            fault.objections.append(f"exit status {status}, not 0")
        saved = self.run.newest()
        self.run.start()
        # Nothing that was done is done again.
        if self.says(r"resuming from .* \(step \d+,", 120):
            resumed = int(re.findall(r"resuming from .* \(step (\d+),", self.new_text())[-1])
            if resumed < max(step, saved):
                fault.objections.append(f"step {max(step, saved)} was done and step {resumed} saved")
            fault.line = f"exit status 0; goes on from step {resumed}"
        else:
            fault.objections.append("it did not resume")

    def slow(self, fault):
        kilobits, seconds = self.random.choice((200, 500, 1000)), self.random.randint(6, 10)
        fault.what = f"{kilobits} kbit/s for {seconds} s"
        begun, count = time.time(), self.run.log.count
        self.waits_for(lambda: self.run.log.count >= count + 5, 30)
        before = (time.time() - begun) / max(1, self.run.log.count - count)
        self.network.slow(kilobits)
        count = self.run.log.count
        time.sleep(seconds)
        during = seconds / max(1, self.run.log.count - count)
        self.network.slow(None)
        fault.proof = f"{before:.2f} s a step before, {during:.2f} s during"
        if during < 1.5 * before:
            fault.objections.append("it was no slower: " + fault.proof)
        self.must_not_restart = True

    def server_away(self, fault):
        seconds = self.random.randint(3, 8)
        rank, pid = self.a_rank()
        fault.what = f"S3 gateway and rank {rank} killed, the gateway started {seconds} s after the first failure"
        fault.wants_line = r"\[ST2010\].*10\.77\.0\.1:7480"
        fault.wants_event = ("error", fault.wants_line)
        # Latents that are at hand hide a server that is away; a start needs it for certain.
        self.server.stop()
        os.kill(pid, signal.SIGKILL)
        self.says(fault.wants_line, 60)
        time.sleep(seconds)
        self.server.start()

    def disk_full(self, fault):
        seconds = self.random.randint(5, 10)
        # Whichever comes first: the monitor's look, or a checkpoint that does not fit and ends the run.
        fault.what, fault.wants_line = f"a full disk for {seconds} s", r"% left|\[ST2003\].*No space left on device; step \d+ is not saved"
        fault.wants_event = ("gpu.fault|error", r"disk_space|\[ST2003\].*No space left on device")
        big, until = self.disk / "big", None
        with open(big, "wb", buffering=0) as file:
            while until is None or time.time() < until:
                try:
                    file.write(b"\0" * (1 << 16))
                except OSError:  # full, until a checkpoint that is written meanwhile takes another one's place
                    until = until or time.time() + seconds
                    time.sleep(0.05)
        big.unlink()

    def breaker(self, fault):
        """A disk of a host whose requests fail opens the breaker of its ranks: all save and end, and an operator starts again."""
        host = self.random.choice(("hosta", "hostb"))
        self.disk_errors[host] += 50
        fault.what = f"50 failed requests of a disk of {host}, and a start"
        fault.wants_line = rf"\[ST2802\] rank \d+/\d+ on {host}.*disk"
        fault.wants_event = ("gpu.fault", "disk_error.*circuit_opened")
        step = self.run.newest()
        self.run.fail_disk(host, self.disk_errors[host])
        if not self.waits_for(lambda: self.run.process.poll() is not None, 60):
            fault.objections.append("the run did not end")
            return
        if self.run.process.returncode != STATUS_OF_FAULT:
            fault.objections.append(f"exit status {self.run.process.returncode}, not {STATUS_OF_FAULT}")
        self.run.start()
        if not self.says(r"resuming from .* \(step \d+,", 120):
            fault.objections.append("it did not resume")
        elif int(re.findall(r"resuming from .* \(step (\d+),", self.new_text())[-1]) < step:
            fault.objections.append(f"step {step} was done and not saved")

    def link(self, fault):
        fault.what = "the cable of hostb is pulled, and put back"
        fault.wants_line = r"\[ST2124\]|\[ST2303\]"
        fault.wants_event = ("error", fault.wants_line)
        self.network.link(False)
        if not self.says(r"goes on from the newest checkpoint on hosta\n", 120) or self.goes_on(90) is None:
            fault.objections.append("hosta did not go on alone")
        elif len(self.run.ranks()) != 2:
            fault.objections.append(f"{len(self.run.ranks())} ranks instead of hosta's 2 while the cable was out")
        self.network.link(True)
        if not self.says("a host has come back", 90) or not self.says(r"goes on from the newest checkpoint on hosta, hostb\n", 60):
            fault.objections.append("hostb did not come back")
        elif self.goes_on(90) is None or len(self.run.ranks()) != 3:
            fault.objections.append("the 3 ranks do not train again")

    def disturb(self, kind, at):
        fault = Fault(kind, at)
        self.before, self.must_not_restart = self.run.said(), False
        fault.begun, step = time.time(), self.run.newest()
        {"kill": self.kill, "pause": self.pause, "interrupt": self.interrupt, "slow": self.slow, "server": self.server_away,
         "disk": self.disk_full, "breaker": self.breaker, "link": self.link}[kind](fault)
        fault.seconds = self.goes_on(180)

        def is_told():  # an event has its queue and its server
            if fault.wants_line and fault.line is None:
                found = re.search(rf"^.*({fault.wants_line}).*$", self.new_text(), re.MULTILINE)
                fault.line = found and found[0].strip()
            if fault.wants_event and fault.event is None:
                fault.event = self.find_event(fault)
            return (fault.line or not fault.wants_line) and (fault.event or not fault.wants_event)

        self.waits_for(is_told, 20)
        if self.must_not_restart and re.search(r"restart \d+ of|resuming from", self.new_text()):
            fault.objections.append("it was started again")
        resumed = [int(found) for found in re.findall(r"resuming from .* \(step (\d+),", self.new_text())]
        fault.from_step = min(resumed, default=step)
        fault.lost = max(0, step - fault.from_step)
        return fault
