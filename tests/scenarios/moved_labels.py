"""A label is moved seconds after an edit of its key that no label shows: recorded with a text that was not read."""
from scenario import CONFIG_LABEL, REVISION, Cluster, expect, expect_that, fleet, numbered, scenario, ts


def moved_after_an_edit(looks, layout="gpu-operator"):
    c = Cluster({"any": ts(4), "slices": ts(8)}, layout=layout)
    c.add_nodes(*numbered(3))
    c.install()
    c.wait("10m")
    c.tick()
    c.edit(slices=ts(8, fail=True))
    c.wait("5s")
    c.set_label("n01", CONFIG_LABEL, "slices")
    for each in looks:
        c.after(each)
    c.converge()
    expect("what the plugin of n01 has loaded", c.loaded[c.plugin("n01")], ts(8, fail=True))


@scenario
def looked_at_half_a_minute_later():
    """First look after 30 s."""
    moved_after_an_edit(["30s"])


@scenario
def looked_at_every_minute():
    """A look every minute."""
    moved_after_an_edit(["1m"] * 6)


@scenario
def looked_at_five_minutes_later():
    """First look after five minutes, beyond projection and grace."""
    moved_after_an_edit(["5m"])


@scenario
def with_the_plugin_chart():
    """The same with the plugin's chart."""
    moved_after_an_edit(["90s"], layout="standalone")


@scenario
def a_node_that_moves_to_a_key_that_was_edited_after_its_pods_came_is_not_restarted():
    """n02's pods came while key two had another text. Its label moves to two long after the edit: its sidecars read the
    present text, and its pods stay."""
    c = fleet(3, ts(4), more={"two": ts(2)})
    c.set_label("n01", CONFIG_LABEL, "two")
    c.converge()
    c.wait("10m")
    c.restart("n02")
    c.wait("10m")
    c.tick()
    c.edit(two=ts(2, fail=True))
    c.converge()
    c.wait("10m")
    pod = c.plugin("n02")
    c.set_label("n02", CONFIG_LABEL, "two")
    c.converge()
    expect("the plugin pod of n02, and what it has loaded", (c.plugin("n02"), c.loaded[c.plugin("n02")]),
           (pod, ts(2, fail=True)))


@scenario
def a_plugin_that_does_not_reload_is_not_taken_for_a_machine_with_more_gpus():
    """A person moves a node with two GPUs from 4 to 2 replicas; GFD reloads, the plugin does not and goes on to serve 8."""
    c = fleet(3, ts(4), more={"two": ts(2)})
    c.behave("unchanged", "n01")
    c.set_label("n01", CONFIG_LABEL, "two")
    c.labels("n01")["nvidia.com/gpu.replicas"] = "2"
    c.touch(c.node("n01"))
    for _ in range(3):
        tick = c.after("2m")
    expect("counts", (c.counts()["upToDate"], c.annotations("n01").get("gpusharing.dev/revision")), (2, None))


@scenario
def a_node_that_is_not_ready_is_not_recorded_by_its_last_status():
    """The same on a NotReady node: nothing is recorded, and no GPU is missing when it is back."""
    c = fleet(3, ts(4), more={"two": ts(2)})
    c.set_ready("n01", False)
    c.set_label("n01", CONFIG_LABEL, "two")
    for _ in range(3):
        c.after("2m")
    c.set_ready("n01", True)
    c.react()
    for _ in range(3):
        tick = c.after("11m")
    expect("capacity", c.capacity("n01"), 4)
    expect("nodes with UnhealthyDevices", tick.found_on("UnhealthyDevices"), [])


def moved_without_gfd(edited, follows=False):
    """Without GFD, a person moves n01 from key any (4 replicas) to key eight (8 replicas). `edited`: another key was edited
    after the pods had come and before the installation. `follows`: the sidecar reloads the plugin."""
    c = Cluster({"any": ts(4), "eight": ts(8), "other": ts(2)}, layout="chart")
    c.add_nodes(*numbered(2))
    if edited:
        c.wait("10m")
        c.edit(other=ts(3))
    c.install()
    if follows:
        c.set_label("n01", CONFIG_LABEL, "eight")
    else:
        c.labels("n01")[CONFIG_LABEL] = "eight"
        c.selected[c.plugin("n01")] = "eight"
        c.touch(c.node("n01"))
    for _ in range(8):
        c.after("3m")
    expect("replicas (label, capacity) of n01", (c.labels("n01")["nvidia.com/gpu.replicas"], c.capacity("n01")), ("8", 16))
    expect("what the plugin of n01 has loaded", c.loaded[c.plugin("n01")], ts(8))
    expect("Ready", c.condition("default", "Ready").get("reason"), "UpToDate")


