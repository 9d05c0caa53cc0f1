#!/usr/bin/env python3
"""Seeded mistakes: mutate.py [NAME...]. `./dev mutate` calls it.

Each entry of the *.yaml files beside this one is a small change of the code that a careless edit could make. One by one
they are made in a worktree of their own, what is needed is built there, and the fast suites run until one fails: that
suite has noticed. Prints one line for each, and at the end how many were noticed.

  NAME          only entries whose name, file or YAML file contains one of these texts
  --sample N    N entries: those that stand for a promise (S1 to S14) and some of the others, in an order that depends on
                their names alone, so that the beginning of a run is a fair sample
  --journal F   writes each result to file F as well, and leaves out the entries that F has already: an interrupted run
                goes on where it stopped
  --changed [BASE]  mistakes made by rule (by_rule.py) on the product's lines that differ from BASE, instead of the entries
  --all         asks every suite, the simulator too, whether others have noticed or not, and records who notices: all tests
                of a C++ suite, the first of a simulated one, and twelve scenarios
  --here        makes the changes in this checkout itself, with its build folder: a copy that nobody else uses
  --table F     makes no change: prints from such a journal what each suite notices alone, and what would be lost without it
  --check       makes no change: only looks whether every entry still fits the code
  --suites A,B  only these suites (planner, partitioning, standalone, explain, kai, kai_checks, profile, lint, controller, command, k8sclient,
                mps_daemon, vectors, transcripts, scenarios)

noticed_by.tsv has the test that noticed an entry when it was asked last: that test is asked first, which saves most of the
time, and the whole suites where it does not notice any more. Each line is as in a journal: the lines of a later journal
replace those of the same names.

An entry has: name; file; before (text that occurs there once); after; seen (what a person would notice); suite (the one
that should notice first); promise (S1 to S14, of the entries that stand for one). Exit status 1: one was not noticed, does not fit or does not build.
"""
import argparse
import glob
import hashlib
import os
import re
import resource
import shutil
import signal
import subprocess
import sys
import tempfile
import time
from xml.etree import ElementTree

import yaml

import by_rule

HERE = os.path.dirname(os.path.abspath(__file__))
ROOT = os.path.realpath(os.path.join(HERE, "..", ".."))
TREE = ROOT if "--here" in sys.argv else os.path.join(ROOT, "build", "mutate", "tree")
NOTICED_BY = os.path.join(HERE, "noticed_by.tsv")
FIELDS = {"name", "file", "before", "after", "seen", "suite"}

# In the order in which they are asked; each is a GoogleTest target, but for those that run the operator's program.
SUITES = ["planner", "partitioning", "standalone", "profile", "explain", "kai", "kai_checks", "lint", "k8sclient", "controller", "command", "mps_daemon", "vectors", "transcripts", "scenarios"]
OF_THE_PROGRAM = {"mps_daemon": "tests/controller/mps_daemon/mps_daemon_test.py", "vectors": "tests/vectors/judge.py",
                  "scenarios": "tests/scenarios/suite.py", "transcripts": "tests/transcripts/transcripts_test.py"}
# What a change leaves unused is no mistake here.
UNUSED = "".join('#pragma GCC diagnostic ignored "-Wunused-%s"\n' % what for what in
                 ("variable", "parameter", "function", "value", "but-set-variable", "but-set-parameter")) + \
    '#pragma GCC diagnostic ignored "-Wparentheses"\n'
# A suite that computes longer than this hangs, which is noticed as well; so does one that waits longer. Seconds of the
# processor, so that a busy machine looks like an idle one, and of the clock.
LONGEST_COMPUTING = 300
LONGEST_COMPUTING_OF_ONE_TEST = 60
LONGEST_WAITING = 3600


def entries():
    """All entries, with the YAML file that they are from; ends the program where one is not written as it should be."""
    out, names = [], set()
    for path in sorted(glob.glob(os.path.join(HERE, "*.yaml"))):
        with open(path, encoding="utf-8") as text:
            for entry in yaml.safe_load(text):
                if set(entry) - {"promise"} != FIELDS or entry["name"] in names or entry["suite"] not in SUITES:
                    sys.exit("mutate: %s: %s: needs a name of its own, a known suite, and exactly the fields %s" %
                             (os.path.basename(path), entry.get("name"), ", ".join(sorted(FIELDS))))
                names.add(entry["name"])
                out.append(dict(entry, source=os.path.basename(path)))
    return out


