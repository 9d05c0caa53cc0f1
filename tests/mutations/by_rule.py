"""Mistakes made by rule on lines of the product that have changed: what the entries of the *.yaml files are for lasting
promises, these are for the change at hand. Used by mutate.py --changed."""
import os
import re
import subprocess

PRODUCT = ("reconcilers/", "controller/", "k8sclient/")
# Name, text, and the text that replaces it.
SWAPS = [("or_for_and", " && ", " || "), ("and_for_or", " || ", " && "), ("one_too_many", " < ", " <= "), ("one_too_few", " <= ", " < "),
         ("above_for_from", " >= ", " > "), ("from_for_above", " > ", " >= "), ("unequal_for_equal", " == ", " != "),
         ("equal_for_unequal", " != ", " == "), ("more_for_less", " - ", " + ")]
# (name, what is replaced in a line, by what). Each fits a line at its first place that is in no string and no comment.
RULES = [
    ("negated", re.compile(r"\bif \((?!const |auto |k8s::|std::)(.+)\)( \{| return\b.*;| continue;| break;)?$"), r"if (!(\1))\2"),
    *[(name, re.compile(re.escape(text)), other) for name, text, other in SWAPS],
    ("false_for_true", re.compile(r"\btrue\b"), "false"),
    ("true_for_false", re.compile(r"\bfalse\b"), "true"),
    ("dropped", re.compile(r"^ +(?!return\b|co_return\b|using\b|const\b|auto\b|throw\b|break\b|continue\b)[a-z]\w*(?:(?:\.|->|::)\w+)*\(.*\);$"), ";"),
]
LITERAL = re.compile(r'"(?:\\.|[^"\\])*"|//.*$')
NO_CODE = re.compile(r"^\s*(?:#|//|\[\[nodiscard\]\]|template|namespace|static_assert|case )")


def mutated(line):
    """(name of the rule, the line as the mistake makes it), for each rule that fits."""
    if NO_CODE.match(line):
        return []
    code = LITERAL.sub(lambda found: "\0" * len(found.group()), line)  # Of the same length.
    out = []
    for name, pattern, after in RULES:
        if found := pattern.search(code):
            out.append((name, line[:found.start()] + pattern.sub(after, line[found.start():], count=1)))
    return [(name, text) for name, text in out if text != line]


def changed_lines(root, base):
    """(file, number) of the product's lines that differ from a commit."""
    text = subprocess.run(["git", "diff", "--unified=0", base, "--", *PRODUCT], cwd=root, check=True, capture_output=True,
                          text=True).stdout
    path, number = None, 0
    for line in text.splitlines():
        if line.startswith("+++ "):
            path = line[len("+++ b/"):] if line.endswith(".cc") else None
        elif line.startswith("@@"):
            number = int(re.search(r"\+(\d+)", line).group(1))
        elif line.startswith("+") and path:
            yield path, number
            number += 1


def entries(root, base):
    """As those of the *.yaml files; `line` says which one is meant, whose text can occur elsewhere as well."""
    out = []
    for path, number in changed_lines(root, base):
        with open(os.path.join(root, path), encoding="utf-8") as text:
            lines = text.read().splitlines()
        begins = number == 1 or lines[number - 2].rstrip().endswith((";", "{", "}", ":", ")"))  # Or it is the rest of a statement.
        for rule, wrong in mutated(lines[number - 1]):
            if rule != "dropped" or begins:
                out.append({"name": "%s_%s_%d" % (rule, path.replace("/", "_").removesuffix(".cc"), number), "file": path,
                            "line": number, "before": lines[number - 1], "after": wrong, "seen": "line %d is: %s" % (number, wrong.strip()),
                            "source": "by_rule.py"})
    return out
