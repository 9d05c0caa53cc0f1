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


def wait_for_unusable_slice(c, **spec):
    """A pod w asks for 20 GiB and cannot use a slice: the words of the plan, of `explain`, and the sizes on n01 in the end."""
    c.wait_for_slice("w", 20, **spec)
    events = [action["event"]["note"] for action in c.after("1m").actions if action["action"] == "RecordEvent" and action["reason"] == "SliceRequestRefused"]
    said = explained(c, "team/w")
    c.partition()
    return events, said, c.slices("n01")


@scenario
def no_slice_is_cut_for_a_pod_that_does_not_reach_the_mps_daemon():
    """A pod without hostIPC, or of another user than the daemon's: nothing is cut, its Event says why, and `explain` promises it no memory."""
    for spec, why in (({"hostIPC": False}, "only with hostIPC: true"),
                      ({"securityContext": {"runAsUser": 0}}, "runs as user 0, and the MPS daemon of nos serves only clients of its own user, 1000")):
        events, said, slices = wait_for_unusable_slice(one_node(10), **spec)
        expect("slices of n01", slices, {0: {10: 1}})
        expect("Events", len(events), 1)
        for text in (events[0], said):
            expect_that(why in text, why, text)
        expect_that("SliceMemory" not in said and "SliceRequestRefused" in said, "a refusal and no promised memory", said)


@scenario
def a_pod_of_the_daemons_user_gets_its_slice():
    """The neighbours: user 1000, and user 2000 where the setting mps-user says so."""
    for user, options in ((1000, []), (2000, ["--mps-user", "2000"])):
        c = one_node(10)
        c.options += options
        _, _, slices = wait_for_unusable_slice(c, securityContext={"runAsUser": user})
        expect("slices of n01", slices, {0: {10: 1, 20: 1}})


@scenario
def a_running_pod_that_does_not_reach_its_slice_is_told_so():
    """The pod got its slice before it was checked, and runs without hostIPC: `explain` warns as lint does, and promises no memory."""
    c = one_node(10)
    c.get("Pod", "p0", "team")["spec"]["hostIPC"] = False
    said = explained(c, "team/p0")
    expect_that("warning SliceWithoutHostIPC" in said and "SliceMemory" not in said, "the warning alone", said)
