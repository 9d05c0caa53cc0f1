#!/usr/bin/env python3
"""docs/tour.md as a newcomer follows it: its commands that only read, on the simulated cluster that it starts, print what it shows.

usage: tour_test.py BINARY SIMULATOR

Of the page's console blocks every `$ gpu-sharing-operator …` is run that ends by itself; where output is shown, its lines must be
printed in that order, and "…" stands for any lines. Prints "N passed, N failed".
"""
import os
import pathlib
import re
import shlex
import subprocess
import sys
import tempfile
import time

ROOT = pathlib.Path(__file__).resolve().parents[2]
PROGRAM = "gpu-sharing-operator"
# Of the operator, which the page starts only after the commands that read.
OF_THE_OPERATOR = {"run", "rollout"}


def problem(shown, done):
    """What the output lacks of the shown lines; empty: nothing. 1 is the exit status of a finding."""
    if done.returncode not in (0, 1):
        return f"exit status {done.returncode}: {done.stderr}"
    printed = iter((done.stdout + done.stderr).splitlines())
    for line in shown:
        if line.strip() and line.strip() != "…" and not any(line.rstrip() == other.rstrip() for other in printed):
            return f"is not printed, or in another place: {line}\nprinted:\n{done.stdout}{done.stderr}"
    return ""


def wait_for_fleet(call, nodes):
    # A sidecar that crashed while its node started counts as recovered once it has run for a minute. A fleet that has
    # no node yet has no errors either.
    deadline = time.monotonic() + 150
    while time.monotonic() < deadline:
        done = call(["audit"])
        if re.search(rf"^{nodes} GPU nodes? ", done.stdout, re.M) and re.search(r"^0 errors, 0 warnings", done.stdout, re.M):
            return
        time.sleep(0.2)
    sys.exit(f"the fleet does not serve its GPUs:\n{done.stdout}{done.stderr}")


def main():
    binary, simulator = (str(pathlib.Path(path).resolve()) for path in sys.argv[1:3])
    text, passed, failures = (ROOT / "docs/tour.md").read_text(encoding="utf-8"), 0, []
    started = re.search(r"^\$ build/debug/tests/sim/fleet/gso-sim (.*) &$", text, re.M).group(1)
    with tempfile.TemporaryDirectory() as folder:
        for name, body in re.findall(r"^<!-- file: (\S+) -->\n```yaml\n(.*?)^```", text, re.M | re.S):
            (pathlib.Path(folder) / name).write_text(body, encoding="utf-8")
        env = {**os.environ, "KUBECONFIG": f"{folder}/sim.kubeconfig"}
        words = [os.path.expandvars(word) if word != "$KUBECONFIG" else env["KUBECONFIG"] for word in shlex.split(started)]
        # Faster than the page says: what the commands print does not depend on the pace of the emulated programs.
        words[words.index("--time-scale") + 1] = "0.05"
        call = lambda arguments: subprocess.run([binary, *arguments], cwd=folder, env=env, capture_output=True, text=True, timeout=60, check=False)
        with subprocess.Popen([simulator, *words], cwd=folder, stdout=subprocess.PIPE, text=True) as server:
            try:
                # "gso-sim: 12 nodes of topology …", once it serves: every node of the page's topology has GPUs.
                wait_for_fleet(call, re.match(r"gso-sim: (\d+) nodes ", server.stdout.readline()).group(1))
                for block in re.findall(r"^```console\n(.*?)^```", text, re.M | re.S):
                    for step in re.split(r"^\$ ", block, flags=re.M)[1:]:
                        line, _, shown = step.partition("\n")
                        words = shlex.split(line, comments=True)
                        if words[0] != PROGRAM or words[1] in OF_THE_OPERATOR:
                            continue
                        if wrong := problem(shown.splitlines(), call(words[1:])):
                            failures.append(f"`{line}`: {wrong}")
                        else:
                            passed += 1
            finally:
                server.terminate()
    # An expression that finds nothing any more would pass everything.
    if passed + len(failures) < 4:
        failures.append("the page has fewer than four commands that only read")
    print(*failures, sep="\n")
    print(f"{passed} passed, {len(failures)} failed")
    sys.exit(1 if failures else 0)


main()
