#!/usr/bin/env python3
"""What README.md shows of two edits, and docs/rollouts.md of a rollout, is what the commands print: on the simulated fleet, with the
operator at work, each line of the transcripts is printed. README's edits are made in its order. Names of nodes and pods, numbers and
hashes can be others, and "…" stands for anything.
Of every page: a program below build/ is one that is built, and a variable GSO_… or GSODEV_… before it is one that the code reads.

usage: transcripts_test.py BINARY SIMULATOR     prints "N passed, N failed"
"""
import functools
import json
import pathlib
import re
import subprocess
import sys
import tempfile
import time
import urllib.error
import urllib.request

import yaml

ROOT = pathlib.Path(__file__).resolve().parents[2]
PAGE = ROOT / "docs/rollouts.md"
README = ROOT / "README.md"
PROFILE = "version: v1\nsharing:\n  mps:\n    resources:\n    - name: nvidia.com/gpu\n      replicas: {}\n"
# In a transcript: what is another one in each run.
VARIABLE = [(r"v1\\-[0-9a-f]+", r"v1\\-[0-9a-f]+"), (r"(default-any)\\-[0-9a-f]+", r"\1-[0-9a-f]+"), (r"\\\[[\\#.]+\\\]", r"\\[[#.]+\\]"),
            (r"(daemon)\\-[a-z0-9]+", r"\1-[a-z0-9]+"), (r"(?:a100|t4)\\-\d+", r"[a-z0-9]+-\\d+"), (r"(Running|ETA)\\ [\dhms]+", r"\1 [\\dhms]+"),
            (r"(?<![\w-])\d+(?![\w-])", r"\\d+"), (r"…", r".*"), (r"(?:\\ )+", r" +")]


def pattern(line):
    out = re.escape(line.rstrip())
    for shown, other in VARIABLE:
        out = re.sub(shown, other, out)
    # One slot is held, several are.
    return re.compile(out.replace("NVIDIA\\-A100\\-SXM4\\-40GB", "[\\w-]+") + r"\s*$")


def transcript(command):
    """The lines that the page shows after `$ command`."""
    blocks = re.findall(r"^```\w+\n(.*?)^```", PAGE.read_text(encoding="utf-8"), re.M | re.S)
    for block in blocks:
        for step in re.split(r"^\$ ", block, flags=re.M)[1:]:
            line, _, shown = step.partition("\n")
            if line == command and shown.strip():
                return shown.splitlines()
    sys.exit(f"{PAGE.name} has no transcript of `{command}`")


class Cluster:
    def __init__(self, url, kubeconfig, binary):
        self.url, self.kubeconfig, self.binary = url, kubeconfig, binary

    def send(self, method, path, body, kind="application/json"):
        request = urllib.request.Request(self.url + path, json.dumps(body).encode(), {"Content-Type": kind}, method=method)
        with urllib.request.urlopen(request, timeout=30) as answer:
            return json.load(answer)

    def finished(self, *arguments, folder=None):
        return subprocess.run([self.binary, *arguments, "--kubeconfig", self.kubeconfig], cwd=folder, capture_output=True, text=True, timeout=60, check=False)

    def run(self, *arguments, folder=None):
        """Everything that a person sees, for a comparison of lines."""
        done = self.finished(*arguments, folder=folder)
        return done.stdout + done.stderr

    def edit(self, replicas):
        self.send("PATCH", "/api/v1/namespaces/gpu-operator/configmaps/mps-config", {"data": {"any": PROFILE.format(replicas)}},
                  "application/merge-patch+json")


def missing(shown, look, seconds, page=PAGE):
    """The shown lines that no output of `look` has had within that time."""
    wanted = [(line, pattern(line)) for line in shown if line.strip()]
    deadline, printed = time.monotonic() + seconds, ""
    while wanted and time.monotonic() < deadline:
        printed = look()
        wanted = [(line, form) for line, form in wanted if not any(form.match(other) for other in printed.splitlines())]
        time.sleep(0.1)
    return [f"{page.name} shows a line that is not printed: {line}\nas {form.pattern}\nlast output:\n{printed}" for line, form in wanted]


def wait_for(what, look, seconds=60):
    deadline = time.monotonic() + seconds
    while not look():
        if time.monotonic() > deadline:
            sys.exit(f"not within {seconds} s: {what}")
        time.sleep(0.2)


def serves(audit, nodes):
    """A fleet that has no node yet has no errors either."""
    return re.search(rf"^{nodes} GPU nodes? ", audit, re.M) and re.search(r"^0 errors, 0 warnings", audit, re.M)


def is_recorded(cluster):
    """Not yet, too, where the command fails or prints nothing, as while the operator starts; what it says on stderr is no part of the JSON."""
    done = cluster.finished("status", "-o", "json")
    if done.returncode not in (0, 1) or not done.stdout.strip():
        return False
    status = json.loads(done.stdout)
    return not status["baselineAssumed"] and all(node["state"] == "UpToDate" for node in status["nodes"])


def story():
    """README's story: (command, comment, shown lines) of each step."""
    blocks = re.findall(r"^```console\n(.*?)^```", README.read_text(encoding="utf-8"), re.M | re.S)
    told = next(block for block in blocks if "$ kubectl edit configmap mps-config " in block)
    for step in re.split(r"^\$ ", told, flags=re.M)[1:]:
        line, _, shown = step.partition("\n")
        command, _, comment = line.partition("#")
        yield command.split(), comment, shown.splitlines()


