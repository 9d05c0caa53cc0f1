"""`expect -o json`: the labels of GPU feature discovery and the allocatable resources of a profile on these GPUs."""
import json
import tempfile

from judges.program import as_dict, short, write


def label_differences(want, got, optional):
    wrong = ["%s: want %s, got %s" % (key, json.dumps(want[key]), json.dumps(got.get(key)))
             for key in sorted(want) if got.get(key) != want[key] and (key in got or key not in optional)]
    return wrong + ["%s=%s is not expected" % (key, json.dumps(got[key])) for key in sorted(got) if key not in want]


def wrong_with_labels(expect, answer):
    got, optional = as_dict(answer.get("labels")), expect.get("optional", [])
    differences = [label_differences(want, got, optional) for want in expect["labels_any_of"]]
    return next(iter(min(differences, key=len)), "")


def counts(resources):
    """{resource: count}; a count of 0 equals absence."""
    return {name: int(count) for name, count in as_dict(resources).items() if int(count) != 0}


def judge_expectation(expect, answer):
    error = answer.get("error")
    if "error" in expect and expect["error"] != bool(error):
        return "want %s, got %s" % ("an error" if expect["error"] else "no error", short(error or answer.get("labels")))
    if "labels_any_of" in expect:
        wrong = wrong_with_labels(expect, answer)
        if wrong:
            return wrong
    if "allocatable" in expect:
        want, got = counts(expect["allocatable"]), counts(answer.get("allocatable"))
        if want != got:
            return "want allocatable %s, got %s" % (short(want), short(got))
    return ""


def judge_gfd_labels(cases, program):
    with tempfile.TemporaryDirectory() as folder:
        def judge(item):
            number, case = item
            config = write(folder, "config-%03d.yaml" % number, case["config"])
            devices = write(folder, "devices-%03d.json" % number, json.dumps(case["devices"]))
            _, answer, trouble = program.json("expect", "-o", "json", "--config", config, "--devices", devices)
            return case["id"], trouble if answer is None else judge_expectation(case["expect"], answer)

        return program.map(judge, list(enumerate(cases)))