@scenario
def a_plugin_that_does_not_follow_its_label_is_restarted_where_its_pods_are_newer_than_the_text():
    """Without GFD, a plugin that serves 8 devices of its former key is not recorded with the new key: it is restarted."""
    moved_without_gfd(False)


@scenario
def a_plugin_that_does_not_follow_its_label_is_restarted_where_another_key_was_edited_before_the_installation():
    """The same where the number of GPUs is not proven: 8 devices fit both keys, so they prove neither."""
    moved_without_gfd(True)


@scenario
def a_plugin_that_follows_its_label_is_recorded_where_there_is_no_gfd():
    """The neighbour: the sidecar reloads the plugin, and the node comes to rest with the new key."""
    moved_without_gfd(True, follows=True)


def fight_over_a_label(value, takeover):
    """Another client writes the profile label of n01 each minute: what the operator says of n01 within an hour."""
    c = Cluster({"any": ts(4), "a": ts(6)})
    c.add_nodes(*numbered(3))
    c.policy("p", priority=5, takeover=takeover, profile={"configMapKey": "a"})
    c.install()
    c.converge(most=40)
    said = []
    for _ in range(60):
        c.set_label("n01", CONFIG_LABEL, value)
        tick = c.after("1m", held="11m")
        said += [finding["reason"] for finding in tick.all_findings if finding["object"]["name"] == "n01"]
    expect_that("LabelOwnedByOther" in said, "a finding that names the conflict", said)


@scenario
def another_client_that_takes_the_label_away_again_and_again_is_reported():
    """It removes the label: the operator sets it again, and says so."""
    fight_over_a_label(None, False)


@scenario
def another_client_that_overwrites_the_label_again_and_again_is_reported():
    """It sets another value, and the policy takes labels over."""
    fight_over_a_label("any", True)


def edited_while_held(hold, release):
    """The label of n01 is moved while somebody holds it, and its new key is edited before that ends."""
    c = Cluster({"any": ts(4), "slices": ts(8)})
    c.add_nodes(*numbered(3))
    c.install()
    hold(c)
    c.set_label("n01", CONFIG_LABEL, "slices")
    for _ in range(5):
        c.after("2m")
    c.edit(slices=ts(8, fail=True))
    for _ in range(3):
        c.after("10m")
    release(c)
    c.after("10s")
    c.converge()
    expect("what the plugin of n01 has loaded", loaded_by(c, "n01"), ts(8, fail=True))


def loaded_by(c, name):
    return c.loaded[c.plugin(name)]


@scenario
def a_text_that_comes_while_a_node_is_held_is_not_one_that_its_sidecars_have_read():
    """A person holds n01 by gpusharing.dev/hold: n01 is not recorded with a text that no label shows, and is restarted."""
    edited_while_held(lambda c: c.annotate("Node", "n01", "gpusharing.dev/hold", "true"),
                      lambda c: c.annotate("Node", "n01", "gpusharing.dev/hold", None))


@scenario
def a_text_that_comes_while_a_node_is_quarantined_is_not_one_that_its_sidecars_have_read():
    """The same while a remediation system has quarantined n01."""
    edited_while_held(lambda c: c.set_label("n01", "dgxc.nvidia.com/nvsentinel-state", "quarantined"),
                      lambda c: c.set_label("n01", "dgxc.nvidia.com/nvsentinel-state", None))


@scenario
def a_text_that_comes_while_a_node_is_not_ready_is_not_one_that_its_sidecars_have_read():
    """The same while n01 is NotReady."""
    edited_while_held(lambda c: c.set_ready("n01", False), lambda c: c.set_ready("n01", True))


def keep_away_its_pods(c):
    """n01 has a taint that the plugin does not tolerate, and its new GFD pod does not start: the node is Blocked."""
    c.set_label("n01", "nvidia.com/mig.config.state", "pending")
    c.node("n01")["spec"]["taints"] = [{"key": "maintenance", "value": "true", "effect": "NoSchedule"}]
    c.touch(c.node("n01"))
    c.file_mode = True
    c.behave("starting", "n01")
    c.restart_gfd("n01")


def let_its_pods_come(c):
    c.set_label("n01", "nvidia.com/mig.config.state", "success")
    c.node("n01")["spec"].pop("taints")
    c.behave("healthy", "n01")
    c.drop(c.pod_of("gfd", "n01"))
    c.react()


@scenario
def a_text_that_comes_while_an_obstacle_is_named_before_the_holder_is_not_one_that_its_sidecars_have_read():
    """The same while the MIG manager holds n01, which has a taint and shows no GPU labels: the taint is named."""
    edited_while_held(keep_away_its_pods, let_its_pods_come)


