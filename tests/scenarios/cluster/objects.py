"""The manifests of a cluster, as an API server keeps them."""
from .times import stamp


class Objects:
    """Part of a Cluster: its objects of all kinds, created, read, changed and removed."""

    @staticmethod
    def key(kind, name, namespace=""):
        return (kind, namespace or "", name)

    def put(self, obj):
        """Creates or replaces an object, and fills in what an API server does."""
        meta = obj["metadata"]
        self.counter += 1
        meta.setdefault("uid", "%s-%d" % (self.namespace, self.counter))
        meta.setdefault("creationTimestamp", stamp(self.clock))
        meta["resourceVersion"] = str(1000 + self.counter)
        self.changed = self.clock
        if obj["kind"] == "Pod":
            self.pods_by_node = None
        self.objects[self.key(obj["kind"], meta["name"], meta.get("namespace"))] = obj
        return obj

    def get(self, kind, name, namespace=""):
        return self.objects.get(self.key(kind, name, namespace))

    def all(self, kind):
        return [obj for (of, _, _), obj in sorted(self.objects.items()) if of == kind]

    def touch(self, obj):
        self.counter += 1
        obj["metadata"]["resourceVersion"] = str(1000 + self.counter)
        self.changed = self.clock

    def remove(self, kind, name, namespace=""):
        self.gone.add(self.key(kind, name, namespace))
        self.changed = self.clock
        if kind == "Pod":
            self.pods_by_node = None
        return self.objects.pop(self.key(kind, name, namespace), None)

    def annotate(self, kind, name, key, value, namespace=""):
        meta = self.get(kind, name, namespace)["metadata"]
        annotations = meta.setdefault("annotations", {})
        if value is None:
            annotations.pop(key, None)
        else:
            annotations[key] = value
        self.touch(self.get(kind, name, namespace))

    def manifests(self):
        return {"apiVersion": "v1", "kind": "List", "items": [self.objects[key] for key in sorted(self.objects)]}
