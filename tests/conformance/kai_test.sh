#!/usr/bin/env bash
# The collection of KAI's reservation pods on a real API server, under the chart's own ServiceAccount and admission policy.
# The CRDs are KAI's own, from its release (controlplane/kai_crds.sh); KAI itself, controllers and kubelets are played here.
#
#   kai_test.sh CLUSTER_DIR BUILD_DIR     a running API server without controllers; it leaves the objects there
#
# Prints one line for each check and closes with "N passed, N failed".
# shellcheck source=tests/conformance/beside_cluster.sh
source "$(dirname "${BASH_SOURCE[0]}")/beside_cluster.sh" "$@"
# shellcheck source=tests/conformance/kai_cluster.sh
source "$here/kai_cluster.sh"

# pod NAMESPACE NAME NODE LABELS [PHASE]
pod() {
  kubectl create -f - <<YAML
apiVersion: v1
kind: Pod
metadata: {name: $2, namespace: $1, labels: {$4}, annotations: {run.ai/reserve_for_gpu_index: GPU-$2}}
spec: {nodeName: $3, containers: [{name: main, image: any}], tolerations: [{operator: Exists}]}
YAML
  kubectl patch pod "$2" -n "$1" --subresource status --type merge -p "{\"status\":{\"phase\":\"${5:-Running}\"}}"
}
reservation() { pod $reservations "$1" "$2" "app: $reservations, runai-gpu-group: g-$1"; }
# bind_request POD GROUP PHASE
bind_request() {
  kubectl create -f - <<<"{apiVersion: scheduling.run.ai/v1alpha2, kind: BindRequest, metadata: {name: $1, namespace: team}, spec: {podName: $1, selectedNode: n2, selectedGPUGroups: [$2]}}"
  kubectl patch bindrequest "$1" -n team --subresource status --type merge -p "{\"status\":{\"phase\":\"$3\"}}"
}

# An answer that does not come proves nothing: neither that a pod is gone nor that it is there.
seen() { kubectl get pod "$1" -n "${2:-$reservations}" --ignore-not-found -o 'jsonpath={.metadata.uid}/{.metadata.deletionTimestamp}'; }
deleted() {
  local now
  now=$(seen "$@") || return 1
  [[ -z $now || $now == */?* ]]
}
kept() {
  local now
  now=$(seen "$@") || return 1
  [[ $now == ?*/ ]]
}

reservations_of_all_kinds() {
  reservation orphan n1
  reservation finished n3
  pod team finished n3 'runai-gpu-group: g-finished' Succeeded
  reservation single n2
  pod team single n2 'runai-gpu-group: g-single'
  reservation multi n2
  pod team multi n2 'runai-gpu-group/g-multi: g-multi'
  reservation binding n2
  bind_request binding g-binding Pending
  reservation late n2
  pod team lookalike n1 "app: $reservations, runai-gpu-group: g-lookalike"
}

operator_starts() {
  start_operator "$work/operator.kubeconfig" --kai-grace=1m --kai-recheck-interval=5s --kai-node-interval=5s --watch-list=false --log-level=debug
  await 30 is_ready
}

# Two reservations of one group: the consumer's ConfigMap says whose GPU it uses.
a_duplicate_is_there() {
  pod $reservations right n1 "app: $reservations, runai-gpu-group: g-twice"
  pod $reservations wrong n1 "app: $reservations, runai-gpu-group: g-twice"
  pod team twice n1 'runai-gpu-group: g-twice'
  kubectl annotate pod twice -n team runai/shared-gpu-configmap=twice-shared-gpu gpu-fraction=0.5
  kubectl create -f - <<YAML
apiVersion: v1
kind: ConfigMap
metadata:
  name: twice-shared-gpu-0
  namespace: team
  ownerReferences: [{apiVersion: v1, kind: Pod, name: twice, uid: $(kubectl get pod twice -n team -o 'jsonpath={.metadata.uid}')}]
data: {NVIDIA_VISIBLE_DEVICES: GPU-right}
YAML
}

late_consumer_comes() { pod team late n2 'runai-gpu-group/g-late: g-late'; }

orphans_go() {
  await 100 deleted orphan
  await 20 deleted finished
}

all_else_stays() {
  local name
  for name in single multi binding late; do kept "$name" || { echo "$name is gone"; return 1; }; done
  for name in single multi late lookalike; do kept "$name" team || { echo "team/$name is gone"; return 1; }; done
}

the_duplicate_goes() {
  await 60 deleted wrong
  kept right
  kept twice team
}

an_event_says_why() {
  await 20 grep_events
}
grep_events() { kubectl get events.events.k8s.io -A -o 'jsonpath={range .items[*]}{.reason} {.regarding.kind} {.regarding.name} {.note}{"\n"}{end}' | grep -E 'NoConsumers Node n1 Deleting reservation kai-resource-reservation/orphan'; }

a_missing_api_holds() {
  reservation second n1
  kubectl delete crd bindrequests.scheduling.run.ai
  sleep 75
  kept second
  logged 'KAIHold|have not synced|served'
}

# The roles that are bound to the account.
bound_roles() {
  kubectl get clusterroles,roles --all-namespaces --output json \
    --selector 'app.kubernetes.io/instance=gpu-sharing-operator,!rbac.authorization.k8s.io/aggregate-to-edit'
}
installs_without_kai() {
  kubectl create namespace gpu-operator
  helm install gpu-sharing-operator "$project/charts/gpu-sharing-operator" --namespace "$namespace" --create-namespace --timeout 60s --set replicas=0
  bound_roles >"$work/roles-without.json"
}
rights_for_kai_are_used_and_enough() {
  stop operator
  bound_roles >"$work/roles.json"
  "$here/used_rights.py" "$cluster/audit.log" "$work/roles.json" "$namespace" gpu-sharing-operator --beside "$work/roles-without.json" \
    --rare "$here/rare_rights_of_kai.txt"
}

check "KAI is there" kai_is_there
check "the chart is installed without KAI's values" installs_without_kai
check "the chart grants what is needed" install_chart --set kai.namespace=kai-scheduler --set "kai.reservationNamespaces={$reservations}" --set 'kai.consumerNamespaces={team}'
check "the binder runs" binder_runs
check "there are reservations of all kinds" reservations_of_all_kinds
check "a reservation is there twice" a_duplicate_is_there
check "the operator starts" operator_starts
sleep 30
check "a multi-device consumer comes half-way" late_consumer_comes
check "the orphans are deleted after their grace period" orphans_go
check "of two reservations the one goes whose GPU the consumer does not use" the_duplicate_goes
check "everything else stays" all_else_stays
check "an Event on the node says why" an_event_says_why
check "with one of KAI's APIs missing nothing is deleted" a_missing_api_holds
check "no request was refused" bash -c "test -s '$work/operator.log' && ! grep -E 'orbidden' '$work/operator.log'"
check "the rights that KAI's values add are used, and nothing was refused" rights_for_kai_are_used_and_enough
close_checks
