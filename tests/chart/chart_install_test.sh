#!/usr/bin/env bash
# The chart with the real helm against a real API server: accepted, installed, upgraded, rolled back, uninstalled. The image
# never runs: there is no kubelet.
#
#   chart_install_test.sh CLUSTER_DIR BUILD_DIR     a running cluster (tests/conformance/controlplane/cluster.sh), a built tree
#
# It leaves no release behind. Prints one line for each check and closes with "N passed, N failed".
# shellcheck source=tests/chart/chart.sh
source "$(dirname "${BASH_SOURCE[0]}")/chart.sh" "$@"

tidy() {
  helm uninstall second --namespace elsewhere --no-hooks --ignore-not-found --timeout 60s || true
  uninstall --ignore-not-found || true
  kubectl delete crd sharingpolicies.gpusharing.dev sharingrollouts.gpusharing.dev --ignore-not-found || true
}

# Without hooks: no kubelet would run the cleanup Job.
uninstall() { helm uninstall "$release" --namespace "$namespace" --no-hooks --timeout 60s "$@"; }

publishes_every_kind() {
  kubectl get --raw /openapi/v2 | "$project/tests/chart/openapi_schemas.py" "$work/schemas"
  [[ -s $work/schemas/servicemonitor-monitoring-v1.json && -s $work/schemas/prometheusrule-monitoring-v1.json ]]
}

# Before it is sent anywhere: against schemas made of the server's own OpenAPI, CRDs included. A field too many fails.
schemas_hold() {
  # CRDs reach the OpenAPI a moment after they are established.
  await 30 publishes_every_kind
  local variant=("$cluster/bin/kubeconform" -strict -summary
    -schema-location "$work/schemas/{{ .ResourceKind }}{{ .KindSuffix }}.json")
  render | "${variant[@]}"
  render "${everything[@]}" | "${variant[@]}"
  # cert-manager does not run here: its fields are checked against schemas of the chart's tests.
  render --set admissionWebhook.enabled=true --set admissionWebhook.certManager.enabled=true \
    --set metrics.secure.enabled=true --set metrics.secure.certManager.enabled=true |
    "${variant[@]}" -schema-location "$project/tests/chart/cert_manager/{{ .ResourceKind }}{{ .KindSuffix }}.json"
  if render | sed 's/^  replicas: 2$/  replicaz: 2/' | "${variant[@]}" >"$work/typo"; then return 1; fi
  grep -q "'replicaz' not allowed" "$work/typo"
}

# Checked by the API server itself: schemas of its own OpenAPI, strict field validation, admission, the type check of CEL
# expressions. Stronger than a comparison with schemas, which knows none of the last three.
server_accepts_every_object() {
  kubectl create namespace "$namespace" --dry-run=client -o yaml | kubectl apply -f -
  local existing
  for existing in gpu-operator kai-scheduler kai-resource-reservation nebuly-nvidia team; do
    kubectl create namespace "$existing" --dry-run=client -o yaml | kubectl apply -f -
  done
  kubectl apply --server-side --force-conflicts -f "$(readlink "$cluster/bin")/../prometheus-crds"
  await 30 kubectl wait --for=condition=Established --timeout=30s -f "$(readlink "$cluster/bin")/../prometheus-crds"
  render "${everything[@]}" >"$work/everything.yaml"
  # A pod is admitted only when its account is there.
  kubectl create serviceaccount "$release" --namespace "$namespace"
  kubectl apply --server-side --force-conflicts --dry-run=server --validate=strict -f "$work/everything.yaml" >"$work/accepted"
  cat "$work/accepted"
  kubectl delete serviceaccount "$release" --namespace "$namespace"
  [[ $(wc -l <"$work/accepted") == $(grep -c '^kind: ' "$work/everything.yaml") ]]
}

# The roles that docs/rights.md offers to people.
server_accepts_the_documented_roles() {
  kubectl apply --server-side --dry-run=server --validate=strict -f "$project/docs/oncall-rbac.yaml" >"$work/roles"
  [[ $(wc -l <"$work/roles") == $(grep -c '^kind: ' "$project/docs/oncall-rbac.yaml") ]]
}

