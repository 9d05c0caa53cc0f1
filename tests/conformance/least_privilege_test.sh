#!/usr/bin/env bash
# Least privilege, proven: under the chart's ServiceAccount, with audit logging on, the operator lives through an install,
# an edit that evicts a GPU client, a policy that comes and goes, a restart by the DaemonSets, and one of its own. Fails on
# a right that was granted and not used, and on a request that was refused. Then with both modes on Observe: nothing of the
# cluster is written, and what would be done is still reported.
#
#   least_privilege_test.sh CLUSTER_DIR BUILD_DIR     a running cluster without a fleet, a built tree
#
# Prints one line for each check and closes with "N passed, N failed".
# shellcheck source=tests/conformance/beside_cluster.sh
source "$(dirname "${BASH_SOURCE[0]}")/beside_cluster.sh" "$@"

account=system:serviceaccount:$namespace:gpu-sharing-operator
quick=(--cluster-max-unavailable=100% --max-unavailable=100% --max-unavailable-per-group=100% --canary-soak=1s --revision-history-limit=0)

adopts_with_lists() {
  start_operator "$work/operator.kubeconfig" "${quick[@]}" --workloads=Evict --watch-list=false --remove-rejected-pods=team
  await 30 is_ready
  await 60 up_to_date 12
}

# A pod without a controller would not be evicted; one of a ReplicaSet would come back on its node.
client_is_evicted() {
  refused_pod_is_there
  pod_with_a_network_card_is_there
  kubectl create configmap client-controller --namespace default
  local uid
  uid=$(kubectl get configmap client-controller --namespace default --output 'jsonpath={.metadata.uid}')
  kubectl create -f - <<<'{"apiVersion":"v1","kind":"Pod","metadata":{"name":"client","namespace":"default",
      "ownerReferences":[{"apiVersion":"v1","kind":"ConfigMap","name":"client-controller","uid":"'"$uid"'","controller":true}]},
    "spec":{"nodeName":"t4-01","restartPolicy":"Never","containers":[{"name":"cuda","image":"example/cuda-app:1",
      "resources":{"limits":{"nvidia.com/gpu":"1"},"requests":{"nvidia.com/gpu":"1"}}}]}}'
  kubectl wait --for='jsonpath={.status.phase}=Running' pod/client --timeout=20s
  set_replicas any 6
  await 120 replicas_are 6 11
  await 60 up_to_date 12
  await 20 gone pod client default
  await 20 gone pod refused team
  ! kubectl api-versions | grep -qx resource.k8s.io/v1 || kubectl get pod networked --namespace team
}
# As a kubelet leaves a pod that came while no plugin was registered: it goes at the end of the node's change.
refused_pod_is_there() {
  local uid
  kubectl create configmap refused-controller --namespace team
  uid=$(kubectl get configmap refused-controller --namespace team --output 'jsonpath={.metadata.uid}')
  kubectl create -f - <<<'{"apiVersion":"v1","kind":"Pod","metadata":{"name":"refused","namespace":"team",
      "ownerReferences":[{"apiVersion":"v1","kind":"ConfigMap","name":"refused-controller","uid":"'"$uid"'","controller":true}]},
    "spec":{"nodeName":"t4-02","restartPolicy":"Never","containers":[{"name":"cuda","image":"example/cuda-app:1",
      "resources":{"limits":{"nvidia.com/gpu":"1"},"requests":{"nvidia.com/gpu":"1"}}}]}}'
  kubectl patch pod refused --namespace team --subresource status --type merge --patch '{"status":{"phase":"Failed","reason":"UnexpectedAdmissionError"}}'
}
# A DRA driver offers GPUs of the node as well, and the pod's claim is for another device: so it is read, and the pod neither
# evicted nor waited for.
pod_with_a_network_card_is_there() {
  kubectl api-versions | grep -qx resource.k8s.io/v1 || return 0
  kubectl create -f - <<'YAML'
apiVersion: resource.k8s.io/v1
kind: ResourceSlice
metadata: {name: t4-01-gpus}
spec: {driver: gpu.nvidia.com, nodeName: t4-01, devices: [{name: gpu-0}], pool: {name: t4-01, generation: 1, resourceSliceCount: 1}}
---
apiVersion: resource.k8s.io/v1
kind: ResourceClaim
metadata: {name: card, namespace: team}
spec: {devices: {requests: [{name: card, exactly: {deviceClassName: cards}}]}}
YAML
  kubectl patch resourceclaim card --namespace team --subresource status --type merge --patch '{"status":{"allocation":{"devices":{
    "results":[{"request":"card","driver":"cards.example.com","pool":"t4-01","device":"card-0"}]}}}}'
  kubectl create -f - <<'YAML'
