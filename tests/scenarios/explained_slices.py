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


def next_of(said):
    """The commands that `explain` proposes."""
    lines = [line.strip().removeprefix("next:").strip() for line in said.splitlines()]
    return [line for line in lines if line.startswith(("kubectl ", "gpu-sharing-operator "))]


def beside_a_crash(*sizes):
    """The agent of n01 crashes, so that its GPUs are not cut, and pods wait for slices of these sizes."""
    c = SliceCluster()
    c.slice_node("n01")
    c.agent_pod("n01")
    c.stop_agent("n01")
    for at, size in enumerate(sizes):
        c.wait_for_slice("p%d" % at, size)
    return c


@scenario
def explain_of_a_node_whose_agent_crashes_leads_to_its_log():
    """Its GPUs are not cut because of the agent: the next command shows how the agent ended."""
    expect("next", next_of(explained(beside_a_crash(10), "n01")),
           ["kubectl logs nos-gpu-agent-n01 --namespace nebuly-nos --previous"])


@scenario
def explain_of_a_pod_that_waits_for_such_a_node_leads_there_as_well():
    """Nobody goes in circles: the next command for the pod is that of the node that keeps its slice from it."""
    expect("next", next_of(explained(beside_a_crash(10), "team/p0")),
           ["kubectl logs nos-gpu-agent-n01 --namespace nebuly-nos --previous"])


@scenario
def explain_of_a_node_that_is_left_alone_leads_to_what_the_node_shows():
    """The label of the memory is missing: the next command shows the node's labels."""
    c = one_node()
    del c.get("Node", "n01")["metadata"]["labels"]["nvidia.com/gpu.memory"]
    expect("next", next_of(explained(c, "n01")), ["kubectl describe node n01"])


@scenario
def explain_of_a_pod_that_no_gpu_can_hold_shows_what_the_gpus_have():
    """80 GiB on GPUs of 40: the next command lists the memory of the labelled nodes."""
    c = one_node()
    c.wait_for_slice("w", 80)
    commands = next_of(explained(c, "team/w"))
    expect_that(len(commands) == 1 and commands[0].startswith("kubectl get nodes --selector nos.nebuly.com/gpu-partitioning=mps "),
                "the labelled nodes", commands)


@scenario
def explain_of_a_node_in_order_proposes_nothing():
    """The neighbour: nothing is wrong with n01."""
    expect("next", next_of(explained(one_node(10), "n01")), [])


@scenario
def an_audit_counts_gpus_that_no_pod_has_asked_for_as_usable():
    """GPU 1 of n01 and the only one of n02 have no slices, because no pod asks for any: a line says so, and none is lost."""
    c = one_node(10)
    c.slice_nodes["n01"]["gpus"] = 2
    c.set_label("n01", "nvidia.com/gpu.count", "2")
    c.slice_node("n02")
    said = ask(["audit", "-f", "-"], c.manifests()).stdout
    expect_that("3 GPUs" in said and "cannot be used" not in said, "no GPU counted as lost", said)
    expect("lines about GPUs without slices", said.count("1 GPU without slices"), 2)


@scenario
def explain_of_a_pod_does_not_lead_to_a_node_that_it_cannot_be_on():
    """The agent of n01 crashes, and the pod selects n02, which is full: the scheduler's words are next, and not that agent."""
    c = beside_a_crash()
    c.slice_node("n02")
    c.agent_pod("n02")
    c.wait_for_slice("other", 30, nodeSelector={"kubernetes.io/hostname": "n02"})
    c.partition()
    c.schedule()
    c.react()
    c.wait_for_slice("w", 20, nodeSelector={"kubernetes.io/hostname": "n02"})
    expect("next", next_of(explained(c, "team/w")), ["kubectl describe pod w --namespace team"])


@scenario
def explain_of_a_node_whose_config_map_is_paused_leads_there():
    """Somebody has paused the fork's ConfigMap: the next command shows it."""
    c = one_node()
    found = c.get("ConfigMap", CONFIG_MAP, NAMESPACE)
    found["metadata"]["annotations"] = {"gpusharing.dev/paused": "true"}
    c.touch(found)
    expect("next", next_of(explained(c, "n01")),
           ["kubectl get configmap nos-device-plugin-configs --namespace nebuly-nvidia --output yaml"])
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


@scenario
def explain_and_audit_know_the_user_of_the_daemon():
    """A pod of user 1001 waits for a slice: with --mps-user 1001 it is right, without it the way is the chart's value."""
    c = one_node(10)
    c.wait_for_slice("w", 20, securityContext={"runAsUser": 1001})
    for command in (["explain", "team/w"], ["audit"]):
        for options, wanted in (([], True), (["--mps-user", "1001"], False)):
            said = ask(command + options + ["-o", "json", "-f", "-"], c.manifests())
            expect("of %s" % (command + options), (said.stderr, "SliceRequestRefused" in said.stdout), ("", wanted))
    expect_that("podMutation.nosUser" in explained(c, "team/w"), "the chart's value", explained(c, "team/w"))
