#!/usr/bin/env python3
"""Seeded mistakes: mutate.py [NAME...]. `./dev mutate` calls it.

Each entry of the *.yaml files beside this one is a small change of the code that a careless edit could make. All that are
asked for are built into one worktree, each behind a switch (switches.py). Every suite runs once without a mistake, and shows
which mistakes it can reach; then the suites that reach a mistake run with it, the quickest first, until one fails: it has noticed.

  NAME          only entries whose name, file or YAML file contains one of these texts
  --sample N    N entries, in an order that depends on their names alone: the beginning of a run is a fair sample
  --changed [BASE]  mistakes made by rule (by_rule.py) on the product's lines that differ from BASE (HEAD), instead of the entries
  --all         asks every suite, whether others have noticed or not, and records each test that notices; of the simulated
                suites the first, of the scenarios twelve
  --journal F   writes each result to file F as well, and leaves out the entries that F has already: an interrupted run
                goes on where it stopped
  --table F     makes no change: prints from such a journal what each suite notices alone, and what would be lost without it
  --check       makes no change: only looks whether every entry still fits the code

An entry has: name; promise (S1 to S14); file; before (text that occurs there once); after; seen (what a person would notice).
What is in no function, such as a table, is built by itself. Exit status 1: one was not noticed, does not fit or does not build.
"""
import argparse
import collections
import concurrent.futures
import glob
import hashlib
import json
import os
import re
import resource
import shutil
import signal
import subprocess
import sys
import tempfile
import threading
import time

import yaml

import by_rule
import switches

HERE = os.path.dirname(os.path.abspath(__file__))
ROOT = os.path.realpath(os.path.join(HERE, "..", ".."))
TREE = os.path.join(ROOT, "build", "mutate", "tree")
BUILD = os.path.join(TREE, "build", "debug")
FIELDS = {"name", "promise", "file", "before", "after", "seen"}
# Tests that have no code of the product in them, that judge texts, or that only repeat others with more seeds.
OF_NO_CODE = re.compile("live_keys|documented|soak_seeds_1|mps_daemon_gpu|sim_apiserver|kubectl")
MOST_SCENARIOS = 12
# A suite hangs that computes so many times as long as without a mistake, or waits so long: seconds of the processor and of the clock.
TIMES_AS_LONG, LONGEST_WAITING = 4, 1200


# --- Entries.

def entries():
    """All entries, with the YAML file that they are from; ends the program where one is not written as it should be."""
    out, names = [], set()
    for path in sorted(glob.glob(os.path.join(HERE, "*.yaml"))):
        with open(path, encoding="utf-8") as text:
            for entry in yaml.safe_load(text):
                if set(entry) != FIELDS or entry["name"] in names:
                    sys.exit("mutate: %s: %s: needs a name of its own and exactly the fields %s" %
                             (os.path.basename(path), entry.get("name"), ", ".join(sorted(FIELDS))))
                names.add(entry["name"])
                out.append(dict(entry, source=os.path.basename(path)))
    return out


def place_of(entry, text):
    """Where an entry's text begins in its file, and why it does not fit: (position, "") or (None, problem)."""
    if "line" in entry:  # Made of the code as it is.
        return sum(len(line) + 1 for line in text.split("\n")[:entry["line"] - 1]), ""
    count = text.count(entry["before"])
    if count == 1:
        return text.index(entry["before"]), ""
    return None, "its text occurs %d times in %s: %s" % (count, entry["file"], entry["before"].strip().split("\n")[0])


def text_of(path):
    with open(path, encoding="utf-8", errors="replace") as text:
        return text.read()


def problem_of(entry):
    path = os.path.join(ROOT, entry["file"])
    return place_of(entry, text_of(path))[1] if os.path.exists(path) else "file %s is gone" % entry["file"]


# --- The worktree.

def git(*arguments, cwd=ROOT):
    return subprocess.run(["git", *arguments], cwd=cwd, check=True, capture_output=True, text=True).stdout


def write_if_changed(path, text):
    """Does not touch a file that is the same, so that it is not built again."""
    if not os.path.exists(path) or text_of(path) != text:
        with open(path, "w", encoding="utf-8") as out:
            out.write(text)


