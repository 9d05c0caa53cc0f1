#!/usr/bin/env python3
"""Checks that a free function is declared in the folder that defines it: declarations_test.py [--stems] [PROJECT].

A header is the manual of what lies beside it. A function that no file defines is a mistake as well: either its
declaration is a leftover, or this test does not see the definition. A comment that sends the reader to a file names one
that exists. With --stems the test also lists, without failing,
the functions whose header and source lie in one folder and have different names.
"""
import os
import re
import sys

from function_length_test import sources, without_literals

TOKEN = re.compile(r"[A-Za-z_]\w*|\d[\w'.]*|::|->|\S")
WORD = re.compile(r"[A-Za-z_]\w*$")
NAMED_FILE = re.compile(r"(?<![\w./-])((?!sys/)[a-z][a-z_0-9/]*\.(?:cc|h))\b")
# First words of what is no function, wherever it has parentheses.
NO_FUNCTION = {"using", "typedef", "static_assert", "class", "struct", "enum", "union", "friend", "concept", "requires"}
# Words that a declaration and its definition need not share.
SPECIFIERS = {"inline", "static", "constexpr", "consteval", "extern", "explicit", "virtual"}
# Words of a parameter's type that are not its name, where they stand last.
TYPE_WORDS = {"const", "int", "char", "bool", "double", "float", "long", "short", "unsigned", "signed", "auto", "void"}

# The rules below, tried out: files, and the functions that are declared elsewhere than they are defined.
EXAMPLES = [
    ({"a/f.h": "namespace n {\nvoid f(int count);\n}\n", "a/f.cc": "namespace n {\nvoid f(int n) {}\n}\n"}, []),
    ({"a/f.h": "namespace n {\n[[nodiscard]] A f(const B& b = {});\n}\n", "b/f.cc": "namespace n {\nA f(const B& b) {}\n}\n"},
     ["a/f.h f b/f.cc"]),
    # Another namespace, another overload, a function of a class, and one that no other file sees.
    ({"a/f.h": "namespace n {\nvoid f();\n}\n", "a/f.cc": "namespace n {\nvoid f() {}\n}\n",
      "b/f.cc": "namespace m {\nvoid f() {}\n}\n"}, []),
    ({"a/f.h": "void f(int a);\n", "a/f.cc": "void f(int a) {}\n", "b/f.cc": "void f(std::string_view a) {}\n"}, []),
    ({"a/f.h": "void f(int a);\nvoid f(const std::map<int, B>& a);\n", "a/f.cc": "void f(int a) {}\n",
      "b/f.cc": "void f(const std::map<int, B>& b) {}\n"}, ["a/f.h f b/f.cc"]),
    ({"a/f.h": "struct A {\n  void f(int a);\n};\n", "b/f.cc": "void f(int a) {}\nvoid A::g() {}\n"}, []),
    ({"a/f.h": "void f();\n", "a/f.cc": "void f() {}\n", "b/f.cc": "namespace {\nvoid f() {}\n}\nstatic void f() {}\n"}, []),
    ({"a/f.h": "struct A {\n  ~A();\n};\n", "b/f.cc": "A::~A() = default;\nbool operator==(A a, A b) = delete;\n"}, []),
    # A name of its own for a type, and a definition that is missing.
    ({"a/f.h": "void f(const nlohmann::json& a);\n", "b/f.cc": "void f(const Json& a) {}\n"}, ["a/f.h f b/f.cc"]),
    ({"a/f.h": "void f();\n", "a/f.cc": "void g() {\n  f();\n}\n"}, ["a/f.h f "]),
    # Bodies, initialisers, and what only looks like a function.
    ({"a/f.h": "const int a = f();\nusing F = void (*)(int);\n", "b/f.cc": "A::A() : b_{1}, c_(2) {\n  f();\n}\nint f() {}\n"}, []),
    ({"a/f.h": "std::function<void(int)> f(std::function<void(int)> g);\n",
      "b/f.cc": "std::function<void(int)> f(std::function<void(int)> done) {\n  return {};\n}\n"}, ["a/f.h f b/f.cc"]),
    ({"a/f.h": "bool operator<(const A& a, const A& b);\n", "b/f.cc": "bool operator<(const A& a, const A& b) {}\n"},
     ["a/f.h operator< b/f.cc"]),
    ({"a/f.h": "template <typename T>\nstd::vector<T> f(T t) {\n  return {t};\n}\nvoid g(Row (&rows)[2]);\n",
      "b/f.cc": "void g(Row (&other)[2]) {}\n"}, ["a/f.h g b/f.cc"]),
]


