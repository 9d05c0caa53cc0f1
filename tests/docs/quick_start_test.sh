#!/usr/bin/env bash
# docs/quick-start.md lived through: its own commands, in its order, with the real kubectl and helm on a real API server
# beside an emulated GPU fleet; the chart's pods run as local processes (process_kubelet.py). Left out is only what needs a
# GPU, an engine for containers or NVIDIA's registry; a command that is neither known nor run fails.
#
#   quick_start_test.sh CLUSTER_DIR BUILD_DIR     a running cluster without a fleet and without a release, a built tree
#
# Prints one line for each check and closes with "N passed, N failed".
# shellcheck source=tests/conformance/beside_cluster.sh
source "$(dirname "${BASH_SOURCE[0]}")/../conformance/beside_cluster.sh" "$@"

page=$project/docs/quick-start.md
left_out='^(sudo |docker (build|exec) |kind |helm repo add|helm install gpu-operator|gpu-sharing-operator (lint|expect|verify))'
node=t4-02
# The emulated GPU nodes would only pretend to run the operator's pods; and nobody waits a minute here.
ours=(--set 'nodeSelector.kubernetes\.io/hostname=process-1' --set config.settle-period=2s --set config.canary-soak=1s --set config.node-status-lag=1s --set config.max-unavailable=100%
  --set config.max-unavailable-per-group=100% --set config.cluster-max-unavailable=100% --wait --timeout 120s)

# commands_of HEADING: the commands of its console blocks, one a line, each with the comment that follows it.
commands_of() {
  python3 - "$page" "$1" <<'PY'
import re, sys
text = open(sys.argv[1], encoding="utf-8").read()
section = re.search(rf"^## {re.escape(sys.argv[2])}\n(.*?)(?=^## |\Z)", text, re.M | re.S)[1]
for block in re.findall(r"^ *```console\n(.*?)^ *```$", section, re.M | re.S):
    for step in re.split(r"^ *\$ ", block.replace("\\\n", " "), flags=re.M)[1:]:
        print(re.sub(r" {2,}(?!#)", " ", step.split("\n")[0]))
PY
}

gpu-sharing-operator() { "$build/controller/gpu-sharing-operator" "$@" --kubeconfig "$cluster/admin.kubeconfig"; }

# What the comment of `kubectl edit` says, as the editor would do it: "any: replicas 4 -> 8", "replicas: 1".
editor_for() {
  cat >"$work/editor" <<PY
#!/usr/bin/env python3
import re, sys, yaml
config_map = yaml.safe_load(open(sys.argv[1]))
config_map["data"]["any"] = re.sub(r"replicas: \d+", "replicas: ${1##*[ >]}", config_map["data"]["any"])
yaml.safe_dump(config_map, open(sys.argv[1], "w"))
PY
  chmod +x "$work/editor"
}

# follow HEADING: runs its commands; what they print is in $work/printed.
follow() {
  local line comment ran=0
  cd "$work"
  : >printed
  while IFS= read -r line; do
    if [[ $line =~ $left_out ]]; then continue; fi
    comment=${line#*#} line=${line%%#*}
    line=${line//NODE/$node} line=${line//kind-control-plane/$node}
    echo "\$ $line" | tee -a printed
    case $line in
      'kubectl edit '*) editor_for "$comment" && eval "KUBE_EDITOR=$work/editor $line" ;;
      'kubectl get '*' --watch'*) eval "${line/--watch/}" ;;
      'helm install gpu-sharing-operator '*) (cd "$project" && eval "$line" "${ours[*]@Q}") ;;
      'helm uninstall '*) eval "$line --wait" ;;
      'gpu-sharing-operator status '*) eval "$line" || (($? == 1)) ;; # It has a finding: the node with MIG.
      'kubectl '* | 'helm test '*) eval "$line" ;;
      *) echo "the page has a command that nobody runs: $line"; return 1 ;;
    esac </dev/null >>printed
    cat printed
    ran=$((ran + 1))
  done < <(commands_of "$1")
  ((ran > 0))
}

