#!/usr/bin/env python3
"""Checks that no function of the product is longer than 60 lines: function_length_test.py [PROJECT].

A function's length is that of its body, from the line of its opening brace to that of the closing one. Sources are as
clang-format leaves them: a body's brace follows a space, a brace that initialises something does not.
"""
import os
import re
import sys

TOP = ["k8sclient", "reconcilers", "controller"]
MOST = 60

# What replaces strings, comments and characters, so that their braces do not count.
LITERALS = re.compile(r'R"(?P<mark>[^()\s\\]*)\(.*?\)(?P=mark)"|"(?:\\.|[^"\\\n])*"|//[^\n]*|/\*.*?\*/'
                      r"|(?<![0-9A-Za-z_])'(?:\\.|[^'\\\n])+'", re.DOTALL)
NO_FUNCTION = re.compile(r"^(?:if|for|while|switch|do|else|try|catch|namespace|class|struct|enum|union|extern)\b")
NAME = re.compile(r"(operator[^\w\s]{1,3}|operator\(\)|~?[A-Za-z_]\w*)\s*$")

# The rules above, tried out: source, and the functions with their lengths that it has.
EXAMPLES = [
    ("int f() {\n  return 1;\n}\n", [("f", 3)]),
    ("int f() { return 1; }\n", [("f", 1)]),
    ("std::string A::name(const B& b,\n                    int c) const {\n  return {};\n}\n", [("name", 3)]),
    ("A::A(int b)\n    : b_{b}, c_(2) {\n  if (b) {\n    c();\n  }\n}\n", [("A", 5)]),
    ("A::A(int b) : b_{b} {}\n", [("A", 1)]),
    ("constexpr Row kRows[] = {\n    {1, f(2)},\n    {3, f(4)},\n};\n", []),
    ("class A {\n public:\n  int f() const {\n    return [&] {\n      return 1;\n    }();\n  }\n  int g{0};\n};\n", [("f", 5)]),
    ("namespace a {\nstruct B {\n  int c = 0;\n};\nvoid d() {\n}\n}\n", [("d", 2)]),
    ('void f() {\n  g("{");  // {\n  h(R"({{)", \'{\');\n}\n', [("f", 4)]),
    ("bool operator==(const A& a, const A& b) {\n  return true;\n}\n", [("operator==", 3)]),
    ("template <typename T>\n  requires std::same_as<T, int>\nauto f(T t) -> std::vector<T> {\n  return {t};\n}\n", [("f", 3)]),
    ("const std::set<int> kSet = make({\n    1,\n    2,\n});\nvoid f() {\n}\n", [("f", 2)]),
]


def without_literals(source):
    """The source with the same lines, and nothing in its strings, comments and characters."""
    return LITERALS.sub(lambda found: " " + "\n" * found.group(0).count("\n"), source)


def name_of(head):
    """What is defined by the text before an opening brace; None where that is no function."""
    head = re.sub(r"^(?:(?:public|private|protected)\s*:|template\s*<[^{}]*?>\s*(?=\n|[a-z])|\s)+", "", head).strip()
    if "(" not in head or NO_FUNCTION.match(head):
        return None
    before = head[:head.index("(")]
    if before.rstrip().endswith("operator"):
        return "operator()"
    found = NAME.search(before)
    if "=" in re.sub(r"operator\S+", "", before) or found is None:
        return None  # What a variable is initialised with.
    return found.group(1)


def functions_of(source):
    """All functions that a source defines, as (name, first line of the body, its length)."""
    text = without_literals(source)
    out, kinds = [], []  # kinds: of each open brace, what it closes: None, or (name, its line) of a function.
    inside = 0           # Open braces of functions.
    head, line, parentheses = "", 1, 0
    for at, char in enumerate(text):
        line += char == "\n"
        if char in "()":
            parentheses += 1 if char == "(" else -1
        if char == "{":
            initialises = parentheses > 0 or text[at - 1] not in " \n" or head.rstrip().endswith(("=", ","))
            name = None if inside or initialises or "init" in kinds else name_of(head)
            kinds.append((name, line) if name else "init" if initialises else None)
            inside += name is not None
            head = head + "{" if initialises else ""
        elif char == "}" and kinds:
            kind = kinds.pop()
            if isinstance(kind, tuple):
                inside -= 1
                out.append((kind[0], kind[1], line - kind[1] + 1))
            head = head + "}" if kind == "init" else ""
        elif char == ";" and parentheses == 0:
            head = ""
        elif char == "#" and not head.strip():
            head = "#"
        elif char == "\n" and head.startswith("#"):
            head = ""
        else:
            head += char
    return out


def check_the_rules():
    """How many of EXAMPLES are read otherwise."""
    wrong = 0
    for source, expected in EXAMPLES:
        found = [(name, length) for name, _, length in functions_of(source)]
        if found != expected:
            wrong += 1
            print("function_length_test: reads %r in\n%s" % (found, source))
    return wrong


def sources(root):
    for top in TOP:
        for folder, _, files in sorted(os.walk(os.path.join(root, top))):
            for name in sorted(files):
                if name.endswith((".h", ".cc")):
                    yield os.path.relpath(os.path.join(folder, name), root)


def main(root):
    wrong = check_the_rules()
    count = 0
    for path in sources(root):
        with open(os.path.join(root, path), encoding="utf-8") as source:
            found = functions_of(source.read())
        count += len(found)
        for name, line, length in found:
            if length > MOST:
                wrong += 1
                print("%s:%d: %s has %d lines; at most %d: give its parts names of their own" %
                      (path, line, name, length, MOST))
    print("%d functions, %d mistakes" % (count, wrong))
    return 1 if wrong or count < 1000 else 0


if __name__ == "__main__":
    sys.exit(main(sys.argv[1] if len(sys.argv) > 1 else "."))
