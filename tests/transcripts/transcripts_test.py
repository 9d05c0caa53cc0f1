#!/usr/bin/env python3
"""What commands print of a cluster, word for word: the transcripts of this folder. README.md has the form of a file.

usage: transcripts_test.py BINARY [--write] [TEXT]     only cases whose file or claim contains TEXT; prints "N passed, N failed"

--write puts what is printed now into the files, but for commands whose `expect:` and `never:` it does not satisfy: they fail as before.
"""
import concurrent.futures
import copy
import datetime
import difflib
import json
import os
import pathlib
import re
import subprocess
import sys
import tempfile

import yaml

from served_cluster import CLUSTER_WIDE, VERSIONS, Server, World, edited, merge

import scenario  # Of tests/scenarios, which served_cluster finds.
from cluster.actions import apply
from cluster.program import ENVIRONMENT
from cluster.times import moment, seconds, stamp

HERE = pathlib.Path(__file__).resolve().parent
PROGRAM = pathlib.Path(sys.argv[1]).resolve()
os.environ["GSO_BIN"] = str(PROGRAM)  # For stories of tests/scenarios.
PATCH = re.compile(r"(edit )?([A-Z]\w+) ([\w./-]+)(?: ([\w.\[\]-]+))?:(.*)", re.S)


class Yaml(yaml.SafeLoader):
    """Times stay texts."""


Yaml.yaml_implicit_resolvers = {first: [(tag, form) for tag, form in resolvers if not tag.endswith(":timestamp")]
                                for first, resolvers in yaml.SafeLoader.yaml_implicit_resolvers.items()}


def shown_offset(difference):
    """How far from now a time is, as in {now-3m}; what has just been written is {now}."""
    if -5 <= difference < 60:
        return "{now}"
    minutes, rest = divmod(abs(difference), 60)
    return "{now%s%s%s}" % ("+" if difference < 0 else "-", f"{minutes}m" if minutes else "", f"{rest}s" if rest else "")


def until(cluster, wanted, each):
    """Looks of the operator until this is so."""
    for _ in range(100):
        if wanted():
            return
        cluster.after(each)
    raise ValueError("what the case waits for does not come about")


MARKED = {"    ": "  * ", "  ! ": " *! "}  # Of stdout and of stderr: how a line begins that is part of the claim.
UNMARKED = {marked: plain for plain, marked in MARKED.items()}


class Command:
    """A line `$ …` with what follows it: expectations, what is printed, which lines of that are claimed, and the exit status."""

    def __init__(self, line):
        self.line, self.expected, self.never, self.shown, self.claimed, self.status = line, [], [], [], set(), 0

    def show(self, line):
        if line[:4] in UNMARKED:
            line = UNMARKED[line[:4]] + line[4:]
            self.claimed.add(line)
        self.shown.append(line)

    def lines(self):
        return [f"$ {self.line}", *(f"expect: {text}" for text in self.expected), *(f"never: {text}" for text in self.never),
                *(MARKED[line[:4]] + line[4:] if line in self.claimed else line for line in self.shown),
                *([f"exit {self.status}"] if self.status else [])]


def read_steps(lines):
    """Commands, and texts of all other lines."""
    steps = []
    for line in lines:
        last = steps[-1] if steps and isinstance(steps[-1], Command) else None
        if line.startswith("$ "):
            steps.append(Command(line[2:]))
        elif last and line.startswith("expect: "):
            last.expected.append(line[8:])
        elif last and line.startswith("never: "):
            last.never.append(line[7:])
        elif last and re.fullmatch(r"exit \d+", line):
            last.status = int(line[5:])
        elif last and (line[:4] in MARKED or line[:4] in UNMARKED or not line):
            last.show(line)
        elif steps and not last and line.startswith(" "):
            steps[-1] += "\n" + line
        else:
            steps.append(line)
    for step in steps:
        while isinstance(step, Command) and step.shown and not step.shown[-1]:
            step.shown.pop()
    return [step for step in steps if step]


