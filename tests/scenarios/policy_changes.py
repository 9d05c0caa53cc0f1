"""Policies that change, overlap, come and go."""
from scenario import CONFIG_LABEL, INVALID, Cluster, expect, expect_that, fleet, mps, numbered, one, scenario, ts

WIDE = {"maxUnavailable": "100%", "maxUnavailablePerGroup": "100%", "canary": {"nodesPerGroup": 1, "soak": "1s"}}
ALL = ["--cluster-max-unavailable", "100%"]


def pools(profiles, *policies, **options):
    """Two nodes of pool a, two of pool b; policies as (name, priority, pool, spec)."""
    c = Cluster(profiles, options=ALL, **options)
    c.add_nodes("a1", "a2", labels={"pool": "a"})
    c.add_nodes("b1", "b2", labels={"pool": "b"})
    c.policy(rollout=dict(WIDE))
    for name, priority, pool, spec in policies:
        c.policy(name, priority=priority, selector={"pool": pool} if pool else {}, **spec)
    c.install()
    c.converge()
    return c


def capacities(c):
    return {name: c.capacity(name) for name in c.nodes()}


def labels(c):
    return {name: c.labels(name).get(CONFIG_LABEL, "") for name in c.nodes()}


def by_key(key, **more):
    return dict({"profile": {"configMapKey": key}, "rollout": dict(WIDE)}, **more)


@scenario
def a_selector_that_is_widened_takes_the_new_nodes_along():
    """A policy for pool a selects both pools afterwards: the nodes of b get its key, those of a stay as they are."""
    c = pools({"any": ts(4), "k": ts(8)}, ("p", 5, "a", by_key("k")))
    expect("labels", labels(c), {"a1": "k", "a2": "k", "b1": "", "b2": ""})
    before = c.uids("a1") + c.uids("a2")
    c.policy("p", selector={})
    c.get("SharingPolicy", "p")["spec"]["nodeSelector"] = {}
    c.converge()
    expect("capacities", capacities(c), {name: 16 for name in c.nodes()})
    expect("pods of pool a", c.uids("a1") + c.uids("a2"), before)


@scenario
def a_selector_that_is_narrowed_lets_the_others_keep_their_label():
    """Retain: nodes that leave keep key and capacity and go on under `default`; nothing on them is restarted."""
    c = pools({"any": ts(4), "k": ts(8)}, ("p", 5, None, by_key("k")))
    before = {name: c.uids(name) for name in c.nodes()}
    c.policy("p", selector={"pool": "a"})
    c.converge()
    for _ in range(4):
        c.after("30m")
    expect("labels", labels(c), {name: "k" for name in c.nodes()})
    expect("pods", {name: c.uids(name) for name in c.nodes()}, before)
    expect("total of p and default", (c.counts("p")["total"], c.counts()["total"]), (2, 2))


@scenario
def a_node_that_moves_to_the_pool_of_another_policy_gets_its_key():
    """The pool label of a1 changes to b: a1 goes to b's key, by one change."""
    c = pools({"any": ts(4), "k": ts(8), "m": ts(6)}, ("pa", 5, "a", by_key("k")), ("pb", 5, "b", by_key("m")))
    c.set_label("a1", "pool", "b")
    run = c.converge()
    expect("labels", labels(c), {"a1": "m", "a2": "k", "b1": "m", "b2": "m"})
    expect("capacity of a1", c.capacity("a1"), 12)
    expect_that(set(run.started()) <= {"a1"}, "no other node to start", run.started())


@scenario
def a_priority_that_rises_above_another_one_takes_its_nodes():
    """Two policies select all nodes; the loser gets the higher priority: all nodes go to its key."""
    c = pools({"any": ts(4), "k": ts(8), "m": ts(6)}, ("p", 5, None, by_key("k")), ("q", 4, None, by_key("m")))
    expect("labels before", set(labels(c).values()), {"k"})
    c.get("SharingPolicy", "q")["spec"]["priority"] = 9
    c.policy("q")
    c.converge()
    expect("labels", set(labels(c).values()), {"m"})
    expect("capacities", set(capacities(c).values()), {12})


