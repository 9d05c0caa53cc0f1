#!/usr/bin/env python3
"""When `mps-daemon` gives back the compute modes of the GPUs, and when it leaves them alone.

usage: compute_modes_test.py BINARY
"""
import json
import os
import signal
import unittest

from daemon_case import DaemonCase, READY, TWO_GPUS


class ComputeModes(DaemonCase):
    # Its pod can be removed while the container waits to be started again.
    def test_gives_the_compute_mode_back_if_the_daemon_ends_by_itself(self):
        process = self.start("run", READY)
        os.kill(self.daemon_pid(), signal.SIGKILL)
        self.assertEqual(self.ends(process), 1)
        self.assertIn("MPS control daemon ended", self.seen)
        self.assertIn("Starting control daemon", self.seen)  # The daemon's own log.
        self.assertIn("ended by itself (signal 9)", self.report())
        self.assertEqual(self.modes(), ["Default", "Default"])
        self.assertFalse(self.memory().exists())
        # The container is started again, without its init container. Only that one asks the clients to leave.
        self.processes("GPU-1, 4242, client-of-the-daemon\n")
        self.assertEqual(self.once("check").returncode, 1)
        process = self.start("run", READY)
        self.assertEqual(self.modes(), ["Exclusive_Process", "Exclusive_Process"])
        self.assertEqual(self.stop(process), 0)
        self.assertEqual(self.modes(), ["Default", "Default"])

    def test_gives_the_compute_mode_back_if_the_daemon_never_answers(self):
        (self.state / "broken").touch()
        done = self.once("run")
        self.assertEqual(done.returncode, 1)
        self.assertIn("ended by itself (exit status 1)", self.report())
        self.assertEqual(self.modes(), ["Default", "Default"])
        self.assertFalse(self.memory().exists())

    def crash(self):
        """The daemon serves, and is killed together with the program: the container has no memory left."""
        process = self.start("run", READY)
        process.kill()
        os.kill(self.daemon_pid(), signal.SIGKILL)  # The container's end kills it.
        process.communicate(timeout=60)
        self.assertEqual(self.modes(), ["Exclusive_Process", "Exclusive_Process"])

    def enable_mig(self):
        self.gpus((self.state / "gpus").read_text().replace("GPU-1, 570.12, Exclusive_Process, Disabled", "GPU-1, 570.12, Exclusive_Process, Enabled"))

    def test_gives_the_compute_mode_back_if_it_refuses_after_a_crash(self):
        self.crash()
        self.enable_mig()
        self.assertEqual(self.once("run").returncode, 1)
        self.assertIn("GPU GPU-1 has MIG enabled", self.report())
        self.assertEqual(self.modes(), ["Default", "Default"])

    # The init container of a later pod: where it refuses the node, the container that would do it never starts.
    def test_a_check_gives_the_compute_mode_back_only_if_it_refuses_and_is_told_to(self):
        self.crash()
        self.assertEqual(self.once("check", "--restore-compute-modes").returncode, 0)
        self.assertEqual(self.modes(), ["Exclusive_Process", "Exclusive_Process"])
        self.enable_mig()
        self.assertEqual(self.once("check").returncode, 1)
        self.assertEqual(self.modes(), ["Exclusive_Process", "Exclusive_Process"])
        self.assertEqual(self.once("check", "--restore-compute-modes").returncode, 1)
        self.assertEqual(self.modes(), ["Default", "Default"])
        self.assertFalse(self.memory().exists())

    def test_gives_the_compute_mode_back_if_a_later_daemon_is_to_keep_it(self):
        self.crash()
        process = self.start("run", READY, "--compute-mode", "Keep")
        self.assertEqual(self.modes(), ["Default", "Default"])
        self.assertEqual(self.stop(process), 0)

    def test_leaves_the_compute_mode_to_another_daemon(self):
        self.crash()
        self.other_daemon()
        self.assertEqual(self.once("run").returncode, 1)
        self.assertEqual(self.once("check", "--restore-compute-modes").returncode, 1)
        self.assertEqual(self.modes(), ["Exclusive_Process", "Exclusive_Process"])

    def test_leaves_the_compute_mode_to_another_daemon_if_its_own_ends_by_itself(self):
        process = self.start("run", READY)
        self.other_daemon()
        os.kill(self.daemon_pid(), signal.SIGKILL)
        self.ends(process)
        self.assertIn("Left the compute modes to the other MPS control daemon", self.seen)
        self.assertEqual(self.modes(), ["Exclusive_Process", "Exclusive_Process"])
        (self.root / "processes/4711/cmdline").unlink()
        self.assertEqual(self.stop(self.start("run", READY)), 0)
        self.assertEqual(self.modes(), ["Default", "Default"])

    # An empty memory is what a power failure leaves.
    def test_remembers_the_compute_mode_over_its_own_crash(self):
        self.memory().write_text("")
        self.crash()
        self.assertEqual(self.stop(self.start("run", READY)), 0)
        self.assertEqual(self.modes(), ["Default", "Default"])

    def test_a_boot_ends_what_was_remembered(self):
        self.memory().write_text(json.dumps({"v": 1, "bootId": "an earlier one", "modes": {"GPU-1": "Default"}}))
        self.gpus("GPU-1, 570.12, Exclusive_Process, Disabled\n")
        self.assertEqual(self.stop(self.start("run", READY)), 0)
        self.assertEqual(self.modes(), ["Exclusive_Process"])

    def test_leaves_a_compute_mode_that_somebody_set_meanwhile(self):
        process = self.start("run", READY)
        self.gpus(TWO_GPUS.replace("GPU-1, 570.12, Default", "GPU-1, 570.12, Prohibited"))
        self.assertEqual(self.stop(process), 0)
        self.assertEqual(self.modes(), ["Prohibited", "Default"])

    def test_keeps_the_compute_mode_where_it_is_told_to(self):
        self.assertEqual(self.stop(self.start("run", READY, "--compute-mode", "Keep")), 0)
        self.assertEqual(self.calls(), ["quit -t 30"])


if __name__ == "__main__":
    unittest.main()
