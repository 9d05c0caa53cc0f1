#!/usr/bin/env python3
"""Runs walks, whose steps are chosen by chance: walk_suite.py [KIND [FIRST [LAST]]]. See README.md.

    walk_suite.py                   # walks 1 to 80 and slice_walks 1 to 100: what the test run asks for
    walk_suite.py walks 17          # one walk, by its seed: it takes the same steps each time
    walk_suite.py walks 51 200
    walk_suite.py --random 100      # so many of each kind with seeds that nobody has chosen

Several processes share the work (--jobs, 2). A walk that fails prints its steps. failing.txt names the walks that are known to
fail ("walks 17"), with the same rules as for scenarios. The last line is "N passed, N failed, N skipped". $GSO_BIN is the
gpu-sharing-operator to try; without it, the newest below build*/ of the present folder is.
"""
import argparse
import multiprocessing
import os
import random
import sys
import time
import traceback

sys.dont_write_bytecode = True
sys.path.insert(0, os.path.dirname(os.path.abspath(__file__)))

import slice_walks  # noqa: E402
import suite  # noqa: E402
import walks  # noqa: E402
from scenario import Failure, binary  # noqa: E402

KINDS = {"walks": walks.Walk, "slice_walks": slice_walks.Walk}
LAST = {"walks": 80, "slice_walks": 100}
LARGEST_SEED = 10 ** 9


def play(walk):
    """Walks once; returns the walk's name, why it failed (None: it passed), and how long it took."""
    kind, seed = walk
    begun, steps = time.monotonic(), []
    try:
        one = KINDS[kind](seed)
        steps = one.story
        one.run()
        why = None
    except Failure as failure:
        why = str(failure)
    except Exception:  # A mistake in one walk must not hide the others.
        why = traceback.format_exc()
    if why is not None:
        why = "\n    ".join([why, *steps])
    return "%s %d" % walk, why, time.monotonic() - begun


def chosen_walks(given):
    kinds = [given.kind] if given.kind else list(KINDS)
    if given.random:
        return [(kind, random.randint(1, LARGEST_SEED)) for kind in kinds for _ in range(given.random)]
    if given.first:
        return [(given.kind, seed) for seed in range(given.first, (given.last or given.first) + 1)]
    return [(kind, seed) for kind in kinds for seed in range(1, LAST[kind] + 1)]


def main():
    parser = argparse.ArgumentParser(description=__doc__.split("\n")[0])
    parser.add_argument("kind", nargs="?", choices=sorted(KINDS), help="only walks of this kind")
    parser.add_argument("first", nargs="?", type=int, help="only the walk of this seed")
    parser.add_argument("last", nargs="?", type=int, help="the walks of the seeds from the first to this one")
    parser.add_argument("--random", type=int, metavar="N", help="N walks of each kind with random seeds")
    parser.add_argument("--jobs", type=int, default=2, help="processes at once")
    given = parser.parse_args()
    os.environ["GSO_BIN"] = os.path.abspath(binary())
    chosen, listed = chosen_walks(given), suite.known_failures()
    if not chosen:
        sys.exit("walk_suite.py: the first seed is above the last one")
    counts = {"passed": 0, "failed": 0, "skipped": 0}
    if not (given.kind or given.random):
        for name in sorted({name for name in listed if " " in name} - {"%s %d" % walk for walk in chosen}):
            counts["failed"] += 1
            print("FAIL   0.0 s  %s: no walk has this name: remove it from tests/scenarios/failing.txt" % name)
    with multiprocessing.Pool(given.jobs) as pool:
        for name, why, seconds in pool.imap_unordered(play, chosen):
            word, count, text = suite.judge_result(name, why, listed)
            counts[count] += 1
            print("%s %5.1f s  %s%s" % (word, seconds, name, ": " + text if text else ""), flush=True)
    print("%(passed)d passed, %(failed)d failed, %(skipped)d skipped" % counts)
    return 1 if counts["failed"] else 0


if __name__ == "__main__":
    sys.exit(main())