def problem_of(entry, root):
    """Why an entry does not fit the code below `root`; empty: it does."""
    path = os.path.join(root, entry["file"])
    if "line" in entry:  # Made of the code as it is.
        return ""
    if not os.path.exists(path):
        return "file %s is gone" % entry["file"]
    with open(path, encoding="utf-8") as text:
        count = text.read().count(entry["before"])
    if count == 1:
        return ""
    return "its text occurs %d times in %s: %s" % (count, entry["file"], entry["before"].strip().split("\n")[0])


def with_mistake(original, entry):
    if "line" not in entry:
        return original.replace(entry["before"], entry["after"])
    lines = original.split("\n")
    lines[entry["line"] - 1] = entry["after"]
    return "\n".join(lines)


# --- The worktree.

def git(*arguments, cwd=ROOT):
    return subprocess.run(["git", *arguments], cwd=cwd, check=True, capture_output=True, text=True).stdout


def copy_if_changed(source, target):
    """Copies a file without touching one that is the same, so that it is not built again."""
    if os.path.islink(source):
        if not os.path.lexists(target):
            os.makedirs(os.path.dirname(target), exist_ok=True)
            os.symlink(os.readlink(source), target)
        return
    with open(source, "rb") as text:
        wanted = text.read()
    if os.path.exists(target):
        with open(target, "rb") as text:
            if text.read() == wanted:
                return
    os.makedirs(os.path.dirname(target), exist_ok=True)
    shutil.copy(source, target)


def prepare_tree():
    """A worktree with the files as they are here, whether committed or not."""
    if TREE == ROOT:
        return
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
    for path in here:
        copy_if_changed(os.path.join(ROOT, path), os.path.join(TREE, path))


# --- Building and asking.

def target_of(suite):
    return "gpu-sharing-operator" if suite in OF_THE_PROGRAM else suite + "_tests"


def build(targets):
    """The end of the compiler's output where the build fails; None where it does not."""
    done = subprocess.run(["nice", "-n", "5", "cmake", "--build", "--preset", "debug", "--target", *targets, "--", "--quiet"],
                          cwd=TREE, capture_output=True, text=True, check=False)
    return None if done.returncode == 0 else (done.stdout + done.stderr)[-2000:]


def program_of(suite):
    target = target_of(suite)
    for folder in ("controller", "tests/reconcilers", "tests/controller", "tests/k8sclient"):
        path = os.path.join(TREE, "build", "debug", folder, target)
        if os.path.exists(path):
            return path
    return None


def print_of(suite):
    """Changes when the program of a suite is linked anew."""
    path = program_of(suite)
    return os.stat(path).st_mtime_ns if path else 0


def limit_computing(seconds):
    resource.setrlimit(resource.RLIMIT_CPU, (seconds, seconds + 5))


def ask(suite, test=None):
    """The first test of a suite that fails; None where all pass. `test`: only this one is asked."""
    program = os.path.join(TREE, "build", "debug", "controller", "gpu-sharing-operator")
    environment = dict(os.environ, GSO_SOURCE_DIR=TREE, GTEST_FAIL_FAST="1", GTEST_BRIEF="1", GSO_BIN=program,
                       K8SCLIENT_EXEC_PLUGIN=os.path.join(TREE, "build", "debug", "tests", "k8sclient", "exec_plugin"))
    command = [os.path.join(TREE, OF_THE_PROGRAM[suite])] if suite in OF_THE_PROGRAM else [program_of(suite)]
    if suite in ("mps_daemon", "transcripts"):
        command += [program, *(["--failfast"] if suite == "mps_daemon" else [])]
    if test:
        command.append(test if suite in OF_THE_PROGRAM else "--gtest_filter=" + test)
    longest = LONGEST_COMPUTING_OF_ONE_TEST if test else LONGEST_COMPUTING
    try:
        done = subprocess.run(command, cwd=TREE, env=environment, capture_output=True, text=True, timeout=LONGEST_WAITING,
                              errors="replace", check=False, preexec_fn=lambda: limit_computing(longest))
    except subprocess.TimeoutExpired:
        return "it does not end"
    if done.returncode == -signal.SIGXCPU:
        return "it does not end"
    if done.returncode == 0:
        return None
    for line in done.stdout.splitlines():
        if line.startswith("[  FAILED  ] "):
            return line[len("[  FAILED  ] "):].split(",")[0].split(" (")[0]
        if line.startswith("FAIL "):
            return line.split(":")[0].split()[-1]
    for line in done.stderr.splitlines() if suite == "mps_daemon" else []:
        if line.startswith(("FAIL: ", "ERROR: ")):  # FAIL: test_x (directories_test.Directories.test_x)
            return ".".join(line.rstrip(")").split(".")[-2:])
    # A crash names no test; one that was asked alone is known all the same.
    return test if test and "*" not in test else "it ended with status %d" % done.returncode


