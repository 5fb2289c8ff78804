"""Two "hosts" of this machine: network namespaces with a cable between them, which can be pulled and slowed."""

import ctypes
import os
import subprocess
import time

CLONE_NEWNET = 0x40000000


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
