#!/usr/bin/env bash
# `verify NODE` on a real control plane: its Job as the API server, the Job controller and the scheduler take it, and its own
# script, which client_kubelet.py runs beside a stand-in for nvidia-cuda-mps-control. The operator does not run.
#
#   verify_test.sh CLUSTER_DIR BUILD_DIR     a running cluster without a fleet, a built tree
#
# Prints one line for each check and closes with "N passed, N failed".
# shellcheck source=tests/conformance/beside_cluster.sh
source "$(dirname "${BASH_SOURCE[0]}")/beside_cluster.sh" "$@"

node=kind-control-plane
verify=("$build/controller/gpu-sharing-operator" verify "$node" --kubeconfig "$cluster/admin.kubeconfig")

# Two T4s of 15360 MiB, each shared by four MPS clients. Once they are, the fleet's kubelet gives way to one that runs pods.
a_node_shares_by_mps() {
  start fleet "$build/tests/sim/fleet/gso-fleet" --kubeconfig "$cluster/admin.kubeconfig" --topology kind --time-scale 0.05
  "$build/tests/sim/fleet/gso-fleet" --topology kind --print-manifests >"$work/fleet.json"
  kubectl apply --server-side --force-conflicts -f "$work/fleet.json" || true
  await 30 kubectl wait --for=condition=Established --timeout=30s crd/clusterpolicies.nvidia.com
  kubectl apply --server-side --force-conflicts -f "$work/fleet.json"
  await 120 offers_replicas
  stop fleet
  mkdir "$work/programs"
  cat >"$work/programs/nvidia-cuda-mps-control" <<'SH'
#!/bin/sh
# Where there is a folder `lies`, the first who asks hears the number of a daemon without limits.
read -r question gpu
case $question in
get_default_active_thread_percentage) if rmdir "${0%/*}/lies" 2>/dev/null; then echo 100.0; else echo 25.0; fi ;;
get_default_device_pinned_mem_limit) [ "$gpu" -lt 2 ] && echo 3G ;;
esac
SH
  chmod +x "$work/programs/nvidia-cuda-mps-control"
  start kubelet "$here/client_kubelet.py" "$cluster" "$node" "$work/programs"
  await 30 grep 'is ready' "$work/kubelet.log"
  local level
  for level in baseline restricted; do
    kubectl create namespace "$level"
    kubectl label namespace "$level" "pod-security.kubernetes.io/enforce=$level"
    await 30 kubectl get serviceaccount default --namespace "$level"
  done
}
offers_replicas() { kubectl get node "$node" --output 'jsonpath={.status.allocatable.nvidia\.com/gpu} {.metadata.labels.nvidia\.com/gpu\.sharing-strategy}' | grep -x '8 mps'; }

# verifies STATUS VERDICT ARGS...: that is its exit status, and what it says of the node; no Job and no pod remains.
verifies() {
  local wanted=$1 verdict=$2 status=0
  shift 2
  "${verify[@]}" "$@" >"$work/said" 2>&1 || status=$?
  cat "$work/said"
  grep "^node $node: $verdict: " "$work/said"
  ((status == wanted)) || { echo "exit status $status"; return 1; }
  await 30 nothing_remains
}
nothing_remains() { [[ -z $(kubectl get jobs,pods --all-namespaces --selector app.kubernetes.io/name=gpu-sharing-verify --output name) ]]; }

all_get_the_right_numbers() {
  verifies 0 Proven --namespace baseline
  grep ': 8 clients ran at the same time, and each has read its limits from the MPS daemon' "$work/said"
  (($(grep -cE ' Proven +25\.0 +3G, 3G ' "$work/said") == 9))  # And the line of what is expected.
}
one_gets_a_wrong_number() {
  mkdir "$work/programs/lies"
  verifies 1 LimitDiffers --pods 3
  grep -E ': 1 of 3 clients: .*threads: 100\.0 instead of 25\.0$' "$work/said"
}
one_has_no_replica() {
  kubectl create -f - <<YAML
apiVersion: v1
kind: Pod
metadata: {name: other, namespace: default}
spec: {nodeName: $node, containers: [{name: main, image: example/cuda-app:1, resources: {limits: {nvidia.com/gpu: "5"}}}]}
YAML
  verifies 2 Pending --pods 4 --timeout 8s
  grep -E ': after 8s: 3 of 4 clients run and have answered: .*Insufficient nvidia.com/gpu' "$work/said"
  kubectl delete pod other --namespace default --grace-period=0 --force
}
pod_security_refuses() {
  verifies 2 Pending --namespace restricted --pods 1
  grep 'violates PodSecurity "restricted:' "$work/said"
  grep -F -- '--namespace names another one' "$work/said"
}

# Two pods run; then the command gets that signal.
interrupted_by() {
  start verify "${verify[@]}" --namespace baseline --pods 8 --timeout 1m
  await 30 job_says '{.status.active}' '[1-8]'
  kill -"$1" "$(<"$work/pids/verify")"
  await 20 ended
}
ended() { ! running verify; }
job_says() { kubectl get jobs --namespace baseline --output "jsonpath={range .items[*]}$1{end}" | tee /dev/stderr | grep -Ex "$2"; }
after_an_interrupt_nothing_remains() {
  interrupted_by INT
  grep 'stopped: ' "$work/verify.log"
  await 30 nothing_remains
}
after_a_kill_the_cluster_ends_it() {
  interrupted_by KILL
  job_says '{.spec.activeDeadlineSeconds} {.spec.ttlSecondsAfterFinished} {.spec.backoffLimit} {.spec.parallelism}' '90 30 0 8'
  # Pinned by affinity, so that the scheduler counts the replicas; the rest is as the API server has filled it in.
  job_says '{.spec.template.spec.nodeName}{.spec.template.spec.schedulerName} {.spec.template.spec.affinity.nodeAffinity.requiredDuringSchedulingIgnoredDuringExecution.nodeSelectorTerms[0].matchFields[0].values[0]}' \
    "default-scheduler $node"
  [[ $(kubectl get pods --namespace baseline --output 'jsonpath={.items[*].spec.nodeName}') == *"$node"* ]]
}

check "a node shares its GPUs by MPS" a_node_shares_by_mps
check "all get the right numbers in a namespace of the level baseline: Proven" all_get_the_right_numbers
check "one gets a wrong number: LimitDiffers, and which" one_gets_a_wrong_number
check "one finds no free replica: Pending, with the scheduler's words" one_has_no_replica
check "a namespace of the level restricted refuses the pods: Pending, with the API server's words" pod_security_refuses
check "after Ctrl-C neither the Job nor a pod remains" after_an_interrupt_nothing_remains
check "after kill -9 the Job has what ends and removes it" after_a_kill_the_cluster_ends_it
close_checks
