#!/usr/bin/env python3
"""A small kubelet that runs pods as local processes, so that Deployments, hooks and `helm test` are really run.

usage: process_kubelet.py CLUSTER_DIR BINARY [--node NAME]

It registers one Node and keeps its Lease, and does for each pod bound there what a kubelet does: volumes (ConfigMaps,
projected ServiceAccount tokens from the TokenRequest API, downward API), environment, arguments with $(NAME), probes over
HTTP, restarts with back-off, termination with the grace period, and the pod's status. Every image is BINARY. A pod has an
address of its own in 127.0.0.0/8. Its process sees a root filesystem of its own, read-only but for what is mounted: the
host's libraries, BINARY and the volumes (unshare and chroot; needs root or user namespaces).

It ends, with all its pods' processes, at SIGTERM or SIGINT. Standard library only.
"""
import argparse
import datetime
import json
import os
import pathlib
import shlex
import shutil
import signal
import ssl
import subprocess
import sys
import tempfile
import time
import urllib.error
import urllib.request

POLL_SECONDS = 0.2
LEASE_SECONDS = 10
LONGEST_BACKOFF = 10


def now():
    return datetime.datetime.now(datetime.timezone.utc).strftime("%Y-%m-%dT%H:%M:%SZ")


class Api:
    """The API server, as the administrator of the test cluster."""

    def __init__(self, cluster):
        kubeconfig = (cluster / "admin.kubeconfig").read_text(encoding="utf-8")
        self.server = next(line.split()[1] for line in kubeconfig.splitlines() if line.strip().startswith("server:"))
        self.token = (cluster / "admin.token").read_text(encoding="utf-8").strip()
        self.ca = (cluster / "pki" / "ca.crt").read_text(encoding="utf-8")
        self.context = ssl.create_default_context(cadata=self.ca)

    def call(self, method, path, body=None, kind="application/json"):
        """The answer as an object; None for 404 and 409, which mean that somebody else was quicker."""
        data = None if body is None else json.dumps(body).encode()
        request = urllib.request.Request(self.server + path, data=data, method=method)
        request.add_header("Authorization", f"Bearer {self.token}")
        request.add_header("Content-Type", kind)
        try:
            with urllib.request.urlopen(request, context=self.context, timeout=10) as answer:
                return json.load(answer)
        except urllib.error.HTTPError as error:
            if error.code in (404, 409):
                return None
            raise RuntimeError(f"{method} {path}: {error.code} {error.read().decode()}") from error


class Container:
    """One container's process, with its restarts."""

    def __init__(self, spec):
        self.spec = spec
        self.process = None
        self.restarts = 0
        self.start_after = 0.0
        self.started_at = None
        self.last = None  # State of the last run.
        self.ready = False
        self.started = False
        self.failures = {"startupProbe": 0, "livenessProbe": 0, "readinessProbe": 0}
        self.probed_at = {}

    def running(self):
        return self.process is not None and self.process.poll() is None


