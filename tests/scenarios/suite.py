#!/usr/bin/env python3
"""Runs the scenarios of this folder: suite.py [FILTER]. See README.md.

Several processes share the work (--jobs, 2). failing.txt names the scenarios that are known to fail, one a line: a name in
the list counts as skipped as long as it fails, and as failed as soon as it passes, so that the list can only shrink. A name
that no scenario has counts as failed as well. The last line is "N passed, N failed, N skipped".

--list prints the names that fail now, in the form of failing.txt. $GSO_BIN is the gpu-sharing-operator to try; without it,
the newest below build*/ of the present folder is.
"""
import argparse
import glob
import importlib
import inspect
import multiprocessing
import os
import sys
import time
import traceback

HERE = os.path.dirname(os.path.abspath(__file__))
sys.dont_write_bytecode = True
sys.path.insert(0, HERE)

import scenario  # noqa: E402

LIST = os.path.join(HERE, "failing.txt")


def load():
    """All scenarios, as {name: function}. Every file beside this one has stories; the folder cluster/ has none."""
    for path in sorted(glob.glob(os.path.join(HERE, "*.py"))):
        name = os.path.splitext(os.path.basename(path))[0]
        if name not in ("scenario", "suite", "walk_suite"):
            refuse_untold(importlib.import_module(name))
    return dict(scenario.SCENARIOS)


def refuse_untold(module):
    """Ends the program where a function looks like a story that @scenario was forgotten on: nothing calls it."""
    told = {function for _, function in scenario.SCENARIOS}
    source = inspect.getsource(module)
    for name, function in inspect.getmembers(module, inspect.isfunction):
        if function.__module__ == module.__name__ and function not in told and source.count(name) == 1:
            sys.exit("suite.py: %s.%s is neither a scenario nor called by one" % (module.__name__, name))


def known_failures():
    with open(LIST, encoding="utf-8") as lines:
        return {line.strip() for line in lines if line.strip() and not line.startswith("#")}


def play(name):
    """Runs one scenario; returns its name, why it failed (None: it passed), and how long it took."""
    begun = time.monotonic()
    try:
        dict(scenario.SCENARIOS)[name]()
        why = None
    except scenario.Failure as failure:
        why = str(failure)
    except Exception as error:  # A mistake in a scenario must not hide the others.
        at = traceback.extract_tb(error.__traceback__)[-1]
        why = "expected a scenario that runs, got %s: %s (%s:%d)" % (
            type(error).__name__, error, os.path.basename(at.filename), at.lineno)
    return name, why, time.monotonic() - begun


def judge_result(name, why, listed):
    """The word to print, the count that a result belongs to, and what to say of it."""
    if name not in listed:
        return ("PASS", "passed", "") if why is None else ("FAIL", "failed", why)
    if why is None:
        return "FAIL", "failed", "it passes now: remove it from tests/scenarios/failing.txt"
    return "SKIP", "skipped", "known to fail: " + why.split("\n")[0]


def run(names, listed, jobs):
    counts = {"passed": 0, "failed": 0, "skipped": 0}
    with multiprocessing.Pool(jobs) as pool:
        for name, why, seconds in pool.imap_unordered(play, names):
            word, count, text = judge_result(name, why, listed)
            counts[count] += 1
            print("%s %5.1f s  %s%s" % (word, seconds, name, ": " + text if text else ""))
            sys.stdout.flush()
    return counts


def main():
    parser = argparse.ArgumentParser(description=__doc__.split("\n")[0])
    parser.add_argument("filter", nargs="?", default="", help="only names that contain this text")
    parser.add_argument("--jobs", type=int, default=2, help="processes at once")
    parser.add_argument("--list", action="store_true", help="print the names that fail now")
    given = parser.parse_args()
    os.environ["GSO_BIN"] = os.path.abspath(scenario.binary())
    scenarios = load()
    names = [name for name in scenarios if given.filter in name]
    if not names:
        sys.exit("suite.py: no scenario's name contains %r" % given.filter)
    if given.list:
        with multiprocessing.Pool(given.jobs) as pool:
            print("\n".join(sorted(name for name, why, _ in pool.imap_unordered(play, names) if why is not None)))
        return 0
    listed = known_failures()
    counts = run(names, listed, given.jobs)
    for name in sorted(name for name in listed - set(scenarios) if " " not in name):  # "walks 17" is walk_suite.py's.
        counts["failed"] += 1
        print("FAIL   0.0 s  %s: no scenario has this name: remove it from tests/scenarios/failing.txt" % name)
    print("%(passed)d passed, %(failed)d failed, %(skipped)d skipped" % counts)
    return 0 if counts["failed"] == 0 else 1


if __name__ == "__main__":
    sys.exit(main())
