#!/usr/bin/env python3
"""Checks that every field of a projected object is read: projected_fields_test.py [PROJECT].

A field that no planner reads costs memory for each object, and each change of it wakes the planners for nothing.
Objects are the structs in OBJECTS. A field counts as read where a source of the product, other than the projections,
names it after "." or "->" (or as &Struct::field) and does not only assign it, and where a member function in those
headers or in their sources names it. Comparisons by operator== do not count. The check goes by the field's name: a
field that shares its name with another field or function counts as read where that one is.
"""
import os
import re
import sys

OBJECTS = ["reconcilers/model/objects.h", "reconcilers/model/kai_objects.h", "reconcilers/model/policy.h",
           "reconcilers/model/rollout_spec.h"]
SOURCES = ["reconcilers", "controller"]
# These fill the fields.
PROJECTIONS = re.compile(r"reconcilers/model/(project_\w+|json_fields)\.(cc|h)$")

# Fields that nothing reads by name, as "Struct::field", each with the reason why it stays.
ALLOWED = {}

LITERALS = re.compile(r'R"(?P<mark>[^()\s\\]*)\(.*?\)(?P=mark)"|"(?:\\.|[^"\\\n])*"|//[^\n]*|/\*.*?\*/'
                      r"|(?<![0-9A-Za-z_])'(?:\\.|[^'\\\n])+'", re.DOTALL)
STRUCT = re.compile(r"\bstruct (\w+) \{")
FIELD = re.compile(r"^(?!friend\b|using\b|static\b|enum\b|struct\b|return\b)[\w:<>,\s*&]*[\w>*&]\s+(\w+)\s*(?:=.*|\{.*\})?$",
                   re.DOTALL)
MEMBER_FUNCTION = re.compile(r"\)\s*(?:const\s*)?(?:noexcept\s*)?\{")
COMPARISON = re.compile(r"\boperator==\([^()]*\)\s*(?:const\s*)?\{")
# An access, and whether an assignment follows it. A compound assignment (+=) reads nothing either.
ACCESS = re.compile(r"(?:(?:\.|->)\s*|&\w+::)([A-Za-z_]\w*)(?P<assigned>\s*(?:[-+|&]?=(?!=)|\{[^{}]*\}\s*[,}]))?")

# The rules above, tried out: header, source, and the fields that nothing reads.
EXAMPLES = [
    ("struct A {\n  int b = 0;\n};", "int f(const A& a) { return a.b; }", []),
    ("struct A {\n  int b = 0;\n};", "int f(const A* a) { return a->b; }", []),
    ("struct A {\n  int b = 0;\n};", "void f(A& a) { a.b = 1; }", ["A::b"]),
    ("struct A {\n  int b = 0;\n};", "bool f(A& a) { return a.b == 1; }", []),
    ("struct A {\n  int b = 0;\n};", "// a.b\nvoid f(A& a) { g(\"a.b\"); }", ["A::b"]),
    ("struct A {\n  int b = 0;\n};", "const auto kB = &A::b;", []),
    ("struct A {\n  int b = 0;\n};", "A f() { return {.b = 1}; }", ["A::b"]),
    ("struct A {\n  std::map<int, std::vector<int>>\n      b;  // Such a field.\n  int c{0};\n};", "", ["A::b", "A::c"]),
    ("struct A {\n  bool f(int b) const;\n  bool h = false;\n};", "bool A::f(int b) const { return h; }", ["A::h"]),
    ("struct A {\n  bool f(int b) const;\n  bool g() const { return h; }\n  bool h = false;\n};", "", []),
    ("struct A {\n  int b = 0;\n};", "bool operator==(const A& x, const A& y) {\n  return x.b == y.b;\n}", ["A::b"]),
    ("struct A {\n  struct B {\n    int c = 0;\n  };\n  std::optional<B> d;\n"
     "  friend bool operator==(const A&, const A&) = default;\n};", "int f(A& a) { return a.d->c; }", []),
    ("struct A {\n  struct B {\n    int c = 0;\n  };\n  std::optional<B> d;\n};", "", ["B::c", "A::d"]),
]


