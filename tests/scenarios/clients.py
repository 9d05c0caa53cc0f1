"""What one client of a node's shared GPUs gets, as `explain` shows it: a T4 of 15360 MiB under 4 replicas gives 25 % and 3840 MiB."""
import json
import re

from cluster.program import ask
from scenario import expect, expect_that, fleet, mps, none, scenario, ts


def t4s(text, memory="15360"):
    """Two nodes with two T4s each, whose GFD labels have their memory."""
    c = fleet(2, text, product="Tesla-T4")
    for name in c.nodes():
        c.set_label(name, "nvidia.com/gpu.memory", memory)
    return c


def shown(c, what="n01"):
    """The text about clients, and the field `client`."""
    text = ask(["explain", what, "-f", "-"], c.manifests()).stdout
    found = re.search(r"^  (MPS client|time-slicing):? +(.*)$", text, re.M)
    client = json.loads(ask(["explain", what, "-f", "-", "-o", "json"], c.manifests()).stdout)["client"]
    return (found.group(1), found.group(2)) if found else None, client


@scenario
def explain_shows_what_an_mps_client_gets():
    """Per cent and MiB, of the node and of the pod that runs there."""
    c = t4s(mps(4, rename=True))
    wanted = ("MPS client", "25 % of threads, 3840 MiB")
    text, client = shown(c)
    expect("the node's text", text, wanted)
    expect("resource", client["resource"], "nvidia.com/gpu.shared")
    expect("numbers", (client["strategy"], client["activeThreadPercentage"], client["pinnedMemoryMiB"], client["loaded"]),
           ("mps", 25, [3840], True))
    c.consumer("train", "n01", resource="nvidia.com/gpu.shared")
    expect("the pod's text", shown(c, "team/train")[0], wanted)


@scenario
def explain_says_that_time_slicing_limits_no_memory():
    """No number is invented for it, and a node without sharing has no such line."""
    text, client = shown(t4s(ts(4)))
    expect("text", text, ("time-slicing", "no memory limit"))
    expect("numbers", (client["activeThreadPercentage"], client["pinnedMemoryMiB"]), (None, []))
    expect("without sharing", shown(t4s(none())), (None, None))


@scenario
def what_a_client_will_get_is_not_called_present():
    """An edit waits: the numbers are those of the target, and the text says so."""
    c = t4s(mps(4))
    c.consumer("train", "n01")
    c.edit(any=mps(8))
    c.after("2m")
    text, client = shown(c)
    expect("text", text, ("MPS client", "12 % of threads, 1920 MiB (once the node runs its target)"))
    expect("loaded", client["loaded"], False)
    expect("the pod that still has the former limits", shown(c, "team/train"), (None, None))


@scenario
def a_memory_that_is_not_known_is_not_computed():
    """GFD shows no memory, or counts fewer GPUs than the machine has (two models): no number; with the annotation each GPU has its own."""
    c = t4s(mps(4), memory=None)
    expect("no label", shown(c)[0], ("MPS client", "25 % of threads, memory limit not known"))
    c.annotate("Node", "n01", "gpusharing.dev/devices", "[]")
    c.after("1m")
    expect("no GPUs", shown(c)[0], ("MPS client", "limits not known"))
    c = t4s(mps(4))
    c.annotations("n01")["gpusharing.dev/devices"] = json.dumps(
        [{"name": "Tesla T4", "memoryMiB": 15360, "computeCapability": [7, 5]},
         {"name": "NVIDIA A10", "memoryMiB": 23028, "computeCapability": [8, 6]}])
    c.touch(c.node("n01"))
    c.after("1m")
    text, client = shown(c)
    expect_that(text[1].startswith("25 % of threads, 3840 to 5757 MiB"), "the least and the most", text)
    expect("by GPU", client["pinnedMemoryMiB"], [3840, 5757])
