#!/usr/bin/env bash
# The chart's standalone MPS daemon on a real control plane, whose DaemonSet controller makes its pods, beside a fleet of
# the GPU Operator: nodes that the plugin's daemon serves are left out, a change of a value is rolled node by node after
# the GPU clients, and a profile that would start a second daemon is Blocked. The fleet emulator plays the pods.
#
#   standalone_mps_test.sh CLUSTER_DIR BUILD_DIR     a running cluster without a fleet, a built tree
#
# Prints one line for each check and closes with "N passed, N failed".
# shellcheck source=tests/conformance/beside_cluster.sh
source "$(dirname "${BASH_SOURCE[0]}")/beside_cluster.sh" "$@"

account=system:serviceaccount:$namespace:gpu-sharing-operator
daemons=(daemonset/gpu-sharing-operator-mps --namespace "$namespace")
client_node=gpu-01

# The cluster has no RuntimeClass, and its nodes offer no CPU or memory.
standalone=(--set standaloneMps.resources.requests=null --set standaloneMps.resources.limits=null --set standaloneMps.enabled=true --set-string 'standaloneMps.nodeSelector.team\.example/mps=true' --set standaloneMps.runtimeClassName=)

a_fleet_shares_by_mps() {
  start fleet "$build/tests/sim/fleet/gso-fleet" --kubeconfig "$cluster/admin.kubeconfig" --topology uniform:3 --time-scale 0.05
  "$build/tests/sim/fleet/gso-fleet" --topology uniform:3 --print-manifests >"$work/fleet.json"
  kubectl apply --server-side --force-conflicts -f "$work/fleet.json" || true
  await 30 kubectl wait --for=condition=Established --timeout=30s crd/clusterpolicies.nvidia.com
  kubectl apply --server-side --force-conflicts -f "$work/fleet.json"
  await 120 replicas_are 4 3
  start_operator "$work/operator.kubeconfig" --canary-soak=1s
  await 30 is_ready
  await 60 up_to_date 3
}

# scheduled COUNT: how many nodes the DaemonSet controller has chosen for the present template.
scheduled() {
  kubectl get "${daemons[@]}" --output 'jsonpath={.status.observedGeneration}={.metadata.generation}: {.status.desiredNumberScheduled} {.status.numberMisscheduled}' |
    grep -E "^([0-9]+)=\1: $1 0$"
}
served_nodes_are_left_out() {
  kubectl label nodes --selector nvidia.com/mps.capable=true team.example/mps=true
  await 30 scheduled 0
}

without_the_plugins_daemon_they_get_one() {
  kubectl patch configmap mps-config --namespace gpu-operator --type merge --patch '{"data":{"any":"version: v1\n"}}'
  await 240 scheduled 3
  await 60 daemons_run 3
  await 120 up_to_date 3
}
# labelled COUNT VALUE: so many nodes say that their daemon is there, and no node says anything else.
labelled() {
  kubectl get nodes --output 'jsonpath={range .items[*]}{.metadata.labels.gpusharing\.dev/mps-pipe-directory}{"\n"}{end}' | awk -v count="$1" -v value="$2" '
    NF { if ($1 == value) ++there; else other = $1 } END { print there + 0, other; exit !(there + 0 == count && other == "") }'
}
nodes_say_where_the_daemon_is() { await 60 labelled 3 run.nvidia-mps; }
newest() { kubectl get controllerrevisions --namespace "$namespace" --selector app.kubernetes.io/component=standalone-mps --sort-by .revision --output 'jsonpath={.items[-1:].metadata.labels.controller-revision-hash}'; }
# daemons_run COUNT: Ready pods of the newest template.
daemons_run() {
  local count
  count=$(kubectl get pods --namespace "$namespace" --selector "app.kubernetes.io/component=standalone-mps,controller-revision-hash=$(newest)" \
    --output 'jsonpath={range .items[*]}{.status.conditions[?(@.type=="Ready")].status}{"\n"}{end}' | grep -c True || true)
  ((count == $1)) || { kubectl get pods --namespace "$namespace" --show-labels; return 1; }
}

