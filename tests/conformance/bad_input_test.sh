#!/usr/bin/env bash
# The operator on a real API server, given what it should not get: servers that do not answer or are not who they should
# be, bad credentials, a right taken away, objects that are too large or too long, a node that goes. Each must be named
# clearly, and the rest of the fleet must go on.
#
#   bad_input_test.sh CLUSTER_DIR BUILD_DIR     a running cluster without a fleet, a built tree
#
# Prints one line for each check and closes with "N passed, N failed".
# shellcheck source=tests/conformance/beside_cluster.sh
source "$(dirname "${BASH_SOURCE[0]}")/beside_cluster.sh" "$@"

# --- connections -----------------------------------------------------------------------------------------------

# A connection that does not work is no reason to end: the operator says why, in its log and on /readyz, and tries
# again. complains TEXT ARGS-OF-kubeconfig_for...
complains() {
  local text=$1
  shift
  kubeconfig_for "$@" >"$work/bad.kubeconfig"
  start_operator "$work/bad.kubeconfig"
  await 20 logged "$text"
  await 10 readyz_says "$text"
  running operator
  stop operator
  logged 'Stopped'
}

# The namespace of the Lease is not there. Nothing else is wrong: its rights do not matter to a cluster's administrator.
missing_namespace() {
  kubeconfig_for "$(good_user)" >"$work/bad.kubeconfig"
  namespace=nowhere start_operator "$work/bad.kubeconfig"
  await 20 logged 'Lease nowhere/gpu-sharing-operator could not be created: namespace nowhere does not exist'
  await 20 readyz_says 'namespace nowhere does not exist'
  if is_ready; then return 1; fi
  stop operator
}

