#!/usr/bin/env python3
"""arm64_test.py ARM64 AMD64 SIMULATOR [FILTER]: the release program for arm64, under qemu on amd64.

It asks for no more of glibc than the other one, answers every scenario byte for byte as that does (FILTER: those whose name
contains it), and rolls an edit out on the simulated cluster. With $GSODEV_BOTH, which has the two programs, this file is itself the
program that the scenarios run: it runs both, and ends with status 70 where they differ. The last line is
"N passed, N failed, N skipped"; exit code 77, with the reason in the last line: the program or qemu is not here.
"""
import os
import pathlib
import re
import shutil
import subprocess
import sys
import tempfile

import glibc_test

ROOT = pathlib.Path(__file__).resolve().parents[2]
# Return addresses are signed (-mbranch-protection). The cipher of the architecture takes qemu longer than all else, its own does not.
EMULATOR = ["qemu-aarch64-static", "-cpu", "max,pauth-impdef=on", "-L", "/usr/aarch64-linux-gnu"]
# A scenario that ends this file for its time leaves neither program behind.
ENDS_WITH_THIS = ["setpriv", "--pdeathsig", "KILL"]


def run_both():
    """What the scenarios call."""
    arm64, amd64 = os.environ["GSODEV_BOTH"].split(":")
    given = sys.stdin.buffer.read() if not sys.stdin.isatty() else b""
    answers = [subprocess.run([*ENDS_WITH_THIS, *command, *sys.argv[1:]], input=given, capture_output=True, check=False) for command in ([amd64], [*EMULATOR, arm64])]
    first, second = [(answer.returncode, answer.stdout, answer.stderr) for answer in answers]
    sys.stdout.buffer.write(first[1])
    sys.stderr.buffer.write(first[2])
    if first != second:
        sys.stderr.buffer.write(b"\nthe program for arm64 answers: %d\n%s%s" % second)
    sys.exit(first[0] if first == second else 70)


def the_answers_are_the_same(arm64, amd64, given):
    here = str(pathlib.Path(__file__).resolve())
    done = subprocess.run([ROOT / "tests/scenarios/suite.py", "--jobs", str(os.cpu_count()), *given], env={**os.environ, "GSO_BIN": here, "GSODEV_BOTH": f"{arm64}:{amd64}", "GSODEV_PATIENCE": "20"},
                          capture_output=True, text=True, check=False)
    wrong = [line for line in done.stdout.splitlines() if line.startswith("FAIL")]
    glibc_test.expect(re.search(r"^[1-9]\d* passed, 0 failed", done.stdout, re.M), "\n".join(wrong[:20]) or done.stdout[-500:] + done.stderr[-500:])


def commands_answer_the_same(arm64, amd64):
    good = glibc_test.FILES["bad.yaml"].replace("replicas: 1", "replicas: 4")
    gpus = '[{"name": "Tesla T4", "memoryMiB": 15360, "computeCapability": [7, 5]}]'
    with tempfile.TemporaryDirectory() as folder:
        for name, text in {**glibc_test.FILES, "good.yaml": good, "gpus.json": gpus}.items():
            (pathlib.Path(folder) / name).write_text(text, encoding="utf-8")
        for words in (["version"], ["lint", "bad.yaml"], ["lint", "broken.yaml"], ["lint", "good.yaml"], ["expect", "--config", "good.yaml", "--devices", "gpus.json"],
                      ["completion", "zsh"], ["rollout", "--help"], ["status", "--kubeconfig", "broken.yaml"]):
            one, other = (subprocess.run([*command, *words], cwd=folder, capture_output=True, check=False) for command in ([amd64], [*EMULATOR, arm64]))
            glibc_test.expect(one.stdout + one.stderr and (one.returncode, one.stdout, one.stderr) == (other.returncode, other.stdout, other.stderr),
                              f"{' '.join(words)}: {one.stdout[-300:]} {one.stderr[-300:]} but {other.stdout[-300:]} {other.stderr[-300:]}")


def an_edit_is_rolled_out(arm64, simulator):
    done = subprocess.run([ROOT / "tests/sim/gso_sim_test.py", simulator, *EMULATOR, arm64], capture_output=True, text=True, check=False)
    glibc_test.expect(done.returncode == 0, done.stdout[-2000:] + done.stderr[-500:])


def main():
    arm64, amd64, simulator = (str(pathlib.Path(path).resolve()) for path in sys.argv[1:4])
    for needed in (arm64, EMULATOR[0]):
        if not shutil.which(needed):
            print(f"skipped: no {needed}; ./dev build release --arch arm64 makes the program and installs qemu")
            sys.exit(77)
    passed, failed = glibc_test.play([
        (glibc_test.asks_for_nothing_but_glibc, arm64), (glibc_test.asks_for_no_newer_glibc, arm64), (glibc_test.keeps_its_unwinder_to_itself, arm64),
        (commands_answer_the_same, arm64, amd64), (an_edit_is_rolled_out, arm64, simulator), (the_answers_are_the_same, arm64, amd64, sys.argv[4:])])
    print(f"{passed} passed, {failed} failed, 0 skipped")
    sys.exit(1 if failed else 0)


if __name__ == "__main__":
    run_both() if os.environ.get("GSODEV_BOTH") else main()
