"""The control plane of the bench: etcd and kube-apiserver alone, started and asked by the driver."""
import concurrent.futures
import http.client
import json
import os
import re
import ssl
import subprocess
import threading
import urllib.parse

HERE = os.path.dirname(os.path.abspath(__file__))
PROJECT = os.path.dirname(os.path.dirname(HERE))
CLUSTER = os.path.join(PROJECT, "tests/conformance/controlplane/cluster.sh")
# Without these, kube-apiserver taints new Nodes and refuses pods until a controller has made the ServiceAccount.
FLAGS = ["--disable-admission-plugins=TaintNodesByCondition,ServiceAccount",
         "--audit-policy-file=" + os.path.join(HERE, "audit-policy.yaml")]
CONNECTIONS = 16  # Of the driver, while it creates objects.


class Refused(Exception):
    """A request that the API server did not answer with success."""


class ApiServer:
    """Requests with the admin's token, each thread on a connection of its own."""

    def __init__(self, folder):
        self.folder = folder
        self.local = threading.local()
        self.token = self.server = self.netloc = None

    def up(self):
        flags = [argument for flag in FLAGS for argument in ("--api-server-flag", flag)]
        subprocess.run([CLUSTER, "up", "--dir", self.folder, "--api-only", *flags], check=True)
        with open(os.path.join(self.folder, "admin.token")) as file:
            self.token = file.read().strip()
        with open(os.path.join(self.folder, "admin.kubeconfig")) as file:
            self.server = re.search(r"server: (\S+)", file.read()).group(1)
        self.netloc = urllib.parse.urlsplit(self.server).netloc
        self.context = ssl.create_default_context(cafile=self.ca())
        with open(self.kubeconfig(), "w") as file:
            file.write(json.dumps({
                "apiVersion": "v1", "kind": "Config", "current-context": "bench",
                "clusters": [{"name": "bench", "cluster": {"server": self.server, "certificate-authority": self.ca()}}],
                "users": [{"name": "bench", "user": {"token": self.token}}],
                "contexts": [{"name": "bench", "context": {"cluster": "bench", "user": "bench"}}]}))

    def kubectl(self, *arguments):
        kubectl = os.path.join(self.folder, "bin/kubectl")
        subprocess.run([kubectl, "--kubeconfig", self.kubeconfig(), *arguments], check=True, stdout=subprocess.DEVNULL)

    def down(self):
        subprocess.run([CLUSTER, "down", "--dir", self.folder], check=True)

    def ca(self):
        return os.path.join(self.folder, "pki/ca.crt")

    def kubeconfig(self):
        """The token alone: every client of the bench authenticates in the same way."""
        return os.path.join(self.folder, "bench.kubeconfig")

    def audit_log(self):
        return os.path.join(self.folder, "audit.log")

    def version(self):
        return self.get("/version")["gitVersion"]

    def request(self, method, path, body=None, content_type="application/json"):
        """The answer as bytes. Errors are raised with what the server says."""
        headers = {"Authorization": "Bearer " + self.token, "Content-Type": content_type}
        text = None if body is None else json.dumps(body)
        try:
            answer, text = self.ask(method, path, text, headers)
        except (http.client.RemoteDisconnected, ConnectionError, ssl.SSLEOFError):  # Closed while it was idle.
            self.local.connection = None
            answer, text = self.ask(method, path, text, headers)
        if answer.status >= 300:
            raise Refused("%s %s: %d %s" % (method, path, answer.status, text[:500].decode()))
        return text

    def ask(self, method, path, text, headers):
        if getattr(self.local, "connection", None) is None:
            self.local.connection = http.client.HTTPSConnection(self.netloc, context=self.context, timeout=60)
        self.local.connection.request(method, path, text, headers)
        answer = self.local.connection.getresponse()
        return answer, answer.read()

    def get(self, path):
        return json.loads(self.request("GET", path))

    def create(self, path, body):
        return json.loads(self.request("POST", path, body))

    def merge_patch(self, path, body):
        return json.loads(self.request("PATCH", path, body, "application/merge-patch+json"))

    def each(self, function, items):
        """Calls the function for every item, on several connections. The results are in the order of the items."""
        with concurrent.futures.ThreadPoolExecutor(CONNECTIONS) as pool:
            return list(pool.map(function, items))
