#!/usr/bin/env python3
"""Runs the health checks that the chart ships for Argo CD (files/argocd.yaml) in a Lua interpreter, over sample objects.

usage: argocd_test.py [LUA]       LUA: the interpreter, lua5.4 by default

Argo CD calls a check as a function body with the object in the global `obj`, without the os and io libraries, and wants a
table with a known status and a message. Prints "N passed, N failed".
"""
import json
import pathlib
import subprocess
import sys

import yaml

FILE = pathlib.Path(__file__).resolve().parents[2] / "charts/gpu-sharing-operator/files/argocd.yaml"
PREFIX = "resource.customizations.health.gpusharing.dev_"
# Keys of argocd-cm that Argo CD ships with values of its own (3.0 and later): with ours they would be replaced, not extended.
SHIPPED = ("resource.exclusions", "resource.inclusions", "resource.customizations.ignoreResourceUpdates.")
STATUSES = {"Healthy", "Progressing", "Degraded", "Suspended", "Missing", "Unknown"}

# Argo CD opens the base, table, string, math and package libraries only.
HARNESS = """
local check = assert(load(%s, "check", "t", {ipairs = ipairs, pairs = pairs, type = type, tostring = tostring,
                                             string = string, table = table, math = math, obj = %s}))
local health = check()
assert(type(health) == "table", "no table but " .. type(health))
assert(type(health.status) == "string", "status is no string")
assert(health.message == nil or type(health.message) == "string", "message is no string")
io.write(health.status, "\\n", health.message or "")
"""


def condition(kind, status, reason="Why", message="because"):
    return {"type": kind, "status": status, "reason": reason, "message": message}


def policy(*conditions, observed=2, generation=2, status=True):
    out = {"kind": "SharingPolicy", "metadata": {"name": "p", "generation": generation}}
    if status:
        out["status"] = {"observedGeneration": observed, "conditions": list(conditions)}
    return out


def rollout(phase=None, status=True):
    out = {"kind": "SharingRollout", "metadata": {"name": "r"}}
    if status:
        out["status"] = {} if phase is None else {"phase": phase}
    return out


READY, NOT_READY = condition("Ready", "True", "UpToDate"), condition("Ready", "False", "Paused")
VALID, INVALID = condition("ConfigValid", "True"), condition("ConfigValid", "False", "ReplicasBelowMinimum", "line 7")
CASES = [
    ("nothing said yet", policy(status=False), "Progressing", "Waiting"),
    ("no conditions yet", {"kind": "SharingPolicy", "metadata": {"name": "p"}, "status": {}}, "Progressing", "Waiting"),
    ("status of an older generation", policy(READY, observed=1), "Progressing", "Waiting"),
    ("every node is as it should be", policy(READY, VALID, condition("Degraded", "False")), "Healthy", "UpToDate: because"),
    ("without a message", policy({"type": "Ready", "status": "True", "reason": "UpToDate"}), "Healthy", "UpToDate: "),
    ("being rolled", policy(condition("Progressing", "True", "RollingOut"), NOT_READY), "Progressing", "RollingOut"),
    ("nodes have failed", policy(condition("Degraded", "True", "NodesFailed"), READY), "Degraded", "NodesFailed"),
    ("an invalid profile", policy(INVALID, READY), "Degraded", "line 7"),
    ("stopped by somebody", policy(NOT_READY, VALID), "Suspended", "Paused"),
    ("nobody looks after it", policy(condition("Ready", "Unknown", "OperatorRemoved")), "Suspended", "OperatorRemoved"),
    ("conditions that nobody knows", policy(condition("Other", "True")), "Progressing", "Waiting"),
    ("rollout, nothing said yet", rollout(status=False), "Progressing", "Waiting"),
    ("rollout without a phase", rollout(), "Progressing", "Waiting"),
    ("rollout under way", rollout("Progressing"), "Progressing", "Progressing"),
    ("rollout that has ended", rollout("Completed"), "Healthy", "Completed"),
    ("rollout that another one replaced", rollout("Superseded"), "Healthy", "Superseded"),
    ("rollout that failed", rollout("Failed"), "Degraded", "Failed"),
    ("rollout that was taken back", rollout("RolledBack"), "Degraded", "RolledBack"),
    ("rollout that is paused", rollout("Paused"), "Suspended", "Paused"),
    ("rollout that waits for approval", rollout("AwaitingApproval"), "Suspended", "AwaitingApproval"),
]


def lua(value):
    """A Python value as a Lua expression."""
    if isinstance(value, dict):
        return "{" + ", ".join(f"[{lua(k)}] = {lua(v)}" for k, v in value.items()) + "}"
    if isinstance(value, list):
        return "{" + ", ".join(lua(v) for v in value) + "}"
    if isinstance(value, bool):
        return str(value).lower()
    return json.dumps(value) if isinstance(value, str) else str(value)


def health(interpreter, check, obj):
    program = HARNESS % (lua(check), lua(obj))
    done = subprocess.run([interpreter, "-"], input=program, capture_output=True, text=True, timeout=30)
    if done.returncode:
        return "error", done.stderr.strip()
    status, _, message = done.stdout.partition("\n")
    return status, message


def phases():
    """Every phase that the CRD allows."""
    crd = yaml.safe_load((FILE.parents[3] / "crds/gpusharing.dev_sharingrollouts.yaml").read_text(encoding="utf-8"))
    schema = crd["spec"]["versions"][0]["schema"]["openAPIV3Schema"]
    return set(schema["properties"]["status"]["properties"]["phase"].get("enum", []))


def main():
    interpreter = sys.argv[1] if len(sys.argv) > 1 else "lua5.4"
    data = yaml.safe_load(FILE.read_text(encoding="utf-8"))["data"]
    checks = {key.removeprefix(PREFIX): text for key, text in data.items() if key.startswith(PREFIX)}
    failures = []
    for name, obj, wanted, part in CASES:
        status, message = health(interpreter, checks[obj["kind"]], obj)
        if status != wanted or part not in message or status not in STATUSES:
            failures.append(f"{name}: {status} ({message}), wanted {wanted} ({part})")
    tried = {obj["status"]["phase"] for _, obj, _, _ in CASES if "phase" in obj.get("status", {})}
    for missing in sorted(phases() - tried):
        failures.append(f"phase {missing} of a SharingRollout has no case")
    failures += [f"{key} replaces what Argo CD ships under that key" for key in data if key.startswith(SHIPPED)]
    print(*failures, sep="\n")
    print(f"{len(CASES) - len(failures)} passed, {len(failures)} failed")
    sys.exit(1 if failures else 0)


if __name__ == "__main__":
    main()
