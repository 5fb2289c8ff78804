"""A real S3 server on the first host, with the pictures of a run; its gateway can be taken away and brought back."""

import base64
import hashlib
import hmac
import os
import pathlib
import signal
import struct
import subprocess
import urllib.request
import zlib
from email.utils import formatdate

from network import does

PORT = 7480
KEY, SECRET, BUCKET = "TESTKEY", "testsecret0123456789", "chaos"
PICTURES = 24


def png(shade):
    """64 x 64, one colour."""
    def chunk(kind, data):
        return struct.pack(">I", len(data)) + kind + data + struct.pack(">I", zlib.crc32(kind + data))
    row = b"\0" + bytes((shade, 100, 255 - shade)) * 64
    return (b"\x89PNG\r\n\x1a\n" + chunk(b"IHDR", struct.pack(">IIBBBBB", 64, 64, 8, 2, 0, 0, 0)) +
            chunk(b"IDAT", zlib.compress(row * 64)) + chunk(b"IEND", b""))


class Server:
    """shared/rgw_up.sh on the first host, listening to both; its gateway can be stopped and started, what it keeps stays."""

    def __init__(self, network, script, folder):
        self.network, self.folder = network, folder
        folder.mkdir()
        text = script.read_text().replace("beast endpoint=127.0.0.1", "beast endpoint=0.0.0.0")
        (folder / "up.sh").write_text(text)
        does("ip", "netns", "exec", network.a, "bash", str(folder / "up.sh"), str(folder / "ceph"), str(PORT), KEY, SECRET)

    def put(self, key, body=b""):
        """Signature version 2 is six lines, and the gateway knows it."""
        date, path = formatdate(usegmt=True), f"/{BUCKET}" + (f"/{key}" if key else "")
        words = f"PUT\n\napplication/octet-stream\n{date}\n{path}"
        sign = base64.b64encode(hmac.new(SECRET.encode(), words.encode(), hashlib.sha1).digest()).decode()
        headers = {"Date": date, "Authorization": f"AWS {KEY}:{sign}", "Content-Type": "application/octet-stream"}
        with self.network.inside():
            request = urllib.request.Request(f"http://127.0.0.1:{PORT}{path}", data=body, method="PUT", headers=headers)
            urllib.request.urlopen(request, timeout=30).read()

    def fill(self):
        """A bucket with pictures and captions."""
        self.put("")
        for i in range(PICTURES):
            self.put(f"pictures/p{10 + i}.png", png(10 * i))
            self.put(f"pictures/p{10 + i}.txt", f"colour {i}\n".encode())

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
