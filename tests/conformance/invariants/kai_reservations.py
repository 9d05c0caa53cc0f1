"""What a reservation pod of KAI is needed for, by the objects alone: for the played binder and for the judge of the audit log.

Nothing of the operator's own code is used. `pods`, `requests` and `config_maps` map (namespace, name) to objects.
"""
from audit_log import metadata

RESERVATIONS = "kai-resource-reservation"
TEAM = "team"
GROUP = "runai-gpu-group"
PREFIX = GROUP + "/"
GPU = "run.ai/reserve_for_gpu_index"


def labels(thing):
    return metadata(thing).get("labels") or {}


def annotations(thing):
    return metadata(thing).get("annotations") or {}


def name_of(thing):
    return metadata(thing).get("name", "")


def spec(thing, key):
    return (thing.get("spec") or {}).get(key) or ""


def phase(thing):
    return (thing.get("status") or {}).get("phase", "")


def is_terminating(thing):
    return "deletionTimestamp" in metadata(thing)


def is_alive(pod):
    return phase(pod) not in ("Succeeded", "Failed")


def carries(pod, group):
    return labels(pod).get(GROUP) == group or PREFIX + group in labels(pod)


def groups_of(thing):
    """Of a pod by its labels, of a BindRequest by either of its fields."""
    out = [value for key, value in labels(thing).items() if key == GROUP]
    out += [key[len(PREFIX):] for key in labels(thing) if key.startswith(PREFIX)]
    out += list(spec(thing, "selectedGPUGroups") or [])
    return out + [group["id"] for group in spec(thing, "selectedFractionalGpuGroups") or []]


def sees(config_map, gpu):
    """A consumer with this ConfigMap might use the GPU: in doubt it does."""
    devices = ((config_map or {}).get("data") or {}).get("NVIDIA_VISIBLE_DEVICES", "")
    return not gpu or not devices or gpu in devices.split(",")


def in_namespace(things, namespace):
    return [thing for (ns, _), thing in sorted(things.items()) if ns == namespace]


def is_in_progress(request):
    return phase(request) not in ("Succeeded", "Failed")


def has_another(reservation, pods):
    """Another reservation of its group runs."""
    group = labels(reservation).get(GROUP, "")
    return any(metadata(other).get("uid") != metadata(reservation).get("uid") and carries(other, group) and
               not is_terminating(other) and phase(other) == "Running" for other in in_namespace(pods, RESERVATIONS))


def needed(reservation, pods, requests, config_maps):
    """Why its deletion would hurt now; empty: it holds its GPU for nobody."""
    group = labels(reservation).get(GROUP, "")
    another = has_another(reservation, pods)
    for (namespace, name), pod in sorted(pods.items()):
        if namespace == RESERVATIONS or not is_alive(pod) or not carries(pod, group):
            continue
        # It lives by another reservation of the group, which holds the GPU that it sees.
        shown = config_maps.get((namespace, name + "-0"))
        if another and spec(pod, "nodeName") and not sees(shown, annotations(reservation).get(GPU, "")):
            continue
        return f"pod {namespace}/{name} ({phase(pod) or 'without a phase'}) is of its group {group}"
    for key, request in sorted(requests.items()):
        if is_in_progress(request) and group in groups_of(request):
            return f"BindRequest {'/'.join(key)} in progress names its group {group}"
    return ""