# --- All who notice.

# Tests that have no code of the product in them, that judge texts, or that only repeat others with more seeds.
OF_NO_CODE = "live_keys|documented|soak_seeds_1|mps_daemon_gpu|mutations_fit"
LONGEST_OF_A_TEST = 600
MOST_SCENARIOS = 12


def failed_in_xml(path):
    """The failed tests in a report of GoogleTest; a program that crashed has left none."""
    try:
        cases = ElementTree.parse(path).getroot().iter("testcase")
    except (ElementTree.ParseError, OSError):
        return []
    return ["%s.%s" % (case.get("classname"), case.get("name")) for case in cases if case.find("failure") is not None]


def failed_in_ctest(label, left_out, environment):
    """Suite -> its failed tests, of the suites with that label."""
    with tempfile.TemporaryDirectory() as reports:
        done = subprocess.run(
            ["nice", "-n", "5", "ctest", "--test-dir", os.path.join(TREE, "build", "debug"), "-L", label, "-E", left_out,
             "-j2", "--timeout", str(LONGEST_OF_A_TEST)],
            cwd=TREE, env=dict(environment, GTEST_OUTPUT="xml:%s/" % reports), capture_output=True, text=True,
            errors="replace", check=False)
        out = {}
        for path in glob.glob(os.path.join(reports, "*.xml")):
            suite = re.sub(r"_\d+$", "", os.path.basename(path)[:-len(".xml")])
            if failed := failed_in_xml(path):
                out.setdefault(suite, set()).update(failed)
        # What wrote no report: other programs, and crashes.
        for name in re.findall(r"^\s*\d+ - (\S+) \((?!Skipped)\w", done.stdout, re.M):
            suite = re.sub(r"_\d+$", "", name)
            out.setdefault(suite, {"it-ended"})
        return out


def failed_scenarios(environment):
    """The first that fail: whether one more or less of so many notices decides nothing."""
    failed = set()
    with subprocess.Popen([os.path.join(TREE, OF_THE_PROGRAM["scenarios"]), "--jobs", "2"], cwd=TREE, env=environment,
                          stdout=subprocess.PIPE, stderr=subprocess.DEVNULL, text=True, errors="replace",
                          start_new_session=True) as suite:
        for line in suite.stdout:
            if line.startswith("FAIL "):
                failed.add(line.split(":")[0].split()[-1])
            if len(failed) == MOST_SCENARIOS:
                os.killpg(suite.pid, signal.SIGKILL)
                break
    return failed


def all_noticers(changed=None):
    """Suite -> its failed tests. `changed`: the file that is not as it should be."""
    program = os.path.join(TREE, "build", "debug", "controller", "gpu-sharing-operator")
    environment = dict(os.environ, GSO_SOURCE_DIR=TREE, GSO_BIN=program, GTEST_BRIEF="1")
    # The daemon's own program waits for processes for more than a minute.
    is_of_daemon = changed is None or changed.startswith("controller/mps_daemon")
    out = failed_in_ctest("unit", OF_NO_CODE + ("" if is_of_daemon else "|mps_daemon$"), environment)
    out.update(failed_in_ctest("sim", OF_NO_CODE, dict(environment, GTEST_FAIL_FAST="1")))
    if failed := failed_scenarios(environment):
        out["scenarios"] = failed
    return out


def shown_noticers(noticers):
    return " | ".join("%s: %s" % (suite, " ".join(sorted(tests))) for suite, tests in sorted(noticers.items()))