apiVersion: v1
kind: Pod
metadata: {name: networked, namespace: team}
spec:
  nodeName: t4-01
  resourceClaims: [{name: card, resourceClaimName: card}]
  containers: [{name: web, image: example/web:1, resources: {claims: [{name: card}]}}]
YAML
  kubectl wait --for='jsonpath={.status.phase}=Running' pod/networked --namespace team --timeout=20s
}
gone() { ! kubectl get "$1" "$2" --namespace "$3" >/dev/null 2>&1; }

# With a history limit of 0 a finished rollout goes as soon as another revision has taken its place.
history_is_cleared() {
  local earlier
  earlier=$(kubectl get sharingrollouts --output 'jsonpath={.items[*].metadata.name}')
  set_replicas any 5
  await 120 replicas_are 5 11
  await 60 up_to_date 12
  await 30 only_another_rollout_is_there "$earlier"
}
only_another_rollout_is_there() {
  local names
  names=$(kubectl get sharingrollouts --output 'jsonpath={.items[*].metadata.name}')
  [[ -n $names && $names != *" "* && $names != "$1" ]]
}

metrics() { curl --silent --fail --max-time 5 --header "Accept: $1" "http://127.0.0.1:$probes/metrics"; }

metrics_are_valid() {
  metrics text/plain >"$work/metrics.txt"
  "$cluster/bin/promtool" check metrics <"$work/metrics.txt"
  metrics 'application/openmetrics-text; version=1.0.0' >"$work/metrics.om"
  tail -n 1 "$work/metrics.om" | grep -x '# EOF'
  # Prometheus' own parser of OpenMetrics is behind the import of history, which wants a time on each sample.
  sed -E "/^#/!s/$/ $(date +%s)/" "$work/metrics.om" >"$work/history.om"
  "$cluster/bin/promtool" tsdb create-blocks-from openmetrics "$work/history.om" "$work/blocks"
  # 12 nodes and a rollout make the same series that 50,000 would: 709 with five lanes of requests and the ages of views.
  (($(grep -vc '^#' "$work/metrics.txt") < 750))
}

metrics_report_what_happened() {
  # NAME-WITH-LABELS LEAST
  local name least value
  while read -r name least; do
    value=$(awk -v name="$name" 'substr($0, 1, length(name) + 1) == name " " { print $NF }' "$work/metrics.txt")
    awk -v v="${value:-none}" -v l="$least" 'BEGIN { exit !(v != "none" && v >= l) }' || { echo "$name is '${value:-absent}'"; return 1; }
  done <<'METRICS'
leader_election_master_status{name="gpu-sharing-operator"} 1
gpusharing_nodes{state="UpToDate"} 12
gpusharing_nodes_allocatable_zero 0
gpusharing_node_changes_total{reason="Update"} 11
gpusharing_node_changes_total{reason="LoadedUngated"} 0
gpusharing_convergence_seconds_count 1
gpusharing_watch_current{resource="nodes"} 1
gpusharing_writes_total{verb="delete",kind="Pod",result="ok"} 22
workqueue_adds_total{name="fleet",controller="fleet"} 10
controller_runtime_reconcile_total{controller="sharing.rollout",result="success"} 1
process_resident_memory_bytes 1000000
METRICS
}

