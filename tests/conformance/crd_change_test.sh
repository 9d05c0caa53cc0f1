#!/usr/bin/env bash
# The operator beside CRDs of another version than its own, as an upgrade leaves them for a while that applies them first
# (docs/upgrading.md), and as a rollback does.
#
#   crd_change_test.sh CLUSTER_DIR BUILD_DIR     a running control plane without a fleet, a built tree
#
# Prints one line for each check and closes with "N passed, N failed".
# shellcheck source=tests/conformance/beside_cluster.sh
source "$(dirname "${BASH_SOURCE[0]}")/beside_cluster.sh" "$@"
account=system:serviceaccount:$namespace:gpu-sharing-operator

# crds_of VERSION: the CRDs of this version ("own"), of a newer one with a setting, a value and fields of the status more and a
# limit less, or of an older one without some fields of the status and a setting.
crds_of() {
  python3 - "$1" "$project"/crds/*.yaml <<'PY'
import json, sys, yaml
version, *files = sys.argv[1:]
items = [yaml.safe_load(open(file, encoding="utf-8")) for file in files]
for crd in items:
    schema = crd["spec"]["versions"][0]["schema"]["openAPIV3Schema"]["properties"]
    spec, status = schema["spec"]["properties"], schema["status"]["properties"]
    if version == "newer":
        status["forecast"] = {"type": "object", "required": ["text"], "properties": {"text": {"type": "string"}}}
        if crd["spec"]["names"]["kind"] == "SharingPolicy":
            spec["rollout"]["properties"]["pace"] = {"type": "string", "enum": ["Slow", "Fast"], "default": "Fast"}
            spec["mode"]["enum"].append("Forecast")
            spec["rollout"]["properties"]["maxFailures"].pop("maximum", None)
    if version == "older":
        for name in ("estimatedCompletion", "oldestInProgress", "nodes") if crd["spec"]["names"]["kind"] == "SharingPolicy" else ("pace", "waits", "counts"):
            del status[name]
        spec.get("rollout", {}).get("properties", {}).pop("idleTimeout", None)
print(json.dumps({"apiVersion": "v1", "kind": "List", "items": items}))
PY
}
are_applied() {
  crds_of "$1" | kubectl apply --server-side --force-conflicts -f -
  await 30 kubectl wait --for=condition=Established --timeout=30s crd/sharingpolicies.gpusharing.dev crd/sharingrollouts.gpusharing.dev
}
rolls_out() {
  set_replicas any "$1"
  await 120 replicas_are "$1" 11
  await 60 no_rollout_runs
  await 60 kubectl wait --for=jsonpath='{.status.conditions[?(@.type=="Ready")].status}'=True --timeout=20s sharingpolicy/default
}
# Writes of the operator but for its Lease and Events, in all.
writes() {
  python3 - "$cluster/audit.log" "$account" <<'PY'
import json, sys
print(sum(entry["user"]["username"] == sys.argv[2] and entry["verb"] in ("create", "update", "patch", "delete")
          and entry.get("objectRef", {}).get("resource") not in ("leases", "events")
          for entry in map(json.loads, open(sys.argv[1], encoding="utf-8")) if entry["stage"] == "ResponseComplete"))
PY
}
# What the API server drops is not written again and again.
writes_nothing_more() {
  local before
  await 30 no_rollout_runs
  sleep 5  # For a status that was on its way.
  before=$(writes)
  ((before > 0))
  sleep 15
  (($(writes) == before)) || { echo "$(($(writes) - before)) writes within 15 s although nothing happened"; return 1; }
}
keeps_what_it_does_not_know() {
  kubectl patch sharingpolicies default --type merge --patch '{"spec":{"rollout":{"pace":"Slow"}}}'
  rolls_out 5
  [[ $(kubectl get sharingpolicies default --output 'jsonpath={.spec.rollout.pace}') == Slow ]]
}
starts_beside_it() {
  stop operator
  start_operator "$work/operator.kubeconfig"
  await 60 is_ready
}
says_what_is_dropped() { await 60 logged 'drops fields of the status'; }
status_is_whole_again() {
  rolls_out 8
  await 60 up_to_date 12
}

check "the chart is installed" install_chart
check "a quick policy is applied" quick_policy 4
start_fleet 0.05 >"$work/fleet-objects.log" 2>&1 || cat "$work/fleet-objects.log"
check "a fleet shares its GPUs" await 90 replicas_are 4 11
start_operator "$work/operator.kubeconfig"
check "the operator takes the nodes as they are" await 90 up_to_date 12
check "newer CRDs are applied beside the operator" are_applied newer
check "beside newer CRDs it rolls an edit out" rolls_out 6
check "it keeps the setting of a policy that it does not know" keeps_what_it_does_not_know
check "it starts beside newer CRDs" starts_beside_it
check "and writes nothing more" writes_nothing_more
judge # Here: beside older CRDs a status can change nothing, which the operator learns from the answer.
check "older CRDs are applied" are_applied older
check "beside older CRDs it rolls an edit out" rolls_out 7
check "it says that the API server drops fields of the status" says_what_is_dropped
check "and writes nothing more" writes_nothing_more
check "it starts beside older CRDs" starts_beside_it
check "and writes nothing more" writes_nothing_more
check "its own CRDs are applied again" are_applied own
check "it rolls an edit out, and the status is whole" status_is_whole_again
close_checks