def read_noticers(detail):
    out = {}
    for part in detail.split(" | "):
        suite, tests = part.split(": ", 1)
        out[suite] = set(tests.split(" "))
    return out


def print_table(journal):
    """What each suite notices, what it notices alone, and which mistakes nobody would notice without some tests."""
    results = {name: read_noticers(detail) for name, (result, detail) in results_in(journal).items() if result == "noticed"}
    missed = sorted(name for name, (result, _) in results_in(journal).items() if result == "missed")
    suites = sorted({suite for noticers in results.values() for suite in noticers})
    print("| suite | notices | alone |\n|---|---|---|")
    for suite in suites:
        alone = [name for name, noticers in results.items() if set(noticers) == {suite}]
        print("| %s | %d | %d |" % (suite, sum(suite in noticers for noticers in results.values()), len(alone)))
    is_golden = lambda suite, test: suite == "planner_tests" and "PlannerCase" in test
    for what, gone in (("golden cases", is_golden), ("planner_tests", lambda suite, _: suite == "planner_tests")):
        lost = sorted(name for name, noticers in results.items()
                      if all(gone(suite, test) for suite, tests in noticers.items() for test in tests))
        print("without %s, %d of %d are lost: %s" % (what, len(lost), len(results), ", ".join(lost) or "-"))
    print("missed: %s" % (", ".join(missed) or "-"))


class Mutator:
    """Makes one change after the other; between two of them, the tree is as it was."""

    def __init__(self, suites, asks_all):
        self.suites = suites
        self.asks_all = asks_all
        self.noticed_by = {}  # Name of an entry -> (suite, test).
        for name, (result, detail) in results_in(NOTICED_BY).items():
            if result == "noticed" and ": " in detail:
                self.noticed_by[name] = tuple(detail.split(": ", 1))

    def baseline(self, chosen):
        """Builds everything that the entries may need once, and makes sure that the suites pass as they are."""
        if not os.path.exists(os.path.join(TREE, "build", "debug", "build.ninja")):
            subprocess.run(["cmake", "--preset", "debug"], cwd=TREE, check=True, capture_output=True)
        if self.asks_all:
            if errors := build(["all"]):
                sys.exit("mutate: the code does not build as it is:\n" + errors)
            if noticers := all_noticers():
                sys.exit("mutate: fails as it is: " + shown_noticers(noticers))
            return
        first = [suite for suite in self.suites if any(entry["suite"] == suite for entry in chosen)]
        errors = build([target_of(suite) for suite in first] + ["exec_plugin"])
        if errors:
            sys.exit("mutate: the code does not build as it is:\n" + errors)
        for suite in first:
            if failed := ask(suite):
                sys.exit("mutate: suite %s fails as it is: %s" % (suite, failed))

    def judge(self, entry):
        """"noticed", "missed" or "broken", and by what or why."""
        if problem := problem_of(entry, TREE):
            return "broken", problem
        path = os.path.join(TREE, entry["file"])
        with open(path, encoding="utf-8") as text:
            original = text.read()
        try:
            with open(path, "w", encoding="utf-8") as text:
                text.write(UNUSED + with_mistake(original, entry))
            return self.find_all(entry) if self.asks_all else self.find_suite(entry)
        finally:
            with open(path, "w", encoding="utf-8") as text:
                text.write(original)

    @staticmethod
    def find_all(entry):
        if errors := build(["all"]):
            return "broken", "it does not compile:\n" + errors
        noticers = all_noticers(entry["file"])
        return ("noticed", shown_noticers(noticers)) if noticers else ("missed", entry["seen"])

    def find_suite(self, entry):
        known = self.noticed_by.get(entry["name"], (entry["suite"], None))
        order = [suite for suite in [known[0], entry["suite"]] + self.suites if suite in self.suites]
        before = {suite: print_of(suite) for suite in order}
        for suite in dict.fromkeys(order):
            if errors := build([target_of(suite)]):
                return "broken", "it does not compile:\n" + errors
            if print_of(suite) == before[suite]:
                continue  # Nothing of this suite has the changed code in it.
            only = known[1] if suite == known[0] else None
            if failed := (only and ask(suite, only)) or ask(suite):
                return "noticed", "%s: %s" % (suite, failed)
        return "missed", entry["seen"]


