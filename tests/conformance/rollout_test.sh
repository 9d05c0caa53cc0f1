#!/usr/bin/env bash
# `rollout …` and `cleanup` on a real API server, with an administrator's kubeconfig: every verb once, beside the operator under
# the chart's ServiceAccount and an emulated fleet.
#
#   rollout_test.sh CLUSTER_DIR BUILD_DIR     a running cluster without a fleet, a built tree
#
# Prints one line for each check and closes with "N passed, N failed".
# shellcheck source=tests/conformance/beside_cluster.sh
source "$(dirname "${BASH_SOURCE[0]}")/beside_cluster.sh" "$@"

kubeconfig_for "token: \"$(<"$cluster/admin.token")\"" >"$work/admin.kubeconfig"
rollout() { "$build/controller/gpu-sharing-operator" rollout "$@" --kubeconfig "$work/admin.kubeconfig" --namespace "$namespace"; }
cleanup() { "$build/controller/gpu-sharing-operator" cleanup "$@" --kubeconfig "$work/admin.kubeconfig" --namespace "$namespace"; }

# exits CODE COMMAND...: its output is in $work/answer.
exits() {
  local wanted=$1 code=0
  shift
  "$@" >"$work/answer" 2>&1 || code=$?
  ((code == wanted)) || { echo "exit status $code, not $wanted: $*"; cat "$work/answer"; return 1; }
}
says() { grep -F -- "$1" "$work/answer" || { echo "does not say '$1':"; cat "$work/answer"; return 1; }; }

profile() { printf 'version: v1\nsharing:\n  mps:\n    resources:\n    - name: nvidia.com/gpu\n      replicas: %d\n' "$1"; }
text() { kubectl get configmap mps-config --namespace gpu-operator --output 'jsonpath={.data.any}'; }
# The newest rollout, and its phase.
newest() { kubectl get sharingrollouts --sort-by .metadata.creationTimestamp --output name | tail -n 1 | sed 's|.*/||' | grep .; }
phase_is() { [[ $(kubectl get sharingrollout "$(newest)" --output 'jsonpath={.status.phase}') == "$1" ]] || { kubectl get sharingrollouts; return 1; }; }
spec_of() { kubectl get sharingrollout "$(newest)" --output "jsonpath={.spec.$1}"; }

adopts() {
  start_operator "$work/operator.kubeconfig" --canary-soak=1s --status-interval=1s --configmap-propagation=2s
  await 30 is_ready
  await 60 up_to_date 12
  exits 0 rollout status
  says 'No rollout is in progress.'
  exits 0 rollout history
  says 'No rollout is recorded.'
}

diff_names_who_is_in_the_way() {
  kubectl create -f - <<<'{"apiVersion":"v1","kind":"Pod","metadata":{"name":"train","namespace":"default"},
    "spec":{"nodeName":"t4-02","restartPolicy":"Never","containers":[{"name":"cuda","image":"example/cuda-app:1",
      "resources":{"limits":{"nvidia.com/gpu":"1"},"requests":{"nvidia.com/gpu":"1"}}}]}}'
  profile 6 >"$work/six.yaml"
  exits 0 rollout diff --file "$work/six.yaml" --key any
  says '11 nodes would change'
  grep -E '^t4-02 .*plugin, gfd, mps .*default/train' "$work/answer"
  exits 0 rollout diff --file "$work/six.yaml" --key any --output json
  python3 -c 'import json, sys; assert len(json.load(open(sys.argv[1]))["nodes"]) == 11' "$work/answer"
  kubectl get configmap mps-config --namespace gpu-operator --output json |
    python3 -c 'import json, sys; m = json.load(sys.stdin); m["data"]["any"] = "sharing: [1]"; json.dump(m, sys.stdout)' >"$work/whole.json"
  exits 1 rollout diff --file "$work/whole.json"
  says 'invalid: key any: '
  exits 0 rollout diff
  says 'No node would change.'
  kubectl delete pod train --namespace default --force --grace-period=0
}

