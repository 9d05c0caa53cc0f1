"""What `explain` says about partitioned nodes and about pods that wait for slices there."""
from cluster.program import ask
from cluster.slices import CONFIG_MAP, NAMESPACE, SliceCluster
from scenario import expect, expect_that, scenario


def one_node(*sizes):
    """A node n01 with slices of these sizes, each used by a pod p0, p1, ..."""
    c = SliceCluster()
    c.slice_node("n01")
    for at, size in enumerate(sizes):
        c.wait_for_slice("p%d" % at, size)
    c.partition()
    c.schedule()
    c.react()
    return c


def explained(c, *what):
    return ask(["explain", *what, "-f", "-"], c.manifests()).stdout


@scenario
def a_node_is_explained_with_the_slices_of_each_gpu():
    """`explain NODE` shows what is used and what is free on GPU 0, as docs/partitioning.md says."""
    c = one_node(10, 20)
    c.end_pod("p1")
    c.react()
    said = explained(c, "n01")
    expect_that("used: 1 x 10 GiB" in said and "free: 1 x 20 GiB" in said, "a bar of GPU 0 with used and free slices", said)


@scenario
def nobody_is_told_to_remove_the_label_under_running_pods():
    """The operator partitions the node itself: `explain NODE` neither calls it skipped nor advises to take its slices away."""
    said = explained(one_node(10), "n01")
    wrong = [text for text in ("the operator skips the node", "Remove the label") if text in said]
    expect("what explain must not say", wrong, [])


@scenario
def a_pod_that_slices_are_planned_for_is_not_told_that_nothing_serves_it():
    """A pod waits, n01 has the memory, and the next looks cut its slice: `explain` names n01, not a missing plugin."""
    c = one_node(10)
    c.wait_for_slice("w", 20)
    said = explained(c, "team/w")
    expect_that("no device plugin serves it" not in said, "no word of a missing plugin", said)
    c.partition()
    c.schedule()
    expect("where the pod runs", c.assigned.get("w", ["nowhere"])[0], "n01")


@scenario
def a_pod_that_no_gpu_can_hold_is_told_so():
    """The neighbour: 80 GiB on GPUs of 40: `explain` says that no labelled node could ever hold it."""
    c = one_node(10)
    c.wait_for_slice("w", 80)
    said = explained(c, "team/w")
    expect_that("could ever hold that" in said, "the reason SliceTooLarge", said)


@scenario
def a_pod_that_does_not_run_is_given_no_command_inside_it():
    """A pod waits for a slice: `kubectl exec` into it cannot work, so `explain` does not propose it."""
    c = one_node(10)
    c.wait_for_slice("w", 20)
    expect_that("kubectl exec w " not in explained(c, "team/w"), "no kubectl exec", explained(c, "team/w"))


@scenario
def a_label_that_names_a_missing_key_is_reported():
    """The key that n01's label names is gone from the ConfigMap, and pods use its slices: plan, explain or audit says so."""
    c = one_node(10)
    found = c.get("ConfigMap", CONFIG_MAP, NAMESPACE)
    found["data"] = {}
    c.touch(found)
    texts = [finding["message"] for finding in c.plan("2m").all_findings] + [explained(c, "n01")]
    texts += [finding.get("message", "") for finding in c.audit()[1]]
    key = c.label("n01")
    written = any(key in action.get("set", {}) for action in c.plan("2m").of("PatchConfigMap"))
    expect_that(written or any(key in text for text in texts), "the key put back, or named", texts)


@scenario
def the_word_node_after_a_file_is_not_taken_for_a_file():
    """`explain -f - node n01`, options first as the usage line says: it explains n01."""
    done = ask(["explain", "-f", "-", "node", "n01"], one_node(10).manifests())
    expect("exit status and stderr", (done.returncode, done.stderr), (0, ""))
