#!/usr/bin/env bash
# The commands of two documents that people follow, line by line and with kubectl: MPS in kind under the GPU Operator, and
# KAI's page about MPS, whose two lines with a colon in place of `=` and a boolean in place of text cannot work. (Of the
# third, nos's page, partitioning_test.sh asks for the pods.) The operator is at work, under the chart's own ServiceAccount.
#
#   seed_commands_test.sh CLUSTER_DIR BUILD_DIR     a running cluster without a fleet, a built tree
#
# Prints one line for each check and closes with "N passed, N failed".
# shellcheck source=tests/conformance/beside_cluster.sh
source "$(dirname "${BASH_SOURCE[0]}")/beside_cluster.sh" "$@"

node=kind-control-plane
gso() { "$build/controller/gpu-sharing-operator" "$@"; }

# `bash ./setup.sh`: one node, and the GPU Operator without a configuration for its device plugin.
setup() {
  start fleet "$build/tests/sim/fleet/gso-fleet" --kubeconfig "$cluster/admin.kubeconfig" --topology kind --time-scale 0.05
  "$build/tests/sim/fleet/gso-fleet" --topology kind --print-manifests | python3 -c '
import json, sys
objects = json.load(sys.stdin)
objects["items"] = [one for one in objects["items"] if one["kind"] in ("Namespace", "CustomResourceDefinition", "ClusterPolicy")]
for one in objects["items"]:
    one.get("spec", {}).get("devicePlugin", {}).pop("config", None)
print(json.dumps(objects))' >"$work/setup.json"
  kubectl apply --server-side --force-conflicts -f "$work/setup.json" || true
  await 30 kubectl wait --for=condition=Established --timeout=30s crd/clusterpolicies.nvidia.com
  kubectl apply --server-side --force-conflicts -f "$work/setup.json"
  await 120 capacity nvidia.com/gpu 2
  start_operator "$work/operator.kubeconfig" --canary-soak=1s --configmap-propagation=2s
  await 30 is_ready
}
# As `kubectl describe node` prints it: capacity RESOURCE COUNT.
capacity() { kubectl describe node "$node" | sed -n '/^Capacity:/,/^Allocatable:/p' | tee "$work/capacity" | grep -E "^ +$1: +$2$"; }
allocatable() { kubectl describe node "$node" | sed -n '/^Allocatable:/,/^System Info:/p' | grep -E "^ +$1: +$2$"; }

create_mps_config() {
  cat >"$work/mps-config.yaml" <<'YAML'
apiVersion: v1
kind: ConfigMap
metadata:
  name: mps-config
data:
  any: |
    version: v1
    sharing:
      mps:
        renameByDefault: true
        resources:
        - name: nvidia.com/gpu
          replicas: 4
YAML
  kubectl create -n gpu-operator -f "$work/mps-config.yaml"
  gso lint "$work/mps-config.yaml"
}
patch_the_cluster_policies() {
  kubectl patch clusterpolicies.nvidia.com/cluster-policy \
    -n gpu-operator --type merge \
    -p '{"spec": {"devicePlugin": {"config": {"name": "mps-config", "default": "any"}}}}'
}
watch_for_the_daemon() { await 120 daemon_is_up; }
# kubectl get pods --watch prints a line for each change; the line that the document shows comes.
daemon_is_up() {
  timeout 5 "$cluster/bin/kubectl" --kubeconfig "$cluster/admin.kubeconfig" get pods -n gpu-operator --watch >"$work/pods" || true
  cat "$work/pods"
  grep -E '^nvidia-device-plugin-mps-control-daemon-[a-z0-9]+ +2/2 +Running ' "$work/pods"
}
check_the_node() {
  await 120 capacity nvidia.com/gpu.shared 8
  await 30 capacity nvidia.com/gpu 0
  await 30 allocatable nvidia.com/gpu.shared 8
  await 30 allocatable nvidia.com/gpu 0
}
the_operator_agrees() {
  await 60 up_to_date 1
  [[ -z $(kubectl get node "$node" --output 'jsonpath={.spec.unschedulable}') ]]
  gso status --kubeconfig "$cluster/admin.kubeconfig" --namespace "$namespace" | tee "$work/status" | grep -E "^$node +UpToDate "
}
an_edit_is_rolled() {
  kubectl get configmap mps-config -n gpu-operator -o yaml | sed 's/replicas: 4/replicas: 6/' | kubectl replace -f -
  await 240 capacity nvidia.com/gpu.shared 12
  await 120 no_rollout_runs
  await 60 up_to_date 1
}

