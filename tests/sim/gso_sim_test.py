#!/usr/bin/env python3
"""gso-sim as a stranger starts it: an operator rolls an edit out on its nodes, and it ends as it should.

usage: gso_sim_test.py SIMULATOR OPERATOR...

OPERATOR is the program, or the command that runs it (an emulator, say). The last line is "N passed, N failed".
"""
import json
import os
import pathlib
import re
import signal
import subprocess
import sys
import tempfile
import time
import urllib.error
import urllib.request

import yaml

ROOT = pathlib.Path(__file__).resolve().parents[2]
PATIENCE = 120  # Seconds that something may take before it counts as not happening.
QUICK = ["--settle-period=1s", "--canary-soak=1s", "--node-status-lag=1s", "--max-unavailable=100%", "--max-unavailable-per-group=100%",
         "--cluster-max-unavailable=100%", "--health-probe-bind-address=0", "--metrics-bind-address=0"]


class Simulator:
    """gso-sim while the block lasts."""

    def __init__(self, program, folder, *flags):
        self.kubeconfig = pathlib.Path(folder) / "kubeconfig"
        self.process = subprocess.Popen([program, "--kubeconfig", self.kubeconfig, "--time-scale", "0.05", *flags], stdout=subprocess.PIPE, text=True)

    def __enter__(self):
        line = self.process.stdout.readline()
        self.nodes, self.url = re.match(r"gso-sim: (\d+) nodes .* at (http://[^,]+),", line).groups()
        return self

    def __exit__(self, *_):
        if self.process.poll() is None:
            self.process.kill()
        self.process.communicate()

    def call(self, path, method="GET", body=None, kind="application/json"):
        request = urllib.request.Request(self.url + path, method=method, data=body and json.dumps(body).encode(), headers={"Content-Type": kind})
        with urllib.request.urlopen(request, timeout=30) as answer:
            return answer.read().decode()

    def nodes_with(self, condition):
        """How many nodes have metadata that fulfil the condition."""
        return sum(bool(condition(node["metadata"])) for node in json.loads(self.call("/api/v1/nodes"))["items"])

    def replicas(self, wanted):
        return self.nodes_with(lambda metadata: metadata.get("labels", {}).get("nvidia.com/gpu.replicas") == wanted)

    def has_baseline(self):
        """Whether an operator has recorded what the nodes run. Annotations have it of a node only that changed after that."""
        maps = json.loads(self.call("/api/v1/namespaces/gpu-sharing-operator/configmaps"))["items"]
        return any("baseline.json" in configmap.get("data", {}) for configmap in maps)

    def end(self):
        self.process.send_signal(signal.SIGTERM)
        return self.process.wait(timeout=PATIENCE)


def until(condition, what):
    deadline = time.monotonic() + PATIENCE
    while not condition():
        if time.monotonic() > deadline:
            raise AssertionError(f"not within {PATIENCE} s: {what}")
        time.sleep(0.1)


def an_edit_is_rolled_out(program, operator, folder):
    with Simulator(program, folder, "--install") as simulator:
        assert simulator.nodes == "12", simulator.nodes
        for file in sorted((ROOT / "crds").glob("*.yaml")):
            simulator.call("/apis/apiextensions.k8s.io/v1/customresourcedefinitions", "POST", yaml.safe_load(file.read_text(encoding="utf-8")))
        until(lambda: simulator.replicas("4") == 11, "eleven nodes share their GPUs by four")
        with open(pathlib.Path(folder) / "operator.log", "wb") as log, subprocess.Popen(
                [*operator, "run", "--kubeconfig", simulator.kubeconfig, *QUICK], env={**os.environ, "POD_NAMESPACE": "gpu-sharing-operator"}, stdout=log, stderr=log) as running:
            try:
                until(simulator.has_baseline, "the operator has recorded what the nodes run")
                text = "version: v1\nsharing: {mps: {resources: [{name: nvidia.com/gpu, replicas: 6}]}}\n"
                simulator.call("/api/v1/namespaces/gpu-operator/configmaps/mps-config", "PATCH", {"data": {"any": text}}, "application/merge-patch+json")
                until(lambda: simulator.replicas("6") == 11, "eleven nodes share their GPUs by six")
            except AssertionError as problem:
                raise AssertionError(f"{problem}; the operator said:\n" + (pathlib.Path(folder) / "operator.log").read_text(encoding="utf-8")[-3000:]) from None
            finally:
                running.send_signal(signal.SIGTERM)
            assert running.wait(timeout=PATIENCE) == 0, running.returncode
        assert simulator.end() == 0


def the_kubeconfig_is_private_and_served(program, _operator, folder):
    (pathlib.Path(folder) / "kubeconfig").touch(mode=0o644)
    with Simulator(program, folder, "--nodes", "0") as simulator:
        assert simulator.kubeconfig.stat().st_mode & 0o777 == 0o600, oct(simulator.kubeconfig.stat().st_mode)
        assert simulator.call("/kubeconfig") == simulator.kubeconfig.read_text(encoding="utf-8")
        assert simulator.url in simulator.call("/kubeconfig")
        named = urllib.request.Request(simulator.url + "/kubeconfig", headers={"Host": 'a"b: [c'})
        try:
            raise AssertionError(urllib.request.urlopen(named, timeout=30).read())
        except urllib.error.HTTPError as refused:
            assert refused.code == 400, refused
        assert simulator.end() == 0


def fleets_of_each_size_start(program, _operator, folder):
    for size in (0, 1, 2000):
        with Simulator(program, folder, "--nodes", str(size), "--listen", "127.0.0.1:0") as simulator:
            until(lambda: simulator.nodes_with(bool) == size, f"{size} nodes are there")
            assert simulator.end() == 0


def wrong_flags_are_refused(program, _operator, _folder):
    for flags, said in ((["--listen", "nowhere"], "nowhere"), (["--listen", "localhost:0"], "IP address"), (["--listen", "127.0.0.1:70000"], "70000"), (["--nodes", "-1"], "--nodes"), (["--bogus"], "--bogus"),
                        (["--topology", "none"], "uniform:N"), (["--topology", "demo", "--nodes", "3"], "--topology"), (["--listen", "192.0.2.1:1"], "192.0.2.1:1")):
        done = subprocess.run([program, *flags], capture_output=True, text=True, timeout=PATIENCE, check=False)
        assert done.returncode == 2 and said in done.stderr, (flags, done)


def main():
    program, *operator = sys.argv[1:]
    passed = failed = 0
    for test in (an_edit_is_rolled_out, the_kubeconfig_is_private_and_served, fleets_of_each_size_start, wrong_flags_are_refused):
        with tempfile.TemporaryDirectory(prefix="gso-sim-") as folder:
            try:
                test(program, operator, folder)
                passed += 1
                print(f"ok {test.__name__.replace('_', ' ')}", flush=True)
            except AssertionError as problem:
                failed += 1
                print(f"FAILED {test.__name__.replace('_', ' ')}: {problem}", flush=True)
    print(f"{passed} passed, {failed} failed")
    sys.exit(1 if failed else 0)


main()
