"""The clients that the bench compares. Each writes one label on every Node when it is asked to."""
import http.client
import json
import os
import time

from fleet_objects import DAEMONSET, KEYS, NAMESPACE, OPERATOR_NAMESPACE, PEER_NAMESPACE, conditions
from processes import Program, run

START_SECONDS = 600
LABEL = "bench-label"  # A key of a ConfigMap cannot have a prefix.


class Operator:
    """gpu-sharing-operator: moves every Node to the policy's other key. Both keys have the same text, so that a change is
    a label and no restart: one PATCH into it and, after --node-status-lag, one PATCH out of it."""

    name, agent = "operator", "gpu-sharing-operator"
    lease = ("gpu-sharing-operator", OPERATOR_NAMESPACE)
    patches_per_node = 2

    def __init__(self, binary, api, fleet, folder):
        self.binary, self.api, self.fleet, self.folder = binary, api, fleet, folder
        self.program = None
        self.key = 0  # Which of KEYS the policy names.
        self.lag = 1  # --node-status-lag in seconds.

    def separate_patches(self):
        """From the next start on, the second PATCH of a Node comes behind the first of all others."""
        self.lag = min(600, 3 + self.fleet.size // 80)

    def command(self, identity):
        return [self.binary, "run", "--kubeconfig", self.api.kubeconfig(), "--namespace", OPERATOR_NAMESPACE,
                "--identity", identity, "--log-format=text", "--metrics-bind-address=127.0.0.1:0",
                "--health-probe-bind-address=0", "--settle-period=0s", "--configmap-propagation=1s",
                "--cluster-max-unavailable=100%", "--label-mode=verify", "--node-status-lag=%ds" % self.lag]

    def start(self, identity="one"):
        """Seconds from the start of the process until its caches are filled."""
        self.program = Program(self.command(identity), os.path.join(self.folder, "operator-%s.log" % identity))
        return self.program.wait_for("All stores synced", START_SECONDS)

    def is_up_to_date(self):
        """Whether every Node is recorded and shows its profile: nothing is left to be written."""
        return self.fleet.policy_counts().get("upToDate") == self.fleet.size

    def write_label(self):
        self.key = 1 - self.key
        self.fleet.set_policy_key(KEYS[self.key])


class Peer:
    """bench/peer: makes labels of every Node equal to a ConfigMap, with controller-runtime."""

    lease = ("peer", PEER_NAMESPACE)
    patches_per_node = 1

    def __init__(self, binary, workers, api, fleet, folder):
        self.binary, self.workers, self.api, self.fleet, self.folder = binary, workers, api, fleet, folder
        self.name = self.agent = "peer-%d" % workers
        self.program = None
        self.value = 0

    def start(self, identity="one"):
        command = [self.binary, "--kubeconfig", self.api.kubeconfig(), "--workers", str(self.workers),
                   "--metrics-bind-address=127.0.0.1:0"]
        self.program = Program(command, os.path.join(self.folder, "%s-%s.log" % (self.name, identity)))
        return self.program.wait_for("caches synced", START_SECONDS)

    def is_up_to_date(self):
        return True  # Until the ConfigMap changes.

    def write_label(self):
        self.value += 1
        self.fleet.set_peer_labels({LABEL: "%s-%d" % (self.name, self.value)})


class Sender:
    """h2load (nghttp2): 16 PATCHes in flight on one connection, and nothing else. It reads, watches and checks nothing."""

    name, agent = "sender", "h2load"
    in_flight = 16

    def __init__(self, api, fleet, folder):
        self.api, self.fleet, self.folder = api, fleet, folder
        self.value = 0

    def send(self, body, suffix=""):
        """One PATCH with this body to every Node. The CPU seconds that it took."""
        count = self.fleet.size
        uris, data = os.path.join(self.folder, "uris.txt"), os.path.join(self.folder, "body.json")
        with open(uris, "w") as file:
            file.writelines("%s/api/v1/nodes/%s%s\n" % (self.api.server, name, suffix) for name in self.fleet.names())
        with open(data, "w") as file:
            json.dump(body, file)
        _, cpu, output = run(["h2load", "-n", str(count), "-c", "1", "-m", str(self.in_flight), "-i", uris, "-d", data,
                              "-H", ":method: PATCH", "-H", "content-type: application/merge-patch+json",
                              "-H", "authorization: Bearer " + self.api.token, self.api.server],
                             os.path.join(self.folder, "h2load.log"))
        if "status codes: %d 2xx" % count not in output:
            raise RuntimeError("not every PATCH of h2load succeeded:\n" + output)
        return cpu

    def write_label(self):
        self.value += 1
        return self.send({"metadata": {"labels": {LABEL: "sender-%d" % self.value}}})

    def heartbeat(self):
        """The status of every Node, as its kubelet reports it."""
        return self.send({"status": {"conditions": conditions()}}, "/status")


class WatchReader:
    """curl: the operator's watch of Nodes, read into nothing. Nothing that is read costs a client less."""

    def __init__(self, api, folder):
        self.api, self.folder = api, folder
        self.program = None

    def start(self):
        self.program = Program(["curl", "--silent", "--show-error", "--fail", "--no-buffer", "--http2", "--cacert", self.api.ca(),
                                "-H", "Authorization: Bearer " + self.api.token,
                                "-H", "Accept: application/vnd.kubernetes.protobuf;stream=watch", "-o", "/dev/null",
                                self.api.server + "/api/v1/nodes?watch=1&resourceVersion=0"],
                               os.path.join(self.folder, "curl-watch.log"))


def download(api, folder):
    """curl downloads what the operator lists: seconds, CPU seconds and bytes."""
    lists = ["/api/v1/nodes", "/api/v1/namespaces/%s/pods?labelSelector=app%%3D%s" % (NAMESPACE, DAEMONSET),
             "/apis/apps/v1/daemonsets", "/apis/gpusharing.dev/v1alpha1/sharingpolicies",
             "/apis/gpusharing.dev/v1alpha1/sharingrollouts", "/api/v1/namespaces/%s/configmaps" % NAMESPACE]
    urls = [api.server + path + ("&" if "?" in path else "?") + "resourceVersion=0" for path in lists]
    outputs = [argument for _ in urls for argument in ("-o", "/dev/null")]
    took, cpu, output = run(["curl", "--no-progress-meter", "--fail", "--parallel", "--cacert", api.ca(), "-H",
                             "Authorization: Bearer " + api.token, "-w", "%{size_download}\\n", *outputs, *urls],
                            os.path.join(folder, "curl.log"))
    return took, cpu, sum(int(line) for line in output.split())


def scrape(port):
    """One request of /metrics: seconds and bytes."""
    began = time.monotonic()
    connection = http.client.HTTPConnection("127.0.0.1", port, timeout=30)
    connection.request("GET", "/metrics")
    answer = connection.getresponse()
    size = len(answer.read())
    if answer.status != 200:
        raise RuntimeError("/metrics answers %d" % answer.status)
    connection.close()
    return time.monotonic() - began, size
