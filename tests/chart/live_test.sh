#!/usr/bin/env bash
# The chart lived with: its pods really run, as local processes under their own ServiceAccount's token (process_kubelet.py),
# beside an emulated GPU fleet. Installed with --wait, tested, upgraded, rolled back and uninstalled by the real helm.
#
#   live_test.sh CLUSTER_DIR BUILD_DIR     a running cluster without a fleet and without a release, a built tree
#
# Prints one line for each check and closes with "N passed, N failed".
# shellcheck source=tests/conformance/beside_cluster.sh
source "$(dirname "${BASH_SOURCE[0]}")/../conformance/beside_cluster.sh" "$@"

chart=$project/charts/gpu-sharing-operator release=gpu-sharing-operator
# shellcheck disable=SC2154  # $namespace and $work come from the sourced scripts.
in_release=(--namespace "$namespace" --timeout 120s)
# The emulated GPU nodes would only pretend to run them.
values=(--set 'nodeSelector.kubernetes\.io/hostname=process-1' --set config.settle-period=1s --set config.clock-difference=0s --set config.node-status-lag=1s --set config.canary-soak=1s --set config.status-interval=1s)

installs_and_waits_for_ready_pods() {
  helm install "$release" "$chart" "${in_release[@]}" --create-namespace --wait "${values[@]}"
  [[ $(kubectl get deployment "$release" --namespace "$namespace" --output 'jsonpath={.status.readyReplicas}') == 2 ]]
}

helm_test_passes() {
  helm test "$release" "${in_release[@]}" | tee "$work/answer"
  grep 'Phase: *Succeeded' "$work/answer"
  # Still there for `helm test --logs` and kubectl, and no obstacle to the next one.
  [[ $(kubectl get pod "$release-check" --namespace "$namespace" --output 'jsonpath={.status.phase}') == Succeeded ]]
  helm test "$release" "${in_release[@]}"
}

pods() { kubectl get pods --namespace "$namespace" --selector app.kubernetes.io/component=operator "$@"; }
# Holders are POD_UID.
leader() { kubectl get lease "$release" --namespace "$namespace" --output 'jsonpath={.spec.holderIdentity}' | sed 's/_.*//' | grep .; }
another_leads() { [[ $(leader) != "$1" ]]; }
two_are_ready() { [[ $(kubectl get deployment "$release" --namespace "$namespace" --output 'jsonpath={.status.readyReplicas}/{.status.replicas}') == 2/2 ]]; }

one_leads_and_one_stands_by() {
  await 20 leader
  [[ $(pods --output name | wc -l) == 2 ]]
  pods --output name | grep -x "pod/$(leader)"
}

adopts_the_fleet() {
  await 60 up_to_date 12
  operand_pods >"$work/operands"
}

untouched() {
  operand_pods >"$work/operands.now"
  diff "$work/operands" "$work/operands.now"
  [[ -z $(kubectl get nodes --field-selector spec.unschedulable=true --output name) ]]
  # Nothing of a rollout, and no label or annotation of a change under way.
  [[ -z $(kubectl get nodes --selector gpusharing.dev/state --output name) ]]
}

leader_hands_over_when_its_pod_goes() {
  local before began=$SECONDS
  before=$(leader)
  kubectl delete pod "$before" --namespace "$namespace" --wait=false
  await 10 another_leads "$before"
  # Released at the stop: the next leader does not wait for the 15 s of the lease.
  ((SECONDS - began < 10))
  await 20 two_are_ready
  untouched
}

# Two at once would be nobody: the budget lets one go.
budget_keeps_one_pod() {
  local pod answer refused=0
  await 20 two_are_ready
  await 10 budget_allows 1
  for pod in $(pods --output 'jsonpath={.items[*].metadata.name}'); do
    answer=$(kubectl create --raw "/api/v1/namespaces/$namespace/pods/$pod/eviction" -f - 2>&1 <<<"{\"apiVersion\":\"policy/v1\",\"kind\":\"Eviction\",\"metadata\":{\"name\":\"$pod\",\"namespace\":\"$namespace\"}}") || {
      grep 'disruption budget' <<<"$answer"
      refused=$((refused + 1))
    }
  done
  ((refused == 1))
  await 20 two_are_ready
}
budget_allows() { [[ $(kubectl get poddisruptionbudget "$release" --namespace "$namespace" --output 'jsonpath={.status.disruptionsAllowed}') == "$1" ]]; }

