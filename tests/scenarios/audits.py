"""What `audit` reports about a fleet: nodes that serve nothing, and rollouts that have stopped."""
from cluster.expectations import expect_texts
from cluster.program import ask
from cluster.slices import SliceCluster
from scenario import CONFIG_LABEL, INVALID, Cluster, expect, expect_that, fleet, held_canary, mps, one, scenario, ts


def audited(c, reason, severity):
    """The exit status of `audit`, and the names of the objects of its findings of that reason and severity."""
    status, found = c.audit()
    return status, [f["object"]["name"] for f in found if (f["reason"], f["severity"]) == (reason, severity)]


@scenario
def an_audit_of_a_healthy_fleet_finds_no_error():
    """Three nodes run their profile: `audit` ends with 0 and reports neither errors nor warnings."""
    status, found = fleet(3, ts(4)).audit()
    expect("exit status", status, 0)
    expect("errors and warnings", [f for f in found if f["severity"] != "info"], [])


@scenario
def an_audit_names_a_ready_node_that_serves_no_gpu():
    """One node of three is Ready and serves no GPU: `audit` ends with 1 and names the node."""
    c = fleet(3, ts(4))
    c.serve("n02", 0)
    c.wait("30m")
    expect("status and nodes", audited(c, "NoneAllocatable", "error"), (1, ["n02"]))


def without_an_operator(text):
    """Three nodes that run the text, and no operator has ever looked at them."""
    c = Cluster({"any": text})
    c.add_nodes("n01", "n02", "n03")
    c.wait("15m")
    c.react()
    return c


@scenario
def an_audit_of_an_edit_that_no_pod_has_read_counts_no_gpu_as_lost():
    """Without an operator a profile is edited, and the nodes serve the one before: `audit` warns that the edit is not live, names what to do, and ends with 0."""
    c = without_an_operator(ts(4))
    c.wait("1h")
    c.edit(any=ts(8))
    c.wait("1h")
    expect("status and nodes", audited(c, "EditNotLive", "warning"), (0, ["n01", "n02", "n03"]))
    status, document = c.run_audit()
    expect("GPUs", document["gpus"], {"total": 6, "unusable": 0, "uncountedNodes": 0})
    expect_texts(document["problems"][0]["message"], "is not live", "restart the plugin's pods node by node")


@scenario
def an_audit_of_pods_that_do_not_show_what_they_have_read_counts_what_is_lost():
    """Without an operator the pods of one node are newer than the edit and serve less than it says: that is drift, and an error."""
    c = without_an_operator(ts(4))
    c.edit(any=ts(8))
    c.wait("1h")
    c.restart(*c.nodes())
    c.wait("1h")
    c.react()
    c.serve("n02", 12)
    c.wait("1h")
    expect("status and nodes", audited(c, "PreexistingDrift", "error"), (1, ["n02"]))
    expect("unusable GPUs", c.run_audit()[1]["gpus"]["unusable"], 1)


@scenario
def an_audit_warns_of_a_node_that_is_not_ready():
    """One node of three is NotReady: `audit` warns of it, and that alone is no error."""
    c = fleet(3, ts(4))
    c.set_ready("n02", False)
    c.after("30m")
    expect("status and nodes", audited(c, "NodeNotReady", "warning"), (0, ["n02"]))


@scenario
def an_audit_names_a_failed_canary_and_the_rollout_that_it_stops():
    """The plugin of the canary crashes after an edit: `audit` has an error for the node and one for the rollout."""
    c = fleet(3, ts(4))
    c.behave("crash", *c.nodes())
    c.edit(any=ts(8))
    for _ in range(10):
        c.after("2m")
    status, failed = audited(c, "VerificationFailed", "error")
    expect("status and failed nodes", (status, len(failed)), (1, 1))
    expect("stopped rollouts", len(audited(c, "MaxFailures", "error")[1]), 1)