def moved_while_something_holds_the_restart_back(**policy):
    """n01 moves to key slices 20 s after an edit of it that no label shows: its sidecars read the former text."""
    c = fleet(2, ts(4), more={"slices": ts(6, fail=True)})
    c.policy(**policy)
    c.after("5m")
    c.edit(slices=ts(6))
    c.wait("20s")
    c.set_label("n01", CONFIG_LABEL, "slices")
    expect("what the plugin has loaded", c.loaded[c.plugin("n01")], ts(6, fail=True))
    before = c.annotations("n01").get(REVISION)
    c.after("1s")
    for _ in range(10):
        c.after("3m")
    return c, before


def expect_not_recorded(c, before):
    said = c.condition("default", "Ready")
    expect("what the plugin has loaded", c.loaded[c.plugin("n01")], ts(6, fail=True))
    expect("the recorded revision", c.annotations("n01").get(REVISION), before)
    expect_that(said["reason"] != "UpToDate", "not UpToDate", said)


@scenario
def a_text_that_a_moved_label_cannot_have_read_is_not_recorded_under_a_pause():
    """The policy is paused, so the restart after two minutes does not come: n01 is not UpToDate."""
    expect_not_recorded(*moved_while_something_holds_the_restart_back(rollout={"paused": True}))


@scenario
def a_text_that_a_moved_label_cannot_have_read_is_not_recorded_under_observe():
    """The same in mode Observe."""
    expect_not_recorded(*moved_while_something_holds_the_restart_back(mode="Observe"))


@scenario
def a_text_that_a_moved_label_cannot_have_read_is_not_recorded_without_a_slot():
    """The same where maxUnavailable is 0."""
    expect_not_recorded(*moved_while_something_holds_the_restart_back(rollout={"maxUnavailable": 0}))


@scenario
def a_text_that_a_moved_label_cannot_have_read_is_not_recorded_outside_a_window():
    """The same where windows are at night."""
    window = {"cron": "0 2 * * *", "duration": "1h", "timeZone": "UTC"}
    expect_not_recorded(*moved_while_something_holds_the_restart_back(rollout={"maintenanceWindows": [window]}))


@scenario
def a_moved_label_that_nothing_holds_back_ends_with_the_text():
    """The neighbour: n01 is restarted."""
    c, _ = moved_while_something_holds_the_restart_back()
    expect("what the plugin has loaded", c.loaded[c.plugin("n01")], ts(6))


@scenario
def a_policy_that_moves_to_a_third_key_is_not_taken_for_another_client():
    """The label of n01 has been written for key `a`, and the policy wants `b` before the node is verified: nobody else wrote
    the label, and no finding says so."""
    c = fleet(2, ts(4), more={"a": ts(6), "b": ts(8)})
    c.policy("p", priority=5, selector={"kubernetes.io/hostname": "n01"}, profile={"configMapKey": "a"})
    c.after("2m")
    expect("the label of n01", c.labels("n01").get(CONFIG_LABEL), "a")
    c.get("SharingPolicy", "p")["spec"]["profile"] = {"configMapKey": "b"}
    c.policy("p")
    said = [tick.findings("LabelOwnedByOther") for tick in c.converge(each="30s").ticks]
    expect("findings that name another client", [found for found in said if found], [])
    expect("the label of n01", c.labels("n01").get(CONFIG_LABEL), "b")


def moved_back_half_way(before, edited, behaviour="healthy"):
    """A policy moves n01 from `any` to `b`, and nothing on the node shows it yet. The policy goes, `any` is edited, and five
    seconds later a person takes the label away: the sidecars read the text before that edit."""
    c = fleet(2, before, more={"b": ts(4)})
    c.after("10m")
    c.policy("p", priority=5, selector={"kubernetes.io/hostname": "n01"}, profile={"configMapKey": "b"})
    c.behave(behaviour, "n01")
    c.after("20s")
    expect("the label of n01", c.labels("n01").get(CONFIG_LABEL), "b")
    c.delete_policy("p")
    for _ in range(5):
        c.after("10s")  # Shorter than a node must show its profile.
    c.edit(any=edited)
    c.wait("5s")
    c.set_label("n01", CONFIG_LABEL, None)
    c.behave("healthy", "n01")
    c.after("15s")
    expect("what the plugin of n01 has loaded", loaded_by(c, "n01"), before)
    c.converge(most=20)
    expect("what the plugins have loaded", [loaded_by(c, name) for name in c.nodes()], [edited] * 2)
    expect("Ready", c.condition("default", "Ready").get("reason"), "UpToDate")


@scenario
def a_label_that_a_person_takes_away_half_way_does_not_verify_a_text_that_no_label_shows():
    """`any` is edited to a text that no label shows: n01 is not Verified with it by what it shows, and is restarted."""
    moved_back_half_way(ts(8), ts(8, fail=True), "unchanged")


@scenario
def a_label_that_a_person_takes_away_half_way_does_not_verify_the_text_of_the_change_under_another_key():
    """`any` is edited to the text that `b` has: that revision under another key was not read either."""
    moved_back_half_way(ts(4, fail=True), ts(4))