# To the next release and back, on a live fleet: new pods, new configuration, other CRDs; no operand restarts.
releases_come_and_go() {
  local next=$work/next/gpu-sharing-operator before
  mkdir -p "$work/next"
  cp -rL "$chart" "$next"
  sed -i 's/^version: .*/version: 0.2.0/' "$next/Chart.yaml"
  before=$(pods --output name | sort)
  helm upgrade "$release" "$next" "${in_release[@]}" --wait "${values[@]}" --set config.batch-window=30ms
  [[ $(pods --output name | sort) != "$before" ]]
  await 20 leader
  untouched
  helm rollback "$release" 1 "${in_release[@]}" --wait
  await 20 leader
  await 30 up_to_date 12
  untouched
}

edit_is_rolled() {
  kubectl patch sharingpolicies default --type merge --patch '{"spec":{"rollout":{"maxUnavailable":"100%","maxUnavailablePerGroup":"100%"}}}'
  set_replicas any 6
  await 20 node_in_progress
}

# Scaling to 0 is the emergency stop: nothing further is written, and what is under way goes on afterwards.
stopped_and_started_in_mid_rollout() {
  kubectl scale deployment "$release" --namespace "$namespace" --replicas 0
  await 30 no_pods
  local answer code=0
  kubeconfig_for "token: \"$(<"$cluster/admin.token")\"" >"$work/admin.kubeconfig"
  answer=$("$build/controller/gpu-sharing-operator" check --kubeconfig "$work/admin.kubeconfig" --namespace "$namespace" --timeout 1s) || code=$?
  ((code == 1))
  grep 'MISSING no leader within 1s: the Lease has no holder' <<<"$answer"
  kubectl scale deployment "$release" --namespace "$namespace" --replicas 2
  await 120 replicas_are 6 11
  await 60 up_to_date 12
  [[ -z $(kubectl get nodes --field-selector spec.unschedulable=true --output name) ]]
}
no_pods() { [[ -z $(pods --output name) ]]; }

uninstall_ends_every_process() {
  operand_pods >"$work/operands"
  helm uninstall "$release" "${in_release[@]}" --wait
  await 20 no_pods
  untouched
  kubectl get sharingpolicies default
}

# --- Uninstalled in mid-rollout: the cleanup Job takes everything back before helm removes anything.

# Labels, annotations and cordons on Nodes, finalizers, record, lease, and what the hook itself needs.
nothing_of_ours_is_left() {
  kubectl get nodes --output json >"$work/nodes.json"
  kubectl get sharingpolicies,sharingrollouts --output json >"$work/ours.json"
  python3 - "$work/nodes.json" "$work/ours.json" <<'PY'
import json, sys
left = []
for node in json.load(open(sys.argv[1]))["items"]:
    meta = node["metadata"]
    if node["spec"].get("unschedulable"): left.append(f"{meta['name']} is cordoned")
    left += [f"{meta['name']}: {key}" for field in ("labels", "annotations") for key in meta.get(field, {})
             if key.startswith("gpusharing.dev/") and key != "gpusharing.dev/devices"]  # Those are the administrator's.
for thing in json.load(open(sys.argv[2]))["items"]:
    if thing["metadata"].get("finalizers"): left.append(f"{thing['metadata']['name']}: {thing['metadata']['finalizers']}")
    if thing.get("status", {}).get("phase") in ("Progressing", "Paused", "AwaitingApproval"):
        left.append(f"{thing['metadata']['name']} is {thing['status']['phase']}")
print("\n".join(left))
sys.exit(bool(left))
PY
  local other
  other=$(kubectl get jobs,serviceaccounts,roles,rolebindings,leases,configmaps,clusterroles,clusterrolebindings --all-namespaces --output name | grep gpu-sharing-operator) || return 0
  echo "left: $other"
  return 1
}

# A policy that must revert first, so that there is a finalizer; t4-01 gets its label.
with_a_finalizer() {
  kubectl label node t4-01 test.example/pool=revert
  kubectl create -f - <<<'{"apiVersion":"gpusharing.dev/v1alpha1","kind":"SharingPolicy","metadata":{"name":"reverts"},"spec":{"priority":5,
    "deletionPolicy":"Revert","nodeSelector":{"matchLabels":{"test.example/pool":"revert"}},"profile":{"configMapKey":"slices"}}}'
  await 20 finalizer_is_there
}
finalizer_is_there() { kubectl get sharingpolicies reverts --output 'jsonpath={.metadata.finalizers}' | grep -F gpusharing.dev/revert; }

