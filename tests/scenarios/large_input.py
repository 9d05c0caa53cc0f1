"""What `lint`, `plan` and `audit` cost on large input: eight times the input takes about eight times as long.

Time is that of the processor, so that a busy machine looks like an idle one. `./dev bench input` has the figures.
"""
import resource
import subprocess

from cluster.program import ENVIRONMENT, binary
from scenario import expect_that, scenario

TIMES = 8
# Of a program that goes through all of its input again for each part of it, the larger run takes 64 times as long.
MOST = 3 * TIMES
SHORTEST = 0.02  # Seconds: of shorter runs the start of the program is most.


def cpu_seconds(arguments, text):
    before = resource.getrusage(resource.RUSAGE_CHILDREN)
    done = subprocess.run([binary()] + arguments, input=text, capture_output=True, text=True, timeout=300,
                          env=ENVIRONMENT)
    after = resource.getrusage(resource.RUSAGE_CHILDREN)
    expect_that(done.returncode in (0, 1), "an answer", done.stderr[:500])
    return after.ru_utime + after.ru_stime - before.ru_utime - before.ru_stime


def costs_no_more_than_its_size(text_of, count, *commands):
    small, large = text_of(count), text_of(count * TIMES)
    for command in commands:
        little, much = max(cpu_seconds(command, small), SHORTEST), cpu_seconds(command, large)
        expect_that(much <= MOST * little, "`%s`: at most %d times %.3f s of CPU" % (" ".join(command), MOST, little), "%.3f s" % much)


LINT, PLAN, AUDIT = ["lint", "-"], ["plan", "-"], ["audit", "-f", "-"]


def config_map(entries):
    return "apiVersion: v1\nkind: ConfigMap\nmetadata: {name: mps-config, namespace: gpu-operator}\ndata:\n" + "".join(entries)


@scenario
def twenty_thousand_broken_documents_are_linted_in_proportion():
    """A file of 2,500 documents with a syntax error each, and one of 20,000."""
    costs_no_more_than_its_size(lambda count: "version: [\n---\n" * count, 2500, LINT)


@scenario
def profiles_with_warnings_are_linted_in_proportion():
    """A ConfigMap of 250 profiles with a misspelt field each, and one of 2,000."""
    profile = ("  k%06d: |\n    version: v1\n    sharing:\n      mps:\n        renamebydefault: true\n"
               "        resources:\n        - {name: nvidia.com/gpu, replicas: 4}\n")
    costs_no_more_than_its_size(lambda count: config_map(profile % i for i in range(count)), 250, LINT)


@scenario
def config_maps_of_many_keys_are_read_in_proportion():
    """A ConfigMap of 5,000 short keys, and one of 40,000, which is a size that the API server takes."""
    costs_no_more_than_its_size(lambda count: config_map('  k%06d: ""\n' % i for i in range(count)), 5000, LINT, PLAN, AUDIT)


@scenario
def nodes_with_a_finding_each_are_read_in_proportion():
    """A list of 250 Nodes, each with a label that names no key and without a GPU to serve, and one of 2,000."""
    node = ("- apiVersion: v1\n  kind: Node\n  metadata:\n    name: n%05d\n    labels: {nvidia.com/gpu.present: 'true', "
            "nvidia.com/gpu.count: '8', nvidia.com/gpu.product: Tesla-T4, nvidia.com/device-plugin.config: gone}\n"
            "  status: {allocatable: {nvidia.com/gpu: '0'}}\n")
    costs_no_more_than_its_size(lambda count: "apiVersion: v1\nkind: List\nitems:\n" + "".join(node % i for i in range(count)),
                                250, LINT, PLAN, AUDIT)