class Case:
    """One claim: a copy of the file's cluster, and what is done to it and asked of it."""

    def __init__(self, claim, setup, steps):
        self.claim, self.setup, self.steps = claim, setup, steps
        self.world, self.forbidden, self.failures = World(), [], []

    def play(self):
        self.now = datetime.datetime.now(datetime.timezone.utc).replace(microsecond=0, tzinfo=None)
        try:
            with tempfile.TemporaryDirectory() as folder:
                self.folder = pathlib.Path(folder)
                for step in self.setup + self.steps:
                    if isinstance(step, Command):
                        self.judge(step, *self.run(step.line))
                    else:
                        self.change(step)
        except Exception as error:  # A mistake in a case must not hide the others.
            self.failures.append(f"{type(error).__name__}: {error}")
        return self

    def read_yaml(self, text):
        return yaml.load_all(re.sub(r"\{now-(\w+)\}", lambda match: stamp(self.now - datetime.timedelta(seconds=seconds(match[1]))), text), Yaml)

    def change(self, line):
        word, rest = re.fullmatch(r"(\S+)\s?(.*)", line, re.S).groups()
        if word == "world":
            for name in rest.split():
                for obj in self.read_yaml((HERE / "worlds" / (name + ".yaml")).read_text(encoding="utf-8")):
                    self.world.put(obj)
        elif word == "do":
            self.world = self.told(rest)
        elif word == "record":
            self.record(rest == "again")
        elif word == "forbid":
            self.forbidden += rest.split()
        elif word == "gone":
            self.world.remove(*self.named(*rest.split()))
        elif word == "file":
            name, text = re.split(r":\s", rest, maxsplit=1)
            (self.folder / name).write_text(re.sub(r"^  ", "", text, flags=re.M) + "\n", encoding="utf-8")
        else:
            self.patch(PATCH.fullmatch(line))

    def told(self, statements):
        """What a story of tests/scenarios leaves: `c` is the cluster."""
        names = {**vars(scenario), "c": self.world}
        names["until"] = lambda wanted, each="10s": until(names["c"], wanted, each)
        exec(re.sub(r"^  ", "", statements.strip("\n"), flags=re.M), names)
        return names["c"]

    @staticmethod
    def named(kind, name):
        namespace, _, name = name.rpartition("/")
        return kind, name, namespace

    def patch(self, match):
        edit, kind, name, path, text = match.groups()
        kind, name, namespace = self.named(kind, name)
        new = {"apiVersion": VERSIONS[kind], "kind": kind, "metadata": {"name": name, **({"namespace": namespace} if kind not in CLUSTER_WIDE else {})}}
        found = copy.deepcopy(self.world.get(kind, name, namespace) or new)
        change = next(self.read_yaml(text))
        if path:
            *steps, last = [int(step) if step.isdigit() else step for step in re.findall(r"[^.\[\]]+", path)]
            inner = found
            for step in steps:
                inner = inner[step]
            inner[last] = change
        else:
            found = merge(found, change)
        if edit:  # After the start of the pods, which have read it once before.
            found["metadata"]["managedFields"] = [edited(change["data"], "2026-01-02T12:00:00Z")]
        self.world.put(found)

    def record(self, again):
        """The operator writes its record of what is there, as if it had never been here, or once more."""
        if not again:
            self.world.remove("ConfigMap", "gpu-sharing-operator-state", "gpu-sharing-operator")
        done = subprocess.run([PROGRAM, "plan", "-", "-o", "json", "--now", "2026-01-02T18:00:00Z" if again else "2026-01-02T06:00:00Z", "--assume-observed-for", "1h"],
                              input=json.dumps(self.world.manifests()), capture_output=True, text=True, check=False)
        for action in json.loads(done.stdout)["actions"]:
            if "gpu-sharing-operator-state" in json.dumps(action.get("target", action.get("object"))):
                apply(self.world, action)

    def run(self, line):
        """The lines that are printed, and the exit status."""
        if line.startswith("show "):
            _, kind, name, *path = line.split()
            value = self.world.get(*self.named(kind, name))
            for step in path:
                value = (value or {}).get(step)
            text = yaml.dump(value, width=200) if isinstance(value, dict) else json.dumps(value)
            return [self.readable("    " + line, 0) for line in text.splitlines()], 0
        if "| head" in line:
            raise ValueError("head ends before the program, which then fails to write: use sed -n 1,5p")
        (self.folder / "gpu-sharing-operator").unlink(missing_ok=True)
        (self.folder / "gpu-sharing-operator").symlink_to(PROGRAM)
        (self.folder / "cluster.yaml").write_text(json.dumps(self.world.manifests()), encoding="utf-8")
        environment = {**ENVIRONMENT, "PATH": f"{self.folder}:{os.environ['PATH']}", "KUBECONFIG": str(self.folder / "kubeconfig")}
        with Server(self.world, self.forbidden) as server:
            (self.folder / "kubeconfig").write_text(server.kubeconfig(), encoding="utf-8")
            done = subprocess.run(["bash", "-o", "pipefail", "-c", line], cwd=self.folder, env=environment, stdin=subprocess.DEVNULL, capture_output=True,
                                  text=True, timeout=120, check=False)
        printed = ["    " + text for text in done.stdout.splitlines()] + ["  ! " + text for text in done.stderr.splitlines()]
        return [self.readable(text, server.server_port) for text in printed], done.returncode

    def readable(self, text, port):
        """Without what is another one in each run."""
        def offset(match):
            difference = int((self.now - moment(match[1] + "Z")).total_seconds())
            return shown_offset(difference) if abs(difference) < 86400 else match[0]
        text = re.sub(r"\b(\d{4}-\d\d-\d\dT\d\d:\d\d:\d\d)(?:\.\d+)?Z", offset, text.replace(f"127.0.0.1:{port}", "SERVER"))
        return re.sub(r"\b(Running|Started|ETA) (\d+[dhms])+", r"\1 …", text).rstrip()

    def judge(self, command, shown, status):
        printed = "\n".join(text[4:] for text in shown)
        wrong = [f"expected, and not printed: {text}" for text in command.expected if text not in printed]
        wrong += [f"expected, and not printed: {line[4:]}" for line in sorted(command.claimed) if line not in shown]
        wrong += [f"printed, and must never be: {text}" for text in command.never if text in printed]
        before = command.lines()
        if "--write" in sys.argv and not wrong:
            command.shown, command.status = shown, status
        elif (command.shown, command.status) != (shown, status):
            now = Command(command.line)
            now.expected, now.never, now.claimed, now.shown, now.status = command.expected, command.never, command.claimed, shown, status
            wrong += difflib.unified_diff(before, now.lines(), "the transcript", "printed now", lineterm="", n=2)
        if wrong:
            self.failures.append("\n".join([f"$ {command.line}", *wrong]))


