"""A GPU that died is forgotten without GFD at the next edit, and not reported while an edit waits."""
from scenario import CONFIG_LABEL, Cluster, expect, expect_that, fleet, mps, numbered, one, scenario, ts


def fleet_of(layout):
    c = Cluster({"any": ts(4)}, layout=layout)
    c.add_nodes(*numbered(3), gpus=8)
    c.install()
    return c


@scenario
def without_gfd_a_lost_gpu_is_still_reported_after_the_next_edit():
    """Plugin chart: 8 GPUs, 7 after a reboot, Degraded. The next edit rolls: still Degraded."""
    c = fleet_of("standalone")
    c.reboot("n01", gpus=7)
    for _ in range(3):
        c.after("11m")
    expect("Degraded before the edit", c.condition("default", "Degraded").get("status"), "True")
    c.edit(any=ts(8))
    for _ in range(12):
        c.after("5m")
    expect("capacity", c.capacity("n01"), 56)
    expect("Degraded after the edit", c.condition("default", "Degraded").get("status"), "True")


@scenario
def a_gpu_that_dies_while_an_edit_is_paused_is_reported():
    """An edit waits under a pause, and a GPU dies: the policy says so."""
    c = fleet_of("gpu-operator")
    c.policy(rollout={"paused": True})
    c.after("1m")
    c.edit(any=ts(8))
    c.after("2m")
    c.serve("n01", 28)
    for _ in range(3):
        c.after("11m")
    expect("Degraded", c.condition("default", "Degraded").get("status"), "True")


@scenario
def without_gfd_gpus_that_are_added_restart_nothing():
    """Plugin chart: a node comes back with 8 instead of 4 GPUs under a running pod: recorded, not restarted."""
    c = Cluster({"any": ts(4)}, layout="standalone")
    c.add_nodes(*numbered(3), gpus=4)
    c.install()
    c.reboot("n01", gpus=8)
    ticks = [c.after("11m") for _ in range(4)]
    expect("disruptions", [tick.now for tick in ticks if tick.disrupts()], [])


def found_while_a_node_drains(gpus_left):
    c = fleet(2, mps(4), gpus=8)
    for name in c.nodes():
        c.consumer("job-" + name, name)
    c.edit(any=mps(8))
    node = one(c.after("2m").started())
    c.after("1m")
    if gpus_left < 8:
        c.serve(node, 4 * gpus_left)
    for _ in range(3):
        tick = c.after("11m")
    return tick.found_on("UnhealthyDevices"), node


@scenario
def a_gpu_that_dies_while_its_node_drains_is_reported():
    """A node waits for its pods, and a GPU dies: a finding names the node."""
    found, node = found_while_a_node_drains(gpus_left=7)
    expect("nodes with UnhealthyDevices", found, [node])


@scenario
def a_draining_node_with_all_its_gpus_is_not_reported():
    """The neighbour: a node waits for its pods with all of its GPUs."""
    found, _ = found_while_a_node_drains(gpus_left=8)
    expect("nodes with UnhealthyDevices", found, [])


@scenario
def a_machine_whose_only_gpu_died_fails_with_that_reason():
    """A machine with one GPU is rebooted and finds none: the message of the failed node says what the machine had."""
    c = fleet(6, ts(4), gpus=1)
    c.reboot("n02", gpus=0)
    for _ in range(12):
        c.after("5m")
    expect("the state of n02", c.state("n02"), "Failed")
    message = c.annotations("n02").get("gpusharing.dev/message", "")
    expect_that("the machine had 1 GPU before" in message, "the message to say what the machine had", message)


def rebooted_under_a_paused_edit(gpus_left, pause=("11m",) * 3):
    """The plugin chart, and an edit that waits: n01 reboots, reads the edit, and shows it with so many of its 8 GPUs."""
    c = fleet_of("standalone")
    c.policy(rollout={"paused": True})
    c.edit(any=ts(8))
    c.after("1m")
    c.reboot("n01", gpus=gpus_left)
    for look in pause:
        c.after(look)
    before = c.uids("n01")
    c.policy(rollout={"paused": False})
    run = c.converge()
    expect("the nodes that were restarted", run.restarted(), ["n02", "n03"])
    expect("whether n01 has its pods", c.uids("n01"), before)
    expect("states", {c.state(name) for name in c.nodes()}, {""})
    return c.condition("default", "Degraded")


@scenario
def without_gfd_a_machine_that_read_an_edit_and_lost_gpus_is_reported_and_not_restarted():
    """n01 rebooted under an edit that waits, and has lost half of its GPUs: the edit runs there, so that another restart
    brings nothing; it is reported, and the other nodes are rolled."""
    degraded = rebooted_under_a_paused_edit(4)
    expect("Degraded", degraded.get("status"), "True")
    expect_that("n01" in degraded["message"], "n01 in Degraded", degraded)


@scenario
def without_gfd_a_machine_that_lost_gpus_under_an_edit_is_not_restarted_while_its_rollout_is_under_way():
    """The pause ends before n01 is recorded: what it shows is no reason for another restart then either."""
    expect("Degraded", rebooted_under_a_paused_edit(4, pause=["2m"]).get("status"), "True")


@scenario
def without_gfd_a_machine_that_read_an_edit_with_all_its_gpus_is_not_restarted():
    """The same with all GPUs: nothing is Degraded."""
    expect("Degraded", rebooted_under_a_paused_edit(8).get("status"), "False")


@scenario
def without_gfd_a_machine_that_has_lost_a_gpu_is_not_restarted_for_the_edit_of_another_key():
    """n01 has key `b` and has lost one of its 2 GPUs, which is reported. An edit of `any` restarts n02 alone."""
    c = fleet(2, ts(4), layout="standalone", more={"b": ts(6)})
    c.set_label("n01", CONFIG_LABEL, "b")
    c.converge()
    c.reboot("n01", gpus=1)
    c.converge()
    before = c.plugin("n01")
    c.edit(any=ts(8))
    expect("the nodes that were restarted", c.converge(each="4m").restarted(), ["n02"])
    expect("the plugin of n01", c.plugin("n01"), before)
    expect_that("n01" in c.condition("default", "Degraded").get("message", ""), "n01 in Degraded",
                c.condition("default", "Degraded"))


@scenario
def without_gfd_a_machine_that_lost_gpus_under_an_edit_is_not_restarted_after_the_clock_was_set_back():
    """The same, and the API server's clock is set back before the pause ends: the pods of n01 are from the future, so that it
    cannot be recorded yet. Nothing says that a restart would bring its GPUs back."""
    c = fleet_of("standalone")
    c.policy(rollout={"paused": True})
    c.edit(any=ts(8))
    c.after("1m")
    c.reboot("n01", gpus=4)
    c.after("5s")
    c.set_clock_back("10m")
    c.after("1m")
    before = c.uids("n01")
    c.policy(rollout={"paused": False})
    c.converge()
    expect("whether n01 has its pods", c.uids("n01"), before)
