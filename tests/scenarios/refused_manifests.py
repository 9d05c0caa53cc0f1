"""`lint` and manifests that the API server refuses (it says so before they are applied)."""
import json

from cluster.program import ask
from scenario import expect_that, scenario, ts


def judged(manifest):
    """The exit status of lint over one manifest, and its errors."""
    done = ask(["lint", "-o", "json", "-"], manifest)
    documents = json.loads(done.stdout)["documents"]
    return done.returncode, [d["message"] for document in documents for d in document["diagnostics"] if d["severity"] == "error"]


def pod(limits, requests=None):
    resources = {"limits": limits}
    if requests is not None:
        resources["requests"] = requests
    return {"apiVersion": "v1", "kind": "Pod", "metadata": {"name": "p", "namespace": "team"},
            "spec": {"containers": [{"name": "main", "image": "registry.example/app:1", "resources": resources}]}}


def refused(*manifests):
    passed = [json.dumps(manifest)[:200] for manifest in manifests if judged(manifest)[0] == 0]
    expect_that(not passed, "an error for each manifest that the API server refuses", passed)


@scenario
def a_part_of_a_gpu_is_refused():
    """nvidia.com/gpu: 500m, 1.5, -1 or a word: the API server wants a whole number of at least 0, and so does lint."""
    refused(*[pod({"nvidia.com/gpu": count}) for count in ("500m", "1.5", "-1", "abc")])


@scenario
def gpus_that_are_requested_and_limited_differently_are_refused():
    """A request of one GPU beside a limit of two, or without any limit: the API server wants both to be equal."""
    refused(pod({"nvidia.com/gpu": "2"}, {"nvidia.com/gpu": "1"}), pod({}, {"nvidia.com/gpu": "1"}))


@scenario
def keys_that_no_config_map_can_have_are_refused():
    """Keys with a slash, a space or two leading dots, and one of 254 characters: the API server refuses the ConfigMap."""
    refused(*[{"apiVersion": "v1", "kind": "ConfigMap", "metadata": {"name": "mps-config", "namespace": "gpu-operator"},
               "data": {key: ts(4)}} for key in ("a/b", "a b", "..x", "x" * 254)])


@scenario
def a_profile_beyond_one_mebibyte_is_refused():
    """A key of a ConfigMap with a valid profile and a comment of 1.1 million characters: no ConfigMap can have it."""
    refused({"apiVersion": "v1", "kind": "ConfigMap", "metadata": {"name": "mps-config", "namespace": "gpu-operator"},
             "data": {"any": ts(4) + "# " + "x" * 1_100_000 + "\n"}})


@scenario
def whole_gpus_are_clean():
    """The neighbour: one GPU as a limit, written in three ways that the API server takes, and equal requests."""
    for count in ("1", 1, "1000m"):
        status, errors = judged(pod({"nvidia.com/gpu": count}, {"nvidia.com/gpu": count}))
        expect_that(status == 0 and not errors, "no error for %r" % count, errors)


def values(default, create=True):
    return {"devicePlugin": {"config": {"name": "mps-config", "create": create, "default": default, "data": {"any": ts(4)}}}}


@scenario
def a_default_that_the_config_map_of_the_same_values_lacks_is_an_error():
    """Helm values of the GPU Operator with create: true, and the same in the device plugin's chart, whose ConfigMap is always made."""
    for wrong in (values("slices"), {"gpu-operator": values("slices")}, {"config": {"default": "slices", "map": {"any": ts(4)}}}):
        status, errors = judged(wrong)
        expect_that(status == 1 and len(errors) == 1 and 'no key "slices"' in errors[0], "one error, for the default", errors)
    for fine in (values("any"), values("slices", create=False), values("")):
        status, errors = judged(fine)
        expect_that(status == 0 and not errors, "no error", errors)