@scenario
def of_two_policies_of_equal_priority_the_older_one_governs():
    """The newer policy of equal priority governs nothing and says so; when the older one goes, it governs."""
    c = pools({"any": ts(4), "k": ts(8), "m": ts(6)}, ("z-older", 5, None, by_key("k")))
    c.wait("1m")
    c.policy("a-newer", priority=5, selector={}, **by_key("m"))
    c.converge()
    expect("labels", set(labels(c).values()), {"k"})
    overlapped = c.condition("a-newer", "Overlapped")
    expect_that("z-older" in overlapped.get("message", ""), "the policy that governs to be named", overlapped)
    c.delete_policy("z-older")
    c.converge()
    expect("labels when the older one is gone", set(labels(c).values()), {"m"})


@scenario
def a_key_that_appears_later_is_rolled_out_with_a_canary():
    """A policy names a key that does not exist yet: its nodes are Blocked and untouched, and roll when the key comes."""
    c = pools({"any": ts(4)}, ("p", 5, "a", by_key("later")))
    for _ in range(3):
        tick = c.after("10m")
    expect("labels", labels(c)["a1"], "")
    expect("ConfigValid", c.condition("p", "ConfigValid").get("status"), "False")
    c.edit(later=ts(8))
    run = c.converge()
    expect("first wave", len(run.waves()[0]), 1)
    expect("capacities", capacities(c), {"a1": 16, "a2": 16, "b1": 8, "b2": 8})


@scenario
def a_key_that_appears_with_an_invalid_text_restarts_nothing():
    """The key comes with a text that no plugin takes, and is mended later: only then nodes start."""
    c = pools({"any": ts(4)}, ("p", 5, "a", by_key("later")))
    c.edit(later=INVALID)
    run = c.converge()
    expect("starts", run.started(), [])
    expect("label", labels(c)["a1"], "")
    c.edit(later=ts(8))
    c.converge()
    expect("capacities", capacities(c), {"a1": 16, "a2": 16, "b1": 8, "b2": 8})


@scenario
def a_policy_that_is_recreated_with_another_key_goes_there():
    """A policy is deleted and created anew under its name with another key within one look: its nodes go there once."""
    c = pools({"any": ts(4), "k": ts(8), "m": ts(6)}, ("p", 5, "a", by_key("k")))
    c.delete_policy("p")
    c.policy("p", priority=5, selector={"pool": "a"}, **by_key("m"))
    run = c.converge()
    expect("labels", labels(c), {"a1": "m", "a2": "m", "b1": "", "b2": ""})
    expect("starts", sorted(run.started()), ["a1", "a2"])


@scenario
def a_policy_that_is_recreated_with_the_same_spec_restarts_nothing():
    """GitOps deletes and applies a policy with the same content: no node starts."""
    for gap in ("0s", "30s", "5m"):
        c = pools({"any": ts(4), "k": ts(8)}, ("p", 5, "a", by_key("k")))
        before = {name: c.uids(name) for name in c.nodes()}
        c.delete_policy("p")
        if gap != "0s":
            c.after(gap)
        c.policy("p", priority=5, selector={"pool": "a"}, **by_key("k"))
        run = c.converge()
        expect("starts with a gap of " + gap, run.started(), [])
        expect("pods", {name: c.uids(name) for name in c.nodes()}, before)
        expect("labels", labels(c)["a1"], "k")


@scenario
def an_approval_of_an_older_revision_does_not_count_for_the_next():
    """Approve: the edit to 8 is approved, and before a node starts the text becomes 6: nobody starts until 6 is approved."""
    c = fleet(4, ts(4), rollout=dict(WIDE), options=ALL)
    c.policy(mode="Approve")
    c.after("1m")
    c.edit(any=ts(8))
    c.after("1m")
    c.switch(approved=True)
    c.edit(any=ts(6))
    run = c.converge()
    expect("starts", run.started(), [])
    c.switch(approved=True)
    c.converge()
    expect("capacities", set(capacities(c).values()), {12})


