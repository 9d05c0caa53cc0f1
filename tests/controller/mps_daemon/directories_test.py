#!/usr/bin/env python3
"""Where the MPS daemon of a pod, or of the host, serves, and what the pod reports of that.

usage: directories_test.py BINARY
"""
import os
import signal
import unittest

from daemon_case import DaemonCase, READY


THERE = "/run/nvidia-mps" if os.geteuid() == 0 else "/tmp/nvidia-mps"  # From driver r615 on.


class Directories(DaemonCase):
    def below_root(self, verb, *more):
        return [word for word in self.words(verb, "--root", str(self.root), *more) if "pipe" not in word]

    def checks(self, driver, directory):
        """The one GPU has that driver, and a check takes that directory."""
        self.gpus(f"GPU-1, {driver}, Default, Disabled\n")
        done = self.run_words(self.below_root("check"))
        self.assertEqual((done.returncode, done.stdout), (0, f"pipeDirectory={directory} driver={driver} gpus=1\n"))

    def serves_in(self, directory):
        """There a daemon of the driver's default directory answers."""
        process = self.start_words(self.below_root("run"), READY)
        self.assertIn(f"answers in {self.root}{directory}:", self.run_words(self.below_root("ready")).stdout)
        self.assertEqual(self.stop(process), 0)

    def test_takes_the_directory_of_the_driver_below_the_mounted_root(self):
        self.checks("570.12", "/tmp/nvidia-mps")
        self.assertEqual([path.name for path in (self.root / "tmp").iterdir()], ["nvidia-mps"])
        self.assertFalse((self.root / "run").exists())  # An empty directory there would look like one with a daemon.

    # The termination message of the init container, which runs once for each pod, has reported where the daemon is.
    def test_serves_where_its_pod_has_said_after_another_driver_came_until_the_next_pod_or_boot(self):
        self.checks("570.12", "/tmp/nvidia-mps")
        self.gpus("GPU-1, 615.71, Default, Disabled\n")
        self.serves_in("/tmp/nvidia-mps")
        self.boot("second")
        self.serves_in(THERE)
        self.boot("first")
        self.checks("615.71", THERE)
        self.serves_in(THERE)

    def test_observes_a_daemon_of_the_host_and_changes_nothing(self):
        process = self.start("observe", "No MPS control daemon of the host answers")
        self.assertEqual(self.stop(process), 0)
        self.host_daemon()
        process = self.start("observe", "The host's MPS control daemon answers")
        self.assertEqual(self.stop(process), 0)
        self.assertEqual(self.calls(), [])
        self.assertEqual(self.once("ready").returncode, 0)
        self.assertEqual(self.once("observe", "--once", "--report", str(self.root / "report")).returncode, 0)
        self.assertEqual(self.report(), f"pipeDirectory={self.pipe}\n")

    def host_daemon_in(self, folder):
        """The host's daemon, in that one of the two default directories, and nowhere else."""
        if self.daemon_pid():
            os.kill(self.daemon_pid(), signal.SIGKILL)
            self.started[-1].wait()
        for other in ("run", "tmp"):
            (self.root / other / "nvidia-mps/control").unlink(missing_ok=True)
        self.host_daemon(self.root / folder / "nvidia-mps")

    def test_observing_reports_where_the_daemon_of_the_host_is_now(self):
        self.host_daemon_in("tmp")
        process = self.start_words(self.below_root("observe", "--report", str(self.root / "report")), "")
        self.started.insert(0, self.started.pop())
        self.assertEqual(self.report(), "pipeDirectory=/tmp/nvidia-mps\n")
        self.host_daemon_in("run")
        self.assertTrue(any("/run/nvidia-mps" in line for line in process.stderr))
        self.assertEqual(self.report(), "pipeDirectory=/run/nvidia-mps\n")
        self.assertIsNone(process.poll())


if __name__ == "__main__":
    unittest.main()
