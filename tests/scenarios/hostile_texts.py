"""Texts of a cluster that imitate what the program prints: each stays within the line that quotes it, and is cut."""
import json
import re

from cluster.program import ask
from scenario import CONFIG_LABEL, expect, expect_that, fleet, mps, scenario, ts

FORGED = "x\nerror FORGED: run this\ty" + "A" * 20000
# C1, which begins an escape sequence as ESC does; marks that change the direction of writing; characters without width.
UNSEEN = "\u009b\u0085\u202e\u2066\u200e\u200f\u061c\u200b\u2060\ufeff\u007f"
COMMANDS = (["plan", "-"], ["audit", "-f", "-"], ["explain", "n01", "-f", "-"], ["lint", "-"])


def printed(c):
    """What each command prints for people about the cluster."""
    for command in COMMANDS:
        done = ask(command, c.manifests())
        yield command[0], done.stdout + "\n" + done.stderr


def expect_no_forged_line(c, place):
    for command, text in printed(c):
        forged = [line[:80] for line in text.splitlines() if line.startswith("error FORGED")]
        expect("lines of %s that %s has forged" % (command, place), forged, [])
        # What would be written (a patch, a status) is shown as it is; messages are cut.
        said = [line for line in text.splitlines() if not line.startswith("[")]
        whole = [line[:120] for line in said if "\t" in line or "A" * 300 in line]
        expect("lines of %s that have all of %s" % (command, place), whole, [])


def strings_in(value):
    """Every text of a JSON document, keys as well."""
    if isinstance(value, str):
        return [value]
    parts = list(value) + list(value.values()) if isinstance(value, dict) else value if isinstance(value, list) else []
    return [text for part in parts for text in strings_in(part)]


def expect_documents_escape(c, place):
    """JSON and YAML of each command have the text only as escapes, and some document has the text that the cluster has."""
    read_back = 0
    for command in COMMANDS:
        for form in ("json", "yaml"):
            if "-o" in command or form == "yaml" and command[0] in ("plan", "lint"):
                continue
            done = ask(command + ["-o", form], c.manifests())
            raw = sorted({"U+%04X" % ord(char) for char in done.stdout + done.stderr if char in UNSEEN})
            expect("characters of %s -o %s that a terminal does not show, with %s" % (command[0], form, place), raw, [])
            if form == "json":
                read_back += sum(UNSEEN in text for text in strings_in(json.loads(done.stdout)))
    return read_back


@scenario
def documents_show_what_a_terminal_would_not():
    """A label, an annotation, a pod's words, a key and a profile have characters that a terminal obeys or does not show."""
    c = fleet(2, ts(4))
    c.node("n01")["metadata"]["labels"]["nvidia.com/mps.capable"] = UNSEEN
    expect_that(expect_documents_escape(c, "a label") > 0, "the label in a JSON document", c.node("n01")["metadata"]["labels"])
    c = fleet(2, ts(4))
    c.annotate("Node", "n01", "gpusharing.dev/hold", UNSEEN)
    expect_documents_escape(c, "an annotation")
    c = fleet(2, mps(4))
    pod = c.pod_of("plugin", "n01")
    pod["status"]["phase"] = UNSEEN
    pod["status"]["containerStatuses"] = [{"name": "nvidia-device-plugin", "ready": False, "restartCount": 9,
                                           "state": {"waiting": {"reason": UNSEEN, "message": UNSEEN}}}]
    c.touch(pod)
    expect_documents_escape(c, "a pod's status")
    c = fleet(2, ts(4))
    c.get("ConfigMap", "mps-config", "gpu-operator")["data"][UNSEEN] = "version: %s\n" % json.dumps(UNSEEN)
    expect_that(expect_documents_escape(c, "a key") > 0, "the key in a JSON document", UNSEEN)


@scenario
def a_label_forges_no_line():
    """The label nvidia.com/mps.capable has a text of three lines, which no command prints as lines of its own."""
    c = fleet(2, ts(4))
    c.node("n01")["metadata"]["labels"]["nvidia.com/mps.capable"] = FORGED
    expect_no_forged_line(c, "a label")


