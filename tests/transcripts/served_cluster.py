"""The objects of a transcript: what its lines make of them, and an API server that serves them to one command at a time."""
import http.server
import json
import pathlib
import re
import sys
import threading
import urllib.parse

sys.path.insert(0, str(pathlib.Path(__file__).resolve().parents[1] / "scenarios"))
from cluster.objects import Objects  # noqa: E402
from cluster.times import moment  # noqa: E402

# Kinds that each API server has. Those of a CustomResourceDefinition are served with it, others with their first object.
BUILT_IN = {"v1": "nodes pods configmaps namespaces events services secrets resourcequotas limitranges persistentvolumeclaims",
            "apps/v1": "daemonsets deployments replicasets statefulsets controllerrevisions", "coordination.k8s.io/v1": "leases",
            "batch/v1": "jobs cronjobs", "policy/v1": "poddisruptionbudgets", "events.k8s.io/v1": "events",
            "apiextensions.k8s.io/v1": "customresourcedefinitions", "node.k8s.io/v1": "runtimeclasses"}
CLUSTER_WIDE = {"Node", "Namespace", "CustomResourceDefinition", "SharingPolicy", "SharingRollout", "ClusterPolicy", "RuntimeClass"}
VERSIONS = {"Node": "v1", "Pod": "v1", "ConfigMap": "v1", "Namespace": "v1", "DaemonSet": "apps/v1", "Deployment": "apps/v1",
            "ReplicaSet": "apps/v1", "Lease": "coordination.k8s.io/v1", "SharingPolicy": "gpusharing.dev/v1alpha1",
            "SharingRollout": "gpusharing.dev/v1alpha1", "ClusterPolicy": "nvidia.com/v1", "PodDisruptionBudget": "policy/v1",
            "CustomResourceDefinition": "apiextensions.k8s.io/v1", "RuntimeClass": "node.k8s.io/v1", "Event": "v1"}


def plural(kind):
    name = kind.lower()
    return name[:-1] + "ies" if name.endswith("cy") else name + "es" if name.endswith("s") else name + "s"


def merge(into, patch):
    """A JSON merge patch (RFC 7386)."""
    if not isinstance(patch, dict):
        return patch
    out = dict(into) if isinstance(into, dict) else {}
    for key, value in patch.items():
        if value is None:
            out.pop(key, None)
        else:
            out[key] = merge(out.get(key), value)
    return out


def edited(data, time):
    """What an API server notes of an edit of these keys of a ConfigMap."""
    return {"manager": "kubectl-edit", "operation": "Update", "apiVersion": "v1", "time": time, "fieldsType": "FieldsV1",
            "fieldsV1": {"f:data": {"f:" + key: {} for key in data}}}


class World(Objects):
    """Objects as YAML names them; what an API server adds is filled in."""

    def __init__(self):
        self.objects, self.counter, self.gone, self.pods_by_node = {}, 0, set(), None
        self.clock = self.changed = moment("2026-01-01T00:00:00Z")
        self.namespace, self.config_map, self.history, self.served_crds = "", "", [], True

    def put(self, obj):
        meta = obj["metadata"]
        meta.setdefault("uid", "-".join((obj["kind"].lower(), meta["name"])))
        if obj["kind"] == "ConfigMap":
            meta.setdefault("managedFields", [edited(obj.get("data", {}), "2026-01-01T00:00:00Z")])
        return super().put(obj)