def without_literals(source):
    return LITERALS.sub(lambda found: " " + "\n" * found.group(0).count("\n"), source)


def body_from(text, brace):
    """The text between the brace at that place and the one that closes it."""
    depth = 0
    for at in range(brace, len(text)):
        depth += {"{": 1, "}": -1}.get(text[at], 0)
        if depth == 0:
            return text[brace + 1:at]
    return ""


def bodies(pattern, text):
    """The bodies of all functions whose head ends as `pattern` says."""
    return [body_from(text, found.end() - 1) for found in pattern.finditer(text)]


def fields_of(header):
    """All fields of the structs in a header, as (struct, field), nested structs first."""
    out = []
    text = without_literals(header)
    found = STRUCT.search(text)
    while found:
        body = body_from(text, found.end() - 1)
        own = body
        for nested in STRUCT.finditer(body):
            own = own.replace(nested.group(0) + body_from(body, nested.end() - 1) + "};", "")
        out += fields_of(body)
        for function in bodies(MEMBER_FUNCTION, own):
            own = own.replace("{" + function + "}", ";")
        for line in own.split(";"):
            field = FIELD.match(line.strip()) if "(" not in line.split("=")[0] else None
            if field:
                out.append((found.group(1), field.group(1)))
        found = STRUCT.search(text, found.end() + len(body))
    return out


def read_in(source):
    """The names of all fields that a source reads of objects."""
    text = without_literals(source)
    for comparison in bodies(COMPARISON, text):
        text = text.replace("{" + comparison + "}", ";")
    return {found.group(1) for found in ACCESS.finditer(text) if not found.group("assigned")}


def read_by_members(source):
    """The names that functions in a header of objects, or in its source, read of their own object."""
    text = " ".join(bodies(MEMBER_FUNCTION, without_literals(source)))
    return set(re.findall(r"(?<![.\w>])[a-z]\w*(?!\s*=(?!=))\b", text))


def check_the_rules():
    """How many of EXAMPLES are judged otherwise."""
    wrong = 0
    for header, source, expected in EXAMPLES:
        names = read_in(source) | read_by_members(header)
        found = ["%s::%s" % (struct, field) for struct, field in fields_of(header) if field not in names]
        if found != expected:
            wrong += 1
            print("projected_fields_test: finds %r, not %r, in\n%s\n%s" % (found, expected, header, source))
    return wrong


def sources(root):
    for top in SOURCES:
        for folder, _, files in os.walk(os.path.join(root, top)):
            for name in files:
                path = os.path.relpath(os.path.join(folder, name), root)
                if name.endswith((".h", ".cc")) and not PROJECTIONS.search(path):
                    yield path


def text_of(root, path):
    with open(os.path.join(root, path), encoding="utf-8") as source:
        return source.read()


def main(root):
    wrong = check_the_rules()
    names = set()
    for path in sources(root):
        source = text_of(root, path)
        names |= read_in(source)
        if os.path.splitext(path)[0] + ".h" in OBJECTS:
            names |= read_by_members(source)
    count, allowed = 0, set()
    for header in OBJECTS:
        for struct, field in fields_of(text_of(root, header)):
            count += 1
            name = "%s::%s" % (struct, field)
            if field in names:
                continue
            if name in ALLOWED:
                allowed.add(name)
                continue
            wrong += 1
            print("FAILED: %s: nothing but the projection uses %s: delete the field" % (header, name))
    for name in sorted(set(ALLOWED) - allowed):
        wrong += 1
        print("FAILED: %s is read, or is gone: take it out of ALLOWED" % name)
    print("%d fields, %d mistakes" % (count, wrong))
    return 1 if wrong or count < 100 else 0


if __name__ == "__main__":
    sys.exit(main(sys.argv[1] if len(sys.argv) > 1 else os.path.join(os.path.dirname(os.path.abspath(__file__)), "..", "..")))
