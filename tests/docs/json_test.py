#!/usr/bin/env python3
"""docs/json.md against what the commands print: every field of the output is on the page, and every field of the page that the
simulated cluster has is in the output.

usage: json_test.py BINARY GSO-SIM

Asks a simulated cluster without an operator and without our CRDs, so `rollout status` and `history` are not asked. Prints
"N passed, N failed".
"""
import json
import os
import pathlib
import re
import subprocess
import sys
import tempfile
import time

ROOT = pathlib.Path(__file__).resolve().parents[2]
PAGE = (ROOT / "docs/json.md").read_text(encoding="utf-8")
PROFILE = "version: v1\nsharing:\n  mps:\n    resources:\n    - name: nvidia.com/gpu\n      replicas: 8\n"
POD = """{"apiVersion": "v1", "kind": "Pod", "metadata": {"name": "many", "namespace": "team-a"}, "status": {"phase": "Pending"},
 "spec": {"containers": [{"name": "c", "resources": {"limits": {"nvidia.com/gpu": "400"}}}]}}"""
# Sections of the page: how the command is called. {tmp} is a folder with the files below.
ASKED = {
    "audit": ["audit"],
    "explain NODE": ["explain", "a100-01"],
    "explain POD": ["explain", "team-a/many", "-f", "{tmp}/pod.json"],
    "status": ["status"],
    "diff, rollout diff, undo --dry-run": ["diff", "-f", "{tmp}/profile.yaml", "--key", "any"],
}
# Of the page, and there only in a cluster that has more than this one: lists that are empty here are not looked into.
ELSEWHERE = {("explain POD", "events"), ("explain POD", "beside")}


def documented(section):
    """Field to the names that the page gives of its entries; a later name of a row (`.reason`) belongs to the list of the first."""
    fields, lists = set(), {}
    body = re.search(rf"^## {re.escape(section)}\n(.*?)(?=^## |\Z)", PAGE, re.M | re.S).group(1)
    for cell, _, meaning in re.findall(r"^\| (`.*?) \| (.*?) \| (.*?) \|$", body, re.M):
        parent = ""
        for name in re.findall(r"`([^`]+)`", cell):
            if name.startswith("."):
                name = parent + name
            parent, _, last = name.rpartition(".")
            if not parent:
                fields.add(name.removesuffix("[]"))
                names = re.findall(r"`(\w+)(?:\[\])?`", meaning)
                if meaning == "as in `audit`":
                    names = documented("audit")[1].get(name.removesuffix("[]"), set())
                lists.setdefault(name.removesuffix("[]"), set()).update(names)
            else:
                top = parent.split(".")[0].split("[")[0]
                fields.add(top)
                lists.setdefault(top, set()).add(last.removesuffix("[]"))
    return fields, lists


def compare(section, output):
    fields, lists = documented(section)
    wrong = [f"{section}: `{name}` is printed, and not on the page" for name in sorted(output.keys() - fields)]
    missing = {name for name in fields - output.keys() if (section, name) not in ELSEWHERE}
    wrong += [f"{section}: `{name}` is on the page, and not printed" for name in sorted(missing)]
    for field, value in output.items():
        entries = [entry for entry in value if isinstance(entry, dict)] if isinstance(value, list) else []
        for name in sorted({name for entry in entries for name in entry} - lists.get(field, set())):
            wrong.append(f"{section}: `{field}[].{name}` is printed, and not on the page")
    return wrong


def main():
    binary, simulator = (str(pathlib.Path(path).resolve()) for path in sys.argv[1:3])
    passed, failures = 0, []
    with tempfile.TemporaryDirectory() as tmp:
        config = pathlib.Path(tmp, "kubeconfig")
        pathlib.Path(tmp, "profile.yaml").write_text(PROFILE, encoding="utf-8")
        environment = {**os.environ, "KUBECONFIG": str(config)}
        server = subprocess.Popen([simulator, "--install", "--time-scale", "0.01", "--kubeconfig", str(config)], stdout=subprocess.DEVNULL)
        try:
            def ask(arguments):
                words = [word.format(tmp=tmp) for word in arguments]
                return subprocess.run([binary, *words, "-o", "json"], env=environment, capture_output=True, text=True, timeout=60)

            for _ in range(120):  # Until the nodes have booted.
                time.sleep(0.5)
                if config.exists() and "UpToDate" in ask(["status"]).stdout:
                    break
            nodes = [{"apiVersion": "v1", "kind": "Node", "metadata": {"name": "n", "labels": {"nvidia.com/gpu.count": "1"}},
                      "status": {"allocatable": {"nvidia.com/gpu": "4"}, "capacity": {"nvidia.com/gpu": "4"}}}, json.loads(POD)]
            pathlib.Path(tmp, "pod.json").write_text(json.dumps({"apiVersion": "v1", "kind": "List", "items": nodes}), encoding="utf-8")
            for section, arguments in ASKED.items():
                answer = ask(arguments)
                try:
                    wrong = compare(section, json.loads(answer.stdout))
                except json.JSONDecodeError:
                    wrong = [f"{section}: exit status {answer.returncode}, no JSON: {answer.stderr}"]
                failures += wrong
                passed += not wrong
        finally:
            server.kill()
            server.wait()
    print(*failures, sep="\n")
    print(f"{passed} passed, {len(failures)} failed")
    sys.exit(1 if failures else 0)


main()
