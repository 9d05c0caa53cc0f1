"""`plan -o json --only RECONCILER` over the objects of a case."""
import json

from judges.program import as_dict, write


def plan(program, path_in, objects, now, observed_for, reconciler):
    """(the answer, "") or (None, what is wrong). Actions that only record Events are left out of it."""
    folder, name = path_in
    path = write(folder, name, json.dumps({"apiVersion": "v1", "kind": "List", "items": objects}, indent=1))
    _, answer, trouble = program.json("plan", "-o", "json", "--now", now, "--assume-observed-for", observed_for,
                                      "--only", reconciler, path)
    if not isinstance(as_dict(answer).get("actions"), list):
        return None, trouble or "the answer has no actions"
    answer["actions"] = [action for action in answer["actions"] if action["action"] != "RecordEvent"]
    return answer, ""


def key_of(obj):
    return obj["kind"], obj["metadata"].get("namespace", ""), obj["metadata"]["name"]


def target_of(action):
    target = as_dict(action.get("target"))
    return target.get("kind"), target.get("namespace") or "", target.get("name")


def named_in_findings(answer):
    """The names of the objects that findings are about."""
    return {as_dict(finding.get("object")).get("name") for finding in answer.get("findings", [])}
