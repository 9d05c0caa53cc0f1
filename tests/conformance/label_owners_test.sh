#!/usr/bin/env bash
# Sharing labels that change hands, on a real API server with kubectl as the other client: the operator sets a label that
# somebody keeps changing three times and no more, says so once, and keeps to that over a restart; a node that is only
# verified gets no write; a key that NFD takes over is NFD's; and `cleanup` leaves what another client has put there.
#
#   label_owners_test.sh CLUSTER_DIR BUILD_DIR     a running cluster without a fleet, a built tree
#
# Prints one line for each check and closes with "N passed, N failed".
# shellcheck source=tests/conformance/beside_cluster.sh
source "$(dirname "${BASH_SOURCE[0]}")/beside_cluster.sh" "$@"

# Neither NFD nor GFD runs there: the sharing labels are the operator's.
node=edge-01
account=system:serviceaccount:$namespace:gpu-sharing-operator
replicas=nvidia.com/gpu.replicas strategy=nvidia.com/gpu.sharing-strategy mode=gpusharing.dev/label-mode
kubeconfig_for "token: \"$(<"$cluster/admin.token")\"" >"$work/admin.kubeconfig"

value() { kubectl get node "$1" --output "jsonpath={.metadata.labels.${2//./\\.}}"; }
has() { local now; now=$(value "$1" "$2"); [[ $now == "$3" ]] || { echo "$2 of $1 is '$now', not '$3'"; return 1; }; }
owned() { kubectl get node "$node" --output 'jsonpath={.metadata.annotations.gpusharing\.dev/owned}'; }
# writes NODE: how often the operator's account has written it, by the audit log.
writes() {
  python3 - "$cluster/audit.log" "$account" "$1" <<'PY'
import json, sys
path, account, node = sys.argv[1:]
count = 0
for line in open(path, encoding="utf-8"):
    event = json.loads(line)
    ref = event.get("objectRef", {})
    count += (event["user"]["username"] == account and event["verb"] in ("patch", "update", "create", "delete")
              and ref.get("resource") == "nodes" and ref.get("name") == node and event.get("stage") == "ResponseComplete")
print(count)
PY
}
# silent NODE COMMAND...: for 15 s after the command no write of the operator reaches the node.
silent() {
  local before after target=$1
  shift
  before=$(writes "$target")
  "$@"
  sleep 15
  after=$(writes "$target")
  ((before == after)) || { echo "$((after - before)) writes to $target"; return 1; }
}

operator_runs() {
  start_operator "$work/operator.kubeconfig" --canary-soak=1s --configmap-propagation=2s --status-interval=1s \
    --cluster-max-unavailable=100% --max-unavailable=100% --max-unavailable-per-group=100%
  await 30 is_ready
  await 90 up_to_date 12
}
labels_are_the_operators() {
  start_fleet 0.05
  await 90 replicas_are 4 11
  operator_runs
  # Without GFD nobody has said which text the pods of that node read: the next one is known.
  set_replicas any 6
  await 120 has "$node" "$replicas" 6
  await 60 no_rollout_runs
  await 60 up_to_date 12
  has "$node" "$strategy" mps
  owned | grep -F "\"$replicas\""
  kubectl get node "$node" --show-managed-fields --output json | python3 -c '
import json, sys
fields = json.load(sys.stdin)["metadata"]["managedFields"]
owners = [one["manager"] for one in fields if "f:" + sys.argv[1] in one["fieldsV1"].get("f:metadata", {}).get("f:labels", {})]
print(owners); sys.exit(owners != ["gpu-sharing-operator"])' "$replicas"
}
restarts_nothing() { operand_pods | diff "$work/pods.before" -; }

a_label_that_is_changed_is_set_again() {
  operand_pods >"$work/pods.before"
  local i
  for i in 1 2 3; do
    kubectl label node "$node" "$replicas=7" --overwrite
    await 30 has "$node" "$replicas" 6 || { echo "time $i"; return 1; }
  done
}
the_fourth_time_it_is_left() {
  silent_after_the_report
  has "$node" "$replicas" 7
  restarts_nothing
}
silent_after_the_report() {
  kubectl label node "$node" "$replicas=7" --overwrite
  await 30 contested
  silent "$node" kubectl label node "$node" "$replicas=8" --overwrite
  has "$node" "$replicas" 8
  kubectl label node "$node" "$replicas=7" --overwrite
}
contested() { policy_status '{.status.conditions[?(@.type=="LabelsContested")].status}' | grep -x True; }
it_is_said_once() {
  policy_status '{.status.conditions[?(@.type=="LabelsContested")].message}' | tee "$work/message" | grep -F "$node"
  kubectl get events --all-namespaces --field-selector reason=LabelContested --output json | python3 -c '
import json, sys
events = json.load(sys.stdin)["items"]
print([one["message"] for one in events]); sys.exit(len(events) != 1)'
}
a_restart_begins_no_new_count() {
  stop operator
  kubectl label node "$node" "$replicas=9" --overwrite
  silent "$node" operator_runs
  has "$node" "$replicas" 9
}

a_verified_node_gets_no_write() {
  kubectl annotate node "$node" "$mode=verify"
  sleep 3  # What was under way.
  silent "$node" kubectl label node "$node" "$strategy-"
  has "$node" "$strategy" ""
}
back_to_auto_it_is_written_again() {
  kubectl annotate node "$node" "$mode-"
  await 30 has "$node" "$strategy" mps
  has "$node" "$replicas" 9
}

a_key_that_nfd_takes_over_is_nfds() {
  kubectl annotate node "$node" "nfd.node.kubernetes.io/feature-labels=$strategy"
  sleep 3
  silent "$node" kubectl label node "$node" "$strategy=none" --overwrite
  has "$node" "$strategy" none
}
# Where GFD runs and NFD lists the labels.
enforce_writes_nothing_that_nfd_lists() {
  kubectl get node t4-01 --output 'jsonpath={.metadata.annotations.nfd\.node\.kubernetes\.io/feature-labels}' | grep -F gpu.replicas
  silent t4-01 kubectl annotate node t4-01 "$mode=enforce"
  kubectl annotate node t4-01 "$mode-"
}

cleanup_leaves_what_others_have_put_there() {
  stop operator
  "$build/controller/gpu-sharing-operator" cleanup --kubeconfig "$work/admin.kubeconfig" --namespace "$namespace"
  has "$node" "$replicas" 9
  has "$node" "$strategy" none
  [[ -z $(owned) ]]
  restarts_nothing
}

check "the chart is installed" install_chart
check "where no GFD runs the labels are the operator's, and recorded" labels_are_the_operators
check "a label that another client changes is set again, three times" a_label_that_is_changed_is_set_again
check "the fourth time it is left to the other client, without a write" the_fourth_time_it_is_left
check "one condition and one Event say so" it_is_said_once
check "a restart of the operator begins no new count" a_restart_begins_no_new_count
check "under verify the node gets no write at all" a_verified_node_gets_no_write
check "back to auto, the label that nobody contests is written again" back_to_auto_it_is_written_again
check "a key that NFD takes over is NFD's" a_key_that_nfd_takes_over_is_nfds
check "enforce writes no key that NFD lists" enforce_writes_nothing_that_nfd_lists
check "cleanup leaves what another client has put there" cleanup_leaves_what_others_have_put_there
close_checks
