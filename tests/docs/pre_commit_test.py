#!/usr/bin/env python3
"""The hook of .pre-commit-hooks.yaml, as pre-commit runs it: its entry with the names of the changed files as arguments.

usage: pre_commit_test.py BINARY

Prints "N passed, N failed".
"""
import os
import pathlib
import re
import shlex
import subprocess
import sys
import tempfile

import yaml

ROOT = pathlib.Path(__file__).resolve().parents[2]
PROGRAM = "gpu-sharing-operator"
GOOD = "version: v1\nsharing: {timeSlicing: {resources: [{name: nvidia.com/gpu, replicas: 4}]}}\n"
BAD = "version: v2\n"
# What pre-commit's library identify calls a file with that ending.
TYPES = {".yaml": "yaml", ".yml": "yaml", ".json": "json", ".cc": "c++"}
FILES = {"gpu-sharing/any.yaml": GOOD, "gpu-sharing/team/a.yml": GOOD, "gpu-sharing/b.json": '{"version": "v1"}\n',
         "gpu-sharing/readme.cc": "int x;\n", "package.json": '{"name": "x"}\n', "deploy/compose.yaml": "services: {}\n"}
MEANT = ["gpu-sharing/any.yaml", "gpu-sharing/b.json", "gpu-sharing/team/a.yml"]


def documented():
    """The entry of docs/profiles.md for `.pre-commit-config.yaml`."""
    text = (ROOT / "docs/profiles.md").read_text(encoding="utf-8")
    block = next(b for b in re.findall(r"^```yaml\n(.*?)^```$", text, re.M | re.S) if b.startswith("repos:"))
    return yaml.safe_load(block)["repos"][0]["hooks"][0]


def chosen(hook, names):
    """The files that pre-commit would pass to it."""
    types = set(hook["types_or"])
    return sorted(n for n in names if re.search(hook.get("files", ""), n) and TYPES[pathlib.Path(n).suffix] in types)


def run(hook, binary, folder, names):
    """pre-commit looks for the first word of a hook of language `system` on the PATH."""
    command = shlex.split(hook["entry"])
    path = os.pathsep.join([str(pathlib.Path(binary).resolve().parent), os.environ.get("PATH", "")])
    return subprocess.run([*command, *names], capture_output=True, text=True, cwd=folder, env={**os.environ, "PATH": path}, timeout=60,
                          check=False)


def checks(binary):
    hooks = yaml.safe_load((ROOT / ".pre-commit-hooks.yaml").read_text(encoding="utf-8"))
    hook = hooks[0]
    yield "each hook has what pre-commit asks for", all({"id", "name", "entry", "language"} <= set(h) for h in hooks)
    program, verb = shlex.split(hook["entry"])
    yield "its entry is the binary, which it does not build", (program, hook["language"]) == (PROGRAM, "system")
    known = subprocess.run([binary, "--help"], capture_output=True, text=True, check=False).stdout
    yield "its command is one of the binary", re.search(rf"^  {re.escape(verb)} ", known, re.M) is not None
    example = documented()
    yield "the documentation names its id", example["id"] == hook["id"]
    yield "the documented pattern selects the profiles and nothing else", chosen({**hook, **example}, FILES) == MEANT
    with tempfile.TemporaryDirectory() as folder:
        for name, text in FILES.items():
            path = pathlib.Path(folder, name)
            path.parent.mkdir(parents=True, exist_ok=True)
            path.write_text(text, encoding="utf-8")
        good = run(hook, binary, folder, MEANT)
        yield "it passes good files", good.returncode == 0
        pathlib.Path(folder, "gpu-sharing/team/a.yml").write_text(BAD, encoding="utf-8")
        bad = run(hook, binary, folder, MEANT)
        yield "one bad file among them fails it, by name", bad.returncode == 1 and "gpu-sharing/team/a.yml:1:10: error" in bad.stdout


def main():
    results = list(checks(sys.argv[1]))
    for what, holds in results:
        if not holds:
            print(f"FAILED: {what}")
    failed = sum(1 for _, holds in results if not holds)
    print(f"{len(results) - failed} passed, {failed} failed")
    return 1 if failed else 0


if __name__ == "__main__":
    sys.exit(main())
