#!/usr/bin/env python3
"""A node's assessment has at most eight booleans: what has more than two values, or excludes another one, is an enum."""
import pathlib
import re
import sys

ROOT = pathlib.Path(__file__).resolve().parents[2]
MOST = 8

# Structs, and the flags that they have.
EXAMPLES = [
    ("struct NodeAssessment {\n  bool ready = false;\n  bool a =\n      false;  // Long.\n};\n", ["ready", "a"]),
    ("struct NodeAssessment {\n  std::optional<bool> a;\n  bool f() const { return a; }\n};\n", ["a"]),
    ("struct Other {\n  bool a = false;\n};\nstruct NodeAssessment {\n  [[nodiscard]] bool f() const;\n};\n", []),
]


def flags_of(text):
    body = re.search(r"^struct NodeAssessment \{\n(.*?)^\};", text, re.DOTALL | re.MULTILINE).group(1)
    return re.findall(r"^  (?:bool|std::optional<bool>) (\w+)(?:;| =)", body, re.MULTILINE)


def main():
    mistakes = [text for text, flags in EXAMPLES if flags_of(text) != flags]
    for text in mistakes:
        print("these flags are not found:\n%s" % text)
    flags = flags_of((ROOT / "reconcilers/node/assess.h").read_text())
    if not 0 < len(flags) <= MOST:
        mistakes.append(flags)
        print("NodeAssessment has %d booleans, and may have %d: %s" % (len(flags), MOST, ", ".join(flags)))
    print("%d booleans, %d mistakes" % (len(flags), len(mistakes)))
    return len(mistakes) > 0


if __name__ == "__main__":
    sys.exit(main())
