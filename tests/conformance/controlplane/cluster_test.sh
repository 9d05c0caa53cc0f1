#!/usr/bin/env bash
# Whether the control plane of cluster.sh is what the tests on top of it rely on: it starts beside another one,
# carries a DaemonSet to a Ready pod, answers what the operator asks of an API server, and leaves nothing behind.
# Prints one line for each check and closes with their count; the exit code is 0 only when all passed.
set -euo pipefail
shopt -s inherit_errexit

here=$(cd "$(dirname "${BASH_SOURCE[0]}")" && pwd)
# CRDs as their projects publish them, no part of this repository: used where they lie beside it.
manifests=${GSODEV_MANIFESTS:-$here/../../../../shared/manifests}
# shellcheck source=tests/conformance/checks.sh
source "$here/../checks.sh"
one=$work/one two=$work/two

cluster() { "$here/cluster.sh" "$@"; }
kubectl() { "$one/bin/kubectl" --kubeconfig "$one/admin.kubeconfig" "$@"; }

tidy() {
  local dir
  for dir in "$one" "$two" "$work/interrupted" "$work/api-only" "$work/slow"; do cluster down --dir "$dir" 2>/dev/null || true; done
}

# Every process that names the test's folder, which each program of a cluster does; not this script's own.
processes() {
  local proc
  for proc in /proc/[0-9]*; do
    if [[ $(tr '\0' ' ' 2>/dev/null <"$proc/cmdline") == *"$work/"* ]]; then echo "${proc#/proc/} $(tr '\0' ' ' <"$proc/cmdline")"; fi
  done
}

none_left() {
  local left
  left=$(processes)
  [[ -z $left && ! -e $1 ]] || { printf 'left: %s\n' "$left" "$(ls -A "$1" 2>&1)"; return 1; }
}

two_at_once() {
  local first status=0
  cluster up --dir "$one" --kwok &
  first=$!
  cluster up --dir "$two" || status=1
  wait "$first" || status=1
  return "$status"
}

different_servers() {
  [[ $("$two/bin/kubectl" --kubeconfig "$two/admin.kubeconfig" get --raw /readyz) == ok ]]
  [[ $(<"$one/ports/kube_apiserver") != "$(<"$two/ports/kube_apiserver")" ]]
}

daemonset_pod_gets_ready() {
  kubectl apply -f - <<'EOF'
apiVersion: v1
kind: Node
metadata: {name: plain-1, labels: {gpusharing.dev/kwok: "true"}}
---
apiVersion: v1
kind: Node
metadata: {name: unmanaged-1}
---
apiVersion: apps/v1
kind: DaemonSet
metadata: {name: sleeper, namespace: default}
spec:
  selector: {matchLabels: {app: sleeper}}
  template:
    metadata: {labels: {app: sleeper}}
    spec:
      nodeSelector: {gpusharing.dev/kwok: "true"}
      containers: [{name: sleeper, image: sleeper, securityContext: {privileged: true}}]
EOF
  kubectl wait --for='jsonpath={.status.numberReady}=1' daemonset/sleeper --timeout=60s
  [[ $(kubectl get pod -l app=sleeper -o 'jsonpath={.items[*].spec.nodeName}') == plain-1 ]]
}

kwok_leaves_other_nodes_alone() {
  kubectl wait --for=condition=Ready node/plain-1 --timeout=30s
  kubectl get lease plain-1 -n kube-node-lease
  [[ -z $(kubectl get node unmanaged-1 -o 'jsonpath={.status.conditions}') ]]
}

watchlist_ends_with_a_bookmark() {
  local events
  events=$(kubectl get --raw '/api/v1/nodes?watch=1&sendInitialEvents=true&resourceVersionMatch=NotOlderThan&allowWatchBookmarks=true&timeoutSeconds=1')
  [[ $(grep -c '^{"type":"ADDED"' <<<"$events") == 2 ]]
  grep -q '^{"type":"BOOKMARK".*"k8s.io/initial-events-end":"true"' <<<"$events"
}

token_is_an_administrator() { kubectl --context token get nodes; }

