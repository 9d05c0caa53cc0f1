#!/usr/bin/env python3
"""Judges gpu-sharing-operator by the cases of the *.json files of this folder: judge.py [FILTER]. See README.md.

FILTER is a text that the name of a case contains: "kai_gc/" are the cases of kai_gc.json, "kai_gc/D001" is one of them.

  --bin PATH   the program; without it $GSO_BIN, else the newest gpu-sharing-operator below build*/ of the present folder
  --jobs N     calls of the program at once (2)

The last line is "N passed, N failed, N skipped".
"""
import argparse
import glob
import json
import os
import sys

HERE = os.path.dirname(os.path.abspath(__file__))
sys.dont_write_bytecode = True
sys.path.insert(0, HERE)

from judges import JUDGES  # noqa: E402
from judges.program import Program  # noqa: E402


def find_program():
    if os.environ.get("GSO_BIN"):
        return os.environ["GSO_BIN"]
    built = [path for path in glob.glob("build*/**/gpu-sharing-operator", recursive=True)
             if os.path.isfile(path) and os.access(path, os.X_OK)]
    return max(built, key=os.path.getmtime) if built else sys.exit("judge.py: no gpu-sharing-operator below build*/; build it, or name it with --bin")


def load():
    """{file without .json: cases}; a file without cases has facts for C++ tests only. Ends where a file has no judge."""
    out = {}
    for path in sorted(glob.glob(os.path.join(HERE, "*.json"))):
        name = os.path.splitext(os.path.basename(path))[0]
        with open(path, encoding="utf-8") as text:
            out[name] = json.load(text).get("cases", [])
    if missing := sorted({name for name, cases in out.items() if cases} ^ set(JUDGES)):
        sys.exit("judge.py: a file with cases needs a judge, and a judge a file: %s" % ", ".join(missing))
    return out


def main():
    parser = argparse.ArgumentParser(description=__doc__.split("\n")[0])
    parser.add_argument("filter", nargs="?", default="", help="only cases whose name FILE/ID contains this text")
    parser.add_argument("--bin", help="the gpu-sharing-operator to judge")
    parser.add_argument("--jobs", type=int, default=2, help="calls of it at once")
    given = parser.parse_args()
    program = Program(os.path.abspath(given.bin or find_program()), given.jobs)
    passed = failed = 0
    for name, cases in load().items():
        chosen = [case for case in cases if given.filter in "%s/%s" % (name, case["id"])]
        titles = {case["id"]: case.get("name", "") for case in chosen}
        for case, wrong in JUDGES[name](chosen, program) if chosen else []:
            passed, failed = passed + (not wrong), failed + bool(wrong)
            if wrong:
                print("FAIL %s/%s: %s%s" % (name, case, titles[case] and titles[case] + ": ", wrong))
    if passed + failed == 0:
        sys.exit("judge.py: no case's name contains %r" % given.filter)
    print("%d passed, %d failed, 0 skipped" % (passed, failed))
    return 1 if failed else 0


if __name__ == "__main__":
    sys.exit(main())