def split(tokens, at):
    """The parts of a list of tokens between those at depth zero that equal `at`."""
    parts, depth = [[]], 0
    for token in tokens:
        depth += {"(": 1, "<": 1, "[": 1, "{": 1, ")": -1, ">": -1, "]": -1, "}": -1}.get(token, 0)
        if token == at and depth == 0:
            parts.append([])
        else:
            parts[-1].append(token)
    return [part for part in parts if part]


def type_of(parameter):
    """A parameter's type as text: without its name and its default."""
    tokens = split(parameter, "=")[0]
    if tokens[-1] == "]" and tokens[-4:-2] != [")"] and "(" in tokens:  # Row (&name)[2]
        close = len(tokens) - 1 - tokens[::-1].index(")")
        return " ".join(tokens[:close - 1] + tokens[close:])
    named = len(tokens) > 1 and WORD.match(tokens[-1]) and tokens[-1] not in TYPE_WORDS
    if named and tokens[-2] != "::" and tokens[:-1] != ["const"]:
        tokens = tokens[:-1]
    # One of two files may name the namespace that the other one is in, or uses.
    return " ".join(token for at, token in enumerate(tokens) if "::" not in tokens[at:at + 2])


def function_of(head):
    """(name, types of its parameters) of the function that these tokens declare or begin to define; else None."""
    while head[:1] == ["template"] and len(head) > 1:
        depth, end = 0, 1
        while end < len(head):
            depth += {"<": 1, ">": -1}.get(head[end], 0)
            end += 1
            if depth == 0:
                break
        head = head[end:]
    while head[:2] == ["[", "["]:
        head = head[head.index("]") + 2:]
    if not head or head[0] in NO_FUNCTION or not (WORD.match(head[0]) or head[0] == "::"):
        return None
    depth = 0
    for at, token in enumerate(head):
        if token == "operator":
            begin = head.index("(", at + 2)
            name = "".join(head[at:begin])
            break
        depth += {"<": 1, ">": -1}.get(token, 0)
        if token == "=" and depth == 0:
            return None
        if token == "(" and depth == 0:
            begin, name = at, head[at - 1]
            at -= 1
            break
    else:
        return None
    returned = [token for token in head[:at] if token not in SPECIFIERS]
    if not returned or head[at - 1] in ("::", "~") or "static" in head[:at]:
        return None  # A constructor, a function of a class, or one that no other file sees.
    end, depth = begin, 0
    while end < len(head):
        depth += {"(": 1, ")": -1}.get(head[end], 0)
        if depth == 0:
            break
        end += 1
    return name, tuple(type_of(parameter) for parameter in split(head[begin + 1:end], ","))


def functions_of(source):
    """The free functions of a source: (declared, defined), each a list of (namespaces, name, types)."""
    text = re.sub(r"^[ \t]*#(?:.*\\\n)*.*", "", without_literals(source), flags=re.MULTILINE)
    declared, defined = [], []
    scopes, head, parentheses = [], [], 0  # scopes: of each open brace, its namespace; None for other things.

    def note(out):
        found = function_of(head)
        if found and head[-2:] not in (["=", "delete"], ["=", "default"]):
            out.append(("::".join(scopes),) + found)

    for token in TOKEN.findall(text):
        outside = None not in scopes
        parentheses += {"(": 1, ")": -1}.get(token, 0) if outside else 0
        if token == "{":
            if outside and head[:1] == ["namespace"]:
                scopes.append("".join(head[1:]) or "unnamed")
                head = []
                continue
            if outside and parentheses == 0:
                note(defined)
            scopes.append(None)
        elif token == "}" and scopes:
            scopes.pop()
            if None not in scopes and parentheses == 0:
                head = []
        elif outside and token == ";" and parentheses == 0:
            note(declared)
            head = []
        elif outside:
            head.append(token)
    return ([f for f in declared if "unnamed" not in f[0]], [f for f in defined if "unnamed" not in f[0]])


