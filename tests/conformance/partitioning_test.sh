#!/usr/bin/env bash
# Slices for pending pods on a real control plane with its scheduler, under the chart's own ServiceAccount and admission
# policy, beside a fleet with Nebuly's fork of the device plugin: the steps of docs/migration.md from nos to the operator,
# pods that get their slices while others run on, and the rights that modes.partitioning adds. nos's gpu-partitioner is a
# Lease that is renewed here.
#
#   partitioning_test.sh CLUSTER_DIR BUILD_DIR     a running cluster without a fleet, a built tree
#
# Prints one line for each check and closes with "N passed, N failed".
# shellcheck source=tests/conformance/beside_cluster.sh
source "$(dirname "${BASH_SOURCE[0]}")/beside_cluster.sh" "$@"

account=system:serviceaccount:$namespace:gpu-sharing-operator
config=(nos-device-plugin-configs --namespace nebuly-nvidia)
quick=(--configmap-propagation=6s --partitioning-batch-idle=1s --partitioning-batch-timeout=5s)

nos_is_there() {
  start fleet "$build/tests/sim/fleet/gso-fleet" --kubeconfig "$cluster/admin.kubeconfig" --topology nos:2 --time-scale 0.05 \
    --gpu-operator-namespace ''
  "$build/tests/sim/fleet/gso-fleet" --topology nos:2 --print-manifests >"$work/nos.json"
  kubectl apply --server-side -f "$work/nos.json"
  await 60 kubectl wait --for=condition=Ready --timeout=5s node/nos-01 node/nos-02
  # As nos left them: a key and a label for each node, with two slices of 10 GB on the first GPU.
  local node
  for node in nos-01 nos-02; do
    kubectl patch configmap "${config[@]}" --type merge --patch "$(python3 -c '
import json, sys
text = """version: v1
flags: {migStrategy: none}
sharing:
  mps:
    failRequestsGreaterThanOne: true
    resources:
    - {name: nvidia.com/gpu, rename: gpu-10gb, memoryGB: 10, replicas: 2, devices: ["0"]}
"""
print(json.dumps({"data": {sys.argv[1] + "-1700000000": text}}))' "$node")"
  done
  sleep 6
  kubectl label node nos-01 nvidia.com/device-plugin.config=nos-01-1700000000
  kubectl label node nos-02 nvidia.com/device-plugin.config=nos-02-1700000000
  await 60 serves nos-01 10 2
  await 60 serves nos-02 10 2
}
# serves NODE GB COUNT
serves() { kubectl get node "$1" --output "jsonpath={.status.allocatable.nvidia\\.com/gpu-$2gb}" | grep -x "$3"; }

# asks POD GB: a pod for the real scheduler.
asks() {
  kubectl create -f - <<YAML
apiVersion: v1
kind: Pod
metadata: {name: $1, namespace: default}
spec:
  restartPolicy: Never
  hostIPC: true
  securityContext: {runAsUser: 1000}
  containers: [{name: main, image: example/cuda-app:1, resources: {limits: {nvidia.com/gpu-$2gb: "1"}}}]
YAML
}
runs() { kubectl get pod "$1" --namespace default --output 'jsonpath={.status.phase}' | grep -x Running; }
# What the API server keeps of nodes and keys, without what agents report.
state_of_nodes() {
  kubectl get nodes --output 'jsonpath={range .items[*]}{.metadata.name}{" "}{.metadata.labels}{" "}{.metadata.annotations.gpusharing\.dev/partitioning}{"\n"}{end}'
  kubectl get configmap "${config[@]}" --output 'jsonpath={.data}'
}

a_client_runs() {
  asks client 10
  await 60 runs client
  client_as_it_is >"$work/client"
}
client_as_it_is() {
  kubectl get pod client --namespace default --output 'jsonpath={.metadata.uid} {.status.phase} {.status.containerStatuses[0].restartCount}{"\n"}'
}
client_was_not_disturbed() {
  client_as_it_is | diff "$work/client" - || { kubectl get pod client --namespace default --output yaml; return 1; }
}

# --- nos's gpu-partitioner, as far as it can be seen

