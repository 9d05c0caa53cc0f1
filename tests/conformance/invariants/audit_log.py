"""The writes of an API server's audit log, in the order in which they took effect.

An object's resourceVersion is a number of the whole store: it orders the writes of all objects. A write whose answer
has none of its own (a deletion that is answered with a Status, an eviction, a binding, a PATCH that changed nothing)
stands after the last write that had ended before it did.
"""
import json
from datetime import datetime

WRITES = ("create", "update", "patch", "delete", "deletecollection")


def seconds_of(text):
    """2026-01-02T03:04:05.678901Z, as seconds since 1970."""
    return datetime.fromisoformat(text.replace("Z", "+00:00")).timestamp()


class Write:
    """One request that changes something, or would have."""

    def __init__(self, event, line):
        ref = event.get("objectRef", {})
        request = event.get("requestObject")
        response = event.get("responseObject")
        self.line = line
        self.user = event.get("impersonatedUser", event["user"]).get("username", "")  # None with a token that is not valid.
        # Of a ServiceAccount's token: distinguishes two processes of one account.
        self.token = event["user"].get("extra", {}).get("authentication.kubernetes.io/credential-id", [""])[0]
        self.verb = event["verb"]
        self.resource = ref.get("resource", "")
        self.subresource = ref.get("subresource", "")
        self.namespace = ref.get("namespace", "")
        self.request = request if isinstance(request, dict) else {}
        self.response = response if isinstance(response, dict) else {}
        # A create may leave the name to the server.
        self.name = ref.get("name") or metadata(self.response).get("name", "")
        self.code = event.get("responseStatus", {}).get("code", 0)
        self.received = seconds_of(event["requestReceivedTimestamp"])
        self.ended = seconds_of(event["stageTimestamp"])
        self.dry_run = "dryRun=" in event.get("requestURI", "")
        self.has_body = event.get("level") == "RequestResponse"
        self.changed_nothing = False

    @property
    def succeeded(self):
        return 200 <= self.code < 300 and not self.dry_run

    @property
    def kind(self):
        """"nodes", "pods/eviction"."""
        return self.resource + ("/" + self.subresource if self.subresource else "")

    @property
    def key(self):
        return (self.namespace, self.name)

    @property
    def revision(self):
        text = metadata(self.response).get("resourceVersion", "")
        return int(text) if self.response.get("kind") != "Status" and text.isdigit() else 0

    @property
    def read_revision(self):
        """The version that the request names as the one it was made from."""
        text = str(metadata(self.request).get("resourceVersion", ""))
        return int(text) if text.isdigit() else 0

    @property
    def is_unanswered(self):
        """It may have taken effect all the same: its client or the server was killed before the answer was there."""
        return not self.dry_run and (self.code < 200 or self.code >= 499 or self.succeeded and self.has_body and not self.response)

    @property
    def removes(self):
        """The object is gone afterwards: deleted at once, or freed of its last finalizer."""
        gone = metadata(self.response)
        if self.verb == "delete":
            if self.response.get("kind") == "Status" or "deletionTimestamp" not in gone:
                return True
            return gone.get("deletionGracePeriodSeconds") == 0 and not gone.get("finalizers")
        return self.resource != "pods" and "deletionTimestamp" in gone and not gone.get("finalizers")

    def __str__(self):
        name = f"{self.namespace}/{self.name}" if self.namespace else self.name
        return f"audit line {self.line}: {self.verb} {self.kind} {name}"


class Watch:
    """A request of the operator to watch a resource; `ended` is None for as long as it is open."""

    def __init__(self, resource, started):
        self.resource = resource
        self.started = started
        self.ended = None


def metadata(thing):
    return thing.get("metadata") or {}


def read(path, account):
    """(writes in order, watches of the account)."""
    writes, watches = [], {}
    with open(path, encoding="utf-8") as stream:
        for number, text in enumerate(stream, 1):
            try:
                event = json.loads(text)
            except ValueError:
                continue  # The last line of a server that was killed.
            if event["verb"] in WRITES and "objectRef" in event:
                writes.append(Write(event, number))
            elif event["verb"] == "watch" and event["user"].get("username") == account:
                note_watch(watches, event)
    return in_order(writes), list(watches.values())


def note_watch(watches, event):
    if event.get("responseStatus", {}).get("code") != 200:
        return
    resource = event.get("objectRef", {}).get("resource", "")
    at = seconds_of(event["stageTimestamp"])
    if event["stage"] == "ResponseStarted":
        watches[event["auditID"]] = Watch(resource, at)
    elif event["auditID"] in watches:
        watches[event["auditID"]].ended = at


def in_order(writes):
    places, last, seen = [], 0, set()
    # A request that names an older version than its answer has made that version; a PATCH that changed nothing and read
    # it meanwhile may have been answered earlier.
    makers = {(w.resource, w.key, w.revision): w for w in writes if w.succeeded and 0 < w.read_revision < w.revision}
    for index, write in enumerate(sorted(writes, key=lambda w: w.ended)):
        fresh = write.revision if write.succeeded else 0
        version = (write.resource, write.key, fresh)
        if fresh and (version in seen or makers.get(version, write) is not write):
            # What removes an object shows its last version once more.
            write.changed_nothing, fresh = not write.removes, 0
        seen.add((write.resource, write.key, fresh))
        places.append((fresh or last, 0 if fresh else 1, index, write))
        last = max(last, fresh)
    return [write for _, _, _, write in sorted(places, key=lambda place: place[:3])]
