#!/usr/bin/env python3
"""Checks that includes run downwards only: include_directions_test.py [PROJECT].

Rooms are folders. A file may include its own room and the rooms below it.
"""
import glob
import os
import re
import sys

# reconcilers/, from the bottom to the top; rooms of one line stand beside each other and do not include each other.
RECONCILERS = [
    ["reasons"],
    ["model"],
    ["profile"],
    ["cluster"],
    ["checks"],
    ["node", "kai"],
    ["partitioning"],
    ["fleet"],
    ["rollout"],
    ["status", "standalone"],
    ["registry"],  # reconcilers/registry.h: one line for each reconciler.
    ["lint"],
    ["explain"],
    ["report"],
]
# reconcilers/rollout/ in itself, from the bottom to the top (rollout_view.h says what each stage is). Sources without a
# header of their own stand behind the one that declares them.
STAGES = ["rollout_view", "recorded_timers", "label_contest", "stops", "managed_keys", "record_writes", "canary failures",
          "drain evictions", "budgets", "slots", "gates daemonset_restart", "repairs node_states", "change_steps", "starts",
          "standstill waits", "outcomes"]
# The words that a rollout's answers are made of.
WORDS = [("rollout_view", "budgets"), ("rollout_view", "standstill")]
# controller/: what people type comes last, and what runs in the cluster knows nothing of it.
CONTROLLER = [
    ["(tools)"],
    ["config"],
    ["(interface)"],
    ["kai", "mps_daemon", "watches"],
    ["writes"],
    ["reading"],
    ["serving"],
    ["runtime"],
    ["commands"],
    ["cli"],
    ["main"],  # controller/main.cc
]
# Headers that rooms below their own include: what counts, waits and measures, and what the parts of a running operator
# have in common. As rooms of their own they cannot include what is above them, so no two rooms need each other.
HEADERS = {
    "(tools)": ["controller/runtime/task_group.h", "controller/runtime/expectations.h",
                "controller/runtime/held_since.h", "controller/runtime/leader_election.h",
                "controller/runtime/pass_queue.h",
                "controller/serving/metrics.h"],
    "(interface)": ["controller/runtime/outage_log.h", "controller/runtime/run_operator.h", "controller/serving/http_message.h"],
}
# k8sclient/
K8SCLIENT = [
    ["value"],
    ["backoff", "clock"],
    ["auth"],
    ["transport"],
    ["api"],
    ["watch"],
]
ROOMS = {"k8sclient": K8SCLIENT, "reconcilers": RECONCILERS, "controller": CONTROLLER}
# Top folders of the product, from the bottom to the top. None of them includes tests/ or bench/.
TOP = ["k8sclient", "reconcilers", "controller"]

# What tests expect of nodes is computed by rules of their own: of reconcilers/ these files include at most the names in
# model/. With the product's parser and its predictions both sides would make the same mistake.
ORACLES = ("tests/sim/fleet/", "tests/reconcilers/fleet_model/fleet_model_nodes.cc",
           "tests/reconcilers/fleet_model/node_programs.")

# Includes that are right, and that are wrong: the rules above, tried out.
RIGHT = """
reconcilers/node/assess.cc -> reconcilers/checks/preflight.h
reconcilers/node/assess.cc -> reconcilers/node/assess.h
reconcilers/explain/pod.cc -> reconcilers/kai/waiting.h
reconcilers/explain/pod.cc -> reconcilers/lint/lint.h
reconcilers/rollout/waits.cc -> reconcilers/rollout/standstill.h
reconcilers/rollout/gates.cc -> reconcilers/rollout/canary.h
reconcilers/model/objects.h -> k8sclient/value/object.h
controller/commands/run.cc -> controller/runtime/run_operator.h
controller/runtime/fleet_loop.cc -> controller/writes/executor.h
controller/commands/cleanup.cc -> controller/reading/node_consumers.h
controller/main.cc -> controller/cli/cli.h
controller/writes/executor.h -> controller/runtime/expectations.h
controller/writes/executor.h -> controller/serving/metrics.h
controller/reading/node_consumers.cc -> controller/writes/executor.h
k8sclient/auth/connection.h -> k8sclient/clock.h
k8sclient/watch/watcher.h -> k8sclient/api/client.h
"""
WRONG = """
reconcilers/model/objects.h -> reconcilers/node/assess.h
reconcilers/node/assess.cc -> reconcilers/kai/index.h
reconcilers/kai/index.cc -> reconcilers/node/assess.h
reconcilers/lint/pods.cc -> reconcilers/explain/pod.h
reconcilers/rollout/canary.cc -> reconcilers/rollout/gates.h
reconcilers/status/status.cc -> controller/runtime/manager.h
controller/runtime/manager.cc -> controller/commands/commands.h
controller/runtime/manager.cc -> controller/cli/cli.h
controller/serving/routes.cc -> controller/commands/explain.h
controller/reading/node_consumers.cc -> controller/commands/shared/session.h
controller/commands/run.cc -> controller/cli/cli.h
controller/writes/executor.cc -> controller/reading/node_consumers.h
controller/watches/cluster_watches.cc -> controller/kai/kai_lookups.h
controller/serving/routes.cc -> controller/runtime/fleet_loop.h
controller/config/options.h -> controller/runtime/run_operator.h
controller/serving/metrics.h -> controller/config/options.h
k8sclient/value/object.h -> k8sclient/clock.h
k8sclient/transport/curl_multi.cc -> k8sclient/api/client.h
k8sclient/api/client.h -> k8sclient/watch/watcher.h
k8sclient/api/client.h -> reconcilers/model/objects.h
controller/runtime/manager.cc -> tests/controller/sim_time.h
reconcilers/unheard_of/new.cc -> reconcilers/model/objects.h
"""