@scenario
def an_audit_names_a_rollout_that_was_aborted_half_way():
    """A rollout over six nodes is aborted after some of them: `audit` ends with 1 and names the commands to go on and to go back."""
    c = fleet(6, ts(4))
    c.edit(any=ts(8))
    for _ in range(4):
        c.after("2m")
    c.switch(aborted=True)
    for _ in range(2):
        c.after("2m")
    status, found = c.audit()
    stopped = [f for f in found if f["reason"] == "Aborted" and f["severity"] == "error"]
    expect("status and stopped rollouts", (status, len(stopped)), (1, 1))
    back = "Or restore the profile before it, after a look: `gpu-sharing-operator rollout undo %s --dry-run`"
    expect_texts(stopped[0]["message"], "rollout start default", back % stopped[0]["object"]["name"])


@scenario
def an_audit_warns_of_a_paused_rollout_that_nodes_wait_for():
    """The policy is paused and a profile is edited: `audit` warns with the command that resumes the rollout."""
    c = fleet(3, ts(4), rollout={"paused": True})
    c.edit(any=ts(8))
    c.after("2m")
    status, found = c.audit()
    paused = [f for f in found if f["reason"] == "Paused"]
    expect("status and severities", (status, [f["severity"] for f in paused]), (0, ["warning"]))
    expect_that("rollout resume policy/default" in paused[0]["message"], "the command to go on", paused)


@scenario
def an_audit_of_a_pause_shows_the_rollout_where_no_sharingrollout_exists_yet():
    """The policy or the ConfigMap is paused before the edit: the problem is one of the policy, and its command is `rollout status`."""
    by_policy, by_config_map = fleet(3, ts(4), rollout={"paused": True}), fleet(3, ts(4))
    pause_config_map(by_config_map)
    for c in (by_policy, by_config_map):
        c.edit(any=ts(8))
        c.after("2m")
        paused = [p for p in c.audited_problems() if p["reason"] == "Paused"]
        expect("objects", [[o["kind"] for o in p["objects"]] for p in paused], [["SharingPolicy"]])
        expect("commands", [p["command"] for p in paused], ["gpu-sharing-operator rollout status"])


def said_about(c, reason):
    """The severity and message of the one finding of `audit` with that reason about a rollout, and the exit status."""
    status, found = c.audit()
    of_reason = [(f["severity"], f["message"]) for f in found if f["reason"] == reason and f["object"]["kind"] != "Node"]
    expect("findings %s" % reason, len(of_reason), 1)
    return of_reason[0] + (status,)


def half_way(c, replicas=8):
    """The profile is edited, and some of six nodes have it."""
    c.edit(any=ts(replicas))
    for _ in range(4):
        c.after("2m")
    return c


@scenario
def an_audit_warns_that_a_full_budget_keeps_nodes_from_their_profile():
    """A NotReady node holds the only slot half-way: `audit` names the budget, its holder, the nodes behind and the target."""
    c = half_way(fleet(6, ts(4)))
    c.set_ready("n06", False)
    for _ in range(3):
        c.after("1m")
    severity, message, status = said_about(c, "BudgetExhausted")
    expect("severity and status", (severity, status), ("warning", 0))
    expect_texts(message, "starts no node", "4 of 6 nodes wait for it (n03, n04, n05, n06)", "no slot is free: n06 holds 1 of 1 slot")


@scenario
def an_audit_warns_that_busy_nodes_hold_the_slots_of_a_rollout():
    """Pods use every node and the first one waits for its own: `audit` names it and the nodes that wait behind it."""
    c = fleet(3, mps(4))
    for node in c.nodes():
        c.consumer("client-" + node, node)
    c.edit(any=mps(8))
    for _ in range(3):
        c.after("2m")
    severity, message, status = said_about(c, "WaitingForWorkloads")
    expect("severity and status", (severity, status), ("warning", 0))
    expect_texts(message, "2 of 3 nodes wait for it (n02, n03)", "n01 waits for pods to end")


@scenario
def an_audit_warns_of_the_last_node_of_a_rollout_that_waits_for_its_pods():
    """No node is left to start, and the only one waits for a pod that may run for an hour: `audit` names the node and the command."""
    c = fleet(1, mps(4))
    c.consumer("client", "n01")
    c.edit(any=mps(8))
    for _ in range(3):
        c.after("2m")
    severity, message, status = said_about(c, "WaitingForWorkloads")
    expect("severity and status", (severity, status), ("warning", 0))
    expect_texts(message, "has 1 of 1 node left: n01 waits for pods to end", "`gpu-sharing-operator explain n01`")


