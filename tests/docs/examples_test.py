#!/usr/bin/env python3
"""Runs the examples of README.md and docs/*.md.

usage: examples_test.py BINARY

- A yaml block must parse; one with apiVersion and kind of ours, or a ConfigMap, must pass `lint` without an error.
- `<!-- file: NAME -->` before a block saves it under that name for the page's commands; `<!-- file: NAME` on a line of its
  own begins a hidden file, which `-->` ends.
- In console blocks, `$ gpu-sharing-operator lint|expect|plan|version …` is run in the page's folder when the files that it
  names were saved and it asks no cluster; where output follows, it must be just that.
Prints "N passed, N failed".
"""
import pathlib
import re
import shlex
import subprocess
import sys
import tempfile
import textwrap

import yaml

ROOT = pathlib.Path(__file__).resolve().parents[2]
PROGRAM = "gpu-sharing-operator"
OFFLINE = {"lint", "expect", "plan", "version"}
HIDDEN = re.compile(r"^<!-- file: (\S+)\n(.*?)^-->$", re.M | re.S)
BLOCK = re.compile(r"(?:^ *<!-- file: (\S+) -->\n)?^( *)```(\w+)\n(.*?)^ *```$", re.M | re.S)


class Page:
    def __init__(self, path, binary):
        self.path, self.binary = path, binary
        self.text = path.read_text(encoding="utf-8")
        self.passed, self.failures, self.saved = 0, [], set()

    def check(self, what, problem):
        if problem:
            self.failures.append(f"{self.path.relative_to(ROOT)}: {what}: {problem}")
        else:
            self.passed += 1

    def run(self, arguments, folder):
        return subprocess.run([self.binary, *arguments], cwd=folder, capture_output=True, text=True, timeout=60)

    def yaml_block(self, body, folder):
        try:
            documents = [d for d in yaml.safe_load_all(body) if d is not None]
        except yaml.YAMLError as error:
            self.check("yaml block", error)
            return
        whole = [d for d in documents if isinstance(d, dict) and {"apiVersion", "kind"} <= d.keys()]
        ours = [d for d in whole if d["kind"] in ("ConfigMap", "SharingPolicy")]
        if ours:
            (folder / ".block.yaml").write_text(body, encoding="utf-8")
            done = self.run(["lint", ".block.yaml"], folder)
            self.check(f"{ours[0]['kind']} {ours[0]['metadata']['name']}", done.returncode and done.stdout + done.stderr)
        else:
            self.check("yaml block", None)

    def console_block(self, body, folder):
        steps = re.split(r"^\$ ", body.replace("\\\n", " "), flags=re.M)[1:]
        for step in steps:
            line, _, expected = step.partition("\n")
            words = shlex.split(line, comments=True)
            if len(words) < 2 or words[0] != PROGRAM or words[1] not in OFFLINE or "--from-cluster" in words:
                continue
            files = [w for w in words[2:] if re.fullmatch(r"[\w.-]+\.(yaml|json)", w)]
            if not set(files) <= self.saved:
                self.check(line, None if not expected.strip() else "shows output, but its files are not on the page")
                continue
            done = self.run(words[1:], folder)
            printed = done.stdout + done.stderr
            if expected.strip():
                self.check(line, printed.strip() != expected.strip() and f"printed\n{printed}")
            else:
                self.check(line, done.returncode == 2 and printed)

    def examine(self):
        with tempfile.TemporaryDirectory() as name:
            folder = pathlib.Path(name)
            for file, body in HIDDEN.findall(self.text):
                self.save(folder, file, body)
            for file, indent, kind, body in BLOCK.findall(self.text):
                body = textwrap.dedent(body) if indent else body
                if file:
                    self.save(folder, file, body)
                if kind == "yaml":
                    self.yaml_block(body, folder)
                elif kind == "console":
                    self.console_block(body, folder)

    def save(self, folder, name, body):
        (folder / name).write_text(body, encoding="utf-8")
        self.saved.add(name)


def main():
    if len(sys.argv) != 2:
        sys.exit(__doc__)
    binary = str(pathlib.Path(sys.argv[1]).resolve())
    passed, failures = 0, []
    for path in [ROOT / "README.md", *sorted((ROOT / "docs").glob("*.md")), *sorted((ROOT / "charts").glob("*/README.md"))]:
        page = Page(path, binary)
        page.examine()
        passed += page.passed
        failures += page.failures
    print(*failures, sep="\n")
    print(f"{passed} passed, {len(failures)} failed")
    sys.exit(1 if failures else 0)


if __name__ == "__main__":
    main()
