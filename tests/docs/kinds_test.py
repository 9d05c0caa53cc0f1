#!/usr/bin/env python3
"""The kinds that docs/looking.md asks people to print for `plan` and `audit`, against those that the reconcilers read
(reconcilers/registry.cc): a kind that is missing in the manifests gives a plan that is wrong. Prints "N passed, N failed"."""
import pathlib
import re
import sys

ROOT = pathlib.Path(__file__).resolve().parents[2]
REGISTRY = (ROOT / "reconcilers/registry.cc").read_text(encoding="utf-8")
RESOURCES = (ROOT / "reconcilers/model/resources.h").read_text(encoding="utf-8")
LOOKING = (ROOT / "docs/looking.md").read_text(encoding="utf-8")
# kubectl refuses a list of kinds if the cluster lacks one of them, so each kind has a command of its own.
LOOP = re.compile(r'^for kind in ([^;]+); do\n  kubectl get "\$kind" --all-namespaces --output yaml --show-managed-fields\n', re.M)


def main():
    kinds = dict(re.findall(r'inline const k8s::Gvr (\w+)\{"[^"]*", "[^"]*", "(\w+)"\};', RESOURCES))
    # The second member of each reconciler, in the list or in a function that returns its line: the stores that it waits for.
    lists = re.findall(r"\{k\w+,\n\s+\{(resources::[\w:,\s]+)\},", REGISTRY)
    watched = {kinds[name] for names in lists for name in re.findall(r"resources::(\w+)", names)}
    watched.add("resourceclaims")  # No reconciler has them: they are read for the pods that name them.
    named = {name.split(".")[0] for words in LOOP.findall(LOOKING) for name in words.replace("\\\n", " ").split()}
    failures = [f"the reconcilers read {kind}, which docs/looking.md does not name among the kinds to print" for kind in sorted(watched - named)]
    failures += [f"docs/looking.md names {kind}, which no reconciler reads" for kind in sorted(named - watched)]
    if len(watched) < 10:
        failures.append("reconcilers/registry.cc was not understood")
    print(*failures, sep="\n")
    print(f"{len(watched | named) - len(failures)} passed, {len(failures)} failed")
    sys.exit(1 if failures else 0)


main()