@scenario
def an_audit_of_a_rollout_that_goes_on_warns_of_nothing():
    """A node is being verified and the others wait for it: `audit` reports neither errors nor warnings."""
    c = fleet(6, ts(4))
    c.edit(any=ts(8))
    c.after("2m")
    c.after("10s")
    expect_that(c.in_progress(), "a node in a change", "none")
    status, found = c.audit()
    expect("status and findings", (status, [f["reason"] for f in found if f["severity"] != "info"]), (0, []))


@scenario
def an_audit_warns_that_mode_observe_keeps_nodes_from_their_profile():
    """The policy is set to Observe half-way: `audit` names the mode, the nodes behind and the command that changes them."""
    c = half_way(fleet(6, ts(4)))
    c.policy(mode="Observe")
    for _ in range(2):
        c.after("2m")
    severity, message, status = said_about(c, "Observe")
    expect("severity and status", (severity, status), ("warning", 0))
    expect_texts(message, "nodes wait for it (", "the policy's mode is Observe", "kubectl patch sharingpolicies default")


@scenario
def an_audit_warns_that_held_nodes_do_not_run_their_profile():
    """A person holds three of six nodes, and the others have their new profile: `audit` names the three and the hold."""
    c = fleet(6, ts(4))
    for node in ("n04", "n05", "n06"):
        c.annotate("Node", node, "gpusharing.dev/hold", "true")
    c.edit(any=ts(8))
    for _ in range(12):
        c.after("2m")
    severity, message, _ = said_about(c, "Held")
    expect("severity", severity, "warning")
    expect_texts(message, "3 of 6 nodes wait for it (n04, n05, n06)", "gpusharing.dev/hold is set")


@scenario
def an_audit_of_a_held_canary_is_one_warning_with_the_command():
    """A person holds the canary in its change: `audit` warns once, with the command that lifts the hold and the nodes that wait."""
    c = held_canary(4)
    c.after("2m")
    _, found = c.audit()
    warnings = [f for f in found if f["severity"] == "warning"]
    expect("warnings", [f["reason"] for f in warnings], ["HeldMidChange"])
    expect_texts(warnings[0]["message"], "`kubectl annotate node n01 gpusharing.dev/hold-`. Until then the rollout of key any ",
                 "starts no node, and 3 of 4 nodes wait for it (n02, n03, n04)")


@scenario
def an_audit_says_for_information_that_nodes_wait_for_an_approval_or_a_window():
    """An edit waits for an approval, or for a window in years: `audit` says so, and neither is a warning."""
    for reason, spec, text in (("AwaitingApproval", {"mode": "Approve"}, "rollout approve policy/default"),
                               ("OutsideWindow", {"rollout": {"maintenanceWindows": [{"cron": "0 2 29 2 *", "duration": "1h"}]}},
                                "the next maintenance window opens at 2028-02-29")):
        c = fleet(3, ts(4))
        c.policy(**spec)
        c.edit(any=ts(8))
        for _ in range(3):
            c.after("2m")
        severity, message, status = said_about(c, reason)
        expect("severity and status", (severity, status), ("info", 0))
        expect_texts(message, "3 of 3 nodes wait for it (n01, n02, n03)", text)


@scenario
def an_audit_of_an_aborted_rollout_whose_policy_is_paused_retries_before_it_resumes():
    """A rollout is aborted while its policy is paused: that is an error, and the retry comes before the resume."""
    c = half_way(fleet(6, ts(4)))
    c.policy(rollout={"paused": True})
    c.after("2m")
    c.switch(aborted=True)
    for _ in range(2):
        c.after("2m")
    severity, message, status = said_about(c, "Aborted")
    expect("severity and status", (severity, status), ("error", 1))
    retry, resume = message.find("rollout start default"), message.find("rollout resume policy/default")
    expect_that(0 <= retry < resume, "the retry, then the resume", message)


