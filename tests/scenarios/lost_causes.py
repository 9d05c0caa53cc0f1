"""Changes whose cause is gone before a pod was deleted: the node is uncordoned, and its pods stay."""
from scenario import CONFIG_LABEL, expect, expect_that, fleet, mps, one, scenario, ts


def expect_given_back(c, name, pods):
    """The node is out of its change, with these pods."""
    expect("pods of the node", c.uids(name), pods)
    expect("whether the node is cordoned", c.cordoned(name), False)
    expect("the state of the node", c.state(name), "")


@scenario
def an_on_delete_image_that_is_taken_back_while_a_node_drains_gives_it_back():
    """OnDelete: an image is taken back while a node waits for its pods: the node is uncordoned, and not restarted."""
    c = fleet(3, mps(4), on_delete=True)
    for name in c.nodes():
        c.consumer("job-" + name, name)
    c.wait("1h")
    c.template("h2")
    c.after("2m")
    c.after("2m")
    name = one(c.in_progress())
    before = c.uids(name)
    c.template("h1")
    c.after("2m")
    c.end("job-" + name)
    for _ in range(5):
        c.after("2m")
    expect_given_back(c, name, before)


@scenario
def a_drift_that_ends_by_itself_while_the_node_drains_gives_it_back():
    """A node drains for its repair and shows its profile again: it is uncordoned, and not restarted."""
    c = fleet(3, mps(4))
    c.consumer("job-n01", "n01")
    c.serve("n01", 4)
    c.labels("n01")["nvidia.com/gpu.replicas"] = "2"
    c.after("11m")
    c.after("11m")
    expect("in progress", c.in_progress(), ["n01"])
    before = c.uids("n01")
    c.serve("n01", 8)
    c.labels("n01")["nvidia.com/gpu.replicas"] = "4"
    c.after("2m")
    c.end("job-n01")
    for _ in range(5):
        c.after("2m")
    expect_given_back(c, "n01", before)


@scenario
def a_drift_that_lasts_while_the_node_drains_is_repaired():
    """The same node does not show its profile again: it is restarted when its pod has ended."""
    c = fleet(3, mps(4))
    c.consumer("job-n01", "n01")
    c.serve("n01", 4)
    c.labels("n01")["nvidia.com/gpu.replicas"] = "2"
    c.after("11m")
    c.after("11m")
    c.end("job-n01")
    for _ in range(5):
        c.after("2m")
    expect("the capacity of the node", c.capacity("n01"), 8)
    expect("whether the node is cordoned", c.cordoned("n01"), False)


@scenario
def a_node_that_reloads_after_all_while_it_drains_is_given_back():
    """A relabelled node drains for its restart and reloads after all: it is uncordoned, and not restarted."""
    c = fleet(2, ts(4), more={"two": ts(2)})
    c.wait("10m")
    for number in range(6):
        c.consumer("job-%d" % number, "n01")
    c.behave("unchanged", "n01")
    c.set_label("n01", CONFIG_LABEL, "two")
    c.after("5m")
    c.after("5m")
    expect("in progress", c.in_progress(), ["n01"])
    before = c.uids("n01")
    c.behave("healthy", "n01")
    c.after("2m")
    c.after("2m")
    for number in range(6):
        c.end("job-%d" % number)
    for _ in range(4):
        c.after("2m")
    expect_given_back(c, "n01", before)


@scenario
def pods_that_do_not_become_ready_follow_an_on_delete_image_that_is_taken_back():
    """OnDelete: new pods are not Ready when their image is taken back: within three minutes they have the former one."""
    c = fleet(3, ts(4), on_delete=True)
    c.wait("1h")
    c.behave("starting", *c.nodes())
    c.template("h2")
    c.after("2m")
    name = one(c.in_progress())
    c.template("h1")
    c.behave("healthy", *c.nodes())
    for _ in range(4):
        c.after("45s")
    expect("templates of its pods",
           {pod["metadata"]["labels"]["controller-revision-hash"] for pod in c.operand_pods(name)}, {"h1"})


@scenario
def a_daemon_that_keeps_its_profile_is_replaced_although_the_node_shows_the_new_one():
    """A person moves the label of a node from one MPS profile to another. Labels and capacity follow by themselves, and the
    MPS daemon does not: the node drains until its pod has ended, and is not given back before."""
    c = fleet(3, mps(4), more={"two": mps(6)}, version="v0.17.0")
    c.wait("10m")
    c.restart("n01")
    c.consumer("job-n01", "n01")
    c.after("10m")
    c.set_label("n01", CONFIG_LABEL, "two")
    daemon = c.pod_of("mps", "n01")["metadata"]["uid"]
    c.after("3m")
    for _ in range(4):
        c.after("1m")
        expect("in progress", c.in_progress(), ["n01"])
    c.end("job-n01")
    c.converge()
    expect_that("the daemon was replaced", c.pod_of("mps", "n01")["metadata"]["uid"] != daemon)


@scenario
def a_node_whose_pods_have_read_a_text_that_was_taken_back_drains_until_it_is_idle():
    """MPS. B, which no label shows, waits for an approval, n01 reboots into it, and A is put back. n01 shows A and runs B: it
    stays in its change until its pod has ended, and is not given back and started again and again."""
    single, none_of_mig = mps(4, mig="single"), mps(4, mig="none")
    c = fleet(2, none_of_mig, rollout={"canary": {"nodesPerGroup": 0}})
    c.policy(mode="Approve")
    c.after("1m")
    c.edit(any=single)
    c.after("1m")
    c.behave("starting", "n01")
    c.reboot("n01")
    c.after("20s")
    c.edit(any=none_of_mig)
    c.get_ready("n01")
    c.consumer("job-n01", "n01")
    c.after("1m")
    c.policy(mode="Enforce")
    c.after("1m")
    for _ in range(4):
        expect("in progress", c.in_progress(), ["n01"])
        c.after("30s")
    c.end("job-n01")
    c.converge()
    expect("what the plugins have loaded", [c.loaded[c.plugin(name)] for name in c.nodes()], [none_of_mig] * 2)
    expect("whether n01 is cordoned", c.cordoned("n01"), False)
