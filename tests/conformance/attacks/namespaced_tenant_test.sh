#!/usr/bin/env bash
# A tenant with the ClusterRole `edit` in one namespace, while a rollout is under way: DaemonSets that look like a device plugin, with a
# forged owner, on their way out, in numbers and of a megabyte each; pods with KAI's marks; pods of a megabyte.
#
#   namespaced_tenant_test.sh CLUSTER_DIR BUILD_DIR     a running control plane without a fleet, a built tree
#
# Prints one line for each check and closes with "N passed, N failed".
# shellcheck source=tests/conformance/attacks/attack.sh
source "$(dirname "${BASH_SOURCE[0]}")/attack.sh" "$@"

tenant() { kubectl --as tenant "$@" --namespace a-team; }

a_tenant_has_a_namespace() {
  kubectl create namespace a-team
  await 30 kubectl get serviceaccount default --namespace a-team
  kubectl create rolebinding tenant --clusterrole edit --user tenant --namespace a-team
  await 20 tenant auth can-i create daemonsets
  if kubectl --as tenant auth can-i create daemonsets --namespace gpu-operator; then return 1; fi
}

# A DaemonSet before the device plugin's by namespace and name, which claims that the ClusterPolicy owns it, and its ConfigMap.
forged() {
  cat <<YAML
apiVersion: apps/v1
kind: DaemonSet
metadata:
  name: $1
  finalizers: [$2]
  ownerReferences: [{apiVersion: nvidia.com/v1, kind: ClusterPolicy, name: cluster-policy, uid: 00000000-0000-0000-0000-000000000000, controller: true}]
spec:
  selector: {matchLabels: {app: $1}}
  template:
    metadata: {labels: {app: $1}}
    spec:
      tolerations: [{operator: Exists}]
      nodeSelector: {nowhere: x}
      containers:
      - {name: nvidia-device-plugin, image: "nvcr.io/nvidia/k8s-device-plugin:v0.20.0", volumeMounts: [{name: config, mountPath: /config}]}
      - name: config-manager
        image: nvcr.io/nvidia/k8s-device-plugin:v0.20.0
        env: [{name: NODE_LABEL, value: nvidia.com/device-plugin.config}, {name: DEFAULT_CONFIG, value: any}, {name: CONFIG_FILE_SRCDIR, value: /available-configs}]
        volumeMounts: [{name: mine, mountPath: /available-configs}]
      - {name: mps-control-daemon-ctr, image: "nvcr.io/nvidia/k8s-device-plugin:v0.20.0"}
      - {name: gpu-feature-discovery-ctr, image: "nvcr.io/nvidia/k8s-device-plugin:v0.20.0"}
      volumes: [{name: config, emptyDir: {}}, {name: mine, configMap: {name: mine}}]
YAML
}
forged_daemonsets_steer_nothing() {
  set_replicas any 5
  await 90 half_rolled 5
  tenant create configmap mine --from-literal=any="$(printf 'version: v1\nsharing:\n  mps:\n    resources:\n    - name: nvidia.com/gpu\n      replicas: 9\n')"
  forged plain example.com/kept | sed '/ownerReferences/d' | tenant create -f -
  # The garbage collector deletes what has a forged owner, and the finalizer keeps it for as long as the tenant likes.
  forged evil example.com/kept | tenant create -f -
  is_carried_through 5 11
  [[ -z $(kubectl get nodes --selector nvidia.com/gpu.replicas=9 --output name) ]]
  running operator
}
it_is_a_finding_only() {
  await 60 reports_a_foreign_plugin
  await 60 up_to_date 12
}
reports_a_foreign_plugin() {
  "$build/controller/gpu-sharing-operator" audit --kubeconfig "$cluster/admin.kubeconfig" --namespace "$namespace" >"$work/audit" 2>&1 || true
  grep ForeignDevicePlugin "$work/audit"
}

# huge KIND COUNT: objects of about 1.2 MB, as large as etcd takes them.
huge() {
  python3 - "$1" "$2" <<'PY'
import json, sys
kind, count = sys.argv[1], int(sys.argv[2])
env = [{"name": "E%d" % i, "value": "x" * 1000} for i in range(1150)]
containers = [{"name": "nvidia-device-plugin", "image": "x", "env": env}]
for i in range(count):
    meta = {"name": "huge-%d" % i, "labels": {"app": "huge"}}
    pod = {"nodeSelector": {"nowhere": "x"}, "containers": containers}
    if kind == "DaemonSet":
        spec = {"selector": {"matchLabels": {"app": "huge"}}, "template": {"metadata": {"labels": {"app": "huge"}}, "spec": pod}}
        print(json.dumps({"apiVersion": "apps/v1", "kind": kind, "metadata": meta, "spec": spec}))
    else:
        meta |= {"annotations": {"gpu-fraction": "0.5", "gpu-note": "<" * 200000}}
        print(json.dumps({"apiVersion": "v1", "kind": kind, "metadata": meta, "spec": pod}))
PY
}
# The emulator's own use of the operator is over by now: what is added comes from the tenant.
large_objects_fill_nothing() {
  local before
  before=$(peak)
  huge DaemonSet 40 | tenant create -f - >/dev/null
  huge Pod 20 | tenant create -f - >/dev/null
  set_replicas any 6
  is_carried_through 6 11
  stop operator
  start_operator "$work/operator.kubeconfig" --operand-namespaces=gpu-operator  # It lists all of them again.
  await 60 is_ready
  await 60 up_to_date 12
  echo "peak memory: $before MiB before, $(peak) MiB after"
  (($(peak) <= before + 32))
}