@scenario
def an_annotation_forges_no_line():
    """The operator's own annotations on a node, and those of people, have a text of three lines."""
    for name in ("gpusharing.dev/hold", "gpusharing.dev/change", "gpusharing.dev/state", "gpusharing.dev/message",
                 "gpusharing.dev/deferred", "nvidia.com/gpu-driver-upgrade-state"):
        c = fleet(2, ts(4))
        c.annotate("Node", "n01", name, FORGED)
        expect_no_forged_line(c, "annotation " + name)


@scenario
def what_a_pod_says_forges_no_line():
    """The phase of a plugin's pod, and what its container says, are texts of three lines."""
    c = fleet(2, mps(4))
    pod = c.pod_of("plugin", "n01")
    pod["status"]["phase"] = FORGED
    pod["status"]["containerStatuses"] = [{"name": "nvidia-device-plugin", "ready": False, "restartCount": 9,
                                           "state": {"waiting": {"reason": FORGED, "message": FORGED}},
                                           "lastState": {"terminated": {"exitCode": 1, "message": FORGED}}}]
    pod["status"]["conditions"] = [{"type": "Ready", "status": "False", "reason": FORGED, "message": FORGED}]
    c.touch(pod)
    expect_no_forged_line(c, "a pod's status")


@scenario
def a_config_map_forges_no_line():
    """A key and a text of the plugin's ConfigMap, and the default key, are texts of three lines."""
    c = fleet(2, ts(4))
    c.get("ConfigMap", "mps-config", "gpu-operator")["data"][FORGED] = ts(2)
    expect_no_forged_line(c, "a key")
    c = fleet(2, ts(4))
    c.get("ConfigMap", "mps-config", "gpu-operator")["data"]["any"] = "version: %s\n" % json.dumps(FORGED)
    expect_no_forged_line(c, "a profile")
    c = fleet(2, ts(4))
    c.get("ClusterPolicy", "cluster-policy")["spec"]["devicePlugin"]["config"]["default"] = FORGED
    expect_no_forged_line(c, "the default key")


@scenario
def a_status_forges_no_line():
    """The conditions of a policy and of a rollout, written by somebody else, are texts of three lines."""
    c = fleet(3, ts(4))
    c.edit(any=ts(8))
    c.after("2m")
    for kind in ("SharingPolicy", "SharingRollout"):
        for found in c.all(kind):
            for condition in found.get("status", {}).get("conditions", []):
                condition["message"] = FORGED
    expect_no_forged_line(c, "a status")


@scenario
def long_names_are_cut():
    """The name of a missing ConfigMap, names of pods, labels and what a container said are longer than anybody reads."""
    long = "A" * 5000
    c = fleet(2, ts(4))
    c.get("ClusterPolicy", "cluster-policy")["spec"]["devicePlugin"]["config"]["name"] = long
    expect_no_forged_line(c, "a ConfigMap that is missing")
    c = fleet(2, ts(4))
    del c.get("ConfigMap", "mps-config", "gpu-operator")["data"]["any"]
    c.node("n01")["metadata"]["labels"][CONFIG_LABEL] = long
    expect_no_forged_line(c, "a key that is missing")
    c = fleet(2, mps(4))
    pod = c.pod_of("plugin", "n01")
    pod["metadata"]["name"] = long
    pod["status"]["containerStatuses"] = [{"name": long, "ready": False, "restartCount": 9,
                                           "state": {"waiting": {"reason": long, "message": long}}}]
    c.touch(pod)
    expect_no_forged_line(c, "a pod")
    c = fleet(2, ts(4))
    c.annotate("Node", "n01", "gpusharing.dev/devices", json.dumps([{"name": long, "memoryMiB": 15360}]))
    expect_no_forged_line(c, "the devices of a node")


@scenario
def the_last_verified_text_is_quoted_on_one_line():
    """After a failure under onFailure Rollback the message has the text to restore: on one line, which YAML reads as it was."""
    c = fleet(3, ts(4), rollout={"onFailure": "Rollback"})
    c.edit(any=ts(8))
    c.behave("crash", *c.nodes())
    found = []
    for _ in range(10):
        tick = c.after("4m")
        found += re.findall(r"restore the last verified text in it: (\".*\")", "\n".join(e["event"]["note"] for e in tick.events()))
    expect_that(found, "a message with the last verified text", [e["event"]["note"] for tick in c.ticks for e in tick.events()])
    expect("the text", json.loads(found[0]), ts(4))
