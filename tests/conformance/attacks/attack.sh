#!/usr/bin/env bash
# Sourced first by the scripts of this folder, with their arguments CLUSTER_DIR BUILD_DIR: what they share. Sets $attacks, the folder, and
# $account, the operator's.
# shellcheck shell=bash disable=SC2034
# shellcheck source=tests/conformance/beside_cluster.sh
source "$(dirname "${BASH_SOURCE[0]}")/../beside_cluster.sh" "$@"

attacks=$(cd "$(dirname "${BASH_SOURCE[0]}")" && pwd)
# shellcheck disable=SC2154  # $namespace comes from the sourced script.
account=system:serviceaccount:$namespace:gpu-sharing-operator

# a_fleet_is_rolled: twelve nodes with an operator that has adopted them, and a policy that rolls them within a minute.
a_fleet_is_adopted() {
  await 30 kubectl wait --for=condition=Established --timeout=30s crd/sharingpolicies.gpusharing.dev
  kubectl create -f - <<<'{"apiVersion":"gpusharing.dev/v1alpha1","kind":"SharingPolicy","metadata":{"name":"default"},
    "spec":{"priority":-1000,"rollout":{"canary":{"soak":"1s"},"maxUnavailable":2,"maxUnavailablePerGroup":2}}}'
  start_fleet 0.05 || cat "$work/fleet.log"
  await 90 replicas_are 4 11
  start_operator "$work/operator.kubeconfig" --operand-namespaces=gpu-operator
  await 30 is_ready
  await 60 up_to_date 12
}
# Some nodes have so many replicas already, others wait, and one is in a change.
half_rolled() {
  local ready
  ready=$(kubectl get nodes --selector "nvidia.com/gpu.replicas=$1" --output name | wc -l)
  ((ready >= 1 && ready <= 8)) || { echo "$ready nodes have $1 replicas"; return 1; }
  node_in_progress
}
# is_carried_through REPLICAS NODES
is_carried_through() {
  await 240 replicas_are "$1" "$2"
  await 60 no_rollout_runs
}
# Peak resident memory of the operator in MiB.
peak() { awk '/^VmHWM/ { print int($2 / 1024) }' "/proc/$(<"$work/pids/operator")/status"; }
