"""Texts that the pods cannot have read (S11)."""
import datetime

from scenario import CONFIG_LABEL, REVISION, Cluster, expect, expect_that, fleet, mps, numbered, scenario, stamp, ts


def loaded(c, name):
    return c.loaded[c.plugin(name)]


@scenario
def a_text_that_came_back_while_the_new_pods_started_is_not_verified():
    """A and B differ in no label. n01 is changed to B; its new plugin pod reads A, because somebody has put A back for ten
    seconds; then B is back. n01 is not Verified with B before its pods have read B."""
    a, b = ts(4), ts(4, fail=True)
    c = fleet(1, a)
    c.edit(any=b)
    c.machines["n01"].behaviour = "absent"  # The image is pulled: the new pod comes later.
    c.after("2m")
    c.wait("20s")
    c.edit(any=a)
    c.behave("healthy", "n01")              # The new pod comes, and reads A.
    c.wait("10s")
    c.edit(any=b)
    for _ in range(8):
        c.after("2m")
    ready = c.condition("default", "Ready")
    expect_that(loaded(c, "n01") == b or ready["reason"] != "UpToDate", "B in the pods of n01, or no UpToDate", ready)


@scenario
def a_failed_node_does_not_recover_with_a_text_that_its_pods_have_not_read():
    """The canary fails on B. Somebody puts A back and restarts its pods, and then puts B back (with no look between, as
    when the operator is restarted): n01 is not Recovered with B."""
    a, b = ts(4), ts(4, fail=True)
    c = fleet(1, a)
    c.behave("crash", "n01")
    c.edit(any=b)
    for _ in range(8):
        c.after("2m")
    expect("state", c.state("n01"), "Failed")
    c.edit(any=a)
    c.behave("healthy", "n01")
    c.restart("n01")
    c.wait("20s")
    c.edit(any=b)
    for _ in range(8):
        c.after("2m")
    ready = c.condition("default", "Ready")
    expect_that(loaded(c, "n01") == b or ready["reason"] != "UpToDate", "B in the pods of n01, or no UpToDate", ready)


@scenario
def the_lost_record_completes_no_rollout_that_no_label_shows():
    """A text that no label shows is half-way rolled out when the operator's state is lost: the SharingRollout does not say
    Completed with all nodes updated, and the policy does not say that every node runs its profile."""
    c = fleet(3, ts(4))
    c.edit(any=ts(4, fail=True))
    c.after("2m")
    expect("nodes in flight", len(c.in_progress()), 1)
    c.forget_own_state()
    for _ in range(6):
        c.after("2m")
    behind = [name for name in c.nodes() if loaded(c, name) != ts(4, fail=True)]
    expect("nodes whose pods have another text", len(behind), 2)
    expect("rollouts that say Completed", [r["metadata"]["name"] for r in c.rollouts("Completed")], [])
    expect_that(c.condition("default", "Ready")["reason"] != "UpToDate", "another reason than UpToDate",
                c.condition("default", "Ready"))


def labels_are_true(c):
    for name in c.nodes():
        expect("label nvidia.com/gpu.replicas of %s, whose pods have %r" % (name, loaded(c, name)),
               "replicas: " + c.labels(name)["nvidia.com/gpu.replicas"] in loaded(c, name), True)


@scenario
def the_lost_record_makes_no_label_false_where_there_is_no_gfd():
    """The plugin's chart without GFD, an edit from 4 to 8 replicas waits behind a pause, and the operator's state is lost:
    the label of nodes that serve 4 replicas does not become 8, and the policy does not say UpToDate."""
    c = fleet(2, ts(4), layout="chart", rollout={"paused": True})
    labels_are_true(c)
    c.edit(any=ts(8))
    c.after("2m")
    c.forget_own_state()
    for _ in range(4):
        c.after("2m")
    expect("capacity", {c.capacity(name) for name in c.nodes()}, {8})
    labels_are_true(c)
    expect_that(c.condition("default", "Ready")["reason"] != "UpToDate", "another reason than UpToDate",
                c.condition("default", "Ready"))