@scenario
def an_audit_proposes_an_undo_only_where_an_earlier_profile_is_on_record():
    """An invalid text that replaced a verified one can be undone; one that stood there from the start is corrected."""
    verified, first = fleet(3, ts(4)), fleet(3, INVALID)
    verified.edit(any=INVALID)
    for c, undone in ((verified, True), (first, False)):
        c.after("2m")
        problems = [p for p in c.audited_problems() if p["reason"] == "ConfigInvalid"]
        commands = [p["command"] for p in problems]
        expect("commands", len(commands), 1)
        expect_texts(problems[0]["message"], "key any: ", "lose them at the next restart of their pods")
        expect_texts(commands[0], "kubectl edit configmap mps-config --namespace gpu-operator")
        expect_that(("rollout undo" in commands[0]) == undone, "an undo: %s" % undone, commands[0])


@scenario
def an_audit_of_an_invalid_default_beside_a_label_names_the_command_that_corrects_it():
    """A node has a label with a valid key, and the default key is edited to an invalid text: the command edits the ConfigMap, and the error is printed once."""
    c = fleet(2, ts(4), more={"other": ts(6)})
    c.set_label("n02", CONFIG_LABEL, "other")
    c.wait("30m")
    c.edit(any=INVALID)
    c.after("2m")
    problems = {p["reason"]: p for p in c.audited_problems()}
    expect_texts(problems["DefaultInvalid"]["command"], "kubectl edit configmap mps-config --namespace gpu-operator")
    errors = [reason for reason, p in problems.items() if "replicas is 1" in p["message"]]
    expect("problems that print the error", errors, ["ConfigInvalid"])


@scenario
def an_audit_takes_back_an_announced_default_key_that_does_not_exist():
    """The ClusterPolicy names a key that is not there, and no DaemonSet has it yet: the command restores the present one."""
    c = fleet(3, ts(4))
    announced = c.get("ClusterPolicy", "cluster-policy")
    announced["spec"]["devicePlugin"]["config"]["default"] = "nokey"
    c.touch(announced)
    c.after("1m")
    commands = [p["command"] for p in c.audited_problems() if p["reason"] == "NodesWouldBreak"]
    expect("commands", len(commands), 1)
    expect_texts(commands[0], "kubectl patch clusterpolicies.nvidia.com/cluster-policy", '"default":"any"')


def paused_way_out(c):
    """The message about the one rollout that a pause stops, and those about policies that are not there any more."""
    _, found = c.audit()
    paused = [f["message"] for f in found if f["reason"] == "Paused"]
    expect("rollouts that a pause stops", len(paused), 1)
    return paused[0], [f["message"] for f in found if f["reason"] in ("CRDsGone", "PolicyGone")]


def pause_config_map(c):
    c.annotate("ConfigMap", c.config_map, "gpusharing.dev/paused", "true", c.namespace)


def resumes_config_map(c):
    return f"`kubectl annotate configmap {c.config_map} --namespace {c.namespace} gpusharing.dev/paused=false --overwrite`"


@scenario
def an_audit_without_crds_names_the_command_that_resumes_the_config_map():
    """The CRDs were never installed and the ConfigMap is paused: the command to go on is kubectl's, which works there."""
    c = fleet(3, ts(4), crds=False)
    pause_config_map(c)
    c.edit(any=ts(8))
    c.after("2m")
    message, gone = paused_way_out(c)
    expect_that(resumes_config_map(c) in message, "the command to go on", message)
    expect("findings about policies", gone, [])


@scenario
def an_audit_after_the_crds_have_gone_resumes_the_config_map_and_forgets_nothing():
    """The same after the CRDs were deleted: forgetting the policies would not lift the pause of a ConfigMap."""
    c = fleet(3, ts(4))
    c.after("1m")
    c.remove_crds()
    pause_config_map(c)
    c.edit(any=ts(8))
    c.after("2m")
    message, gone = paused_way_out(c)
    expect_that(resumes_config_map(c) in message, "the command to go on", message)
    expect_that("forget-policies" not in message, "no command that forgets policies", message)
    expect_that(all("kubectl apply --server-side -f crds/" in text for text in gone), "the command that installs the CRDs", gone)


