#!/usr/bin/env bash
# From a real older release to this one and back, on a fleet in the middle of a rollout: the older chart and the older
# program, then this chart and this program, then the older ones again. The operator is a local process under the
# chart's ServiceAccount, beside an emulated fleet.
#
#   upgrade_test.sh CLUSTER_DIR BUILD_DIR     a running cluster without a fleet and without a release, a built tree
#
# The older program is built once per machine (former_release.sh build); where it has not been built, this is skipped.
# Prints one line for each check and closes with "N passed, N failed".
# shellcheck source=tests/chart/chart.sh
source "$(dirname "${BASH_SOURCE[0]}")/chart.sh" "$@"

# shellcheck disable=SC2154  # $project, $build, $work, $namespace, $release, $chart and $former come from the sourced scripts.
former_program=$("$project/tests/chart/former_release.sh" path 2>&1) || { echo "skipped: $former_program"; exit 77; }

in_release=(--namespace "$namespace" --timeout 60s)
flags=(--canary-soak=1s --status-interval=1s --configmap-propagation=2s)

# starts former|this: the program that the release of that name has.
starts() {
  case $1 in
    former) operator_program=$former_program start_operator "$work/operator.kubeconfig" "${flags[@]}" ;;
    this) start_operator "$work/operator.kubeconfig" "${flags[@]}" ;;
  esac
  await 30 is_ready
}

# Of each operand pod its uid and its node.
pods_with_nodes() { kubectl get pods --namespace gpu-operator --output 'jsonpath={range .items[*]}{.spec.nodeName} {.metadata.uid}{"\n"}{end}' | sort; }
# Every DaemonSet has all its pods Ready, and none is on its way out.
pods_are_ready() {
  kubectl get daemonsets,pods --namespace gpu-operator --output json | python3 -c '
import json, sys
items = json.load(sys.stdin)["items"]
behind = [i["metadata"]["name"] for i in items if i["kind"] == "DaemonSet" and i["status"].get("numberReady") != i["status"].get("desiredNumberScheduled")]
going = [i["metadata"]["name"] for i in items if i["kind"] == "Pod" and "deletionTimestamp" in i["metadata"]]
sys.exit(f"not at rest: {behind + going}" if behind or going else 0)'
}
nodes_with() { kubectl get nodes --selector "$1" --output 'jsonpath={range .items[*]}{.metadata.name}{"\n"}{end}' | sort; }

installs_the_former_release() {
  kubectl create namespace gpu-operator --dry-run=client -o yaml | kubectl apply -f -
  helm install "$release" "$former" "${in_release[@]}" --create-namespace --set replicas=0
  await 20 kubectl wait --for=condition=Established --timeout=5s crd/sharingpolicies.gpusharing.dev crd/sharingrollouts.gpusharing.dev
  new_token first
  kubeconfig_for "tokenFile: $work/token" >"$work/operator.kubeconfig"
}

former_operator_adopts() {
  starts former
  await 60 up_to_date 12
  kubectl create -f - <<<'{"apiVersion":"gpusharing.dev/v1alpha1","kind":"SharingPolicy","metadata":{"name":"kept"},"spec":{"priority":7,
    "nodeSelector":{"matchLabels":{"kubernetes.io/hostname":"t4-02"}},"rollout":{"paused":true}}}'
  await 60 up_to_date 11
}

# half_rolled REPLICAS FEWEST: some nodes have that many and some do not, and one is in a change.
half_rolled() {
  local done_nodes
  done_nodes=$(nodes_with "nvidia.com/gpu.replicas=$1" | wc -l)
  ((done_nodes >= $2 && done_nodes < 9)) || { echo "$done_nodes nodes have $1 replicas"; return 1; }
  node_in_progress
}
is_paused_on_t4_02() { [[ $(kubectl get node t4-02 --output 'jsonpath={.metadata.labels.nvidia\.com/gpu\.replicas}') == "$1" ]]; }
nothing_is_left_of_changes() {
  [[ -z $(kubectl get nodes --field-selector spec.unschedulable=true --output name) ]] || { kubectl get nodes; return 1; }
  [[ -z $(kubectl get nodes --selector gpusharing.dev/state --output name) ]] || { kubectl get nodes -L gpusharing.dev/state; return 1; }
}
policies_are_as_they_were() {
  [[ $(kubectl get sharingpolicies kept --output 'jsonpath={.spec.priority} {.spec.rollout.paused}') == '7 true' ]]
  kubectl get sharingpolicies default --output 'jsonpath={.spec.rollout.maxUnavailable}' | grep -x 2
}
# The record of the operator: who ran what, since when. `recordedAt` is written once.
recorded_at() {
  kubectl get configmap gpu-sharing-operator-state --namespace "$namespace" --output json |
    python3 -c 'import json, re, sys; print(re.search(r"\"recordedAt\": ?\"([^\"]+)\"", " ".join(json.load(sys.stdin)["data"].values())).group(1))'
}