def selected(obj, query):
    def value(path):
        at = obj
        for part in path.split("."):
            at = at.get(part, "") if isinstance(at, dict) else ""
        return at
    labels = obj["metadata"].get("labels", {})
    return (all(str(value(path)) == wanted for path, wanted in re.findall(r"([\w.]+)=([^,]*)", query.get("fieldSelector", ""))) and
            all(key in labels and equal in ("", "=" + labels[key]) for key, equal in re.findall(r"([^,=]+)(=?[^,]*)", query.get("labelSelector", ""))))


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
        self.wfile.write(text)

    def refuse(self, status, reason, message):
        self.answer(status, {"kind": "Status", "apiVersion": "v1", "status": "Failure", "reason": reason, "code": status, "message": message})

    def served(self):
        """{version of a group: names of resources}"""
        out = {version: set(names.split()) for version, names in BUILT_IN.items()}
        for obj in self.server.world.objects.values():
            out.setdefault(obj["apiVersion"], set()).add(plural(obj["kind"]))
            if obj["kind"] == "CustomResourceDefinition":
                spec = obj["spec"]
                out.setdefault(spec["group"] + "/" + spec["versions"][0]["name"], set()).add(spec["names"]["plural"])
        return out

    def do_GET(self):
        url = urllib.parse.urlparse(self.path)
        query = {name: values[0] for name, values in urllib.parse.parse_qs(url.query).items()}
        body = json.loads(self.rfile.read(int(self.headers.get("Content-Length", 0))) or "{}")
        parts, served = url.path.strip("/").split("/"), self.served()
        if url.path == "/version":
            return self.answer(200, {"major": "1", "minor": "30", "gitVersion": "v1.30.0"})
        if url.path == "/api":
            return self.answer(200, {"kind": "APIVersions", "versions": ["v1"]})
        if url.path == "/apis":
            return self.answer(200, {"kind": "APIGroupList", "groups": [
                {"name": name.split("/")[0], "versions": [{"groupVersion": name, "version": name.split("/")[1]}]} for name in served if "/" in name]})
        version, rest = ("v1", parts[2:]) if parts[0] == "api" else ("/".join(parts[1:3]), parts[3:])
        if version in served and not rest:
            return self.answer(200, {"kind": "APIResourceList", "groupVersion": version, "resources": [
                {"name": name, "kind": name, "namespaced": True, "verbs": ["list"]} for name in sorted(served[version])]})
        if not rest:
            return self.refuse(404, "NotFound", "the server could not find the requested resource")
        namespace = rest[1] if rest[:1] == ["namespaces"] and len(rest) > 2 else ""
        resource, *name = rest[2:] if namespace else rest
        if version not in served or resource not in served[version]:
            return self.refuse(404, "NotFound", "the server could not find the requested resource")
        verb = self.command.lower() if name or self.command != "GET" else "list"
        if {resource, f"{verb}:{resource}"} & set(self.server.forbidden):
            return self.refuse(403, "Forbidden", f'{resource} is forbidden: User "viewer" cannot {verb} resource "{resource}"')
        if resource == "pods" and not self.command == "GET" or self.command in ("PUT", "DELETE"):
            return self.refuse(405, "MethodNotAllowed", "a transcript writes no pod, and deletes nothing")
        found = [obj for (_, _, _), obj in sorted(self.server.world.objects.items())
                 if obj["apiVersion"] == version and plural(obj["kind"]) == resource and
                 namespace in ("", obj["metadata"].get("namespace", "")) and (not name or obj["metadata"]["name"] == name[0])]
        if not name and self.command == "POST":
            return self.answer(201, self.server.world.put(body))
        if not name:
            return self.answer(200, {"kind": "List", "apiVersion": version, "metadata": {"resourceVersion": "5"},
                                     "items": [obj for obj in found if selected(obj, query)]})
        if not found:
            return self.refuse(404, "NotFound", f'{resource} "{name[0]}" not found')
        if self.command == "PATCH":
            return self.answer(200, self.server.world.put(merge(found[0], body)))
        return self.answer(200, found[0])

    do_POST = do_PUT = do_PATCH = do_DELETE = do_GET


class Server(http.server.ThreadingHTTPServer):
    """Serves `world` while it is entered; `forbidden` has the resources that the account cannot read."""
    request_queue_size = 128
    daemon_threads = True

    def __init__(self, world, forbidden):
        super().__init__(("127.0.0.1", 0), Handler)
        self.world, self.forbidden = world, forbidden

    def __enter__(self):
        threading.Thread(target=self.serve_forever, kwargs={"poll_interval": 0.01}, daemon=True).start()
        return self

    def __exit__(self, *_):
        self.shutdown()
        self.server_close()

    def kubeconfig(self):
        return json.dumps({
            "apiVersion": "v1", "kind": "Config", "current-context": "c", "clusters": [{"name": "k", "cluster": {"server": f"http://127.0.0.1:{self.server_port}"}}],
            "users": [{"name": "viewer", "user": {}}], "contexts": [{"name": "c", "context": {"cluster": "k", "user": "viewer"}}]})