def copy_if_changed(source, target):
    os.makedirs(os.path.dirname(target), exist_ok=True)
    if os.path.islink(source):
        if not os.path.lexists(target):
            os.symlink(os.readlink(source), target)
        return
    with open(source, "rb") as wanted:
        if os.path.exists(target):
            with open(target, "rb") as present:
                if present.read() == wanted.read():
                    return
    shutil.copy(source, target)


def prepare_tree(chosen):
    """A worktree with the files as they are here, whether committed or not. Those of the chosen entries are written later."""
    if not os.path.exists(os.path.join(TREE, ".git")):
        shutil.rmtree(TREE, ignore_errors=True)
        git("worktree", "prune")
        git("worktree", "add", "--detach", TREE, "HEAD")
    here = set(git("ls-files", "-co", "--exclude-standard", "-z").split("\0")) - {""}
    here = {path for path in here if os.path.lexists(os.path.join(ROOT, path))}
    there = set(git("ls-files", "-co", "--exclude-standard", "-z", cwd=TREE).split("\0")) - {""}
    for path in there - here:
        if os.path.lexists(os.path.join(TREE, path)):
            os.remove(os.path.join(TREE, path))
    for path in here - {entry["file"] for entry in chosen}:
        copy_if_changed(os.path.join(ROOT, path), os.path.join(TREE, path))
    if not os.path.exists(os.path.join(BUILD, "build.ninja")):
        subprocess.run(["cmake", "--preset", "debug", "-DGSO_UNITY=ON"], cwd=TREE, check=True, capture_output=True)


def build():
    """What the compiler says where the build fails; empty where it does not."""
    done = subprocess.run(["nice", "-n", "5", "ninja", "-C", BUILD, "-k", "0"], capture_output=True, text=True, errors="replace", check=False)
    return "" if done.returncode == 0 else done.stdout + done.stderr


def build_all(chosen):
    """Builds all entries into the tree; returns {number: entry}, and the entries that must be built by themselves."""
    numbers = dict(enumerate(chosen, 1))
    alone = set()
    for file in sorted({entry["file"] for entry in chosen}):
        text = text_of(os.path.join(ROOT, file))
        mistakes = {number: (place_of(entry, text)[0], entry["before"], entry["after"])
                    for number, entry in numbers.items() if entry["file"] == file}
        text, outside = switches.switched(text, mistakes)
        alone |= outside
        write_if_changed(os.path.join(TREE, file), text)
    while errors := build():
        lines = collections.defaultdict(set)
        for file, line in re.findall(r"^(?:%s/|(?:\.\./)+)?(\S+?\.(?:cc|h)):(\d+):\d+: error:" % re.escape(TREE), errors, re.M):
            lines[file].add(int(line))
        left_out = set()
        for file in set(lines) & {entry["file"] for entry in chosen}:
            text, gone = switches.without_mistakes_at(text_of(os.path.join(TREE, file)), lines[file])
            left_out |= gone
            write_if_changed(os.path.join(TREE, file), text)
        if not left_out:
            sys.exit("mutate: the code does not build as it is:\n" + errors[-3000:])
        alone |= left_out
    return {number: entry for number, entry in numbers.items() if number not in alone}, [numbers[number] for number in sorted(alone)]


# --- Suites.

class Suite:
    """A test of ctest with the label unit or sim, or the scenarios."""

    def __init__(self, name, command, environment, is_simulated=False):
        self.name, self.command, self.environment, self.is_simulated = name, command, environment, is_simulated
        self.seconds, self.reached = 0.0, set()

    def ask(self, environment, longest_computing, most=None):
        """The tests that fail; one that hangs or crashes has the exit status instead. `most`: no more than so many."""
        with subprocess.Popen(self.command, cwd=TREE, env=dict(os.environ, **self.environment, **environment), stdout=subprocess.PIPE,
                              stderr=subprocess.STDOUT, text=True, errors="replace", start_new_session=True,
                              preexec_fn=lambda: resource.setrlimit(resource.RLIMIT_CPU, (longest_computing, longest_computing + 5))) as process:
            timer = threading.Timer(LONGEST_WAITING, os.killpg, (process.pid, signal.SIGKILL))
            timer.start()
            failed = set()
            for line in process.stdout:
                if found := re.match(r"\[  FAILED  \] (\S+?),? .*\(\d+ ms\)|FAIL(?:ED)?:? +(?:[\d.]+ s +)?([\w./-]+)", line):
                    failed.add(found.group(1) or found.group(2).split(":")[0])
                if most and len(failed) == most:
                    os.killpg(process.pid, signal.SIGKILL)
                    break
            status = process.wait()
            timer.cancel()
        return failed or ({"status%d" % status} if status else set())