a_client_runs() {
  kubectl create -f - <<YAML
apiVersion: v1
kind: Pod
metadata: {name: client, namespace: default}
spec:
  restartPolicy: Never
  nodeName: $client_node
  terminationGracePeriodSeconds: 0
  containers: [{name: main, image: example/cuda-app:1, resources: {limits: {nvidia.com/gpu: "1"}}}]
YAML
  await 60 client_runs
}
client_runs() { kubectl get pod client --namespace default --output 'jsonpath={.status.phase}' | grep -x Running; }

marked_nodes() { kubectl get nodes --output 'jsonpath={range .items[*]}{.metadata.name}{" "}{.metadata.annotations.gpusharing\.dev/mps-daemon-change}{"\n"}{end}' | awk 'NF > 1 { print $1 }'; }
a_changed_value_is_rolled_after_the_clients() {
  watch_marks >"$work/marks" 2>&1 &
  echo "$!" >"$work/marks.pid"
  helm upgrade gpu-sharing-operator "$project/charts/gpu-sharing-operator" --namespace "$namespace" --timeout 60s --reuse-values \
    --set standaloneMps.activeThreadPercentage=50
  await 240 daemons_run 2
  await 60 is_drained "$client_node"
  client_runs
  "$build/controller/gpu-sharing-operator" status --kubeconfig "$cluster/admin.kubeconfig" --namespace "$namespace" >"$work/status" || true
  grep -E "gpu-sharing-operator-mps +run .* 2/3, in progress: $client_node" "$work/status"
  await 30 rollout_says 'Progressing 2/3'
  kubectl delete pod client --namespace default --grace-period=0 --force
  await 120 daemons_run 3
  await 30 none_marked
  await 30 rollout_says 'Completed 3/3'
  kill "$(<"$work/marks.pid")"
  rm "$work/marks.pid"
  labelled 3 run.nvidia-mps
  # One node at a time: a tenth of three.
  sort -u "$work/marks" | awk 'NF > 1 { print; bad = 1 } END { exit bad }'
  grep -q . "$work/marks"
}
# rollout_says 'PHASE UPDATED/TOTAL': the SharingRollout of the newest template, the only one.
rollout_says() {
  kubectl get sharingrollouts --output "jsonpath={range .items[?(@.spec.toRevision=='$(newest)')]}{.spec.daemonSet} {.status.phase} {.status.counts.updated}/{.status.counts.total}{'\\n'}{end}" |
    tee /dev/stderr | grep -Fx "$namespace/gpu-sharing-operator-mps $1"
}
rollout_name() { kubectl get sharingrollouts --output "jsonpath={.items[?(@.spec.toRevision=='$(newest)')].metadata.name}" | grep .; }
rollout() { "$build/controller/gpu-sharing-operator" rollout "$@" --kubeconfig "$cluster/admin.kubeconfig" --namespace "$namespace"; }
it_is_paused_and_goes_back_where_it_came_from() {
  a_client_runs
  sleep 15  # Until no list of workloads is left that says that the node is idle.
  helm upgrade gpu-sharing-operator "$project/charts/gpu-sharing-operator" --namespace "$namespace" --timeout 60s --reuse-values \
    --set standaloneMps.activeThreadPercentage=55
  await 240 daemons_run 2
  await 60 is_drained "$client_node"
  rollout pause "$(rollout_name)"
  await 60 none_marked
  await 30 rollout_says 'Paused 2/3'
  if rollout undo "$(rollout_name)" >"$work/undo" 2>&1; then return 1; fi
  # shellcheck disable=SC2016  # Backquotes of the text.
  grep 'go back with `helm rollback`' "$work/undo"
  # The former template returns before the last node has left it.
  helm rollback gpu-sharing-operator --namespace "$namespace" --timeout 60s
  kubectl delete pod client --namespace default --grace-period=0 --force
  await 240 daemons_run 3
  await 60 rollout_says 'Completed 3/3'
  await 30 none_marked
}