# Nothing has been verified by a rollout yet, and still the text from before the first edit comes back.
paused_status_and_undo() {
  text >"$work/good"
  set_replicas any 6
  await 30 node_in_progress
  exits 0 rollout pause
  exits 0 rollout status
  says "$(newest): "
  await 20 phase_is Paused
  exits 0 rollout resume
  says resumed
  [[ $(spec_of paused) == false ]]
  exits 0 rollout undo
  [[ $(spec_of paused) == true ]]
  rollout undo 2>/dev/null | grep -v '^#' | diff "$work/good" -
}

undo_is_written_only_when_asked_and_never_over_argo() {
  kubectl annotate configmap mps-config --namespace gpu-operator argocd.argoproj.io/tracking-id=gpu:/ConfigMap:gpu-operator/mps-config
  exits 1 rollout undo --write-configmap
  says 'Argo CD'
  [[ $(text) != "$(<"$work/good")" ]]
  kubectl annotate configmap mps-config --namespace gpu-operator argocd.argoproj.io/tracking-id-
  exits 0 rollout undo --write-configmap
  [[ $(text) == "$(<"$work/good")" ]]
  await 120 up_to_date 12
  await 30 restored_but_for_edge
}
# Where no GFD runs, the operator writes the labels only if the pods are certainly newer than the ConfigMap: it depends on the second in
# which they were created.
restored_but_for_edge() {
  kubectl get nodes --selector 'nvidia.com/gpu.replicas=4,kubernetes.io/hostname!=edge-01' --output name >"$work/restored"
  (($(wc -l <"$work/restored") == 11)) || { cat "$work/restored"; return 1; }
}

history_has_the_text() {
  exits 0 rollout history
  says 'Superseded'
  exits 0 rollout history "$(kubectl get sharingrollouts --output 'jsonpath={.items[?(@.status.phase=="Superseded")].metadata.name}')"
  says 'replicas: 6'
}

approve_abort_and_start() {
  kubectl patch sharingpolicies default --type merge --patch '{"spec":{"mode":"Approve","rollout":{"maxUnavailable":"100%","maxUnavailablePerGroup":"100%","canary":{"nodesPerGroup":0}}}}'
  set_replicas any 8
  await 30 phase_is AwaitingApproval
  exits 0 rollout abort
  await 20 phase_is Failed
  exits 2 rollout approve
  exits 0 rollout start --adopt
  says 'which was aborted'
  await 30 phase_is AwaitingApproval
  exits 0 rollout approve
  await 120 replicas_are 8 11
  await 60 up_to_date 12
  await 20 phase_is Completed
}

# A container that ends again and again while its node is in a change. The emulated kubelets are stopped meanwhile, so that
# they do not write the pod's status.
plugin_pods() {
  kubectl get pods --namespace gpu-operator --selector app=nvidia-device-plugin-daemonset \
    --output 'jsonpath={range .items[*]}{.metadata.name} {.spec.nodeName} {.status.conditions[?(@.type=="Ready")].status}{"\n"}{end}'
}
# Stops the fleet while a new pod of the plugin is not Ready: "POD NODE".
stops_the_fleet_with_a_new_plugin_pod() {
  kill -STOP "$(<"$work/pids/fleet")"
  plugin_pods | grep -vFf "$work/plugin_pods" | awk '$2 != "" && $3 != "True" { print $1, $2; exit }' >"$work/crashing"
  [[ ! -s $work/crashing ]] || return 0
  kill -CONT "$(<"$work/pids/fleet")"
  return 1
}
a_crash_loop_is_named_with_its_log() {
  local pod node
  plugin_pods | awk '{ print $1 }' >"$work/plugin_pods"
  trap 'kill -CONT "$(<"$work/pids/fleet")"' EXIT
  kubectl patch sharingpolicies default --type merge --patch '{"spec":{"mode":"Enforce"}}'
  set_replicas any 5
  await 60 stops_the_fleet_with_a_new_plugin_pod
  read -r pod node <"$work/crashing"
  kubectl patch pod "$pod" --namespace gpu-operator --subresource status --type merge --patch '{"status":{"phase":"Running",
    "conditions":[{"type":"Ready","status":"False"}],"containerStatuses":[{"name":"nvidia-device-plugin","image":"plugin","imageID":"",
      "ready":false,"restartCount":4,"state":{"waiting":{"reason":"CrashLoopBackOff","message":"back-off 40s restarting failed container"}},
      "lastState":{"terminated":{"exitCode":1,"reason":"Error","message":"the driver is too old"}}}]}}'
  await 20 rollout_says "next: kubectl logs $pod --namespace gpu-operator --container nvidia-device-plugin --previous  # $node"
  rollout_says "$node .*(CrashLoopBackOff|the driver is too old)"
  kill -CONT "$(<"$work/pids/fleet")"
  kubectl delete pod "$pod" --namespace gpu-operator --wait=false
  await 120 replicas_are 5 11
  await 60 up_to_date 12
}
rollout_says() {
  rollout status >"$work/answer" 2>&1 || true
  grep -E -- "$1" "$work/answer" || { cat "$work/answer"; return 1; }
}

