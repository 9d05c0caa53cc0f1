"""S4 and S6: when the operator writes at all."""
from audit_log import metadata, seconds_of
from cluster import change_of, is_terminating, is_true, labels
from rules import Rule

READ = ("nodes", "pods", "daemonsets", "configmaps")
DISRUPTIVE = ("nodes", "pods", "pods/eviction", "daemonsets")
LEASE = ("gpu-sharing-operator", "gpu-sharing-operator")
# Longer than any delay of the operator that a story leaves in place once all is done.
QUIET = 10.0
# A deleted SharingPolicy governs on for so long; then the record drops it.
DELETION_GRACE = 30.0


class Leader(Rule):
    number, title = "S4", "nothing is written without the Lease, nor with one that has run out"

    def judge(self, write, cluster):
        self.judged(cluster)
        spec = (cluster.all("leases").get(LEASE) or {}).get("spec") or {}
        if not spec.get("holderIdentity"):
            return self.violated(write, "nobody holds the Lease")
        until = seconds_of(spec["renewTime"]) + spec.get("leaseDurationSeconds", 0)
        if write.received > until:
            self.violated(write, f"the Lease of {spec['holderIdentity']} ran out {write.received - until:.1f} s before")


class Synced(Rule):
    number, title = "S4b", "nothing is disrupted without open watches of Nodes, Pods, DaemonSets and ConfigMaps"

    def __init__(self, watches):
        super().__init__()
        self.watches = watches

    def judge(self, write, cluster):
        if write.kind not in DISRUPTIVE:
            return
        self.judged(cluster)
        open_ones = {w.resource for w in self.watches
                     if w.started <= write.received and (w.ended is None or w.ended >= write.received)}
        missing = [resource for resource in READ if resource not in open_ones]
        if missing:
            self.violated(write, f"there was no open watch of {', '.join(missing)}")


class EffectiveWrites(Rule):
    number, title = "S6", "every write changes something, and a cluster that is done and quiet gets none"

    def judge(self, write, cluster):
        self.judged(cluster)
        if write.changed_nothing:
            self.violated(write, "the write changed nothing")
        pod = cluster.all("pods").get(write.key)
        if write.kind == "pods/eviction" and pod is not None and is_terminating(pod):
            self.violated(write, "the pod was ending already")
        quiet = write.received - max(cluster.anything_changed, cluster.policy_deleted + DELETION_GRACE)
        if quiet > QUIET and self.is_done(cluster) and not write.subresource:
            self.violated(write, f"everything was done, and nothing had changed for {quiet:.0f} s")

    @staticmethod
    def is_done(cluster):
        policies = cluster.all("sharingpolicies").values()
        if not policies or not all(
                is_true(p, "Ready") and (p.get("status") or {}).get("observedGeneration") == metadata(p).get("generation")
                for p in policies):
            return False
        return not any(change_of(n) or "gpusharing.dev/state" in labels(n) for n in cluster.all("nodes").values())
