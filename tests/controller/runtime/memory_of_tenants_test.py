#!/usr/bin/env python3
"""Objects that tenants can write fill the operator's memory at start, at its watches, and at its searches: its peak is at most 32 MiB above what
it needs without them, and no watch breaks.

usage: memory_of_tenants_test.py BINARY
"""
import http.server
import json
import os
import pathlib
import re
import subprocess
import sys
import tempfile
import threading
import time
import unittest
import urllib.parse

BINARY = sys.argv.pop(1)
ENVIRONMENT = {name: value for name, value in os.environ.items() if not name.startswith("GSO_")}
SERVED = {"/api/v1": ["nodes", "pods", "configmaps"], "/apis/apps/v1": ["daemonsets", "controllerrevisions", "deployments"],
          "/apis/coordination.k8s.io/v1": ["leases"], "/apis/events.k8s.io/v1": ["events"],
          "/apis/kai.scheduler/v1": ["configs"], "/apis/scheduling.run.ai/v1alpha2": ["bindrequests"]}
GROUPS = [{"name": path.split("/")[2], "versions": [{"groupVersion": path[6:], "version": path.rsplit("/", 1)[-1]}]}
          for path in SERVED if path.startswith("/apis/")]
KAI_CONFIG = {"metadata": {"name": "kai-config", "uid": "u-kai", "resourceVersion": "5"},
              "spec": {"namespace": "kai-scheduler", "admission": {"gpuSharing": True}}}
OURS = "/namespaces/gpu-sharing-operator/daemonsets"
MOST_MORE = 32 * 1024  # KiB.


def daemonset(name, namespace, text):
    container = {"name": "nvidia-device-plugin", "image": "i", "env": [{"name": "E", "value": text}]}
    return {"metadata": {"name": name, "namespace": namespace, "uid": "u-" + name, "resourceVersion": "5"},
            "spec": {"selector": {"matchLabels": {"a": "b"}}, "template": {"spec": {"containers": [container]}}}}


class KaiPods:
    """Pods with a GPU group, which are made as they are listed: with so many annotations of 4 KB and labels of groups each."""

    def __init__(self, count, annotations=0, labels=0):
        self.count, self.annotations, self.labels = count, annotations, labels

    def __len__(self):
        return self.count

    def __getitem__(self, numbers):
        return [self.pod(number) for number in range(*numbers.indices(self.count))]

    def pod(self, number):
        annotations = {f"gpu-{k:02}": f"{number:06}-{k:02}-" + "x" * 4000 for k in range(self.annotations)}
        labels = {f"runai-gpu-group/{number:06}-{k:03}-" + "x" * 40: f"{number:06}-{k:03}-" + "y" * 40 for k in range(self.labels)}
        return {"metadata": {"name": f"p{number:05}", "namespace": "team", "uid": f"u-{number}", "resourceVersion": "5",
                             "annotations": {**annotations, "gpu-fraction": "0.5"}, "labels": {**labels, "runai-gpu-group": f"g{number}"}},
                "spec": {"schedulerName": "kai-scheduler", "containers": [{"name": "c", "image": "i"}]}, "status": {"phase": "Pending"}}


def event(kind, item):
    # As Go writes it: "<" has six bytes.
    line = json.dumps({"type": kind, "object": {"kind": "DaemonSet", "apiVersion": "apps/v1", **item}}).replace("<", "\\u003c")
    return line.encode() + b"\n"


class Server(http.server.ThreadingHTTPServer):
    request_queue_size = 128
    daemon_threads = True

    def __init__(self, foreign, events, pods):
        super().__init__(("127.0.0.1", 0), Handler)
        self.foreign, self.events, self.pods = foreign, events, pods
        self.pods_listed = threading.Event()
        self.ended = threading.Event()
        self.listed = set()  # Of the foreign ones.


