"""`mps-daemon` in a folder of its own, with the programs that stand in for nvidia-smi and nvidia-cuda-mps-control.

The first argument of a test is the path of the operator's program.
"""
import os
import pathlib
import shutil
import signal
import subprocess
import sys
import tempfile
import unittest

BINARY = sys.argv.pop(1) if len(sys.argv) > 1 else "build/debug/controller/gpu-sharing-operator"
PROGRAMS = pathlib.Path(__file__).resolve().parent / "programs"
READY = "MPS control daemon is ready"
TWO_GPUS = "GPU-1, 570.12, Default, Disabled\nGPU-2, 570.12, Default, [N/A]\n"


class MpsCase(unittest.TestCase):
    """Runs `mps-daemon` in a folder of its own."""

    def setUp(self):
        self.root = pathlib.Path(tempfile.mkdtemp(prefix="gso-mps-"))
        self.addCleanup(shutil.rmtree, self.root)
        self.pipe, self.log = self.root / "pipe", self.root / "log"
        self.started, self.seen, self.environment = [], "", dict(os.environ)
        self.addCleanup(self.end_all)

    def words(self, verb, *more):
        reporting = ["--log-directory", str(self.log), "--report", str(self.root / "report"), *self.usual()] if verb in ("run", "check") else []
        return [BINARY, "mps-daemon", verb, "--pipe-directory", str(self.pipe), *reporting, *more]

    def run_words(self, words, check=False):
        return subprocess.run(words, env=self.environment, capture_output=True, text=True, timeout=120, check=check)

    def once(self, verb, *more):
        return self.run_words(self.words(verb, *more))

    def start_words(self, words, until):
        """Starts it, and waits for a line of its log."""
        process = subprocess.Popen(words, env=self.environment, stderr=subprocess.PIPE, text=True)
        self.started.append(process)
        self.seen = ""
        for line in process.stderr:
            self.seen += line
            if until in line:
                return process
        self.fail(f"{until} was not logged: {self.seen}")

    def start(self, verb, until, *more):
        return self.start_words(self.words(verb, *more), until)

    def ends(self, process):
        """The status with which it ends by itself; all that it logged is in `seen`."""
        self.seen += process.communicate(timeout=120)[1]
        return process.returncode

    def stop(self, process):
        process.send_signal(signal.SIGTERM)
        return self.ends(process)

    def report(self):
        return (self.root / "report").read_text()


class DaemonCase(MpsCase):
    def setUp(self):
        super().setUp()
        for folder in ("state", "log", "processes/sys/kernel/random", "programs"):
            (self.root / folder).mkdir(parents=True)
        for program in PROGRAMS.iterdir():
            shutil.copy(program, self.root / "programs")
        self.state = self.root / "state"
        self.gpus(TWO_GPUS)
        self.boot("first")
        self.environment |= {"STAND_IN": str(self.state), "CUDA_MPS_LOG_DIRECTORY": str(self.log),
                             "PATH": f"{self.root}/programs:{os.environ['PATH']}"}

    def usual(self):
        return ["--processes", str(self.root / "processes")]

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

    def processes(self, text):
        (self.state / "processes").write_text(text)

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

    def memory(self):
        return self.root / "log/compute-modes.json"

    def host_daemon(self, pipe=None):
        """A daemon that the host runs."""
        pipe = pipe or self.pipe
        pipe.mkdir(parents=True, exist_ok=True)
        environment = {**self.environment, "CUDA_MPS_PIPE_DIRECTORY": str(pipe)}
        self.started.append(subprocess.Popen([PROGRAMS / "nvidia-cuda-mps-control", "-f"], env=environment, stdout=subprocess.DEVNULL))
        while self.run_words([BINARY, "mps-daemon", "ready", "--pipe-directory", str(pipe)]).returncode != 0:
            pass

    def process(self, pid, command_line, parent=1):
        """One more process of the node. Its status is there before the command line by which it is found."""
        folder = self.root / f"processes/{pid}"
        folder.mkdir()
        (folder / "status").write_text(f"Name:\tnvidia-cuda-mps\nPPid:\t{parent}\n")
        (folder / "cmdline").write_bytes(command_line)

    def other_daemon(self):
        self.process(4711, b"nvidia-cuda-mps-control\0-d\0")
