"""The objects of the CRDs are deleted first and their kinds some seconds later, as the API server does it."""
from scenario import Cluster, expect, expect_that, fleet, mps, none, numbered, one, scenario, ts

WIDE = ["--cluster-max-unavailable", "100%"]


def delete_crds_as_the_api_server_does(c, looks=2):
    """The objects go first, while their kinds are still served and creations are refused; then the kinds."""
    started = []
    for _ in range(looks):
        for kind in ("SharingRollout", "SharingPolicy"):
            for obj in c.all(kind):
                c.remove(kind, obj["metadata"]["name"])
        started += c.after("3s").started()
    c.remove_crds()
    return started


@scenario
def deleting_the_crds_leaves_a_policy_without_a_stop_its_workloads():
    """A policy says WaitForIdle and `default` says Interrupt; the CRDs are deleted: no daemon goes under its clients."""
    c = Cluster({"any": mps(4)}, options=WIDE)
    c.add_nodes(*numbered(3, "a"), labels={"pool": "a"})
    c.policy("team", priority=5, selector={"pool": "a"}, rollout={"workloads": "WaitForIdle"})
    c.policy("default", priority=-1000, rollout={"workloads": "Interrupt"})
    c.install()
    c.after("1m")
    for name in c.nodes():
        c.consumer("job-" + name, name)
    c.edit(any=mps(8))
    c.after("2m")
    c.after("2m")
    delete_crds_as_the_api_server_does(c)
    expect("pods deleted under running clients", sum([c.after("2m").deleted_pods() for _ in range(4)], []), [])


@scenario
def deleting_the_crds_leaves_a_policy_without_a_stop_its_budget():
    """A policy allows one node at a time and `default` all of them; the CRDs are deleted: one at a time."""
    c = Cluster({"any": ts(4)}, options=WIDE)
    c.add_nodes(*numbered(6, "a"), labels={"pool": "a"})
    free = {"canary": {"nodesPerGroup": 0}}
    c.policy("team", priority=5, selector={"pool": "a"}, rollout=dict(free, maxUnavailable=1, maxUnavailablePerGroup=1))
    c.policy("default", priority=-1000, rollout=dict(free, maxUnavailable="100%", maxUnavailablePerGroup="100%"))
    c.install()
    c.after("1m")
    c.edit(any=ts(8))
    expect("nodes in the first wave", len(c.after("2m").started()), 1)
    delete_crds_as_the_api_server_does(c)
    expect("most that start at once", max(len(c.after("30s").started()) for _ in range(6)), 1)


@scenario
def deleting_the_crds_keeps_a_pause():
    """The neighbour: a paused policy holds, in the API server's order too."""
    c = fleet(6, mps(4))
    c.policy(rollout={"paused": True})
    c.after("1m")
    c.edit(any=mps(8))
    c.after("2m")
    started = delete_crds_as_the_api_server_does(c)
    expect("nodes started", started + sum([c.after("2m").started() for _ in range(5)], []), [])


@scenario
def a_policy_without_a_stop_that_is_deleted_leaves_its_nodes_to_the_next_one():
    """Only `team` is deleted: after a moment its nodes roll under `default`."""
    c = Cluster({"any": ts(4)}, options=WIDE)
    c.add_nodes(*numbered(3, "a"), labels={"pool": "a"})
    free = {"canary": {"nodesPerGroup": 0}}
    c.policy("team", priority=5, selector={"pool": "a"}, rollout=dict(free, maxUnavailable=1, maxUnavailablePerGroup=1))
    c.policy("default", priority=-1000, rollout=dict(free, maxUnavailable="100%", maxUnavailablePerGroup="100%"))
    c.install()
    c.after("1m")
    c.delete_policy("team")
    c.after("1m")
    c.after("1m")
    c.edit(any=ts(8))
    expect("nodes that start at once", len(c.after("2m").started()), 3)


