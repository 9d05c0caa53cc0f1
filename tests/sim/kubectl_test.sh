#!/usr/bin/env bash
# What a user types with kubectl, against the simulated API server over loopback HTTP, or against a real one: the same
# commands, the same answers.
#
#   kubectl_test.sh --simulated SIMULATOR      the program gso-sim, which is started for this, without nodes
#   kubectl_test.sh --kubeconfig FILE          a control plane without kubelets, with its controllers; objects stay there
#
# kubectl is $GSODEV_KUBECTL, else from PATH; exit code 77 when there is none. Closes with "N passed, N failed".
set -euo pipefail

usage() {
  sed -n '2,/^set /{/^set /d;s/^# \{0,1\}//;p}' "${BASH_SOURCE[0]}" >&2
  exit 2
}
(($# == 2)) || usage
kubectl=${GSODEV_KUBECTL:-$(command -v kubectl || true)}
if [[ -z $kubectl ]]; then
  echo "skipped: no kubectl; ./dev test kubectl builds one, GSODEV_KUBECTL names another"
  exit 77
fi

work=$(mktemp -d)
server_pid=
finish() {
  if [[ -n $server_pid ]]; then kill "$server_pid" 2>/dev/null || true; fi
  rm -rf "$work"
}
trap finish EXIT

export KUBECONFIG=$work/kubeconfig HOME=$work
unset KUBE_EDITOR VISUAL
case $1 in
  --simulated)
    "$2" --nodes 0 --kubeconfig "$KUBECONFIG" >"$work/url" &
    server_pid=$!
    for _ in $(seq 200); do
      if [[ -s $work/url ]]; then break; fi
      sleep 0.05
    done
    ;;
  --kubeconfig) cp "$2" "$KUBECONFIG" ;;
  *) usage ;;
esac

passed=0 failed=0
# expect DESCRIPTION PATTERN COMMAND…: the command succeeds and its output matches the extended regular expression.
expect() {
  local what=$1 pattern=$2 out code=0
  shift 2
  out=$("$@" 2>&1) || code=$?
  if ((code == 0)) && grep -Eq -- "$pattern" <<<"$out"; then
    echo "ok: $what"
    passed=$((passed + 1))
  else
    printf 'FAILED: %s\n  %s\n  exit code %s, expected output matching: %s\n%s\n' "$what" "$*" "$code" "$pattern" "$out"
    failed=$((failed + 1))
  fi
}
# expect_failure DESCRIPTION PATTERN COMMAND…: the command fails and says so.
expect_failure() {
  local what=$1 pattern=$2 out
  shift 2
  if ! out=$("$@" 2>&1) && grep -Eq -- "$pattern" <<<"$out"; then
    echo "ok: $what"
    passed=$((passed + 1))
  else
    printf 'FAILED: %s\n  %s\n  expected to fail with: %s\n%s\n' "$what" "$*" "$pattern" "$out"
    failed=$((failed + 1))
  fi
}
k() { "$kubectl" "$@"; }

cat >"$work/objects.yaml" <<'YAML'
apiVersion: v1
kind: Namespace
metadata: {name: gpu-operator}
---
apiVersion: v1
kind: ConfigMap
metadata: {name: mps-config, namespace: gpu-operator}
data:
  any: |
    version: v1
    replicas: 4
---
apiVersion: v1
kind: Node
metadata: {name: gpu-1, labels: {nvidia.com/gpu.present: "true"}}
status:
  capacity: {cpu: "8", nvidia.com/gpu: "2"}
  conditions: [{type: Ready, status: "True", lastHeartbeatTime: "2026-01-01T00:00:00Z", lastTransitionTime: "2026-01-01T00:00:00Z"}]
---
apiVersion: apps/v1
kind: DaemonSet
metadata: {name: plugin, namespace: gpu-operator}
spec:
  selector: {matchLabels: {app: plugin}}
  template:
    metadata: {labels: {app: plugin}}
    spec:
      nodeSelector: {no-node: has-this}  # A real controller makes no pods of it.
      containers: [{name: plugin, image: "example.com/plugin:1"}]
YAML
cat >"$work/crd.yaml" <<'YAML'
apiVersion: apiextensions.k8s.io/v1
kind: CustomResourceDefinition
metadata: {name: widgets.example.com}
spec:
  group: example.com
  scope: Cluster
  names: {plural: widgets, kind: Widget, shortNames: [wd]}
  versions:
  - name: v1
    served: true
    storage: true
    subresources: {status: {}}
    additionalPrinterColumns: [{name: Size, type: integer, jsonPath: .spec.size}]
    schema:
      openAPIV3Schema:
        type: object
        properties:
          spec:
            type: object
            properties:
              size: {type: integer, minimum: 1, default: 3, description: How large it is.}
          status: {type: object, x-kubernetes-preserve-unknown-fields: true}
YAML