def suites():
    """All suites, as ctest lists them."""
    listed = json.loads(subprocess.run(["ctest", "--test-dir", BUILD, "--show-only=json-v1", "-L", "unit|sim"], check=True,
                                       capture_output=True, text=True).stdout)
    out = []
    for test in listed["tests"]:
        properties = {each["name"]: each["value"] for each in test["properties"]}
        if not OF_NO_CODE.search(test["name"]):
            environment = dict(pair.split("=", 1) for pair in properties.get("ENVIRONMENT", []))
            out.append(Suite(test["name"], test["command"], dict(environment, GTEST_BRIEF="1"), "sim" in properties["LABELS"]))
    program = os.path.join(BUILD, "controller", "gpu-sharing-operator")
    out.append(Suite("scenarios", [os.path.join(TREE, "tests", "scenarios", "suite.py"), "--jobs", "1"], {"GSO_BIN": program}))
    return out


def in_parallel(work, items):
    with concurrent.futures.ThreadPoolExecutor(os.cpu_count()) as pool:
        return list(pool.map(work, items))


def find_reached(suite):
    """Runs a suite as it is: how long it takes, and which mistakes it reaches. Returns what fails."""
    with tempfile.NamedTemporaryFile(dir="/dev/shm") as reached:
        begun = time.monotonic()
        failed = suite.ask({"GSODEV_REACHED": reached.name}, 3600)
        suite.seconds = time.monotonic() - begun
        suite.reached = {number for number, byte in enumerate(reached.read()) if byte}
    return ["%s: %s" % (suite.name, " ".join(sorted(failed)))] if failed else []


def noticers(asked, environment, asks_all):
    """Suite -> the tests that fail, of these suites; only the first suite where not all are asked."""
    out = collections.defaultdict(set)
    for suite in sorted(asked, key=lambda each: each.seconds):
        first_only = not asks_all or suite.is_simulated
        most = 1 if first_only else MOST_SCENARIOS if suite.name == "scenarios" else None
        if failed := suite.ask(environment, int(30 + TIMES_AS_LONG * suite.seconds), most):
            out[re.sub(r"_\d+$", "", suite.name)] |= failed  # Of all its shards.
            if not asks_all:
                break
    return out


def shown_noticers(found):
    return " | ".join("%s: %s" % (suite, " ".join(sorted(tests))) for suite, tests in sorted(found.items()))


# --- Journals.

def results_in(journal):
    """NAME -> (result, detail), of the entries that a journal has; the file need not exist."""
    if not journal or not os.path.exists(journal):
        return {}
    lines = [line.split("\t") for line in text_of(journal).splitlines()]
    return {line[0]: (line[1], line[2]) for line in lines if len(line) == 3}


def read_noticers(detail):
    return {suite: set(tests.split(" ")) for suite, tests in (part.split(": ", 1) for part in detail.split(" | "))}


def print_table(journal):
    """What each suite notices, what it notices alone, and which mistakes nobody would notice without some tests."""
    results = {name: read_noticers(detail) for name, (result, detail) in results_in(journal).items() if result == "noticed"}
    print("| suite | notices | alone |\n|---|---|---|")
    for suite in sorted({suite for found in results.values() for suite in found}):
        alone = [name for name, found in results.items() if set(found) == {suite}]
        print("| %s | %d | %d |" % (suite, sum(suite in found for found in results.values()), len(alone)))
    is_case = lambda suite, test: suite == "planner_tests" and "PlannerCase" in test
    for what, gone in (("cases", is_case), ("planner_tests", lambda suite, _: suite == "planner_tests")):
        lost = sorted(name for name, found in results.items() if all(gone(suite, test) for suite, tests in found.items() for test in tests))
        print("without %s, %d of %d are lost: %s" % (what, len(lost), len(results), ", ".join(lost) or "-"))
    print("missed: %s" % (", ".join(sorted(name for name, (result, _) in results_in(journal).items() if result == "missed")) or "-"))


