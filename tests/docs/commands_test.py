#!/usr/bin/env python3
"""Every command of ours that a document, an alert, the chart or a message of ours names is one that the binary has, with
the options that stand there; kubectl's commands survive a shell: no backslash stands outside quotes; and Events are selected by fields
that the API server knows.

usage: commands_test.py BINARY

Looked through: README.md, docs/*.md, k9s's plugins, the chart's README, notes and alerts, and the string literals of controller/ and
reconcilers/. A command begins a line or a code span, or stands after a `$` or a pipe. Prints "N passed, N failed".
"""
import functools
import pathlib
import re
import subprocess
import sys

ROOT = pathlib.Path(__file__).resolve().parents[2]
CHART = ROOT / "charts/gpu-sharing-operator"
# Up to a pipe, a redirection, a comment, or the end of the code.
COMMAND = re.compile(r"(?:^ *|`|\$ |\| )(?:(?:build/debug/controller/)?gpu-sharing-operator|kubectl gpu-sharing) +(?P<words>[a-z][^`|>#;\n\"…]*)", re.M)
# `rollout restart` is kubectl's.
SHORT = re.compile(r"`(?P<words>rollout (?!restart`)[a-z][^`…\n]*)`")
KUBECTL = re.compile(r"`(kubectl [^`\n]*)`")
# `kubectl get events` asks for Events of the core API, which are selected by these fields only (kubernetes pkg/apis/core/v1/conversion.go).
EVENTS = re.compile(r"kubectl (?:-n \S+ )?get events[^`\n#]*--field-selector[ =](?P<fields>[^`\s]+)")
EVENT_FIELDS = {"reason", "reportingComponent", "source", "type", "metadata.name", "metadata.namespace",
                *(f"involvedObject.{field}" for field in ("kind", "namespace", "name", "uid", "apiVersion", "resourceVersion", "fieldPath"))}
OPTION = re.compile(r"(?<![\w-])(--[a-z][a-z-]*|-[a-z])(?![\w-])")
LITERAL = re.compile(r'"((?:[^"\\\n]|\\.)*)"')


def documents():
    """(where, text) of everything that names commands."""
    for path in sorted([ROOT / "README.md", *(ROOT / "docs").glob("*.md"), ROOT / "docs/k9s-plugins.yaml", CHART / "README.md", CHART / "templates/NOTES.txt", CHART / "files/alerts.yaml"]):
        if path.name != "command-line.md":  # Written from the binary.
            yield path.relative_to(ROOT), path.read_text(encoding="utf-8")
    for room in ("controller", "reconcilers"):
        for path in sorted((ROOT / room).rglob("*.cc")):
            # A literal that goes on in the next line is one text.
            text = re.sub(r'"\s*\n\s*"', "", path.read_text(encoding="utf-8"))
            yield path.relative_to(ROOT), "\n".join(f"`{literal}`" for literal in LITERAL.findall(text))


@functools.cache
def help_of(binary, words):
    done = subprocess.run([binary, *words, "--help"], capture_output=True, text=True, check=False)
    return done.stdout if done.returncode == 0 else ""


def subcommands(text):
    return set(re.findall(r"^  ([a-z-]+) ", text.partition("Subcommands:\n")[2].partition("\n\n")[0], re.M))


def problem(binary, command):
    """What is wrong with it; empty: nothing."""
    # The text after a colon is what the command says.
    chosen, rest = (), [word.rstrip(",.") for word in command.partition(":")[0].split()]
    while rest and subcommands(help_of(binary, chosen)):
        if rest[0] not in subcommands(help_of(binary, chosen)):
            # `rollout …` of them all, and `--help`, which each has.
            return "" if chosen and not rest[0].isalpha() else f"there is no command {' '.join((*chosen, rest[0]))}"
        chosen, rest = (*chosen, rest[0]), rest[1:]
    text = help_of(binary, chosen)
    missing = [option for option in OPTION.findall(" ".join(rest)) if not re.search(rf"(?<![\w-]){re.escape(option)}(?![\w-])", text)]
    return f"{' '.join(chosen)} has no option {', '.join(missing)}" if missing else ""


def main():
    binary, seen, failures = sys.argv[1], 0, []
    for where, text in documents():
        for found in [*COMMAND.finditer(text), *SHORT.finditer(text)]:
            seen += 1
            if wrong := problem(binary, found["words"].strip()):
                failures.append(f"{where}: `{found['words'].strip()}`: {wrong}")
        for found in KUBECTL.finditer(text) if where.suffix == ".md" else []:
            seen += 1
            if "\\" in re.sub(r"'[^']*'|\"[^\"]*\"", "", found[1]):
                failures.append(f"{where}: `{found[1]}`: the shell takes the backslash away; quote it")
        for found in EVENTS.finditer(text):
            seen += 1
            if unknown := {field.partition("=")[0].rstrip("!") for field in found["fields"].split(",")} - EVENT_FIELDS:
                failures.append(f"{where}: `{found[0]}`: the API server refuses the field {', '.join(sorted(unknown))} of Events")
    # An expression that finds nothing any more would pass everything.
    if seen < 60:
        failures.append(f"only {seen} commands were found")
    print(*failures, sep="\n")
    print(f"{seen - len(failures)} passed, {len(failures)} failed")
    sys.exit(1 if failures else 0)


if __name__ == "__main__":
    main()
