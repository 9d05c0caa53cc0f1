#!/usr/bin/env python3
"""docs/codes.md against the code: every reason of an Event that the code names is there (KAI's: in kai.md), and every reason there is
one of the code's. Prints "N passed, N failed"."""
import pathlib
import re
import sys

ROOT = pathlib.Path(__file__).resolve().parents[2]
PAGE, PAGE_OF_KAI = ((ROOT / "docs" / name).read_text(encoding="utf-8") for name in ("codes.md", "kai.md"))
SOURCES = {path: path.read_text(encoding="utf-8") for room in ("reconcilers", "controller") for path in sorted((ROOT / room).rglob("*.[ch]*"))}
CONSTANTS = {name: value for text in SOURCES.values()
             for name, value in re.findall(r'constexpr (?:std::string_view|const char\*) (k\w+) =\s+"([A-Z]\w+)"', text)}
# The reason is the argument before the action; of the executor, a field.
CALLS = [re.compile(r'\bevent\([^;]*?(?:true|false|bad)[^,]*,\s*(?P<reason>k\w+|"\w+")\s*,\s*(?:"\w+"|k\w+)\s*,'),
         re.compile(r'\.why = \{(?P<reason>k\w+|"\w+"),'),
         re.compile(r'\bReason why\(\w+ \? (?P<reason>k\w+) : (?P<other>"\w+"),')]


def value(word):
    return word.strip('"') if word.startswith('"') else CONSTANTS[word]


def named_on(page):
    rows = [line.split("|")[1] for line in page.splitlines() if line.startswith("| ") and "`" in line.split("|")[1]]
    return {word for row in rows for word in re.findall(r"`([A-Z]\w+)`", row)}


def main():
    written = {value(word) for text in SOURCES.values() for call in CALLS for match in call.finditer(text)
               for word in match.groupdict().values() if word}
    literals = {word for text in SOURCES.values() for word in re.findall(r'"([A-Z][A-Za-z]+)"', text)}
    named, of_kai = (named_on(page) for page in (PAGE, PAGE_OF_KAI))
    failures = [f"the code writes Events with the reason {word}, which docs/codes.md does not name" for word in sorted(written - named - of_kai)]
    failures += [f"docs/codes.md names {word}, which the code does not have" for word in sorted(named - literals)]
    if len(written) < 15:
        failures.append(f"the code was not understood: {sorted(written)}")
    print(*failures, sep="\n")
    print(f"{len(written | named) - len(failures)} passed, {len(failures)} failed")
    sys.exit(1 if failures else 0)


main()
