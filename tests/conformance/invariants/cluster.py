"""The cluster as the audit log leaves it, write by write."""
import json

import yaml

from audit_log import metadata

SETTINGS = ("default", "operator-settings")  # Left by the stories (tests/sim/story/stage.cc).
STATE = ("gpu-sharing-operator", "gpu-sharing-operator-state")
CHANGE = "gpusharing.dev/change"
CONFIG_LABEL = "nvidia.com/device-plugin.config"
COMPONENTS = {
    "plugin": ("nvidia-device-plugin", "nvidia-device-plugin-ctr"),
    "gfd": ("gpu-feature-discovery", "gpu-feature-discovery-ctr"),
    "mps": ("mps-control-daemon", "mps-control-daemon-ctr"),
}
# What remediation systems leave on a node that they have taken out of service: (key, beginning of the value).
QUARANTINE_LABELS = (("dgxc.nvidia.com/nvsentinel-state", ""), ("cloud.google.com/active-node-maintenance", "ONGOING"),
                     ("sagemaker.amazonaws.com/node-health-status", "Unschedulable"))
QUARANTINE_TAINTS = ("sagemaker.amazonaws.com/node-health-status", "cloud.google.com/impending-node-termination",
                     "remediator.kubernetes.azure.com/unschedulable", "remediator.aks.microsoft.com/unschedulable",
                     "medik8s.io/remediation", "medik8s.io/fence-agents-remediation",
                     "remediation.medik8s.io/fence-agents-remediation", "medik8s.io/drain",
                     "node.kubernetes.io/out-of-service", "karpenter.sh/disrupted")
KEPT = ("nodes", "pods", "daemonsets", "configmaps", "sharingpolicies", "sharingrollouts", "clusterpolicies", "leases",
        "bindrequests")
RESERVATIONS = "kai-resource-reservation"  # The namespace of KAI's reservation pods.


def merged(thing, patch):
    """The JSON merge patch (RFC 7386) of the thing, which stays as it is."""
    if not isinstance(patch, dict):
        return patch
    out = dict(thing) if isinstance(thing, dict) else {}
    for key, value in patch.items():
        if value is None:
            out.pop(key, None)
        else:
            out[key] = merged(out.get(key), value)
    return out


def says_no(value):
    return value.lower() in ("false", "0", "no", "off")


def is_switched_on(value):
    """A person's switch that stops the operator: in doubt it is on."""
    return bool(value) and not says_no(value)


def labels(thing):
    return metadata(thing).get("labels") or {}


def annotations(thing):
    return metadata(thing).get("annotations") or {}


def change_of(node):
    """The annotation gpusharing.dev/change; {} for none; {"unreadable": True} where it is no JSON object."""
    text = annotations(node).get(CHANGE)
    if text is None:
        return {}
    try:
        change = json.loads(text)
    except ValueError:
        change = None
    return change if isinstance(change, dict) and change else {"unreadable": True}


def listed_uids(change):
    return {uid for uids in (change.get("pods") or {}).values() for uid in uids}


def is_cordoned(node):
    return bool((node.get("spec") or {}).get("unschedulable"))


def is_quarantined(node):
    if any(labels(node).get(key, "") != "" and labels(node)[key].startswith(value) for key, value in QUARANTINE_LABELS):
        return True
    return any(taint.get("key") in QUARANTINE_TAINTS for taint in (node.get("spec") or {}).get("taints") or [])


def is_true(thing, condition):
    found = [c for c in (thing.get("status") or {}).get("conditions") or [] if c.get("type") == condition]
    return bool(found) and found[0].get("status") == "True"


def amounts(node, which):
    counts = (node.get("status") or {}).get(which) or {}
    return {name: count for name, count in counts.items() if name.startswith("nvidia.com/")}


def serves_gpus(node):
    return any(str(count) != "0" for count in amounts(node, "allocatable").values())


def component_of(pod):
    names = {container.get("name") for container in (pod.get("spec") or {}).get("containers") or []}
    for component, own in COMPONENTS.items():
        if names & set(own):
            return component
    return None


def controller_of(thing):
    owners = [o for o in metadata(thing).get("ownerReferences") or [] if o.get("controller")]
    return owners[0] if owners else {}