# --- KAI's page

# gpu-sharing-with-mps.yaml has an MPS volume with the hostPath /tmp/nvidia-smp, as the page says.
apply_gpu_sharing_with_mps() {
  cat >"$work/gpu-sharing-with-mps.yaml" <<'YAML'
apiVersion: v1
kind: Pod
metadata:
  name: gpu-sharing-with-mps
  labels:
    kai.scheduler/queue: default-queue
  annotations:
    gpu-fraction: "0.5"
spec:
  schedulerName: kai-scheduler
  containers:
    - name: main
      image: ubuntu
      command: ["sleep", "infinity"]
      volumeMounts:
        - mountPath: /tmp/nvidia-smp
          name: nvidia-mps
  volumes:
    - name: nvidia-mps
      hostPath:
        path: /tmp/nvidia-smp
YAML
  kubectl apply -f "$work/gpu-sharing-with-mps.yaml"
  gso lint "$work/gpu-sharing-with-mps.yaml" >"$work/lint" || { cat "$work/lint"; return 1; }  # Warnings alone.
  cat "$work/lint"
  grep '/tmp/nvidia-mps, not /tmp/nvidia-smp' "$work/lint"
}
label_with_a_colon_fails() {
  if kubectl label node "$node" nvidia.mps/enabled: true >"$work/answer" 2>&1; then return 1; fi
  cat "$work/answer"
  [[ -z $(kubectl get node "$node" --output 'jsonpath={.metadata.labels.nvidia\.mps/enabled}') ]]
}
# Without KAI in the cluster the label is the person's: the operator neither owns nor removes it.
label_with_an_equals_sign_stays() {
  kubectl label node "$node" nvidia.mps/enabled=true
  sleep 10
  kubectl get node "$node" --output 'jsonpath={.metadata.labels.nvidia\.mps/enabled}' | grep -x true
  if kubectl get node "$node" --output 'jsonpath={.metadata.annotations.gpusharing\.dev/owned}' | grep nvidia.mps; then return 1; fi
}
# selecting VALUE: the page's node selector.
selecting() {
  cat <<YAML
apiVersion: v1
kind: Pod
metadata:
  name: selects-mps
spec:
  nodeSelector:
    nvidia.mps/enabled: $1
  containers:
    - name: main
      image: ubuntu
YAML
}
boolean_selector_is_refused() {
  selecting true >"$work/boolean.yaml"
  if kubectl apply -f "$work/boolean.yaml" >"$work/answer" 2>&1; then return 1; fi
  cat "$work/answer"
  grep -i 'cannot unmarshal bool' "$work/answer"
  if gso lint "$work/boolean.yaml" >"$work/lint"; then cat "$work/lint"; return 1; fi
  cat "$work/lint"
  grep -E 'boolean.yaml:7:[0-9]+: error: .*nvidia\.mps/enabled' "$work/lint"
}
quoted_selector_finds_the_node() {
  selecting '"true"' >"$work/quoted.yaml"
  gso lint "$work/quoted.yaml"
  kubectl apply -f "$work/quoted.yaml"
  await 60 runs_there
}
runs_there() { kubectl get pod selects-mps --output 'jsonpath={.status.phase} {.spec.nodeName}' | grep -x "Running $node"; }

check "the chart is installed" install_chart
check "a kind cluster with the GPU Operator" setup
check "kind: kubectl create -f mps-config.yaml, which lint accepts" create_mps_config
check "kind: kubectl patch clusterpolicies" patch_the_cluster_policies
check "kind: kubectl get pods --watch shows the MPS daemon" watch_for_the_daemon
check "kind: kubectl describe node shows 8 gpu.shared and 0 gpu" check_the_node
check "kind: the operator has recorded it, and disturbs nothing" the_operator_agrees
check "kind: an edit of mps-config is rolled to the only node" an_edit_is_rolled
check "KAI: kubectl apply -f gpu-sharing-with-mps.yaml works, and lint warns" apply_gpu_sharing_with_mps
check "KAI: kubectl label with a colon fails and labels nothing" label_with_a_colon_fails
check "KAI: with = the label is there, and stays the person's" label_with_an_equals_sign_stays
check "KAI: a boolean in the node selector is refused by the API server and by lint" boolean_selector_is_refused
check "KAI: as text it finds the node" quoted_selector_finds_the_node
close_checks