good_user() { printf 'token: "%s"' "$(<"$cluster/admin.token")"; }
other_ca() {
  openssl req -x509 -newkey ec -pkeyopt ec_paramgen_curve:prime256v1 -nodes -days 2 -subj /CN=another -keyout "$work/other.key" -out "$work/other.crt" 2>/dev/null
  echo "$work/other.crt"
}
# Nobody listens on the discard port.
unreachable() { complains '127.0.0.1:9: cannot connect.*is the API server running' "$(good_user)" https://127.0.0.1:9; }
no_tls() { complains 'TLS handshake failed.*TLS port' "$(good_user)" "https://127.0.0.1:$(<"$cluster/ports/etcd")"; }
wrong_ca() { complains 'certificate is not signed by the configured CA' "$(good_user)" '' "$(other_ca)"; }
wrong_name() { complains 'certificate.*elsewhere.example' "$(good_user)" '' '' '' elsewhere.example; }
wrong_token() { complains 'Unauthorized \(HTTP 401\)' 'token: "nobody-gave-this"'; }

# ends_with TEXT KUBECONFIG: usage that cannot work ends with exit code 2 and the reason.
ends_with() {
  local code=0
  timeout 20 "$build/controller/gpu-sharing-operator" run --kubeconfig "$2" --namespace "$namespace" >"$work/answer" 2>&1 || code=$?
  grep -E -- "$1" "$work/answer" || { cat "$work/answer"; return 1; }
  ((code == 2)) || { echo "exit code $code"; return 1; }
}
missing_context() {
  kubeconfig_for "$(good_user)" '' '' elsewhere >"$work/bad.kubeconfig"
  ends_with 'context "elsewhere" does not exist; there are: test' "$work/bad.kubeconfig"
}
missing_file() { ends_with "cannot read $work/none" "$work/none"; }
truncated_file() {
  head -c 300 "$cluster/admin.kubeconfig" >"$work/bad.kubeconfig"
  printf '\n- {' >>"$work/bad.kubeconfig"
  ends_with 'bad.kubeconfig' "$work/bad.kubeconfig"
}

# --- a fleet ---------------------------------------------------------------------------------------------------

fleet_shares() { await 90 replicas_are 4 11; }

adopts_without_a_restart() {
  operand_pods >"$work/before"
  start_operator
  await 30 is_ready
  await 60 up_to_date 12
  operand_pods >"$work/after"
  # A restart ends a pod that was there. A pod that is there now only is one that its DaemonSet had still to create.
  local gone
  gone=$(comm -23 <(sort "$work/before") <(sort "$work/after"))
  [[ -s $work/before && -z $gone ]] || { echo "pods that were restarted: $gone"; return 1; }
}

expired_token_is_replaced() {
  kubectl delete secret token-first --namespace "$namespace"
  # Watches that are open stay open; the lease is what fails first.
  await 60 logged 'Lease.*Unauthorized \(HTTP 401\)'
  new_token second
  await 60 renewed_since "$(date --utc +%FT%TZ)"
  running operator
}

renewed_since() {
  local renewed
  renewed=$(kubectl get lease gpu-sharing-operator --namespace "$namespace" --output 'jsonpath={.spec.renewTime}')
  [[ $renewed > $1 ]] || { echo "renewed at $renewed"; return 1; }
}

# The chart's role without one rule. What a ClusterPolicy announces is not known then; everything else goes on.
right_taken_away_is_named_and_the_rest_goes_on() {
  stop operator
  kubectl get clusterrole gpu-sharing-operator -o json >"$work/role.json"
  python3 - "$work/role.json" >"$work/less.json" <<'PY'
import json, sys
role = json.load(open(sys.argv[1]))
role["rules"] = [r for r in role["rules"] if "clusterpolicies" not in r["resources"]]
print(json.dumps({"rules": role["rules"]}))
PY
  kubectl patch clusterrole gpu-sharing-operator --type merge --patch-file "$work/less.json"
  start_operator
  await 30 logged 'clusterpolicies.*(forbidden|Forbidden)'
  await 30 readyz_says 'without clusterpolicies: .*(forbidden|Forbidden|403)'
  await 30 is_ready
  await 30 staged_is 'False ClusterPolicyForbidden'
  await 30 event_says ClusterPolicyForbidden 'grant get, list and watch on clusterpolicies.nvidia.com'
  set_replicas any 6
  await 180 replicas_are 6 11
  kubectl patch clusterrole gpu-sharing-operator --type merge --patch "$(python3 -c '
import json, sys
print(json.dumps({"rules": json.load(open(sys.argv[1]))["rules"]}))' "$work/role.json")"
  await 120 staged_is 'True Staged'
  if readyz_says 'without clusterpolicies'; then return 1; fi
  set_replicas any 4
  await 180 replicas_are 4 11
  await 60 up_to_date 12
}
staged_is() {
  local condition
  condition=$(policy_status '{range .status.conditions[?(@.type=="Staged")]}{.status} {.reason}{end}')
  [[ $condition == "$1" ]] || { echo "Staged is $condition"; return 1; }
}
event_says() { kubectl get events --all-namespaces --field-selector "reason=$1" --output 'jsonpath={range .items[*]}{.message}{"\n"}{end}' | grep -F -- "$2"; }

two_hundred_keys_disturb_nobody() {
  operand_pods >"$work/before"
  python3 -c '
import json
text = "version: v1\nsharing:\n  mps:\n    resources:\n    - name: nvidia.com/gpu\n      replicas: %d\n"
keys = {"spare-%03d" % i: text % (i % 8 + 2) for i in range(199)}
keys["-no-label-value-"] = text % 2
print(json.dumps({"data": keys}))' >"$work/keys.json"
  kubectl patch configmap mps-config --namespace gpu-operator --type merge --patch-file "$work/keys.json"
  await 20 logged 'KeyNoLabelValue'  # It has read them.
  operand_pods >"$work/after"
  diff "$work/before" "$work/after"
  is_ready
  if logged 'ERROR'; then return 1; fi
}

# As large as the API server takes: a DaemonSet whose pods would have 1.4 MB of environment, and a large ConfigMap.
huge_objects_disturb_nobody() {
  local kept
  kept=$(daemon_sets_kept)
  python3 -c '
import json
print(json.dumps({"apiVersion": "apps/v1", "kind": "DaemonSet", "metadata": {"name": "huge", "namespace": "gpu-operator"},
  "spec": {"selector": {"matchLabels": {"app": "huge"}}, "template": {"metadata": {"labels": {"app": "huge"}},
  "spec": {"nodeSelector": {"nowhere": "x"}, "containers": [{"name": "nvidia-device-plugin", "image": "x", "env": [{"name": "E%d" % i, "value": "x" * 1000} for i in range(1400)]}]}}}}))' >"$work/huge.json"
  kubectl create -f "$work/huge.json"
  python3 -c '
import json
print(json.dumps({"apiVersion": "v1", "kind": "ConfigMap", "metadata": {"name": "huge", "namespace": "gpu-operator"}, "data": {"text": "x" * 1000000}}))' >"$work/huge-config.json"
  kubectl create -f "$work/huge-config.json"
  await 30 more_daemon_sets_than "$kept"
  operand_pods >"$work/after"
  diff "$work/before" "$work/after"
  running operator
}

daemon_sets_kept() { curl --silent --max-time 5 "http://127.0.0.1:$probes/metrics" | sed -n 's/^gpusharing_store_objects{resource="daemonsets"} //p' | grep .; }
more_daemon_sets_than() { [[ $(daemon_sets_kept) -gt $1 ]]; }

# The product name of a node that we label comes from an annotation: with -SHARED it is longer than a label may be.
long_label_is_named() {
  kubectl annotate node edge-01 --overwrite "gpusharing.dev/devices=$(python3 -c '
import json
name = "NVIDIA " * 9 + "A100"
print(json.dumps(2 * [{"name": name, "memoryMiB": 16384, "computeCapability": [7, 5], "migCapable": False, "migEnabled": False}]))')"
  await 60 label_trouble_is_told
  label_trouble_is_told >&2
  running operator
  [[ $(kubectl get node edge-01 --output 'jsonpath={.metadata.labels.nvidia\.com/gpu\.replicas}') == 4 ]]
}
label_trouble_is_told() {
  { kubectl get events --all-namespaces --output json; policy_status '{.status}'; cat "$work/operator.log"; } >"$work/told"
  grep -E 'edge-01.*63 characters|63 characters.*edge-01' "$work/told"
}

edit_rolls_the_others() {
  set_replicas any 8
  await 180 replicas_are 8 11
  await 60 up_to_date 12
}

# A node goes while it is being rolled, after its canary (a canary that goes is a failure); the kubelet's part of the
# emulator lets it go too.
deleted_node_stops_nobody() {
  set_replicas any 5
  await 120 node_after_its_canary  # A second look can come after its change.
  kubectl delete node "$(<"$work/node-in-change")" --wait=false
  await 180 replicas_are 5 10
  await 60 no_rollout_runs
  await 30 up_to_date 11
  running operator
}

node_after_its_canary() {
  kubectl get nodes --selector 'nvidia.com/gpu.replicas=5,!gpusharing.dev/state' --output name | grep -q '^node/a100-' || return 1
  kubectl get nodes --selector gpusharing.dev/state=Updating --output name | sed -n 's|^node/\(a100-.*\)|\1|p' | grep -m 1 . >"$work/node-in-change"
}

ends_cleanly() {
  stop operator
  logged 'Stopped'
}

check "an unreachable server is named, and tried again" unreachable
check "a server without TLS is named" no_tls
check "a server of another CA is named" wrong_ca
check "a server of another name is named" wrong_name
check "a wrong token is named" wrong_token
check "a missing namespace of the Lease is named" missing_namespace
check "a context that does not exist is named, with those that do" missing_context
check "a kubeconfig that does not exist is named" missing_file
check "a kubeconfig that is cut short is named" truncated_file
check "the chart is installed" install_chart
check "a quick policy is applied" quick_policy 3
start_fleet 0.1 >"$work/fleet-objects.log" 2>&1 || cat "$work/fleet-objects.log"
check "a fleet shares its GPUs" fleet_shares
check "the operator adopts it under the chart's ServiceAccount, and restarts nothing" adopts_without_a_restart
check "a token that expired is replaced" expired_token_is_replaced
check "a kind that the operator is not allowed to read is named, and what does not need it goes on" right_taken_away_is_named_and_the_rest_goes_on
check "a ConfigMap of 200 keys disturbs nobody" two_hundred_keys_disturb_nobody
check "objects of 1.4 MB disturb nobody" huge_objects_disturb_nobody
check "a label that would be too long is named" long_label_is_named
check "an edit rolls the others" edit_rolls_the_others
check "a node that is deleted while it is rolled stops nobody" deleted_node_stops_nobody
check "the operator ends cleanly" ends_cleanly
close_checks