def strangers(files):
    """All (declaring file, name, defining files) of free functions that no file of the declaring file's stem defines.

    Also how many declarations there are. A definition has the same types; if none has, as where a file has a name of
    its own for a type, one with as many parameters.
    """
    declarations, same, alike = [], {}, {}
    for path, source in sorted(files.items()):
        declared, defined = functions_of(source)
        declarations += [(path, function) for function in declared]
        for function in defined:
            same.setdefault(function, []).append(path)
            alike.setdefault((*function[:2], len(function[2])), []).append(path)
    out = []
    for path, function in declarations:
        found = same.get(function) or alike.get((*function[:2], len(function[2])), [])
        if os.path.splitext(path)[0] not in [os.path.splitext(other)[0] for other in found]:
            out.append((path, function[1], found))
    return out, len(declarations)


def in_other_folders(found):
    """Those of strangers() that no file of the declaring folder defines."""
    return [(path, name, others) for path, name, others in found
            if os.path.dirname(path) not in [os.path.dirname(other) for other in others]]


def files_that_are_gone(files, names):
    """(path, line, name) of comments that name a file which is none of `names`, paths of the project's files."""
    out = []
    for path, text in sorted(files.items()):
        for number, line in enumerate(text.split("\n"), 1):
            comment = line.partition("//")[2]
            out += [(path, number, name) for name in NAMED_FILE.findall(comment)
                    if not any(("/" + each).endswith("/" + name) for each in names)]
    return out


def check_the_rules():
    """How many of EXAMPLES are read otherwise."""
    wrong = 0
    for files, expected in EXAMPLES:
        found = ["%s %s %s" % (path, name, " ".join(others))
                 for path, name, others in in_other_folders(strangers(files)[0])]
        if found != expected:
            wrong += 1
            print("declarations_test: finds %r in %r" % (found, files))
    text = "#include <sys/x.h>\n// As b.cc and a/f.h say.\nint i;  // Of f.h; sys/x.h has it.\n"
    if files_that_are_gone({"a/f.h": text}, ["a/f.h"]) != [("a/f.h", 2, "b.cc")]:
        wrong += 1
        print("declarations_test: does not find the one file that is gone in %r" % text)
    return wrong


def main(arguments):
    stems = "--stems" in arguments
    root = ([argument for argument in arguments if argument != "--stems"] or ["."])[0]
    files = {}
    for path in sources(root):
        with open(os.path.join(root, path), encoding="utf-8") as source:
            files[path] = source.read()
    wrong = check_the_rules()
    found, count = strangers(files)
    for path, name, others in in_other_folders(found):
        wrong += 1
        what = "%s defines: declare it beside that file" % ", ".join(others) if others else "no file defines: remove it"
        print("%s declares %s(), which %s" % (path, name, what))
    names = {os.path.relpath(os.path.join(folder, name), root) for part in ("k8sclient", "reconcilers", "controller", "tests", "bench")
             for folder, _, each in os.walk(os.path.join(root, part)) for name in each}
    for path, number, name in files_that_are_gone(files, names):
        wrong += 1
        print("%s:%d names %s, which is no file of the project" % (path, number, name))
    if stems:
        for path, name, others in found:
            print("stems: %s declares %s(), defined in %s" % (path, name, ", ".join(others) or "no file"))
    print("%d declarations, %d mistakes" % (count, wrong))
    return 1 if wrong or count < 500 else 0


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
