#!/usr/bin/env python3
"""`mps-daemon` with the real nvidia-cuda-mps-control and real CUDA clients, on a machine with one free GPU.

usage: real_daemon_test.py BINARY

Runs as root. The GPU's compute mode is Default before, in between and after: each daemon runs with `--compute-mode Keep`.
Ends with status 77 where no GPU is, or where MPS does not work without `mps-daemon` either. What was seen of the real program
holds for the stand-in too (programs/).
"""
import json
import os
import pathlib
import shutil
import signal
import subprocess
import sys
import tempfile
import time
import unittest

from daemon_case import MpsCase, READY

CLIENT = pathlib.Path(__file__).resolve().parent / "cuda_client.py"
CONTROL = "nvidia-cuda-mps-control"
DRIVERS_PROGRAMS = "/usr/local/nvidia/bin"  # Where container images have them that are not in the PATH.


def query(field):
    done = subprocess.run(["nvidia-smi", f"--query-gpu={field}", "--format=csv,noheader"], capture_output=True, text=True, check=False)
    return done.stdout.split("\n")[0].strip() if done.returncode == 0 else ""


def mps_processes():
    """(process id, user id, program) of each control daemon and server."""
    out = []
    for path in pathlib.Path("/proc").glob("[0-9]*"):
        try:
            program = (path / "cmdline").read_bytes().split(b"\0")[0].decode()
            user = (path / "status").read_text().split("\nUid:\t")[1].split("\t")[0]
        except (OSError, IndexError):
            continue
        if pathlib.Path(program).name in (CONTROL, "nvidia-cuda-mps-server"):
            out.append((int(path.name), int(user), pathlib.Path(program).name))
    return out


def of_share(whole, percent):
    """The multiprocessors that a client can see of such a share: MPS rounds it to what the GPU can separate (an H200: pairs, down)."""
    exact = whole * percent / 100
    return range(int(exact) - 1, int(exact) + 9)


def why_mps_does_not_work():
    """What a plain daemon and a plain client say; empty: they work together."""
    with tempfile.TemporaryDirectory(prefix="gso-mps-") as root:
        environment = {**os.environ, "CUDA_MPS_PIPE_DIRECTORY": root, "CUDA_MPS_LOG_DIRECTORY": root}

        def control(command):
            return subprocess.run([CONTROL], input=command + "\n", env=environment, capture_output=True, text=True, timeout=60, check=False).stdout

        started = subprocess.run([CONTROL, "-d"], env=environment, stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL, timeout=60, check=False)
        if started.returncode != 0:
            return f"{CONTROL} -d ends with status {started.returncode}"
        try:
            client = subprocess.run([sys.executable, CLIENT], env=environment, stdin=subprocess.DEVNULL, capture_output=True, text=True, timeout=120, check=False)
            server = control("get_server_list").strip()
            return "" if client.returncode == 0 and server else f"client: {client.stdout}{client.stderr} servers: {server or 'none'}"
        except subprocess.TimeoutExpired as late:
            return str(late)
        finally:
            for pid, _, _ in mps_processes():
                os.kill(pid, signal.SIGKILL)
            await_no_mps()


def await_no_mps():
    deadline = time.monotonic() + 30
    while mps_processes():
        if time.monotonic() > deadline:
            raise AssertionError(f"still there: {mps_processes()}")


