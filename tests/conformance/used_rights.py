#!/usr/bin/env python3
"""What an account may do, against what the audit log says that it did.

usage: used_rights.py AUDIT.log ROLES.json NAMESPACE NAME [--rare FILE] [--beside ROLES.json]

ROLES.json is a List of the Roles and ClusterRoles that are bound to the ServiceAccount NAME of NAMESPACE. Fails on a
verb that was granted and never used, and on a request that was refused. FILE names rights whose use cannot be provoked,
one a line: "verb resource.group # why"; one that is not granted has no place there. With --beside only the rights that
ROLES.json has beyond those roles must have been used.
"""
import argparse
import json
import sys


def resource_of(ref):
    name = ref.get("resource", "")
    if ref.get("subresource"):
        name += "/" + ref["subresource"]
    return f"{name}.{ref['apiGroup']}" if ref.get("apiGroup") else name


def requests(audit, user):
    """(verb, resource, namespace, status) of each request of the account for a resource."""
    with open(audit, encoding="utf-8") as stream:
        for line in stream:
            event = json.loads(line)
            if event["user"]["username"] != user or "objectRef" not in event:
                continue
            ref, code = event["objectRef"], event.get("responseStatus", {}).get("code", 0)
            yield event["verb"], resource_of(ref), ref.get("namespace", ""), code
            # An apply that makes its object needs the right to create it too.
            if event["verb"] == "patch" and code == 201:
                yield "create", resource_of(ref), ref.get("namespace", ""), code


def rights(roles):
    """(verb, resource, namespace) for each granted verb; namespace is empty in a ClusterRole."""
    with open(roles, encoding="utf-8") as stream:
        for role in json.load(stream)["items"]:
            for rule in role["rules"]:
                for group in rule["apiGroups"]:
                    for resource in rule["resources"]:
                        for verb in rule["verbs"]:
                            yield verb, f"{resource}.{group}" if group else resource, role["metadata"].get("namespace", "")


def covers(right, verb, resource, namespace):
    return right[:2] == (verb, resource) and right[2] in ("", namespace)


def main():
    parser = argparse.ArgumentParser()
    for name in ("audit", "roles", "namespace", "name"):
        parser.add_argument(name)
    parser.add_argument("--rare")
    parser.add_argument("--beside")
    options = parser.parse_args()
    made = list(requests(options.audit, f"system:serviceaccount:{options.namespace}:{options.name}"))
    granted = sorted(set(rights(options.roles)))
    refused = sorted({f"{verb} {resource} in '{ns}'" for verb, resource, ns, code in made if code in (401, 403)})
    done = {request[:3] for request in made if request[3] not in (401, 403)}
    # The narrowest right is the one that was needed: a Role, where there is one.
    used = set()
    for request in done:
        fitting = [right for right in granted if covers(right, *request)]
        narrow = [right for right in fitting if right[2]] or fitting
        used.update(narrow[:1])
        if not fitting:
            refused.append("without a right: " + " ".join(request))
    rare = {}
    if options.rare:
        with open(options.rare, encoding="utf-8") as stream:
            for line in filter(None, (line.strip() for line in stream)):
                right, why = line.split("#", 1)
                verb, resource, *where = right.split()
                rare[(verb, resource, where[0] if where else "")] = why.strip()
    known = set(rights(options.beside)) if options.beside else set()
    unused = [right for right in granted if right not in used and right not in rare and right not in known]
    # Whether a rare one is needed depends on how far the watches lag.
    stale = [right for right in rare if right not in granted]
    print(f"{len(made)} requests, {len(granted)} rights, {len(used)} used, {len(rare)} rare, {len(set(granted) - known)} new")
    for title, problems in (("refused", refused), ("granted and unused", unused), ("rare and not granted", stale)):
        for problem in problems:
            print(f"{title}: {problem if isinstance(problem, str) else ' '.join(problem)}")
    return 1 if refused or unused or stale else 0


if __name__ == "__main__":
    sys.exit(main())