class Handler(http.server.BaseHTTPRequestHandler):
    protocol_version = "HTTP/1.1"

    def log_message(self, *_):
        pass

    def answer(self, status, body):
        text = json.dumps(body).encode()
        self.send_response(status)
        self.send_header("Content-Type", "application/json")
        self.send_header("Content-Length", str(len(text)))
        self.end_headers()
        try:
            self.wfile.write(text)
        except OSError:  # The operator wants no more of an answer that is too large.
            self.close_connection = True

    def do_GET(self):
        url = urllib.parse.urlparse(self.path)
        query = {name: values[0] for name, values in urllib.parse.parse_qs(url.query).items()}
        if "watch" in query:
            return self.refuse(422, "Invalid") if "sendInitialEvents" in query else self.watch(url.path)
        if url.path == "/api":
            return self.answer(200, {"kind": "APIVersions", "versions": ["v1"]})
        if url.path == "/apis":
            return self.answer(200, {"kind": "APIGroupList", "groups": GROUPS})
        if url.path in SERVED:
            return self.answer(200, {"kind": "APIResourceList", "resources": [{"name": name, "kind": "X"} for name in SERVED[url.path]]})
        kind = url.path.rsplit("/", 1)[-1]
        if not any(kind in kinds for kinds in SERVED.values()):
            return self.refuse(404, "NotFound")
        grouped = url.path == "/api/v1/pods" and query.get("labelSelector") == "runai-gpu-group"
        every = (self.server.foreign if url.path == "/apis/apps/v1/daemonsets" else self.server.pods if grouped else
                 [KAI_CONFIG] if kind == "configs" else [])
        begin = int(query.get("continue", 0))
        end = min(len(every), begin + int(query.get("limit", 500)))
        items = every[begin:end]
        if every is self.server.foreign:
            self.server.listed.update(item["metadata"]["name"] for item in items)
        metadata = {"resourceVersion": "5", "continue": str(end) if end < len(every) else ""}
        self.answer(200, {"kind": "List", "metadata": metadata, "items": items})
        if grouped and end == len(every) and not self.close_connection:
            self.server.pods_listed.set()

    def watch(self, path):
        self.send_response(200)
        self.send_header("Content-Type", "application/json")
        self.send_header("Transfer-Encoding", "chunked")
        self.end_headers()
        try:
            if path.endswith(OURS):
                for line in self.server.events:
                    self.wfile.write(b"%x\r\n%s\r\n" % (len(line), line))
                self.wfile.flush()
            self.server.ended.wait()
        except OSError:
            pass

    def refuse(self, status, reason):
        self.answer(status, {"kind": "Status", "apiVersion": "v1", "status": "Failure", "reason": reason, "code": status, "message": reason})

    def do_POST(self):
        stored = json.loads(self.rfile.read(int(self.headers["Content-Length"])))
        stored["metadata"] = {"name": "x", **stored.get("metadata", {}), "resourceVersion": "7", "uid": "u"}
        self.answer(200, stored)

    do_PUT = do_PATCH = do_POST


class MemoryOfTenants(unittest.TestCase):
    def peak(self, foreign=(), events=(), pods=(), until=("All stores synced",)):
        """The most KiB that were resident until each of these texts is in the log and the pods are listed, and the log."""
        with Server(list(foreign), list(events), pods) as server, tempfile.TemporaryDirectory() as folder:
            threading.Thread(target=server.serve_forever, daemon=True).start()
            kubeconfig = pathlib.Path(folder) / "config"
            kubeconfig.write_text(json.dumps({
                "current-context": "a", "contexts": [{"name": "a", "context": {"cluster": "c", "user": "u"}}],
                "clusters": [{"name": "c", "cluster": {"server": f"http://127.0.0.1:{server.server_port}"}}], "users": [{"name": "u", "user": {}}]}))
            command = [BINARY, "run", "--kubeconfig", str(kubeconfig), "--metrics-bind-address", "0", "--health-probe-bind-address", "0",
                       "--log-format", "text"]
            operator = subprocess.Popen(command, stderr=subprocess.PIPE, env=ENVIRONMENT, text=True)
            log = []
            wanted = set(until)
            try:
                for line in operator.stderr:
                    log.append(line)
                    wanted = {text for text in wanted if text not in line}
                    if not wanted:
                        break
                self.assertFalse(wanted, "".join(log))
                self.assertEqual(len(server.listed), len(foreign), "the search reads every DaemonSet")
                self.assertTrue(server.pods_listed.wait(120), "the pods of GPU groups are listed")
                time.sleep(1)  # They are read.
                status = pathlib.Path(f"/proc/{operator.pid}/status").read_text()
                return int(re.search(r"VmHWM:\s+(\d+)", status)[1]), "".join(log)
            finally:
                operator.kill()
                operator.communicate()
                server.ended.set()
                server.shutdown()

    def setUp(self):
        self.usual, _ = self.peak()

    def test_daemonsets_of_foreign_namespaces(self):
        foreign = [daemonset(f"d{number:03}", "team", "x" * 1_200_000) for number in range(120)]
        peak, log = self.peak(foreign)
        self.assertLessEqual(peak - self.usual, MOST_MORE, log)

    def test_pods_with_a_gpu_group(self):
        for pods in (KaiPods(300, annotations=60), KaiPods(1500, labels=120)):
            with self.subTest(annotations=pods.annotations, labels=pods.labels):
                peak, log = self.peak(pods=pods)
                self.assertLessEqual(peak - self.usual, MOST_MORE, log)

    def test_events_of_any_size(self):
        mine = "gpu-sharing-operator"
        events = [event("ADDED", daemonset("large", mine, "<" * 1_500_000)), event("MODIFIED", daemonset("huge", mine, "<" * 3_500_000)),
                  event("ADDED", {"metadata": {"name": "bad", "namespace": mine, "resourceVersion": "6"}, "spec": 1})]
        peak, log = self.peak(events=events, until=("All stores synced", "gpu-sharing-operator/huge is kept as it was", "bad"))
        self.assertLessEqual(peak - self.usual, MOST_MORE, log)
        self.assertNotIn("longer than", log)
        self.assertNotIn("large", log.replace("too large", ""))


if __name__ == "__main__":
    unittest.main()