@scenario
def the_lost_record_completes_no_rollout_where_there_is_no_gfd():
    """The same in the middle of a rollout: the SharingRollout does not say Completed, and the label stays."""
    c = fleet(2, ts(4), layout="chart")
    c.edit(any=ts(8))
    c.after("2m")
    c.after("30s")
    c.forget_own_state()
    for _ in range(6):
        c.after("2m")
    expect("rollouts that say Completed while a node serves the old text",
           bool(c.rollouts("Completed")) and 8 in {c.capacity(name) for name in c.nodes()}, False)
    labels_are_true(c)


@scenario
def an_installation_writes_no_label_that_the_pods_have_not_read():
    """The plugin's chart without GFD: the pods run 4 replicas, the key was edited to 8 before the installation."""
    c = Cluster({"any": ts(4)}, layout="chart")
    c.add_nodes(*numbered(2))
    c.wait("10m")
    c.edit(any=ts(8))
    c.install()
    for _ in range(3):
        c.after("2m")
    for name in c.nodes():
        expect_that(c.labels(name).get("nvidia.com/gpu.replicas") in (None, "4"), "no label, or 4",
                    c.labels(name).get("nvidia.com/gpu.replicas"))


def edited_without_its_time(before, after, **options):
    """The key was edited, and the ConfigMap does not show when: its managedFields are cleared. An hour passes."""
    c = fleet(3, before, **options)
    c.edit(any=after)
    c.get("ConfigMap", c.config_map, c.namespace)["metadata"]["managedFields"] = []
    for _ in range(30):
        c.after("2m")
    return c


def every_node_is_restarted_once(c):
    deleted = [name for tick in c.ticks for name in tick.deleted_pods() if "device-plugin-daemonset" in name]
    expect("how many plugin pods were deleted", len(deleted), len(c.nodes()))
    expect("states", {c.state(name) for name in c.nodes()}, {""})


@scenario
def an_edit_whose_time_is_unknown_is_rolled_out_once():
    """Four replicas become eight: each node is restarted once, although each look is a new operator."""
    c = edited_without_its_time(ts(4), ts(8))
    expect("capacity", {c.capacity(name) for name in c.nodes()}, {16})
    every_node_is_restarted_once(c)


@scenario
def an_edit_whose_time_is_unknown_and_that_no_label_shows_is_rolled_out_once():
    """The same for failRequestsGreaterThanOne."""
    c = edited_without_its_time(mps(4), mps(4, fail=False))
    expect("what the plugins have loaded", {loaded(c, name) for name in c.nodes()}, {mps(4, fail=False)})
    every_node_is_restarted_once(c)


@scenario
def an_edit_whose_time_is_unknown_is_rolled_out_once_under_on_delete():
    """The same where the DaemonSets have updateStrategy OnDelete."""
    c = edited_without_its_time(ts(4), ts(8), on_delete=True)
    expect("capacity", {c.capacity(name) for name in c.nodes()}, {16})
    every_node_is_restarted_once(c)


@scenario
def a_container_that_was_restarted_by_a_clock_that_is_ahead_has_not_read_a_later_edit():
    """Containers of n01 were restarted long ago, and their startedAt is five minutes ahead; no time shows the kubelet's
    clock. An edit that no label shows follows 90 s later: it is rolled to all nodes."""
    edit = ts(4, fail=True)
    c = fleet(3, ts(4))
    c.wait("1h")
    for pod in c.operand_pods("n01"):
        for status in pod["status"]["containerStatuses"]:
            status.update(restartCount=1, state={"running": {"startedAt": stamp(c.clock + datetime.timedelta(minutes=5))}})
        c.touch(pod)
    c.wait("90s")
    c.edit(any=edit)
    c.after("10s")
    c.converge()
    expect("what the plugins run", [loaded(c, name) for name in c.nodes()], [edit] * 3)


def not_up_to_date(c):
    ready = c.condition("default", "Ready")
    expect_that(ready["reason"] != "UpToDate", "another reason than UpToDate", ready)


