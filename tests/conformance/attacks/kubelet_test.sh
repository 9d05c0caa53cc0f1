#!/usr/bin/env bash
# The credential of one kubelet: its own Node and the pods on it. What it writes there can take that node out of the rollout, and no other.
#
#   kubelet_test.sh CLUSTER_DIR BUILD_DIR     a running control plane without a fleet, which authorizes kubelets by their node
#                                             (cluster.sh up --api-server-flag --authorization-mode=Node
#                                             --api-server-flag --enable-admission-plugins=NodeRestriction), a built tree
#
# Prints one line for each check and closes with "N passed, N failed".
# shellcheck source=tests/conformance/attacks/attack.sh
source "$(dirname "${BASH_SOURCE[0]}")/attack.sh" "$@"

own=t4-02 other=t4-01
kubelet() { kubectl --as "system:node:$own" --as-group system:nodes --as-group system:authenticated "$@"; }

its_own_node_is_all_that_it_writes() {
  forbidden 'only its own Node object' kubelet annotate node "$other" gpusharing.dev/hold=true
  forbidden 'forbidden' kubelet patch sharingpolicies default --type merge --patch '{"spec":{"rollout":{"paused":true}}}'
  forbidden 'forbidden' kubelet patch configmap mps-config --namespace gpu-operator --type merge --patch '{"data":{"any":"version: v1"}}'
  forbidden 'forbidden' kubelet get secrets --namespace "$namespace"
  kubelet annotate node "$own" example.com/its-own=true
}

# A change that it invents, with the pods of another node as those to replace, and one of a tenant.
victims() {
  kubectl get pods --namespace gpu-operator --field-selector "spec.nodeName=$other" --output 'jsonpath={range .items[*]}{.metadata.uid}{"\n"}{end}'
}
a_forged_change_deletes_nothing_elsewhere() {
  local change
  victims >"$work/victims"
  [[ -s $work/victims ]]
  # The form of the annotation is the operator's: taken from a change of its own.
  set_replicas any 5
  await 90 a_change_is_seen
  is_carried_through 5 11
  victims >"$work/victims"
  change=$(python3 - "$work/change" "$work/victims" <<'PY'
import json, re, sys
text = open(sys.argv[1]).read()
victims = open(sys.argv[2]).read().split()
uids = re.findall(r"[0-9a-f]{8}(?:-[0-9a-f]{4}){3}-[0-9a-f]{12}", text)
assert uids, text
for number, uid in enumerate(dict.fromkeys(uids)):
    text = text.replace(uid, victims[number % len(victims)])
print(text)
PY
  )
  kubelet annotate node "$own" --overwrite "gpusharing.dev/change=$change"
  kubelet label node "$own" --overwrite gpusharing.dev/state=Updating
  sleep 15
  victims | diff "$work/victims" -
  running operator
}
a_change_is_seen() {
  kubectl get nodes --output 'jsonpath={range .items[*]}{.metadata.annotations.gpusharing\.dev/change}{"\n"}{end}' | grep -m 1 -E '[0-9a-f]{8}-[0-9a-f]{4}-' >"$work/change"
}

# It claims labels of others as the operator's, so that the operator would remove them.
a_forged_record_removes_no_foreign_label() {
  kubectl label node "$own" team.example/kept=true
  labels_of_others >"$work/labels"
  kubelet annotate node "$own" --overwrite 'gpusharing.dev/owned={"team.example/kept":"","kubernetes.io/hostname":"","nvidia.com/gpu.deploy.device-plugin":"false"}'
  sleep 10
  labels_of_others | diff "$work/labels" -
}
labels_of_others() {
  kubectl get node "$own" --output 'jsonpath={.metadata.labels.team\.example/kept} {.metadata.labels.kubernetes\.io/hostname} {.metadata.labels.nvidia\.com/gpu\.deploy\.device-plugin}{"\n"}' | tee /dev/stderr
}

# kubectl would read the status first, which a kubelet is not allowed to.
writes_its_status() {
  local server answer
  server=$(kubectl config view --minify --output 'jsonpath={.clusters[0].cluster.server}')
  answer=$(curl --silent --insecure --request PATCH --header "Authorization: Bearer $(<"$cluster/admin.token")" --header "Impersonate-User: system:node:$own" \
    --header 'Impersonate-Group: system:nodes' --header 'Content-Type: application/strategic-merge-patch+json' --data "$1" --write-out '\n%{http_code}' \
    "$server/api/v1/nodes/$own/status")
  [[ ${answer##*$'\n'} == 200 ]] || { echo "$answer"; return 1; }
}
# A node that says that it is broken holds one slot, and the others go on.
one_node_holds_one_slot() {
  writes_its_status '{"status":{"conditions":[{"type":"Ready","status":"False","reason":"Forged","message":"x"}],"allocatable":{"nvidia.com/gpu.shared":"0","nvidia.com/gpu":"999999999"}}}'
  kubelet annotate node "$own" --overwrite gpusharing.dev/hold=true "gpusharing.dev/devices=$(python3 -c 'print("[" * 100000)')"
  kubectl patch sharingpolicies default --type merge --patch '{"spec":{"rollout":{"maxUnavailable":3,"maxUnavailablePerGroup":3}}}'
  set_replicas any 6
  await 240 at_least 6 10
  running operator
}
at_least() { (($(kubectl get nodes --selector "nvidia.com/gpu.replicas=$1" --output name | wc -l) >= $2)) || { kubectl get nodes -L nvidia.com/gpu.replicas,gpusharing.dev/state; return 1; }; }

check "the chart is installed" install_chart
check "a fleet is adopted" a_fleet_is_adopted
check "a kubelet writes its own Node, and nothing else" its_own_node_is_all_that_it_writes
check "a change that it forges deletes no pod of another node" a_forged_change_deletes_nothing_elsewhere
check "a record that it forges removes no label of others" a_forged_record_removes_no_foreign_label
check "its node holds one slot, and the others are rolled" one_node_holds_one_slot
close_checks
