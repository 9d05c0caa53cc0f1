"""A terminal for tests: a pseudo terminal with a shell that has one job, and what its screen shows."""
import fcntl
import json
import os
import pty
import re
import select
import signal
import struct
import termios
import time

LONGEST = 60  # Seconds until what is waited for counts as missing.


class Emulator:
    """What a terminal shows of the bytes; knows the sequences that may come, and no other."""

    SEQUENCE = re.compile(r"\x1b\[(\??[0-9;]*)([A-Za-z])|\r|\n|[^\x00-\x1f\x7f]+")

    def __init__(self, columns, rows):
        self.columns, self.rows = columns, rows
        self.alternate = self.entered = False
        self.main, self.grid, self.row, self.column = "", [""] * rows, 0, 0
        self.rest = b""
        self.resized = False

    def resize(self, columns, rows):
        self.columns, self.rows = columns, rows
        self.grid = (self.grid + [""] * rows)[:rows]
        self.row = min(self.row, rows - 1)
        self.resized = True

    def feed(self, data):
        data = self.rest + data
        # A character or a sequence can be cut by the read.
        cut = re.search(rb"(\x1b(\[[?0-9;]*)?|[\xc0-\xff][\x80-\xbf]{0,2})$", data)
        whole = cut is not None and cut.group(0)[0] >= 0xc0 and self.complete(cut.group(0))
        self.rest = b"" if cut is None or whole else cut.group(0)
        text = data[:len(data) - len(self.rest)].decode()
        at = 0
        while at < len(text):
            found = self.SEQUENCE.match(text, at)
            if found is None:
                raise AssertionError(f"the terminal got {text[at:at + 20]!r}")
            at = found.end()
            self.apply(found)

    @staticmethod
    def complete(character):
        return len(character) >= (2 if character[0] < 0xe0 else 3 if character[0] < 0xf0 else 4)

    def apply(self, found):
        parameters, final = found.group(1), found.group(2)
        if final is None:
            return self.put(found.group(0))
        if final in "hl":
            return self.switch(parameters, final == "h")
        if (parameters, final) == ("", "H"):
            self.row = self.column = 0
        elif (parameters, final) == ("", "K"):
            self.grid[self.row] = self.grid[self.row][:self.column]
        elif (parameters, final) == ("", "J"):
            self.grid = [*self.grid[:self.row], self.grid[self.row][:self.column], *[""] * (self.rows - self.row - 1)]
        elif final != "m":
            raise AssertionError(f"the terminal got {found.group(0)!r}")

    def switch(self, mode, on):
        if mode not in ("?1049", "?25", "?7"):
            raise AssertionError(f"the terminal got mode {mode}")
        if mode == "?1049":
            self.alternate, self.entered = on, True
            self.grid, self.row, self.column = [""] * self.rows, 0, 0

    def put(self, text):
        if not self.alternate:
            self.main += text
        elif text == "\r":
            self.column = 0
        elif text == "\n":
            if self.row + 1 < self.rows:
                self.row += 1
            elif self.resized:  # A page for the former size can still be on its way.
                self.grid = [*self.grid[1:], ""]
            else:
                raise AssertionError("the page is longer than the screen")
        else:
            line = self.grid[self.row].ljust(self.column)
            self.grid[self.row] = line[:self.column] + text + line[self.column + len(text):]
            self.column += len(text)


