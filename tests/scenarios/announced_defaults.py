"""What a ClusterPolicy announces before its DaemonSets have it: which nodes will serve less, and what that does to pods."""
import json

from cluster.expectations import expect_texts
from cluster.program import ask
from scenario import Cluster, expect, expect_that, fleet, mps, one, scenario, ts

FEWER = ("nvidia.com/gpu 16 -> 4 on each of 3 nodes", "n01: 10 of nvidia.com/gpu requested, 4 served afterwards (team/job-0")


def announce(c, **config):
    """Somebody patches devicePlugin.config; None takes a member away. The GPU Operator has not got to it yet."""
    policy = c.get("ClusterPolicy", "cluster-policy")
    members = policy["spec"]["devicePlugin"]["config"]
    for name, value in config.items():
        if value is None:
            del members[name]
        else:
            members[name] = value
    c.touch(policy)


def busy_fleet(text, **options):
    """Three nodes with four GPUs each; pods request ten replicas of n01."""
    c = fleet(3, text, gpus=4, **options)
    for number in range(10):
        c.consumer("job-%d" % number, "n01")
    return c


@scenario
def a_default_that_is_taken_away_is_a_warning_with_the_same_numbers_everywhere():
    """Every node serves 16 replicas, and `default` goes: audit, explain, plan and the policy's status say 16 -> 4, and which pods are beyond."""
    c = busy_fleet(mps(4))
    announce(c, default=None)
    tick = c.after("1m")
    found = one(tick.findings("NodesWouldShrink"))
    expect("finding", (found["severity"], found["object"]["kind"], found["object"]["name"]),
           ("warning", "ClusterPolicy", "cluster-policy"))
    staged = c.condition("default", "Staged")
    expect("Staged", (staged["status"], staged["reason"]), ("False", "NodesWouldShrink"))
    problem = one([p for p in c.audited_problems() if p["reason"] == "NodesWouldShrink"])
    reported = json.loads(ask(["explain", "n02", "-f", "-", "-o", "json"], c.manifests()).stdout)
    for text in (found["message"], staged["message"], problem["message"],
                 one([f["message"] for f in reported["findings"] if f["reason"] == "NodesWouldShrink"])):
        expect_texts(text, "config mps-config default (none)", "3 nodes will serve less (n01, n02, n03)", *FEWER)
    expect_texts(problem["command"], "kubectl patch clusterpolicies.nvidia.com/cluster-policy", '"default":"any"')
    expect("disruptions", tick.disrupts(), False)


@scenario
def an_announced_default_with_fewer_replicas_is_a_warning():
    """The default becomes a key with two replicas in place of four: the same warning, and nothing of it if they are equal."""
    for key, expected in (("two", ["cluster-policy"]), ("again", [])):
        c = busy_fleet(ts(4), more={"two": ts(2), "again": ts(4)})
        announce(c, default=key)
        expect("findings with default %s" % key, c.after("1m").found_on("NodesWouldShrink"), expected)


@scenario
def an_announced_change_that_takes_nothing_has_no_hole_where_the_default_would_stand():
    """Without a default now and then, another ConfigMap is announced: the Event says `default (none)`."""
    c = Cluster({"any": ts(4)}, default="", fallbacks="single")
    c.add_nodes("n01", "n02")
    c.install()
    c.put({"apiVersion": "v1", "kind": "ConfigMap", "metadata": {"name": "other", "namespace": c.namespace},
           "data": {"any": ts(4)}})
    announce(c, name="other")
    notes = [e["event"]["note"] for e in c.after("1m").events("UnstagedClusterPolicy")]
    expect_texts(one(notes), "announces config other default (none)")


@scenario
def a_labelled_node_keeps_what_it_has():
    """The default is taken away, and n02 has a label: only the others are counted."""
    c = busy_fleet(ts(4), more={"two": ts(2)}, version="v0.17.4")
    c.set_label("n02", "nvidia.com/device-plugin.config", "two")
    c.converge()
    announce(c, default=None)
    found = one(c.after("1m").findings("NodesWouldShrink"))
    expect_texts(found["message"], "2 nodes will serve less (n01, n03)")
    expect_that("n02" not in found["message"], "nothing about n02", found["message"])


@scenario
def a_policy_is_told_of_its_own_nodes():
    """The default is taken away from four nodes of two policies: each status names the nodes of its policy alone, and still does so later."""
    c = fleet(4, ts(4), gpus=4)
    c.set_label("n01", "team", "a")
    c.policy("a", priority=10, selector={"team": "a"})
    for _ in range(3):
        c.after("2m")
    announce(c, default=None)
    c.after("1m")
    expect_texts(c.condition("a", "Staged")["message"], "1 node will serve less (n01)")
    expect_texts(c.condition("default", "Staged")["message"], "3 nodes will serve less (n02, n03, n04)")