uninstalled_in_mid_rollout() {
  helm install "$release" "$chart" "${in_release[@]}" --wait "${values[@]}"
  await 60 up_to_date 12
  with_a_finalizer
  set_replicas any 5
  await 30 cordoned_by_us
  helm uninstall "$release" "${in_release[@]}" --wait
  nothing_of_ours_is_left
  await 20 no_pods
}
cordoned_by_us() { kubectl get nodes --field-selector spec.unschedulable=true --output 'jsonpath={.items[*].metadata.annotations.gpusharing\.dev/change}' | grep '"cordoned":true'; }

deleted_policies_go_at_once() { kubectl delete sharingpolicies --all --timeout 10s; }

# As a dead operator leaves it: one that never came up, or whose pods are gone without having given the lease away.
leftovers() {
  local change='{"v":1,"policy":"default","configMap":"gpu-operator/mps-config","key":"any","product":"","from":"v1-1","to":"v1-2"'
  change+=',"kind":"reshare","cause":"edited","begun":"2026-01-01T00:00:00Z","listed":"2026-01-01T00:00:00Z","pods":{},"served":true,"cordoned":true}'
  kubectl label node t4-01 gpusharing.dev/state=Updating
  kubectl annotate node t4-01 "gpusharing.dev/change=$change"
  kubectl cordon t4-01
  kubectl cordon a100-01  # Somebody else's.
}

uninstalls_an_operator_that_never_started() {
  helm install "$release" "$chart" "${in_release[@]}" "${values[@]}" --set replicas=0
  leftovers
  helm uninstall "$release" "${in_release[@]}" --wait
  [[ $(kubectl get nodes --field-selector spec.unschedulable=true --output name) == node/a100-01 ]]
  kubectl uncordon a100-01
  nothing_of_ours_is_left
}

uninstalls_an_operator_that_died_with_the_lease() {
  helm install "$release" "$chart" "${in_release[@]}" "${values[@]}" --set replicas=0
  leftovers
  kubectl uncordon a100-01
  kubectl create -f - <<<"{\"apiVersion\":\"coordination.k8s.io/v1\",\"kind\":\"Lease\",\"metadata\":{\"name\":\"$release\",\"namespace\":\"$namespace\"},
    \"spec\":{\"holderIdentity\":\"dead\",\"leaseDurationSeconds\":15,\"renewTime\":\"$(date --utc +%FT%T.%6NZ)\"}}"
  local began=$SECONDS
  helm uninstall "$release" "${in_release[@]}" --wait
  ((SECONDS - began >= 10)) # It was waited out, not ignored.
  nothing_of_ours_is_left
}

as_root=()
((EUID)) && as_root=(--map-root-user)
unshare --mount "${as_root[@]}" true || {
  echo "live_test.sh: pods get a root of their own by unshare --mount, which fails here (a chroot's root has to be a mount point: mount --bind it onto itself)" >&2
  exit 1
}
start kubelet python3 "$project/tests/conformance/process_kubelet.py" "$cluster" "$build/controller/gpu-sharing-operator"
start_fleet 0.05 >"$work/fleet-objects.log" 2>&1 || cat "$work/fleet-objects.log"
check "a fleet shares its GPUs" await 90 replicas_are 4 11
check "helm installs, and waits until both pods are ready" installs_and_waits_for_ready_pods
check "helm test passes" helm_test_passes
check "one replica leads, the other stands by" one_leads_and_one_stands_by
check "the fleet is adopted, nothing restarts" adopts_the_fleet
check "the standby takes over at once when the leader's pod goes" leader_hands_over_when_its_pod_goes
check "the disruption budget keeps one pod" budget_keeps_one_pod
check "to the next release and back: no operand restarts" releases_come_and_go
check "an edit is rolled by the pods" edit_is_rolled
check "scaled to 0 in mid-rollout and back, it goes on" stopped_and_started_in_mid_rollout
check "uninstalling ends every process and leaves the fleet alone" uninstall_ends_every_process
check "uninstalled in mid-rollout it leaves nothing cordoned, no annotation, no finalizer" uninstalled_in_mid_rollout
check "policies can be deleted afterwards" deleted_policies_go_at_once
check "an operator that never started is uninstalled, and what it left is taken back" uninstalls_an_operator_that_never_started
check "so is one that died with the lease, once that has run out" uninstalls_an_operator_that_died_with_the_lease
close_checks
