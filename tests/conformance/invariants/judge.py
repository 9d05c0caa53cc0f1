#!/usr/bin/env python3
"""The safety invariants of the operator, judged at every write from an API server's audit log.

usage: judge.py AUDIT.log [--account USER]

The log must hold the bodies of writes (controlplane/audit-policy.yaml). It is played write by write; each write of the
operator's account is judged against the cluster as it was just then. Nothing of the operator's own code is used. Prints
one line for each invariant with the number of writes judged. The exit code is 1 where one is violated, and 2 where the
log holds no write of the operator at all. A rule that has judged nothing is "not judged", and does not count as held;
where every story puts it to the test, it fails.

What the operator must heed (a pause, another node's outage, a client) counts from two seconds after the server took it:
no watch is faster for sure. The operator's own writes count at once.

      judged                                                  not to be seen in an audit log
S1    each Node that a PATCH takes out of service against     that mechanism DaemonSetRestart keeps none (it promises
      the budgets of cluster, policy and group as of then     none): it starts no Node
S2    deletions: operands by their DaemonSet's uid, the uid   whether a reservation pod passed every check of its
      as a precondition, listed in the Node's change or not   collection (kai_judge.py judges that)
      Ready; S2b evictions; S2c clients under pods that go    CUDA clients that no Pod object shows
S3    labels, annotations, keys and DaemonSets: by who wrote  the reasons of mode "enforce", which no story uses
      them last, NFD's list and the keys that are ours
S4    the Lease is held and has not run out at each write;    which of two processes wrote: both have one account;
      S4b watches are open at each disruptive one             whether a watch had delivered all of its first list
S5    each start and each deletion against the text in its    what only the plugin's own parser or the node's devices
      ConfigMap, by YAML and the plainest rules of the plugin  find wrong
S6    writes that change nothing; writes into a cluster that  timers inside of the operator
      is done and quiet; S6b PATCHes of a Node in a change
S7    who set the cordon that is lifted, holds, taints,       quarantines by marks that cluster.py does not list
      quarantines, resourceVersion of each cordon
S8    starts and first deletions on Nodes with KAI's pods     a pod that KAI is about to bind, before it asks for it
      or BindRequests
S9    starts before or without an input since the record      upgrades: a story has one version
S10   starts and first deletions under pause, abort, hold,    undo
      quarantine, Observe, outside windows, or unapproved
S11   what is recorded as done: old pods gone, new ones       whether the new pods have read the newest text
      Ready, Node Ready and serving
S12   what stops a rollout as MaxFailures: a node that        which canary proved what: that is in the operator's
      served before its change has failed                     record alone
"""
import argparse
import sys

sys.dont_write_bytecode = True  # The project's folder stays as it is.

from audit_log import read
from cluster import Cluster
from node_rules import Baseline, Budgets, Cordons, FewPatches, ForeignMarks, Stops, Verified
from pod_rules import Deletions, Evictions, KaiNodes, RunningClients, ValidTargets
from process_rules import EffectiveWrites, Leader, Synced
from rollout_rules import ServedBefore

ACCOUNT = "system:serviceaccount:gpu-sharing-operator:gpu-sharing-operator"
SHOWN = 5
# Not every story has consumers, MPS, KAI or failures.
OPTIONAL = ("S2b", "S2c", "S8", "S12")


def all_rules(watches=()):
    return [Budgets(), Deletions(), Evictions(), RunningClients(), ForeignMarks(), Leader(), Synced(watches), ValidTargets(),
            EffectiveWrites(), FewPatches(), Cordons(), KaiNodes(), Baseline(), Stops(), Verified(), ServedBefore()]


def judge(writes, rules, account):
    """Plays the writes; returns how many were the operator's."""
    cluster = Cluster(account)
    own = 0
    for write in writes:
        if write.is_unanswered:
            cluster.note_unanswered(write)
        if not write.succeeded or write.is_unanswered:
            continue
        cluster.complete(write)
        if write.user == account and write.resource not in ("leases", "events"):
            own += 1
            for rule in rules:
                rule.judge(write, cluster)
        cluster.apply(write)
    return own


def report(rules):
    """One line for each; True where none has failed."""
    held = True
    for rule in rules:
        missing = rule.total == 0 and rule.number not in OPTIONAL
        verdict = "FAILED" if rule.violations or missing else "held" if rule.total else "not judged"
        print(f"{rule.number:<4} {verdict:<10} {rule.total:6} writes  {rule.title}")
        stories = ", ".join(f"{story} {count}" for story, count in rule.counts.items() if story)
        if stories:
            print(f"       {stories}")
        if missing:
            held = False
            print("       not judged: the log has no write to which it applies")
        for violation in rule.violations[:SHOWN]:
            print(f"       {violation}")
        if len(rule.violations) > SHOWN:
            print(f"       and {len(rule.violations) - SHOWN} more")
        held = held and not rule.violations
    return held


def main():
    parser = argparse.ArgumentParser()
    parser.add_argument("audit")
    parser.add_argument("--account", default=ACCOUNT)
    options = parser.parse_args()
    writes, watches = read(options.audit, options.account)
    rules = all_rules(watches)
    own = judge(writes, rules, options.account)
    held = report(rules)
    print(f"{len(writes)} writes in the log, {own} of the operator")
    if own == 0:
        return 2
    return 0 if held else 1


if __name__ == "__main__":
    sys.exit(main())