class File:
    def __init__(self, path):
        self.path = path
        head, *cases = re.split(r"^== ", path.read_text(encoding="utf-8"), flags=re.M)
        self.head = head
        if not head.startswith("# "):
            raise ValueError(f"{path.name} begins with no sentence that says what it claims")
        setup = read_steps([line for line in head.splitlines() if not line.startswith("#")])
        self.cases = [Case(text.splitlines()[0], setup, read_steps(text.splitlines()[1:])) for text in cases]

    def write(self):
        texts = [[f"== {case.claim}", *(line for step in case.steps for line in (step.lines() if isinstance(step, Command) else [step])), ""]
                 for case in self.cases]
        self.path.write_text(self.head + "\n".join(line for text in texts for line in text).rstrip() + "\n", encoding="utf-8")


def main():
    wanted = [text for text in sys.argv[2:] if not text.startswith("--")]
    files = [File(path) for path in sorted(HERE.glob("[a-z]*.txt"))]
    cases = [(file, case) for file in files for case in file.cases if all(text in file.path.name + " " + case.claim for text in wanted)]
    with concurrent.futures.ThreadPoolExecutor(os.cpu_count()) as pool:
        list(pool.map(lambda pair: pair[1].play(), cases))
    for file, case in cases:
        if case.failures:
            print(f"FAIL  {file.path.name}: {case.claim}\n" + "\n".join(case.failures))
    if "--write" in sys.argv:
        for file in files:
            file.write()
    failed = sum(bool(case.failures) for _, case in cases)
    print(f"{len(cases) - failed} passed, {failed} failed")
    return 1 if failed or not cases else 0


if __name__ == "__main__":
    sys.exit(main())