renews_its_lease() {
  local now
  while :; do
    now=$(date --utc +%FT%T.%6NZ)
    kubectl apply --server-side --force-conflicts -f - <<YAML >/dev/null
apiVersion: coordination.k8s.io/v1
kind: Lease
metadata: {name: gpu-partitioner.nebuly.com, namespace: nebuly-nos}
spec: {holderIdentity: nos-gpu-partitioner-0, leaseDurationSeconds: 15, renewTime: "$now"}
YAML
    sleep 2
  done
}
nos_partitions() {
  kubectl create namespace nebuly-nos
  renews_its_lease >"$work/lease.log" 2>&1 &
  echo "$!" >"$work/lease.pid"
  await 10 kubectl get lease gpu-partitioner.nebuly.com --namespace nebuly-nos
}
nos_is_scaled_to_zero() {
  kill "$(<"$work/lease.pid")"
  rm "$work/lease.pid"
}
tidy() { [[ ! -e $work/lease.pid ]] || kill "$(<"$work/lease.pid")" 2>/dev/null || true; }

# --- the steps of docs/migration.md

# mode MODE ARGS...: `helm upgrade` with this mode, and the operator as the chart would start it.
mode() {
  local mode=$1
  shift
  stop operator
  helm upgrade gpu-sharing-operator "$project/charts/gpu-sharing-operator" --namespace "$namespace" --timeout 60s \
    --set replicas=0 --set "modes.partitioning=$mode"
  kubectl get configmap gpu-sharing-operator-config --namespace "$namespace" --output 'jsonpath={.data.config\.yaml}' >"$work/config.yaml"
  grep -E "partitioning-mode: \"?$mode\"?$" "$work/config.yaml"
  start_operator "$work/operator.kubeconfig" --config="$work/config.yaml" "${quick[@]}" "$@"
  await 30 is_ready
}

observes_while_nos_runs() {
  state_of_nodes >"$work/before"
  mode Observe --watch-list=false
  asks large 30
  await 30 logged 'gpu-partitioner runs .nos-gpu-partitioner-0 renews Lease nebuly-nos/gpu-partitioner.nebuly.com.*only observes'
  sleep 10
  state_of_nodes | diff "$work/before" -
  ! logged 'It would change'
}
says_what_it_would_do_once_nos_is_gone() {
  nos_is_scaled_to_zero
  await 60 logged 'It would change: node nos-0[12] gets .*1 x 30 GiB'
  await 10 event_of_pod large '; partitioning is only observed'
  state_of_nodes | diff "$work/before" -
}
event_of_pod() { kubectl get events --namespace default --field-selector "involvedObject.name=$1" --output 'jsonpath={range .items[*]}{.message}{"\n"}{end}' | grep -F "$2"; }
nothing_changes_at_the_hand_over() {
  kubectl delete pod large --grace-period=0 --force
  mode Enforce
  sleep 20
  state_of_nodes | diff "$work/before" -
}

pending_pods_run() {
  asks large 30
  asks small 5
  await 120 runs large
  await 120 runs small
  await 10 event_of_pod large 'planned on node nos-0'
  kubectl get configmap "${config[@]}" --output 'jsonpath={.data}' | grep -F gso-nos-0
  kubectl get configmap "${config[@]}" --output 'jsonpath={.data}' | grep -F nos-01-1700000000
}
falls_silent() {
  sleep 5
  state_of_nodes >"$work/settled"
  sleep 20
  state_of_nodes | diff "$work/settled" -
}

partitioned_node() { kubectl get nodes --output 'jsonpath={range .items[*]}{.metadata.name}{" "}{.metadata.annotations.gpusharing\.dev/partitioning}{"\n"}{end}' | awk 'NF > 1 { print $1; exit }' | grep .; }
releases_a_node() {
  local node
  node=$(partitioned_node)
  kubectl delete pods --namespace default large small --grace-period=0 --force
  kubectl label node "$node" nos.nebuly.com/gpu-partitioning-
  await 150 released "$node"  # Two minutes after its label is gone.
  echo "$node" >"$work/released"
}
released() {
  local left
  left=$(kubectl get node "$1" --output 'jsonpath={.metadata.labels.nvidia\.com/device-plugin\.config}{.metadata.annotations.gpusharing\.dev/partitioning}')
  [[ -z $left ]] || { echo "$left"; return 1; }
}

