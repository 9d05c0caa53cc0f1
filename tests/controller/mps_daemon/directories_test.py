#!/usr/bin/env python3
"""Where the MPS daemon of a pod, or of the host, serves, and what the pod reports of that.

usage: directories_test.py BINARY
"""
import os
import signal
import subprocess
import unittest

from daemon_case import DaemonCase, PROGRAMS, READY


class Directories(DaemonCase):
    def test_takes_the_directory_of_the_driver_below_the_mounted_root(self):
        done = subprocess.run([word for word in self.words("check", "--root", str(self.root)) if "pipe" not in word],
                              env=self.environment, capture_output=True, text=True, timeout=60, check=False)
        self.assertEqual((done.returncode, done.stdout), (0, "pipeDirectory=/tmp/nvidia-mps driver=570.12 gpus=2\n"))
        self.assertEqual([path.name for path in (self.root / "tmp").iterdir()], ["nvidia-mps"])
        self.assertFalse((self.root / "run").exists())  # An empty directory there would look like one with a daemon.

    def below_root(self, verb, *more):
        return [word for word in self.words(verb, "--root", str(self.root), *more) if "pipe" not in word]

    def run_below_root(self):
        """Where a daemon of the driver's default directory answers."""
        process = subprocess.Popen(self.below_root("run"), env=self.environment, stderr=subprocess.PIPE, text=True)
        self.started.append(process)
        self.assertTrue(any(READY in line for line in process.stderr))
        ready = subprocess.run(self.below_root("ready"), env=self.environment, capture_output=True, text=True, timeout=60, check=False)
        self.assertEqual(self.stop(process)[0], 0)
        return ready.stdout

    # The termination message of the init container, which runs once for each pod, has reported where the daemon is.
    def test_serves_where_its_pod_has_said_after_another_driver_came(self):
        self.gpus("GPU-1, 570.12, Default, Disabled\n")
        subprocess.run(self.below_root("check"), env=self.environment, capture_output=True, timeout=60, check=True)
        self.gpus("GPU-1, 615.71, Default, Disabled\n")
        self.assertIn(f"answers in {self.root}/tmp/nvidia-mps:", self.run_below_root())
        # The next pod asks again.
        done = subprocess.run(self.below_root("check"), env=self.environment, capture_output=True, text=True, timeout=60, check=False)
        there = "/run/nvidia-mps" if os.geteuid() == 0 else "/tmp/nvidia-mps"
        self.assertEqual((done.returncode, done.stdout), (0, f"pipeDirectory={there} driver=615.71 gpus=1\n"))
        self.assertIn(f"answers in {self.root}{there}:", self.run_below_root())

    def test_a_boot_ends_what_a_pod_has_said(self):
        self.gpus("GPU-1, 570.12, Default, Disabled\n")
        subprocess.run(self.below_root("check"), env=self.environment, capture_output=True, timeout=60, check=True)
        self.gpus("GPU-1, 615.71, Default, Disabled\n")
        self.boot("second")
        there = "/run/nvidia-mps" if os.geteuid() == 0 else "/tmp/nvidia-mps"
        self.assertIn(f"answers in {self.root}{there}:", self.run_below_root())

    def test_observes_a_daemon_of_the_host_and_changes_nothing(self):
        process = self.start("observe", "No MPS control daemon of the host answers")
        self.assertEqual(self.stop(process)[0], 0)
        self.host_daemon()
        process = self.start("observe", "The host's MPS control daemon answers")
        self.assertEqual(self.stop(process)[0], 0)
        self.assertEqual(self.calls(), [])
        self.assertEqual(self.once("ready").returncode, 0)
        self.assertEqual(self.once("observe", "--once", "--report", str(self.root / "report")).returncode, 0)
        self.assertEqual(self.report(), f"pipeDirectory={self.root}/pipe\n")

    def host_daemon_in(self, folder):
        """The host's daemon, in that one of the two default directories, and nowhere else."""
        if self.daemon_pid():
            os.kill(self.daemon_pid(), signal.SIGKILL)
            self.started[-1].wait()
        (self.root / folder / "nvidia-mps").mkdir(parents=True, exist_ok=True)
        environment = {**self.environment, "CUDA_MPS_PIPE_DIRECTORY": str(self.root / folder / "nvidia-mps")}
        for other in ("run", "tmp"):
            (self.root / other / "nvidia-mps/control").unlink(missing_ok=True)
        self.started.append(subprocess.Popen([PROGRAMS / "nvidia-cuda-mps-control", "-f"], env=environment, stdout=subprocess.DEVNULL))
        while subprocess.run(self.below_root("ready"), env=self.environment, capture_output=True, timeout=60, check=False).returncode != 0:
            pass

    def test_observing_reports_where_the_daemon_of_the_host_is_now(self):
        self.host_daemon_in("tmp")
        words = self.below_root("observe", "--report", str(self.root / "report"))
        process = subprocess.Popen(words, env=self.environment, stderr=subprocess.PIPE, text=True)
        self.started.insert(0, process)
        lines = iter(process.stderr)
        next(lines)
        self.assertEqual(self.report(), "pipeDirectory=/tmp/nvidia-mps\n")
        self.host_daemon_in("run")
        while "/run/nvidia-mps" not in next(lines):
            pass
        self.assertEqual(self.report(), "pipeDirectory=/run/nvidia-mps\n")
        self.assertIsNone(process.poll())


if __name__ == "__main__":
    unittest.main()