def story_problems(cluster):
    edits, failures = 0, []
    for command, comment, shown in story():
        if command[:2] == ["kubectl", "edit"]:
            cluster.edit(int(re.search(r"(\d+)$", comment)[1]))
            edits += 1
        else:
            # A command that waits is run again as well, so it must end before cluster.run() gives up.
            limit = ["--timeout", "20s"] if "--wait" in command else []
            failures += missing(shown, functools.partial(cluster.run, *command[1:], *limit), 150, README)
    return failures + ([] if edits == 2 else ["README's story is not that of a good edit and a bad one"])


def diff_problems(cluster, folder):
    command = "gpu-sharing-operator rollout diff -f new-mps-config.yaml"
    config = {"apiVersion": "v1", "kind": "ConfigMap", "metadata": {"name": "mps-config", "namespace": "gpu-operator"},
              "data": {"any": PROFILE.format(6), "slices": PROFILE.format(2)}}
    (folder / "new-mps-config.yaml").write_text(yaml.safe_dump(config), encoding="utf-8")
    cluster.send("POST", "/api/v1/namespaces", {"apiVersion": "v1", "kind": "Namespace", "metadata": {"name": "team-a"}})
    cluster.send("POST", "/api/v1/namespaces/team-a/pods", {
        "apiVersion": "v1", "kind": "Pod", "metadata": {"name": "train-7"},
        "spec": {"nodeName": "a100-01", "containers": [{"name": "cuda", "image": "x", "resources": {"limits": {"nvidia.com/gpu": "1"}}}]}})
    return missing(transcript(command), lambda: cluster.run(*command.split()[1:], folder=folder), 20)


def status_problems(cluster):
    command = "gpu-sharing-operator rollout status"
    cluster.edit(6)
    look = lambda: cluster.run(*command.split()[1:])  # noqa: E731
    # Said by the command alone, while no rollout exists.
    settling = missing(["policy default waits: Settling: nodes start at …"], look, 5)
    return settling + missing(transcript(command), look, 60)


def program_problems():
    lists = "".join(path.read_text(encoding="utf-8") for path in [*ROOT.glob("*/CMakeLists.txt"), *ROOT.glob("tests/**/CMakeLists.txt")])
    code = "".join(path.read_text(encoding="utf-8", errors="replace") for room in ("tests", "bench", "dev", "controller") for path in
                   ([ROOT / room] if (ROOT / room).is_file() else (ROOT / room).rglob("*.*")) if path.suffix in ("", ".cc", ".sh", ".py"))
    found = 0
    for page in [ROOT / "README.md", *(ROOT / "docs").glob("*.md")]:
        text = page.read_text(encoding="utf-8")
        for program in re.findall(r"build/(?:debug|release)/[\w/]+/([\w-]+)", text):
            found += 1
            if not re.search(rf"(?:gso_test|gso_bench|add_executable)\({program}\b|OUTPUT_NAME {program}\b", lists):
                yield f"{page.name}: no program {program} is built"
        for variable in re.findall(r"\b(GSO(?:DEV)?_[A-Z_]+)=", text):
            found += 1
            if variable not in code:
                yield f"{page.name}: nothing reads {variable}"
    if found < 5:
        yield "fewer than five programs and variables are found in all pages"


def main():
    binary, simulator = (str(pathlib.Path(path).resolve()) for path in sys.argv[1:3])
    failures = list(program_problems())
    checks = 4 + len(list(story()))
    with tempfile.TemporaryDirectory() as name:
        folder = pathlib.Path(name)
        kubeconfig = str(folder / "sim.kubeconfig")
        with subprocess.Popen([simulator, "--install", "--time-scale", "0.2", "--kubeconfig", kubeconfig], stdout=subprocess.PIPE, text=True) as server, \
                open(folder / "operator.log", "w", encoding="utf-8") as log:
            try:
                nodes, url = re.match(r"gso-sim: (\d+) nodes .* at (http://\S+?),", server.stdout.readline()).groups()
                cluster = Cluster(url, kubeconfig, binary)
                for crd in sorted((ROOT / "crds").glob("*.yaml")):
                    cluster.send("POST", "/apis/apiextensions.k8s.io/v1/customresourcedefinitions", yaml.safe_load(crd.read_text(encoding="utf-8")))
                wait_for(f"all {nodes} nodes serve their GPUs", lambda: serves(cluster.run("audit"), nodes))
                failures += diff_problems(cluster, folder)
                cluster.send("DELETE", "/api/v1/namespaces/team-a/pods/train-7", {"gracePeriodSeconds": 0})
                arguments = ["run", "--kubeconfig", kubeconfig, "--metrics-bind-address", "0", "--health-probe-bind-address", "0", "--settle-period", "6s",
                             "--node-status-lag", "1s", "--canary-soak", "1s", "--configmap-propagation", "5s", "--max-unavailable", "100%"]
                with subprocess.Popen([binary, *arguments], stderr=log, stdout=log) as operator:
                    try:
                        wait_for("the operator has recorded the fleet", lambda: is_recorded(cluster))
                        failures += story_problems(cluster)
                        failures += status_problems(cluster)
                    finally:
                        operator.terminate()
            finally:
                server.terminate()
    print(*failures, sep="\n")
    print(f"{max(checks - len(failures), 0)} passed, {len(failures)} failed")
    sys.exit(1 if failures else 0)


main()