# Killed as a node is lost: nothing is handed over but what objects carry.
former_operator_stops_half_way() {
  kubectl patch sharingpolicies default --type merge --patch '{"spec":{"rollout":{"maxUnavailable":2,"maxUnavailablePerGroup":2}}}'
  set_replicas any 6
  await 120 half_rolled 6 2
  stop operator KILL
  recorded_at >"$work/recorded_at"
  nodes_with nvidia.com/gpu.replicas=6 >"$work/done"
  kubectl get sharingrollouts --output 'jsonpath={.items[?(@.spec.policy=="default")].metadata.name}' >"$work/rollout"
}

# The nodes in $work/done have the pods that they had then.
no_node_that_was_done_restarts_again() {
  pods_with_nodes | grep -wFf "$work/done" | diff "$work/pods_of_done" -
}
remember_pods_of_done_nodes() { pods_with_nodes | grep -wFf "$work/done" >"$work/pods_of_done"; }

upgrades_and_finishes() {
  await 30 pods_are_ready # Those of nodes in a change are still being made.
  nodes_with 'nvidia.com/gpu.replicas=6,!gpusharing.dev/state' >"$work/done"
  remember_pods_of_done_nodes
  helm upgrade "$release" "$chart" "${in_release[@]}" --reset-then-reuse-values
  starts this
  await 180 replicas_are 6 10
  await 60 up_to_date 11
  await 30 no_rollout_runs
  nothing_is_left_of_changes
}
keeps_everything() {
  no_node_that_was_done_restarts_again
  policies_are_as_they_were
  is_paused_on_t4_02 4
  [[ $(recorded_at) == "$(<"$work/recorded_at")" ]] || { recorded_at; cat "$work/recorded_at"; return 1; }
  # The rollout that the former one began is the one that is complete.
  [[ $(kubectl get sharingrollouts "$(<"$work/rollout")" --output 'jsonpath={.status.phase}') == Completed ]] || { kubectl get sharingrollouts; return 1; }
}

stops_half_way() {
  set_replicas any 8
  await 120 half_rolled 8 2
  stop operator KILL
  await 30 pods_are_ready
  nodes_with 'nvidia.com/gpu.replicas=8,!gpusharing.dev/state' >"$work/done"
  remember_pods_of_done_nodes
}
is_rolled_back_and_the_former_one_finishes() {
  helm rollback "$release" 1 "${in_release[@]}"
  starts former
  await 180 replicas_are 8 10
  await 60 up_to_date 11
  await 30 no_rollout_runs
  nothing_is_left_of_changes
}
keeps_everything_again() {
  no_node_that_was_done_restarts_again
  policies_are_as_they_were
  is_paused_on_t4_02 4
  [[ $(recorded_at) == "$(<"$work/recorded_at")" ]] || { recorded_at; cat "$work/recorded_at"; return 1; }
}

# With nothing to do, no version restarts a pod.
comes_back_at_rest() {
  pods_with_nodes >"$work/pods"
  stop operator
  helm upgrade "$release" "$chart" "${in_release[@]}" --reset-then-reuse-values
  starts this
  await 60 up_to_date 11
  sleep 5
  pods_with_nodes | diff "$work/pods" -
  nothing_is_left_of_changes
}
a_pause_of_the_former_release_is_lifted_in_this_one() {
  kubectl patch sharingpolicies kept --type merge --patch '{"spec":{"rollout":{"paused":false}}}'
  await 120 replicas_are 8 11
  await 60 nothing_is_left_of_changes
}

check "an older release is installed" installs_the_former_release
start_fleet 0.05 >"$work/fleet-objects.log" 2>&1 || cat "$work/fleet-objects.log"
check "a fleet shares its GPUs" await 90 replicas_are 4 11
check "the older operator adopts it, with a second, paused policy" former_operator_adopts
check "the older operator is killed in the middle of a rollout" former_operator_stops_half_way
check "after the upgrade this operator finishes it" upgrades_and_finishes
check "no node restarts twice; policies, pause, record and rollout are as they were" keeps_everything
check "this operator is killed in the middle of the next rollout" stops_half_way
check "after helm rollback the older operator finishes it" is_rolled_back_and_the_former_one_finishes
check "nothing is lost on the way back either" keeps_everything_again
check "the next upgrade of a fleet at rest restarts no pod" comes_back_at_rest
check "a pause that was set under the older release ends in this one" a_pause_of_the_former_release_is_lifted_in_this_one
close_checks
