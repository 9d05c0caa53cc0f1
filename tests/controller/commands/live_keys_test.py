#!/usr/bin/env python3
"""The keys of `status --watch` and `rollout status --watch`, typed on a pseudo terminal against the simulated API server.

usage: live_keys_test.py BINARY SIMULATOR

Each test waits for what must be on the screen, never for a time.
"""
import datetime
import fcntl
import itertools
import json
import os
import pathlib
import pty
import re
import signal
import struct
import subprocess
import sys
import tempfile
import termios
import time
import unittest
import urllib.error
import urllib.request

import yaml

from emulated_terminal import LONGEST, Terminal

ROOT = pathlib.Path(__file__).resolve().parents[3]
BINARY, SIMULATOR = (str(pathlib.Path(path).resolve()) for path in (sys.argv.pop(1), sys.argv.pop(1)))
PROFILE = "version: v1\nsharing:\n  timeSlicing:\n    resources:\n    - {name: nvidia.com/gpu, replicas: 2}\n"
BAR = "?: keys  q: quit"


def node(name):
    return {"apiVersion": "v1", "kind": "Node",
            "metadata": {"name": name, "labels": {"nvidia.com/gpu.present": "true", "nvidia.com/gpu.count": "2"}},
            "status": {"capacity": {"nvidia.com/gpu": "4"}, "allocatable": {"nvidia.com/gpu": "4"},
                       "conditions": [{"type": "Ready", "status": "True"}]}}


def daemonset():
    image = "nvcr.io/nvidia/k8s-device-plugin:v0.17.1"
    manager = {"name": "config-manager", "image": image, "command": ["config-manager"],
               "env": [{"name": "DEFAULT_CONFIG", "value": "any"}, {"name": "CONFIG_FILE_SRCDIR", "value": "/available-configs"}],
               "volumeMounts": [{"name": "plugin-config", "mountPath": "/available-configs"}]}
    pod = {"containers": [{"name": "nvidia-device-plugin", "image": image}, manager],
           "volumes": [{"name": "plugin-config", "configMap": {"name": "mps-config"}}]}
    return {"apiVersion": "apps/v1", "kind": "DaemonSet", "metadata": {"name": "nvidia-device-plugin-daemonset"},
            "spec": {"selector": {"matchLabels": {"app": "plugin"}},
                     "template": {"metadata": {"labels": {"app": "plugin"}}, "spec": pod}}}


class Cluster:
    """A simulated API server with GPU nodes and an operator that has just renewed its Lease."""

    def __init__(self, nodes):
        self.folder = tempfile.TemporaryDirectory(prefix="gso-live-")
        self.kubeconfig = os.path.join(self.folder.name, "kubeconfig")
        self.process = subprocess.Popen([SIMULATOR, "--nodes", "0", "--kubeconfig", self.kubeconfig], stdout=subprocess.PIPE, text=True)
        self.url = re.search(r" at (http://[^,]+),", self.process.stdout.readline())[1]
        for name in ("gpu-operator", "gpu-sharing-operator"):
            self.post("/api/v1/namespaces", {"apiVersion": "v1", "kind": "Namespace", "metadata": {"name": name}})
        for name in nodes:
            self.post("/api/v1/nodes", node(name))
        self.post("/api/v1/namespaces/gpu-operator/configmaps",
                  {"apiVersion": "v1", "kind": "ConfigMap", "metadata": {"name": "mps-config"}, "data": {"any": PROFILE}})
        self.post("/apis/apps/v1/namespaces/gpu-operator/daemonsets", daemonset())
        renewed = datetime.datetime.now(datetime.timezone.utc).strftime("%Y-%m-%dT%H:%M:%S.000000Z")
        self.post("/apis/coordination.k8s.io/v1/namespaces/gpu-sharing-operator/leases",
                  {"apiVersion": "coordination.k8s.io/v1", "kind": "Lease", "metadata": {"name": "gpu-sharing-operator"},
                   "spec": {"holderIdentity": "pod-1", "renewTime": renewed, "leaseDurationSeconds": 3600}})

    def call(self, method, path, body=None, kind="application/json"):
        request = urllib.request.Request(self.url + path, method=method, headers={"Content-Type": kind},
                                         data=None if body is None else json.dumps(body).encode())
        with urllib.request.urlopen(request, timeout=LONGEST) as answer:
            return json.load(answer)

    def post(self, path, body):
        return self.call("POST", path, body)

    def add_rollout(self, name, policy):
        for kind in ("sharingpolicies", "sharingrollouts"):
            crd = yaml.safe_load((ROOT / f"crds/gpusharing.dev_{kind}.yaml").read_text(encoding="utf-8"))
            self.post("/apis/apiextensions.k8s.io/v1/customresourcedefinitions", crd)
        group = "/apis/gpusharing.dev/v1alpha1"
        kind = {"apiVersion": "gpusharing.dev/v1alpha1"}
        deadline = time.monotonic() + LONGEST
        while True:  # Until the kinds are served.
            try:
                self.post(group + "/sharingpolicies", {**kind, "kind": "SharingPolicy", "metadata": {"name": policy}, "spec": {}})
                break
            except urllib.error.HTTPError as error:
                if error.code != 404 or time.monotonic() > deadline:
                    raise
        spec = {"policy": policy, "configMap": "gpu-operator/mps-config", "key": "any", "toRevision": "v1-2", "profile": "version: v1\n"}
        self.post(group + "/sharingrollouts", {**kind, "kind": "SharingRollout", "metadata": {"name": name}, "spec": spec})
        self.call("PATCH", f"{group}/sharingrollouts/{name}/status",
                  {"status": {"phase": "Progressing", "wave": 1, "startedAt": "2026-01-01T00:00:00Z"}}, "application/merge-patch+json")

    def run(self, *arguments):
        done = subprocess.run([BINARY, *arguments, "--kubeconfig", self.kubeconfig], capture_output=True, text=True,
                              timeout=LONGEST, check=False)
        return done.stdout

    def end(self):
        self.process.terminate()
        self.process.wait()
        self.process.stdout.close()
        self.folder.cleanup()


