"""What `explain NAMESPACE/POD` prints about pods that have a cause in their own status, and about many nodes."""
import json

from cluster.program import ask
from hostile_texts import FORGED
from scenario import expect, expect_that, fleet, scenario, ts


def explained(c, *what):
    return ask(["explain", *what, "-f", "-"], c.manifests())


def pod_with(c, status, **fields):
    """A user's pod on n01 whose container is in that state."""
    pod = c.consumer("train", "n01")
    pod["metadata"].update(fields)
    pod["status"] = status
    c.touch(pod)
    return c


@scenario
def a_pod_without_an_image_is_not_asked_for_its_previous_log():
    """Its container never started: the kubelet's message is shown, and `describe`, not `logs --previous`."""
    waiting = {"waiting": {"reason": "ImagePullBackOff", "message": 'Back-off pulling image "x"'}}
    c = pod_with(fleet(1, ts(4)), {"phase": "Pending", "containerStatuses": [{"name": "main", "restartCount": 0, "state": waiting}]})
    told = explained(c, "team/train")
    expect("exit status", told.returncode, 1)
    expect_that('ImagePullBackOff: Back-off pulling image "x"' in told.stdout, "the kubelet's message", told.stdout)
    expect_that("--previous" not in told.stdout and "kubectl describe pod train" in told.stdout, "a command that works", told.stdout)


@scenario
def a_pod_that_a_finalizer_holds_is_not_called_fine():
    """It was deleted long ago and is still there: exit status 1, and the finalizer is named."""
    c = pod_with(fleet(1, ts(4)), {"phase": "Running"}, finalizers=["example.com/hold"], deletionTimestamp="2020-01-01T00:00:30Z",
                 deletionGracePeriodSeconds=30)
    told = explained(c, "team/train")
    expect("exit status", told.returncode, 1)
    expect_that("Terminating since 2020-01-01T00:00:00Z" in told.stdout and "example.com/hold" in told.stdout, "the finalizer", told.stdout)


@scenario
def what_a_users_pod_says_forges_no_line():
    """Reasons and messages of a pod's status are texts of three lines: each stays in the line that quotes it, and is cut."""
    ended = {"terminated": {"exitCode": 1, "reason": FORGED, "message": FORGED}}
    waiting = {"waiting": {"reason": FORGED, "message": FORGED}}
    for status in ({"phase": "Pending", "containerStatuses": [{"name": "main", "state": waiting, "lastState": ended}]},
                   {"phase": "Running", "containerStatuses": [{"name": "main", "state": ended}]},
                   {"phase": "Failed", "reason": FORGED, "message": FORGED}):
        held = {"finalizers": [FORGED], "deletionTimestamp": "2020-01-01T00:00:00Z"} if status["phase"] == "Failed" else {}
        c = pod_with(fleet(1, ts(4)), status, **held)
        told = explained(c, "team/train").stdout
        expect("forged lines", [line[:80] for line in told.splitlines() if line.startswith("error FORGED")], [])
        expect("whole texts", [line[:80] for line in told.splitlines() if "A" * 300 in line], [])


@scenario
def the_nodes_that_are_not_shown_are_counted():
    """Of 25 nodes the text shows 20 and counts the others; JSON has all of them."""
    c = fleet(25, ts(4))
    pod = c.consumer("train", "n01", gpus=1000)
    del pod["spec"]["nodeName"]
    pod["status"] = {"phase": "Pending"}
    c.touch(pod)
    told = explained(c, "team/train").stdout
    expect_that("and 5 more nodes (all: -o json)" in told, "how many are left out", told)
    listed = json.loads(explained(c, "team/train", "-o", "json").stdout)["nodes"]
    expect("nodes in JSON", len(listed), 25)