class Terminal:
    """A pseudo terminal with a shell that has one job."""

    def __init__(self, arguments, columns=100, rows=24, stdin=None, foreground=True):
        self.events, event = os.pipe()
        order, self.orders = os.pipe()
        self.screen = Emulator(columns, rows)
        self.shell, self.master = pty.fork()
        if self.shell == 0:
            os.close(self.events)
            os.close(self.orders)
            try:
                self.be_shell(arguments, event, order, (columns, rows), stdin, foreground)
            finally:
                os._exit(99)
        os.close(event)
        os.close(order)
        self.ended = False
        self.pid, self.mode_before = self.event()["job"], self.mode()

    @staticmethod
    def be_shell(arguments, event, order, size, stdin, foreground):
        say = lambda **what: os.write(event, (json.dumps(what) + "\n").encode())
        fcntl.ioctl(0, termios.TIOCSWINSZ, struct.pack("HHHH", size[1], size[0], 0, 0))
        signal.signal(signal.SIGTTOU, signal.SIG_IGN)
        ready, go = os.pipe()
        job = os.fork()
        if job == 0:
            os.setpgid(0, 0)
            os.read(ready, 1)
            signal.signal(signal.SIGTTOU, signal.SIG_DFL)
            if stdin is not None:
                os.dup2(os.open(stdin, os.O_RDONLY), 0)
            environment = {**os.environ, "TERM": "xterm", "LC_ALL": "C.UTF-8"}
            environment.pop("NO_COLOR", None)
            os.execve(arguments[0], arguments, environment)
        say(job=job)
        os.read(order, 1)  # The mode of the terminal before the job has been read.
        os.setpgid(job, job)
        if foreground:
            os.tcsetpgrp(0, job)
        os.write(go, b"x")
        while True:
            _, status = os.waitpid(job, os.WUNTRACED)
            os.tcsetpgrp(0, os.getpgrp())
            if not os.WIFSTOPPED(status):
                break
            say(stopped=os.WSTOPSIG(status))
            os.read(order, 1)
            os.tcsetpgrp(0, job)
            os.killpg(job, signal.SIGCONT)
        say(ended=os.waitstatus_to_exitcode(status))
        os.read(order, 1)  # Until then the terminal stays.

    def event(self):
        """The next one of the shell, while the screen is read."""
        line, deadline = b"", time.monotonic() + LONGEST
        while not line.endswith(b"\n"):
            if self.events in self.readable(deadline):
                line += os.read(self.events, 1)
        event = json.loads(line)
        self.ended = "ended" in event
        return event

    def readable(self, deadline):
        """Reads what the screen got; which descriptors have something."""
        ready, _, _ = select.select([self.events, self.master], [], [], max(0, deadline - time.monotonic()))
        if not ready:
            raise AssertionError("nothing more comes; the screen shows\n" + self.text())
        if self.master in ready:
            self.screen.feed(os.read(self.master, 65536))
        return ready

    def text(self):
        return "\n".join(self.screen.grid) + "\n-- main screen --\n" + self.screen.main

    def wait(self, shows):
        """Until the rows of the screen fulfil the condition."""
        deadline = time.monotonic() + LONGEST
        while not (self.screen.alternate and shows(self.screen.grid)):
            if self.events in self.readable(deadline):
                raise AssertionError(f"{self.event()}; the screen shows\n{self.text()}")

    def wait_for_main_screen(self, text):
        """Until the alternate screen has been left and the other one has the text."""
        deadline = time.monotonic() + LONGEST
        while self.screen.alternate or text not in self.screen.main:
            self.readable(deadline)

    def wait_for(self, row):
        """Until a row begins with the text."""
        self.wait(lambda rows: any(line.startswith(row) for line in rows))

    def type(self, keys):
        os.write(self.master, keys)

    def waits_to_write(self):
        """Whether the job is inside a write that waits for room in the terminal."""
        slave = os.open(f"/proc/{self.pid}/fd/1", os.O_WRONLY | os.O_NOCTTY)
        try:
            # Nobody else can write while a write is going on; and it does not go on while the process sleeps.
            return not self.takes_output(slave) and self.sleeps() and not self.takes_output(slave)
        finally:
            os.close(slave)

    @staticmethod
    def takes_output(slave):
        return bool(select.select([], [slave], [], 0)[1])

    def sleeps(self):
        with open(f"/proc/{self.pid}/stat", encoding="ascii") as file:
            return file.read().rsplit(")", 1)[1].split()[0] == "S"

    def mode(self):
        return termios.tcgetattr(self.master)

    def start(self):
        os.write(self.orders, b"x")

    carry_on = start

    def resize(self, columns, rows):
        self.screen.resize(columns, rows)
        fcntl.ioctl(self.master, termios.TIOCSWINSZ, struct.pack("HHHH", rows, columns, 0, 0))

    def end(self):
        os.close(self.orders)
        if not self.ended:
            os.kill(self.pid, signal.SIGKILL)
            os.kill(self.shell, signal.SIGKILL)
        os.waitpid(self.shell, 0)
        os.close(self.events)
        os.close(self.master)