pods_are_restricted() {
  kubectl label namespace "$namespace" --overwrite pod-security.kubernetes.io/enforce=restricted
  render | python3 -c '
import sys, json, yaml
for o in yaml.safe_load_all(sys.stdin):
    if o and o["kind"] == "Deployment":
        pod = {"apiVersion": "v1", "kind": "Pod", "metadata": {"name": "probe", "namespace": o["metadata"]["namespace"]}, "spec": o["spec"]["template"]["spec"]}
        pod["spec"]["serviceAccountName"] = "default"
        print(json.dumps(pod))' | kubectl create --dry-run=server -f -
}

install() {
  helm install "$release" "$chart" --namespace "$namespace" --create-namespace --timeout 60s --set replicas=0 "$@"
}
upgrade() { helm upgrade "$release" "$chart" --namespace "$namespace" --timeout 60s --history-max 0 --set replicas=0 "$@"; }

installs() {
  install
  kubectl get -n "$namespace" "deployment/$release" "serviceaccount/$release" "configmap/$release-config" "role/$release" "rolebinding/$release"
  kubectl get "clusterrole/$release" "clusterrolebinding/$release"
  await 30 kubectl wait --for=condition=Established --timeout=30s crd/sharingpolicies.gpusharing.dev crd/sharingrollouts.gpusharing.dev
  kubectl get -n gpu-operator "role/$release-operands" "rolebinding/$release-operands"
  kubectl rollout history -n "$namespace" "deployment/$release"
}

# may yes|no VERB RESOURCE [ARGS...]
may() {
  local wanted=$1 answer
  shift
  answer=$(kubectl auth can-i --as="$account" "$@") || true
  [[ $answer == "$wanted" ]] || { echo "can-i $*: $answer, not $wanted"; return 1; }
}

account_may_what_it_needs_only() {
  may yes patch nodes
  may no create pods --subresource=eviction --namespace default
  may yes list daemonsets.apps --all-namespaces
  may yes delete pods --namespace gpu-operator
  may yes list configmaps --namespace gpu-operator
  may yes update leases.coordination.k8s.io/gpu-sharing-operator --namespace "$namespace"
  may no update leases.coordination.k8s.io --namespace "$namespace"
  may yes create sharingrollouts.gpusharing.dev
  may yes patch sharingrollouts.gpusharing.dev --subresource=status
  may no delete nodes
  may no delete pods --namespace default
  may no list configmaps --namespace default
  may yes patch configmaps --namespace gpu-operator  # Keys of inline profiles.
  may yes watch pods --namespace gpu-operator
  may no watch pods --all-namespaces
  may no get secrets --namespace "$namespace"
  may no patch validatingwebhookconfigurations.admissionregistration.k8s.io
  may no update sharingpolicies.gpusharing.dev
  may no patch daemonsets.apps --namespace gpu-operator
  upgrade --set daemonSetRestart.enabled=true
  may yes patch daemonsets.apps --namespace gpu-operator
  may no patch daemonsets.apps --namespace default
}

# People who may look at a cluster may look at policies and rollouts; those who may edit one may edit them.
people_see_and_edit_policies() {
  local verb
  kubectl create clusterrolebinding looks --clusterrole view --user looker
  kubectl create clusterrolebinding edits --clusterrole edit --user editor
  await 20 may_as looker yes list sharingpolicies.gpusharing.dev
  may_as looker yes get sharingrollouts.gpusharing.dev
  await 20 may_as editor yes patch sharingpolicies.gpusharing.dev
  may_as editor yes delete sharingrollouts.gpusharing.dev
  for verb in create update patch delete; do may_as looker no "$verb" sharingpolicies.gpusharing.dev; done
  may_as editor no patch sharingpolicies.gpusharing.dev --subresource status
  kubectl delete clusterrolebinding looks edits
}
may_as() { account=$1 may "${@:2}"; }

