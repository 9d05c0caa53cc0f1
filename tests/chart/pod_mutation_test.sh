#!/usr/bin/env bash
# What the chart's MutatingAdmissionPolicies make of pods, on a real API server of Kubernetes 1.36 or later: installed by
# helm, each case of pod_mutation/cases.yaml, pods of a Deployment, uninstalled while pods are created.
#
#   pod_mutation_test.sh CLUSTER_DIR     a running cluster without a release
#
# Prints one line for each check and closes with "N passed, N failed"; exit code 77 where the server is older.
# shellcheck source=tests/conformance/beside_cluster.sh
source "$(dirname "${BASH_SOURCE[0]}")/../conformance/beside_cluster.sh" "$@"

chart=$project/charts/gpu-sharing-operator release=gpu-sharing-operator
# shellcheck disable=SC2154  # $namespace and $work come from the sourced scripts.
switched_on=(--set podMutation.enabled=true --set podMutation.kaiRuntimeClassName=nvidia --set fixes.mpsSignal=true)
policies=mutatingadmissionpolicies,mutatingadmissionpolicybindings,validatingadmissionpolicies,validatingadmissionpolicybindings

if ! kubectl get mutatingadmissionpolicies >/dev/null 2>&1; then
  echo "pod_mutation_test.sh: this API server has no MutatingAdmissionPolicy (admissionregistration.k8s.io/v1)"
  exit 77
fi

tidy() {
  helm uninstall "$release" --namespace "$namespace" --no-hooks --ignore-not-found --timeout 60s || true
  kubectl delete crd sharingpolicies.gpusharing.dev sharingrollouts.gpusharing.dev --ignore-not-found || true
  kubectl delete namespace plain sharing restricted --ignore-not-found --wait=false || true
}

render() { helm template "$release" "$chart" --namespace "$namespace" "$@" --show-only templates/podmutation.yaml; }
upgrade() {
  helm upgrade --install "$release" "$chart" --namespace "$namespace" --create-namespace --timeout 60s --set replicas=0 "$@"
}

has_accounts() { local each; for each in "$@"; do kubectl get serviceaccount default --namespace "$each" || return 1; done; }
prepared() {
  local each
  for each in gpu-operator plain sharing restricted; do
    kubectl create namespace "$each" --dry-run=client -o yaml | kubectl apply -f -
  done
  kubectl label namespace sharing restricted gpusharing.dev/mps-client=true
  kubectl label namespace restricted pod-security.kubernetes.io/enforce=restricted
  kubectl create -f - <<<'{"apiVersion":"node.k8s.io/v1","kind":"RuntimeClass","metadata":{"name":"nvidia"},"handler":"nvidia"}'
  await 30 has_accounts gpu-operator plain sharing restricted kube-public
}

nothing_by_default() {
  upgrade
  [[ -z $(kubectl get mutatingadmissionpolicies,mutatingadmissionpolicybindings --output name) ]]
  if kubectl get validatingadmissionpolicies --output name | grep mps; then return 1; fi
}

older_servers_are_refused() {
  local answer
  if answer=$(render --kube-version 1.35.9 --set podMutation.enabled=true 2>&1); then return 1; fi
  grep 'which Kubernetes has from 1.36 on; this cluster is v1.35.9' <<<"$answer"
  if answer=$(render --kube-version 1.35.9 --set fixes.mpsSignal=true 2>&1); then return 1; fi
  grep 'fixes.mpsSignal' <<<"$answer"
  # Without them the chart installs there as before.
  helm template "$release" "$chart" --namespace "$namespace" --kube-version 1.35.9 >/dev/null
}

# refused VALUE=TEXT: by the schema, with the value's name.
refused() {
  local answer
  if answer=$(render --set podMutation.enabled=true --set-string "$1" 2>&1); then echo "accepted: $1"; return 1; fi
  grep -F "${1%%=*}" <<<"${answer//\//.}" || { echo "$answer"; return 1; }
}
wrong_values_are_refused() {
  refused podMutation.pipeDirectory=tmp/nvidia-mps
  refused podMutation.pipeDirectory=/tmp/../etc
  refused "podMutation.pipeDirectory=/tmp/a'+x"
  refused podMutation.nosUser=-1
  refused podMutation.kaiRuntimeClassName=Not_Valid
}

schemas_hold() {
  kubectl get --raw /openapi/v2 | "$project/tests/chart/openapi_schemas.py" "$work/schemas"
  render "${switched_on[@]}" | "$cluster/bin/kubeconform" -strict -summary -schema-location "$work/schemas/{{ .ResourceKind }}{{ .KindSuffix }}.json"
}