# As the GPU Operator leaves it when it was just installed.
a_fleet_shares_no_gpu() {
  await 60 kubectl get clusterpolicies.nvidia.com cluster-policy
  kubectl label node mig-01 nvidia.com/device-plugin.config-
  kubectl patch clusterpolicies.nvidia.com/cluster-policy --type merge -p '{"spec":{"devicePlugin":{"config":null}}}'
  kubectl delete configmap mps-config --namespace gpu-operator
  await 90 replicas_are 1 11
  await 90 serves nvidia.com/gpu 1
}

profiles_are_applied_and_the_operator_installed() {
  python3 - "$page" >"$work/mps-config.yaml" <<'PY'
import re, sys, textwrap
text = open(sys.argv[1], encoding="utf-8").read()
print(textwrap.dedent(re.search(r"<!-- file: mps-config.yaml -->\n *```yaml\n(.*?)^ *```$", text, re.M | re.S)[1]))
PY
  follow 'On kind, with a GPU'
  grep -x 'Phase: *Succeeded' "$work/printed"
  await 90 serves nvidia.com/gpu.shared 4
  kubectl get sharingpolicies default
}

# serves RESOURCE REPLICAS: the node's GPUs times the replicas, under this name; renameByDefault adds ".shared".
serves() {
  local gpus served
  gpus=$(kubectl get node "$node" --output 'jsonpath={.metadata.labels.nvidia\.com/gpu\.count}')
  served=$(kubectl get node "$node" --output "jsonpath={.status.allocatable.${1//./\\.}}")
  ((gpus > 0 && served == gpus * $2)) || { echo "$served of $gpus x $2"; return 1; }
}

# Everywhere but on mig-01, where MPS is blocked. The first rollout may still run when the edit comes; a minute is not enough
# for all nodes where other control planes run on the same two cores.
the_edit_is_rolled() {
  follow 'Edit'
  await 180 serves nvidia.com/gpu.shared 8
  await 180 up_to_date 11
  kubectl get node "$node" --output 'jsonpath={.status.allocatable.nvidia\.com/gpu}' | grep -x 0
}

the_node_moves_alone() {
  follow 'One node, another profile'
  await 60 node_has nvidia.com/gpu.sharing-strategy time-slicing
  await 60 node_has nvidia.com/gpu.replicas 10
  await 60 up_to_date 11
}
node_has() { kubectl get node "$node" --show-labels | grep -E "[ ,]$1=$2(,|$)"; }

the_mistake_is_refused() {
  operand_pods >"$work/before"
  follow 'A mistake'
  await 30 refusal_is_told
  operand_pods >"$work/after"
  diff "$work/before" "$work/after"
}
refusal_is_told() { kubectl get events --namespace gpu-operator --field-selector reason=ConfigInvalid | grep 'replicas'; }

leaving_disturbs_nothing() {
  operand_pods >"$work/before"
  follow 'Leave'
  operand_pods >"$work/after"
  diff "$work/before" "$work/after"
  [[ -z $(kubectl get nodes --field-selector spec.unschedulable=true --output name) ]]
}

start kubelet python3 "$project/tests/conformance/process_kubelet.py" "$cluster" "$build/controller/gpu-sharing-operator"
start_fleet 0.05 >"$work/fleet-objects.log" 2>&1 || cat "$work/fleet-objects.log"
check "a fleet shares no GPU" a_fleet_shares_no_gpu
check "the profiles are applied, and the operator is installed and tested" profiles_are_applied_and_the_operator_installed
check "the edit is rolled" the_edit_is_rolled
check "one node moves to another profile" the_node_moves_alone
check "the mistake is refused, and nothing restarts" the_mistake_is_refused
check "leaving disturbs nothing" leaving_disturbs_nothing
close_checks