# An inline profile is a key of the plugin's ConfigMap; with deletionPolicy Revert its node goes back before the policy goes.
reverts_a_policy() {
  kubectl create -f - <<'YAML'
apiVersion: gpusharing.dev/v1alpha1
kind: SharingPolicy
metadata: {name: team}
spec:
  priority: 1
  nodeSelector: {matchLabels: {kubernetes.io/hostname: t4-01}}
  profile: {inline: {strategy: time-slicing, replicas: 2}}
  deletionPolicy: Revert
  rollout: {workloads: Interrupt, maxUnavailable: 1, canary: {soak: 1s}}
YAML
  await 120 replicas_are 2 1
  await 60 no_rollout_runs
  kubectl delete sharingpolicies team --timeout=120s
  await 60 replicas_are 5 11
  await 60 up_to_date 12
}

# Mechanism DaemonSetRestart: the templates are patched, once, and their controllers replace the pods.
restarts_daemonsets() {
  kubectl patch sharingpolicies default --type merge --patch \
    '{"spec":{"rollout":{"mechanism":"DaemonSetRestart","workloads":"Interrupt","canary":{"nodesPerGroup":0},"onFailure":"Pause"}}}'
  set_replicas any 3
  await 120 replicas_are 3 11
  await 60 up_to_date 12
  kubectl get daemonset nvidia-device-plugin-daemonset --namespace gpu-operator \
    --output 'jsonpath={.spec.template.metadata.annotations.gpusharing\.dev/restarted-for}' | grep .
}

restarts_with_streams() {
  stop operator
  start_operator "$work/operator.kubeconfig" "${quick[@]}"
  await 30 is_ready
  await 30 grep -q 'Became leader' "$work/operator.log"
  stop operator
}

# Without the two that are there for people: they aggregate to `view` and `edit`, and are bound to no account.
bound_roles() {
  kubectl get clusterroles,roles --all-namespaces --output json \
    --selector 'app.kubernetes.io/instance=gpu-sharing-operator,!rbac.authorization.k8s.io/aggregate-to-edit'
}

every_right_is_used_and_enough() {
  bound_roles >"$work/roles.json"
  "$here/used_rights.py" "$cluster/audit.log" "$work/roles.json" "$namespace" gpu-sharing-operator --rare "$here/rare_rights.txt"
}

admission_holds_the_account_to_its_keys() {
  local node=(patch node t4-01 --dry-run=server --type merge --patch)
  forbidden 'changes only its own labels' as "${node[@]}" '{"metadata":{"labels":{"nvidia.com/gpu.deploy.device-plugin":"false"}}}'
  forbidden 'changes only its own labels' as "${node[@]}" '{"metadata":{"labels":{"nvidia.com/mig.config":"all-disabled"}}}'
  forbidden 'changes only its own labels' as "${node[@]}" '{"metadata":{"labels":{"kubernetes.io/hostname":null}}}'
  forbidden 'changes only its own annotations' as "${node[@]}" '{"metadata":{"annotations":{"example.com/x":"y"}}}'
  forbidden "nothing of a Node's spec" as "${node[@]}" '{"spec":{"taints":[{"key":"a","effect":"NoSchedule"}]}}'
  forbidden "nothing of a Node's spec" as "${node[@]}" '{"metadata":{"finalizers":["example.com/x"]}}'
  as "${node[@]}" '{"metadata":{"labels":{"nvidia.com/mig-1g.12gb-me.product":"NVIDIA-H100-MIG-1g.12gb.me","nvidia.com/mig-1g.12gb-me.replicas":"2"}}}'
  as "${node[@]}" '{"metadata":{"labels":{"nvidia.com/device-plugin.config":"x","gpusharing.dev/state":"Updating","nvidia.mps/enabled":"true"},"annotations":{"gpusharing.dev/hold":"true","karpenter.sh/do-not-disrupt":"true","cluster-autoscaler.kubernetes.io/scale-down-disabled":"true"}},"spec":{"unschedulable":true}}'
  kubectl patch node t4-01 --dry-run=server --type merge --patch '{"metadata":{"labels":{"example.com/ours":"not"}}}'
}