class LiveKeys(unittest.TestCase):
    NODES = [f"gpu-{i:02}" for i in range(1, 13)]

    def setUp(self):
        self.cluster = Cluster(self.NODES)
        self.addCleanup(self.cluster.end)

    def terminal(self, *command, **how):
        out = Terminal([BINARY, *command, "--kubeconfig", self.cluster.kubeconfig], **how)
        self.addCleanup(out.end)
        out.start()
        return out

    def ends(self, terminal, code=0):
        """It has ended, with the terminal as it was."""
        self.assertEqual(terminal.event(), {"ended": code}, terminal.text())
        self.restored(terminal)

    def restored(self, terminal):
        self.assertTrue(terminal.screen.entered)
        terminal.wait_for_main_screen("")
        self.assertEqual(terminal.mode(), terminal.mode_before)

    def takes_keys(self, terminal):
        flags = terminal.mode()[3]
        self.assertEqual(flags & (termios.ICANON | termios.ECHO), 0)
        self.assertNotEqual(flags & termios.ISIG, 0)

    def test_a_node_is_selected_and_explained(self):
        terminal = self.terminal("status", "--watch", columns=400, rows=50)  # No line of the explanation is broken.
        terminal.wait_for("> gpu-01 ")
        self.takes_keys(terminal)
        terminal.wait(lambda rows: rows[-1] == f"{BAR}  Up/Down: select  Enter: explain gpu-01")
        terminal.type(b"j")
        terminal.wait_for("> gpu-02 ")
        terminal.type(b"\x1b[")
        terminal.type(b"B")
        terminal.wait_for("> gpu-03 ")
        terminal.type(b"k\r")
        terminal.wait(lambda rows: "read at 2" in rows[-1])
        expected = self.cluster.run("explain", "gpu-02").splitlines()
        self.assertRegex(expected[0], "^node gpu-02: ")
        self.assertEqual(terminal.screen.grid[:len(expected) + 1], [*expected, ""])
        terminal.type(b"\x1b")
        terminal.wait_for("> gpu-02 ")
        terminal.type(b"q")
        self.ends(terminal)
        # The last view stays, as it was without keys.
        terminal.wait_for_main_screen("\ngpu-01 ")
        self.assertNotIn(BAR, terminal.screen.main)

    def test_the_selection_follows_its_node(self):
        terminal = self.terminal("status", "--watch")
        terminal.wait_for("> gpu-01 ")
        terminal.type(b"jj")
        terminal.wait_for("> gpu-03 ")
        self.cluster.post("/api/v1/nodes", node("gpu-00"))
        terminal.wait(lambda rows: all(any(row.startswith(begin) for row in rows) for begin in ("  gpu-00 ", "> gpu-03 ")))
        self.cluster.call("DELETE", "/api/v1/nodes/gpu-03")
        terminal.wait_for("> gpu-04 ")
        terminal.type(b"q")
        self.ends(terminal)

    def test_the_screen_scrolls_and_has_another_size(self):
        terminal = self.terminal("status", "--watch", columns=80, rows=8)
        terminal.wait_for("> gpu-01 ")
        terminal.wait(lambda rows: "lines 1-7 of " in rows[-1])
        terminal.type(b"\x1b[6~")
        terminal.wait_for("> gpu-07 ")
        terminal.type(b"\x1b[6~")
        terminal.wait_for("> gpu-12 ")
        terminal.resize(80, 5)
        terminal.wait(lambda rows: rows[4].startswith(BAR) and any(row.startswith("> gpu-12 ") for row in rows))
        terminal.type(b"g")
        terminal.wait_for("> gpu-01 ")
        self.assertNotIn("PROFILE", terminal.screen.grid[0])
        terminal.resize(200, 30)  # Room for all columns.
        terminal.wait(lambda rows: rows[29].startswith(BAR) and "PROFILE" in rows[0])
        terminal.type(b"q")
        self.ends(terminal)

    def test_ctrl_c_and_sigterm_end_it_as_before(self):
        for end in (lambda terminal: terminal.type(b"\x03"), lambda terminal: os.kill(terminal.pid, signal.SIGTERM)):
            terminal = self.terminal("status", "--watch")
            terminal.wait_for("> gpu-01 ")
            terminal.type(b"e")
            terminal.wait_for("node gpu-01: ")
            end(terminal)
            self.ends(terminal)

    def test_q_ends_with_0_also_where_something_is_wrong(self):
        path = "/apis/coordination.k8s.io/v1/namespaces/gpu-sharing-operator/leases/gpu-sharing-operator"
        self.cluster.call("PATCH", path, {"spec": {"renewTime": "2026-01-01T00:00:00.000000Z"}}, "application/merge-patch+json")
        for keys, code in ((b"q", 0), (b"\x03", 1)):
            terminal = self.terminal("status", "--watch")
            terminal.wait_for("> gpu-01 ")
            terminal.wait_for("  No operator is running")
            terminal.type(keys)
            self.ends(terminal, code)

    def test_ctrl_z_gives_the_terminal_back_to_the_shell(self):
        terminal = self.terminal("status", "--watch")
        terminal.wait_for("> gpu-01 ")
        terminal.type(b"j")
        terminal.wait_for("> gpu-02 ")
        for _ in range(2):
            terminal.type(b"\x1a")
            self.assertEqual(terminal.event(), {"stopped": signal.SIGTSTP})
            self.restored(terminal)
            terminal.carry_on()
            terminal.wait_for("> gpu-02 ")
            self.takes_keys(terminal)
        # Without a word to the process; the shell has set its own mode meanwhile.
        os.kill(terminal.pid, signal.SIGSTOP)
        self.assertEqual(terminal.event(), {"stopped": signal.SIGSTOP})
        termios.tcsetattr(terminal.master, termios.TCSANOW, terminal.mode_before)
        terminal.carry_on()
        terminal.type(b"j")
        terminal.wait_for("> gpu-03 ")
        self.takes_keys(terminal)
        terminal.type(b"q")
        self.ends(terminal)

    def test_a_signal_while_the_terminal_takes_no_output_ends_no_page(self):
        terminal = self.terminal("status", "--watch", columns=250, rows=50)
        terminal.wait_for("> gpu-01 ")
        # Nobody reads: pages of changing sizes pile up until a write waits for room.
        for columns in itertools.islice(itertools.cycle((200, 250)), 10000):
            if terminal.waits_to_write():
                break
            terminal.resize(columns, 50)
        else:
            self.fail("no write waits for room: the output ended at an interrupted one")
        # Interrupts the write, without a page more.
        os.kill(terminal.pid, signal.SIGWINCH)
        terminal.type(b"j")
        terminal.wait_for("> gpu-02 ")
        terminal.type(b"\x1a")
        self.assertEqual(terminal.event(), {"stopped": signal.SIGTSTP})
        self.restored(terminal)
        terminal.carry_on()
        terminal.wait_for("> gpu-02 ")
        terminal.type(b"q")
        self.ends(terminal)

    def test_the_tree_of_a_rollout_has_the_same_keys(self):
        self.cluster.add_rollout("r", "default")
        terminal = self.terminal("rollout", "status", "--watch", columns=120, rows=50)
        terminal.wait(lambda rows: any(re.match(r"> .* gpu-01 ", row) for row in rows))
        terminal.type(b"j")
        terminal.wait(lambda rows: any(re.match(r"> .* gpu-02 ", row) for row in rows))
        terminal.type(b"e")
        terminal.wait_for("node gpu-02: ")
        terminal.type(b"?")
        terminal.wait_for("In the list of nodes")
        terminal.type(b"\x1b")
        terminal.wait_for("node gpu-02: ")
        terminal.type(b"q")
        terminal.wait(lambda rows: any(re.match(r"> .* gpu-02 ", row) for row in rows))
        terminal.type(b"q")
        self.ends(terminal)

    def test_without_a_keyboard_pages_are_shown_as_before(self):
        for how in ({"stdin": "/dev/null"}, {"foreground": False}):
            terminal = self.terminal("status", "--watch", **how)
            terminal.wait_for("gpu-01 ")
            self.assertNotIn(BAR, terminal.text())
            self.assertEqual(terminal.mode(), terminal.mode_before)
            os.kill(terminal.pid, signal.SIGTERM)
            self.ends(terminal)

    def test_a_pipe_gets_text(self):
        watch = subprocess.Popen([BINARY, "status", "--watch", "--kubeconfig", self.cluster.kubeconfig],
                                 stdout=subprocess.PIPE, text=True)
        once = self.cluster.run("status")
        self.assertEqual("".join(watch.stdout.readline() for _ in once.splitlines()), once)
        watch.terminate()
        self.assertEqual(watch.stdout.read(), "")
        watch.stdout.close()
        self.assertEqual(watch.wait(), 0)

    def test_a_view_without_the_operators_record_ends_with_the_exit_status_of_status(self):
        self.cluster.call("PATCH", "/api/v1/nodes/gpu-01", {"metadata": {"annotations": {"gpusharing.dev/revision": "v1-2"}}},
                          "application/merge-patch+json")
        watch = subprocess.Popen([BINARY, "status", "--watch", "--namespace", "wrong", "--kubeconfig", self.cluster.kubeconfig],
                                 stdout=subprocess.PIPE, text=True)
        for line in watch.stdout:
            if line.startswith("incomplete: the operator's record was not found: ConfigMap wrong/"):
                break
        watch.terminate()
        watch.stdout.close()
        self.assertEqual(watch.wait(), 2)


