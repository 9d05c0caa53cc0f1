#!/usr/bin/env python3
"""Two replicas of one account, distinguished by their tokens: who wrote when, and which pods went, from the audit log.

usage: replicas.py AUDIT.log ACCOUNT TOKENS EDITS

TOKENS has a line "NAME JTI" for each token that a replica has had, NAME being its identity in the Lease. EDITS has the time of each
edit of the profile, in seconds since 1970. The exit code is 1 where one of these does not hold:

- whoever wrote (other than the Lease and Events) held the Lease when the API server received the request,
- between two edits no DaemonSet's pod was deleted twice on one node,
- each replica has written something: otherwise no change of the leader was put to the test.
"""
import bisect
import collections
import sys

sys.dont_write_bytecode = True

from audit_log import metadata, read

LEASE = "gpu-sharing-operator"


def holders(writes):
    """(times, names): who held the Lease from then on."""
    leases = sorted((w for w in writes if w.resource == "leases" and w.name == LEASE and w.succeeded and w.verb in ("create", "update", "patch")),
                    key=lambda w: w.ended)
    return [w.ended for w in leases], [(w.response.get("spec") or {}).get("holderIdentity", "") for w in leases]


def without_the_lease(writes, names):
    times, held = holders(writes)
    problems, counts = [], collections.Counter()
    for write in writes:
        who = names.get(write.token.removeprefix("JTI="))
        if who is None or not write.succeeded or write.resource in ("leases", "events"):
            continue
        counts[who] += 1
        at = bisect.bisect_right(times, write.received)
        # A server that is killed loses lines of its log: the renewal that it does not have is followed by others.
        around = held[max(0, at - 1):at + 1]
        if who not in around:
            problems.append(f"{write} by {who} while the Lease is held by {around[0] if around else 'nobody'}")
    return problems, counts


def deleted_twice(writes, account, edits):
    seen, problems = {}, []
    for write in writes:
        if write.user != account or write.kind != "pods" or write.verb != "delete" or not write.succeeded:
            continue
        owner = next((o["name"] for o in metadata(write.response).get("ownerReferences", []) if o.get("controller")), "")
        place = (bisect.bisect_right(edits, write.received), (write.response.get("spec") or {}).get("nodeName", ""), owner)
        if owner and place in seen:
            problems.append(f"{write}, and before it {seen[place]}: pods of {owner} on {place[1]} after one edit")
        seen[place] = write
    return problems, len(seen)


def main():
    audit, account, tokens, marks = sys.argv[1:5]
    with open(tokens, encoding="utf-8") as stream:
        names = {jti: name for name, jti in (line.split() for line in stream)}
    with open(marks, encoding="utf-8") as stream:
        edits = sorted(float(line) for line in stream)
    writes, _ = read(audit, account)
    strays, counts = without_the_lease(writes, names)
    twice, deletions = deleted_twice(writes, account, edits)
    silent = sorted(set(names.values()) - set(counts))
    results = [(f"each write was the leader's ({', '.join(f'{n} {c}' for n, c in sorted(counts.items()))})", strays),
               (f"no pod was deleted twice for one edit ({deletions} deletions)", twice),
               ("each replica has led", [f"{name} has written nothing" for name in silent])]
    for sentence, problems in results:
        print(f"{'FAILED' if problems else 'ok':<7} {sentence}")
        for problem in problems[:5]:
            print("    " + problem)
    return 1 if any(problems for _, problems in results) else 0


if __name__ == "__main__":
    sys.exit(main())