expect "version" "Server Version: v${GSODEV_KUBERNETES:-1.36}\." k version
expect "api-resources" "daemonsets +ds +apps/v1 +true +DaemonSet" k api-resources
expect "apply creates" "daemonset.apps/plugin created" k apply -f "$work/objects.yaml"
expect "apply again changes nothing" "configmap/mps-config unchanged" k apply -f "$work/objects.yaml"
expect "get nodes" "gpu-1 +Ready +<none> +" k get nodes
expect "get -o wide" "KERNEL-VERSION" k get nodes -o wide
expect "get by label" "gpu-1" k get nodes -l nvidia.com/gpu.present=true -o name
expect "get two kinds over all namespaces" "configmap/mps-config" k get ds,cm -A
expect "get -o jsonpath" "^2$" k get node gpu-1 -o "jsonpath={.status.allocatable.nvidia\.com/gpu}"
expect "describe a node" "nvidia.com/gpu: +2" k describe node gpu-1
expect "describe a DaemonSet" "Image: +example.com/plugin:1" k describe ds -n gpu-operator plugin
expect "describe a ConfigMap" "replicas: 4" k describe cm -n gpu-operator mps-config
expect "edit" "configmap/mps-config edited" env EDITOR="sed -i s/replicas:.4/replicas:\ 8/" "$kubectl" edit cm -n gpu-operator mps-config
expect "the edit is there" "replicas: 8" k get cm -n gpu-operator mps-config -o yaml
expect "merge patch" "node/gpu-1 patched" k patch node gpu-1 --type merge -p '{"metadata":{"labels":{"a":"1"}}}'
expect "JSON patch" "node/gpu-1 patched" k patch node gpu-1 --type json -p '[{"op":"add","path":"/metadata/labels/b","value":"1"}]'
expect "strategic merge patch" "patched" k patch ds -n gpu-operator plugin -p '{"spec":{"template":{"spec":{"containers":[{"name":"plugin","env":[{"name":"A","value":"1"}]}]}}}}'
expect "the strategic patch kept the image" "^example.com/plugin:1 A$" k get ds -n gpu-operator plugin -o "jsonpath={.spec.template.spec.containers[0].image} {.spec.template.spec.containers[0].env[0].name}"
expect "patch of status" "node/gpu-1 patched" k patch node gpu-1 --subresource status --type merge -p '{"status":{"capacity":{"nvidia.com/gpu":"8"}}}'
expect "label" "node/gpu-1 labeled" k label node gpu-1 nvidia.com/device-plugin.config=ts
expect "label --overwrite" "node/gpu-1 labeled" k label node gpu-1 --overwrite nvidia.com/device-plugin.config=other
expect_failure "a label that is there is not replaced" "already has a value" k label node gpu-1 nvidia.com/device-plugin.config=ts
expect_failure "a label value that is too long" "must be no more than 63" k label node gpu-1 "long=$(printf 'x%.0s' {1..64})"
expect "unlabel" "node/gpu-1 unlabeled" k label node gpu-1 nvidia.com/device-plugin.config-
expect "annotate" "annotated" k annotate cm -n gpu-operator mps-config gpusharing.dev/paused=true
expect "cordon" "cordoned" k cordon gpu-1
expect "cordoned is shown" "Ready,SchedulingDisabled" k get node gpu-1
expect "uncordon" "uncordoned" k uncordon gpu-1
expect "server-side apply" "serverside-applied" k apply --server-side --force-conflicts -f "$work/objects.yaml"
expect_failure "server-side apply conflicts" "Apply failed with 1 conflict" \
  bash -c "sed 's/replicas: 4/replicas: 16/' '$work/objects.yaml' | '$kubectl' apply --server-side --field-manager=other -f -"
expect "diff" "" k diff -f "$work/objects.yaml"
expect "rollout restart" "daemonset.apps/plugin restarted" k rollout restart ds/plugin -n gpu-operator
generation=$(k get ds -n gpu-operator plugin -o 'jsonpath={.metadata.generation}')
# Nobody does it on the simulated server; on a real one its controller has, or says the same again.
k patch ds -n gpu-operator plugin --subresource status --type merge \
  -p "{\"status\":{\"observedGeneration\":$generation,\"desiredNumberScheduled\":0,\"updatedNumberScheduled\":0,\"numberAvailable\":0,\"numberReady\":0,\"currentNumberScheduled\":0,\"numberMisscheduled\":0}}" >/dev/null