class Width(unittest.TestCase):
    """Text that is printed once has no line that is wider than the terminal; a pipe gets each fact on one line."""

    def setUp(self):
        self.cluster = Cluster([f"gpu-{i:02}" for i in range(1, 7)])
        self.addCleanup(self.cluster.end)
        self.cluster.add_rollout("default-any-ce34ac6f12", "default")

    def printed(self, columns, *command):
        terminal, other_end = pty.openpty()
        fcntl.ioctl(other_end, termios.TIOCSWINSZ, struct.pack("HHHH", 24, columns, 0, 0))
        program = subprocess.Popen([BINARY, *command, "--kubeconfig", self.cluster.kubeconfig], stdin=subprocess.DEVNULL,
                                   stdout=other_end, stderr=subprocess.DEVNULL)
        os.close(other_end)
        out = b""
        while True:
            try:
                out += os.read(terminal, 65536)
            except OSError:  # The program has ended.
                break
        os.close(terminal)
        program.wait(LONGEST)
        return out.decode().replace("\r\n", "\n")

    def test_no_line_is_wider_than_the_terminal(self):
        for columns in (80, 120):
            for command in (("audit",), ("explain", "gpu-01"), ("rollout", "status"), ("rollout", "history"), ("diff",)):
                for line in self.printed(columns, *command).splitlines():
                    is_command = re.match(r" *(next: |kubectl |gpu-sharing-operator )", line)
                    self.assertTrue(len(line) <= columns or is_command, f"{command} at {columns}: {line}")

    def test_words_are_whole_and_a_pipe_gets_long_lines(self):
        for command in (("audit",), ("explain", "gpu-01")):
            piped = self.cluster.run(*command)
            self.assertEqual(self.printed(80, *command).split(), piped.split(), command)
            self.assertGreater(max(map(len, piped.splitlines())), 120)


if __name__ == "__main__":
    unittest.main()
