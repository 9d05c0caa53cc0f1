#!/usr/bin/env python3
"""Whether each reservation pod of KAI that the operator deleted was needed by nobody, from an API server's audit log.

usage: kai_judge.py AUDIT.log [--account USER] [--at-least N]

The log is played write by write; each deletion of the operator's account is judged against the pods, BindRequests and
ConfigMaps as they were just then: no live pod carries the group of the reservation, no BindRequest in progress names it (or
another reservation of the group holds the GPUs that all its consumers see), and the request names the uid and the version of
the pod that was there. Nothing of the operator's own code is used. The exit code is 1 where a deletion was wrong or the
operator has written another pod, and 2 where fewer than N deletions were judged.
"""
import argparse
import sys

sys.dont_write_bytecode = True  # The project's folder stays as it is.

from audit_log import metadata, read
from cluster import Cluster
from judge import ACCOUNT
from kai_reservations import RESERVATIONS, has_another, needed


class Deletions:
    """What the operator did to pods, and what was wrong with it."""

    def __init__(self, account):
        self.cluster = Cluster(account)
        self.account = account
        self.judged = self.of_duplicates = 0
        self.wrong = []

    def play(self, write):
        if not write.succeeded:
            return
        self.cluster.complete(write)
        if write.user == self.account and write.resource == "pods":
            self._judge(write)
        self.cluster.apply(write)

    def _judge(self, write):
        pods = self.cluster.all("pods")
        pod = pods.get(write.key)
        if write.verb != "delete" or write.subresource or write.namespace != RESERVATIONS:
            self.wrong.append(f"the operator writes a pod that is no reservation ({write})")
            return
        self.judged += 1
        if pod is None:
            self.wrong.append(f"the log does not show what was deleted ({write})")
            return
        self.of_duplicates += has_another(pod, pods)
        why = needed(pod, pods, self.cluster.all("bindrequests"), self.cluster.all("configmaps"))
        if why:
            self.wrong.append(f"{why} ({write})")
        conditions = write.request.get("preconditions") or {}
        for field in ("uid", "resourceVersion"):
            if conditions.get(field) != metadata(pod).get(field):
                self.wrong.append(f"the precondition {field} is {conditions.get(field)}, and the pod has "
                                  f"{metadata(pod).get(field)} ({write})")


def main(arguments):
    parser = argparse.ArgumentParser()
    parser.add_argument("audit")
    parser.add_argument("--account", default=ACCOUNT)
    parser.add_argument("--at-least", type=int, default=1)
    options = parser.parse_args(arguments)
    deletions = Deletions(options.account)
    for write in read(options.audit, options.account)[0]:
        deletions.play(write)
    for wrong in deletions.wrong[:20]:
        print(wrong)
    print(f"{deletions.judged} deletions of reservations judged, {deletions.of_duplicates} of them beside another one of the "
          f"group; {len(deletions.wrong)} wrong")
    if deletions.wrong:
        return 1
    return 0 if deletions.judged >= options.at_least else 2


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
