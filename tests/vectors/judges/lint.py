"""`lint -o json`, of profile documents and of pods."""
import json
import os
import tempfile

from judges.program import as_dict, as_list, short, write


def diagnostics(document, *severities):
    return [d for d in as_list(document.get("diagnostics")) if as_dict(d).get("severity") in severities]


def canonical_sharing(sharing):
    """Absent, null and default values are the same thing."""
    out = {}
    for section in ("timeSlicing", "mps"):
        body = as_dict(as_dict(sharing).get(section))
        resources = [{"name": r.get("name"), "replicas": r.get("replicas"), "rename": r.get("rename") or "",
                      "devices": "all" if r.get("devices") is None else r.get("devices")}
                     for r in map(as_dict, as_list(body.get("resources")))]
        if body and (resources or any(body.values())):
            fail = body.get("failRequestsGreaterThanOne")
            out[section] = {"renameByDefault": bool(body.get("renameByDefault")), "resources": resources,
                            "failRequestsGreaterThanOne": section == "mps" if fail is None else fail}
    return out


def wrong_with_errors(expect, document):
    """What is wrong with `valid` and the errors beside it; "" if nothing is."""
    valid, errors = document.get("valid"), diagnostics(document, "error")
    if not isinstance(valid, bool) or valid == bool(errors):
        return "\"valid\" is %s beside %d errors" % (json.dumps(valid), len(errors))
    if any(not d.get("message") or not d.get("code") for d in errors):
        return "an error without code or message"
    if valid != expect.get("valid", valid):
        return "want valid=%s, got %s %s" % (json.dumps(expect["valid"]), json.dumps(valid),
                                             short([d["message"] for d in errors]))
    return ""


def wrong_with_warnings(must_warn, document):
    noted = diagnostics(document, "warning", "error")
    if must_warn is True and not noted:
        return "want a warning: upstream silently ignores something here"
    if must_warn is False and noted:
        return "want no diagnostic, got %s" % short([d["message"] for d in noted])
    return ""


def wrong_with_profile(case, document):
    """What is wrong with one profile document; "" if nothing is."""
    expect = case["expect"]
    wrong = wrong_with_errors(expect, document) or wrong_with_warnings(expect.get("must_warn"), document)
    if wrong:
        return wrong
    lines = [d.get("line") for d in diagnostics(document, "error")]
    # The lines of a key of a ConfigMap are those of the ConfigMap's file.
    if "line" in expect and case["form"] == "file" and expect["line"] not in lines:
        return "want an error at line %d, got %s" % (expect["line"], short(lines))
    parses = case["upstream"]["parse"] == "ok"
    if parses != ("normalized" in document):
        return "upstream's parser %s this document, lint's does not agree" % ("accepts" if parses else "refuses")
    if "normalized_sharing" in expect:
        want = canonical_sharing(expect["normalized_sharing"])
        got = canonical_sharing(as_dict(document.get("normalized")).get("sharing"))
        if want != got:
            return "want normalized.sharing %s, got %s" % (short(want), short(got))
    return ""


def config_map(data):
    return json.dumps({"apiVersion": "v1", "kind": "ConfigMap", "data": data,
                       "metadata": {"name": "profiles", "namespace": "gpu-operator"}}, indent=1) + "\n"


class ProfileFiles:
    """The cases as files: one for each document, and one ConfigMap with a key for each of the others."""

    def __init__(self, cases, folder):
        self.folder, self.place, self.files, data = folder, {}, [], {}
        for number, case in enumerate(cases):
            if case["form"] == "file":
                name = "c%03d.yaml" % number
                self.place[case["id"]] = (name, "")
                self.files.append(write(folder, name, case["config"]))
            else:
                self.place[case["id"]] = ("profiles.yaml", "k%03d" % number)
                data["k%03d" % number] = case["config"]
        if data:
            self.files.append(write(folder, "profiles.yaml", config_map(data)))

    def alone(self, case):
        name, key = self.place[case["id"]]
        if not key:
            return os.path.join(self.folder, name)
        return write(self.folder, "only-%s.yaml" % key, config_map({key: case["config"]}))


def documents_by_place(answer):
    """{(file name, key): document}; of several documents in one file without keys, the first."""
    found = {}
    for document in as_list(as_dict(answer).get("documents")):
        source = os.path.basename(str(document.get("source", "")).rsplit("#", 1)[0])
        found.setdefault((source, document.get("key") or ""), document)
    return found


def judge_config_validation(cases, program):
    """All documents in one call, because a broken one must not hide the others; each alone for the exit status."""
    with tempfile.TemporaryDirectory() as folder:
        files = ProfileFiles(cases, folder)
        _, answer, trouble = program.json("lint", "-o", "json", *files.files)
        found = documents_by_place(answer)

        def judge(case):
            document = found.get(files.place[case["id"]])
            if document is None:
                return case["id"], trouble or "lint's answer has no document for it"
            wrong = wrong_with_profile(case, document)
            status, _, trouble_alone = program.json("lint", "-o", "json", files.alone(case))
            want = 0 if document["valid"] else 1
            if not wrong and status != want:
                wrong = trouble_alone or "want exit status %d, got %d" % (want, status)
            return case["id"], wrong

        return program.map(judge, cases)


def judge_kai_admission(cases, program):
    """Each pod alone, with the flag of its case."""
    with tempfile.TemporaryDirectory() as folder:
        def judge(case):
            path = write(folder, case["id"] + ".json", json.dumps(case["manifest"], indent=1))
            sharing = "--kai-gpu-sharing=%s" % json.dumps(case["kai_gpu_sharing"])
            _, answer, trouble = program.json("lint", "-o", "json", sharing, path)
            documents = as_list(as_dict(answer).get("documents"))
            names = [document.get("name") for document in documents]
            if names != [case["manifest"]["metadata"]["name"]]:
                return case["id"], trouble or "want one document for the pod, got %s" % short(names)
            return case["id"], (wrong_with_errors({"valid": case["expect"]["allow"]}, documents[0]) or
                                wrong_with_warnings(case["expect"].get("must_warn"), documents[0]))

        return program.map(judge, cases)