# The page "Getting started with MPS partitioning" as it stands there: the label of nos's first releases, and its pod. The
# other node has a free slice of that size, and is cordoned so that this one needs a new one.
pages_commands_work() {
  local node other
  node=$(<"$work/released")
  other=$(kubectl get nodes --output name | sed 's|^node/||' | grep -vx "$node")
  kubectl cordon "$other"
  kubectl label nodes "$node" "nos.nebuly.ai/gpu-partitioning=mps"
  kubectl apply -f - <<EOF
apiVersion: v1
kind: Pod
metadata:
  name: mps-partitioning-example
spec:
  hostIPC: true # (2)
  securityContext:
    runAsUser: 1000 # (3)
  containers:
    - name: sleepy
      image: "busybox:latest"
      command: ["sleep", "120"]
      resources:
        limits:
          nvidia.com/gpu-10gb: 1 # (1)
EOF
  await 120 runs mps-partitioning-example
  kubectl get pod mps-partitioning-example --output 'jsonpath={.spec.nodeName}' | grep -x "$node"
  kubectl get node "$node" --output 'jsonpath={.metadata.labels.nvidia\.com/device-plugin\.config}' | grep '^gso-'
  kubectl delete pod mps-partitioning-example --grace-period=0 --force
  kubectl uncordon "$other"
  kubectl label nodes "$node" "nos.nebuly.ai/gpu-partitioning-"
  await 60 released "$node"
}

# The last step: the key of nos that no label names any more is of no use to anybody.
unused_keys_of_nos_go_by_hand() {
  local node
  node=$(partitioned_node)
  kubectl patch configmap "${config[@]}" --type merge --patch "{\"data\":{\"$node-1700000000\":null}}"
  sleep 10
  state_of_nodes | grep -F gso-nos-0
  client_was_not_disturbed
}

# Back to nos: off first, then its gpu-partitioner again. Its label and keys stay as they are, for nos to change.
goes_back_to_nos() {
  state_of_nodes >"$work/before"
  mode Off
  renews_its_lease >"$work/lease.log" 2>&1 &
  echo "$!" >"$work/lease.pid"
  asks again 30
  await 30 logged 'partitioning is switched off'
  sleep 15
  state_of_nodes | diff "$work/before" -
  if kubectl get events --namespace default --field-selector involvedObject.name=again --output 'jsonpath={.items[*].reason}' | grep Slice; then return 1; fi
  client_was_not_disturbed
  kubectl delete pod again --namespace default --grace-period=0 --force
}

# --- rights

bound_roles() {
  kubectl get clusterroles,roles --all-namespaces --output json \
    --selector 'app.kubernetes.io/instance=gpu-sharing-operator,!rbac.authorization.k8s.io/aggregate-to-edit'
}
installs_without() {
  kubectl create namespace nebuly-nvidia --dry-run=client --output yaml | kubectl apply -f -
  # shellcheck disable=SC2119  # Its arguments are values.
  install_chart
  bound_roles >"$work/roles-off.json"
}
grows_by_what_is_used() {
  stop operator
  bound_roles >"$work/roles.json"
  "$here/used_rights.py" "$cluster/audit.log" "$work/roles.json" "$namespace" gpu-sharing-operator --beside "$work/roles-off.json"
}

admission_grows_by_one_label() {
  as patch node nos-01 --dry-run=server --type merge --patch '{"metadata":{"labels":{"nos.nebuly.com/gpu-partitioning":"mps"}}}'
  forbidden 'changes only its own labels' as patch node nos-01 --dry-run=server --type merge --patch '{"metadata":{"labels":{"nos.nebuly.com/other":"x"}}}'
  forbidden 'changes only its own labels' as patch node nos-01 --dry-run=server --type merge --patch '{"metadata":{"labels":{"nos.nebuly.ai/gpu-partitioning":"mps"}}}'
  [[ $(as auth can-i list configmaps --namespace nebuly-nvidia || true) == no ]]
  [[ $(as auth can-i patch configmaps/other --namespace nebuly-nvidia || true) == no ]]
  [[ $(as auth can-i delete pods --namespace nebuly-nvidia || true) == no ]]
}

check "the chart is installed, with partitioning off" installs_without
check "nos has partitioned two nodes" nos_is_there
check "a pod uses a slice" a_client_runs
check "nos's gpu-partitioner runs" nos_partitions
check "under Observe, and while nos renews its Lease, nothing changes" observes_while_nos_runs
check "once nos is gone it says what it would do, and does nothing" says_what_it_would_do_once_nos_is_gone
check "nothing changes at the hand-over" nothing_changes_at_the_hand_over
check "pods that no free slice serves become running" pending_pods_run
check "the pod that ran was not disturbed" client_was_not_disturbed
check "it falls silent" falls_silent
check "a key of nos that no label names is removed by hand, and nothing changes" unused_keys_of_nos_go_by_hand
check "a node that loses the label is released" releases_a_node
check "the commands of nos's page work as they stand there" pages_commands_work
check "its rights grow by what is used, and nothing was refused" grows_by_what_is_used
check "admission grows by one label" admission_grows_by_one_label
check "back to nos: switched off it leaves labels, keys and pods as they are" goes_back_to_nos
close_checks
