#!/usr/bin/env python3
"""The tables of docs/node-steps.md have their rows in the order in which the code asks them."""
import pathlib
import re
import sys

ROOT = pathlib.Path(__file__).resolve().parents[2]


def rows_of_table(letter):
    text = (ROOT / "docs/node-steps.md").read_text()
    return [int(number) for number in re.findall(r"^\| %s(\d+) \|" % letter, text, re.MULTILINE)]


def rows_of_code(path, pattern):
    text = (ROOT / path).read_text()
    table = re.search(r"kRows\[\] = \{(.*?)\};", text, re.DOTALL).group(1)
    return [int(number) for number in re.findall(pattern, table)]


def main():
    mistakes = 0
    for letter, path, pattern in (("N", "reconcilers/node/assess_rows.cc", r"&Assessor::n(\d+)_"),
                                  ("C", "reconcilers/node/node_step.cc", r"&ChangeStep::c(\d+)_")):
        table, code = rows_of_table(letter), rows_of_code(path, pattern)
        if not table or table != code or table != list(range(1, len(table) + 1)):
            mistakes += 1
            print("node-steps.md has the rows %s of table %s, and %s asks %s" % (table, letter, path, code))
    print("2 tables, %d mistakes" % mistakes)
    return mistakes > 0


if __name__ == "__main__":
    sys.exit(main())
