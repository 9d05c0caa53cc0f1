#!/usr/bin/env python3
"""The shared vectors of stale reservation pods (kai_gc.json), over `plan --only pod.reservation-gc`.

usage: reservation_vectors_test.py BINARY

They are read from vectors/ of $GSO_SHARED_DIR, or of ../shared beside the project; exit status 77 where they are not.
What a case expects is in the README beside them. Closes with "N passed, N failed".
"""
import json
import os
import pathlib
import subprocess
import sys

PROJECT = pathlib.Path(__file__).resolve().parents[3]


def vectors():
    shared = pathlib.Path(os.environ.get("GSO_SHARED_DIR", PROJECT.parent / "shared"))
    path = shared / "vectors" / "kai_gc.json"
    if not path.exists():
        print(f"skipped: {path} is not there")
        sys.exit(77)
    return json.loads(path.read_text(encoding="utf-8"))["cases"]


def plan(binary, case):
    manifests = json.dumps({"apiVersion": "v1", "kind": "List", "items": case["manifests"]})
    done = subprocess.run([binary, "plan", "-o", "json", "--now", case["now"], "--assume-observed-for", case["assume_observed_for"],
                           "--only", "pod.reservation-gc", "-"], input=manifests, capture_output=True, text=True, timeout=60, check=False)
    return json.loads(done.stdout)


def problem(binary, case):
    """What differs from the case's expectation; empty: nothing."""
    expect = case["expect"]
    answer = plan(binary, case)
    pods = {(o["metadata"]["namespace"], o["metadata"]["name"]): o for o in case["manifests"] if o["kind"] == "Pod"}
    nodes = {o["metadata"]["name"] for o in case["manifests"] if o["kind"] == "Node"}
    to_delete = {(d["namespace"], d["name"]) for d in expect["deleted"]}
    deleted = set()
    for action in answer["actions"]:
        target = action.get("target", {})
        if target.get("kind") != "Pod" or action["action"] == "RecordEvent":
            continue
        key = (target["namespace"], target["name"])
        if action["action"] != "DeletePod" or key not in to_delete:
            return f"{action['action']} of {'/'.join(key)}, which must stay"
        meta = pods[key]["metadata"]
        given = action.get("preconditions", {})
        if (given.get("uid"), given.get("resourceVersion")) != (meta["uid"], meta["resourceVersion"]):
            return f"{key[1]} is deleted under the preconditions {given}"
        if (action.get("gracePeriodSeconds") == 0) != (pods[key]["spec"]["nodeName"] not in nodes):
            return f"{key[1]} is deleted with the grace period {action.get('gracePeriodSeconds')}"
        deleted.add(pods[key]["spec"]["nodeName"])
    # One pod of each node at a time is enough.
    left = {pods[key]["spec"]["nodeName"] for key in to_delete} - deleted
    if left:
        return f"no reservation is deleted on {', '.join(sorted(left))}"
    about = {finding["object"]["name"] for finding in answer["findings"]}
    wanted = set(expect.get("findings_about_any_of", []))
    if wanted and not wanted & about:
        return f"no finding about {' or '.join(sorted(wanted))}, but about {', '.join(sorted(about)) or 'nothing'}"
    return ""


def main():
    if len(sys.argv) != 2:
        sys.exit(__doc__)
    cases = vectors()
    failed = 0
    for case in cases:
        wrong = problem(sys.argv[1], case)
        if wrong:
            failed += 1
            print(f"FAILED {case['id']} {case['name']}: {wrong}")
    print(f"{len(cases) - failed} passed, {failed} failed")
    sys.exit(1 if failed or not cases else 0)


if __name__ == "__main__":
    main()
