"""Profiles, as texts of the device plugin's configuration, and what such a text makes of a node."""
import re

from .names import GPU


def none():
    return "version: v1\n"


def _shared(section, replicas, rename, fail, resource):
    text = "version: v1\nsharing:\n  %s:\n" % section
    if rename:
        text += "    renameByDefault: true\n"
    if fail is not None:
        text += "    failRequestsGreaterThanOne: %s\n" % str(bool(fail)).lower()
    return text + "    resources:\n    - name: %s\n      replicas: %d\n" % (resource, replicas)


def mps(replicas, rename=False, fail=None, resource=GPU, mig=None):
    """`mig`: migStrategy. No label or capacity of a node without MIG shows it, and the MPS daemon reads it."""
    text = _shared("mps", replicas, rename, fail, resource)
    return text if mig is None else text.replace("version: v1\n", "version: v1\nflags:\n  migStrategy: %s\n" % mig)


def ts(replicas, rename=False, fail=None, resource=GPU):
    return _shared("timeSlicing", replicas, rename, fail, resource)


INVALID = "version: v1\nsharing:\n  timeSlicing:\n    resources:\n    - name: nvidia.com/gpu\n      replicas: 1\n"


class Meaning:
    """What a text makes of a node, as far as the fleet needs it."""

    def __init__(self, text):
        replicas = re.search(r"\breplicas\"?: *\"?(-?[0-9]+)", text or "")
        self.replicas = int(replicas.group(1)) if replicas else 1
        self.strategy = "none"
        if re.search(r"\bmps\"?:", text or ""):
            self.strategy = "mps"
        elif re.search(r"\btimeSlicing\"?:", text or ""):
            self.strategy = "time-slicing"
        self.valid = text is not None and not (self.strategy != "none" and self.replicas < 2)
        self.renamed = bool(re.search(r"renameByDefault\"?: *true", text or ""))