@scenario
def a_node_that_has_lost_its_annotations_runs_what_its_pods_have_read():
    """n01 has been changed to B, which no label shows, when A is put back, and somebody removes what says so on n01: it is
    changed back all the same, and until then the policy does not say UpToDate. n02 was never changed, and is not now."""
    a, b = ts(4), ts(4, fail=True)
    c = fleet(2, a, rollout={"canary": {"nodesPerGroup": 0}})
    c.annotate("Node", "n02", "gpusharing.dev/hold", "true")
    c.edit(any=b)
    for _ in range(4):
        c.after("2m")
    expect("what n01 runs", loaded(c, "n01"), b)
    before = c.plugin("n02")
    c.edit(any=a)
    for key in (REVISION, "gpusharing.dev/profile"):
        c.annotate("Node", "n01", key, None)
    c.after("1s")
    not_up_to_date(c)
    c.converge()
    expect("what n01 runs", loaded(c, "n01"), a)
    expect("the plugin of n02", c.plugin("n02"), before)


@scenario
def pods_that_came_between_an_edit_and_its_return_are_replaced():
    """B, which no label shows, is paused. n01 is rebooted, and its pods are not Ready yet when A is put back: n01 does not
    count as up to date, and is changed once."""
    a, b = ts(4), ts(4, fail=True)
    c = fleet(2, a, rollout={"paused": True, "canary": {"nodesPerGroup": 0}})
    c.edit(any=b)
    c.after("1m")
    c.behave("starting", "n01")
    c.reboot("n01")
    c.after("20s")
    c.edit(any=a)
    c.behave("healthy", "n01")
    for pod in c.operand_pods("n01"):
        pod["status"]["conditions"] = [{"type": "Ready", "status": "True"}]
        for status in pod["status"]["containerStatuses"]:
            status["ready"] = True
        c.touch(pod)
    c.react()
    expect("what n01 runs", loaded(c, "n01"), b)
    c.after("1m")
    not_up_to_date(c)
    c.policy(rollout={"paused": False})
    deleted = sum([tick.deleted_pods() for tick in c.converge().ticks], [])
    expect("what n01 runs", loaded(c, "n01"), a)
    expect("plugin pods that were deleted", len([name for name in deleted if "plugin" in name]), 1)


@scenario
def pods_that_pulled_their_image_until_an_edit_was_taken_back_stay():
    """The neighbour: the same, but the containers start so long after A is back that their kubelet has projected it, and
    have read A. Nothing is restarted."""
    a, b = ts(4), ts(4, fail=True)
    c = fleet(2, a, rollout={"paused": True, "canary": {"nodesPerGroup": 0}})
    c.edit(any=b)
    c.after("1m")
    c.behave("starting", "n01")
    c.reboot("n01")
    c.after("20s")
    c.edit(any=a)
    c.after("1s")
    c.wait("2m")
    c.behave("healthy", "n01")
    for pod in c.operand_pods("n01"):
        c.loaded[pod["metadata"]["uid"]] = a
        pod["status"]["conditions"] = [{"type": "Ready", "status": "True"}]
        pod["status"]["startTime"] = pod["metadata"]["creationTimestamp"]
        for status in pod["status"]["containerStatuses"]:
            status.update(ready=True, state={"running": {"startedAt": stamp(c.clock)}})
        c.touch(pod)
    c.react()
    c.policy(rollout={"paused": False})
    deleted = sum([tick.deleted_pods() for tick in c.converge().ticks], [])
    expect("pods that were deleted", deleted, [])