admission_protects_other_pods() {
  kubectl run bystander --namespace gpu-operator --image example/x
  forbidden 'deletes only pods of a DaemonSet' as delete pod bystander --namespace gpu-operator --dry-run=server
  local operand
  operand=$(kubectl get pods --namespace gpu-operator --selector app=nvidia-device-plugin-daemonset --output name | sed -n 1p)
  as delete "$operand" --namespace gpu-operator --dry-run=server
  kubectl delete pod bystander --namespace gpu-operator --force --grace-period=0
}

# patch_as PATH BODY: a JSON merge patch as the operator's account, which is not allowed to read what it patches (kubectl
# would).
patch_as() {
  local server answer code
  server=$(kubectl config view --minify --output 'jsonpath={.clusters[0].cluster.server}')
  answer=$(curl --silent --insecure --request PATCH --header "Authorization: Bearer $(<"$cluster/admin.token")" \
    --header "Impersonate-User: $account" --header 'Impersonate-Group: system:authenticated' \
    --header 'Content-Type: application/merge-patch+json' --data "$2" --write-out '\n%{http_code}' "$server$1?dryRun=All")
  code=${answer##*$'\n'}
  echo "$answer"
  [[ $code == 200 ]]
}

admission_keeps_daemonsets_as_they_are() {
  local plugin=(patch_as /apis/apps/v1/namespaces/gpu-operator/daemonsets/nvidia-device-plugin-daemonset)
  forbidden 'nothing of a DaemonSet' "${plugin[@]}" '{"spec":{"template":{"spec":{"hostIPC":true}}}}'
  forbidden 'nothing of a DaemonSet' "${plugin[@]}" '{"spec":{"template":{"spec":{"containers":[{"name":"evil","image":"example/evil:1","securityContext":{"privileged":true}}]}}}}'
  forbidden 'nothing of a DaemonSet' "${plugin[@]}" '{"spec":{"updateStrategy":{"type":"OnDelete","rollingUpdate":null}}}'
  # The GPU Operator would roll a DaemonSet whose hash it does not know.
  forbidden 'nothing of a DaemonSet' "${plugin[@]}" '{"metadata":{"annotations":{"nvidia.com/last-applied-hash":"evil"}}}'
  forbidden 'nothing of a DaemonSet' "${plugin[@]}" '{"spec":{"revisionHistoryLimit":0}}'
  forbidden 'nothing of a DaemonSet' "${plugin[@]}" '{"spec":{"template":{"metadata":{"finalizers":["example.com/x"]}}}}'
  forbidden 'changes only its own annotation of' "${plugin[@]}" '{"spec":{"template":{"metadata":{"annotations":{"gpusharing.dev/other":"y"}}}}}'
  forbidden 'changes only its own annotation of' "${plugin[@]}" '{"spec":{"template":{"metadata":{"annotations":{"example.com/x":"y"}}}}}'
  "${plugin[@]}" '{"spec":{"template":{"metadata":{"annotations":{"gpusharing.dev/restarted-for":"x"}}}}}'
}

admission_holds_the_account_to_its_keys_of_a_configmap() {
  local map=(patch_as /api/v1/namespaces/gpu-operator/configmaps/mps-config)
  forbidden 'keys of a ConfigMap that begin with gso-' "${map[@]}" '{"data":{"any":"version: v1"}}'
  forbidden 'keys of a ConfigMap that begin with gso-' "${map[@]}" '{"data":{"any":null}}'
  forbidden 'but its own keys' "${map[@]}" '{"immutable":true}'
  forbidden 'but its own keys' "${map[@]}" '{"metadata":{"annotations":{"gpusharing.dev/paused":"true"}}}'
  "${map[@]}" '{"data":{"gso-training-0123456789":"version: v1"}}'
}

# write_as METHOD PATH BODY: as the operator's account; the answer with its code on the last line.
write_as() {
  local server answer code
  server=$(kubectl config view --minify --output 'jsonpath={.clusters[0].cluster.server}')
  answer=$(curl --silent --insecure --request "$1" --header "Authorization: Bearer $(<"$cluster/admin.token")" \
    --header "Impersonate-User: $account" --header 'Impersonate-Group: system:authenticated' \
    --header 'Content-Type: application/json' --data "$3" --write-out '\n%{http_code}' "$server$2?dryRun=All")
  code=${answer##*$'\n'}
  echo "$answer"
  [[ $code == 20[01] ]]
}

admission_and_rbac_leave_it_its_own_lease() {
  local leases=/apis/coordination.k8s.io/v1/namespaces/$namespace/leases
  forbidden 'only its own Lease' write_as POST "$leases" '{"apiVersion":"coordination.k8s.io/v1","kind":"Lease","metadata":{"name":"other"}}'
  kubectl create -f - <<<"{\"apiVersion\":\"coordination.k8s.io/v1\",\"kind\":\"Lease\",\"metadata\":{\"name\":\"other\",\"namespace\":\"$namespace\"}}"
  forbidden 'cannot update resource' write_as PUT "$leases/other" '{"apiVersion":"coordination.k8s.io/v1","kind":"Lease","metadata":{"name":"other"},"spec":{"holderIdentity":"evil"}}'
  [[ $(as auth can-i list leases --namespace "$namespace" || true) == no ]]
  kubectl delete lease other --namespace "$namespace"
}

admission_keeps_policies_as_people_wrote_them() {
  kubectl create -f - <<<'{"apiVersion":"gpusharing.dev/v1alpha1","kind":"SharingPolicy","metadata":{"name":"held","finalizers":["example.com/other"]},"spec":{"priority":1,"mode":"Observe"}}'
  local held=(patch_as /apis/gpusharing.dev/v1alpha1/sharingpolicies/held)
  forbidden 'nothing of a SharingPolicy' "${held[@]}" '{"spec":{"mode":"Enforce","rollout":{"workloads":"Interrupt","maxUnavailable":"100%"}}}'
  forbidden 'nothing of a SharingPolicy' "${held[@]}" '{"metadata":{"annotations":{"gpusharing.dev/paused":"true"}}}'
  forbidden 'nothing of a SharingPolicy' "${held[@]}" '{"metadata":{"finalizers":[]}}'
  "${held[@]}" '{"metadata":{"finalizers":["example.com/other","gpusharing.dev/revert"]}}'
  forbidden 'creates no SharingPolicy but' write_as POST /apis/gpusharing.dev/v1alpha1/sharingpolicies '{"apiVersion":"gpusharing.dev/v1alpha1","kind":"SharingPolicy","metadata":{"name":"mine"},"spec":{"priority":1000}}'
  kubectl patch sharingpolicies held --type merge --patch '{"metadata":{"finalizers":[]}}'
  kubectl delete sharingpolicies held
}

# eviction_of NAMESPACE POD: as the operator's account.
eviction_of() {
  write_as POST "/api/v1/namespaces/$1/pods/$2/eviction" '{"apiVersion":"policy/v1","kind":"Eviction","metadata":{"name":"'"$2"'","namespace":"'"$1"'"}}'
}

admission_lets_it_evict_from_no_namespace_of_the_system() {
  local protected
  for protected in kube-system gpu-operator "$namespace" default; do
    kubectl run client --namespace "$protected" --image example/x
    if [[ $protected == default ]]; then
      eviction_of "$protected" client
    else
      forbidden 'evicts no pod of kube-system' eviction_of "$protected" client
    fi
    kubectl delete pod client --namespace "$protected" --force --grace-period=0
  done
}

# --- Observe ---------------------------------------------------------------------------------------------------

writes_of_account() {
  python3 - "$cluster/audit.log" "$account" "$1" <<'PY'
import json, sys
for line in open(sys.argv[1], encoding="utf-8"):
    event = json.loads(line)
    ref = event.get("objectRef", {})
    if event["user"]["username"] != sys.argv[2] or event.get("impersonatedUser") or event["requestReceivedTimestamp"] < sys.argv[3]: continue
    if event["verb"] in ("get", "list", "watch"): continue
    print(event.get("responseStatus", {}).get("code"), event["verb"], ref.get("resource"), ref.get("subresource", ""))
PY
}

observes_and_reports() {
  helm upgrade gpu-sharing-operator "$project/charts/gpu-sharing-operator" --namespace "$namespace" --timeout 60s \
    --set replicas=0 --set modes.rollouts=Observe --set modes.labels=Observe
  local began
  began=$(date --utc +%FT%T.%6NZ)
  # Without the record of the earlier release: it starts from nothing, and keeps what it learns in memory.
  kubectl delete configmap gpu-sharing-operator-state --namespace "$namespace"
  operand_pods >"$work/before"
  start_operator "$work/operator.kubeconfig" "${quick[@]}" --max-mode=Observe --label-mode=verify
  await 30 is_ready
  await 60 up_to_date 12
  set_replicas any 7
  await 60 waits_in_observe
  operand_pods >"$work/after"
  diff "$work/before" "$work/after"
  writes_of_account "$began" >"$work/writes"
  sort "$work/writes" | uniq -c
  if grep -E ' (nodes|pods|configmaps) ' "$work/writes"; then return 1; fi
  if grep -E '^(401|403|422) ' "$work/writes"; then return 1; fi
  stop operator
}
waits_in_observe() {
  policy_status '{.status.nodes.pending}' | grep -x 11
  policy_status '{.status.conditions[?(@.type=="Progressing")].reason}' | grep -x Observe
}

kubectl create namespace team
check "the chart is installed, with eviction, DaemonSetRestart and rejectedPods" install_chart --set eviction.enabled=true --set daemonSetRestart.enabled=true \
  --set 'rejectedPods.namespaces={team}'
start_fleet 0.05 >"$work/fleet-objects.log" 2>&1 || cat "$work/fleet-objects.log"
check "a fleet shares its GPUs" await 90 replicas_are 4 11
check "the operator adopts it, by lists" adopts_with_lists
check "an edit evicts a GPU client and is rolled, and a pod that a node refused is removed" client_is_evicted
check "finished rollouts beyond the limit go" history_is_cleared
check "promtool accepts its metrics in both forms" metrics_are_valid
check "the metrics report what happened" metrics_report_what_happened
check "a policy brings its profile, and takes it back" reverts_a_policy
check "DaemonSets are restarted where the policy says so" restarts_daemonsets
check "it restarts, by streams" restarts_with_streams
check "every right of the account is used, and nothing was refused" every_right_is_used_and_enough
check "admission holds the account to its own keys of a Node" admission_holds_the_account_to_its_keys
check "admission protects pods that are no operands" admission_protects_other_pods
check "admission keeps DaemonSets as they are, but for the operator's annotation" admission_keeps_daemonsets_as_they_are
check "admission holds the account to its own keys of a ConfigMap" admission_holds_the_account_to_its_keys_of_a_configmap
check "its Lease is the only one that it writes" admission_and_rbac_leave_it_its_own_lease
check "admission keeps SharingPolicies as people wrote them" admission_keeps_policies_as_people_wrote_them
check "admission lets it evict no pod of kube-system, of operands or of its own" admission_lets_it_evict_from_no_namespace_of_the_system
check "with both modes on Observe it reports, and writes no Node, Pod or ConfigMap" observes_and_reports
close_checks
