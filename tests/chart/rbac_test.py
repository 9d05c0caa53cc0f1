#!/usr/bin/env python3
"""Whether the chart's roles grant what the operator needs, and nothing else.

usage: rbac_test.py RENDERED.yaml PERMISSIONS.json RELEASE_NAMESPACE

RENDERED is the output of `helm template`, PERMISSIONS that of gso-permissions (the registry of reconcilers). Prints
"N passed, N failed" at the end; the exit code is 0 only when nothing failed.
"""
import json
import sys

import yaml

# What the runtime does beside the reconcilers: leader election, reading back what it wrote when a watch lags, and the claims
# of pods that only these make GPU consumers.
RUNTIME = [{"reconciler": "leader election", "group": "coordination.k8s.io", "resource": "leases", "verbs": ["get", "list", "watch", "create", "update"]}] + [
    {"reconciler": "reading back", "group": group, "resource": resource, "verbs": ["get"]}
    for group, resource in [("", "nodes"), ("", "pods"), ("", "configmaps"),
                            ("gpusharing.dev", "sharingpolicies"), ("gpusharing.dev", "sharingrollouts")]] + [
    {"reconciler": "GPU consumers", "group": "resource.k8s.io", "resource": "resourceclaims", "verbs": ["get"]}] + [
    {"reconciler": "secure metrics", "group": group, "resource": resource, "verbs": verbs}
    for group, resource, verbs in [("authentication.k8s.io", "tokenreviews", ["create"]),
                                   ("authorization.k8s.io", "subjectaccessreviews", ["create"])]]

# Where a permission may stand only in namespaced roles: "release", "operands".
NAMESPACED = {
    ("", "pods", "delete"): {"operands"},
    ("", "pods", "get"): {"operands"},
    ("", "pods", "watch"): {"operands"},
    ("apps", "controllerrevisions", "watch"): {"operands"},
    ("", "configmaps", "get"): {"release"},
    ("", "configmaps", "create"): {"release"},
    ("", "configmaps", "patch"): {"release", "operands"},
    ("apps", "daemonsets", "patch"): {"operands"},
    ("", "configmaps", "list"): {"release", "operands"},
    ("coordination.k8s.io", "leases", "update"): {"release"},
    ("coordination.k8s.io", "leases", "list"): {"release"},
    ("coordination.k8s.io", "leases", "watch"): {"release"},
}
# Where KAI is served by values (kai.reservationNamespaces, kai.consumerNamespaces): fraction pods may be anywhere.
WITH_KAI = {("", "pods", "watch"): {"cluster", "operands"}, ("", "configmaps", "get"): {"release", "operands"}}
# With modes.partitioning: pods without a node may be anywhere, and so may the Lease of nos's gpu-partitioner.
WITH_PARTITIONING = {("", "pods", "watch"): {"cluster", "operands"},
                     ("coordination.k8s.io", "leases", "list"): {"release", "cluster"},
                     ("coordination.k8s.io", "leases", "watch"): {"release", "cluster"}}

# With standaloneMps: its DaemonSet is in the release's namespace.
OF_STANDALONE_MPS = [("", "pods", "delete"), ("", "pods", "get"), ("", "pods", "watch"), ("apps", "controllerrevisions", "watch")]


# The roles of the Job that runs before an uninstall, which exist only meanwhile.
CLEANUP = {
    ("", "nodes"): {"list", "patch"},
    ("apps", "daemonsets"): {"list"},
    ("", "pods"): {"list"},
    ("resource.k8s.io", "resourceclaims"): {"get"},
    ("gpusharing.dev", "sharingpolicies"): {"list", "patch"},
    ("gpusharing.dev", "sharingrollouts"): {"list"},
    ("gpusharing.dev", "sharingrollouts/status"): {"patch"},
    ("gpusharing.dev", "sharingpolicies/status"): {"patch"},
    ("apps", "deployments/scale"): {"patch"},
    ("coordination.k8s.io", "leases"): {"get", "create", "update", "delete"},
    ("", "configmaps"): {"get", "delete"},
}
NAMED = {"deployments/scale", "configmaps", "leases"}  # Only by name, but for what RBAC cannot restrict to one: to create.
# What the account has no right on: whoever steals its token could read, or have the API server send, what is in Secrets.
NEVER = {"secrets", "validatingwebhookconfigurations", "mutatingwebhookconfigurations"}


def is_named(rule):
    return "resourceNames" in rule or rule["verbs"] == ["create"]


def is_hook(thing):
    return "helm.sh/hook" in thing["metadata"].get("annotations", {})


def is_for_people(role):
    """Aggregated to view and edit, or about a URL: bound by whoever grants it, never to the operator."""
    labels = role["metadata"].get("labels", {})
    return any("aggregate-to" in key for key in labels) or any("nonResourceURLs" in rule for rule in role["rules"])


