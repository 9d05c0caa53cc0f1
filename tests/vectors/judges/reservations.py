"""`plan --only pod.reservation-gc`: which of KAI's reservation pods are deleted."""
import tempfile

from judges.planning import key_of, named_in_findings, plan, target_of
from judges.program import as_dict, short


def wrong_with_delete(action, pod, nodes):
    """What is wrong with the deletion of a pod that must be deleted."""
    given, name = as_dict(action.get("preconditions")), pod["metadata"]["name"]
    if given != {field: pod["metadata"][field] for field in ("uid", "resourceVersion")}:
        return "want uid and resourceVersion of %s as preconditions, got %s" % (name, short(given))
    is_forced, node_is_gone = action.get("gracePeriodSeconds") == 0, pod["spec"]["nodeName"] not in nodes
    if is_forced != node_is_gone:
        return "want %s %s, got gracePeriodSeconds %s" % (
            name, "forced: its Node is gone" if node_is_gone else "not forced: its Node exists",
            action.get("gracePeriodSeconds"))
    return ""


def judge_actions(actions, objects, wanted):
    """(what is wrong, the nodes on which a pod is deleted)."""
    nodes, done = {name for kind, _, name in objects if kind == "Node"}, set()
    for action in actions:
        key = target_of(action)
        if key[0] != "Pod":
            continue
        if action["action"] != "DeletePod":
            return "an action other than DeletePod on a pod: %s" % short(action), done
        if key not in wanted:
            return "want it kept: %s" % "/".join(key[1:]), done
        wrong = wrong_with_delete(action, objects[key], nodes)
        if wrong:
            return wrong, done
        done.add(objects[key]["spec"]["nodeName"])
    return "", done


def judge_case(case, program, folder):
    answer, wrong = plan(program, (folder, case["id"] + ".json"), case["manifests"], case["now"],
                         case["assume_observed_for"], "pod.reservation-gc")
    if answer is None:
        return wrong
    objects = {key_of(obj): obj for obj in case["manifests"]}
    wanted = {("Pod", pod["namespace"], pod["name"]) for pod in case["expect"]["deleted"]}
    wrong, done = judge_actions(answer["actions"], objects, wanted)
    if wrong:
        return wrong
    # A rate limit may spread the deletions over passes: one on each node is enough.
    left = sorted(key[2] for key in wanted if objects[key]["spec"]["nodeName"] not in done)
    if left:
        return "want deleted: %s" % ", ".join(left)
    about, named = case["expect"].get("findings_about_any_of", []), named_in_findings(answer)
    if about and not named & set(about):
        return "want a finding about %s, got findings about %s" % (" or ".join(about), short(sorted(map(str, named))))
    return ""


def judge_kai_gc(cases, program):
    with tempfile.TemporaryDirectory() as folder:
        return program.map(lambda case: (case["id"], judge_case(case, program, folder)), cases)