rbac_refuses_strangers() {
  local answer
  if answer=$(kubectl --as stranger get nodes 2>&1); then return 1; fi
  grep Forbidden <<<"$answer"
}

audit_log_names_who_asked() {
  grep -q '"requestURI":"/api/v1/nodes?limit=500".*"impersonatedUser":{"username":"stranger"' "$one/audit.log"
  # Of the control plane itself only what it has written.
  ! grep -qE '"verb":"(get|list|watch)","user":\{"username":"(kwok|system:kube-)' "$one/audit.log"
}

published_crds_are_accepted() {
  local crds
  mapfile -t crds < <(grep -l '^kind: CustomResourceDefinition' "$manifests"/*.yaml)
  # Not the client's own apply, whose annotation would be larger than an object may have.
  kubectl apply --server-side "${crds[@]/#/--filename=}"
  kubectl wait --for=condition=Established "${crds[@]/#/--filename=}" --timeout=30s
}

up_again_changes_nothing() {
  local before
  before=$(<"$one/pids/kube-apiserver")
  cluster up --dir "$one" --kwok
  [[ $(<"$one/pids/kube-apiserver") == "$before" ]]
  cluster status --dir "$one"
}

up_replaces_a_broken_cluster() {
  kill -KILL "$(<"$two/pids/etcd")"
  if cluster status --dir "$two"; then return 1; fi
  cluster up --dir "$two"
  cluster status --dir "$two"
}

api_only_starts_two_programs() {
  local dir=$work/api-only
  cluster up --dir "$dir" --api-only
  cluster status --dir "$dir" >"$work/status"
  [[ $(wc -l <"$work/status") == 2 ]]
  cluster down --dir "$dir"
}

# On a busy machine a program that has been started bears no command line for a while. Here that takes a second: a
# setsid that hides its own before it becomes the program.
a_slow_start_is_no_end() {
  local dir=$work/slow
  mkdir -p "$work/slow-setsid"
  cat >"$work/slow-setsid/setsid" <<'EOF'
#!/usr/bin/env perl
$0 = "starting";
sleep 1;
exec "/usr/bin/setsid", @ARGV;
EOF
  chmod +x "$work/slow-setsid/setsid"
  PATH=$work/slow-setsid:$PATH cluster up --dir "$dir" --api-only
  cluster down --dir "$dir"
}

interrupted_up_leaves_no_process() {
  local dir=$work/interrupted pid
  "$here/cluster.sh" up --dir "$dir" &
  pid=$!
  until [[ -s $dir/pids/kube-apiserver ]]; do
    kill -0 "$pid"
    sleep 0.05
  done
  kill -TERM "$pid"
  if wait "$pid"; then return 1; fi
  [[ $(processes) != *"$dir/"* ]]
  cluster down --dir "$dir"
}

"$here/build.sh" etcd kube-apiserver kube-controller-manager kube-scheduler kubectl kwok
check "two clusters start at once" two_at_once
check "each has an API server of its own" different_servers
check "the pod of a DaemonSet gets Ready on a kwok node" daemonset_pod_gets_ready
check "kwok manages only the nodes with its label" kwok_leaves_other_nodes_alone
check "a WatchList of nodes ends with its bookmark" watchlist_ends_with_a_bookmark
check "the static token is an administrator's" token_is_an_administrator
check "RBAC refuses whoever has no role" rbac_refuses_strangers
check "the audit log names who asked" audit_log_names_who_asked
if [[ -d $manifests ]]; then check "the published CRDs are accepted" published_crds_are_accepted; fi
check "up on a running cluster changes nothing" up_again_changes_nothing
check "up replaces a broken cluster" up_replaces_a_broken_cluster
check "an API server alone starts and stops" api_only_starts_two_programs
check "a program that starts slowly is waited for" a_slow_start_is_no_end
check "an interrupted up leaves no process" interrupted_up_leaves_no_process
check "down of the first" cluster down --dir "$one"
check "down of the second" cluster down --dir "$two"
check "nothing is left" none_left "$work/one"
close_checks
