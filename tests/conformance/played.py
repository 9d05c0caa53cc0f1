"""What a program that plays several components of a cluster has: a connection to the API server, and a loop of tasks."""
import heapq
import http.client
import json
import ssl
import time
import urllib.parse


class Api:
    """The API server, as the administrator of the test cluster."""

    def __init__(self, cluster):
        kubeconfig = (cluster / "admin.kubeconfig").read_text(encoding="utf-8")
        server = next(line.split()[1] for line in kubeconfig.splitlines() if line.strip().startswith("server:"))
        self.address = urllib.parse.urlsplit(server)
        self.token = (cluster / "admin.token").read_text(encoding="utf-8").strip()
        self.context = ssl.create_default_context(cafile=str(cluster / "pki" / "ca.crt"))
        self.connection = None

    def send(self, method, path, body=None, kind="application/json"):
        """(status, object). What was lost with its connection is not sent again: a binder sees that too."""
        if self.connection is None:
            self.connection = http.client.HTTPSConnection(self.address.hostname, self.address.port, context=self.context,
                                                          timeout=20)
        headers = {"Authorization": f"Bearer {self.token}", "Content-Type": kind}
        try:
            self.connection.request(method, path, None if body is None else json.dumps(body), headers)
            answer = self.connection.getresponse()
            text = answer.read()
            return answer.status, json.loads(text or b"{}")
        except (OSError, http.client.HTTPException):
            self.connection.close()
            self.connection = None
            return 0, {}

    def get(self, path):
        status, thing = self.send("GET", path)
        return thing if status == 200 else None

    def all(self, path):
        """(namespace, name) -> object. An answer that does not come ends the run: it is no proof of anything."""
        status, answer = self.send("GET", path)
        if status != 200:
            status, answer = self.send("GET", path)
        if status != 200:
            raise RuntimeError(f"GET {path}: {status}")
        return {(thing["metadata"]["namespace"], thing["metadata"]["name"]): thing for thing in answer["items"]}


class Loop:
    """Tasks are generators that yield how many seconds they wait; one at a time runs."""

    def __init__(self):
        self.tasks = []
        self.begun = 0

    def begin(self, task):
        self.begun += 1
        heapq.heappush(self.tasks, (time.monotonic(), self.begun, task))

    def run_until(self, done, seconds):
        deadline = time.monotonic() + seconds
        while time.monotonic() < deadline:
            if done():
                return True
            at, number, task = heapq.heappop(self.tasks)
            time.sleep(max(0.0, at - time.monotonic()))
            try:
                heapq.heappush(self.tasks, (time.monotonic() + next(task), number, task))
            except StopIteration:
                pass
        return done()