# The chart grants no eviction unless a value asks for it.
blocked_as_forbidden() {
  kubectl get sharingpolicies default --output 'jsonpath={range .status.blocked[?(@.reason=="Forbidden")]}{.message}{"\n"}{end}' >"$work/blocked"
  grep -F 'default/serve' "$work/blocked" | grep -F '(chart value eviction.enabled)'
}
eviction_without_the_right_is_named() {
  kubectl create -f - <<<'{"apiVersion":"v1","kind":"Pod","metadata":{"name":"serve","namespace":"default"},
    "spec":{"nodeName":"t4-01","restartPolicy":"Never","containers":[{"name":"cuda","image":"example/cuda-app:1",
      "resources":{"limits":{"nvidia.com/gpu":"1"},"requests":{"nvidia.com/gpu":"1"}}}]}}'
  kubectl patch sharingpolicies default --type merge --patch '{"spec":{"mode":"Enforce","rollout":{"workloads":"Evict","evictBarePods":true}}}'
  set_replicas any 6
  await 90 blocked_as_forbidden
  await 60 rollout_says 'eviction.enabled'  # By the status of the SharingRollout, which is written after the policy's.
  kubectl get pod serve --namespace default
  kubectl delete pod serve --namespace default --force --grace-period=0
  await 120 replicas_are 6 11
  await 60 up_to_date 12
}

policy_says_so() {
  kubectl get sharingpolicies inline --output 'jsonpath={.status.conditions[?(@.type=="Ready")].reason}' | grep -x RolledBack
}

inline_profile_goes_back_by_itself() {
  kubectl create -f - <<<'{"apiVersion":"gpusharing.dev/v1alpha1","kind":"SharingPolicy","metadata":{"name":"inline"},"spec":{"priority":5,
    "nodeSelector":{"matchLabels":{"kubernetes.io/hostname":"mig-01"}},"takeover":true,"profile":{"inline":{"strategy":"time-slicing","replicas":3,"resource":"nvidia.com/mig-1g.5gb"}},
    "rollout":{"canary":{"nodesPerGroup":0}}}}'
  await 60 newest_is_of inline
  exits 0 rollout undo "$(newest)"
  says 'undone. The nodes of policy'
  await 120 rolled_back
  await 30 policy_says_so
  kubectl delete sharingpolicies inline
  await 120 up_to_date 12
}
newest_is_of() { [[ $(kubectl get sharingrollout "$(newest)" --output 'jsonpath={.spec.policy}') == "$1" ]]; }
rolled_back() { kubectl get sharingrollouts --output 'jsonpath={.items[?(@.spec.policy=="inline")].status.phase}' | grep -w RolledBack; }

cleanup_needs_the_operator_to_be_gone() {
  exits 1 cleanup --timeout 2s
  says 'holds the lease'
  exits 0 cleanup --dry-run
  says 'would be changed'
  stop operator
  exits 0 cleanup
  kubectl get nodes --output yaml >"$work/nodes"
  if grep 'gpusharing.dev/' "$work/nodes" | grep -v 'gpusharing.dev/devices'; then return 1; fi
  [[ $(kubectl get sharingpolicies default --output 'jsonpath={.status.conditions[*].status}/{.status.conditions[0].reason}') == 'Unknown Unknown Unknown Unknown/OperatorRemoved' ]]
  exits 0 cleanup
  says '0 objects changed'
  [[ -z $(kubectl get leases,configmaps --namespace "$namespace" --output name | grep -E 'lease|state' || true) ]]
}