@scenario
def an_audit_after_the_crds_have_gone_installs_them_before_a_policy_is_resumed():
    """A policy was paused when the CRDs were deleted: the CRDs come first, then `rollout resume policy/default`."""
    c = fleet(3, ts(4), rollout={"paused": True})
    c.after("1m")
    c.remove_crds()
    c.edit(any=ts(8))
    c.after("2m")
    message, _ = paused_way_out(c)
    way_out = "install the CRDs (`kubectl apply --server-side -f crds/`), then run `gpu-sharing-operator rollout resume policy/default`"
    expect_that(way_out in message, way_out, message)
    c.install_crds()
    c.policy(rollout={"paused": True})
    c.after("1m")
    c.policy(rollout={"paused": False})
    expect_that(any(c.after("2m").started() for _ in range(4)), "nodes that start after the resume", "none")


def without_a_node(c, name, **spec):
    """A user's pod that asks for a GPU and has no node."""
    pod = c.consumer(name, "n01")
    del pod["spec"]["nodeName"]
    pod["spec"].update(spec)
    pod["status"] = {"phase": "Pending"}
    c.touch(pod)


@scenario
def an_audit_counts_the_pods_that_cannot_run():
    """A pod that its kubelet rejected and two that select no node: one error with the causes of `explain`, in text and in JSON."""
    c = fleet(2, mps(4))
    refused = c.consumer("refused", "n01", gpus=2, owner=None)
    refused["status"] = {"phase": "Failed", "reason": "UnexpectedAdmissionError",
                         "message": "Allocate failed due to rpc error: maximum request size for shared resources is 1; found 2"}
    c.touch(refused)
    for name in ("a", "b"):
        without_a_node(c, name, nodeSelector={"zone": "nowhere"})
    problems = [p for p in c.audited_problems() if p["reason"] == "PodsCannotRun"]
    expect("problems", [(p["severity"], p["message"]) for p in problems],
           [("error", "3 GPU pods cannot run: NotSelected 2, RequestRefused 1")])
    expect("pods", [o["name"] for o in problems[0]["objects"]], ["a", "b", "refused"])
    expect("command", problems[0]["command"], "gpu-sharing-operator explain team/a")
    status, document = c.run_audit()
    expect("exit status", status, 1)
    expect("pods in JSON", document["pods"], {"cannotRun": {"NotSelected": 2, "RequestRefused": 1}, "waiting": {}})


@scenario
def an_audit_says_of_a_pod_once_that_it_cannot_run():
    """Slices that no GPU can hold: the pods are counted among those that cannot run, and have no problem of their own beside that."""
    c = SliceCluster()
    c.slice_node("n0")
    for number in range(3):
        c.wait_for_slice("large-%d" % number, 999)
    expect("problems of pods", [p["message"] for p in c.audited_problems() if p["objects"][0]["kind"] == "Pod"],
           ["3 GPU pods cannot run: SliceTooLarge 3"])


@scenario
def the_pods_of_one_namespace_hide_none_of_another_in_an_audit():
    """More workloads wait in one namespace than an audit compares with the nodes: the one of the last namespace is among those that it counts."""
    c = fleet(1, ts(4))
    for number in range(250):
        without_a_node(c, "p%03d" % number)
    other = c.consumer("mine", "n01", namespace="zoo")
    del other["spec"]["nodeName"]
    other["spec"]["nodeSelector"] = {"zone": "nowhere"}
    other["status"] = {"phase": "Pending"}
    c.touch(other)
    counted = [p for p in c.audited_problems() if p["reason"] == "PodsCannotRun"]
    expect_that(counted and any(o["name"] == "mine" for o in counted[0]["objects"]), "the pod of namespace zoo", counted)


@scenario
def an_audit_leaves_out_a_rejected_pod_that_its_controller_has_replaced():
    """The kubelet rejected a pod of a Deployment once, and another pod runs in its place: nothing is wrong, exit status 0."""
    c = fleet(2, ts(4))
    new = c.consumer("web-new", "n01")
    old = c.consumer("web-old", "n01")
    old["metadata"]["ownerReferences"] = new["metadata"]["ownerReferences"]
    old["status"] = {"phase": "Failed", "reason": "UnexpectedAdmissionError", "message": "Allocate failed"}
    c.touch(old)
    expect("status and nodes", audited(c, "PodsCannotRun", "error"), (0, []))
    c.remove("Pod", "web-new", "team")
    expect("status and nodes where none replaces it", audited(c, "PodsCannotRun", "error")[0], 1)


