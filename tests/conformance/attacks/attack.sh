#!/usr/bin/env bash
# Sourced first by the scripts of this folder, with their arguments CLUSTER_DIR BUILD_DIR: what they share. Sets $attacks, the folder, and
# $account, the operator's.
# shellcheck shell=bash disable=SC2034
# shellcheck source=tests/conformance/beside_cluster.sh
source "$(dirname "${BASH_SOURCE[0]}")/../beside_cluster.sh" "$@"

attacks=$(cd "$(dirname "${BASH_SOURCE[0]}")" && pwd)
# shellcheck disable=SC2154  # $namespace comes from the sourced script.
account=system:serviceaccount:$namespace:gpu-sharing-operator

# a_fleet_is_adopted: twelve nodes with an operator that has adopted them, and a policy that rolls them within a minute.
a_fleet_is_adopted() {
  quick_policy 2
  start_fleet 0.05 || cat "$work/fleet.log"
  await 90 replicas_are 4 11
  start_operator "$work/operator.kubeconfig" --operand-namespaces=gpu-operator
  await 30 is_ready
  await 60 up_to_date 12
}
# is_carried_through REPLICAS NODES
is_carried_through() {
  await 240 replicas_are "$1" "$2"
  await 60 no_rollout_runs
}
# Peak resident memory of the operator in MiB.
peak() { awk '/^VmHWM/ { print int($2 / 1024) }' "/proc/$(<"$work/pids/operator")/status"; }
