"""Changes to a text that nothing has any more: not its ConfigMap, no SharingRollout, and not the record."""
from scenario import COMPONENTS, CONFIG_LABEL, INVALID, REVISION, expect, expect_that, fleet, mps, one, scenario, ts


def half_way_to_a_forgotten_text(middle, **options):
    """A node is half-way to B. A is put back and its pods come anew, and then the text is invalid. Returns the cluster and
    the node. A and B differ in no label."""
    c = fleet(2, ts(8), **options)
    c.edit(any=ts(4, fail=True))
    node = one(c.after("2m").started())
    for rollout in c.all("SharingRollout"):
        c.remove("SharingRollout", rollout["metadata"]["name"])
    c.wait("5s")
    if middle:
        c.edit(any=middle)
        c.wait("5s")
        c.reboot(node)
        c.wait("5s")
    c.edit(any=INVALID)
    for _ in range(3):
        c.after("2m")
    expect("(state, whether it is cordoned)", (c.state(node), c.cordoned(node)), ("", False))
    return c, node


@scenario
def a_text_that_is_not_known_any_more_is_not_verified_by_serving():
    """The pods of a half-way node have read A, and B is forgotten: when B comes back, the node is restarted into it."""
    for options in ({"crds": False}, {}):
        c, node = half_way_to_a_forgotten_text(ts(4), **options)
        c.edit(any=ts(4, fail=True))
        c.converge()
        expect("what the plugins run", {c.loaded[c.plugin(name)] for name in c.nodes()}, {ts(4, fail=True)})


@scenario
def a_node_that_is_half_way_to_a_forgotten_text_goes_on_to_the_next_one():
    """The same, but the next text is another one: both nodes run it, and no node fails."""
    c, node = half_way_to_a_forgotten_text(ts(4))
    c.edit(any=ts(6))
    c.converge()
    expect("what the plugins run", {c.loaded[c.plugin(name)] for name in c.nodes()}, {ts(6)})
    expect_that(c.condition("default", "Ready").get("reason") == "UpToDate", "UpToDate", c.condition("default", "Ready"))


@scenario
def the_text_of_a_node_that_has_another_key_by_now_is_still_known():
    """n01 is half-way to key `b` and held, the rollout and its policy are gone, and its label is taken away: what its pods
    show by then is not taken for `b`, whose text the ConfigMap still has."""
    c = fleet(2, ts(4), more={"b": ts(6)})
    c.policy("gold", priority=10, selector={"kubernetes.io/hostname": "n01"}, profile={"configMapKey": "b"})
    c.after("2m")
    expect("the label of n01", c.labels("n01").get(CONFIG_LABEL), "b")
    c.annotate("Node", "n01", "gpusharing.dev/hold", "true")
    for rollout in c.all("SharingRollout"):
        c.remove("SharingRollout", rollout["metadata"]["name"])
    c.delete_policy("gold")
    c.after("1s")
    c.after("2m")
    c.set_label("n01", CONFIG_LABEL, None)
    c.edit(any=INVALID)
    c.after("2m")
    c.annotate("Node", "n01", "gpusharing.dev/hold", None)
    for _ in range(4):
        c.after("2m")
    expect("the revision of n01", c.annotations("n01").get(REVISION), None)
    c.edit(any=ts(8))
    c.converge()
    expect("what the plugins run", {c.loaded[c.plugin(name)] for name in c.nodes()}, {ts(8)})


def mps_fleet_of_a_forgotten_text():
    """Two nodes run MPS with migStrategy none, as their annotations say, and nothing has that text any more: the key has
    migStrategy single, which no label and no capacity of a node shows."""
    c = fleet(2, ts(4), rollout={"canary": {"nodesPerGroup": 0}})
    c.edit(any=mps(4, mig="none"))
    c.converge()
    for rollout in c.all("SharingRollout"):
        c.remove("SharingRollout", rollout["metadata"]["name"])
    c.forget_own_state()
    c.edit(any=mps(4, mig="single"))
    return c


def expect_on_every_node(c, text):
    runs = {c.loaded[c.pod_of(component, name)["metadata"]["uid"]] for name in c.nodes() for component in COMPONENTS}
    expect("what the pods of the nodes run", runs, {text})


@scenario
def the_mps_daemon_of_a_node_whose_text_is_not_known_is_replaced_with_its_plugin():
    """A, which the nodes run, is forgotten, and B differs from it in migStrategy only: the MPS daemons run B as well."""
    c = mps_fleet_of_a_forgotten_text()
    c.converge()
    expect_on_every_node(c, mps(4, mig="single"))


@scenario
def the_mps_daemon_of_a_node_whose_text_is_not_known_waits_for_its_clients():
    """The same, with a pod that uses the daemon of n01: n01 waits for it, and its daemon is replaced then."""
    c = mps_fleet_of_a_forgotten_text()
    c.consumer("job", "n01")
    daemon = c.pod_of("mps", "n01")["metadata"]["uid"]
    for _ in range(6):
        c.after("1m")
    expect("the daemon of n01", c.pod_of("mps", "n01")["metadata"]["uid"], daemon)
    c.end("job")
    c.converge()
    expect_on_every_node(c, mps(4, mig="single"))


@scenario
def an_mps_daemon_that_has_read_the_text_is_kept_although_the_former_one_is_not_known():
    """The same, but the daemons were restarted since the edit, and run B: plugin and GFD are replaced, and no daemon."""
    c = mps_fleet_of_a_forgotten_text()
    c.wait("1m")
    for name in c.nodes():
        c.drop(c.pod_of("mps", name))
    c.react()
    daemons = {name: c.pod_of("mps", name)["metadata"]["uid"] for name in c.nodes()}
    c.converge()
    expect_on_every_node(c, mps(4, mig="single"))
    expect("the daemons", {name: c.pod_of("mps", name)["metadata"]["uid"] for name in c.nodes()}, daemons)