# On each node a pod that asks for no GPU, and has the marks of one of KAI's.
marked_pods_block_nothing() {
  local node
  for node in $(kubectl get nodes --output 'jsonpath={.items[*].metadata.name}'); do
    cat <<JSON
{"apiVersion":"v1","kind":"Pod","metadata":{"name":"mark-$node","labels":{"runai-gpu-group":"g-$node"},"annotations":{"gpu-fraction":"0.5"}},
 "spec":{"nodeName":"$node","terminationGracePeriodSeconds":0,"containers":[{"name":"c","image":"registry.k8s.io/pause:3.9"}]}}
JSON
  done | tenant create -f -
  set_replicas any 7
  is_carried_through 7 11
  [[ -z $(kubectl get nodes --field-selector spec.unschedulable=true --output name) ]]
}

# On one node more pods that use GPUs than the operator keeps, and one that wants more GPUs than there are: whether the node is free is not known.
crowd() {
  python3 - "$1" <<'PY'
import json, sys
for i in range(81):
    meta = {"name": "crowd-%d" % i, "labels": {"app": "crowd"}, "annotations": {"gpu-%d" % n: "x" * 245 for n in range(60)}}
    container = {"name": "c", "image": "x", "env": [{"name": "NVIDIA_VISIBLE_DEVICES", "value": "all"}]}
    if i == 80:
        container["resources"] = {"limits": {"nvidia.com/gpu": "9200P"}}
    spec = {"nodeName": sys.argv[1], "terminationGracePeriodSeconds": 0, "containers": [container]}
    print(json.dumps({"apiVersion": "v1", "kind": "Pod", "metadata": meta, "spec": spec}))
PY
}
a_crowded_node_holds_up_no_other() {
  local node
  node=$(kubectl get nodes --selector nvidia.com/gpu.replicas=7 --output 'jsonpath={.items[0].metadata.name}')
  crowd "$node" | tenant create -f - >/dev/null
  set_replicas any 3
  await 240 replicas_are 3 10
  await 60 says_workloads_unknown
  tenant delete pods --selector app=crowd --grace-period=0 --force --wait=false >/dev/null
  is_carried_through 3 11
}
says_workloads_unknown() { kubectl get sharingrollouts --output yaml | grep WorkloadsUnknown; }

# What a tenant names must not reach a terminal or a log as it is.
names_of_tenants_are_printed_as_text() {
  tenant create -f - <<<'{"apiVersion":"v1","kind":"Pod","metadata":{"name":"painted","annotations":{"gpu-fraction":"0.5\u001b[2J\u009b31m\nforged line\u202e"}},
    "spec":{"schedulerName":"kai-scheduler","containers":[{"name":"c","image":"x"}]}}'
  "$build/controller/gpu-sharing-operator" explain pod painted --pod-namespace a-team --kubeconfig "$cluster/admin.kubeconfig" --namespace "$namespace" >"$work/explained" 2>&1 || true
  cat "$work/operator.log" "$work/explained" >"$work/printed"
  if LC_ALL=C grep -P '\x1b|\xc2\x9b|\xe2\x80\xae|^forged line' "$work/printed"; then return 1; fi
}

tidy() { kubectl get daemonsets --namespace a-team --output name 2>/dev/null | xargs -r -I{} "$cluster/bin/kubectl" --kubeconfig "$cluster/admin.kubeconfig" patch {} --namespace a-team --type merge --patch '{"metadata":{"finalizers":null}}' >/dev/null || true; }

check "the chart is installed" install_chart
check "a tenant has one namespace" a_tenant_has_a_namespace
check "a fleet is adopted" a_fleet_is_adopted
check "DaemonSets of the tenant that look like the device plugin steer nothing" forged_daemonsets_steer_nothing
check "they are a finding, and nothing else" it_is_a_finding_only
check "objects of a megabyte fill no memory, at no start either" large_objects_fill_nothing
check "pods with KAI's marks block and cordon nothing" marked_pods_block_nothing
check "pods that crowd one node, or cannot be counted, hold up no other node" a_crowded_node_holds_up_no_other
check "what a tenant writes is printed as text" names_of_tenants_are_printed_as_text
judge
close_checks
