"""The operator's own objects: SharingPolicies and SharingRollouts, which people write and read, and what it remembers."""
from .expectations import expect_that
from .names import OPERATOR_NAMESPACE, OWN_PREFIX
from .times import stamp


class OperatorObjects:
    """Part of a Cluster: policies and rollouts, and what the operator remembers, whose form the model does not know."""

    def install_crds(self):
        """The CRDs come, and with them the policy `default`."""
        self.served_crds = True
        for plural, kind in (("sharingpolicies", "SharingPolicy"), ("sharingrollouts", "SharingRollout")):
            self.put({"apiVersion": "apiextensions.k8s.io/v1", "kind": "CustomResourceDefinition",
                      "metadata": {"name": plural + ".gpusharing.dev"},
                      "spec": {"group": "gpusharing.dev", "scope": "Cluster",
                               "names": {"plural": plural, "kind": kind},
                               "versions": [{"name": "v1alpha1", "served": True, "storage": True}]}})
        self.policy("default", priority=-1000)

    def policy(self, name="default", priority=0, selector=None, **spec):
        """Applies a SharingPolicy, or changes fields of its spec."""
        found = self.get("SharingPolicy", name)
        if found is None:
            found = {"apiVersion": "gpusharing.dev/v1alpha1", "kind": "SharingPolicy",
                     "metadata": {"name": name, "generation": 0}, "spec": {"nodeSelector": {}, "priority": priority}}
        if selector is not None:
            found["spec"]["nodeSelector"] = {"matchLabels": selector}
        for key, value in spec.items():
            if isinstance(value, dict) and isinstance(found["spec"].get(key), dict):
                found["spec"][key].update(value)
            else:
                found["spec"][key] = value
        found["metadata"]["generation"] += 1
        return self.put(found)

    def delete_policy(self, name):
        """As `kubectl delete` does: with a finalizer it stays, marked."""
        found = self.get("SharingPolicy", name)
        if found["metadata"].get("finalizers"):
            found["metadata"]["deletionTimestamp"] = stamp(self.clock)
            self.touch(found)
        else:
            self.remove("SharingPolicy", name)

    def remove_crds(self):
        """The CRDs go, and every object of theirs."""
        self.served_crds = False
        for kind in ("SharingPolicy", "SharingRollout", "CustomResourceDefinition"):
            for obj in self.all(kind):
                self.remove(kind, obj["metadata"]["name"])

    def rollouts(self, phase=None):
        return [rollout for rollout in self.all("SharingRollout")
                if phase is None or rollout.get("status", {}).get("phase") == phase]

    def switch(self, rollout=None, **switches):
        """Turns paused, approved or aborted of a SharingRollout (by default of all that have not ended)."""
        ended = ("Completed", "Failed", "Superseded", "RolledBack")
        turned = 0
        for found in self.all("SharingRollout"):
            open_ = found.get("status", {}).get("phase") not in ended
            if (rollout is None and open_) or found["metadata"]["name"] == rollout:
                found["spec"].update(switches)
                found["metadata"]["generation"] = found["metadata"].get("generation", 1) + 1
                self.touch(found)
                turned += 1
        expect_that(turned > 0, "a SharingRollout to switch", "none")

    def condition(self, policy, kind):
        """A condition of a SharingPolicy as {status, reason, message}, or {} where there is none."""
        found = self.get("SharingPolicy", policy) or {}
        for condition in found.get("status", {}).get("conditions", []):
            if condition["type"] == kind:
                return condition
        return {}

    def counts(self, policy="default"):
        return self.get("SharingPolicy", policy).get("status", {}).get("nodes", {})

    def blocked(self, policy="default"):
        """{reason: nodes} of a SharingPolicy's status."""
        entries = (self.get("SharingPolicy", policy) or {}).get("status", {}).get("blocked", [])
        return {entry["reason"]: entry.get("nodes", []) for entry in entries}

    def own_annotations(self, name):
        return sorted(key for key in self.annotations(name) if key.startswith(OWN_PREFIX))

    def own_config_maps(self):
        return [found for found in self.all("ConfigMap") if found["metadata"]["namespace"] == OPERATOR_NAMESPACE]

    def forget_own_state(self):
        """Every ConfigMap in the operator's namespace is lost."""
        for found in self.own_config_maps():
            self.remove("ConfigMap", found["metadata"]["name"], OPERATOR_NAMESPACE)
