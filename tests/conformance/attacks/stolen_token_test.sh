#!/usr/bin/env bash
# What a stolen token can do: that of the operator itself, of a scraper, of a person who looks at policies, of the Job before an
# uninstall, and of the namespace's default account. Each request of a table is sent to the API server and must be refused.
#
#   stolen_token_test.sh CLUSTER_DIR BUILD_DIR     a running control plane, a built tree
#
# Prints one line for each check and closes with "N passed, N failed".
# shellcheck source=tests/conformance/attacks/attack.sh
source "$(dirname "${BASH_SOURCE[0]}")/attack.sh" "$@"

installs_everything() {
  kubectl create namespace a-team
  kubectl create namespace team
  await 30 kubectl get serviceaccount default --namespace a-team
  install_chart --set metrics.secure.enabled=true --set admissionWebhook.enabled=true --set eviction.enabled=true --set daemonSetRestart.enabled=true \
    --set 'rejectedPods.namespaces={team}' --set modes.partitioning=Observe --set partitioning.namespace=team
  kubectl create rolebinding looks --clusterrole view --user looker --namespace a-team
  kubectl create clusterrolebinding scrapes --clusterrole gpu-sharing-operator-metrics-reader --user scraper
  # What the thief is after.
  kubectl create -f - <<<'{"apiVersion":"v1","kind":"Node","metadata":{"name":"n1"}}'
  kubectl run bystander --namespace gpu-operator --image x
  kubectl run bystander --namespace team --image x
  await 30 kubectl wait --for=condition=Established --timeout=5s crd/sharingpolicies.gpusharing.dev
  kubectl create -f - <<<'{"apiVersion":"gpusharing.dev/v1alpha1","kind":"SharingPolicy","metadata":{"name":"kept"},"spec":{"mode":"Approve"}}'
  kubectl create -f - <<<"{$event,\"metadata\":{\"name\":\"evidence\",\"namespace\":\"a-team\"},\"reportingController\":\"kubelet\"}"
}
event='"apiVersion":"events.k8s.io/v1","kind":"Event","eventTime":"2026-01-01T00:00:00.000000Z","action":"a","reason":"r","type":"Normal","reportingInstance":"i","regarding":{"kind":"Pod","namespace":"a-team","name":"p"}'

# refused_to USER: each line of the standard input, as VERB RESOURCE [ARGS...] of `kubectl auth can-i`. A SelfSubjectAccessReview each:
# the answer is the authorizer's own.
refused_to() {
  local user=$1 what status=0
  while read -r what; do
    # shellcheck disable=SC2086
    if kubectl auth can-i --quiet --as "$user" $what; then echo "allowed: $what"; status=1; fi
  done
  return "$status"
}

# Rights from which a thief could make any other.
ESCALATIONS='get secrets --all-namespaces
list secrets --namespace gpu-sharing-operator
create pods --namespace gpu-sharing-operator
create pods --namespace gpu-operator
create pods --subresource=exec --namespace gpu-operator
create pods --subresource=ephemeralcontainers --namespace gpu-operator
update pods --namespace gpu-operator
create daemonsets.apps --namespace gpu-operator
update daemonsets.apps --namespace gpu-operator
create deployments.apps --namespace gpu-sharing-operator
patch deployments.apps --namespace gpu-sharing-operator
create jobs.batch --namespace gpu-sharing-operator
create serviceaccounts --subresource=token --namespace gpu-sharing-operator
impersonate users
impersonate groups
impersonate serviceaccounts
create clusterrolebindings.rbac.authorization.k8s.io
escalate clusterroles.rbac.authorization.k8s.io
bind clusterroles.rbac.authorization.k8s.io
patch clusterroles.rbac.authorization.k8s.io
patch roles.rbac.authorization.k8s.io --namespace gpu-sharing-operator
patch validatingwebhookconfigurations.admissionregistration.k8s.io
patch mutatingwebhookconfigurations.admissionregistration.k8s.io
patch validatingadmissionpolicies.admissionregistration.k8s.io
delete validatingadmissionpolicybindings.admissionregistration.k8s.io
patch customresourcedefinitions.apiextensions.k8s.io
get nodes --subresource=proxy
create certificatesigningrequests.certificates.k8s.io
delete nodes
create nodes'

the_operators_token_makes_no_other_right() {
  refused_to "$account" <<<"$ESCALATIONS
list configmaps --namespace a-team
delete pods --namespace a-team
patch pods --namespace gpu-operator
update nodes
patch nodes --subresource=status
patch sharingrollouts.gpusharing.dev
delete sharingpolicies.gpusharing.dev
delete leases.coordination.k8s.io --namespace gpu-sharing-operator
patch clusterpolicies.nvidia.com
create events --namespace a-team"
}