@scenario
def an_approval_of_a_text_that_went_and_came_back_is_asked_for_again_or_kept():
    """Approve: 8 is approved and rolled, 4 again is approved and rolled, 8 comes back: no node starts unasked."""
    c = fleet(2, ts(4), rollout=dict(WIDE), options=ALL)
    c.policy(mode="Approve")
    c.after("1m")
    for replicas in (8, 4):
        c.edit(any=ts(replicas))
        c.after("1m")
        c.switch(approved=True)
        c.converge()
        expect("capacities", set(capacities(c).values()), {2 * replicas})
    c.edit(any=ts(8))
    run = c.converge()
    expect("starts without an approval", run.started(), [])
    c.switch(approved=True)
    c.converge()
    expect("capacities", set(capacities(c).values()), {16})


@scenario
def enforce_observe_enforce_goes_on_where_it_was():
    """Observe in the middle of a rollout: nobody starts; Enforce again: the rest follows, nobody twice."""
    c = fleet(4, ts(4), rollout={"maxUnavailable": 1})
    c.edit(any=ts(8))
    while sum(c.capacity(name) == 16 for name in c.nodes()) < 2:
        c.after("2m")
    c.policy(mode="Observe")
    run = c.converge()
    expect("starts under Observe", run.started(), [])
    c.policy(mode="Enforce")
    c.converge()
    expect("capacities", set(capacities(c).values()), {16})
    deleted = [name for tick in c.ticks for name in tick.deleted_pods() if "device-plugin-daemonset" in name]
    expect("plugin pods deleted", len(deleted), 4)


@scenario
def a_mode_that_becomes_approve_half_way_asks_for_the_rest():
    """Two of four nodes are done when the mode becomes Approve: the rest waits for an approval, which can be given."""
    c = fleet(4, ts(4), rollout={"maxUnavailable": 1})
    c.edit(any=ts(8))
    while sum(c.capacity(name) == 16 for name in c.nodes()) < 2:
        c.after("2m")
    c.policy(mode="Approve")
    run = c.converge()
    expect("starts without an approval", run.started(), [])
    expect("phase", c.rollouts()[-1]["status"]["phase"], "AwaitingApproval")
    c.switch(approved=True)
    c.converge()
    expect("capacities", set(capacities(c).values()), {16})


@scenario
def a_policy_that_observes_governs_its_nodes_against_a_lower_one():
    """A policy of higher priority in Observe: an edit starts none of its nodes, although `default` is Enforce."""
    c = pools({"any": ts(4)}, ("p", 5, "a", {"mode": "Observe"}))
    c.edit(any=ts(8))
    run = c.converge()
    expect("starts", sorted(run.started()), ["b1", "b2"])


@scenario
def an_inline_profile_that_changes_leaves_no_node_on_the_former_key():
    """An inline profile goes from 8 to 6 replicas: all nodes follow, to another key, and one key stays for an undo."""
    c = pools({"any": ts(4)}, ("p", 5, "a", {"rollout": dict(WIDE), "profile": {"inline": {
        "strategy": "time-slicing", "replicas": 8}}}))
    expect("capacities", capacities(c), {"a1": 16, "a2": 16, "b1": 8, "b2": 8})
    first = labels(c)["a1"]
    c.get("SharingPolicy", "p")["spec"]["profile"] = {"inline": {"strategy": "time-slicing", "replicas": 6}}
    c.policy("p")
    c.converge()
    for _ in range(6):
        c.after("1h")
    expect("capacities", capacities(c), {"a1": 12, "a2": 12, "b1": 8, "b2": 8})
    expect_that(labels(c)["a1"] != first, "another key", labels(c))
    expect_that(set(c.data()) <= {"any", first, labels(c)["a1"]}, "no other key", sorted(c.data()))


