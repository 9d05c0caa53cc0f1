#!/usr/bin/env python3
"""Checks how much there is to read, and that nothing reads our own sentences: bars_test.py [--list] [PROJECT].

Each figure has a limit, which only falls: whoever gets below one lowers it in the same commit, down to the target. With --list
the test also prints what each figure counts.
"""
import collections
import os
import re
import sys

from function_length_test import sources

# Figure: (limit, target).
LIMITS = {
    "product files": (448, 500),
    "product files of fewer than 40 lines": (15, 40),
    "product files of more than 500 lines": (0, 0),
    "product lines": (92_006, 80_000),
    "headers that one other file includes": (0, 0),
    "structs of a code or reason and a text": (3, 3),
    "places that search our own messages": (0, 0),
    "files that call step()": (1, 1),
    "switches over gates or reasons": (0, 0),
    "translation units that policy.h rebuilds": (234, 241),
}

# Whose texts may be searched: programs and people that are not ours. File: what is searched there.
FOREIGN = {
    "controller/cli/cli.cc": "CLI11's errors",
    "controller/cli/completion.cc": "CLI11's names of types",
    "controller/commands/shared/archive.cc": "anything that could be a secret",
    "controller/commands/shared/print.cc": "the locale",
    "controller/reading/reads.cc": "the API server's answers",
    "controller/reading/reads.cc": "the client's errors, to leave out a request's path",
    "k8sclient/transport/curl_easy.cc": "HTTP",
    "k8sclient/transport/curl_target.cc": "libcurl's errors",
    "k8sclient/value/error.cc": "the API server's answers",
    "k8sclient/value/time.cc": "HTTP",
    "reconcilers/cluster/manifest_object.cc": "manifests",
    "reconcilers/cluster/manifests.cc": "manifests",
    "reconcilers/explain/pod_on_node.cc": "kubelets' messages",
    "reconcilers/explain/pod_scheduler.cc": "KAI's messages",
    "reconcilers/explain/revisions.cc": "texts of a ConfigMap",
    "reconcilers/lint/output.cc": "manifests",
    "reconcilers/lint/pods.cc": "manifests",
    "reconcilers/model/project_pod.cc": "pods",
    "reconcilers/model/project_slice_pod.cc": "kube-scheduler's messages",
}
# Where a switch over them is: what a gate or a code means.
MEANINGS = ("reconcilers/reasons/", "reconcilers/rollout/gates.cc")
POLICY = "reconcilers/model/policy.h"

TEXTS = "message|text|reason|remedy|retry|says|said|state|sentence|cause|detail|next|words|why|behind|command|verb|line|hold"
SEARCH = re.compile(r"\b(?:%s)_?(?:\(\))?(?:\.|->)(?:contains|starts_with|ends_with|find|rfind)\(\"" % TEXTS)
STRUCT = re.compile(r"^struct (\w+)(?: final)? \{\n(.*?)^\};", re.M | re.S)
MEMBER = re.compile(r"^  (?:const )?([\w:<>, ]+?[&*]?) (\w+)(?:(?: =|\{).*)?;", re.M)
CODES = re.compile(r"(?:code|reason|kind|cause|row|check)$|^(?:why|waits|stop|block)$")
WORDS = re.compile(r"^(?:text|message|why|remedy|sentence|words|what|detail|says|remedies|meaning|action)$")
INCLUDE = re.compile(r'^#include "([^"]+)"', re.M)
STEP = re.compile(r"(?<![\w.>:])step\(")
SWITCH = re.compile(r"\bswitch \((?:\w+(?:\.|->))*(?:gate|reason|code)(?:\(\))?\)")

# Texts, and the name of the figure in which each counts once.
EXAMPLES = [
    ('if (block.message.contains("no slot")) return;', "places that search our own messages"),
    ('const auto conditions = status.find("conditions");', None),
    ("struct Stop {\n  StopKind kind;\n  std::string text;\n};\n", "structs of a code or reason and a text"),
    ("switch (gate.gate) {\n}\n", "switches over gates or reasons"),
    ("switch (budget) {\n}\n", None),
    ("struct Node {\n  std::string name;\n  std::string text;\n};\n", None),
]


