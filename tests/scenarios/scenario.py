"""What a story needs: `@scenario`, expectations, texts of profiles, and a cluster that answers what the operator plans.

A `Cluster` holds manifests. `Cluster.tick` runs `plan -o json` over them and applies every action as an API server and
a GPU fleet would: pods that were deleted come up again with the text that the ConfigMap holds by then, and the node
shows what that text produces. Every tick is a new process, so every tick is a restart of the operator as well.

Only names that users see are used here. What the operator remembers, it writes by itself in the first ticks.
"""
from cluster.cluster import Cluster, fleet, held_canary, numbered
from cluster.expectations import Failure, expect, expect_that, one
from cluster.names import COMPONENTS, CONFIG_LABEL, GFD_LABELS, GPU, REVISION
from cluster.plans import Run, Tick
from cluster.profile_texts import INVALID, mps, none, ts
from cluster.program import binary
from cluster.times import moment, stamp

__all__ = ["COMPONENTS", "CONFIG_LABEL", "Cluster", "Failure", "GFD_LABELS", "GPU", "INVALID", "REVISION", "Run", "SCENARIOS",
           "Tick", "binary", "expect", "expect_that", "fleet", "held_canary", "moment", "mps", "none", "numbered", "one", "scenario", "stamp",
           "ts"]

SCENARIOS = []  # (module.function, function) of every story.


def scenario(function):
    """Registers a function; its docstring says in one sentence what a user must see."""
    if not (function.__doc__ or "").strip():
        raise TypeError("a scenario needs a sentence: " + function.__name__)
    SCENARIOS.append(("%s.%s" % (function.__module__, function.__name__), function))
    return function
