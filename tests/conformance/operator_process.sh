#!/usr/bin/env bash
# Sourced after checks.sh: the operator as a local process under the chart's ServiceAccount, beside a fleet.
# Needs $project, $cluster (a running control plane's folder) and $build (a built tree); sets $namespace and $probes.
# shellcheck disable=SC2154  # $work, $project, $cluster and $build are the sourcing script's.

namespace=gpu-sharing-operator
# free_ports COUNT: different ports that are free now, and below the range that the kernel gives to clients.
free_ports() {
  python3 - "$1" <<'PY'
import random, socket, sys
found = {}
while len(found) < int(sys.argv[1]):
    port = random.randrange(20000, 32000)
    held = socket.socket()
    try:
        held.bind(("127.0.0.1", port))
    except OSError:
        continue
    found[port] = held
print(*found)
PY
}
probes=$(free_ports 1)

kubectl() { "$cluster/bin/kubectl" --kubeconfig "$cluster/admin.kubeconfig" --request-timeout=20s "$@"; }
helm() {
  HELM_CACHE_HOME=$work/helm/cache HELM_CONFIG_HOME=$work/helm/config HELM_DATA_HOME=$work/helm/data \
    "$cluster/bin/helm" --kubeconfig "$cluster/admin.kubeconfig" "$@" 2> >(grep -v 'found symbolic link in path' >&2)
}

# kubeconfig_for USER-YAML [SERVER [CA [CONTEXT [TLS-SERVER-NAME]]]]: to standard output.
kubeconfig_for() {
  local server
  server=$(sed -n 's/^ *server: //p' "$cluster/admin.kubeconfig")
  cat <<YAML
apiVersion: v1
kind: Config
clusters: [{name: test, cluster: {server: "${2:-$server}", certificate-authority: "${3:-$cluster/pki/ca.crt}", tls-server-name: "${5:-}"}}]
users: [{name: operator, user: {$1}}]
contexts: [{name: test, context: {cluster: test, user: operator}}]
current-context: ${4:-test}
YAML
}

# install_chart ARGS...: CRDs, ServiceAccount and roles; no replica, since there is no kubelet. Then a kubeconfig of the
# ServiceAccount, whose token lies in a file as in a pod.
install_chart() {
  kubectl create namespace gpu-operator --dry-run=client -o yaml | kubectl apply -f -
  helm upgrade --install gpu-sharing-operator "$project/charts/gpu-sharing-operator" --namespace "$namespace" --create-namespace \
    --timeout 60s --set replicas=0 "$@"
  new_token first
  kubeconfig_for "tokenFile: $work/token" >"$work/operator.kubeconfig"
}

# A token that dies with the Secret `token-$1`: deleting it is how a test lets a token expire.
new_token() {
  kubectl create secret generic "token-$1" --namespace "$namespace"
  kubectl create token gpu-sharing-operator --namespace "$namespace" --duration 2h \
    --bound-object-kind Secret --bound-object-name "token-$1" >"$work/token.new"
  mv "$work/token.new" "$work/token"
}

# start_operator [KUBECONFIG [ARGS...]]: of $build, or the program $operator_program.
start_operator() {
  local kubeconfig=${1:-$work/operator.kubeconfig}
  shift || true
  start operator "${operator_program:-$build/controller/gpu-sharing-operator}" run --kubeconfig "$kubeconfig" --namespace "$namespace" \
    --log-format=text --metrics-bind-address="127.0.0.1:$probes" --health-probe-bind-address="127.0.0.1:$probes" --settle-period=1s --clock-difference=0s --node-status-lag=1s "$@"
}

readyz_says() { readyz | grep -E -- "$1"; }
readyz() { curl --silent --max-time 5 "http://127.0.0.1:$probes/readyz"; }
is_ready() { [[ $(curl --silent --max-time 5 --output "$work/readyz" --write-out '%{http_code}' "http://127.0.0.1:$probes/readyz") == 200 ]] || { cat "$work/readyz"; return 1; }; }
logged() { grep -E -- "$1" "$work/operator.log"; }