class Run:
    """Asks for one entry after the other, prints each result, and keeps it."""

    def __init__(self, asks_all, journal):
        self.asks_all, self.journal = asks_all, journal
        self.counts, self.lock = collections.Counter(), threading.Lock()

    def judge_switched(self, number, entry, all_suites):
        begun = time.monotonic()
        found = noticers([suite for suite in all_suites if number in suite.reached], {"GSODEV_MISTAKE": str(number)}, self.asks_all)
        self.report(entry, found, begun)

    def judge_alone(self, entry, all_suites):
        """For one that is in no function, or that the compiler refuses among the others."""
        begun, path = time.monotonic(), os.path.join(TREE, entry["file"])
        original = text_of(path)
        text = text_of(os.path.join(ROOT, entry["file"]))
        at, _ = place_of(entry, text)
        text = text[:at] + entry["after"] + text[at + len(entry["before"]):]
        try:
            write_if_changed(path, switches.switched(text, {})[0])
            if errors := build():
                self.report(entry, {}, begun, "broken", "it does not compile:\n" + errors[-1500:])
            else:
                self.report(entry, noticers(all_suites, {}, self.asks_all), begun)
        finally:
            write_if_changed(path, original)

    def report(self, entry, found, begun, result=None, detail=None):
        result, detail = result or ("noticed" if found else "missed"), detail or shown_noticers(found) or entry["seen"]
        with self.lock:
            self.counts[result] += 1
            print("%-8s %4d s  %s: %s" % (result.upper(), time.monotonic() - begun, entry["name"], detail), flush=True)
            if self.journal:
                with open(self.journal, "a", encoding="utf-8") as out:
                    out.write("%s\t%s\t%s\n" % (entry["name"], result, " ".join(detail.split())))

    def run(self, chosen):
        prepare_tree(chosen)
        switched, alone = build_all(chosen)
        all_suites = suites()
        if failed := sum(in_parallel(find_reached, all_suites), []):
            sys.exit("mutate: fails as it is: " + " | ".join(failed))
        in_parallel(lambda item: self.judge_switched(*item, all_suites), switched.items())
        for entry in alone:
            self.judge_alone(entry, all_suites)


def main():
    parser = argparse.ArgumentParser(prog="./dev mutate", description="Seeded mistakes, and which test notices each.")
    parser.add_argument("names", nargs="*", metavar="NAME", help="only entries whose name or file contains this")
    parser.add_argument("--sample", type=int, metavar="N", help="N entries")
    parser.add_argument("--journal", metavar="FILE", help="results are kept there, and not asked for again")
    parser.add_argument("--all", action="store_true", help="record all tests that fail, not only the first suite")
    parser.add_argument("--changed", nargs="?", const="HEAD", metavar="BASE", help="by rule, on the product's lines that differ from BASE (HEAD)")
    parser.add_argument("--table", metavar="FILE", help="only: what the suites of that journal notice")
    parser.add_argument("--check", action="store_true", help="only: does every entry still fit the code?")
    given = parser.parse_args()
    if given.table:
        return print_table(given.table)
    everything = by_rule.entries(ROOT, given.changed) if given.changed else entries()
    chosen = [entry for entry in everything if not given.names or
              any(text in entry["name"] or text in entry["file"] or text in entry["source"] for text in given.names)]
    chosen = sorted(chosen, key=lambda entry: hashlib.sha256(entry["name"].encode()).hexdigest())[:given.sample]
    if not chosen:
        sys.exit("mutate: no mistake is in what was named, or nothing has changed")
    problems = [(entry, problem) for entry in chosen if (problem := problem_of(entry))]
    for entry, problem in problems:
        print("FAILED: tests/mutations/%s: %s: %s" % (entry["source"], entry["name"], problem))
    if given.check:
        print("%d passed, %d failed" % (len(chosen) - len(problems), len(problems)))
        return 1 if problems else 0
    unfit = {entry["name"] for entry, _ in problems} | set(results_in(given.journal))
    chosen = [entry for entry in chosen if entry["name"] not in unfit][:switches.MOST - 1]
    run = Run(given.all, given.journal)
    run.run(chosen)
    print("noticed %d of %d, %d missed, %d do not compile, %d do not fit" %
          (run.counts["noticed"], len(chosen), run.counts["missed"], run.counts["broken"], len(problems)))
    return 0 if run.counts["noticed"] == len(chosen) and not problems else 1


if __name__ == "__main__":
    sys.exit(main())
