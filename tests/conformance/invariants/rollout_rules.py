"""S12: what nodes that were out of service before may do to a rollout."""
from cluster import change_of, metadata
from node_rules import before_and_after, is_node_write, starts_change
from rules import LAG, Rule


def stopped_by_failures(answer):
    """The status of the answered rollout says that too many of its nodes have failed. A deletion is answered by a Status."""
    if answer.get("kind") == "Status":
        return False
    conditions = (answer.get("status") or {}).get("conditions") or []
    return any(condition.get("reason") == "MaxFailures" for condition in conditions)


class ServedBefore(Rule):
    number, title = "S12", "a rollout is stopped by failures only where a node failed that served before its change"

    def __init__(self):
        super().__init__()
        self.out_before = {}  # Node -> it was out of service when its change began.

    def judge(self, write, cluster):
        if is_node_write(write):
            before, after = before_and_after(write, cluster)
            if before is not None and starts_change(before, after):
                self.out_before[write.name] = cluster.is_known_unavailable(write.name, write.received - LAG)
        elif write.resource == "sharingrollouts" and stopped_by_failures(write.response):
            self.judge_stop(write, cluster)

    def judge_stop(self, write, cluster):
        spec = write.response.get("spec") or {}
        failed = [metadata(node)["name"] for node in cluster.all("nodes").values()
                  if change_of(node).get("failed") and change_of(node).get("to") == spec.get("toRevision")]
        # Who has failed might have been deleted, or have recovered since.
        if not failed:
            return
        self.judged(cluster)
        if all(self.out_before.get(name, False) for name in failed):
            self.violated(write, f"{', '.join(sorted(failed))} served no GPU before, and stopped the rollout")
