#!/usr/bin/env python3
"""`mps-daemon` against programs that stand in for nvidia-smi and nvidia-cuda-mps-control: how it serves and ends, and
every other test of this folder that needs no GPU.

usage: mps_daemon_test.py BINARY
"""
import os
import pathlib
import signal
import time
import unittest

from daemon_case import DaemonCase, READY
from compute_modes_test import ComputeModes  # noqa: F401
from directories_test import Directories  # noqa: F401
from refusals_test import Refusals  # noqa: F401


class MpsDaemon(DaemonCase):
    def test_serves_with_its_limits_and_gives_the_compute_mode_back(self):
        process = self.start("run", READY, "--active-thread-percentage", "50", "--pinned-memory-limit", "0=10G",
                             "--pinned-memory-limit", "GPU-2=512M", "--server-user", "1000")
        self.assertEqual(self.modes(), ["Exclusive_Process", "Exclusive_Process"])
        ready = self.once("ready")
        self.assertEqual((ready.returncode, ready.stdout), (0, f"an MPS control daemon answers in {self.pipe}: active threads 50.0 %\n"))
        self.assertEqual(self.stop(process), 0)
        self.assertEqual(self.calls(), [
            "mode GPU-1 EXCLUSIVE_PROCESS", "mode GPU-2 EXCLUSIVE_PROCESS", "set_default_device_pinned_mem_limit GPU-1 10G",
            "set_default_device_pinned_mem_limit GPU-2 512M", "set_default_active_thread_percentage 50",
            "start_server -uid 1000", "quit -t 30", "mode GPU-1 DEFAULT", "mode GPU-2 DEFAULT"])
        self.assertFalse(self.memory().exists())
        gone = self.once("ready")
        self.assertEqual(gone.returncode, 1)
        self.assertIn(f"no MPS control daemon answers `get_default_active_thread_percentage` in {self.pipe}: "
                      "Cannot find MPS control daemon process", gone.stdout)

    def test_kills_a_daemon_that_does_not_quit_and_its_servers(self):
        (self.state / "hangs").touch()
        process = self.start("run", READY, "--stop-timeout", "1s", "--server-user", "1000")
        server = int((self.state / "server-pid").read_text())
        os.kill(server, 0)
        self.assertEqual(self.stop(process), 0)
        with self.assertRaises((ProcessLookupError, FileNotFoundError)):
            while pathlib.Path(f"/proc/{server}/stat").read_text().split()[2] != "Z":  # Reaped by whoever is its parent now.
                os.kill(server, 0)
            raise ProcessLookupError
        self.assertIn("Killed MPS control daemon", self.seen)
        self.assertEqual(self.modes(), ["Default", "Default"])

    def test_lets_a_daemon_end_the_clients_that_compute_at_the_limit_itself(self):
        (self.state / "computes").touch()
        self.assertEqual(self.stop(self.start("run", READY, "--stop-timeout", "1s")), 0)
        self.assertNotIn("did not quit", self.seen)
        self.assertNotIn("Killed", self.seen)
        self.assertEqual(self.modes(), ["Default", "Default"])

    def await_call(self, call):
        while call not in self.calls():
            pass

    def test_a_second_signal_ends_the_wait_for_clients_and_gives_the_compute_mode_back(self):
        (self.state / "hangs").touch()
        for first, second in ((signal.SIGTERM, signal.SIGTERM), (signal.SIGINT, signal.SIGINT), (signal.SIGHUP, signal.SIGQUIT)):
            (self.state / "calls").unlink(missing_ok=True)
            process = self.start("run", READY, "--stop-timeout", "1h")
            process.send_signal(first)
            self.await_call("quit -t 3600")
            self.assertIsNone(process.poll())
            process.send_signal(second)
            self.assertEqual(self.ends(process), 0, self.seen)
            self.assertIn("Killed MPS control daemon", self.seen)
            self.assertEqual(self.modes(), ["Default", "Default"])
            self.assertFalse(self.memory().exists())

    def test_no_signal_keeps_it_from_giving_the_compute_mode_back(self):
        process = self.start("run", READY)
        (self.state / "slow").touch()
        process.send_signal(signal.SIGTERM)
        self.await_call("mode GPU-1 DEFAULT")
        while process.poll() is None:
            for number in (signal.SIGTERM, signal.SIGINT, signal.SIGHUP, signal.SIGQUIT):
                process.send_signal(number)
            time.sleep(0.01)
        self.assertEqual(process.returncode, 0)
        self.assertEqual(self.modes(), ["Default", "Default"])
        self.assertFalse(self.memory().exists())

    def test_gives_the_compute_mode_back_if_the_daemon_keeps_no_limit(self):
        for command, arguments in (("set_default_device_pinned_mem_limit", ("--pinned-memory-limit", "1=1G")),
                                   ("set_default_active_thread_percentage", ("--active-thread-percentage", "40"))):
            (self.state / "refuses").write_text(command)
            done = self.once("run", *arguments)
            self.assertEqual(done.returncode, 1)
            self.assertIn(f"does not keep a limit: after `{command}", self.report())
            self.assertEqual(self.modes(), ["Default", "Default"])
            self.assertFalse(self.memory().exists())

    def mem_limits(self, *arguments):
        """The limits of memory that are sent to a daemon with these arguments."""
        (self.state / "calls").unlink(missing_ok=True)
        self.assertEqual(self.stop(self.start("run", READY, *arguments)), 0)
        return [call for call in self.calls() if "mem_limit" in call]

    def test_limits_the_devices_of_the_node_by_uuid_before_number_and_the_threads_of_clients_before_any_command(self):
        self.assertEqual(self.mem_limits("--pinned-memory-limit", "1=4G", "--pinned-memory-limit", "7=1G", "--pinned-memory-limit", "GPU-elsewhere=1G"),
                         ["set_default_device_pinned_mem_limit GPU-2 4G"])
        self.assertIn('"devices":"GPU-elsewhere, 7"', self.seen)
        self.assertEqual(self.mem_limits("--pinned-memory-limit", "0=4G", "--pinned-memory-limit", "GPU-1=2G"),
                         ["set_default_device_pinned_mem_limit GPU-1 2G"])
        process = self.start("run", READY, "--active-thread-percentage", "25")
        environment = pathlib.Path(f"/proc/{self.daemon_pid()}/environ").read_bytes().split(b"\0")
        self.assertIn(b"CUDA_MPS_ACTIVE_THREAD_PERCENTAGE=25", environment)
        self.assertEqual(self.stop(process), 0)

    def test_tells_a_server_that_runs_already_and_names_its_clients(self):
        (self.state / "early").write_text("815\n816\n")
        process = self.start("run", READY, "--pinned-memory-limit", "0=4G")
        self.assertEqual(self.stop(process), 0)
        self.assertIn("set_device_pinned_mem_limit 4710 GPU-1 4G", self.calls())
        self.assertIn("Clients connected before their memory was limited", self.seen)
        self.assertIn('"processes":"815, 816"', self.seen)

    # As systemd might: after the check, so that nothing refused it.
    def test_says_that_a_second_daemon_was_started_and_is_not_ready_meanwhile(self):
        process = self.start("run", READY)
        self.process(self.daemon_pid(), b"nvidia-cuda-mps-control\0-f\0", parent=process.pid)
        self.process(9000, b"nvidia-cuda-mps-control\0-f\0", parent=self.daemon_pid())  # Not yet the server that it becomes.
        alone = ("ready", "--alone", "--processes", str(self.root / "processes"))
        self.assertEqual(self.once(*alone).returncode, 0)
        self.other_daemon()
        line = next(line for line in process.stderr if "MPS control daemon" in line)
        self.assertIn("Another MPS control daemon runs on the node, and two must not serve one GPU", line)
        self.assertIn('"processes":"4711"', line)
        ready = self.once(*alone)
        self.assertEqual(ready.returncode, 1)
        self.assertIn("2 MPS control daemons run on the node", ready.stdout)
        self.assertIn("4711", ready.stdout)
        self.assertEqual(self.once("ready").returncode, 0)
        os.kill(self.daemon_pid(), 0)  # It goes on to serve.
        (self.root / "processes/4711/cmdline").unlink()
        self.assertIn("The other MPS control daemon on the node has ended", next(iter(process.stderr)))
        self.assertEqual(self.once(*alone).returncode, 0)
        self.assertEqual(self.stop(process), 0)
        self.assertEqual(self.modes(), ["Default", "Default"])


if __name__ == "__main__":
    unittest.main()