class RealDaemon(MpsCase):
    def setUp(self):
        super().setUp()
        self.root.chmod(0o755)  # A server runs as its clients' user, and must get at the pipe directory.
        self.clients = []
        self.assertEqual(query("compute_mode"), "Default")
        self.assertEqual(mps_processes(), [])

    def usual(self):
        return ["--compute-mode", "Keep"]

    def end_all(self):
        for process in self.clients + self.started:
            process.kill()
        for pid, _, _ in mps_processes():
            os.kill(pid, signal.SIGKILL)
        await_no_mps()
        for process in self.clients + self.started:
            process.communicate()  # The daemon had the other end of its pipe as well.
        self.assertEqual(query("compute_mode"), "Default")

    def run_daemon(self, *more):
        return self.start("run", READY, *more)

    def connect(self, *more, pipe=None):
        """A client that is connected, and what it sees."""
        environment = {**os.environ, "CUDA_MPS_PIPE_DIRECTORY": str(pipe or self.pipe)}
        process = subprocess.Popen([sys.executable, CLIENT, *more], env=environment, stdin=subprocess.PIPE, stdout=subprocess.PIPE, text=True)
        self.clients.append(process)
        return process, json.loads(process.stdout.readline())

    def sees(self, *more, pipe=None):
        process, says = self.connect(*more, pipe=pipe)
        process.communicate(timeout=60)
        return says

    def test_the_node_passes_the_check(self):
        done = self.once("check")
        self.assertEqual((done.returncode, done.stdout), (0, f"pipeDirectory={self.pipe} driver={query('driver_version')} gpus=1\n"))

    def test_clients_get_their_part_of_threads_and_memory(self):
        whole = self.sees(pipe=self.root / "nowhere")
        process = self.run_daemon("--active-thread-percentage", "50", "--pinned-memory-limit", "0=10G", "--pinned-memory-limit", "7=1G")
        says = self.sees("--allocate", "8000")
        self.assertIn(says["multiprocessors"], of_share(whole["multiprocessors"], 50))
        self.assertLess(says["freeMiB"], 10 * 1024 + 1)
        self.assertEqual(says["totalMiB"], whole["totalMiB"])  # Why inference servers need their part as an argument.
        self.assertTrue(says["allocated"])
        self.assertFalse(self.sees("--allocate", "20000")["allocated"])
        ready = self.once("ready")
        self.assertEqual((ready.returncode, ready.stdout), (0, f"an MPS control daemon answers in {self.pipe}: active threads 50.0 %\n"))
        self.assertEqual(self.stop(process), 0)
        self.assertIn('"devices":"7"', self.seen)
        self.assertIn("Starting control daemon", self.seen)
        self.assertNotIn("Killed MPS control daemon", self.seen)
        await_no_mps()
        self.assertEqual(self.once("ready").returncode, 1)

    def test_a_limit_by_uuid_goes_before_one_by_number(self):
        process = self.run_daemon("--pinned-memory-limit", f"{query('uuid')}=6144M", "--pinned-memory-limit", "0=10G")
        says = self.sees("--allocate", "8000")
        self.assertLess(says["freeMiB"], 6145)
        self.assertFalse(says["allocated"])
        self.assertEqual(self.stop(process), 0)

    def test_the_first_client_is_limited_even_if_it_waits_for_the_daemon(self):
        whole = self.sees(pipe=self.root / "nowhere")
        script = 'while [ ! -S "$1/control" ]; do :; done; exec "$2" "$3"'
        waiting = subprocess.Popen(["sh", "-c", script, "sh", self.pipe, sys.executable, CLIENT], stdin=subprocess.PIPE, stdout=subprocess.PIPE,
                                   text=True, env={**os.environ, "CUDA_MPS_PIPE_DIRECTORY": str(self.pipe)})
        self.clients.append(waiting)
        process = self.run_daemon("--active-thread-percentage", "25")
        says = json.loads(waiting.stdout.readline())
        waiting.communicate(timeout=60)
        self.assertIn(says["multiprocessors"], of_share(whole["multiprocessors"], 25))
        self.assertEqual(self.stop(process), 0)

    def test_starts_the_server_of_a_user(self):
        process = self.run_daemon("--server-user", "1000")
        self.assertEqual([user for _, user, program in mps_processes() if program != CONTROL], [1000])
        self.assertEqual(self.stop(process), 0)
        await_no_mps()

    def test_a_second_daemon_is_refused_and_the_first_one_observed(self):
        process = self.run_daemon()
        control = [pid for pid, _, program in mps_processes() if program == CONTROL]
        for verb in ("check", "run"):
            done = self.once(verb)
            self.assertEqual(done.returncode, 1)
            self.assertIn(f"an MPS control daemon runs on this node already (process {control[0]})", self.report())
        self.assertEqual(self.once("observe", "--once").returncode, 0)
        self.assertEqual(self.stop(process), 0)

    def test_observes_a_daemon_that_the_host_started(self):
        self.pipe.mkdir()
        subprocess.run([CONTROL, "-d"], env={**os.environ, "CUDA_MPS_PIPE_DIRECTORY": str(self.pipe), "CUDA_MPS_LOG_DIRECTORY": str(self.root)}, check=True)
        done = self.once("observe", "--once", "--report", str(self.root / "report"))
        self.assertEqual((done.returncode, self.report()), (0, f"pipeDirectory={self.pipe}\n"))
        self.assertEqual(self.once("run").returncode, 1)

    def test_a_stop_waits_for_a_client_that_ends(self):
        process = self.run_daemon("--stop-timeout", "60s")
        client, _ = self.connect()
        process.send_signal(signal.SIGTERM)
        with self.assertRaises(subprocess.TimeoutExpired):
            process.wait(timeout=3)
        client.communicate()
        self.assertEqual(self.ends(process), 0)
        self.assertNotIn("Killed MPS control daemon", self.seen)

    def test_a_stop_ends_although_a_client_computes_and_the_next_daemon_serves(self):
        process = self.run_daemon("--stop-timeout", "2s")
        self.connect("--spin")
        self.assertEqual(self.stop(process), 0)
        # The daemon keeps its limit and ends the server, or is killed: drivers of r580 do the one or the other.
        self.assertRegex(self.seen, "Killed MPS control daemon|Force shutting down server")
        self.clients[0].kill()
        await_no_mps()
        process = self.run_daemon("--pinned-memory-limit", "0=10G")
        self.assertLess(self.sees()["freeMiB"], 10 * 1024 + 1)
        self.assertEqual(self.stop(process), 0)

    def test_a_second_signal_ends_the_wait_for_a_client(self):
        process = self.run_daemon("--stop-timeout", "10m")
        self.connect()
        process.send_signal(signal.SIGTERM)
        with self.assertRaises(subprocess.TimeoutExpired):
            process.wait(timeout=3)
        self.assertEqual(self.stop(process), 0)
        self.assertIn("Killed MPS control daemon", self.seen)
        self.clients[0].kill()
        await_no_mps()

    def test_another_daemon_is_noticed_and_the_own_one_is_none(self):
        process = self.run_daemon("--server-user", "0")
        self.assertEqual(self.once("ready", "--alone").returncode, 0)
        other = self.root / "other"
        other.mkdir()
        subprocess.run([CONTROL, "-d"], env={**os.environ, "CUDA_MPS_PIPE_DIRECTORY": str(other), "CUDA_MPS_LOG_DIRECTORY": str(other)}, check=True)
        self.assertTrue(any("Another MPS control daemon runs on the node" in line for line in process.stderr))
        self.assertEqual(self.once("ready", "--alone").returncode, 1)
        self.assertEqual(self.stop(process), 0)

    def test_a_daemon_that_dies_ends_the_program_and_the_next_one_serves(self):
        process = self.run_daemon()
        self.connect()
        os.kill([pid for pid, _, program in mps_processes() if program == CONTROL][0], signal.SIGKILL)
        self.assertEqual(self.ends(process), 1)
        self.assertIn("ended by itself (signal 9)", self.report())
        await_no_mps()
        process = self.run_daemon()
        self.assertNotIn("error", self.sees())
        self.clients[0].kill()
        self.assertEqual(self.stop(process), 0)


if __name__ == "__main__":
    if not shutil.which(CONTROL):
        os.environ["PATH"] += ":" + DRIVERS_PROGRAMS
    if not shutil.which(CONTROL) or not query("uuid").startswith("GPU-"):
        print("no NVIDIA GPU with nvidia-cuda-mps-control on this machine")
        sys.exit(77)
    if query("compute_mode") != "Default" or mps_processes():
        print("the GPU is in use by MPS, or its compute mode is not Default: nothing is changed there")
        sys.exit(77)
    if why_not := why_mps_does_not_work():
        print(f"MPS does not work on this machine, without mps-daemon either: {why_not}")
        sys.exit(77)
    unittest.main(verbosity=2)
