#!/usr/bin/env python3
"""docs/labels.md against reconcilers/model/labels.h and the key of the Lease in controller/runtime/leader_election.h: each key of the code is on the page, no page or command of docs has a key of ours that
the code does not have, and the annotations of Nodes are those that `cleanup` removes. Prints "N passed, N failed"."""
import pathlib
import re
import sys

ROOT = pathlib.Path(__file__).resolve().parents[2]
CODE = "".join((ROOT / path).read_text(encoding="utf-8") for path in ("reconcilers/model/labels.h", "controller/runtime/leader_election.h"))
PAGE = (ROOT / "docs/labels.md").read_text(encoding="utf-8")
# Of no object: the API's version, the reporter of Events, and names of resources.
NO_KEYS = {"gpusharing.dev/v1alpha1", "gpusharing.dev/gpu-sharing-operator", "nvidia.com/gpu"}


def main():
    keys = set(re.findall(r'= "((?:[a-z.]+/[\w.-]+)|controller-revision-hash)";', CODE)) - NO_KEYS
    failures = []
    for key in sorted(keys):
        shown = key + "*" if key.endswith(".") else key
        if f"`{shown}`" not in PAGE:
            failures.append(f"{key} of reconcilers/model/labels.h is not in docs/labels.md")
    values = dict(re.findall(r'(k\w+) = "([^"]+)";', CODE))
    removed = {values[name] for name in re.findall(r"k\w+", CODE.split("kNodeAnnotations[] = {")[1].split("}")[0])}
    written = set(re.findall(r"^\| annotation `([^`]+)` \| operator \|", PAGE.split("## The operator's keys on other")[0], re.M))
    failures += [f"{key} is either no annotation of the operator in docs/labels.md or not in kNodeAnnotations, which `cleanup` removes"
                 for key in sorted(removed ^ written)]
    ours = set(re.findall(r"`(gpusharing\.dev/[\w.-]+)`", PAGE))
    looked_at = 0
    for page in sorted((ROOT / "docs").glob("*.md")):
        text = page.read_text(encoding="utf-8").replace(".gpusharing\\.dev/", " gpusharing.dev/")
        named = {key.rstrip(".-") for key in re.findall(r"(?<![\w.:/])gpusharing\.dev/[\w.-]+", text)} - NO_KEYS
        looked_at += 1
        if page.name != "labels.md":
            failures += [f"{key} of docs/{page.name} is not in reconcilers/model/labels.h" for key in sorted(named - keys)]
    failures += [f"{key} of docs/labels.md is not in reconcilers/model/labels.h" for key in sorted(ours - keys)]
    print(*failures, sep="\n")
    print(f"{len(keys | ours) + looked_at - len(failures)} passed, {len(failures)} failed")
    sys.exit(1 if failures else 0)


if __name__ == "__main__":
    main()