def room_of(path):
    """("reconcilers", "node") for reconcilers/node/assess.cc; a file beside the rooms is a room by its own name."""
    parts = path.split("/")
    for name, headers in HEADERS.items():
        if path in headers:
            return parts[0], name
    name = parts[1] if len(parts) > 2 else os.path.splitext(parts[-1])[0]
    return parts[0], name


def level(rooms, name):
    for number, beside in enumerate(rooms):
        if name in beside:
            return number
    return None


def stage_of(path):
    """The number of the stage of a file in reconcilers/rollout/; None: it has none."""
    name = os.path.splitext(os.path.basename(path))[0]
    return next((number for number, names in enumerate(STAGES) if name in names.split()), None)


def is_in_order(source, header):
    """The same within reconcilers/rollout/."""
    mine, theirs = stage_of(source), stage_of(header)
    of_words = any(stage_of(a) == mine and stage_of(b) == theirs for a, b in WORDS)
    return mine is not None and theirs is not None and (theirs <= mine or of_words)


def is_allowed(source, header):
    """Whether `source` may include `header`; both are paths from the project's root."""
    top, room = room_of(source)
    other_top, other = room_of(header)
    if other_top not in TOP:
        return False
    if top != other_top:
        return TOP.index(other_top) < TOP.index(top)
    if room == other:
        return (top, room) != ("reconcilers", "rollout") or is_in_order(source, header)
    mine, theirs = level(ROOMS[top], room), level(ROOMS[top], other)
    return mine is not None and theirs is not None and theirs < mine


def includes_of(path):
    with open(path, encoding="utf-8") as source:
        return re.findall(r'^#include "([^"]+)"', source.read(), re.MULTILINE)


def upward_includes(root):
    """All includes that run upwards, as "file -> header"."""
    out = set()
    for top in TOP:
        for folder, _, files in os.walk(os.path.join(root, top)):
            for name in files:
                if not name.endswith((".h", ".cc")):
                    continue
                path = os.path.relpath(os.path.join(folder, name), root)
                headers = includes_of(os.path.join(folder, name))
                out |= {"%s -> %s" % (path, header) for header in headers if not is_allowed(path, header)}
    return out


def is_dependent(source, header):
    """Whether `source` expects what the product predicts; both are paths from the project's root."""
    return source.startswith(ORACLES) and header.startswith("reconcilers/") and room_of(header)[1] != "model"


def dependent_oracles(root):
    """All includes by which an oracle would follow the product, as "file -> header"."""
    out = []
    for place in ORACLES:
        for path in sorted(glob.glob(os.path.join(root, place + "*"))):
            if not path.endswith((".h", ".cc")):
                continue
            source = os.path.relpath(path, root)
            out += ["%s -> %s" % (source, header) for header in includes_of(path) if is_dependent(source, header)]
    return out


def unknown_rooms(root):
    """Folders that no list above names, and headers that are named there and do not exist."""
    out = [path for headers in HEADERS.values() for path in headers if not os.path.exists(os.path.join(root, path))]
    for top, rooms in ROOMS.items():
        for name in sorted(os.listdir(os.path.join(root, top))):
            if os.path.isdir(os.path.join(root, top, name)) and level(rooms, name) is None:
                out.append("%s/%s" % (top, name))
    return out


def pairs(lines):
    return [tuple(line.split(" -> ")) for line in lines.splitlines() if line]


def check_the_rules():
    """How many of RIGHT and WRONG are judged otherwise."""
    mistakes = [pair for pair in pairs(RIGHT) if not is_allowed(*pair)] + [pair for pair in pairs(WRONG) if is_allowed(*pair)]
    for source, header in mistakes:
        print("FAILED: the rules judge %s -> %s the other way" % (source, header))
    return len(mistakes)


def main():
    root = sys.argv[1] if len(sys.argv) > 1 else os.path.join(os.path.dirname(os.path.abspath(__file__)), "..", "..")
    failed = check_the_rules()
    for line in sorted(upward_includes(root)):
        failed += 1
        print("FAILED: %s runs upwards; move the declaration down, or pass a value in" % line)
    for line in dependent_oracles(root):
        failed += 1
        print("FAILED: %s makes a test expect what the product says; write the rule anew in the test" % line)
    for room in unknown_rooms(root):
        failed += 1
        print("FAILED: room %s has no place in the order; add it to %s" % (room, os.path.relpath(__file__, root)))
    print("%d passed, %d failed" % (0 if failed else 1, failed))
    return 1 if failed else 0


if __name__ == "__main__":
    sys.exit(main())
