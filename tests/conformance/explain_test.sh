#!/usr/bin/env bash
# `explain pod` against the real scheduler: each cause produced by what people do to pods and nodes, and every change that the
# proposed command makes, as the API server would answer it (explain_cases.py).
#
#   explain_test.sh CLUSTER_DIR BUILD_DIR     a running cluster without a fleet, a built tree
#
# Prints one line for each check and closes with "N passed, N failed".
# shellcheck source=tests/conformance/beside_cluster.sh
source "$(dirname "${BASH_SOURCE[0]}")/beside_cluster.sh" "$@"

kubectl create namespace gpu-operator
start_fleet 0.05 >"$work/fleet-objects.log" 2>&1 || cat "$work/fleet-objects.log"
check "a fleet shares its GPUs" await 90 replicas_are 4 11
# shellcheck disable=SC2154  # $work comes from the sourced scripts.
while IFS=$'\t' read -r -u 3 name title; do
  check "$title" "$here/explain_cases.py" "$name" "$build/controller/gpu-sharing-operator" "$cluster"
done 3< <("$here/explain_cases.py" --list)
stop fleet
while IFS=$'\t' read -r -u 3 name title; do
  check "$title" "$here/explain_cases.py" "$name" "$build/controller/gpu-sharing-operator" "$cluster"
done 3< <("$here/explain_cases.py" --list dead)
close_checks
