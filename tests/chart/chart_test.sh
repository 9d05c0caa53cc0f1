#!/usr/bin/env bash
# The chart with the real helm against a real API server: rendered, refused where values are wrong, installed, upgraded,
# uninstalled. The image never runs: there is no kubelet.
#
#   chart_test.sh CLUSTER_DIR BUILD_DIR     a running cluster (tests/conformance/controlplane/cluster.sh), a built tree
#
# It leaves no release behind. Prints one line for each check and closes with "N passed, N failed".
set -euo pipefail
shopt -s inherit_errexit

here=$(cd "$(dirname "${BASH_SOURCE[0]}")" && pwd)
# shellcheck source=tests/conformance/checks.sh
source "$here/../conformance/checks.sh"
cluster=$1 build=$2
chart=$here/../../charts/gpu-sharing-operator
release=gpu-sharing-operator namespace=gpu-sharing-operator
account=system:serviceaccount:$namespace:$release
export KUBECONFIG=$cluster/admin.kubeconfig
export HELM_CACHE_HOME=$work/helm/cache HELM_CONFIG_HOME=$work/helm/config HELM_DATA_HOME=$work/helm/data

# helm warns of the chart's link to the project's crds/ each time; the link is meant.
helm() { "$cluster/bin/helm" "$@" 2> >(grep -v 'found symbolic link in path' >&2); }
kubectl() { "$cluster/bin/kubectl" --request-timeout=20s "$@"; }

tidy() {
  helm uninstall "$release" --namespace "$namespace" --ignore-not-found || true
  kubectl delete sharingpolicies default --ignore-not-found || true
}

render() { helm template "$release" "$chart" --namespace "$namespace" "$@"; }

lint_is_clean() { helm lint --strict "$chart" | grep '0 chart(s) failed'; }

renders_the_same_twice() { cmp <(render) <(render); }

# values_render WHAT-IS-THERE ARGS...
values_render() {
  local wanted=$1
  shift
  render "$@" >"$work/rendered.yaml"
  grep -qF -- "$wanted" "$work/rendered.yaml" || { echo "no '$wanted' in:"; cat "$work/rendered.yaml"; return 1; }
}

variants_render() {
  values_render 'image: r.example/op@sha256:0000000000000000000000000000000000000000000000000000000000000000' \
    --set image.repository=r.example/op --set image.digest=sha256:0000000000000000000000000000000000000000000000000000000000000000
  values_render 'image: r.example/op:v9' --set image.repository=r.example/op --set image.tag=v9
  values_render 'serviceAccountName: existing' --set serviceAccount.create=false --set serviceAccount.name=existing
  values_render 'namespace: second' --set 'operandNamespaces={gpu-operator,second}'
  values_render 'settle: 30s' --set config.settle=30s
  values_render 'maxUnavailable: 2' --set defaultPolicy.rollout.maxUnavailable=2
  values_render 'priorityClassName: system-cluster-critical' --set priorityClassName=system-cluster-critical
  if render --set defaultPolicy.create=false | grep -q '^kind: SharingPolicy'; then return 1; fi
}

# refused WHAT-THE-MESSAGE-NAMES ARGS...
refused() {
  local wanted=$1 answer
  shift
  if answer=$(render "$@" 2>&1); then
    echo "accepted: $*"
    return 1
  fi
  grep -qF -- "$wanted" <<<"$answer" || { echo "refused, but without '$wanted': $answer"; return 1; }
}

wrong_values_are_refused() {
  refused imagee --set imagee.repository=x
  refused config --set config.setle=10s
  refused settle --set config.settle=soon
  refused label-mode --set config.label-mode=sometimes
  refused cluster-max-unavailable --set config.cluster-max-unavailable=200%
  refused page-size --set config.page-size=0
  refused operandNamespaces --set operandNamespaces=null --set 'operandNamespaces={}'
  refused operandNamespaces --set 'operandNamespaces={Not_Valid}'
  refused mode --set defaultPolicy.mode=Sometimes
  refused replicas --set replicas=-1
  refused digest --set image.digest=sha256:short
  refused pullPolicy --set image.pullPolicy=Maybe
}

roles_agree_with_the_registry() {
  render >"$work/rendered.yaml"
  "$build/tests/chart/gso-permissions" >"$work/permissions.json"
  python3 "$here/rbac_test.py" "$work/rendered.yaml" "$work/permissions.json" "$namespace"
}

# The operator itself reads the file that the chart makes of its values.
operator_accepts_the_configuration() {
  render | python3 -c '
import sys, yaml
for o in yaml.safe_load_all(sys.stdin):
    if o and o["kind"] == "ConfigMap":
        sys.stdout.write(o["data"]["config.yaml"])' >"$work/config.yaml"
  "$build/controller/gpu-sharing-operator" run --config="$work/config.yaml" --help >/dev/null
  echo 'setle: 10s' >>"$work/config.yaml"
  local answer
  if answer=$("$build/controller/gpu-sharing-operator" run --config="$work/config.yaml" --kubeconfig=/dev/null 2>&1); then return 1; fi
  grep "did you mean 'settle'" <<<"$answer"
}

server_accepts_every_object() {
  kubectl create namespace "$namespace" --dry-run=client -o yaml | kubectl apply -f -
  kubectl create namespace gpu-operator --dry-run=client -o yaml | kubectl apply -f -
  kubectl apply --server-side --force-conflicts -f "$here/../../crds"
  kubectl wait --for=condition=Established --timeout=30s -f "$here/../../crds"
  render | kubectl apply --server-side --force-conflicts --dry-run=server --validate=strict -f -
}