@scenario
def pods_that_came_after_an_edit_was_taken_back_stay_when_another_key_is_edited():
    """B, which no label shows, is paused and taken back, and the operator sees that. n01 is rebooted, and then another key
    is edited: the time of that edit is not the one at which A came back, and n01 stays."""
    for paused in (True, False):  # Until the next look.
        a, b = ts(4), ts(4, fail=True)
        c = fleet(3, a, more={"other": ts(2)}, rollout={"paused": True, "canary": {"nodesPerGroup": 0}})
        c.set_label("n03", CONFIG_LABEL, "other")
        c.converge()
        c.wait("10m")
        c.edit(any=b)
        c.after("1m")
        c.edit(any=a)
        c.after("10s")
        c.wait("20s")
        c.reboot("n01")
        c.wait("20s")
        c.edit(other=ts(3))
        c.policy(rollout={"paused": paused})
        before = c.plugin("n01")
        c.after("1m")
        c.policy(rollout={"paused": False})
        c.converge()
        expect("the plugin pod of n01", c.plugin("n01"), before)


@scenario
def a_pod_that_is_newer_than_now_has_not_read_a_later_edit():
    """The API server's clock is set back by five minutes after n01 was rebooted, and a text that no label shows follows:
    the pods of n01 seem to be newer than it. They are replaced like the others, also if the rollout is paused until the
    clock has passed their time."""
    for pause in ("0s", "10m"):
        a, b = ts(4), ts(4, fail=True)
        c = fleet(2, a, rollout={"paused": True})
        c.reboot("n01")
        c.after("10s")
        c.set_clock_back("5m")
        c.edit(any=b)
        c.after("30s")
        c.after(pause)
        c.policy(rollout={"paused": False})
        c.converge()
        expect("what the plugins run after a pause of " + pause, [loaded(c, name) for name in c.nodes()], [b, b])


@scenario
def pods_that_came_after_the_clock_was_set_back_stay():
    """The neighbour: n01 is rebooted after the edit, under the clock that was set back: it is recorded, and its pods stay."""
    a, b = ts(4), ts(4, fail=True)
    c = fleet(2, a, rollout={"paused": True})
    c.after("10s")
    c.set_clock_back("5m")
    c.edit(any=b)
    c.wait("20s")
    c.reboot("n01")
    before = c.plugin("n01")
    c.after("30s")
    c.policy(rollout={"paused": False})
    c.converge()
    expect("what the plugins run", [loaded(c, name) for name in c.nodes()], [b, b])
    expect("the plugin of n01", c.plugin("n01"), before)


@scenario
def a_plugin_that_started_again_under_a_text_that_was_taken_back_is_replaced():
    """MPS is edited to time-slicing under a pause, the plugin's container of n02 starts again and reads that, and then MPS
    is back. Its capacity and GFD's labels are those of MPS: nevertheless n02 is not up to date, and is changed once."""
    c = fleet(3, mps(4), rollout={"paused": True})
    c.edit(any=ts(4))
    c.after("5m")
    c.restart_container("n02")
    c.after("1m")
    c.edit(any=mps(4))
    expect("(what n02 runs, its capacity)", (loaded(c, "n02"), c.capacity("n02")), (ts(4), 8))
    c.after("1m")
    not_up_to_date(c)
    c.policy(rollout={"paused": False})
    deleted = sum([tick.deleted_pods() for tick in c.converge().ticks], [])
    expect("what n02 runs", loaded(c, "n02"), mps(4))
    expect("plugin pods that were deleted", len([name for name in deleted if "plugin-daemonset" in name]), 1)


@scenario
def a_plugin_that_started_again_before_an_edit_that_was_taken_back_stays():
    """The neighbour: it starts again before the edit, or long after MPS is back."""
    for before in (True, False):
        c = fleet(3, mps(4), rollout={"paused": True})
        if before:
            c.restart_container("n02")
            c.after("30s")
        c.edit(any=ts(4))
        c.after("5m")
        c.edit(any=mps(4))
        if not before:
            c.after("5m")
            c.restart_container("n02")
        c.after("1m")
        c.policy(rollout={"paused": False})
        deleted = sum([tick.deleted_pods() for tick in c.converge().ticks], [])
        expect("pods that were deleted", deleted, [])