class Pod:
    """One pod: its folder, its address, its containers."""

    def __init__(self, kubelet, manifest, address):
        self.kubelet, self.manifest, self.address = kubelet, manifest, address
        self.meta, self.spec = manifest["metadata"], manifest["spec"]
        self.path = f"/api/v1/namespaces/{self.meta['namespace']}/pods/{self.meta['name']}"
        self.folder = pathlib.Path(tempfile.mkdtemp(prefix=f"{self.meta['name']}-", dir=kubelet.work))
        self.containers = [Container(spec) for spec in self.spec["containers"]]
        self.started = now()
        self.written = None
        self.stop_at = None  # When SIGKILL follows.

    # --- volumes and environment

    def field(self, path):
        values = {"metadata.name": self.meta["name"], "metadata.namespace": self.meta["namespace"],
                  "metadata.uid": self.meta["uid"], "status.podIP": self.address, "status.hostIP": "127.0.0.1",
                  "spec.nodeName": self.kubelet.node, "spec.serviceAccountName": self.spec.get("serviceAccountName", "default")}
        return values[path]

    def config_map(self, name):
        found = self.kubelet.api.call("GET", f"/api/v1/namespaces/{self.meta['namespace']}/configmaps/{name}")
        if found is None:
            raise RuntimeError(f"configmap {name} not found")
        return found.get("data", {})

    def token(self, source):
        account = self.spec.get("serviceAccountName", "default")
        body = {"apiVersion": "authentication.k8s.io/v1", "kind": "TokenRequest",
                "spec": {"expirationSeconds": source.get("expirationSeconds", 3600),
                         "audiences": [source["audience"]] if "audience" in source else [],
                         "boundObjectRef": {"kind": "Pod", "apiVersion": "v1", "name": self.meta["name"], "uid": self.meta["uid"]}}}
        answer = self.kubelet.api.call("POST", f"/api/v1/namespaces/{self.meta['namespace']}/serviceaccounts/{account}/token", body)
        if answer is None:
            raise RuntimeError(f"serviceaccount {account} not found")
        return answer["status"]["token"]

    def fill(self, volume, folder):
        """Writes a volume's files."""
        folder.mkdir(parents=True)
        if "configMap" in volume:
            for key, text in self.config_map(volume["configMap"]["name"]).items():
                (folder / key).write_text(text, encoding="utf-8")
        for source in volume.get("projected", {}).get("sources", []):
            if "serviceAccountToken" in source:
                wanted = source["serviceAccountToken"]
                (folder / wanted["path"]).write_text(self.token(wanted), encoding="utf-8")
            elif "configMap" in source:
                data = self.config_map(source["configMap"]["name"])
                for item in source["configMap"].get("items", [{"key": key, "path": key} for key in data]):
                    (folder / item["path"]).write_text(data[item["key"]], encoding="utf-8")
            elif "downwardAPI" in source:
                for item in source["downwardAPI"]["items"]:
                    (folder / item["path"]).write_text(self.field(item["fieldRef"]["fieldPath"]), encoding="utf-8")

    def environment(self, spec):
        host, port = self.kubelet.api.server.removeprefix("https://").split(":")
        env = {"PATH": "/usr/bin", "HOME": "/", "KUBERNETES_SERVICE_HOST": host, "KUBERNETES_SERVICE_PORT": port}
        for entry in spec.get("env", []):
            env[entry["name"]] = entry.get("value", "") if "valueFrom" not in entry else self.field(entry["valueFrom"]["fieldRef"]["fieldPath"])
        return env

    # --- processes

    def start(self, container):
        spec = container.spec
        env = self.environment(spec)
        root = self.folder / spec["name"]
        shutil.rmtree(root, ignore_errors=True)
        root.mkdir()
        volumes = {volume["name"]: volume for volume in self.spec.get("volumes", [])}
        script = [f"mount -t tmpfs root {shlex.quote(str(root))}"]
        binds = [(self.kubelet.binary, "/usr/bin/gpu-sharing-operator")]
        binds += [(path, path) for path in ("/lib", "/lib64", "/usr/lib", "/dev", "/usr/share/zoneinfo") if os.path.isdir(path)]
        for mount in spec.get("volumeMounts", []):
            source = self.folder / "volumes" / mount["name"]
            if not source.exists():
                self.fill(volumes[mount["name"]], source)
            binds.append((str(source), mount["mountPath"]))
        for source, target in binds:
            inside = shlex.quote(str(root) + target)
            make = f"mkdir -p {inside}" if os.path.isdir(source) else f"mkdir -p {shlex.quote(os.path.dirname(str(root) + target))}; touch {inside}"
            script.append(f"{make}; mount --rbind {shlex.quote(os.path.realpath(source))} {inside}")
        script.append(f"mkdir -p {root}/proc; mount --rbind /proc {root}/proc")
        if spec.get("securityContext", {}).get("readOnlyRootFilesystem"):
            script.append(f"mount -o remount,ro {shlex.quote(str(root))}")
        args = spec.get("args", [])
        for name, value in env.items():
            args = [arg.replace(f"$({name})", value) for arg in args]
        command = spec.get("command", ["/usr/bin/gpu-sharing-operator"])
        assigned = [f"{name}={value}" for name, value in env.items()]
        user = {**self.spec.get("securityContext", {}), **spec.get("securityContext", {})}.get("runAsUser")
        setpriv = []
        if user is not None and os.geteuid() == 0:
            setpriv = ["/bin/setpriv", f"--reuid={user}", f"--regid={user}", "--clear-groups", "--no-new-privs", "--inh-caps=-all", "--bounding-set=-all"]
        for tool in ("env", "setpriv"):
            script.insert(1, f"mkdir -p {root}/bin; touch {root}/bin/{tool}; mount --bind {shutil.which(tool)} {root}/bin/{tool}")
        script.append(f"exec chroot {shlex.quote(str(root))} " + shlex.join([*setpriv, "/bin/env", "-i", *assigned, *command, *args]))
        with open(self.folder / f"{spec['name']}.log", "ab") as log:
            container.process = subprocess.Popen(
                ["unshare", "--mount", *([] if os.geteuid() == 0 else ["--map-root-user"]), "sh", "-ec", "\n".join(script)],
                stdin=subprocess.DEVNULL, stdout=log, stderr=log, start_new_session=True)
        container.started_at = now()
        container.ready = container.started = False
        container.failures = dict.fromkeys(container.failures, 0)
        container.probed_at = {}
        container.begun = time.monotonic()

    def probe(self, container, kind, at):
        """True or False when the probe decided something; None while it is not due."""
        spec = container.spec.get(kind)
        if spec is None:
            return True
        if at - container.begun < spec.get("initialDelaySeconds", 0) or at - container.probed_at.get(kind, 0) < spec.get("periodSeconds", 10):
            return None
        container.probed_at[kind] = at
        port = spec["httpGet"]["port"]
        if isinstance(port, str):
            port = next(p["containerPort"] for p in container.spec["ports"] if p["name"] == port)
        try:
            with urllib.request.urlopen(f"http://{self.address}:{port}{spec['httpGet']['path']}", timeout=spec.get("timeoutSeconds", 1)):
                container.failures[kind] = 0
                return True
        except OSError:
            container.failures[kind] += 1
            return False if container.failures[kind] >= spec.get("failureThreshold", 3) else None

    def step(self):
        at = time.monotonic()
        policy = self.spec.get("restartPolicy", "Always")
        for container in self.containers:
            if container.running():
                if self.stop_at is None:
                    self.watch_over(container, at)
                continue
            if container.process is not None:
                code = container.process.returncode
                container.last = {"terminated": {"exitCode": code if code >= 0 else 128 - code, "reason": "Completed" if code == 0 else "Error",
                                                 "startedAt": container.started_at, "finishedAt": now()}}
                container.process, container.ready = None, False
                again = self.stop_at is None and (policy == "Always" or (policy == "OnFailure" and code != 0))
                container.start_after = at + min(LONGEST_BACKOFF, 0.5 * 2**container.restarts) if again else float("inf")
                container.restarts += 1 if again else 0
            if self.stop_at is None and at >= container.start_after:
                self.start(container)

    def watch_over(self, container, at):
        if not container.started:
            answer = self.probe(container, "startupProbe", at)
            container.started = answer is True
            if answer is False:
                container.process.kill()
            return
        ready = self.probe(container, "readinessProbe", at)
        container.ready = container.ready if ready is None else ready
        if self.probe(container, "livenessProbe", at) is False:
            container.process.terminate()

    def stop(self, grace):
        self.stop_at = time.monotonic() + grace
        for container in self.containers:
            if container.running():
                container.process.terminate()

    def over(self):
        """Whether every process has ended; kills those whose time is up."""
        for container in self.containers:
            if container.running():
                if time.monotonic() >= self.stop_at:
                    container.process.kill()
                return False
        return True

    def status(self):
        states = []
        for container in self.containers:
            if container.running():
                state = {"running": {"startedAt": container.started_at}}
            elif container.last and container.start_after == float("inf"):
                state = container.last
            elif container.last:
                state = {"waiting": {"reason": "CrashLoopBackOff"}}
            else:
                state = {"waiting": {"reason": "ContainerCreating"}}
            states.append({"name": container.spec["name"], "image": container.spec["image"], "imageID": "local", "ready": container.ready,
                           "started": container.started, "restartCount": container.restarts, "state": state,
                           "lastState": container.last if container.last and "terminated" not in state else {}})
        ended = [state["state"]["terminated"]["exitCode"] for state in states if "terminated" in state["state"]]
        phase = "Running"
        if len(ended) == len(states):
            phase = "Failed" if any(ended) else "Succeeded"
        ready = "True" if all(state["ready"] for state in states) else "False"
        conditions = [{"type": kind, "status": ready if kind.endswith("Ready") else "True", "lastTransitionTime": self.started}
                      for kind in ("PodScheduled", "Initialized", "ContainersReady", "Ready")]
        return {"phase": phase, "podIP": self.address, "podIPs": [{"ip": self.address}], "hostIP": "127.0.0.1", "startTime": self.started,
                "conditions": conditions, "containerStatuses": states}

    def report(self):
        status = self.status()
        if status == self.written:
            return
        self.written = status
        self.kubelet.api.call("PATCH", self.path + "/status", {"status": status}, "application/merge-patch+json")