install() {
  helm install "$release" "$chart" --namespace "$namespace" --create-namespace --timeout 60s "$@"
}

installs() {
  install
  kubectl get -n "$namespace" "deployment/$release" "serviceaccount/$release" "configmap/$release-config" "role/$release" "rolebinding/$release"
  kubectl get "clusterrole/$release" "clusterrolebinding/$release" sharingpolicies/default
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
  may yes list daemonsets.apps --all-namespaces
  may yes delete pods --namespace gpu-operator
  may yes list configmaps --namespace gpu-operator
  may yes update leases.coordination.k8s.io --namespace "$namespace"
  may yes create sharingrollouts.gpusharing.dev
  may yes patch sharingrollouts.gpusharing.dev --subresource=status
  may no delete nodes
  may no delete pods --namespace default
  may no list configmaps --namespace default
  may no patch configmaps --namespace gpu-operator
  may no get secrets --namespace "$namespace"
  may no update sharingpolicies.gpusharing.dev
  may no patch daemonsets.apps --namespace gpu-operator
}

upgrade_rolls_only_with_the_configuration() {
  local before after
  before=$(kubectl get -n "$namespace" "deployment/$release" -o 'jsonpath={.metadata.generation}')
  helm upgrade "$release" "$chart" --namespace "$namespace" --timeout 60s
  after=$(kubectl get -n "$namespace" "deployment/$release" -o 'jsonpath={.metadata.generation}')
  [[ $before == "$after" ]]
  helm upgrade "$release" "$chart" --namespace "$namespace" --timeout 60s --set config.settle=20s
  after=$(kubectl get -n "$namespace" "deployment/$release" -o 'jsonpath={.metadata.generation}')
  [[ $before != "$after" ]]
  kubectl get -n "$namespace" "configmap/$release-config" -o 'jsonpath={.data.config\.yaml}' | grep 'settle: 20s'
}

# What an administrator changed in the policy is not what helm puts back: helm merges three ways.
upgrade_keeps_an_edit_of_the_policy() {
  kubectl patch sharingpolicies default --type merge --patch '{"spec":{"rollout":{"maxUnavailable":5}}}'
  helm upgrade "$release" "$chart" --namespace "$namespace" --timeout 60s
  [[ $(kubectl get sharingpolicies default -o 'jsonpath={.spec.rollout.maxUnavailable}') == 5 ]]
}

rollback_works() { helm rollback "$release" 1 --namespace "$namespace" --timeout 60s; }

uninstall_leaves_the_record() {
  helm uninstall "$release" --namespace "$namespace" --wait --timeout 60s
  kubectl get sharingpolicies default
  kubectl get crd sharingpolicies.gpusharing.dev sharingrollouts.gpusharing.dev
  local left
  left=$(kubectl get deployments,serviceaccounts,configmaps,roles,rolebindings,clusterroles,clusterrolebindings --all-namespaces \
    --selector app.kubernetes.io/name=gpu-sharing-operator --output name)
  [[ -z $left ]] || { echo "left: $left"; return 1; }
}

installs_over_the_kept_policy() {
  install
  helm uninstall "$release" --namespace "$namespace" --wait --timeout 60s
}

installs_over_a_policy_of_the_operator() {
  kubectl delete sharingpolicies default
  kubectl create -f - <<<'{"apiVersion":"gpusharing.dev/v1alpha1","kind":"SharingPolicy","metadata":{"name":"default"},"spec":{"priority":-1000}}'
  install
  helm upgrade "$release" "$chart" --namespace "$namespace" --timeout 60s
  helm uninstall "$release" --namespace "$namespace" --wait --timeout 60s
  kubectl get sharingpolicies default
}

missing_namespace_is_named() {
  local answer
  if answer=$(install --set 'operandNamespaces={not-there}' 2>&1); then return 1; fi
  grep 'not-there' <<<"$answer"
  helm uninstall "$release" --namespace "$namespace" --ignore-not-found
}

packages() {
  helm package "$chart" --destination "$work"
  tar -tzf "$work"/gpu-sharing-operator-*.tgz | grep -c '/crds/.*yaml' | grep -x 2
}

check "helm lint is clean" lint_is_clean
check "the chart renders the same twice" renders_the_same_twice
check "values take effect" variants_render
check "wrong values are refused by name" wrong_values_are_refused
check "the roles agree with the registry of reconcilers" roles_agree_with_the_registry
check "the operator accepts the rendered configuration" operator_accepts_the_configuration
check "the server accepts every object" server_accepts_every_object
check "helm installs" installs
check "the ServiceAccount may do what it needs, and no more" account_may_what_it_needs_only
check "an upgrade rolls the Deployment only when its configuration changed" upgrade_rolls_only_with_the_configuration
check "an upgrade keeps an administrator's edit of the policy" upgrade_keeps_an_edit_of_the_policy
check "helm rolls back" rollback_works
check "uninstalling leaves policy and CRDs, and nothing else" uninstall_leaves_the_record
check "it installs again over the policy that was kept" installs_over_the_kept_policy
check "it installs over a policy that the operator made" installs_over_a_policy_of_the_operator
check "an operand namespace that is not there is named" missing_namespace_is_named
check "the package holds the CRDs" packages
close_checks
