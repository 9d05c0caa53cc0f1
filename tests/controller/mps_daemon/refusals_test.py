#!/usr/bin/env python3
"""Nodes and arguments that `mps-daemon` refuses, and what it says of them.

usage: refusals_test.py BINARY
"""
import os
import unittest

from daemon_case import BINARY, DaemonCase


class Refusals(DaemonCase):
    def refuses(self, *words, verbs=("check", "run")):
        before = self.modes()
        for verb in verbs:
            done = self.once(verb)
            self.assertEqual(done.returncode, 1, done)
            for word in words:
                self.assertIn(word, self.report())
                self.assertIn(word, done.stdout if verb == "check" else done.stderr)
        self.assertEqual(self.modes(), before)

    def test_refuses_without_the_programs_and_without_gpus(self):
        smi, control = (self.root / "programs/nvidia-smi", self.root / "programs/nvidia-cuda-mps-control")
        for program, words in ((control, ("nvidia-cuda-mps-control is not in the PATH", "runtimeClassName")),
                               (smi, ("cannot run nvidia-smi", "with the capability utility"))):
            hidden = program.rename(self.root / "hidden")
            self.refuses(*words)
            hidden.rename(program)
        self.gpus("")
        self.refuses("nvidia-smi failed: No devices were found")

    def test_refuses_mig_and_a_prohibited_gpu_and_names_both(self):
        self.gpus("GPU-1, 570.12, Default, Enabled\nGPU-2, 570.12, Prohibited, Disabled\n")
        self.refuses("GPU GPU-1 has MIG enabled", "GPU GPU-2 is in compute mode Prohibited")
        self.assertFalse((self.pipe).exists())  # A client that mounts it would look for no other one.

    # They could open no further context, and no MPS server starts beside them.
    def test_refuses_a_gpu_that_processes_use_until_they_have_ended(self):
        self.processes("GPU-2, 4242, /usr/bin/python3\nGPU-2, 77, nvidia-cuda-mps-server\nGPU-2, 78, a, b\n")
        self.refuses("GPU GPU-2 is used by process 4242 (/usr/bin/python3), process 78 (a, b): ", "computeMode Keep", "looks again", verbs=["check"])
        self.assertNotIn("GPU-1", self.report())
        self.assertNotIn("nvidia-cuda-mps-server", self.report())
        self.assertFalse((self.pipe).exists())
        self.assertEqual(self.once("check", "--compute-mode", "Keep").returncode, 0)
        self.processes("")
        self.assertEqual(self.once("check").returncode, 0)

    def test_refuses_gpus_whose_processes_it_cannot_read_and_names_few_of_many_on_one_line_each(self):
        self.processes("fails")
        self.refuses("nvidia-smi failed: Failed to read the processes", "computeMode Keep", verbs=["check"])
        self.processes("".join("GPU-1, %d, %s\x1b[2J\n" % (pid, 500 * "n") for pid in range(100, 160)))
        self.refuses("GPU GPU-1 is used by ", "and 55 more", verbs=["check"])
        self.assertNotIn("\x1b", self.report())
        self.assertLess(len(self.report()), 2000)  # A termination message has at most 4096 bytes.

    def test_does_not_ask_who_uses_a_gpu_that_is_exclusive_already(self):
        self.gpus("GPU-1, 570.12, Exclusive_Process, Disabled\n")
        self.processes("GPU-1, 4242, client-of-the-daemon-before\n")
        self.assertEqual(self.once("check").returncode, 0)

    def test_refuses_a_pipe_directory_that_is_not_writable(self):
        (self.pipe).write_text("a file")
        self.refuses(f"pipe directory {self.pipe} is not writable")

    # Whoever can make a directory or a link in /tmp before the daemon's first start would serve its clients.
    def test_refuses_a_directory_that_another_user_can_fill(self):
        for name, say in (("pipe", "pipe directory"), ("log", "log directory")):
            place = self.root / name
            for mode in (0o777, 0o1777, 0o775):
                place.mkdir(exist_ok=True)
                place.chmod(mode)
                self.refuses(f"{say} {place} is not safe: {place} is writable by other users (mode {mode:o})")
            place.rmdir()
            place.symlink_to(self.state)
            self.refuses(f"{say} {place} is not safe: {place} is a symbolic link")
            place.unlink()
            if os.geteuid() == 0:
                place.mkdir()
                os.chown(place, 1234, 1234)
                self.refuses(f"{say} {place} is not safe: {place} is owned by user 1234")
                place.rmdir()
            place.mkdir(mode=0o755)
            self.assertEqual(self.once("check").returncode, 0)

    def test_refuses_a_directory_that_another_user_can_replace(self):
        for mode, status in ((0o1777, 0), (0o777, 1)):
            self.root.chmod(mode)
            self.assertEqual(self.once("check").returncode, status)
        self.assertIn(f"{self.root} is writable by other users (mode 777)", self.report())

    def test_refuses_a_node_where_a_daemon_runs_unless_it_ended_while_it_was_looked_at(self):
        self.process(4711, b"/usr/bin/nvidia-cuda-mps-control\0-d\0")
        self.refuses("an MPS control daemon runs on this node already (process 4711)", "mode observe")
        (self.root / "processes/4711/status").unlink()
        self.assertEqual(self.once("check").returncode, 0)

    def test_a_command_to_a_daemon_is_no_daemon(self):
        # As the readiness probe, which begins together with the container, and a person on the node.
        self.process(4711, b"")
        for arguments in (b"", b"-v\0", b"-q\0", b"server\0list\0"):
            (self.root / "processes/4711/cmdline").write_bytes(b"/usr/bin/nvidia-cuda-mps-control\0" + arguments)
            done = self.once("check")
            self.assertEqual((done.returncode, done.stdout), (0, f"pipeDirectory={self.pipe} driver=570.12 gpus=2\n"))

    def test_refuses_a_pipe_directory_where_a_daemon_answers(self):
        self.host_daemon()
        self.refuses(f"an MPS control daemon answers in {self.pipe} already")
        self.assertEqual(self.calls(), [])

    def test_refuses_to_run_without_the_right_to_set_the_compute_mode_or_with_a_memory_that_it_cannot_read(self):
        (self.state / "no-root").touch()
        self.assertEqual(self.once("run").returncode, 1)
        self.assertIn("GPU GPU-1: the compute mode EXCLUSIVE_PROCESS was not set", self.report())
        self.assertIn("Insufficient Permissions. Only root is allowed", self.report())
        (self.state / "no-root").unlink()
        self.memory().write_text("{")
        self.assertEqual(self.once("run").returncode, 1)
        self.assertIn("compute-modes.json: the compute modes from before the MPS daemon cannot be read", self.report())
        self.assertEqual(self.calls(), [])

    def test_a_fit_node_passes_the_check_and_keeps_its_compute_mode(self):
        done = self.once("check")
        self.assertEqual((done.returncode, done.stdout), (0, f"pipeDirectory={self.pipe} driver=570.12 gpus=2\n"))
        self.assertEqual(self.report(), done.stdout)
        self.assertEqual(self.calls(), [])

    def test_names_a_wrong_argument(self):
        for words in (["--pinned-memory-limit", "0=10"], ["--pinned-memory-limit", "10G"], ["--pinned-memory-limit", "0=0G"],
                      ["--active-thread-percentage", "0"], ["--server-user", "-1"], ["--compute-mode", "Shared"], ["--stop-timeout", "2"]):
            done = self.once("run", *words)
            self.assertEqual(done.returncode, 2, done)
            self.assertIn(words[0], done.stderr)

        for verb in ("run", "check", "observe", "ready"):
            done = self.run_words([BINARY, "mps-daemon", verb, "--pipe-directory", "/" + 88 * "d"])
            self.assertEqual(done.returncode, 2, done)
            self.assertIn("has 89 characters: choose one of at most 88", done.stderr)


if __name__ == "__main__":
    unittest.main()
