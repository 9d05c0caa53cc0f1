#!/usr/bin/env python3
"""Checks that a name in an anonymous namespace has one meaning within its folder: anonymous_names_test.py [PROJECT].

The sources of a folder are compiled together (GSO_UNITY in cmake/Toolchain.cmake), in batches that move when a file is added:
the compiler sees only the names that happen to meet. Test files have namespaces of their own and cannot meet.
"""
import collections
import glob
import os
import re
import subprocess
import sys

BODY = re.compile(r"^namespace \{\n(.*?)^\}  // namespace\n", re.S | re.M)
# What a line at the left margin declares: a type, an alias with what it stands for, a constant, a function with its parameters.
TYPE = re.compile(r"(?:struct|class|enum class) (\w+)\b(?!.*;$)")
ALIAS = re.compile(r"using (\w+) = (.+)")
CONSTANT = re.compile(r"(?:inline )?(?:static )?(?:constexpr|const) .*?\b(\w+)(?:\[\])?(?: =|\{)")
FUNCTION = re.compile(r"[\w:<>,&* ]+?[ &*](\w+)\((.*)\) \{$")
NOT_DECLARATIONS = (" ", "//", "}", "#", "return", "template", "using namespace", "namespace")


def declared(line):
    """(name, what makes two of them differ), or None. Functions with other parameters are overloads, equal aliases are one."""
    if not line or line.startswith(NOT_DECLARATIONS):
        return None
    if match := TYPE.match(line):
        return match[1], ""
    if match := ALIAS.match(line):
        return match[1], match[2]
    if match := FUNCTION.match(line):
        return match[1] + "(" + ", ".join(part.rsplit(" ", 1)[0] for part in match[2].split(", ")) + ")", ""
    if match := CONSTANT.match(line):
        return match[1], ""
    return None


def names_of(path):
    with open(path, encoding="utf-8") as text:
        source = text.read()
    for body in BODY.finditer(source):
        for line in body[1].split("\n"):
            if found := declared(line):
                yield found


def collisions(sources):
    """{(folder, name): files} of what several files of a folder declare differently."""
    seen = collections.defaultdict(dict)
    for path in sources:
        for name, meaning in names_of(path):
            seen[os.path.dirname(path), name].setdefault(path, meaning)
    out = {}
    for key, files in seen.items():
        if len(files) > 1 and (len(set(files.values())) > 1 or "" in files.values()):
            out[key] = sorted(files)
    return out


def main():
    root = sys.argv[1] if len(sys.argv) > 1 else os.path.join(os.path.dirname(__file__), "..", "..")
    os.chdir(root)
    listed = subprocess.run(["git", "ls-files", "*.cc"], capture_output=True, text=True, check=False).stdout.split()
    sources = [path for path in listed or glob.glob("**/*.cc", recursive=True)
               if os.path.exists(path) and not re.search(r"_test(_\w+)?\.cc$|main\.cc$|_fuzz\.cc$|^bench/", path)]
    found = collisions(sources)
    for (folder, name), files in sorted(found.items()):
        print("FAILED: %s: %s in %s: give one of them another name, or both one place" % (
            folder, name, ", ".join(os.path.basename(path) for path in files)))
    print("%d files, %d mistakes" % (len(sources), len(found)))
    return 1 if found or not sources else 0


if __name__ == "__main__":
    sys.exit(main())