def is_terminating(thing):
    return "deletionTimestamp" in metadata(thing)


def uses_gpu(pod):
    """A CUDA client: it asks for a GPU, or mounts the pipe directory of the MPS daemon."""
    spec = pod.get("spec") or {}
    if component_of(pod):
        return False
    for container in spec.get("containers") or []:
        if any(name.startswith("nvidia.com/") for name in (container.get("resources") or {}).get("limits") or {}):
            return True
    return any("mps" in (volume.get("hostPath") or {}).get("path", "") for volume in spec.get("volumes") or [])


def is_kais(pod):
    """A reservation, or a pod of KAI's scheduler that has or asks for a part of a GPU: the marks alone are anybody's to write."""
    if metadata(pod).get("namespace") == RESERVATIONS:
        return True
    marks = list(labels(pod)) + list(annotations(pod))
    return (pod.get("spec") or {}).get("schedulerName") == "kai-scheduler" and any(
        mark in ("gpu-fraction", "gpu-memory", "gpu-fraction-num-devices") or mark.startswith("runai-gpu-group") for mark in marks)


def has_ended(thing):
    return (thing.get("status") or {}).get("phase") in ("Succeeded", "Failed")


class Cluster:
    """`account` is the operator's user name."""

    def __init__(self, account):
        self.account = account
        self.settings = {}  # The operator's flags, and "story".
        self.objects = {resource: {} for resource in KEPT}
        self.last_specs = {}     # Of policies, those that are gone too.
        self.label_writer = {}   # (node, label) -> user
        self.cordoned_by = {}    # node -> user
        self.asked_to_cordon = {}  # node -> user whose request to cordon it had no answer
        self.since = {}          # A fact -> when it became true.
        self.input_changed = 0.0     # By whoever is not the operator: what a rollout may follow from.
        self.anything_changed = 0.0  # By anybody, but for the operator's Leases.
        self.baseline = None     # When the operator's record was made first.
        self.deleted_uids = set()
        self.policy_deleted = 0.0  # When the last SharingPolicy was.

    # --- Reading.
    def all(self, resource):
        return self.objects[resource]

    def node(self, name):
        return self.objects["nodes"].get(("", name))

    def pods_on(self, node):
        return [pod for pod in self.objects["pods"].values() if (pod.get("spec") or {}).get("nodeName") == node]

    def pod_with(self, uid):
        return next((p for p in self.objects["pods"].values() if metadata(p).get("uid") == uid), None)

    def holds_since(self, fact, moment):
        """The fact has been true for all of the time from `moment` on."""
        return fact in self.since and self.since[fact] <= moment

    def is_known_unavailable(self, name, moment):
        return self.holds_since(("unavailable", name), moment)

    def kai_on(self, node, since=None):
        """KAI's pods and BindRequests on a node, or on any, which have been there since then; in words."""
        words = {"KAI's pod": "is on", "BindRequest": "is for"}
        return [f"{fact[0]} {'/'.join(fact[1])} {words[fact[0]]}" for fact, moment in self.since.items()
                if fact[0] in words and node in (None, fact[2]) and (since is None or moment <= since)]

    def default_key(self):
        """"namespace/name" of the ConfigMap does not matter: a story has one."""
        for policy in self.objects["clusterpolicies"].values():
            config = ((policy.get("spec") or {}).get("devicePlugin") or {}).get("config") or {}
            return config.get("default", "")
        return ""

    def profile_text(self, change):
        """The text that the change goes to; None where ConfigMap or key are missing."""
        namespace, _, name = (change.get("configMap") or "/").partition("/")
        config_map = self.objects["configmaps"].get((namespace, name))
        return None if config_map is None else (config_map.get("data") or {}).get(change.get("key"))

    # --- Writing.
    def complete(self, write):
        """Where the answer to a merge patch or a creation was the metadata alone, the rest is what the request left."""
        if write.response.get("kind") == "PartialObjectMetadata":
            whole = merged(self.objects.get(write.resource, {}).get(write.key) or {}, write.request)
            write.response = {**whole, "metadata": metadata(write.response)}

    def note_unanswered(self, write):
        """What it did is seen in the next answer that shows its object."""
        if write.kind == "nodes" and is_cordoned(write.request):
            self.asked_to_cordon[write.name] = write.user

    def apply(self, write):
        """Takes over what a successful write left behind."""
        if write.resource not in self.objects or not write.has_body or write.changed_nothing:
            return
        if write.verb == "deletecollection":
            return  # Nobody does it in the stories but the namespace controller, at the very end.
        if write.subresource == "binding":
            return self._bind(write)
        if write.subresource == "eviction":
            return self._mark_evicted(write)
        before = self.objects[write.resource].get(write.key)
        after = None if write.removes else write.response
        if after is None:
            self.objects[write.resource].pop(write.key, None)
            self.deleted_uids.add(metadata(before or {}).get("uid"))
        else:
            self.objects[write.resource][write.key] = after
        self._follow(write, before or {}, after or {})

    def _bind(self, write):
        pod = self.objects["pods"].get(write.key)
        if pod is not None:
            pod.setdefault("spec", {})["nodeName"] = (write.request.get("target") or {}).get("name", "")
            self._forget_predecessors(write.key, pod)
            self._follow_kai("KAI's pod", write, pod, is_kais(pod) and not has_ended(pod))

    def _mark_evicted(self, write):
        pod = self.objects["pods"].get(write.key)
        if pod is not None:
            metadata(pod)["deletionTimestamp"] = "evicted"
            self._fact(("uses", write.key), False, write.ended)

    def _fact(self, fact, holds, moment):
        if not holds:
            self.since.pop(fact, None)
        else:
            self.since.setdefault(fact, moment)

    def _follow(self, write, before, after):
        if write.resource == "configmaps" and write.key == SETTINGS:
            self._start_story(after)
        follow = getattr(self, "_follow_" + write.resource, None)
        if follow is not None:
            follow(write, before, after)
        if write.resource != "leases":
            self.anything_changed = max(self.anything_changed, write.ended)
        if write.user != self.account and is_input(write.resource, before, after):
            self.input_changed = max(self.input_changed, write.ended)

    def _start_story(self, settings):
        data = settings.get("data") or {}
        try:
            self.settings = dict(json.loads(data.get("flags", "{}")), story=data.get("story", ""))
        except ValueError:
            self.settings = {}

    def _follow_nodes(self, write, before, after):
        name = write.name
        if not after:
            self.cordoned_by.pop(name, None)
            for fact in [f for f in self.since if f[1:2] == (name,)]:
                del self.since[fact]
            for key in [k for k in self.label_writer if k[0] == name]:
                del self.label_writer[key]
            return
        was, now = labels(before), labels(after)
        for key in set(was) | set(now):
            if was.get(key) != now.get(key):
                self.label_writer[(name, key)] = write.user
        if is_cordoned(after) and not is_cordoned(before):
            # A PATCH that does not speak of the cordon shows that of a request whose answer the log does not have.
            speaks = write.verb != "patch" or "unschedulable" in (write.request.get("spec") or {})
            self.cordoned_by[name] = write.user if speaks else self.asked_to_cordon.pop(name, write.user)
        if not is_cordoned(after):
            self.cordoned_by.pop(name, None)
        if amounts(after, "capacity"):
            self._fact(("has GPUs", name), True, write.ended)
        out = not is_true(after, "Ready") or is_cordoned(after) or not serves_gpus(after)
        self._fact(("unavailable", name), out, write.ended)
        self._fact(("takes pods", name), not is_cordoned(after), write.ended)
        held = any(is_switched_on(marks.get("gpusharing.dev/hold")) for marks in (labels(after), annotations(after)))
        self._fact(("held", name), held, write.ended)
        self._fact(("quarantined", name), is_quarantined(after), write.ended)

    def _forget_predecessors(self, key, pod):
        """A DaemonSet has one pod on a node. That an earlier one is gone was not logged where the server was killed right after."""
        owner, node = controller_of(pod), (pod.get("spec") or {}).get("nodeName")
        if owner.get("kind") != "DaemonSet" or not node:
            return
        for other in [k for k, p in self.objects["pods"].items()
                      if k != key and (p.get("spec") or {}).get("nodeName") == node and controller_of(p).get("uid") == owner.get("uid")]:
            self.deleted_uids.add(metadata(self.objects["pods"].pop(other)).get("uid"))

    def _follow_pods(self, write, before, after):
        if not (before.get("spec") or {}).get("nodeName"):
            self._forget_predecessors(write.key, after)
        phase = (after.get("status") or {}).get("phase")
        uses = bool(after) and phase == "Running" and not is_terminating(after) and uses_gpu(after)
        self._fact(("uses", write.key), uses, write.ended)
        self._follow_kai("KAI's pod", write, after, bool(after) and is_kais(after) and not has_ended(after))

    def _follow_bindrequests(self, write, before, after):
        self._follow_kai("BindRequest", write, after, bool(after) and not has_ended(after))

    def _follow_kai(self, kind, write, thing, holds):
        """Its node is part of the fact: a thing that goes to another one starts anew there."""
        spec = thing.get("spec") or {}
        node = spec.get("selectedNode") or spec.get("nodeName") or ""
        for fact in [f for f in self.since if f[:2] == (kind, write.key) and (not holds or f[2] != node)]:
            del self.since[fact]
        if node:
            self._fact((kind, write.key, node), holds, write.ended)

    def _follow_configmaps(self, write, before, after):
        if write.key == STATE:
            self.baseline = (self.baseline or write.ended) if after else None
        paused = bool(after) and is_switched_on(annotations(after).get("gpusharing.dev/paused"))
        self._fact(("configmap paused", "/".join(write.key)), paused, write.ended)
        was, now = before.get("data") or {}, after.get("data") or {}
        for key in set(was) | set(now):
            if was.get(key) != now.get(key):
                self.since[("text", "/".join(write.key), key)] = write.ended

    def _follow_sharingpolicies(self, write, before, after):
        spec = after.get("spec") or {}
        if after:
            self.last_specs[write.name] = spec
        rollout = spec.get("rollout") or {}
        for fact, holds in (("policy paused", rollout.get("paused")), ("Observe", spec.get("mode") == "Observe"),
                            ("Approve", spec.get("mode") == "Approve")):
            self._fact((fact, write.name), bool(after) and bool(holds), write.ended)
        self.since[("spec", write.name)] = write.ended
        if not after:
            self.policy_deleted = write.ended

    def _follow_sharingrollouts(self, write, before, after):
        spec = after.get("spec") or before.get("spec") or {}
        which = (spec.get("policy"), spec.get("configMap"), spec.get("key"), spec.get("toRevision"))
        for switch in ("paused", "aborted", "approved"):
            self._fact((switch, which), bool(after) and bool((after.get("spec") or {}).get(switch)), write.ended)