# With rejectedPods.namespaces: pods that a node refused, with a controller, and no others.
rejected_pods_alone_may_go() {
  local owner pod answer
  kubectl create namespace refusals
  kubectl create configmap owner --namespace refusals
  owner=$(kubectl get configmap owner --namespace refusals --output 'jsonpath={.metadata.uid}')
  upgrade --set 'rejectedPods.namespaces={refusals}'
  may yes delete pods --namespace refusals
  for pod in refused running orphan; do
    kubectl create --namespace refusals -f - <<<"{\"apiVersion\":\"v1\",\"kind\":\"Pod\",\"metadata\":{\"name\":\"$pod\",\"ownerReferences\":[{
      \"apiVersion\":\"v1\",\"kind\":\"ConfigMap\",\"name\":\"owner\",\"uid\":\"$owner\",\"controller\":$([[ $pod == orphan ]] && echo false || echo true)}]},
      \"spec\":{\"containers\":[{\"name\":\"c\",\"image\":\"x\",\"resources\":{\"limits\":{\"nvidia.com/gpu\":\"1\"}}}]}}"
    [[ $pod == running ]] ||
      kubectl patch pod "$pod" --namespace refusals --subresource status --type merge --patch '{"status":{"phase":"Failed","reason":"UnexpectedAdmissionError"}}'
  done
  # A policy is in force a moment after it was written.
  await 20 may_delete refused
  for pod in running orphan; do
    answer=$(kubectl delete pod "$pod" --namespace refusals --as="$account" --dry-run=server 2>&1) && return 1
    grep 'deletes only pods of a DaemonSet' <<<"$answer"
  done
  kubectl delete namespace refusals --wait=false
  upgrade
  may no delete pods --namespace refusals
}
may_delete() { kubectl delete pod "$1" --namespace refusals --as="$account" --dry-run=server; }

upgrade_rolls_only_with_the_configuration() {
  local before after
  before=$(kubectl get -n "$namespace" "deployment/$release" -o 'jsonpath={.metadata.generation}')
  upgrade
  after=$(kubectl get -n "$namespace" "deployment/$release" -o 'jsonpath={.metadata.generation}')
  [[ $before == "$after" ]]
  upgrade --set config.settle-period=20s
  after=$(kubectl get -n "$namespace" "deployment/$release" -o 'jsonpath={.metadata.generation}')
  [[ $before != "$after" ]]
  kubectl get -n "$namespace" "configmap/$release-config" -o 'jsonpath={.data.config\.yaml}' | grep 'settle-period: 20s'
}

# A certificate that the chart issued stays over an upgrade. In its last year an upgrade renews it, and the authority before
# stays trusted until pods have read the new one.
issued_certificate_is_kept_and_renewed() {
  local on=(--set admissionWebhook.enabled=true)
  install "${on[@]}"
  issued tls.crt >"$work/first.crt"
  upgrade "${on[@]}"
  cmp <(issued tls.crt) "$work/first.crt"
  kubectl annotate secret "$release-webhook-tls" --namespace "$namespace" --overwrite "gpusharing.dev/certificate-end=$(date --utc --date '+300 days' +%FT%TZ)"
  upgrade "${on[@]}"
  issued tls.crt >"$work/second.crt"
  if cmp "$work/first.crt" "$work/second.crt"; then return 1; fi
  kubectl get validatingwebhookconfigurations "$release-webhook" --output 'jsonpath={.webhooks[0].clientConfig.caBundle}' | base64 --decode >"$work/ca.crt"
  cmp <(issued ca.crt) "$work/ca.crt"
  openssl verify -CAfile "$work/ca.crt" -purpose sslserver -verify_hostname "$release-webhook.$namespace.svc" "$work/first.crt" "$work/second.crt"
  (($(grep -c 'BEGIN CERTIFICATE' "$work/ca.crt") == 2))
  uninstall --wait
  if kubectl get secret "$release-webhook-tls" --namespace "$namespace"; then return 1; fi
}
issued() { kubectl get secret "$release-webhook-tls" --namespace "$namespace" --output "jsonpath={.data.${1//./\\.}}" | base64 --decode; }