@scenario
def a_key_that_nodes_begin_to_use_does_not_make_the_texts_of_another_one_forgotten():
    """The MIG manager holds n01. A policy gives n02 another key in the second in which `any` is edited to B, which no label
    shows. n01 reboots into B, and A is put back: when nobody holds n01 any more it is changed back, and is not UpToDate."""
    a, b = ts(4), ts(4, fail=True)
    c = fleet(2, a, more={"slices": ts(6)})
    c.set_label("n01", "nvidia.com/mig.config.state", "pending")
    c.after("1m")
    c.policy("p", priority=5, selector={"kubernetes.io/hostname": "n02"}, profile={"configMapKey": "slices"})
    c.edit(any=b)
    c.after("2m")
    c.after("2m")
    c.reboot("n01")
    c.after("1m")
    c.edit(any=a)
    c.after("1s")
    c.after("12m")
    expect("what n01 runs while it is held", loaded(c, "n01"), b)
    c.set_label("n01", "nvidia.com/mig.config.state", None)
    c.converge()
    expect("what the nodes run", [loaded(c, name) for name in c.nodes()], [a, ts(6)])


@scenario
def two_keys_that_are_edited_at_once_do_not_make_their_texts_forgotten():
    """The same where n02 has key slices already, and one edit changes both keys, as `kubectl apply` of the whole ConfigMap."""
    a, b = ts(4), ts(4, fail=True)
    c = fleet(2, a, more={"slices": ts(6)})
    c.set_label("n02", CONFIG_LABEL, "slices")
    c.converge()
    c.set_label("n01", "nvidia.com/mig.config.state", "pending")
    c.after("1m")
    c.edit(any=b, slices=ts(8))
    c.after("2m")
    c.after("2m")
    c.reboot("n01")
    c.after("1m")
    c.edit(any=a)
    c.after("1s")
    c.after("12m")
    expect("what n01 runs while it is held", loaded(c, "n01"), b)
    c.set_label("n01", "nvidia.com/mig.config.state", None)
    c.converge()
    expect("what the nodes run", [loaded(c, name) for name in c.nodes()], [a, ts(8)])


@scenario
def pods_that_came_before_two_keys_were_edited_are_replaced_if_either_edit_can_have_been_the_return():
    """B is paused and taken back, n01 is rebooted, and then key slices of n02 is edited, with no look in between: A can have
    come back with that edit as well, after the reboot. n01 is in doubt, and is changed once."""
    a, b = ts(4), ts(4, fail=True)
    c = fleet(2, a, more={"slices": ts(6)}, rollout={"canary": {"nodesPerGroup": 0}})
    c.set_label("n02", CONFIG_LABEL, "slices")
    c.converge()
    c.policy(rollout={"paused": True})
    c.after("1m")
    c.edit(any=b)
    c.after("2m")
    c.edit(any=a)
    c.wait("5s")
    c.reboot("n01")
    c.wait("5s")
    c.edit(slices=ts(8))
    c.after("1s")
    not_up_to_date(c)
    c.policy(rollout={"paused": False})
    deleted = sum([tick.deleted_pods() for tick in c.converge().ticks], [])
    expect("plugin pods that were deleted", len([name for name in deleted if "plugin-daemonset" in name]), 2)
    expect("what n01 runs", loaded(c, "n01"), a)
    expect("what n02 runs", loaded(c, "n02"), ts(8))


def two_pods_under_a_text_that_comes_and_goes(not_ready):
    """MPS. B differs from A in migStrategy, which no label shows; the plugin of n02 is created while the key has B."""
    c = fleet(3, mps(4, mig="none"), rollout={"canary": {"nodesPerGroup": 0}})
    if not_ready:
        c.set_ready("n03", False)
        c.react()
    else:
        c.policy(rollout={"paused": True})
    c.edit(any=mps(4, mig="single"))
    c.after("1s")
    c.after("2m")
    c.drop(c.pod_of("plugin", "n02"))
    c.react()
    c.after("1s")
    c.wait("20s")
    c.edit(any=mps(4, mig="none"))
    c.after("1s")
    c.set_ready("n03", True)
    c.policy(rollout={"paused": False})
    c.converge()
    loaded = {c.loaded[c.pod_of(component, name)["metadata"]["uid"]] for name in c.nodes() for component in ("plugin", "mps")}
    expect("what the plugins and daemons have loaded", loaded, {mps(4, mig="none")})


