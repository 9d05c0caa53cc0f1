"""Slices of GPUs as the objects of a case show them: profiles in the fork's format, reports of nodes, requests of pods."""
import re

import yaml

from judges.program import as_dict, as_list, short

STATUS = re.compile(r"nos\.nebuly\.com/status-gpu-([0-9]+)-([0-9]+)gb-(used|free)$")
SLICE = re.compile(r"nvidia\.com/gpu-([1-9][0-9]*)gb$")


class Wrong(Exception):
    """What a plan does that it must not."""


def read_entry(entry):
    """(GPU index, GB, replicas) of an entry of sharing.mps.resources."""
    size = re.fullmatch(r"(?:nvidia\.com/)?gpu-([1-9][0-9]*)gb", str(entry.get("rename")))
    devices, replicas = entry.get("devices"), entry.get("replicas")
    if not (size and entry.get("name") == "nvidia.com/gpu" and entry.get("memoryGB") == int(size.group(1)) and
            type(replicas) is int and replicas >= 1 and
            isinstance(devices, list) and len(devices) == 1 and re.fullmatch("[0-9]+", str(devices[0]))):
        raise Wrong("not an entry {name: nvidia.com/gpu, rename: gpu-<N>gb, memoryGB: N, replicas: q, devices: "
                    "[\"<index>\"]}: %s" % short(entry))
    return int(devices[0]), int(size.group(1)), replicas


def geometry_of_profile(text):
    """{GPU index: {GB: count}} of a profile document."""
    try:
        document = as_dict(yaml.safe_load(text))
    except yaml.YAMLError as error:
        raise Wrong("the profile does not parse: %s" % short(" ".join(str(error).split()))) from error
    entries = as_dict(as_dict(document.get("sharing")).get("mps")).get("resources")
    if document.get("version") != "v1" or not isinstance(entries, list):
        raise Wrong("the profile needs version v1 and a list sharing.mps.resources: %s" % short(text))
    out = {}
    for entry in entries:
        gpu, gb, replicas = read_entry(as_dict(entry))
        sizes = out.setdefault(gpu, {})
        sizes[gb] = sizes.get(gb, 0) + replicas
    return out


def reported(node, status):
    """{GPU index: {GB: count}} as the node's agent reports it; `status` is used or free."""
    out = {}
    for key, value in as_dict(node["metadata"].get("annotations")).items():
        found = STATUS.match(key)
        if found and found.group(3) == status and str(value).isdigit() and int(value):
            out.setdefault(int(found.group(1)), {})[int(found.group(2))] = int(value)
    return out


def requests_of(pod):
    """{GB: count} over the containers of a pod."""
    out = {}
    for container in pod["spec"]["containers"]:
        for name, count in as_dict(container["resources"].get("limits")).items():
            found = SLICE.match(name)
            if found:
                out[int(found.group(1))] = out.get(int(found.group(1)), 0) + int(count)
    return out


def total(geometry):
    """{GB: count} over the GPUs."""
    out = {}
    for sizes in geometry.values():
        for gb, count in sizes.items():
            out[gb] = out.get(gb, 0) + count
    return out


def admits(node, pod):
    """Whether the pod's selector and tolerations, and the node's taints, allow it there."""
    labels = as_dict(node["metadata"].get("labels"))
    if any(labels.get(key) != value for key, value in as_dict(pod["spec"].get("nodeSelector")).items()):
        return False
    tolerated = {toleration.get("key") for toleration in as_list(pod["spec"].get("tolerations"))}
    taints = [taint["key"] for taint in as_list(node["spec"].get("taints")) if taint.get("effect") in ("NoSchedule", "NoExecute")]
    return not node["spec"].get("unschedulable") and tolerated.issuperset(taints)
