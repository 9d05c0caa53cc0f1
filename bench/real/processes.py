"""Programs that the bench starts: what they print, what they cost, and their end."""
import os
import re
import subprocess
import threading
import time

TICKS = os.sysconf("SC_CLK_TCK")
RUNNING = []  # Programs that have not been stopped.


def stop_all():
    for program in list(RUNNING):
        program.stop()


class Program:
    """A process with its stderr in a file. It is ended by its id when the bench ends."""

    def __init__(self, arguments, log, environment=None):
        self.log = log
        self.lines = []  # (monotonic time at which the line was read, text)
        self.arrived = threading.Condition()
        self.started = time.monotonic()
        self.process = subprocess.Popen(arguments, stdin=subprocess.DEVNULL, stdout=subprocess.DEVNULL,
                                        stderr=subprocess.PIPE, text=True, errors="replace",
                                        env={**os.environ, **(environment or {})})
        RUNNING.append(self)
        self.pid = self.process.pid
        self.reader = threading.Thread(target=self.read, daemon=True)
        self.reader.start()

    def read(self):
        with open(self.log, "w") as file:
            for line in self.process.stderr:
                now = time.monotonic()
                file.write(line)
                file.flush()
                with self.arrived:
                    self.lines.append((now, line))
                    self.arrived.notify_all()

    def wait_for(self, text, timeout):
        """Seconds from the start of the program until it printed a line with this text."""
        deadline = time.monotonic() + timeout
        seen = 0
        with self.arrived:
            while True:
                for at, line in self.lines[seen:]:
                    if text in line:
                        return at - self.started
                seen = len(self.lines)
                left = deadline - time.monotonic()
                if left <= 0 or self.process.poll() is not None:
                    raise RuntimeError("%s does not print %r (exit status %s); its output is in %s:\n%s" % (
                        self.process.args[0], text, self.process.poll(), self.log, "".join(l for _, l in self.lines[-5:])))
                self.arrived.wait(min(left, 0.5))

    def cpu(self):
        """CPU seconds so far: from the scheduler, in nanoseconds, or in clock ticks where it keeps no statistics."""
        try:
            total = 0
            for task in os.listdir("/proc/%d/task" % self.pid):
                with open("/proc/%d/task/%s/schedstat" % (self.pid, task)) as file:
                    total += int(file.read().split()[0])
            return total / 1e9
        except FileNotFoundError:
            with open("/proc/%d/stat" % self.pid) as file:
                fields = file.read().rsplit(")", 1)[1].split()
            return (int(fields[11]) + int(fields[12])) / TICKS

    def memory(self):
        """Resident memory now and at its peak, in MiB."""
        with open("/proc/%d/status" % self.pid) as file:
            text = file.read()
        return tuple(int(re.search(field + r":\s+(\d+)", text).group(1)) / 1024 for field in ("VmRSS", "VmHWM"))

    def port(self):
        """The TCP port on which it listens."""
        sockets = set()
        for name in os.listdir("/proc/%d/fd" % self.pid):
            try:
                sockets.add(os.readlink("/proc/%d/fd/%s" % (self.pid, name)))
            except FileNotFoundError:
                pass
        for table in ("/proc/net/tcp", "/proc/net/tcp6"):
            with open(table) as file:
                for fields in (line.split() for line in file):
                    if fields[3] == "0A" and "socket:[%s]" % fields[9] in sockets:
                        return int(fields[1].rsplit(":", 1)[1], 16)
        raise RuntimeError("%s listens on no port" % self.process.args[0])

    def stop(self):
        if self.process.poll() is None:
            self.process.terminate()
            try:
                self.process.wait(30)
            except subprocess.TimeoutExpired:
                self.process.kill()
                self.process.wait()
        self.reader.join()
        if self in RUNNING:
            RUNNING.remove(self)


def run(arguments, log):
    """Runs a command to its end: seconds, CPU seconds and its output, which is also in the file."""
    began = time.monotonic()
    with open(log, "w+") as file:
        process = subprocess.Popen(arguments, stdin=subprocess.DEVNULL, stdout=file, stderr=subprocess.STDOUT)
        _, status, usage = os.wait4(process.pid, 0)
        process.returncode = os.waitstatus_to_exitcode(status)
        took = time.monotonic() - began
        file.seek(0)
        output = file.read()
    if process.returncode != 0:
        raise RuntimeError("%s ended with status %d:\n%s" % (arguments[0], process.returncode, output[-2000:]))
    return took, usage.ru_utime + usage.ru_stime, output