# A pause outlives its policy: the node of another policy gets the next edit, and shows that the operator goes on.
has_event() { kubectl get events --all-namespaces --field-selector "reason=$1" --output name | grep .; }
policy_is_seen() { [[ $(policy_status '{.metadata.generation}') == $(policy_status '{.status.observedGeneration}') ]]; }
pods_of_the_others() {
  kubectl get pods --namespace gpu-operator --field-selector 'spec.nodeName!=t4-02' \
    --output 'jsonpath={range .items[*]}{.metadata.uid}{"\n"}{end}' | sort
}
a_pause_outlives_its_policy() {
  kubectl create -f - <<<'{"apiVersion":"gpusharing.dev/v1alpha1","kind":"SharingPolicy","metadata":{"name":"free"},"spec":{"priority":9,
    "nodeSelector":{"matchLabels":{"kubernetes.io/hostname":"t4-02"}},"rollout":{"canary":{"nodesPerGroup":0}}}}'
  await 60 up_to_date 11
  kubectl patch sharingpolicies default --type merge --patch '{"spec":{"rollout":{"paused":true}}}'
  await 30 policy_is_seen
  pods_of_the_others >"$work/pods"
  kubectl delete sharingpolicies default
  await 30 has_event PolicyGone
  set_replicas any 8
  await 120 replicas_are 8 1
  pods_of_the_others | diff "$work/pods" -
}

a_pause_outlives_the_crds() {
  kubectl delete crd sharingrollouts.gpusharing.dev sharingpolicies.gpusharing.dev
  await 60 has_event CRDsGone
  exits 0 rollout diff --key any --file "$work/six.yaml"
  pods_of_the_others | diff "$work/pods" -
  kubectl apply --server-side --filename "$project/crds"
  await 30 kubectl wait --for=condition=Established --timeout=30s crd/sharingpolicies.gpusharing.dev crd/sharingrollouts.gpusharing.dev
  await 60 kubectl get sharingpolicies default
  pods_of_the_others | diff "$work/pods" -
  exits 0 rollout resume policy/default
  await 180 replicas_are 8 11
}

wrong_use_is_two() {
  exits 2 rollout
  exits 2 rollout pause no-such-rollout
  exits 2 rollout diff --key any
  exits 2 rollout undo --kubeconfig "$work/none"
  exits 2 cleanup --timeout soon
}

check "the chart is installed" install_chart
start_fleet 0.05 >"$work/fleet-objects.log" 2>&1 || cat "$work/fleet-objects.log"
check "a fleet shares its GPUs" await 90 replicas_are 4 11
check "the operator adopts it: no rollout, no history" adopts
check "diff names nodes, restarts and who is in the way, and writes nothing" diff_names_who_is_in_the_way
check "pause, status, resume, and undo in place, which prints the last verified text" paused_status_and_undo
check "undo writes the ConfigMap only when asked to, and never over Argo CD" undo_is_written_only_when_asked_and_never_over_argo
check "history has the text of what was rolled out" history_has_the_text
check "abort ends a rollout, start begins it anew, approve lets it go" approve_abort_and_start
check "a container that crashes during a change is named, with the command for its log" a_crash_loop_is_named_with_its_log
check "an eviction that the chart does not grant blocks its node, with the value to set" eviction_without_the_right_is_named
check "an inline profile that is undone goes back by itself" inline_profile_goes_back_by_itself
check "a pause outlives its policy, and other policies go on" a_pause_outlives_its_policy
check "a pause outlives the CRDs, until somebody resumes" a_pause_outlives_the_crds
check "wrong use ends with 2" wrong_use_is_two
check "cleanup waits for the operator to go, then leaves nothing" cleanup_needs_the_operator_to_be_gone
close_checks