def is_input(resource, before, after):
    """Something from which a rollout may follow has changed: not what the cluster reports about itself."""
    if resource == "configmaps":
        return before.get("data") != after.get("data") or annotations(before) != annotations(after)
    if resource == "nodes":
        return labels(before) != labels(after) or annotations(before) != annotations(after) or not before or not after
    if resource in ("daemonsets", "sharingpolicies", "sharingrollouts", "clusterpolicies"):
        return before.get("spec") != after.get("spec") or annotations(before) != annotations(after)
    return False


def profile_error(text):
    """Why no component takes the profile, as far as this is plain; None where it is not seen to be wrong."""
    if text is None:
        return "its key is missing"
    try:
        profile = yaml.safe_load(text)
    except yaml.YAMLError as error:
        return "it is no YAML: " + str(error).splitlines()[0]
    if not isinstance(profile, dict):
        return None if profile is None else "it is no mapping"
    if profile.get("version", "v1") != "v1":
        return f"its version is {profile['version']}"
    sharing = profile.get("sharing") or {}
    kinds = [kind for kind in ("timeSlicing", "mps") if (sharing.get(kind) or {}).get("resources")]
    if len(kinds) > 1:
        return "it has timeSlicing and mps"
    for kind in kinds:
        for resource in sharing[kind]["resources"]:
            replicas = resource.get("replicas")
            if not isinstance(replicas, int) or replicas < 2:
                return f"sharing.{kind}: {replicas} replicas"
    return None


def shares_by_replicas(text):
    try:
        sharing = (yaml.safe_load(text or "") or {}).get("sharing") or {}
    except (yaml.YAMLError, AttributeError):
        return False
    return any((sharing.get(kind) or {}).get("resources") for kind in ("timeSlicing", "mps"))