# start_fleet TIME-SCALE: twelve GPU nodes, and the objects that make them share their GPUs.
start_fleet() {
  start fleet "$build/tests/sim/fleet/gso-fleet" --kubeconfig "$cluster/admin.kubeconfig" --topology demo --time-scale "$1"
  "$build/tests/sim/fleet/gso-fleet" --print-manifests >"$work/fleet.json"
  kubectl apply --server-side --force-conflicts -f "$work/fleet.json" || true
  await 30 kubectl wait --for=condition=Established --timeout=30s crd/clusterpolicies.nvidia.com
  kubectl apply --server-side --force-conflicts -f "$work/fleet.json"
}

# set_replicas KEY REPLICAS: edits the ConfigMap as an administrator would.
set_replicas() {
  local text
  printf -v text 'version: v1\nsharing:\n  mps:\n    resources:\n    - name: nvidia.com/gpu\n      replicas: %d\n' "$2"
  kubectl patch configmap mps-config --namespace gpu-operator --type merge \
    --patch "$(python3 -c 'import json, sys; print(json.dumps({"data": {sys.argv[1]: sys.argv[2]}}))' "$1" "$text")"
}

# Nodes whose label has this value: replicas_are VALUE COUNT.
replicas_are() {
  local count
  count=$(kubectl get nodes --selector "nvidia.com/gpu.replicas=$1" --output name | wc -l)
  ((count == $2)) || { echo "$count nodes have nvidia.com/gpu.replicas=$1, not $2"; kubectl get nodes -L nvidia.com/gpu.replicas,gpusharing.dev/state; return 1; }
}

policy_status() { kubectl get sharingpolicies default --output "jsonpath=$1"; }
up_to_date() {
  local count
  count=$(policy_status '{.status.nodes.upToDate}')
  ((${count:-0} == $1)) || { echo "${count:-no} nodes are up to date, not $1"; policy_status '{.status}'; return 1; }
}
no_rollout_runs() {
  local running
  running=$(kubectl get sharingrollouts --output 'jsonpath={.items[?(@.status.phase=="Progressing")].metadata.name}')
  [[ -z $running ]] || { echo "$running"; return 1; }
}
# half_rolled REPLICAS [LEAST]: LEAST nodes (1) have so many replicas already, others wait, and one is in a change.
half_rolled() {
  local ready
  ready=$(kubectl get nodes --selector "nvidia.com/gpu.replicas=$1" --output name | wc -l)
  ((ready >= ${2:-1} && ready <= 8)) || { echo "$ready nodes have $1 replicas"; return 1; }
  node_in_progress
}
# quick_policy NODES: the policy default, which rolls so many nodes at once, and lets a canary soak for a second.
quick_policy() {
  await 30 kubectl wait --for=condition=Established --timeout=30s crd/sharingpolicies.gpusharing.dev
  kubectl create -f - <<<'{"apiVersion":"gpusharing.dev/v1alpha1","kind":"SharingPolicy","metadata":{"name":"default"},
    "spec":{"priority":-1000,"rollout":{"canary":{"soak":"1s"},"maxUnavailable":'"$1"',"maxUnavailablePerGroup":'"$1"'}}}'
}
node_in_progress() { kubectl get nodes --selector gpusharing.dev/state=Updating --output name | sed -n "1s|^node/||p" | grep .; }

# Uids of all operand pods, to see what was restarted.
operand_pods() { kubectl get pods --namespace gpu-operator --output 'jsonpath={range .items[*]}{.metadata.uid}{"\n"}{end}' | sort; }

# The safety invariants at every write of $account: a line for each, and a check for each that has judged something.
judge() {
  local code=0 line before=$failed
  "$here/invariants/judge.py" "$cluster/audit.log" --account "$account" >"$work/judged" 2>&1 || code=$?
  cat "$work/judged"
  while IFS= read -r line; do
    case $line in
      S*" held "*) passed=$((passed + 1)) ;;
      S*" FAILED "*) failed=$((failed + 1)) ;;
    esac
  done <"$work/judged"
  # Also where it died half-way, and has said nothing of any invariant.
  if ((code > 0 && failed == before)); then
    failed=$((failed + 1))
    echo "the judge ended with exit code $code"
  fi
}
