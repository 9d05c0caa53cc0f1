#!/usr/bin/env bash
# What the operator leaves behind, on a real API server: Nodes end as they were in labels, annotations and spec, with
# `deletionPolicy: Revert` and by `cleanup`; with `Retain` exactly the profile label and its key stay, and a list says
# where; a policy with a finalizer can be deleted although the operator is gone.
#
#   leaving_test.sh CLUSTER_DIR BUILD_DIR     a running cluster without a fleet, a built tree
#
# Prints one line for each check and closes with "N passed, N failed".
# shellcheck source=tests/conformance/beside_cluster.sh
source "$(dirname "${BASH_SOURCE[0]}")/beside_cluster.sh" "$@"

kubeconfig_for "token: \"$(<"$cluster/admin.token")\"" >"$work/admin.kubeconfig"
cleanup() { "$build/controller/gpu-sharing-operator" cleanup "$@" --kubeconfig "$work/admin.kubeconfig" --namespace "$namespace"; }
quick=(--cluster-max-unavailable=100% --max-unavailable=100% --max-unavailable-per-group=100% --canary-soak=1s --status-interval=1s --configmap-propagation=2s)
label=nvidia.com/device-plugin.config

# What the operator could have written, one line for each value.
nodes() {
  kubectl get nodes --output json | python3 -c '
import json, sys
for node in json.load(sys.stdin)["items"]:
    meta = node["metadata"]
    for kind, values in (("label", meta.get("labels", {})), ("annotation", meta.get("annotations", {})), ("spec", node["spec"])):
        for key in sorted(values):
            # When GFD last wrote its labels.
            if key != "nvidia.com/gfd.timestamp": print(meta["name"], kind, key, json.dumps(values[key], sort_keys=True))'
}
nodes_are_as_before() { nodes >"$work/nodes.now" && diff "$work/nodes.before" "$work/nodes.now"; }

operator_runs() {
  start_operator "$work/operator.kubeconfig" "${quick[@]}"
  await 30 is_ready
  await 60 up_to_date "$1"
}

# policy DELETION-POLICY
policy() {
  kubectl apply -f - <<YAML
apiVersion: gpusharing.dev/v1alpha1
kind: SharingPolicy
metadata: {name: team}
spec:
  priority: 1
  nodeSelector: {matchExpressions: [{key: kubernetes.io/hostname, operator: In, values: [t4-01, t4-02]}]}
  profile: {inline: {strategy: time-slicing, replicas: 2}}
  deletionPolicy: $1
  rollout: {workloads: Interrupt, maxUnavailable: "100%", maxUnavailablePerGroup: "100%", canary: {soak: 1s}}
YAML
}
policy_is_in_effect() {
  policy "$1"
  await 120 replicas_of_its_nodes_are 2
  await 60 no_rollout_runs
}
# Only of the policy's nodes: whether edge-01 has the labels, where no GFD runs, depends on the second in which its pods
# were created. The operator writes them only if those are certainly newer than the ConfigMap.
replicas_of_its_nodes_are() {
  [[ $(kubectl get nodes t4-01 t4-02 --output 'jsonpath={.items[*].metadata.labels.nvidia\.com/gpu\.replicas}') == "$1 $1" ]] ||
    { kubectl get nodes -L nvidia.com/gpu.replicas,gpusharing.dev/state; return 1; }
}

fleet_is_seen() {
  await 90 replicas_are 4 11
  nodes >"$work/nodes.before"
  grep -c ' label ' "$work/nodes.before"
}

revert_takes_all_back() {
  policy_is_in_effect Revert
  if nodes_are_as_before >/dev/null; then return 1; fi
  kubectl delete sharingpolicies team --timeout=120s
  await 90 replicas_of_its_nodes_are 4
  await 60 no_rollout_runs
  await 60 up_to_date 12
  stop operator
  cleanup >"$work/answer"
  cat "$work/answer"
  await 30 nodes_are_as_before
  if grep -F kept: "$work/answer"; then return 1; fi
}

cleanup_takes_all_back_and_the_finalizer_wedges_nothing() {
  operator_runs 12
  policy_is_in_effect Revert
  kubectl get sharingpolicies team --output 'jsonpath={.metadata.finalizers}' | grep gpusharing.dev/revert
  stop operator KILL
  kubectl delete sharingpolicies team --wait=false
  kubectl get sharingpolicies team --output 'jsonpath={.metadata.deletionTimestamp}' | grep .
  cleanup --timeout 60s
  await 30 policy_is_gone
  await 90 replicas_of_its_nodes_are 4
  await 30 nodes_are_as_before
}
policy_is_gone() { ! kubectl get sharingpolicies team; }

retain_keeps_the_label_and_says_where() {
  operator_runs 12
  policy_is_in_effect Retain
  stop operator
  cleanup >"$work/answer"
  cat "$work/answer"
  nodes >"$work/nodes.now"
  local key
  key=$(kubectl get node t4-01 --output "jsonpath={.metadata.labels.nvidia\.com/device-plugin\.config}")
  [[ $key == gso-team-* ]]
  grep -F "kept: label $label=$key of policy team is kept on 2 nodes: t4-01, t4-02, and so does key $key of ConfigMap gpu-operator/" "$work/answer"
  kubectl get configmaps --namespace gpu-operator --output yaml | grep -F "$key"
  # What GFD writes follows the profile; of everything else only the label is new.
  (diff "$work/nodes.before" "$work/nodes.now" || true) | grep '^[<>]' | grep -vE 'label nvidia.com/(gpu|mps)\.|feature-labels' >"$work/differs"
  cat "$work/differs"
  [[ $(cut -d ' ' -f 1-4 "$work/differs" | sort) == "> t4-01 label $label"$'\n'"> t4-02 label $label" ]]
}

# Two of the twelve nodes are the policy's.
uninstalled_without_hooks_a_finalizer_wedges_nothing() {
  operator_runs 10
  policy_is_in_effect Revert
  await 30 has_finalizer
  stop operator KILL
  helm uninstall gpu-sharing-operator --namespace "$namespace" --no-hooks --timeout 60s
  kubectl delete sharingpolicies team --wait=false
  has_finalizer
  cleanup --timeout 60s
  await 30 policy_is_gone
}
has_finalizer() { kubectl get sharingpolicies team --output 'jsonpath={.metadata.finalizers}' | grep gpusharing.dev/revert; }

check "the chart is installed" install_chart
start_fleet 0.05 >"$work/fleet-objects.log" 2>&1 || cat "$work/fleet-objects.log"
check "a fleet shares its GPUs" fleet_is_seen
check "the operator adopts it" operator_runs 12
check "with Revert Nodes end as they were" revert_takes_all_back
check "cleanup takes all back, and deletes a policy whose operator was killed" cleanup_takes_all_back_and_the_finalizer_wedges_nothing
check "with Retain the label and its key stay, and a list says where" retain_keeps_the_label_and_says_where
check "uninstalled without hooks, a finalizer wedges nothing" uninstalled_without_hooks_a_finalizer_wedges_nothing
close_checks