def hook_problems(objects):
    """What the cleanup Job is granted beyond CLEANUP, or lacks of it."""
    found, problems = {}, []
    for role in objects:
        if role["kind"] not in ("Role", "ClusterRole") or not is_hook(role):
            continue
        for rule in role["rules"]:
            for resource in rule["resources"]:
                found.setdefault((rule["apiGroups"][0], resource), set()).update(rule["verbs"])
                if (resource in NAMED) != is_named(rule):
                    problems.append(f"resourceNames of {resource}")
        if role["kind"] == "ClusterRole" and any("leases" in rule["resources"] or "configmaps" in rule["resources"] for rule in role["rules"]):
            problems.append("leases and configmaps are cluster-wide")
    return problems + [f"{key}: {sorted(found.get(key, []))}, not {sorted(CLEANUP.get(key, []))}"
                       for key in sorted(set(found) | set(CLEANUP)) if found.get(key) != CLEANUP.get(key)]


def grants(objects, release_namespace):
    """(group, resource, verb) -> where it is granted: "cluster", "release" or "operands"."""
    found = {}
    for role in objects:
        if role["kind"] not in ("Role", "ClusterRole") or is_hook(role) or is_for_people(role):
            continue
        where = "cluster"
        if role["kind"] == "Role":
            where = "release" if role["metadata"]["namespace"] == release_namespace else "operands"
        for rule in role["rules"]:
            for group in rule["apiGroups"]:
                for resource in rule["resources"]:
                    for verb in rule["verbs"]:
                        found.setdefault((group, resource, verb), set()).add(where)
    return found


def unbound(objects):
    """Roles without a binding to the ServiceAccount, and bindings to a role that is not there."""
    roles = {(o["kind"], o["metadata"].get("namespace"), o["metadata"]["name"]) for o in objects
             if o["kind"] in ("Role", "ClusterRole") and not is_for_people(o)}
    bound = set()
    for binding in objects:
        if binding["kind"] in ("RoleBinding", "ClusterRoleBinding"):
            assert [s["kind"] for s in binding["subjects"]] == ["ServiceAccount"], binding["metadata"]["name"]
            if binding["metadata"]["name"].endswith("-metrics-reader"):
                continue
            bound.add((binding["roleRef"]["kind"], binding["metadata"].get("namespace"), binding["roleRef"]["name"]))
    return roles ^ bound


def main():
    rendered, permissions, release_namespace = sys.argv[1:4]
    with open(rendered, encoding="utf-8") as stream:
        objects = [o for o in yaml.safe_load_all(stream) if o]
    with open(permissions, encoding="utf-8") as stream:
        needs = json.load(stream) + RUNTIME
    granted = grants(objects, release_namespace)
    wanted = {(n["group"], n["resource"], verb): n["reconciler"] for n in needs for verb in n["verbs"]}
    namespaced = NAMESPACED | (WITH_KAI if ("apps", "deployments", "watch") in granted else {})
    namespaced |= WITH_PARTITIONING if "cluster" in granted.get(("coordination.k8s.io", "leases", "watch"), ()) else {}
    if "release" in granted.get(("apps", "controllerrevisions", "watch"), ()):
        namespaced |= {key: namespaced[key] | {"release"} for key in OF_STANDALONE_MPS}
    results = [
        ("what the reconcilers need is granted",
         [f"{wanted[p]} needs {p[2]} of {p[1]} ({p[0] or 'core'})" for p in sorted(wanted) if p not in granted]),
        ("nothing is granted that nobody needs",
         [f"{p[2]} of {p[1]} ({p[0] or 'core'})" for p in sorted(granted) if p not in wanted]),
        ("Leases are granted by name",
         [f"{role['metadata']['name']}: {rule}" for role in objects if role["kind"] in ("Role", "ClusterRole")
          for rule in role["rules"] if "leases" in rule.get("resources", []) and not is_named(rule)]),
        ("no Secret and no webhook configuration is granted",
         [f"{role['metadata']['name']}: {rule}" for role in objects if role["kind"] in ("Role", "ClusterRole")
          for rule in role["rules"] if NEVER & set(rule.get("resources", []))]),
        ("no rule has a wildcard", [str(p) for p in sorted(granted) if "*" in p]),
        ("deletes, ConfigMaps and leases stay in their namespaces",
         [f"{p} is granted in {sorted(granted[p])}" for p in sorted(namespaced) if granted.get(p) != namespaced[p]]),
        ("the cleanup Job may do what it needs, and only while it runs", hook_problems(objects)),
        ("every role is bound, to the ServiceAccount alone", [str(r) for r in sorted(unbound(objects), key=str)]),
    ]
    failed = 0
    for sentence, problems in results:
        failed += bool(problems)
        print(f"{'FAILED' if problems else 'ok':<7} {sentence}")
        for problem in problems:
            print("    " + problem)
    print(f"{len(results) - failed} passed, {failed} failed")
    return 1 if failed else 0


if __name__ == "__main__":
    sys.exit(main())