@scenario
def an_inline_profile_that_becomes_a_key_and_inline_again_ends_where_it_says():
    """inline 8, key k (6 replicas), inline 8 again: nodes end on 8, and each change starts each node once."""
    c = pools({"any": ts(4), "k": ts(6)}, ("p", 5, "a", {"rollout": dict(WIDE), "profile": {"inline": {
        "strategy": "time-slicing", "replicas": 8}}}))
    for profile, capacity in (({"configMapKey": "k"}, 12), ({"inline": {"strategy": "time-slicing", "replicas": 8}}, 16)):
        c.get("SharingPolicy", "p")["spec"]["profile"] = profile
        c.policy("p")
        run = c.converge()
        expect("capacities", (c.capacity("a1"), c.capacity("a2")), (capacity, capacity))
        expect("starts", sorted(run.started()), ["a1", "a2"])


@scenario
def a_profile_that_a_policy_drops_leaves_the_label_or_says_what_it_does():
    """A policy drops its key and follows the plugin: Retain keeps label and capacity, and nothing restarts."""
    c = pools({"any": ts(4), "k": ts(8)}, ("p", 5, "a", by_key("k")))
    before = {name: c.uids(name) for name in c.nodes()}
    del c.get("SharingPolicy", "p")["spec"]["profile"]
    c.policy("p")
    c.converge()
    for _ in range(3):
        c.after("30m")
    expect("labels", (labels(c)["a1"], labels(c)["b1"]), ("k", ""))
    expect("pods", {name: c.uids(name) for name in c.nodes()}, before)


@scenario
def a_policy_that_reverts_and_drops_its_profile_gives_the_default_back():
    """The same with deletionPolicy Revert: the nodes go back to the default."""
    c = pools({"any": ts(4), "k": ts(8)}, ("p", 5, "a", by_key("k", deletionPolicy="Revert")))
    del c.get("SharingPolicy", "p")["spec"]["profile"]
    c.policy("p")
    c.converge()
    for _ in range(3):
        c.after("30m")
    expect("labels", (labels(c)["a1"], labels(c)["b1"]), ("", ""))
    expect("capacities", set(capacities(c).values()), {8})


@scenario
def a_deleted_policy_that_reverts_while_its_rollout_runs_takes_its_nodes_back():
    """A policy with Revert is deleted after its first node: that one goes back, the others never start."""
    c = pools({"any": ts(4), "k": ts(8)})
    c.policy("p", priority=5, selector={}, **by_key("k", deletionPolicy="Revert"))
    c.get("SharingPolicy", "p")["spec"]["rollout"].update(maxUnavailable=1)
    while 16 not in capacities(c).values():
        c.after("1m")
    c.delete_policy("p")
    c.converge()
    for _ in range(4):
        c.after("10m")
    expect("capacities", set(capacities(c).values()), {8})
    expect("labels", set(labels(c).values()), {""})
    expect("policy p", c.get("SharingPolicy", "p"), None)


@scenario
def a_takeover_that_is_allowed_later_takes_the_label():
    """A person's label blocks the node until takeover is set: then the node gets the policy's key."""
    c = pools({"any": ts(4), "k": ts(8), "mine": ts(6)})
    c.set_label("a1", CONFIG_LABEL, "mine")
    c.converge()
    c.policy("p", priority=5, selector={"pool": "a"}, **by_key("k"))
    c.converge()
    expect("labels", labels(c), {"a1": "mine", "a2": "k", "b1": "", "b2": ""})
    c.policy("p", takeover=True)
    c.converge()
    expect("labels", labels(c), {"a1": "k", "a2": "k", "b1": "", "b2": ""})
    expect("capacity of a1", c.capacity("a1"), 16)


@scenario
def a_label_that_was_taken_over_is_given_back_by_revert():
    """takeover and Revert: when the policy goes, the node has the person's label again."""
    c = pools({"any": ts(4), "k": ts(8), "mine": ts(6)})
    c.set_label("a1", CONFIG_LABEL, "mine")
    c.converge()
    c.policy("p", priority=5, selector={"pool": "a"}, **by_key("k", takeover=True, deletionPolicy="Revert"))
    c.converge()
    expect("label of a1", labels(c)["a1"], "k")
    c.delete_policy("p")
    c.converge()
    for _ in range(4):
        c.after("10m")
    expect("labels", labels(c), {"a1": "mine", "a2": "", "b1": "", "b2": ""})
    expect("capacities", capacities(c), {"a1": 12, "a2": 8, "b1": 8, "b2": 8})