@scenario
def a_plugin_that_read_a_text_while_no_slot_was_free_is_replaced_when_that_is_taken_back():
    """n03 is not Ready and holds the only slot, so that no node starts for B. Its text is taken back, and n02 has read it."""
    two_pods_under_a_text_that_comes_and_goes(not_ready=True)


@scenario
def a_plugin_that_read_a_text_under_a_pause_is_replaced_when_that_is_taken_back():
    """The same under a pause of the policy."""
    two_pods_under_a_text_that_comes_and_goes(not_ready=False)


FLAGS = "flags:\n  plugin:\n    passDeviceSpecs: true\n"


def paused_with_edits_in_quick_succession(*texts):
    """The policy is paused at the first text, every pod sees the second one, and the others follow seconds later; then the
    plugin's container of n02 starts again."""
    c = fleet(2, texts[0], rollout={"paused": True})
    c.edit(any=texts[1])
    c.after("1s")
    c.after("3m")
    for text in texts[2:]:
        c.edit(any=text)
        c.after("1s")
        c.wait("3s")
    c.wait("20s")
    c.restart_container("n02")
    return c


@scenario
def a_container_that_started_again_between_two_other_texts_is_in_doubt():
    """MPS. Its kubelet can have projected either of two texts, and no label shows either. The first text comes back: n02
    is not up to date before it has been changed, once, and n01 stays."""
    first, second, third = mps(4), mps(4, fail=False), FLAGS + mps(4)
    for texts in ([second, third], [second, third, second], [second, third, second, third, second]):
        c = paused_with_edits_in_quick_succession(first, *texts)
        c.after("3m")
        c.edit(any=first)
        c.after("1s")
        c.after("3m")
        not_up_to_date(c)
        expect("the daemon of n02 has read the first text", c.loaded[c.pod_of("mps", "n02")["metadata"]["uid"]], first)
        c.policy(rollout={"paused": False})
        run = c.converge()
        expect("nodes that were restarted", run.restarted(), ["n02"])
        expect("what n02 runs", loaded(c, "n02"), first)


@scenario
def a_container_that_started_again_while_a_text_came_back_is_in_doubt():
    """The text is put back before the container starts again, so shortly that its kubelet can still have shown it the other
    one, and it has read that."""
    first, second = mps(4), mps(4, fail=False)
    c = paused_with_edits_in_quick_succession(first, second, first)
    expect("what n02 runs", loaded(c, "n02"), second)
    c.after("3m")
    not_up_to_date(c)
    c.policy(rollout={"paused": False})
    expect("nodes that were restarted", c.converge().restarted(), ["n02"])
    expect("what n02 runs", loaded(c, "n02"), first)


def revision_of(text):
    c = fleet(1, ts(2))
    c.edit(any=text)
    c.converge()
    return c.annotations("n01")[REVISION]


@scenario
def pods_that_came_under_a_text_in_between_do_not_verify_the_text_of_their_change():
    """Three texts that no label shows. n01 is changed to the second one; its new pods come while the first one is back for ten
    seconds, and then there is the third one: n01 is not recorded with the second one, and runs the third one in the end."""
    first, second, third = ts(4), ts(4, fail=True), FLAGS + ts(4)
    c = fleet(1, first)
    c.edit(any=second)
    c.machines["n01"].behaviour = "absent"
    c.after("2m")
    c.wait("20s")
    c.edit(any=first)
    c.after("1s")
    c.behave("healthy", "n01")
    c.wait("10s")
    c.edit(any=third)
    ticks = [c.after("2m") for _ in range(8)]
    recorded = [action["annotations"]["set"].get(REVISION) for tick in ticks for action in tick.patched("n01")]
    expect("n01 was recorded with the second text", revision_of(second) in recorded, False)
    expect("what n01 runs", loaded(c, "n01"), third)