switched_on() {
  upgrade "${switched_on[@]}"
  # A policy is in force a moment after it was written, each by itself.
  await 20 corrects_signals
  await 20 connects sharing
  await 20 warns
}
create_pod() { kubectl create --dry-run=server --output json --namespace "$1" -f - <<<"{\"apiVersion\":\"v1\",\"kind\":\"Pod\",\"metadata\":{\"name\":\"p\",\"annotations\":{$2},\"ownerReferences\":[$3]},\"spec\":{\"containers\":[$4]}}"; }
connects() { create_pod "$1" '"gpu-fraction":"0.5"' '' '{"name":"c","image":"x"}' | grep -F CUDA_MPS_PIPE_DIRECTORY; }
corrects_signals() {
  create_pod gpu-operator '' '{"apiVersion":"apps/v1","kind":"DaemonSet","name":"d","uid":"0b0d0d6c-1d4c-4ce8-a0a8-111111111111","controller":true}' \
    '{"name":"mps-control-daemon-ctr","image":"x","command":["mps-control-daemon"]},{"name":"s","image":"x","env":[{"name":"PROCESS_TO_SIGNAL","value":"/usr/bin/mps-control-daemon"}]}' |
    grep -F '"value": "mps-control-daemon"'
}
warns() { create_pod plain '"gpusharing.dev/mps-client":"yes"' '' '{"name":"c","image":"x"}' 2>&1 | grep -F 'must be "true" or "false"'; }

cases_hold() { "$project/tests/chart/pod_mutation/judge.py" "$cluster" "$project/tests/chart/pod_mutation/cases.yaml"; }

pods_of_a_deployment_are_clients() {
  kubectl create --namespace sharing -f - <<'YAML'
apiVersion: apps/v1
kind: Deployment
metadata: {name: inference}
spec:
  replicas: 2
  selector: {matchLabels: {app: inference}}
  template:
    metadata: {labels: {app: inference}, annotations: {gpu-fraction: "0.5"}}
    spec: {containers: [{name: c, image: x}]}
YAML
  await 30 two_clients
  # The Deployment is as it was written: GitOps sees no difference.
  [[ -z $(kubectl get deployment inference --namespace sharing --output 'jsonpath={.spec.template.spec.volumes}') ]]
  kubectl delete deployment inference --namespace sharing
}
two_clients() {
  local directories
  directories=$(kubectl get pods --namespace sharing --selector app=inference --output 'jsonpath={.items[*].spec.volumes[*].hostPath.path}')
  [[ $directories == '/tmp/nvidia-mps /tmp/nvidia-mps' ]]
}

# Pod Security judges what the pod has become: asking is no way around it.
pod_security_still_holds() {
  local answer
  if answer=$(create_pod restricted '"gpu-fraction":"0.5"' '' '{"name":"c","image":"x"}' 2>&1); then return 1; fi
  grep 'violates PodSecurity' <<<"$answer"
  grep hostPath <<<"$answer"
}

other_directory_by_value() {
  upgrade "${switched_on[@]}" --set podMutation.pipeDirectory=/run/nvidia-mps --set podMutation.hostIPC=false --set podMutation.nodeSelector=false
  await 20 connects_to /run/nvidia-mps
  local pod
  pod=$(create_pod sharing '"gpu-fraction":"0.5"' '' '{"name":"c","image":"x"}')
  if grep -E 'hostIPC|nvidia.mps/enabled|mps-pipe-directory' <<<"$pod"; then return 1; fi
}
connects_to() { create_pod sharing '"gpu-fraction":"0.5"' '' '{"name":"c","image":"x"}' | grep -F "\"path\": \"$1\""; }

# Pods are created all the time; none is refused, before, while and after the policies go.
uninstalled_under_load() {
  local i
  (for ((i = 0; i < 20; i++)); do connects sharing >/dev/null || create_pod sharing '' '' '{"name":"c","image":"x"}' >/dev/null || echo "refused: $i"; done) >"$work/refusals" 2>&1 &
  helm uninstall "$release" --namespace "$namespace" --no-hooks --wait --timeout 60s
  wait $!
  if grep refused "$work/refusals"; then return 1; fi
  local left
  left=$(kubectl get "$policies" --output name | grep "$release") || return 0
  echo "left: $left"
  return 1
}

check "namespaces to create pods in" prepared
check "by default nothing is installed that touches pods" nothing_by_default
check "Kubernetes before 1.36 is refused, with the value's name" older_servers_are_refused
check "wrong values are refused by name" wrong_values_are_refused
check "every object follows the server's own schema" schemas_hold
check "switched on by an upgrade, each policy is in force" switched_on
check "every pod of the cases becomes what it should, and nothing else" cases_hold
check "pods of a Deployment become clients, the Deployment stays as it is" pods_of_a_deployment_are_clients
check "a restricted namespace refuses what the pod would become" pod_security_still_holds
check "another directory, no host IPC and no selector, by value" other_directory_by_value
check "uninstalled while pods are created, none is refused and no policy is left" uninstalled_under_load
close_checks