clients_are_evicted_where_the_policy_says_so() {
  kubectl patch sharingpolicies default --type merge --patch '{"spec":{"rollout":{"workloads":"Evict","evictBarePods":true}}}'
  a_client_runs
  helm upgrade gpu-sharing-operator "$project/charts/gpu-sharing-operator" --namespace "$namespace" --timeout 60s --reuse-values \
    --set eviction.enabled=true --set standaloneMps.activeThreadPercentage=60 --set standaloneMps.pipeDirectory=/opt/mps
  await 240 daemons_run 3
  await 60 labelled 3 opt.mps
  await 30 none_marked
  if client_runs; then return 1; fi
  kubectl get events.events.k8s.io --namespace default --output json | grep 'standalone MPS daemon is replaced'
  kubectl patch sharingpolicies default --type merge --patch '{"spec":{"rollout":{"workloads":"WaitForIdle","evictBarePods":false}}}'
}
is_drained() { kubectl get node "$1" --output 'jsonpath={.spec.unschedulable} {.metadata.annotations.gpusharing\.dev/mps-daemon-change}' | grep '^true {'; }
none_marked() { [[ -z $(marked_nodes) && -z $(kubectl get nodes --output 'jsonpath={.items[*].spec.unschedulable}') ]]; }
watch_marks() { while :; do marked_nodes | paste -sd' '; sleep 0.2; done; }
tidy() { [[ ! -e $work/marks.pid ]] || kill "$(<"$work/marks.pid")" 2>/dev/null || true; }

a_chart_upgrade_without_a_change_restarts_nothing() {
  kubectl get pods --namespace "$namespace" --output 'jsonpath={.items[*].metadata.uid}' >"$work/before"
  helm upgrade gpu-sharing-operator "$project/charts/gpu-sharing-operator" --namespace "$namespace" --timeout 60s --reuse-values --set replicas=0
  await 30 scheduled 3
  kubectl get pods --namespace "$namespace" --output 'jsonpath={.items[*].metadata.uid}' | diff "$work/before" -
}

a_second_daemon_is_blocked() {
  set_replicas any 4
  await 60 is_blocked "$client_node"
  "$build/controller/gpu-sharing-operator" explain node "$client_node" --kubeconfig "$cluster/admin.kubeconfig" --namespace "$namespace" >"$work/explained" || true
  grep StandaloneMPSConflict "$work/explained"
  daemons_run 3
}
is_blocked() { kubectl get node "$1" --output 'jsonpath={.metadata.labels.gpusharing\.dev/state} {.metadata.annotations.gpusharing\.dev/message}' | grep '^Blocked .*two MPS daemons must not serve one GPU'; }

a_node_that_leaves_says_so_no_more() {
  kubectl label nodes "$client_node" team.example/mps-
  await 180 labelled 2 opt.mps
}

only_its_pods_may_go() {
  kubectl create --namespace "$namespace" -f - <<YAML
apiVersion: v1
kind: Pod
metadata: {name: other}
spec: {containers: [{name: main, image: example/other:1}]}
YAML
  forbidden 'deletes only pods of a DaemonSet' as delete pod other --namespace "$namespace" --dry-run=server
  as delete pod --namespace "$namespace" --dry-run=server \
    "$(kubectl get pods --namespace "$namespace" --selector app.kubernetes.io/component=standalone-mps --output 'jsonpath={.items[0].metadata.name}')"
}

uninstalling_leaves_nothing() {
  stop operator
  helm uninstall gpu-sharing-operator --namespace "$namespace" --no-hooks --timeout 60s
  await 60 no_daemons
}
no_daemons() { [[ -z $(kubectl get pods --namespace "$namespace" --selector app.kubernetes.io/component=standalone-mps --output name) ]]; }

check "the chart is installed with standalone MPS" install_chart "${standalone[@]}"
check "a fleet shares by MPS" a_fleet_shares_by_mps
check "nodes that the plugin's daemon serves are left out" served_nodes_are_left_out
check "without the plugin's daemon they get one" without_the_plugins_daemon_they_get_one
check "the nodes say where clients find the daemon" nodes_say_where_the_daemon_is
check "a client runs on one of them" a_client_runs
check "a changed value is rolled node by node, after the clients" a_changed_value_is_rolled_after_the_clients
check "its SharingRollout is paused, and a template that returns is a new attempt" it_is_paused_and_goes_back_where_it_came_from
check "under workloads: Evict the clients are evicted" clients_are_evicted_where_the_policy_says_so
check "an upgrade that changes no value restarts nothing" a_chart_upgrade_without_a_change_restarts_nothing
check "a profile that would start a second daemon is Blocked" a_second_daemon_is_blocked
check "a node without the daemon no longer says where it is" a_node_that_leaves_says_so_no_more
check "of its own namespace the operator can delete only these pods" only_its_pods_may_go
check "uninstalling leaves no daemon" uninstalling_leaves_nothing
close_checks
