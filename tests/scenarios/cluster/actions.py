"""The operator's actions, applied as an API server would."""
import copy

from .expectations import Failure, expect_that, show
from .names import FIELD_MANAGER
from .times import stamp


def named(action):
    """Kind, name and namespace of the object that an action is about."""
    target = action["target"]
    return target["kind"], target["name"], target.get("namespace", "")


def target_of(cluster, action):
    """The object that an action is about, with the preconditions checked."""
    kind, name, namespace = named(action)
    obj = cluster.get(kind, name, namespace)
    if obj is None:
        raise Failure("expected an action on an object that exists, got %s" % show(action))
    wanted = action.get("preconditions", {})
    for field in ("uid", "resourceVersion"):
        if field in wanted and wanted[field] != obj["metadata"][field]:
            raise Failure("expected a precondition that holds, got %s" % show(action))
    return obj


def patch_node(cluster, action):
    node = target_of(cluster, action)
    meta = node["metadata"]
    for field, change in (("labels", action), ("annotations", action.get("annotations", {}))):
        meta[field].update(change.get("set", {}))
        for key in change.get("remove", []):
            meta[field].pop(key, None)
    size = sum(len(key.encode()) + len(text.encode()) for key, text in meta["annotations"].items())
    if size > 256 << 10:
        raise Failure("expected annotations of at most 262144 bytes, got %s with %d" % (meta["name"], size))
    if action.get("unschedulable") is True:
        node["spec"]["unschedulable"] = True
    elif action.get("unschedulable") is False:
        node["spec"].pop("unschedulable", None)
    cluster.touch(node)


def write_config_map(cluster, action):
    _, name, namespace = named(action)
    found = cluster.get("ConfigMap", name, namespace)
    if found is None:
        found = cluster.put({"apiVersion": "v1", "kind": "ConfigMap",
                             "metadata": {"name": name, "namespace": namespace, "managedFields": []}, "data": {}})
    if found.get("immutable"):
        raise Failure("expected no write into an immutable ConfigMap, got %s" % show(action))
    data = found["data"]
    data.update(action.get("set", {}))
    for key in action.get("remove", []):
        data.pop(key, None)
    size = sum(len(key) + len(text) for key, text in data.items())
    if size > 1 << 20:
        raise Failure("expected ConfigMaps below 1048576 bytes, got %s with %d" % (name, size))
    managed = found["metadata"].setdefault("managedFields", [])
    mine = [entry for entry in managed if entry["manager"] == FIELD_MANAGER]
    keys = set(mine[0]["fieldsV1"]["f:data"]) if mine else set()
    keys |= {"f:" + key for key in action.get("set", {})}
    keys -= {"f:" + key for key in action.get("remove", [])}
    managed[:] = [entry for entry in managed if entry["manager"] != FIELD_MANAGER]
    managed.append({"manager": FIELD_MANAGER, "operation": "Apply", "apiVersion": "v1", "time": stamp(cluster.clock),
                    "fieldsType": "FieldsV1", "fieldsV1": {"f:data": {key: {} for key in sorted(keys)}}})
    cluster.touch(found)
    if (name, namespace) == (cluster.config_map, cluster.namespace):
        cluster.history.append((cluster.clock, dict(data)))


def create_object(cluster, action):
    obj = copy.deepcopy(action["object"])
    if obj["kind"] in ("SharingPolicy", "SharingRollout") and not cluster.served_crds:
        raise Failure("expected no object of a kind that is not served, got %s" % show(action))
    if cluster.get(obj["kind"], obj["metadata"]["name"], obj["metadata"].get("namespace")) is None:
        obj["metadata"].setdefault("generation", 1)
        cluster.put(obj)


def patch_status(cluster, action):
    obj = target_of(cluster, action)
    too_long = [text for text in texts_in(action["status"]) if len(text) > 32768]
    if too_long:
        raise Failure("expected messages of at most 32768 characters, got %d in the status of %s" %
                      (len(too_long[0]), action["target"]["name"]))
    obj["status"] = copy.deepcopy(action["status"])  # It is planned as a whole.
    cluster.touch(obj)


def delete_object(cluster, action):
    target_of(cluster, action)
    cluster.remove(*named(action))


def patch_finalizers(cluster, action):
    obj = target_of(cluster, action)
    obj["metadata"]["finalizers"] = list(action["finalizers"])
    cluster.touch(obj)
    if obj["metadata"].get("deletionTimestamp") and not action["finalizers"]:
        cluster.remove(*named(action))


def record_event(_cluster, _action):
    """Events change nothing."""


def restart_daemonset(cluster, action):
    daemonset = target_of(cluster, action)
    meta = daemonset["spec"]["template"]["metadata"]
    meta.setdefault("annotations", {})["gpusharing.dev/restarted-for"] = action["restartedFor"]
    cluster.touch(daemonset)
    cluster.restarts_wanted.append((daemonset["metadata"]["name"], action["restartedFor"]))


def delete_pod(cluster, action):
    pod = target_of(cluster, action)
    expect_that("uid" in action.get("preconditions", {}), "a uid precondition on every deletion", action)
    owners = {owner["uid"] for owner in pod["metadata"].get("ownerReferences", [])}
    daemonsets = {daemonset["metadata"]["uid"] for daemonset in cluster.all("DaemonSet")}
    expect_that(owners & daemonsets, "only pods of the plugin's DaemonSets to be deleted", action["target"])
    cluster.drop(pod)


def evict_pod(cluster, action):
    pod = target_of(cluster, action)
    if pod["metadata"]["name"] not in cluster.refuses_eviction:
        cluster.drop(pod)


def texts_in(value):
    """All texts inside a value, however deep."""
    if isinstance(value, str):
        return [value]
    inner = value.values() if isinstance(value, dict) else value if isinstance(value, list) else []
    return [text for item in inner for text in texts_in(item)]


APPLIED_BY = {
    "PatchNode": patch_node,
    "WriteConfigMap": write_config_map,
    "ApplyConfigMap": write_config_map,
    "PatchConfigMap": write_config_map,
    "CreateObject": create_object,
    "PatchStatus": patch_status,
    "DeleteObject": delete_object,
    "PatchFinalizers": patch_finalizers,
    "RecordEvent": record_event,
    "RestartDaemonSet": restart_daemonset,
    "DeletePod": delete_pod,
    "EvictPod": evict_pod,
}


def apply(cluster, action):
    """Does to the cluster what one action of a plan asks for; an action that is not known fails the story."""
    done_by = APPLIED_BY.get(str(action.get("action")))
    if done_by is None:
        raise Failure("expected an action that this library knows, got %s" % show(action))
    done_by(cluster, action)
