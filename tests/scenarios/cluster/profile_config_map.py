"""The ConfigMap of profiles: what people write into it, and what pods and nodes see of it."""
from .profile_texts import none
from .times import stamp

PROJECTION_LAG = 60  # Seconds until a running pod sees an edit of its ConfigMap.


class ProfileConfigMap:
    """Part of a Cluster: the plugin's ConfigMap, with its history."""

    def data(self):
        found = self.get("ConfigMap", self.config_map, self.namespace)
        return found["data"] if found else {}

    def configure(self, data, manager="kubectl-edit"):
        """Writes the whole ConfigMap of profiles."""
        found = self.get("ConfigMap", self.config_map, self.namespace)
        if found is None:
            found = self.put({"apiVersion": "v1", "kind": "ConfigMap",
                              "metadata": {"name": self.config_map, "namespace": self.namespace, "managedFields": []},
                              "data": {}})
        found["data"] = dict(data)
        self.touch(found)
        fields = {"f:data": {"f:" + key: {} for key in data}}
        managed = found["metadata"]["managedFields"]
        managed[:] = [entry for entry in managed if entry["manager"] != manager]
        managed.append({"manager": manager, "operation": "Update", "apiVersion": "v1", "time": stamp(self.clock),
                        "fieldsType": "FieldsV1", "fieldsV1": fields})
        self.history.append((self.clock, dict(data)))

    def edit(self, **profiles):
        """Edits keys in place; None deletes one."""
        data = dict(self.data())
        for key, text in profiles.items():
            name = key.replace("_", "-")
            if text is None:
                data.pop(name, None)
            else:
                data[name] = text
        self.configure(data)

    def delete_config_map(self):
        self.remove("ConfigMap", self.config_map, self.namespace)
        self.history.append((self.clock, {}))

    def projected(self):
        """What a running pod sees of the ConfigMap now."""
        old = [data for when, data in self.history if (self.clock - when).total_seconds() >= PROJECTION_LAG]
        return old[-1] if old else self.history[0][1]

    def resolve(self, name, data, default=None):
        """The key that a node gets. `default`: that of the pod's own template, if the present one has another."""
        default = self.default if default is None else default
        label = self.labels(name).get(self.config_label, "")
        if label:
            return label
        if default:
            return default
        if "named" in self.fallbacks and "default" in data:
            return "default"
        if "single" in self.fallbacks and len(data) == 1:
            return list(data)[0]
        return ""

    def text_for(self, name, data, default=None):
        key = self.resolve(name, data, default)
        return none() if key == "" else data.get(key)
