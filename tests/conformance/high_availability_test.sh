#!/usr/bin/env bash
# Two replicas on a real control plane, each with a token of its own, in the middle of rollouts: the leader is killed, stopped past its
# Lease and resumed, and loses its token; kube-apiserver and etcd are killed under both; their watches are refused while a person
# pauses. Each rollout must still be carried through, by whoever leads.
#
#   high_availability_test.sh CLUSTER_DIR BUILD_DIR     a running cluster without a fleet, a built tree
#
# Prints one line for each check, the time that each change of the leader took, and a line for each invariant (invariants/judge.py and
# invariants/replicas.py: no write without the Lease, no pod deleted twice for one edit). Closes with "N passed, N failed".
# shellcheck source=tests/conformance/beside_cluster.sh
source "$(dirname "${BASH_SOURCE[0]}")/beside_cluster.sh" "$@"

account=system:serviceaccount:$namespace:gpu-sharing-operator
read -r probes other_probes < <(free_ports 2)
declare -A port=([one]=$probes [two]=$other_probes)
: >"$work/tokens"
: >"$work/edits"
: >"$work/times"

# --- two replicas

# token_for NAME: a new token of that replica, which dies with the Secret `token-NAME-N`.
token_for() {
  local secret
  secret=token-$1-$(wc -l <"$work/tokens")
  new_token "${secret#token-}"
  python3 -c '
import base64, json, sys
claims = sys.stdin.read().split(".")[1]
print(sys.argv[1], json.loads(base64.urlsafe_b64decode(claims + "=="))["jti"])' "$1" <"$work/token" >>"$work/tokens"
  mv "$work/token" "$work/$1.token"
  echo "$secret" >"$work/$1.secret"
}
# An edit settles for longer than the clocks of servers may differ: a pod from before would be restarted once more in doubt.
starts_replica() {
  kubeconfig_for "tokenFile: $work/$1.token" >"$work/$1.kubeconfig"
  start "$1" "$build/controller/gpu-sharing-operator" run --kubeconfig "$work/$1.kubeconfig" --namespace "$namespace" --identity "$1" --log-format=text \
    --metrics-bind-address="127.0.0.1:${port[$1]}" --health-probe-bind-address="127.0.0.1:${port[$1]}" --settle-period=5s --node-status-lag=1s
}
replica_is_ready() { [[ $(curl --silent --max-time 5 --output /dev/null --write-out '%{http_code}' "http://127.0.0.1:${port[$1]}/readyz") == 200 ]]; }
leader() { kubectl get lease gpu-sharing-operator --namespace "$namespace" --output 'jsonpath={.spec.holderIdentity}' | grep .; }
leads() { [[ $(leader) == "$1" ]]; }
# Sets $first to the leader and $second to the other one.
who_leads() {
  first=$(leader)
  second=$([[ $first == one ]] && echo two || echo one)
}
# takes_over NAME STORY: it leads; the time since $since is kept.
takes_over() {
  await 40 leads "$1"
  printf '%-40s %5.1f s\n' "$2" "$(bc <<<"$EPOCHREALTIME - $since")" >>"$work/times"
}
both_run() {
  token_for one
  token_for two
  starts_replica one
  await 30 leads one
  starts_replica two
  await 30 replica_is_ready one
  await 30 replica_is_ready two
  await 60 up_to_date 12
}

# --- rollouts

edits_to() {
  echo "$EPOCHREALTIME" >>"$work/edits"
  set_replicas any "$1"
  await 120 half_rolled "$1" 2
}
is_carried_through() {
  await 240 replicas_are "$1" 11
  await 60 up_to_date 12
  await 30 no_rollout_runs
  [[ -z $(kubectl get nodes --field-selector spec.unschedulable=true --output name) ]] || { kubectl get nodes; return 1; }
}

# --- what happens to them

leader_stops() {
  edits_to 5
  who_leads
  since=$EPOCHREALTIME
  stop "$first"
  takes_over "$second" "the leader stops (SIGTERM)"
  is_carried_through 5
  starts_replica "$first"
  await 30 replica_is_ready "$first"
}
leader_is_killed() {
  edits_to 6
  who_leads
  since=$EPOCHREALTIME
  stop "$first" KILL
  takes_over "$second" "the leader is killed (SIGKILL)"
  is_carried_through 6
  starts_replica "$first"
  await 30 replica_is_ready "$first"
}
# It resumes in the middle of what it was doing, with another one leading.
leader_is_paused_past_its_lease() {
  edits_to 7
  who_leads
  since=$EPOCHREALTIME
  kill -STOP "$(<"$work/pids/$first")"
  takes_over "$second" "the leader is paused (SIGSTOP)"
  kill -CONT "$(<"$work/pids/$first")"
  is_carried_through 7
  leads "$second"
  await 30 replica_is_ready "$first"
}
token_of_the_leader_ends() {
  edits_to 5
  who_leads
  since=$EPOCHREALTIME
  kubectl delete secret "$(<"$work/$first.secret")" --namespace "$namespace"
  takes_over "$second" "the leader's token ends"
  is_carried_through 5
  running "$first"
  token_for "$first"
  await 60 replica_is_ready "$first"
}