expect "rollout status" "successfully rolled out" k rollout status ds/plugin -n gpu-operator --timeout=20s
expect "wait for a condition" "condition met" k wait --for=condition=Ready node/gpu-1 --timeout=20s
k wait --for=jsonpath='{.metadata.labels.late}'=1 node/gpu-1 --timeout=20s >"$work/waited" &
waiter=$!
k label node gpu-1 late=1 >/dev/null
wait "$waiter" || true
expect "wait for a field" "condition met" cat "$work/waited"
uid=$(k get node gpu-1 -o 'jsonpath={.metadata.uid}')  # `describe` finds events by the uid of their object.
k create -f - >/dev/null <<YAML
apiVersion: events.k8s.io/v1
kind: Event
metadata: {name: gpu-1.1, namespace: default}
eventTime: "2026-01-01T00:00:00.000000Z"
regarding: {kind: Node, name: gpu-1, uid: "$uid", apiVersion: v1}
reason: RolloutStarted
action: Roll
note: taking the node out
type: Normal
reportingController: gpusharing.dev/operator
reportingInstance: one
YAML
expect "get events" "Normal +RolloutStarted +node/gpu-1 +taking the node out" k get events
expect "events --for" "RolloutStarted" k events --for node/gpu-1
expect "describe shows events" "RolloutStarted" k describe node gpu-1
expect "explain" "updateStrategy.*<DaemonSetUpdateStrategy>" k explain ds.spec.updateStrategy
expect "apply a CRD" "created" k apply -f "$work/crd.yaml"
expect "wait for the CRD" "condition met" k wait --for=condition=Established crd/widgets.example.com --timeout=20s
expect "apply a custom resource" "widget.example.com/w created" k apply -f - <<<'{"apiVersion":"example.com/v1","kind":"Widget","metadata":{"name":"w"},"spec":{}}'
expect "get it by its short name, with its default" "^w +3" k get wd
expect_failure "a custom resource is checked" "should be greater than or equal to 1" k patch wd w --type merge -p '{"spec":{"size":0}}'
expect "explain a custom resource" "How large it is" k explain wd.spec.size
# What typed clients send is protobuf.
expect "create a namespace" "namespace/made created" k create ns made
expect_failure "a namespace that is there" "namespaces \"made\" already exists" k create ns made
expect "create a ConfigMap" "configmap/made created" k create cm -n made made --from-literal=any="replicas: 4"
expect "it has its data and no managed field too many" '^replicas: 4 [{]"f:data":[{]".":[{][}],"f:any":[{][}][}][}]$' \
  k get cm -n made made -o 'jsonpath={.data.any} {.metadata.managedFields[0].fieldsV1}' --show-managed-fields
expect "create a Secret" "secret/made created" k create secret generic -n made made --from-literal=password=secret
expect "its bytes are those" "^c2VjcmV0$" k get secret -n made made -o 'jsonpath={.data.password}'
expect "create a ServiceAccount" "serviceaccount/made created" k create sa -n made made
expect "create a Role" "role.rbac.authorization.k8s.io/made created" k create role -n made made --verb=get,list --resource=pods
expect "its rule" '^\["get","list"\] \["pods"\]$' k get role -n made made -o 'jsonpath={.rules[0].verbs} {.rules[0].resources}'
expect "create a Deployment" "deployment.apps/made created" k create deployment -n made made --image=example.com/app:1 --replicas=3 --port=80
expect "its fields" "^3 example.com/app:1 80 made$" k get deployment -n made made \
  -o 'jsonpath={.spec.replicas} {.spec.template.spec.containers[0].image} {.spec.template.spec.containers[0].ports[0].containerPort} {.spec.selector.matchLabels.app}'
expect "create a disruption budget" "poddisruptionbudget.policy/made created" k create pdb -n made made --selector=app=made --min-available=50%
expect "a percentage stays one" "^50%$" k get pdb -n made made -o 'jsonpath={.spec.minAvailable}'
expect "create a priority class" "priorityclass.scheduling.k8s.io/made created" k create priorityclass made --value=-5
expect "a negative number stays one" "^-5$" k get priorityclass made -o 'jsonpath={.value}'
expect "ask for a right" "^yes$" k auth can-i get pods
expect "apply over what was created" "namespace/made configured" k apply -f - <<<'{"apiVersion":"v1","kind":"Namespace","metadata":{"name":"made","labels":{"a":"1"}}}'
expect "edit what was created" "configmap/made edited" env EDITOR="sed -i s/replicas:.4/replicas:\ 8/" "$kubectl" edit cm -n made made
k run -n made one --image=example.com/app:1 --overrides='{"spec":{"nodeName":"gpu-1","serviceAccountName":"made"}}' >"$work/run"
expect "run a pod" "pod/one created" cat "$work/run"
expect "drain evicts it" "pod/one evicted" k drain gpu-1 --force --grace-period=0 --timeout=20s --ignore-daemonsets
expect "delete --dry-run" "deleted \(server dry run\)" k delete node gpu-1 --dry-run=server
expect "delete" "node \"gpu-1\" deleted" k delete node gpu-1
expect_failure "gone" "nodes \"gpu-1\" not found" k get node gpu-1
expect "delete a namespace and wait" "namespace \"gpu-operator\" deleted" k delete ns gpu-operator --timeout=30s
expect "its content is gone" "No resources found" k get cm,ds -A --field-selector metadata.namespace=gpu-operator
expect_failure "a kind that does not exist" "doesn't have a resource type" k get gadgets

printf '%d passed, %d failed\n' "$passed" "$failed"
((failed == 0))