@scenario
def an_audit_of_huge_pods_counts_those_that_it_does_not_keep():
    """33 MiB of pods that cannot run: 32 MiB of them are looked at, and the others are counted."""
    c = fleet(1, ts(4))
    for i in range(33):
        without_a_node(c, "p%02d" % i, nodeSelector={"zone": "nowhere"})
        c.annotate("Pod", "p%02d" % i, "example.com/notes", "x" * (1 << 20), namespace="team")
    problem, = [p for p in c.audited_problems() if p["reason"] == "PodsCannotRun"]
    expect("message", problem["message"], "31 GPU pods cannot run: NotSelected 31 (and 2 more pods were not checked)")


@scenario
def an_audit_says_for_information_that_pods_wait_for_other_pods():
    """The neighbour: every replica is in use, and one more pod waits: no error, because it gets its turn."""
    c = fleet(1, ts(4))
    for i in range(8):
        c.consumer("p%d" % i, "n01")
    without_a_node(c, "late")
    status, found = c.audit()
    expect("status and findings", (status, [(f["severity"], f["message"]) for f in found if f["object"]["kind"] == "Pod"]),
           (0, [("info", "1 GPU pod waits: AllInUse 1")]))


@scenario
def an_audit_names_a_canary_whose_pods_crash_once():
    """The new plugin of the canary crashes, and verifyTimeout has not passed: one error about the node, and none about its change."""
    c = fleet(3, ts(4))
    c.behave("crash", *c.nodes())
    c.edit(any=ts(8))
    for _ in range(3):
        c.after("1m")
    status, found = c.audit()
    node = one([f["object"]["name"] for f in found if f["reason"] == "CrashLoopBackOff"])
    expect("status and findings", (status, [(f["severity"], f["reason"]) for f in found if f["object"]["name"] == node]),
           (1, [("error", "CrashLoopBackOff")]))


@scenario
def an_audit_counts_a_whole_gpu_of_nos_as_usable():
    """n01 has slices and n02 none yet: every GPU can be used. Once n01 reports slices and offers none, its GPUs cannot, and an error says so."""
    c = SliceCluster()
    c.slice_node("n01", gpus=2)
    c.slice_node("n02")
    c.wait_for_slice("p", 10)
    c.partition()
    c.schedule()
    expect("GPUs", c.run_audit()[1]["gpus"], {"total": 3, "unusable": 0, "uncountedNodes": 0})
    c.get("Node", "n01")["status"]["allocatable"] = {}
    status, document = c.run_audit()
    expect("unusable GPUs", (status, document["gpus"]["unusable"]), (1, 2))
    problem = one([p for p in document["problems"] if p["severity"] == "error" and p["gpusUnusable"]])
    expect_texts(problem["message"], "no pod can get its GPUs")


@scenario
def an_audit_names_too_many_mps_clients_once():
    """17 replicas on GPUs that take 16 MPS clients: the daemon exits, and the node shows less than its profile. That it drifts
    follows from it, so `audit` reports the replicas alone, with the GPUs that they cost."""
    c = Cluster({"a": mps(17)}, default="a", version="v0.20.1")
    c.add_nodes("n01")
    c.labels("n01").update({"nvidia.com/gpu.compute.major": "7", "nvidia.com/gpu.compute.minor": "0"})
    c.serve("n01", 8)
    c.wait("30m")
    errors = [p for p in c.audited_problems() if p["severity"] == "error"]
    expect("errors", [p["reason"] for p in errors], ["MPSReplicasAboveMaximum"])
    expect("GPUs lost", errors[0]["gpusUnusable"], 2)
    said = ask(["explain", "n01", "-f", "-"], c.manifests()).stdout
    expect("times that explain says it", said.count("accepts at most 16 MPS clients"), 1)
    expect_texts(said, "error MPSReplicasAboveMaximum: see above\n  to do: use fewer replicas, or time-slicing")
