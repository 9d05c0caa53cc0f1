"""Reading what the operator has planned: a `Tick` is one look, a `Run` several of them."""
import re

from .names import STATE_LABEL
from .times import moment, stamp

# Where a name is missing in a sentence: two spaces, a space before a stop, empty quotes or brackets.
HOLE = re.compile(r"\S  +\S|\s[,.:;](?:\s|$)|\"\"|''|\(\s*\)")


def texts_in(value):
    """Every text of several words in a status."""
    if isinstance(value, str):
        return [value] if " " in value else []
    items = value.values() if isinstance(value, dict) else value if isinstance(value, list) else []
    return [text for item in items for text in texts_in(item)]


class Tick:
    """What one look has planned."""

    def __init__(self, cluster, printed, status):
        self.actions, self.all_findings, self.status = printed["actions"], printed["findings"], status
        self.now = stamp(cluster.clock)
        self.updating_before = set(cluster.in_progress())
        self.node_of = {(pod["metadata"]["namespace"], pod["metadata"]["name"]): pod["spec"].get("nodeName")
                        for pod in cluster.all("Pod")}

    def moment(self):
        return moment(self.now)

    def of(self, kind):
        return [action for action in self.actions if action["action"] == kind]

    def started(self):
        """Nodes on which a disruption begins."""
        return [action["target"]["name"] for action in self.of("PatchNode")
                if action["target"]["name"] not in self.updating_before and
                (action.get("unschedulable") is True or action["set"].get(STATE_LABEL) == "Updating")]

    def patched(self, node):
        return [action for action in self.of("PatchNode") if action["target"]["name"] == node]

    def deleted_pods(self):
        return [action["target"]["name"] for action in self.of("DeletePod")]

    def restarted(self):
        """Nodes that lose a pod."""
        return sorted({self.node_of[(action["target"].get("namespace"), action["target"]["name"])]
                       for action in self.of("DeletePod")})

    def evicted(self):
        return [action["target"]["name"] for action in self.of("EvictPod")]

    def findings(self, reason=None):
        return [finding for finding in self.all_findings if reason is None or finding["reason"] == reason]

    def found_on(self, reason):
        """Names of the objects of findings with this reason."""
        return sorted(finding["object"]["name"] for finding in self.findings(reason))

    def events(self, reason=None):
        return [action for action in self.of("RecordEvent") if reason is None or action["event"]["reason"] == reason]

    def condition(self, policy, kind):
        """A condition as this tick has written it, or {}."""
        for action in self.of("PatchStatus"):
            if action["target"]["kind"] == "SharingPolicy" and action["target"]["name"] == policy:
                for condition in action["status"].get("conditions", []):
                    if condition["type"] == kind:
                        return condition
        return {}

    def sentences(self):
        """Every text for people of this look: findings, Events, statuses, messages on nodes."""
        said = [finding["message"] for finding in self.all_findings]
        said += [event["event"].get("note", "") for event in self.events()]
        said += [text for action in self.of("PatchStatus") for text in texts_in(action["status"])]
        return said + [text for action in self.of("PatchNode")
                       for key, text in action.get("annotations", {}).get("set", {}).items() if key.endswith("/message")]

    def holes(self):
        """The sentences in which something is missing; what they quote is other people's text."""
        return sorted({text for text in self.sentences() if HOLE.search(re.sub(r'"[^"]+"', "quoted", text))})

    def disrupts(self):
        """Whether anything is taken out of service or ended."""
        return bool(self.started() or self.of("DeletePod") or self.of("EvictPod") or self.of("RestartDaemonSet"))

    def is_quiet(self):
        return not [action for action in self.actions if action["action"] not in ("PatchStatus", "RecordEvent")]


class Run:
    """Several looks, one after another."""

    def __init__(self, ticks):
        self.ticks = ticks

    def started(self):
        return [name for tick in self.ticks for name in tick.started()]

    def waves(self):
        return [tick.started() for tick in self.ticks if tick.started()]

    def restarted(self):
        return sorted({name for tick in self.ticks for name in tick.restarted()})

    def evicted(self):
        return [name for tick in self.ticks for name in tick.evicted()]
