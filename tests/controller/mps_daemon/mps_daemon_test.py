#!/usr/bin/env python3
"""`mps-daemon` against programs that stand in for nvidia-smi and nvidia-cuda-mps-control.

usage: mps_daemon_test.py BINARY
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

BINARY = sys.argv.pop(1) if len(sys.argv) > 1 else "build/debug/controller/gpu-sharing-operator"
PROGRAMS = pathlib.Path(__file__).resolve().parent / "programs"
READY = "MPS control daemon is ready"
TWO_GPUS = "GPU-1, 570.12, Default, Disabled\nGPU-2, 570.12, Default, [N/A]\n"


class MpsDaemon(unittest.TestCase):
    def setUp(self):
        self.root = pathlib.Path(tempfile.mkdtemp(prefix="gso-mps-"))
        self.addCleanup(shutil.rmtree, self.root)
        for folder in ("state", "log", "processes/sys/kernel/random", "programs"):
            (self.root / folder).mkdir(parents=True)
        for program in PROGRAMS.iterdir():
            shutil.copy(program, self.root / "programs")
        self.state = self.root / "state"
        self.gpus(TWO_GPUS)
        self.boot("first")
        self.environment = {**os.environ, "STAND_IN": str(self.state), "CUDA_MPS_LOG_DIRECTORY": str(self.root / "log"),
                            "PATH": f"{self.root}/programs:{os.environ['PATH']}"}
        self.started = []
        self.addCleanup(self.end_all)

    def end_all(self):
        for process in self.started:
            process.kill()
        if self.daemon_pid():
            try:
                os.kill(self.daemon_pid(), signal.SIGKILL)
            except ProcessLookupError:
                pass
        for process in self.started:
            process.wait()
            if process.stderr:
                process.stderr.close()

    def gpus(self, text):
        (self.state / "gpus").write_text(text)

    def boot(self, name):
        (self.root / "processes/sys/kernel/random/boot_id").write_text(name + "\n")

    def modes(self):
        return [line.split(", ")[2] for line in (self.state / "gpus").read_text().splitlines()]

    def calls(self):
        path = self.state / "calls"
        return path.read_text().splitlines() if path.exists() else []

    def daemon_pid(self):
        path = self.state / "daemon-pid"
        return int(path.read_text() or 0) if path.exists() else 0

    def report(self):
        return (self.root / "report").read_text()

    def memory(self):
        return self.root / "log/compute-modes.json"

    def words(self, verb, *more):
        out = [BINARY, "mps-daemon", verb, "--pipe-directory", str(self.root / "pipe")]
        if verb in ("run", "check"):
            out += ["--log-directory", str(self.root / "log"), "--processes", str(self.root / "processes"),
                    "--report", str(self.root / "report")]
        return [*out, *more]

    def start(self, verb, until, *more):
        """Starts it, and waits for a line of its log."""
        process = subprocess.Popen(self.words(verb, *more), env=self.environment, stderr=subprocess.PIPE, text=True)
        self.started.append(process)
        self.seen = ""
        for line in process.stderr:
            self.seen += line
            if until in line:
                return process
        self.fail(f"{until} was not logged: {self.seen}")

    def stop(self, process):
        process.send_signal(signal.SIGTERM)
        _, log = process.communicate(timeout=60)
        return process.returncode, log

    def once(self, verb, *more):
        return subprocess.run(self.words(verb, *more), env=self.environment, capture_output=True, text=True, timeout=60, check=False)

    def host_daemon(self):
        """A daemon that the host runs."""
        (self.root / "pipe").mkdir()
        environment = {**self.environment, "CUDA_MPS_PIPE_DIRECTORY": str(self.root / "pipe")}
        self.started.append(subprocess.Popen([PROGRAMS / "nvidia-cuda-mps-control", "-f"], env=environment, stdout=subprocess.DEVNULL))
        while self.once("ready").returncode != 0:
            pass

    def test_serves_with_its_limits_and_gives_the_compute_mode_back(self):
        process = self.start("run", READY, "--active-thread-percentage", "50", "--pinned-memory-limit", "0=10G",
                             "--pinned-memory-limit", "GPU-2=512M", "--server-user", "1000")
        self.assertEqual(self.modes(), ["Exclusive_Process", "Exclusive_Process"])
        ready = self.once("ready")
        self.assertEqual((ready.returncode, ready.stdout), (0, f"an MPS control daemon answers in {self.root}/pipe: active threads 50.0 %\n"))
        self.assertEqual(self.stop(process)[0], 0)
        self.assertEqual(self.calls(), [
            "mode GPU-1 EXCLUSIVE_PROCESS", "mode GPU-2 EXCLUSIVE_PROCESS", "set_default_device_pinned_mem_limit GPU-1 10G",
            "set_default_device_pinned_mem_limit GPU-2 512M", "set_default_active_thread_percentage 50",
            "start_server -uid 1000", "quit -t 30", "mode GPU-1 DEFAULT", "mode GPU-2 DEFAULT"])
        self.assertFalse(self.memory().exists())
        gone = self.once("ready")
        self.assertEqual(gone.returncode, 1)
        self.assertIn(f"no MPS control daemon answers `get_default_active_thread_percentage` in {self.root}/pipe: "
                      "Cannot find MPS control daemon process", gone.stdout)

    # Its pod can be removed while the container waits to be started again.
    def test_gives_the_compute_mode_back_if_the_daemon_ends_by_itself(self):
        process = self.start("run", READY)
        os.kill(self.daemon_pid(), signal.SIGKILL)
        log = self.seen + process.communicate(timeout=60)[1]
        self.assertEqual(process.returncode, 1)
        self.assertIn("MPS control daemon ended", log)
        self.assertIn("Starting control daemon", log)  # The daemon's own log.
        self.assertIn("ended by itself (signal 9)", self.report())
        self.assertEqual(self.modes(), ["Default", "Default"])
        self.assertFalse(self.memory().exists())
        process = self.start("run", READY)
        self.assertEqual(self.modes(), ["Exclusive_Process", "Exclusive_Process"])
        self.assertEqual(self.stop(process)[0], 0)
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

    def other_daemon(self):
        (self.root / "processes/4711").mkdir()
        (self.root / "processes/4711/cmdline").write_bytes(b"nvidia-cuda-mps-control\0-d\0")

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
        self.assertEqual(self.stop(process)[0], 0)

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
        self.assertIn("Left the compute modes to the other MPS control daemon", process.communicate(timeout=60)[1])
        self.assertEqual(self.modes(), ["Exclusive_Process", "Exclusive_Process"])
        (self.root / "processes/4711/cmdline").unlink()
        self.assertEqual(self.stop(self.start("run", READY))[0], 0)
        self.assertEqual(self.modes(), ["Default", "Default"])

    def test_an_empty_memory_is_what_a_power_failure_leaves(self):
        self.memory().write_text("")
        self.assertEqual(self.stop(self.start("run", READY))[0], 0)
        self.assertEqual(self.modes(), ["Default", "Default"])

    def test_remembers_the_compute_mode_over_its_own_crash(self):
        self.crash()
        self.assertEqual(self.stop(self.start("run", READY))[0], 0)
        self.assertEqual(self.modes(), ["Default", "Default"])

    def test_a_boot_ends_what_was_remembered(self):
        self.memory().write_text(json.dumps({"v": 1, "bootId": "an earlier one", "modes": {"GPU-1": "Default"}}))
        self.gpus("GPU-1, 570.12, Exclusive_Process, Disabled\n")
        self.assertEqual(self.stop(self.start("run", READY))[0], 0)
        self.assertEqual(self.modes(), ["Exclusive_Process"])

    def test_leaves_a_compute_mode_that_somebody_set_meanwhile(self):
        process = self.start("run", READY)
        self.gpus(TWO_GPUS.replace("GPU-1, 570.12, Default", "GPU-1, 570.12, Prohibited"))
        self.assertEqual(self.stop(process)[0], 0)
        self.assertEqual(self.modes(), ["Prohibited", "Default"])

    def test_keeps_the_compute_mode_where_it_is_told_to(self):
        self.assertEqual(self.stop(self.start("run", READY, "--compute-mode", "Keep"))[0], 0)
        self.assertEqual(self.calls(), ["quit -t 30"])

    def test_kills_a_daemon_that_does_not_quit_and_its_servers(self):
        (self.state / "hangs").touch()
        process = self.start("run", READY, "--stop-timeout", "1s", "--server-user", "1000")
        server = int((self.state / "server-pid").read_text())
        os.kill(server, 0)
        status, log = self.stop(process)
        self.assertEqual(status, 0)
        with self.assertRaises((ProcessLookupError, FileNotFoundError)):
            while pathlib.Path(f"/proc/{server}/stat").read_text().split()[2] != "Z":  # Reaped by whoever is its parent now.
                os.kill(server, 0)
            raise ProcessLookupError
        self.assertIn("Killed MPS control daemon", log)
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
            _, log = process.communicate(timeout=60)
            self.assertEqual(process.returncode, 0, log)
            self.assertIn("Killed MPS control daemon", log)
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

    def test_limits_the_threads_of_a_client_that_is_faster_than_any_command(self):
        process = self.start("run", READY, "--active-thread-percentage", "25")
        environment = pathlib.Path(f"/proc/{self.daemon_pid()}/environ").read_bytes().split(b"\0")
        self.assertIn(b"CUDA_MPS_ACTIVE_THREAD_PERCENTAGE=25", environment)
        self.stop(process)

    def test_sends_no_limit_for_a_device_that_the_node_does_not_have(self):
        process = self.start("run", READY, "--pinned-memory-limit", "1=4G", "--pinned-memory-limit", "7=1G",
                             "--pinned-memory-limit", "GPU-elsewhere=1G")
        self.assertEqual(self.stop(process)[0], 0)
        self.assertEqual([call for call in self.calls() if "mem_limit" in call], ["set_default_device_pinned_mem_limit GPU-2 4G"])
        self.assertIn('"devices":"GPU-elsewhere, 7"', self.seen)

    def test_prefers_the_limit_by_uuid_to_the_one_by_number(self):
        process = self.start("run", READY, "--pinned-memory-limit", "0=4G", "--pinned-memory-limit", "GPU-1=2G")
        self.assertEqual(self.stop(process)[0], 0)
        self.assertEqual([call for call in self.calls() if "mem_limit" in call], ["set_default_device_pinned_mem_limit GPU-1 2G"])

    def test_tells_a_server_that_runs_already_and_names_its_clients(self):
        (self.state / "early").write_text("815\n816\n")
        process = self.start("run", READY, "--pinned-memory-limit", "0=4G")
        self.assertEqual(self.stop(process)[0], 0)
        self.assertIn("set_device_pinned_mem_limit 4710 GPU-1 4G", self.calls())
        self.assertIn("Clients connected before their memory was limited", self.seen)
        self.assertIn('"processes":"815, 816"', self.seen)

    # As systemd might: after the check, so that nothing refused it.
    def test_says_that_a_second_daemon_was_started_and_is_not_ready_meanwhile(self):
        process = self.start("run", READY)
        own = self.root / f"processes/{self.daemon_pid()}"
        own.mkdir()
        (own / "cmdline").write_bytes(b"nvidia-cuda-mps-control\0-f\0")
        (own / "status").write_text(f"Name:\tnvidia-cuda-mps\nPPid:\t{process.pid}\n")
        forked = self.root / "processes/9000"  # By the daemon, and not yet the server that it becomes.
        forked.mkdir()
        (forked / "cmdline").write_bytes(b"nvidia-cuda-mps-control\0-f\0")
        (forked / "status").write_text(f"PPid:\t{self.daemon_pid()}\n")
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
        self.assertIn("No other MPS control daemon runs on the node any more", next(iter(process.stderr)))
        self.assertEqual(self.once(*alone).returncode, 0)
        self.assertEqual(self.stop(process)[0], 0)
        self.assertEqual(self.modes(), ["Default", "Default"])

    def refuses(self, *words):
        before = self.modes()
        for verb in ("check", "run"):
            done = self.once(verb)
            self.assertEqual(done.returncode, 1, done)
            for word in words:
                self.assertIn(word, self.report())
                self.assertIn(word, done.stdout if verb == "check" else done.stderr)
        self.assertEqual(self.modes(), before)

    def test_refuses_without_the_control_program(self):
        (self.root / "programs/nvidia-cuda-mps-control").unlink()
        self.refuses("nvidia-cuda-mps-control is not in the PATH", "runtimeClassName")

    def test_refuses_without_nvidia_smi(self):
        (self.root / "programs/nvidia-smi").unlink()
        self.refuses("cannot run nvidia-smi", "with the capability utility")

    def test_refuses_a_node_without_gpus(self):
        self.gpus("")
        self.refuses("nvidia-smi failed: No devices were found")

    def test_refuses_mig_and_a_prohibited_gpu_and_names_both(self):
        self.gpus("GPU-1, 570.12, Default, Enabled\nGPU-2, 570.12, Prohibited, Disabled\n")
        self.refuses("GPU GPU-1 has MIG enabled", "GPU GPU-2 is in compute mode Prohibited")
        self.assertFalse((self.root / "pipe").exists())  # A client that mounts it would look for no other one.

    def test_refuses_a_pipe_directory_that_is_not_writable(self):
        (self.root / "pipe").write_text("a file")
        self.refuses(f"pipe directory {self.root}/pipe is not writable")

    def test_refuses_a_node_where_a_daemon_runs(self):
        (self.root / "processes/4711").mkdir()
        (self.root / "processes/4711/cmdline").write_bytes(b"/usr/bin/nvidia-cuda-mps-control\0-d\0")
        self.refuses("an MPS control daemon runs on this node already (process 4711)", "mode observe")

    def test_a_command_to_a_daemon_is_no_daemon(self):
        # As the readiness probe, which begins together with the container, and a person on the node.
        (self.root / "processes/4711").mkdir()
        for arguments in (b"", b"-v\0", b"-q\0", b"server\0list\0"):
            (self.root / "processes/4711/cmdline").write_bytes(b"/usr/bin/nvidia-cuda-mps-control\0" + arguments)
            done = self.once("check")
            self.assertEqual((done.returncode, done.stdout), (0, f"pipeDirectory={self.root}/pipe driver=570.12 gpus=2\n"))

    def test_refuses_a_pipe_directory_where_a_daemon_answers(self):
        self.host_daemon()
        self.refuses(f"an MPS control daemon answers in {self.root}/pipe already")
        self.assertEqual(self.calls(), [])

    def test_refuses_to_run_without_the_right_to_set_the_compute_mode(self):
        (self.state / "no-root").touch()
        done = self.once("run")
        self.assertEqual(done.returncode, 1)
        self.assertIn("GPU GPU-1: the compute mode EXCLUSIVE_PROCESS was not set", self.report())
        self.assertIn("Insufficient Permissions. Only root is allowed", self.report())

    def test_refuses_a_memory_that_it_cannot_read(self):
        self.memory().write_text("{")
        done = self.once("run")
        self.assertEqual(done.returncode, 1)
        self.assertIn("compute-modes.json: the compute modes from before the MPS daemon cannot be read", self.report())
        self.assertEqual(self.calls(), [])

    def test_a_fit_node_passes_the_check_and_keeps_its_compute_mode(self):
        done = self.once("check")
        self.assertEqual((done.returncode, done.stdout), (0, f"pipeDirectory={self.root}/pipe driver=570.12 gpus=2\n"))
        self.assertEqual(self.report(), done.stdout)
        self.assertEqual(self.calls(), [])

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

    def observe(self, *more):
        """A container that observes, from its start to the first line of its log; its report is a new one."""
        (self.root / "report").write_text("")
        words = self.below_root("observe", "--report", str(self.root / "report"), "--last-report", str(self.root / "last"), *more)
        process = subprocess.Popen(words, env=self.environment, stderr=subprocess.PIPE, text=True)
        self.started.insert(0, process)
        next(iter(process.stderr))
        return process

    # The end of the container publishes its termination message, which names the new directory.
    def test_observing_ends_with_a_report_when_the_daemon_of_the_host_moves(self):
        self.host_daemon_in("tmp")
        process = self.observe()
        self.host_daemon_in("run")
        self.assertEqual(process.wait(timeout=60), 0)
        self.assertEqual(self.report(), "pipeDirectory=/run/nvidia-mps\n")
        self.assertIsNone(self.observe().poll())  # The next one goes on.

    def test_observing_reports_a_daemon_of_the_host_that_moved_while_it_was_started_again(self):
        self.host_daemon_in("tmp")
        self.assertEqual(self.observe("--once").wait(timeout=60), 0)  # The init container.
        self.assertEqual(self.report(), "pipeDirectory=/tmp/nvidia-mps\n")
        process = self.observe()
        process.kill()
        self.assertEqual(self.report(), "pipeDirectory=/tmp/nvidia-mps\n")
        self.host_daemon_in("run")
        process = self.observe()
        self.assertEqual(process.wait(timeout=60), 0)
        self.assertEqual(self.report(), "pipeDirectory=/run/nvidia-mps\n")
        process = self.observe()
        time.sleep(0.2)
        self.assertIsNone(process.poll())

    # After the node has booted, the init container runs again; the operator reads the newer of what containers said last.
    def test_observing_reports_a_daemon_of_the_host_that_moved_while_the_node_booted(self):
        self.host_daemon_in("tmp")
        self.assertEqual(self.observe("--once").wait(timeout=60), 0)
        self.observe().kill()
        self.host_daemon_in("run")
        self.assertEqual(self.observe("--once").wait(timeout=60), 0)
        self.assertEqual(self.observe().wait(timeout=60), 0)
        self.assertEqual(self.report(), "pipeDirectory=/run/nvidia-mps\n")

    def test_observing_repeats_its_report_while_no_daemon_answers(self):
        self.host_daemon_in("tmp")
        self.observe().kill()
        os.kill(self.daemon_pid(), signal.SIGKILL)
        self.started[-1].wait()
        self.observe().kill()
        self.assertEqual(self.report(), "pipeDirectory=/tmp/nvidia-mps\n")

    def test_names_a_wrong_argument(self):
        for words in (["--pinned-memory-limit", "0=10"], ["--pinned-memory-limit", "10G"], ["--pinned-memory-limit", "0=0G"],
                      ["--active-thread-percentage", "0"], ["--server-user", "-1"], ["--compute-mode", "Shared"], ["--stop-timeout", "2"]):
            done = self.once("run", *words)
            self.assertEqual(done.returncode, 2, done)
            self.assertIn(words[0], done.stderr)

    def test_refuses_a_pipe_directory_that_is_too_long_for_a_socket(self):
        for verb in ("run", "check", "observe", "ready"):
            done = subprocess.run([BINARY, "mps-daemon", verb, "--pipe-directory", "/" + 88 * "d"], capture_output=True, text=True, timeout=60, check=False)
            self.assertEqual(done.returncode, 2, done)
            self.assertIn("has 89 characters: choose one of at most 88", done.stderr)


if __name__ == "__main__":
    unittest.main()