# sent METHOD PATH BODY [CONTENT-TYPE]: as the operator's account, as a dry run.
sent() {
  local server answer
  server=$(kubectl config view --minify --output 'jsonpath={.clusters[0].cluster.server}')
  answer=$(curl --silent --insecure --request "$1" --header "Authorization: Bearer $(<"$work/token")" --header "Content-Type: ${4:-application/json}" \
    --data "$3" --write-out '\n%{http_code}' "$server$2?dryRun=All")
  echo "$answer"
  [[ ${answer##*$'\n'} == 20[01] ]]
}
# What RBAC grants as a whole, and an admission policy narrows.
what_rbac_grants_is_narrowed() {
  local merge=application/merge-patch+json
  forbidden 'changes only its own labels' sent PATCH /api/v1/nodes/n1 '{"metadata":{"labels":{"node-role.kubernetes.io/control-plane":""}}}' "$merge"
  forbidden "nothing of a Node's spec" sent PATCH /api/v1/nodes/n1 '{"spec":{"taints":[{"key":"a","effect":"NoExecute"}]}}' "$merge"
  forbidden 'deletes only pods of a DaemonSet' sent DELETE /api/v1/namespaces/gpu-operator/pods/bystander ''
  forbidden 'deletes only pods of a DaemonSet' sent DELETE /api/v1/namespaces/team/pods/bystander ''
  forbidden 'evicts no pod of kube-system' sent POST /api/v1/namespaces/gpu-operator/pods/bystander/eviction '{"apiVersion":"policy/v1","kind":"Eviction","metadata":{"name":"bystander","namespace":"gpu-operator"}}'
  forbidden 'only its own Lease' sent POST "/apis/coordination.k8s.io/v1/namespaces/$namespace/leases" '{"apiVersion":"coordination.k8s.io/v1","kind":"Lease","metadata":{"name":"other"}}'
  forbidden 'nothing of a SharingPolicy' sent PATCH /apis/gpusharing.dev/v1alpha1/sharingpolicies/kept '{"spec":{"mode":"Enforce"}}' "$merge"
  forbidden 'approves no SharingRollout' sent POST /apis/gpusharing.dev/v1alpha1/sharingrollouts \
    '{"apiVersion":"gpusharing.dev/v1alpha1","kind":"SharingRollout","metadata":{"name":"mine"},"spec":{"policy":"kept","key":"any","toRevision":"v1-0","approved":true}}'
  forbidden 'writes only its own Events' sent POST /apis/events.k8s.io/v1/namespaces/a-team/events "{$event,\"metadata\":{\"name\":\"e\",\"namespace\":\"a-team\"},\"reportingController\":\"kubelet\"}"
  sent POST /apis/events.k8s.io/v1/namespaces/a-team/events "{$event,\"metadata\":{\"name\":\"e\",\"namespace\":\"a-team\"},\"reportingController\":\"gpusharing.dev/gpu-sharing-operator\"}"
  # An Event of somebody else is evidence. (Its texts are immutable for everybody.)
  forbidden 'writes only its own Events' sent PATCH /apis/events.k8s.io/v1/namespaces/a-team/events/evidence '{"metadata":{"annotations":{"seen":"false"}}}' "$merge"
}

lesser_tokens_do_less() {
  local user
  for user in scraper looker "system:serviceaccount:$namespace:default" "system:serviceaccount:$namespace:gpu-sharing-operator-cleanup" system:anonymous; do
    echo "== $user"
    refused_to "$user" <<<"$ESCALATIONS
patch nodes
delete pods --namespace gpu-operator
create pods --subresource=eviction --namespace a-team
patch configmaps --namespace gpu-operator
patch sharingpolicies.gpusharing.dev
create sharingrollouts.gpusharing.dev
update leases.coordination.k8s.io --namespace gpu-sharing-operator"
  done
  kubectl auth can-i --quiet --as scraper get /metrics
  refused_to system:anonymous <<<'get /metrics'
}

check "the chart is installed, with all that grants rights" installs_everything
check "the operator's token makes no other right" the_operators_token_makes_no_other_right
check "what RBAC grants it as a whole is narrowed" await 20 what_rbac_grants_is_narrowed
check "tokens of lesser accounts do less" lesser_tokens_do_less
close_checks
