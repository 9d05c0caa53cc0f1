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


class DaemonCase(unittest.TestCase):
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

    def process(self, pid, command_line, parent=1):
        """One more process of the node. Its status is there before the command line by which it is found."""
        folder = self.root / f"processes/{pid}"
        folder.mkdir()
        (folder / "status").write_text(f"Name:\tnvidia-cuda-mps\nPPid:\t{parent}\n")
        (folder / "cmdline").write_bytes(command_line)

    def other_daemon(self):
        self.process(4711, b"nvidia-cuda-mps-control\0-d\0")
