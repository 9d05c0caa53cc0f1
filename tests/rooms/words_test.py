#!/usr/bin/env python3
"""Checks that one word has one meaning in what people read: words_test.py [PROJECT].

That is docs/, and the quoted texts of several words in the product. Words are whole, and a line break between two of them is
a blank. A comment of the product or of its tests that names a source file names one that exists.
"""
import os
import re
import sys

PRODUCT = ["k8sclient", "reconcilers", "controller"]
# What must not occur -> what to write. Matched in any case.
INSTEAD = {
    r"may": "is allowed to, can, might, or must not",
    r"in ?flight": "in progress",
    r"sick|unwell|ailments?|ailing|heal|heals|healed|healing": "missing devices, pod fault, remediation",
    r"foresight": "capacity warning",
    r"in the way": "blocking pods, blocked by, or the obstacle",
    r"tell|tells|told|telling": "report",
    r"giv(?:e|es|en|ing) back|gave back": "uncordons and queues again, releases, returns",
    r"puts? off|mends?|mended|be had|done with|h(?:o|e)ld(?:s|ing)? (?:back|up)": "a standard verb",
    r"for ever": "forever",
    r"of which|what stands|nobody waits for": "a sentence that names the thing",
    r"is no (?:name|fault|canary|percentage|amount|number)|all but that|a look at workloads|somebody else than":
        "is not a, all except, checks, by another one than",
    r"let (?:the|that|its) label name|can be from before|the key before|carries slices":
        "point the label at, might be outdated, the previous key, has room for",
}
GAP = r"[\s\"]+"
WORDS = re.compile(r"(?<![A-Za-z0-9_-])(?:%s)(?![A-Za-z0-9_-])" % "|".join(
    "(%s)" % words.replace(" ?", "(?:%s)?" % GAP).replace(" ", GAP) for words in INSTEAD), re.IGNORECASE)
QUOTED = re.compile(r'//[^\n]*|"(?:[^"\\\n]|\\.)*"')
NAMED_FILE = re.compile(r"(?<![\w./-])((?!sys/)[a-z][a-z_0-9/]*\.(?:cc|h))\b")

# The rules above, tried out: file, text, and the words that are found.
EXAMPLES = [
    ("a.md", "The node may not start; the month of May is 5.", ["may", "May"]),
    ("a.md", "held\nback, gpusharing_writes_in_flight, max-in-flight", ["held\nback"]),
    ("a.cc", 'f("now and for "\n  "ever more");  // It may.', ['for "\n  "ever']),
    ("a.cc", 'told("tell", "nobody is told");', ["told"]),
]


def texts_of(path, text):
    """What people read of a file, with everything else blackened, so that lines keep their numbers."""
    if path.endswith(".md"):
        return text
    out, end = [], 0
    for found in QUOTED.finditer(text):
        if found.group().startswith("//") or re.fullmatch(r'"\S*"', found.group()):
            continue  # A comment, or one word: an identifier, a path or a value.
        out += [re.sub(r"\S", "\0", text[end:found.start()]), found.group()]
        end = found.end()
    return "".join(out) + re.sub(r"\S", "\0", text[end:])


def found_in(path, text):
    """All places that have such words, as (line, the words, what to write)."""
    text = texts_of(path, text)
    return [(text.count("\n", 0, found.start()) + 1, found.group(), list(INSTEAD.values())[found.lastindex - 1])
            for found in WORDS.finditer(text)]


def files_that_are_gone(text, names):
    """(line, name) of comments that name a file which is none of `names`, paths of the project's files."""
    return [(number, name) for number, line in enumerate(text.split("\n"), 1) for name in NAMED_FILE.findall(line.partition("//")[2])
            if not any(("/" + each).endswith("/" + name) for each in names)]


def files_below(root, tops, endings):
    return sorted(os.path.relpath(os.path.join(folder, name), root) for top in tops
                  for folder, _, files in os.walk(os.path.join(root, top)) for name in files if name.endswith(endings))


def read(root, path):
    with open(os.path.join(root, path), encoding="utf-8") as source:
        return source.read()


def main(root):
    mistakes = ["words_test finds %r in %r" % (found_in(path, text), text) for path, text, words in EXAMPLES
                if [found for _, found, _ in found_in(path, text)] != words]
    if files_that_are_gone("// As b.cc and a/f.h say.\nint i;  // Of f.h; sys/x.h has it.", ["a/f.h"]) != [(1, "b.cc")]:
        mistakes.append("words_test does not find the one file that is gone")
    judged = files_below(root, PRODUCT, (".h", ".cc")) + files_below(root, ["docs"], ".md")
    for path in judged:
        mistakes += ["%s:%d: \"%s\": write %s" % (path, line, " ".join(words.split()), instead)
                     for line, words, instead in found_in(path, read(root, path))]
    names = files_below(root, [*PRODUCT, "tests", "bench"], (".h", ".cc"))
    for path in names:
        mistakes += ["%s:%d names %s, which is no file of the project" % (path, line, name)
                     for line, name in files_that_are_gone(read(root, path), names)]
    print(*mistakes, "%d files, %d mistakes" % (len(judged), len(mistakes)), sep="\n")
    return 1 if mistakes or len(judged) < 400 else 0


if __name__ == "__main__":
    sys.exit(main(sys.argv[1] if len(sys.argv) > 1 else os.path.join(os.path.dirname(os.path.abspath(__file__)), "..", "..")))
