#!/usr/bin/env python3
"""The transcript of `./dev demo` in docs/demo.md against its story (tests/sim/story/story.cc): every step in
its order, each begun and held, nodes of the demo's fleet, and as many steps as the last line counts. Prints
"N passed, N failed"."""
import pathlib
import re
import sys

ROOT = pathlib.Path(__file__).resolve().parents[2]


def main():
    page = (ROOT / "docs/demo.md").read_text(encoding="utf-8")
    story = (ROOT / "tests/sim/story/story.cc").read_text(encoding="utf-8")
    fleet = (ROOT / "tests/sim/fleet/topology.cc").read_text(encoding="utf-8")
    transcript = page.split("$ ./dev demo\n")[1].split("```")[0]
    steps = re.findall(r'^ +\{"([^"]+)",\s*&Story::\w+\}', story, re.M)
    models = set(re.findall(r'numbered\("([a-z0-9]+)"', fleet)) | {name.split("-")[0] for name in re.findall(r'"([a-z0-9]+-01)"', fleet)}
    failures = []
    for mark, word in (("·", "begins"), ("✓", "ends")):
        shown = re.findall(r"^%s (.*?)(?: \([0-9.]+ s\))?$" % mark, transcript, re.M)
        if shown != steps:
            failures.append(f"demo.md shows steps that are not the story's where each {word}: {sorted(set(shown) ^ set(steps))}")
    counted = re.findall(r"^(\d+) of (\d+) steps held", transcript, re.M)
    if counted != [(str(len(steps)), str(len(steps)))]:
        failures.append(f"demo.md counts {counted}, and the story has {len(steps)} steps")
    nodes = re.findall(r"^(?: {4})?([a-z0-9]+)-\d+ +\S*(?:nvidia|\S)", transcript, re.M)
    failures += [f"demo.md shows a node {name}-…, which the demo's fleet does not have" for name in sorted(set(nodes) - models)]
    if len(steps) < 10 or len(nodes) < 12:
        failures.append("the transcript or the story was not understood")
    print(*failures, sep="\n")
    print(f"{2 * len(steps) + len(nodes) - len(failures)} passed, {len(failures)} failed")
    sys.exit(1 if failures else 0)


main()