def speaking(text):
    """Names of structs that have a code beside a text."""
    out = []
    for name, body in STRUCT.findall(text):
        members = MEMBER.findall(body)
        codes = [one for kind, one in members if CODES.search(one) and not kind.startswith("std::function")]
        words = [one for kind, one in members if WORDS.search(one) and "string" in kind and one not in codes[:1]]
        if codes and words:
            out.append(name)
    return out


def figures(texts, all_includes):
    """{figure: what it counts} over {path: text}; `all_includes` counts the files that include a header."""
    out = {name: [] for name in LIMITS}
    for path, text in sorted(texts.items()):
        lines = text.count("\n")
        out["product files"].append(path)
        out["product lines"].append((path, lines))
        if lines < 40:
            out["product files of fewer than 40 lines"].append(path)
        if lines > 500:
            out["product files of more than 500 lines"].append(path)
        if path.endswith(".h") and len(all_includes[path] - {path[:-2] + ".cc"}) <= 1:
            out["headers that one other file includes"].append(path)
        if not path.startswith(("k8sclient/", "reconcilers/profile/")):  # Errors of servers, and of places in a text.
            out["structs of a code or reason and a text"] += ["%s: %s" % (path, name) for name in speaking(text)]
        if path not in FOREIGN and not path.startswith("reconcilers/profile/"):  # Which reads YAML.
            out["places that search our own messages"] += ["%s: %s" % (path, found) for found in SEARCH.findall(text)]
        if path.endswith(".cc") and path.startswith(("reconcilers/rollout/", "reconcilers/status/", "reconcilers/explain/")) and STEP.search(text):
            out["files that call step()"].append(path)
        if path.startswith(("reconcilers/", "controller/")) and not path.startswith(MEANINGS):
            out["switches over gates or reasons"] += ["%s: %s" % (path, found) for found in SWITCH.findall(text)]
    out["translation units that policy.h rebuilds"] = rebuilt_by(POLICY, all_includes)
    return out


def rebuilt_by(header, all_includes):
    """The .cc files that include it, directly or through others."""
    found, left = set(), [header]
    while left:
        for path in all_includes[left.pop()] - found:
            found.add(path)
            left.append(path)
    return sorted(path for path in found if path.endswith(".cc"))


def amount(name, found):
    return sum(lines for _, lines in found) if name == "product lines" else len(found)


def tried_examples():
    mistakes = []
    for text, name in EXAMPLES:
        found = figures({"reconcilers/a/a.cc": text + "\n" * 50}, collections.defaultdict(set))
        counted = [figure for figure in LIMITS if figure.startswith(("structs", "places", "switches")) and found[figure]]
        if counted != ([name] if name else []):
            mistakes.append("the example %r counts as %s, expected %s" % (text, counted, name))
    return mistakes


def main():
    arguments = [argument for argument in sys.argv[1:] if argument != "--list"]
    os.chdir(arguments[0] if arguments else os.path.join(os.path.dirname(os.path.abspath(__file__)), "..", ".."))
    texts = {}
    for path in sources("."):
        with open(path, encoding="utf-8") as file:
            texts[path] = file.read()
    includes = collections.defaultdict(set)
    for folder in ("k8sclient", "reconcilers", "controller", "tests", "bench"):
        for at, _, names in os.walk(folder):
            for name in names:
                if name.endswith((".h", ".cc")):
                    path = os.path.join(at, name)
                    with open(path, encoding="utf-8") as file:
                        for header in INCLUDE.findall(file.read()):
                            includes[header].add(path)
    mistakes = tried_examples()
    for name, found in figures(texts, includes).items():
        limit, target = LIMITS[name]
        count = amount(name, found)
        print("%-48s %7d  limit %7d  target %7d" % (name, count, limit, target))
        if "--list" in sys.argv:
            for one in found:
                print("    %s" % (one,))
        if count > limit:
            mistakes.append("%s: %d, more than %d: find the table or the file that the new thing belongs to" % (name, count, limit))
        elif target < limit and count < limit - (limit // 200):
            mistakes.append("%s: %d, less than the limit %d: lower it" % (name, count, limit))
    for mistake in mistakes:
        print("FAILED: " + mistake)
    print("%d files, %d mistakes" % (len(texts), len(mistakes)))
    return 1 if mistakes or not texts else 0


if __name__ == "__main__":
    sys.exit(main())