@scenario
def a_policy_that_reverts_does_not_govern_once_its_object_is_gone():
    """deletionPolicy Revert: the nodes go back to the default key, and stay there."""
    c = Cluster({"any": ts(4), "more": ts(8)}, options=WIDE)
    c.add_nodes(*numbered(2, "a"), labels={"pool": "a"})
    c.policy("team", priority=5, selector={"pool": "a"}, profile={"configMapKey": "more"}, deletionPolicy="Revert")
    c.install()
    c.converge()
    expect("capacity under team", {name: c.capacity(name) for name in c.nodes()}, {"a01": 16, "a02": 16})
    c.delete_policy("team")
    c.converge()
    for _ in range(3):
        c.after("10s")
    expect("capacity after team", {name: c.capacity(name) for name in c.nodes()}, {"a01": 8, "a02": 8})


@scenario
def a_paused_policy_that_is_deleted_says_that_it_reverts_nobody():
    """deletionPolicy Revert, and the policy is paused when it is deleted: Progressing is False and names the stop."""
    c = Cluster({"any": ts(4), "more": ts(8)}, options=WIDE)
    c.add_nodes(*numbered(2, "a"), labels={"pool": "a"})
    c.policy("team", priority=5, selector={"pool": "a"}, profile={"configMapKey": "more"}, deletionPolicy="Revert")
    c.install()
    c.converge()
    c.policy("team", rollout={"paused": True})
    c.after("1m")
    c.delete_policy("team")
    for _ in range(3):
        c.after("1m")
    expect("capacity", {name: c.capacity(name) for name in c.nodes()}, {"a01": 16, "a02": 16})
    progressing = c.condition("team", "Progressing")
    expect("Progressing", (progressing.get("status"), progressing.get("reason")), ("False", "Paused"))
    c.policy("team", rollout={"paused": False})
    c.converge()
    expect("capacity after the pause", {name: c.capacity(name) for name in c.nodes()}, {"a01": 8, "a02": 8})


@scenario
def a_key_that_nodes_still_use_comes_back_although_its_sharing_rollout_is_gone():
    """A policy with an inline profile is deleted (Retain), its SharingRollouts too, and GitOps writes the ConfigMap without
    the key: the key that the nodes still use comes back."""
    c = Cluster({"any": none()}, options=["--cluster-max-unavailable", "100%"])
    c.add_nodes(*numbered(2))
    c.install()
    c.policy("share", priority=1, profile={"inline": {"strategy": "time-slicing", "replicas": 8}})
    c.converge(each="3m")
    key = c.labels("n01")["nvidia.com/device-plugin.config"]
    c.delete_policy("share")
    for _ in range(3):
        c.after("1m")
    for rollout in c.rollouts():
        c.remove("SharingRollout", rollout["metadata"]["name"])
    c.after("1m")
    c.configure({"any": none()}, manager="argocd")
    c.after("1m")
    c.after("1m")
    expect_that(key in c.data(), "key %s in the ConfigMap" % key, sorted(c.data()))


@scenario
def a_config_map_that_comes_back_with_the_same_text_while_a_node_verifies_restarts_nothing():
    """The ConfigMap is deleted while a node is Verifying, and restored as it was: the node's new plugin stays."""
    c = fleet(3, ts(4))
    c.edit(any=ts(8))
    c.after("2m")
    name = one(c.in_progress())
    data, plugin = dict(c.data()), c.plugin(name)
    expect("the text that the new plugin runs", c.loaded[plugin], ts(8))
    c.delete_config_map()
    for _ in range(3):
        c.after("2m")
    c.configure(data)
    for _ in range(6):
        c.after("2m")
    expect("whether the plugin of the node is the same as before", c.plugin(name) == plugin, True)


