"""The API server's audit log: the same clock for every client."""
import datetime
import json


class Write:
    """One write that the API server has answered."""

    def __init__(self, entry):
        reference = entry.get("objectRef", {})
        self.agent = entry.get("userAgent", "")
        self.verb = entry["verb"]
        self.resource = reference.get("resource", "")
        self.name = reference.get("name", "")
        self.code = entry.get("responseStatus", {}).get("code", 0)
        self.received = seconds(entry["requestReceivedTimestamp"])
        self.answered = seconds(entry["stageTimestamp"])
        self.body = entry.get("requestObject") or {}


def seconds(stamp):
    return datetime.datetime.strptime(stamp, "%Y-%m-%dT%H:%M:%S.%f%z").timestamp()


class AuditLog:
    """Reads the log from now on: `new` has what was added since the last call."""

    def __init__(self, path):
        self.file = open(path)
        self.rest = ""
        self.new()

    def close(self):
        self.file.close()

    def new(self):
        text = self.rest + self.file.read()
        lines = text.split("\n")
        self.rest = lines.pop()  # Not written to its end yet, or empty.
        entries = [json.loads(line) for line in lines]
        return [Write(entry) for entry in entries if entry["stage"] == "ResponseComplete"]


class NodeWrites:
    """The writes of one client to Nodes, from a moment on."""

    def __init__(self, log, agent):
        self.log, self.agent = log, agent
        self.log.new()
        self.first = {}      # Node: its first successful write.
        self.succeeded = 0
        self.conflicts = 0
        self.failed = 0      # Other answers than success and conflict.

    def read(self):
        for write in self.log.new():
            if write.resource != "nodes" or self.agent not in write.agent:
                continue
            if write.code == 409:
                self.conflicts += 1
            elif not 200 <= write.code < 300:
                self.failed += 1
            else:
                self.succeeded += 1
                self.first.setdefault(write.name, write)
        return self

    def began(self):
        return min(write.received for write in self.first.values())

    def seconds(self):
        """From when the first write arrived until the last Node had its first write answered."""
        return max(write.answered for write in self.first.values()) - self.began()