# killed_and_started PROGRAM: of the control plane, with the arguments that it had.
killed_and_started() {
  local pid words
  pid=$(<"$cluster/pids/$1")
  mapfile -d '' words <"/proc/$pid/cmdline"
  kill -KILL "$pid"
  # Its threads, which hold its port, can outlive what can be seen of it.
  for _ in {1..50}; do
    setsid "${words[@]}" </dev/null >>"$cluster/log/$1.log" 2>&1 &
    echo "$!" >"$cluster/pids/$1"
    sleep 2
    kill -0 "$!" 2>/dev/null && return
  done
}
answers() { kubectl get --raw /readyz; }
server_is_killed() {
  edits_to "$2"
  killed_and_started "$1"
  await 60 answers
  is_carried_through "$2"
  await 60 replica_is_ready one
  await 60 replica_is_ready two
}

# Open watches go on without the right: only those that the restart of the server has ended are refused. Nothing starts from a view
# that is not renewed, and nothing after the pause (S10 of the judge); what is in a change may stay there until the rights are back.
watches_are_refused_while_a_person_pauses() {
  edits_to 6
  kubectl get clusterrole gpu-sharing-operator --output json >"$work/role.json"
  python3 - "$work/role.json" >"$work/less.json" <<'PY'
import json, sys
rules = json.load(open(sys.argv[1]))["rules"]
for rule in rules:
    if {"nodes", "sharingpolicies", "sharingrollouts"} & set(rule["resources"]):
        rule["verbs"] = [verb for verb in rule["verbs"] if verb not in ("list", "watch")]
print(json.dumps({"rules": rules}))
PY
  kubectl patch clusterrole gpu-sharing-operator --type merge --patch-file "$work/less.json"
  killed_and_started kube-apiserver
  await 60 answers
  kubectl patch sharingpolicies default --type merge --patch '{"spec":{"rollout":{"paused":true}}}'
  sleep 3  # For a start whose request was on its way.
  begun 6 >"$work/before"
  sleep 30
  nothing_starts
  (($(wc -l <"$work/before") < 11)) || { echo "nothing was left to start"; return 1; }
  kubectl patch clusterrole gpu-sharing-operator --type merge --patch "$(python3 -c '
import json, sys
print(json.dumps({"rules": json.load(open(sys.argv[1]))["rules"]}))' "$work/role.json")"
  await 90 replica_is_ready one
  await 90 replica_is_ready two
  await 120 nothing_is_in_a_change
  nothing_starts
  kubectl patch sharingpolicies default --type merge --patch '{"spec":{"rollout":{"paused":false}}}'
  is_carried_through 6
}
# begun REPLICAS: the nodes that have them, or are in a change. That is read first: a node that ends its change meanwhile is in both.
begun() {
  { kubectl get nodes --selector gpusharing.dev/state=Updating --output name; kubectl get nodes --selector "nvidia.com/gpu.replicas=$1" --output name; } | sort -u
}
# A node that only waited, no pod of which was deleted, is given back by the pause, and is no longer among them.
nothing_starts() {
  local started
  started=$(begun 6 | comm -13 "$work/before" -)
  [[ -z $started ]] || { echo "started after the pause: $started"; return 1; }
}
nothing_is_in_a_change() { if node_in_progress; then return 1; fi; }

check "the chart is installed" install_chart
check "a quick policy is applied" quick_policy 2
start_fleet 0.05 >"$work/fleet-objects.log" 2>&1 || cat "$work/fleet-objects.log"
check "a fleet shares its GPUs" await 90 replicas_are 4 11
check "two replicas run, and one leads" both_run
check "the leader stops in mid-rollout" leader_stops
check "the leader is killed in mid-rollout" leader_is_killed
check "the leader is paused past its Lease, and resumes" leader_is_paused_past_its_lease
check "the leader's token ends in mid-rollout" token_of_the_leader_ends
check "kube-apiserver is killed in mid-rollout" server_is_killed kube-apiserver 7
check "etcd is killed in mid-rollout" server_is_killed etcd 5
check "watches are refused in mid-rollout, while a person pauses" watches_are_refused_while_a_person_pauses
cat "$work/times"
check "the Lease was held at each write, and no pod was deleted twice" "$here/invariants/replicas.py" "$cluster/audit.log" "$account" "$work/tokens" "$work/edits"
judge
close_checks
