"""Reports of slices that are from before: nos's gpu-agent is down, has just started, or is gone, and pods come and go."""
from cluster.slices import AGENT, AGENT_NAMESPACE
from explained_slices import explained
from scenario import CONFIG_LABEL, expect, expect_that, scenario
from slices_of_pods import served, two_gpus_in_halves

STALE = "PartitioningReportStale"


def pods_change_places(c):
    """The pod on GPU 0 ends, and another one of its size is bound on GPU 1: the numbers of the report are right all the same."""
    c.end_pod("a")
    c.wait_for_slice("late", 20)
    expect_that(c.bind("late", "n01", [1]), "a free slice on GPU 1")


def with_agent():
    """Pod a has 20 GiB of GPU 0 of n01, a pod waits for 39 GiB, and the agent's pod is there."""
    c = two_gpus_in_halves("a", 0)
    c.agent_pod("n01")
    return c


def look(c, times=6):
    """The model fails where a slice leaves that a pod has."""
    return [c.after("2m") for _ in range(times)]


def nothing_moves(c, times=6):
    before = c.label("n01")
    ticks = look(c, times)
    expect("the label", c.label("n01"), before)
    return ticks[-1]


@scenario
def a_slice_that_a_pod_took_while_the_agent_is_down_stays():
    """The agent is down for minutes: GPU 1 keeps the slice of the new pod; a finding names the agent's pod, and so does the Event."""
    c = with_agent()
    c.stop_agent("n01")
    pods_change_places(c)
    tick = nothing_moves(c)
    expect("nodes named", tick.found_on(STALE), ["n01"])
    name = "%s/%s-n01" % (AGENT_NAMESPACE, AGENT)
    expect_that(all(name in f["message"] for f in tick.findings(STALE)), "the agent's pod", tick.findings(STALE))
    expect_that(any("gpu-agent" in e["event"]["note"] for e in tick.events("SliceUnavailable")), "an Event that says so", tick.events())
    said = explained(c, "n01")
    expect_that(name in said and "No action needed" not in said, "explain of n01 to name it", said)


@scenario
def a_pod_that_waits_gets_its_slice_once_the_agent_is_back():
    """The neighbour: the agent reports again, and GPU 0 is cut."""
    c = with_agent()
    c.stop_agent("n01")
    pods_change_places(c)
    look(c)
    c.start_agent("n01")
    c.partition()
    c.schedule()
    expect("(pods that run, findings)", (sorted(c.assigned), c.after("2m").found_on(STALE)), (["big", "late"], []))
    expect_that("No action needed" in explained(c, "n01"), "explain of n01 without a warning", explained(c, "n01"))


@scenario
def an_agent_that_runs_is_trusted():
    """The neighbour: its pod is there and ready all the time; the pod that waits gets its slice."""
    c = with_agent()
    pods_change_places(c)
    c.react()
    c.partition()
    c.schedule()
    expect("pods that run", sorted(c.assigned), ["big", "late"])


@scenario
def a_proxy_of_metrics_that_fails_beside_the_agent_holds_nothing():
    """The image of kube-rbac-proxy is gone, so the agent's pod is not Ready; the agent itself is, and reports."""
    c = with_agent()
    status = c.get("Pod", "%s-n01" % AGENT, AGENT_NAMESPACE)["status"]
    status["conditions"][0]["status"] = "False"
    status["containerStatuses"].append({"name": "kube-rbac-proxy", "ready": False, "state": {"waiting": {"reason": "ImagePullBackOff"}}})
    pods_change_places(c)
    c.react()
    c.partition()
    c.schedule()
    expect("pods that run", sorted(c.assigned), ["big", "late"])


@scenario
def an_agent_that_started_a_moment_ago_has_not_reported_yet():
    """It was down while the pods changed places, and is ready since five seconds: the report is from before."""
    c = with_agent()
    c.after("2m")  # The key for the pod that waits.
    c.slice_nodes["n01"]["agent"] = False
    pods_change_places(c)
    c.wait("2m")
    c.start_agent("n01", reports=False)
    before = c.label("n01")
    c.after("5s", held="2m")
    expect("the label", c.label("n01"), before)


@scenario
def a_slice_stays_while_no_agent_runs_beside_the_plugin():
    """The agent's DaemonSet was removed: the fork's pod runs on n01 and no agent does, so the report is from before."""
    c = two_gpus_in_halves("a", 0)
    c.plugin_pod("n01")
    c.slice_nodes["n01"]["agent"] = False
    pods_change_places(c)
    expect("nodes named", nothing_moves(c).found_on(STALE), ["n01"])


@scenario
def a_slice_stays_while_agents_run_on_other_nodes_alone():
    """The agent's pod of n01 was evicted, and that of n02 runs."""
    c = two_gpus_in_halves("a", 0)
    c.slice_node("n02", mib=16384)
    c.agent_pod("n02")
    c.slice_nodes["n01"]["agent"] = False
    pods_change_places(c)
    expect("nodes named", nothing_moves(c).found_on(STALE), ["n01"])


def moved_without_agent():
    """The agent stops just when n01 has moved to a second GPU's slice. Pod p0 ends on GPU 0, and w has the new slice of GPU 1."""
    c = served(39, gpus=2)
    c.agent_pod("n01")
    before = c.label("n01")
    c.wait_for_slice("w", 39)
    c.after("2m")
    c.slice_nodes["n01"]["agent"] = False
    c.after("2m")
    expect_that(c.label("n01") != before, "another label", before)
    return c, before


@scenario
def a_move_that_the_kubelet_shows_is_not_taken_back_for_want_of_an_agent():
    """The agent is down since the move, and the kubelet hands out the new slice: the label stays under the pod that has it."""
    c, _ = moved_without_agent()
    c.stop_agent("n01")
    moved = c.label("n01")
    expect_that(c.bind("w", "n01", [1]), "the new slice")
    c.end_pod("p0")
    look(c, 12)
    expect("the label", c.label("n01"), moved)


@scenario
def a_move_that_the_plugin_does_not_survive_is_taken_back_without_an_agent():
    """The neighbour: the plugin crashes on the new key, which the kubelet shows; whether the agent runs does not matter."""
    c = served(39, gpus=2)
    c.agent_pod("n01")
    before = c.label("n01")
    c.wait_for_slice("w", 39)
    c.slice_nodes["n01"]["crashes"] = True
    c.after("2m")
    c.after("2m")
    expect_that(c.label("n01") != before, "another label", before)
    c.stop_agent("n01")
    look(c, 12)
    expect("the label", c.label("n01"), before)


@scenario
def a_node_of_the_former_label_gets_its_first_profile_without_an_agent():
    """Neither plugin nor agent selects it before its first profile sets the present label; agents run on n02."""
    c = served(10)
    c.agent_pod("n01")
    c.slice_node("n02", spelling="nos.nebuly.ai/gpu-partitioning")
    c.wait_for_slice("w", 39)
    look(c, 4)
    expect_that(c.label("n02", CONFIG_LABEL), "a profile label of n02", None)
