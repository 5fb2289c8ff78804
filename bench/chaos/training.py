"""`strata launch` of `strata train` in an output directory, and what it leaves behind while it is disturbed."""

import json
import os
import pathlib
import signal
import subprocess
import threading
import time

import events
import store

RESTARTS = 100000


class StepLog:
    """metrics.jsonl as it grows: a run that starts again writes steps anew, and none of their losses is forgotten."""

    def __init__(self, path):
        self.path, self.file, self.offset = path, None, 0
        self.losses, self.newest, self.count = {}, 0, 0  # losses: {step: [loss as it was written, ...]}
        self.ends = threading.Event()
        self.thread = threading.Thread(target=self.follow, daemon=True)
        self.thread.start()

    def follow(self):
        while not self.ends.wait(0.05):
            self.read()

    def read(self):
        try:
            with open(self.path, "rb") as file:
                status = os.fstat(file.fileno())
                if status.st_ino != self.file or status.st_size < self.offset:  # made anew, from the checkpoint's step on
                    self.file, self.offset = status.st_ino, 0
                file.seek(self.offset)
                text = file.read()
        except OSError:
            return
        whole = text[:text.rfind(b"\n") + 1]
        self.offset += len(whole)
        for line in whole.splitlines():
            try:
                one = json.loads(line)
            except ValueError:
                continue
            if "loss" not in one:
                continue
            self.newest = one["step"]
            self.count += 1
            known = self.losses.setdefault(one["step"], [])
            if one["loss"] not in known:
                known.append(one["loss"])

    def close(self):
        self.ends.set()
        self.thread.join()
        self.read()


class Run:
    """`strata launch` of one output directory; may be started again.

    accumulation and hosts are those of the start; a launch that may change its ranks keeps ranks times accumulation.
    """

    def __init__(self, bench, name, disturbed, steps, hosts, accumulation):
        self.bench, self.name, self.process = bench, name, None
        self.elastic = ("--elastic", "1:2", "--elastic-batch", "keep", "--max-restarts", str(RESTARTS)) if disturbed else ()
        self.folder = bench.work / name
        self.output = (bench.disk if disturbed else bench.work / "plain") / name
        self.folder.mkdir()
        (self.folder / "tmp").mkdir()
        endpoint = f"http://10.77.0.1:{store.PORT}"
        place = {"type": "aws", "aws_bucket_name": store.BUCKET, "aws_endpoint_url": endpoint, "aws_access_key_id": store.KEY,
                 "aws_secret_access_key": store.SECRET}
        lists = [{"id": "pictures", **place, "aws_data_prefix": "pictures", "resolution": 64, "cache_dir_vae": "vae"},
                 {"id": "texts", **place, "dataset_type": "text_embeds", "aws_data_prefix": "", "cache_dir": "texts"}]
        (self.folder / "list.json").write_text(json.dumps(lists))
        config = {"--data_backend_config": str(self.folder / "list.json"), "--output_dir": str(self.output), "--model_family": "small",
                  "--model_type": "full", "--mixed_precision": "no", "--seed": bench.seed, "--aspect_bucket_alignment": 16, "--train_batch_size": 2,
                  "--learning_rate": "1e-4", "--lr_scheduler": "constant", "--validation_disable": True,
                  "--checkpoint_step_interval": bench.interval, "--checkpoints_total_limit": 3,
                  # longer than the 30 s of silence after which a launcher takes a host for lost
                  "--collective_timeout": 40,
                  "--health_poll_interval_seconds": 1, "--health_disk_percent": 5}
        if disturbed:
            config["--webhook_config"] = {"webhook_type": "raw", "webhook_url": f"http://10.77.0.1:{events.PORT}/",
                                          "allow_private_addresses": True, "log_level": "debug", "stage_interval_seconds": 0}
        self.config = config
        self.plan(steps, hosts, accumulation)
        # Disks of each host, whose count of failed requests the bench plays.
        for host in ("hosta", "hostb"):
            (self.folder / "block" / host / "sda/device").mkdir(parents=True)
            self.fail_disk(host, 0)
        self.log = StepLog(self.output / "metrics.jsonl")
        shell = self.folder / "shell"
        network = bench.network
        own_folder = f"mkdir -p {self.output}; mount --bind {self.folder}/of_hostb {self.output}; " if bench.given.own_folders else ""
        shell.write_text(f"#!/bin/sh\nhost=$1; shift\nip -n {network.b} link show cable | grep -q 'state UP' || exit 255\n"
                         f"mkdir -p {self.folder}/tmp/b\nexport TMPDIR={self.folder}/tmp/b\n"
                         f"exec ip netns exec {network.b} unshare -u sh -c '"
                         f"hostname \"$0\"; mount --bind {self.folder}/block/$0 /sys/block; {own_folder}exec sh -c \"$1\"' $host \"$*\"\n")
        shell.chmod(0o755)
        self.errors = self.folder / "err.txt"
        if bench.given.own_folders:
            (self.folder / "of_hostb").mkdir()

    def plan(self, steps, hosts, accumulation):
        """What the next start trains: up to that step, from the newest checkpoint on."""
        self.accumulation = accumulation
        (self.folder / "config.json").write_text(json.dumps({**self.config, "--max_train_steps": steps}))
        (self.folder / "hosts").write_text(hosts)

    def start(self):
        words = ["ip", "netns", "exec", self.bench.network.a, "unshare", "-u", "sh", "-c", f"hostname hosta; mount --bind {self.folder}/block/hosta /sys/block; exec \"$@\"", "sh",
                 str(self.bench.tools / "strata"), "launch", "--hostfile", str(self.folder / "hosts"), "--remote-shell",
                 str(self.folder / "shell"), *self.elastic, "--log-dir", str(self.folder / "logs"), "--", str(self.bench.tools / "strata-train"), "--config",
                 str(self.folder / "config.json"), "--gradient_accumulation_steps", str(self.accumulation)]
        environment = {**os.environ, "TMPDIR": str(self.folder / "tmp"), "OMP_NUM_THREADS": "1", "OMPI_ALLOW_RUN_AS_ROOT": "1",
                       "OMPI_ALLOW_RUN_AS_ROOT_CONFIRM": "1", "OMPI_MCA_mpi_yield_when_idle": "1", "OMP_WAIT_POLICY": "passive"}
        with open(self.folder / "out.txt", "ab") as out, open(self.errors, "ab") as err:
            self.process = subprocess.Popen(words, stdout=out, stderr=err, env=environment, start_new_session=True)

    def fail_disk(self, host, times):
        """As the kernel counts failed requests, which look like this in /sys for SCSI and SATA."""
        file = self.folder / "block" / host / "sda/device/ioerr_cnt"
        file.with_suffix(".new").write_text(f"{times:#x}\n")
        file.with_suffix(".new").replace(file)

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

    def said(self):
        """All that the launcher and the ranks have written, as one text for each file, so that what is new can be told."""
        return {path: path.read_text(errors="replace") for path in [self.errors, *sorted(self.folder.glob("logs/*"))] if path.exists()}

    def newest(self):
        """The newest step that has a line, 0 without."""
        return self.log.newest

    def close(self):
        self.log.close()
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