# The next release has another column; going back takes it away. The objects stay, with what they hold.
upgrade_and_rollback_reach_the_crds() {
  local revision next=$work/next/gpu-sharing-operator columns='jsonpath={.spec.versions[0].additionalPrinterColumns[*].name}'
  kubectl create -f - <<<'{"apiVersion":"gpusharing.dev/v1alpha1","kind":"SharingPolicy","metadata":{"name":"kept"},"spec":{"priority":7}}'
  revision=$(helm history "$release" --namespace "$namespace" --max 1 -o json | python3 -c 'import json, sys; print(json.load(sys.stdin)[-1]["revision"])')
  mkdir -p "$work/next"
  cp -rL "$chart" "$next"
  sed -i 's/{name: Mode,/{name: ModeOfNext,/' "$next"/files/crds/*sharingpolicies.yaml
  helm upgrade "$release" "$next" --namespace "$namespace" --timeout 60s --set replicas=0
  kubectl get crd sharingpolicies.gpusharing.dev -o "$columns" | grep ModeOfNext
  helm rollback "$release" "$revision" --namespace "$namespace" --timeout 60s
  if kubectl get crd sharingpolicies.gpusharing.dev -o "$columns" | grep ModeOfNext; then return 1; fi
  policy_is_kept
}

# crd_annotations ANNOTATION...: of the CRD of SharingPolicies.
crd_annotation() { kubectl get crd sharingpolicies.gpusharing.dev -o "jsonpath={.metadata.annotations.${1//./\\.}}"; }
policy_is_kept() { [[ $(kubectl get sharingpolicies kept -o 'jsonpath={.spec.priority}') == 7 ]]; }
revision() { helm history "$release" --namespace "$namespace" --max 1 -o json | python3 -c 'import json, sys; print(json.load(sys.stdin)[-1]["revision"])'; }
# The CRDs as a release before this one had them.
older_crds() { cat "$project"/crds/*.yaml | sed '/^  annotations:$/d; /resource-policy/d; s/^apiVersion: apiext/---\n&/'; }

# A repair takes helm's annotations off. The next upgrade puts them back, and deletes nothing.
repaired_crds_are_taken_back() {
  local crds
  for crds in "$(cat "$project"/crds/*.yaml | sed 's/^apiVersion: apiext/---\n&/')" "$(older_crds)"; do
    kubectl replace -f - <<<"$crds"
    [[ -z $(crd_annotation meta.helm.sh/release-name) ]]
    upgrade >"$work/notes"
    if grep 'does not change it' "$work/notes"; then return 1; fi
    policy_is_kept
    [[ $(crd_annotation meta.helm.sh/release-name) == "$release" && $(crd_annotation helm.sh/resource-policy) == keep ]]
  done
}

# Without the record of what the last revision brought, as an older chart leaves it, nobody knows whether helm would delete
# a CRD that does not say that it is kept.
what_helm_could_delete_is_refused() {
  local answer before
  kubectl annotate configmap "$release-config" --namespace "$namespace" gpusharing.dev/crds-
  kubectl replace -f - <<<"$(older_crds)"
  before=$(revision)
  if answer=$(upgrade 2>&1); then return 1; fi
  # shellcheck disable=SC2016
  grep -F 'Nothing has been changed. Run `kubectl annotate crd sharingpolicies.gpusharing.dev helm.sh/resource-policy=keep`' <<<"$answer"
  [[ $(revision) == "$before" ]]
  policy_is_kept
  kubectl annotate crd sharingpolicies.gpusharing.dev sharingrollouts.gpusharing.dev helm.sh/resource-policy=keep
  upgrade | grep 'was applied by another tool'
  policy_is_kept
}

# Whatever a revision leaves out and brings back, in any order. Helm cannot roll back to a revision with CRDs from one that
# left them out (it wants to create what exists): such a rollback fails, and loses nothing.
no_order_of_operations_loses_policies() {
  local without with
  without=$(revision)
  take_crds_over
  with=$(revision)
  local step
  for step in "upgrade --set crds.install=false" "helm rollback $release $with" "helm rollback $release $without" "helm rollback $release $with" \
    "another_owner" "upgrade" "helm rollback $release $with" "kubectl replace -f $project/crds" "helm rollback $release $without" upgrade; do
    echo "== $step"
    if [[ $step == helm* ]]; then
      $step --namespace "$namespace" --timeout 60s --history-max 0 || kubectl get crd sharingpolicies.gpusharing.dev
    else
      $step
    fi
    policy_is_kept
  done
  take_crds_over
  policy_is_kept
  [[ $(crd_annotation meta.helm.sh/release-name) == "$release" && $(crd_annotation helm.sh/resource-policy) == keep ]]
}
# By the commands that the chart's notes print.
take_crds_over() {
  kubectl annotate crd sharingpolicies.gpusharing.dev sharingrollouts.gpusharing.dev --overwrite \
    meta.helm.sh/release-namespace="$namespace" meta.helm.sh/release-name="$release"
  kubectl label crd sharingpolicies.gpusharing.dev sharingrollouts.gpusharing.dev --overwrite app.kubernetes.io/managed-by=Helm
  upgrade
}
another_owner() { kubectl annotate crd sharingpolicies.gpusharing.dev sharingrollouts.gpusharing.dev --overwrite meta.helm.sh/release-name=another; }

rollback_works() { helm rollback "$release" 1 --namespace "$namespace" --timeout 60s; }

uninstall_leaves_the_record() {
  uninstall --wait
  kubectl get sharingpolicies kept
  local left
  left=$(kubectl get deployments,services,serviceaccounts,configmaps,roles,rolebindings,clusterroles,clusterrolebindings,validatingadmissionpolicies,validatingadmissionpolicybindings,flowschemas,poddisruptionbudgets \
    --all-namespaces --selector app.kubernetes.io/name=gpu-sharing-operator --output name)
  [[ -z $left ]] || { echo "left: $left"; return 1; }
}

installs_over_the_kept_crds() {
  install
  kubectl get sharingpolicies kept
  uninstall --wait
}

# CRDs that kubectl or Argo CD applied belong to them: helm would refuse to touch them, so the chart leaves them out.
installs_beside_crds_of_another_owner() {
  kubectl delete crd sharingpolicies.gpusharing.dev sharingrollouts.gpusharing.dev
  kubectl apply --server-side -f "$project/crds"
  install
  uninstall --wait
  kubectl get crd sharingpolicies.gpusharing.dev
}

# A release that went left its CRDs. Another one leaves them alone, and says how to take them over.
takes_over_the_crds_of_a_release_that_is_gone() {
  local other=(second "$chart" --namespace elsewhere --timeout 60s --set replicas=0)
  install
  uninstall --wait
  helm install "${other[@]}" --create-namespace >"$work/notes"
  grep "belongs to release $namespace/$release, so this release does not change it" "$work/notes"
  if helm get manifest second --namespace elsewhere | grep '^kind: CustomResourceDefinition'; then return 1; fi
  # The commands of the notes.
  sed -n '/^  kubectl annotate crd/,/release-name/p' "$work/notes" >"$work/take_over"
  [[ $(grep -c annotate "$work/take_over") == 2 ]]
  # shellcheck source=/dev/null
  source "$work/take_over"
  helm upgrade "${other[@]}" >"$work/notes"
  if grep 'does not change it' "$work/notes"; then return 1; fi
  helm get manifest second --namespace elsewhere | grep -c '^kind: CustomResourceDefinition' | grep -x 2
  kubectl get sharingpolicies kept
}

# Two operators that may write would roll one fleet against each other. One that observes may stand beside.
second_release_over_the_same_plugins_is_refused() {
  local answer
  kubectl create namespace "$namespace" --dry-run=client -o yaml | kubectl apply -f -
  if answer=$(install 2>&1); then return 1; fi
  grep 'release elsewhere/second already rolls the device plugins in "gpu-operator"' <<<"$answer"
  install --set modes.rollouts=Observe
  helm upgrade second "$chart" --namespace elsewhere --timeout 60s --set replicas=0
  uninstall --wait
  helm uninstall second --namespace elsewhere --no-hooks --wait --timeout 60s
}

# --- From an older release of the chart.

installs_the_former_release() {
  kubectl delete crd sharingpolicies.gpusharing.dev sharingrollouts.gpusharing.dev --ignore-not-found
  helm install "$release" "$former" --namespace "$namespace" --create-namespace --timeout 60s --set replicas=0 \
    --set config.settle-period=30s --set nodeSelector.pool=infra
  await 20 kubectl wait --for=condition=Established --timeout=5s crd/sharingpolicies.gpusharing.dev
  kubectl create -f - <<<'{"apiVersion":"gpusharing.dev/v1alpha1","kind":"SharingPolicy","metadata":{"name":"kept"},"spec":{"priority":7}}'
  policy_is_kept
}
upgrades_from() { helm upgrade "$release" "$chart" --namespace "$namespace" --timeout 60s "$@"; }
values_are_kept() {
  kubectl get configmap "$release-config" --namespace "$namespace" --output 'jsonpath={.data.config\.yaml}' | grep 'settle-period: 30s'
  [[ $(kubectl get deployment "$release" --namespace "$namespace" --output 'jsonpath={.spec.template.spec.nodeSelector.pool} {.spec.replicas}') == 'infra 0' ]]
}
upgrades_from_the_former_release_and_back() {
  local reuse
  for reuse in --reuse-values --reset-then-reuse-values; do
    echo "== $reuse"
    upgrades_from "$reuse"
    policy_is_kept
    values_are_kept
    [[ $(crd_annotation helm.sh/resource-policy) == keep && -n $(crd_annotation meta.helm.sh/release-name) ]]
    kubectl get configmap "$release-config" --namespace "$namespace" --output 'jsonpath={.data.config\.yaml}' | grep -F 'partitioning-mode: "Off"'
    helm rollback "$release" 1 --namespace "$namespace" --timeout 60s
    policy_is_kept
    values_are_kept
  done
}
# The repair of the former release's manual, and the next upgrade: refused first, then as its message says.
upgrades_from_a_repaired_former_release() {
  local answer before
  tar -xzf "$former" -C "$work" gpu-sharing-operator/files/crds
  kubectl replace -f "$work/gpu-sharing-operator/files/crds"
  before=$(revision)
  if answer=$(upgrades_from --reuse-values 2>&1); then return 1; fi
  grep -F 'Nothing has been changed.' <<<"$answer"
  [[ $(revision) == "$before" ]]
  policy_is_kept
  kubectl annotate crd sharingpolicies.gpusharing.dev sharingrollouts.gpusharing.dev helm.sh/resource-policy=keep
  upgrades_from --reuse-values
  policy_is_kept
  take_crds_over
  policy_is_kept
  uninstall --wait
  policy_is_kept
}

missing_namespace_is_named() {
  local answer
  if answer=$(install --set 'operandNamespaces={not-there}' 2>&1); then return 1; fi
  grep 'not-there' <<<"$answer"
  uninstall --ignore-not-found
}

packages() {
  helm package "$chart" --destination "$work"
  tar -tzf "$work"/gpu-sharing-operator-*.tgz >"$work/files"
  grep -c '/files/crds/.*yaml' "$work/files" | grep -x 2
}

check "the server accepts every object" server_accepts_every_object
check "the server accepts the roles that the documentation offers" server_accepts_the_documented_roles
check "kubeconform finds every rendered object in step with the server's schemas" schemas_hold
check "pods are admitted where Pod Security is restricted" pods_are_restricted
check "helm installs" installs
check "the ServiceAccount may do what it needs, and no more" account_may_what_it_needs_only
check "view and edit reach policies and rollouts" people_see_and_edit_policies
check "with rejectedPods.namespaces, pods that a node refused may be deleted there, and no others" rejected_pods_alone_may_go
check "an upgrade rolls the Deployment only when its configuration changed" upgrade_rolls_only_with_the_configuration
check "an upgrade and its rollback reach the CRDs, and keep the objects" upgrade_and_rollback_reach_the_crds
check "CRDs that kubectl has repaired are taken back by the next upgrade" repaired_crds_are_taken_back
check "an upgrade that could delete CRDs is refused before it changes anything" what_helm_could_delete_is_refused
check "no order of upgrades, rollbacks, repairs and owners loses a policy" no_order_of_operations_loses_policies
check "helm rolls back to the first revision" rollback_works
check "uninstalling leaves CRDs and policies, and nothing else" uninstall_leaves_the_record
check "it installs again over the CRDs that were kept" installs_over_the_kept_crds
check "CRDs of a release that is gone are left alone, and taken over by the commands of the notes" takes_over_the_crds_of_a_release_that_is_gone
check "a second release over the same device plugins is refused, and may observe" second_release_over_the_same_plugins_is_refused
check "it installs beside CRDs of another owner" installs_beside_crds_of_another_owner
check "an older release of the chart is installed" installs_the_former_release
check "it is upgraded with the values that it had, in both ways, and rolled back: policies and values stay" upgrades_from_the_former_release_and_back
check "after a repair of its CRDs the upgrade is refused first, and then loses nothing" upgrades_from_a_repaired_former_release
check "a certificate that the chart issued is kept, and renewed in its last year" issued_certificate_is_kept_and_renewed
check "an operand namespace that is not there is named" missing_namespace_is_named
check "the package holds the CRDs" packages
close_checks