@scenario
def forgetting_with_a_time_in_the_future_does_not_forget_a_later_stop():
    """forget-policies is set to next year, and then a paused policy is deleted: its nodes do not start."""
    c = fleet(4, ts(4))
    c.policy("p", priority=5, selector={"nvidia.com/gpu.present": "true"}, rollout={"paused": True})
    c.after("1m")
    name = c.own_config_maps()[0]["metadata"]["name"]
    c.annotate("ConfigMap", name, "gpusharing.dev/forget-policies", "2027-01-01T00:00:00Z", "gpu-sharing-operator")
    c.after("1m")
    c.edit(any=ts(8))
    c.after("2m")
    c.delete_policy("p")
    ticks = [c.after("2m") for _ in range(6)]
    expect("started", [node for tick in ticks for node in tick.started()], [])


@scenario
def forgetting_with_a_time_that_cannot_be_read_forgets_nothing_and_says_so():
    """forget-policies is not a time: the stop of a deleted policy stays, and a finding says how to set it."""
    c = fleet(4, ts(4))
    c.policy("p", priority=5, selector={"nvidia.com/gpu.present": "true"}, rollout={"paused": True})
    c.after("1m")
    c.edit(any=ts(8))
    c.after("2m")
    c.delete_policy("p")
    c.after("2m")
    name = c.own_config_maps()[0]["metadata"]["name"]
    c.annotate("ConfigMap", name, "gpusharing.dev/forget-policies", "now", "gpu-sharing-operator")
    ticks = [c.after("2m") for _ in range(4)]
    expect("started", [node for tick in ticks for node in tick.started()], [])
    expect("findings", ticks[-1].found_on("ForgetPoliciesUnreadable"), [name])


def stopped_rollout_of_a_team(**switches):
    """A SharingRollout of policy team with one node done; the switches are set between two nodes."""
    c = Cluster({"any": ts(4)}, options=WIDE)
    c.add_nodes(*numbered(4, "a"), labels={"pool": "a"})
    free = {"canary": {"nodesPerGroup": 0}}
    c.policy("team", priority=5, selector={"pool": "a"}, rollout=dict(free, maxUnavailable=1))
    c.policy("default", priority=-1000, rollout=dict(free, maxUnavailable="100%", maxUnavailablePerGroup="100%"))
    c.install()
    c.after("1m")
    c.edit(any=ts(8))
    expect("nodes in the first wave", len(c.after("2m").started()), 1)
    c.switch(**switches)
    for _ in range(2):
        c.after("2m")
    expect("nodes that have the new text", sorted(c.capacity(name) for name in c.nodes()), [8, 8, 8, 16])
    return c


def nobody_starts(c, started=()):
    expect("nodes started", list(started) + sum([c.after("2m").started() for _ in range(10)], []), [])


@scenario
def an_abort_outlives_the_policy_of_its_rollout():
    """The SharingRollout of policy team is aborted, and team is deleted: `default` does not start the same text."""
    c = stopped_rollout_of_a_team(aborted=True)
    c.delete_policy("team")
    nobody_starts(c)


@scenario
def a_pause_of_a_rollout_outlives_the_policy_of_its_rollout():
    """The same with a SharingRollout that is paused."""
    c = stopped_rollout_of_a_team(paused=True)
    c.delete_policy("team")
    nobody_starts(c)


@scenario
def an_abort_of_a_rollout_outlives_the_crds():
    """The SharingRollout is aborted, and the CRDs are deleted with all their objects."""
    c = stopped_rollout_of_a_team(aborted=True)
    nobody_starts(c, delete_crds_as_the_api_server_does(c))


@scenario
def a_pause_of_a_rollout_outlives_the_crds():
    """The SharingRollout is paused, and the CRDs are deleted with all their objects."""
    c = stopped_rollout_of_a_team(paused=True)
    nobody_starts(c, delete_crds_as_the_api_server_does(c))


@scenario
def a_rollout_without_a_stop_goes_on_under_the_next_policy():
    """The neighbour: nobody has stopped the SharingRollout, and team is deleted: every node gets the text."""
    c = stopped_rollout_of_a_team(paused=True)
    c.switch(paused=False)
    c.after("10s")
    c.delete_policy("team")
    for _ in range(10):
        c.after("2m")
    expect("capacities", {c.capacity(name) for name in c.nodes()}, {16})