def results_in(journal):
    """NAME -> (result, detail), of the entries that a journal has; the file need not exist."""
    if not journal or not os.path.exists(journal):
        return {}
    with open(journal, encoding="utf-8") as text:
        lines = [line.rstrip("\n").split("\t") for line in text]
    return {line[0]: (line[1], line[2]) for line in lines if len(line) == 3}


def write_result(journal, name, result, detail):
    if journal:
        with open(journal, "a", encoding="utf-8") as text:
            text.write("%s\t%s\t%s\n" % (name, result, " ".join(detail.split())))


def sample(chosen, count):
    """So many entries; a quarter of them stands for no promise."""
    ordered = sorted(chosen, key=lambda entry: hashlib.sha256(entry["name"].encode()).hexdigest())
    promised = [entry for entry in ordered if "promise" in entry]
    others = [entry for entry in ordered if "promise" not in entry]
    out = []
    while len(out) < count and (promised or others):
        of = others if others and (not promised or len(out) % 4 == 3) else promised
        out.append(of.pop(0))
    return out


def main():
    parser = argparse.ArgumentParser(prog="./dev mutate", description="Seeded mistakes, and which test notices each.")
    parser.add_argument("names", nargs="*", metavar="NAME", help="only entries whose name or file contains this")
    parser.add_argument("--sample", type=int, metavar="N", help="N entries; most of them stand for a promise")
    parser.add_argument("--journal", metavar="FILE", help="results are kept there, and not asked for again")
    parser.add_argument("--all", action="store_true", help="record all tests that fail, not only the first")
    parser.add_argument("--changed", nargs="?", const="HEAD", metavar="BASE", help="by rule, on the product's lines that differ from BASE (HEAD)")
    parser.add_argument("--here", action="store_true", help="change this checkout itself, a copy that nobody else uses")
    parser.add_argument("--table", metavar="FILE", help="only: what the suites of that journal notice")
    parser.add_argument("--check", action="store_true", help="only: does every entry still fit the code?")
    parser.add_argument("--suites", default=",".join(SUITES), help="only these, in this order (%(default)s)")
    given = parser.parse_args()
    if given.table:
        return print_table(given.table)
    everything = by_rule.entries(ROOT, given.changed) if given.changed else entries()
    chosen = [entry for entry in everything if not given.names or
              any(text in entry["name"] or text in entry["file"] or text in entry["source"] for text in given.names)]
    if not chosen:
        sys.exit("mutate: no entry's name or file contains %s" % " or ".join(given.names))
    if given.sample:
        chosen = sample(chosen, given.sample)
    gone = [(entry, problem_of(entry, ROOT)) for entry in chosen]
    gone = [(entry, problem) for entry, problem in gone if problem]
    if given.check:
        for entry, problem in gone:
            print("FAILED: tests/mutations/%s: %s: %s" % (entry["source"], entry["name"], problem))
        print("%d passed, %d failed" % (len(chosen) - len(gone), len(gone)))
        return 1 if gone else 0
    known = results_in(given.journal)
    prepare_tree()
    mutator = Mutator([suite for suite in given.suites.split(",") if suite in SUITES], given.all)
    mutator.baseline([entry for entry in chosen if entry["name"] not in known])
    counts, noticed_by = {"noticed": 0, "missed": 0, "broken": 0}, {}
    for entry in chosen:
        begun = time.monotonic()
        result, detail = known.get(entry["name"]) or mutator.judge(entry)
        if entry["name"] not in known:
            write_result(given.journal, entry["name"], result, detail)
        counts[result] += 1
        if result == "noticed":
            for suite in read_noticers(detail) if given.all else [detail.split(":")[0]]:
                noticed_by[suite] = noticed_by.get(suite, 0) + 1
        print("%-8s %4d s  %s: %s" % (result.upper(), time.monotonic() - begun, entry["name"], detail))
        sys.stdout.flush()
    print("by suite: " + (", ".join("%s %d" % item for item in sorted(noticed_by.items())) or "none"))
    print("noticed %d of %d (%d %%), %d missed, %d broken" %
          (counts["noticed"], len(chosen), 100 * counts["noticed"] // len(chosen), counts["missed"], counts["broken"]))
    return 0 if counts["noticed"] == len(chosen) else 1


if __name__ == "__main__":
    sys.exit(main())
