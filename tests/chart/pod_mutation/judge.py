#!/usr/bin/env python3
"""Whether the API server makes of pods what cases.yaml says.

usage: judge.py CLUSTER_DIR CASES.yaml [NAME-PART]

Each pod is sent twice with dryRun: to the case's namespace, and to `kube-public`, which the policies leave alone. The
differences of the two answers, and the warnings of the first, are compared with the case. Prints one line for each case,
then "N passed, N failed".
"""
import http.client
import json
import pathlib
import re
import ssl
import sys
import urllib.parse

import yaml

UNTOUCHED = "kube-public"


class Server:
    """The API server of CLUSTER_DIR (tests/conformance/controlplane/cluster.sh), by one connection."""

    def __init__(self, folder):
        address = re.search(r"server: (\S+)", (folder / "admin.kubeconfig").read_text(encoding="utf-8"))[1]
        trust = ssl.create_default_context(cafile=str(folder / "pki/ca.crt"))
        self.connection = http.client.HTTPSConnection(urllib.parse.urlsplit(address).netloc, context=trust, timeout=60)
        self.headers = {"Authorization": "Bearer " + (folder / "admin.token").read_text(encoding="utf-8").strip(), "Content-Type": "application/json"}

    def create(self, pod, namespace):
        """(the pod as it would be stored, the warnings that kubectl would print)."""
        # The volume of a token has another name each time.
        pod = {"apiVersion": "v1", "kind": "Pod", **pod, "spec": {"automountServiceAccountToken": False, **pod["spec"]}}
        self.connection.request("POST", f"/api/v1/namespaces/{namespace}/pods?dryRun=All", json.dumps(pod), self.headers)
        answer = self.connection.getresponse()
        body = json.loads(answer.read())
        if answer.status != 201:
            raise ValueError(body.get("message", str(body)))
        # 299 - "text": quotes and backslashes are escaped, other bytes are UTF-8.
        texts = [re.sub(r"\\(.)", r"\1", value.split(" ", 2)[2][1:-1]).encode("latin-1").decode() for value in answer.headers.get_all("Warning", [])]
        return body, [re.sub("^Validation failed for ValidatingAdmissionPolicy '[^']*' with binding '[^']*': ", "", text) for text in texts]


def keyed(value):
    """Lists of named things as mappings."""
    if isinstance(value, dict):
        return {key: keyed(part) for key, part in value.items()}
    if isinstance(value, list) and value and all(isinstance(part, dict) and "name" in part for part in value):
        return {part["name"]: keyed(part) for part in value}
    return value


def differences(before, after, path=""):
    if isinstance(before, dict) and isinstance(after, dict):
        out = {}
        for key in before.keys() | after.keys():
            where = f"{path}.{key}" if path else key
            if key in before and key in after:
                out.update(differences(before[key], after[key], where))
            elif key in after:
                out.update(added(after[key], where))
            else:
                out[where] = "removed"
        return out
    return {} if before == after else {path: after}


def added(value, path):
    """What is new, down to named things and values."""
    if isinstance(value, dict) and "name" not in value:
        return {leaf: part for key, below in value.items() for leaf, part in added(below, f"{path}.{key}").items()}
    return {path: value}


def spec_of(pod):
    return {"spec": keyed(pod["spec"]), "annotations": pod["metadata"].get("annotations", {}), "labels": pod["metadata"].get("labels", {})}


def main():
    server = Server(pathlib.Path(sys.argv[1]))
    with open(sys.argv[2], encoding="utf-8") as stream:
        cases = [case for case in yaml.safe_load(stream) if len(sys.argv) < 4 or sys.argv[3] in case["name"]]
    failed = 0
    for case in cases:
        try:
            plain, ordinary = server.create(case["pod"], UNTOUCHED)
            mutated, warnings = server.create(case["pod"], case["in"])
            problems = []
            if (found := differences(spec_of(plain), spec_of(mutated))) != keyed(case["adds"]):
                problems.append(f"adds {json.dumps(found, sort_keys=True)}, not {json.dumps(case['adds'], sort_keys=True)}")
            if (said := [text for text in warnings if text not in ordinary]) != case.get("warns", []):
                problems.append(f"warns {said}")
        except ValueError as error:
            problems = [str(error)]
        failed += bool(problems)
        print(f"{'FAILED' if problems else 'ok':<7} {case['name']}")
        for problem in problems:
            print("    " + problem)
    print(f"{len(cases) - failed} passed, {failed} failed")
    return 1 if failed or not cases else 0


if __name__ == "__main__":
    sys.exit(main())
