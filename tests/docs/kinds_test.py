#!/usr/bin/env python3
"""The kinds that README.md asks people to print for `plan` and `audit`, against those that the reconcilers read
(reconcilers/registry.cc): a kind that is missing in the manifests gives a plan that is wrong. Prints "N passed, N failed"."""
import pathlib
import re
import sys

ROOT = pathlib.Path(__file__).resolve().parents[2]
REGISTRY = (ROOT / "reconcilers/registry.cc").read_text(encoding="utf-8")
README = (ROOT / "README.md").read_text(encoding="utf-8")
LOOKING = (ROOT / "docs/looking.md").read_text(encoding="utf-8")
COMMAND = r"^(?:\$ )?kubectl get (\S+) -A -o yaml --show-managed-fields"


def main():
    kinds = {name: resource for name, resource in re.findall(r'k8s::Gvr (k\w+)\{"[^"]*", "[^"]*", "(\w+)"\};', REGISTRY)}
    # The second member of each reconciler, in the list or in a function that returns its line: the stores that it waits for.
    watched = {kinds[name] for block in re.findall(r'\{k\w+,\n\s+\{(k[\w,\s]+)\},', REGISTRY) for name in re.findall(r"k\w+", block)}
    paragraph = README.split("`plan` and `audit` also read manifests.")[1].split("```")[0]
    command = re.findall(COMMAND, README, re.M)[0]
    named = set(command.split(",")) | {name.split(".")[0] for name in re.findall(r"`([a-z.]+)`", paragraph)}
    failures = [f"the reconcilers read {kind}, which README.md does not name among the kinds to print" for kind in sorted(watched - named)]
    failures += [f"README.md names {kind}, which no reconciler reads" for kind in sorted(named - watched)]
    failures += [f"docs/looking.md prints other kinds than README.md: {other}" for other in re.findall(COMMAND, LOOKING, re.M) if other != command]
    if len(watched) < 10:
        failures.append("reconcilers/registry.cc was not understood")
    print(*failures, sep="\n")
    print(f"{len(watched | named) - len(failures)} passed, {len(failures)} failed")
    sys.exit(1 if failures else 0)


main()