class Kubelet:
    pod_class = Pod
    selector = ""  # Of the pods that it runs, as a further parameter of the list.

    def __init__(self, cluster, binary, node):
        self.api, self.binary, self.node = Api(cluster), binary, node
        self.work = pathlib.Path(tempfile.mkdtemp(prefix="process-kubelet-"))
        # Other users than root run the pods.
        self.work.chmod(0o755)
        os.umask(0o022)
        self.pods = {}
        self.addresses = 0
        self.renewed = 0.0

    def register(self):
        self.api.call("POST", "/api/v1/nodes", {"apiVersion": "v1", "kind": "Node",
                                                "metadata": {"name": self.node, "labels": {"kubernetes.io/hostname": self.node}}})
        resources = {"cpu": "8", "memory": "8Gi", "pods": "50"}
        self.api.call("PATCH", f"/api/v1/nodes/{self.node}/status", {"status": {
            "capacity": resources, "allocatable": resources, "addresses": [{"type": "InternalIP", "address": "127.0.0.1"}],
            "conditions": [{"type": "Ready", "status": "True", "reason": "KubeletReady", "lastHeartbeatTime": now(), "lastTransitionTime": now()}]}},
                      "application/merge-patch+json")

    def renew(self):
        if time.monotonic() - self.renewed < LEASE_SECONDS:
            return
        self.renewed = time.monotonic()
        stamp = datetime.datetime.now(datetime.timezone.utc).strftime("%Y-%m-%dT%H:%M:%S.%fZ")
        path = "/apis/coordination.k8s.io/v1/namespaces/kube-node-lease/leases"
        spec = {"holderIdentity": self.node, "leaseDurationSeconds": 40, "renewTime": stamp}
        self.api.call("POST", path, {"apiVersion": "coordination.k8s.io/v1", "kind": "Lease", "metadata": {"name": self.node}, "spec": spec})
        self.api.call("PATCH", f"{path}/{self.node}", {"spec": spec}, "application/merge-patch+json")

    def sync(self):
        listed = self.api.call("GET", f"/api/v1/pods?fieldSelector=spec.nodeName%3D{self.node}{self.selector}")["items"]
        there = {pod["metadata"]["uid"]: pod for pod in listed}
        for uid, manifest in there.items():
            ended = manifest.get("status", {}).get("phase") in ("Succeeded", "Failed")
            if uid not in self.pods and not (ended or "deletionTimestamp" in manifest["metadata"]):
                self.addresses += 1
                self.pods[uid] = self.pod_class(self, manifest, f"127.77.{self.addresses // 250}.{self.addresses % 250 + 1}")
            elif uid not in self.pods and "deletionTimestamp" in manifest["metadata"]:
                self.release(manifest["metadata"])
        for uid, pod in list(self.pods.items()):
            meta = there.get(uid, {}).get("metadata")
            if pod.stop_at is None and (meta is None or "deletionTimestamp" in meta):
                pod.stop(meta.get("deletionGracePeriodSeconds", 0) if meta else 0)
            try:
                pod.step()
            except RuntimeError as error:  # A volume's object is not there yet: tried again.
                print(f"{pod.meta['name']}: {error}", flush=True)
            if pod.stop_at is None or not pod.over():
                pod.report()
            else:
                pod.step()
                pod.report()
                self.release(pod.meta)
                del self.pods[uid]

    def release(self, meta):
        self.api.call("DELETE", f"/api/v1/namespaces/{meta['namespace']}/pods/{meta['name']}",
                      {"gracePeriodSeconds": 0, "preconditions": {"uid": meta["uid"]}})

    def run(self):
        self.register()
        print(f"node {self.node} is ready", flush=True)
        while True:
            self.renew()
            self.sync()
            time.sleep(POLL_SECONDS)

    def end(self):
        for pod in self.pods.values():
            for container in pod.containers:
                if container.running():
                    container.process.kill()
                    container.process.wait()
        shutil.rmtree(self.work, ignore_errors=True)


def run_until_signal(kubelet):
    """Ends its pods then."""
    for each in (signal.SIGTERM, signal.SIGINT):
        signal.signal(each, lambda *_: sys.exit(0))
    try:
        kubelet.run()
    finally:
        kubelet.end()


def main():
    parser = argparse.ArgumentParser()
    parser.add_argument("cluster", type=pathlib.Path)
    parser.add_argument("binary")
    parser.add_argument("--node", default="process-1")
    options = parser.parse_args()
    run_until_signal(Kubelet(options.cluster, os.path.abspath(options.binary), options.node))


if __name__ == "__main__":
    main()
