#!/usr/bin/env bash
# The chart with the real helm against a real API server: rendered, refused where values are wrong, installed, upgraded,
# uninstalled. The image never runs: there is no kubelet.
#
#   chart_test.sh CLUSTER_DIR BUILD_DIR     a running cluster (tests/conformance/controlplane/cluster.sh), a built tree
#
# It leaves no release behind. Prints one line for each check and closes with "N passed, N failed".
# shellcheck source=tests/conformance/beside_cluster.sh
source "$(dirname "${BASH_SOURCE[0]}")/../conformance/beside_cluster.sh" "$@"

chart=$project/charts/gpu-sharing-operator release=gpu-sharing-operator
# shellcheck disable=SC2154  # $namespace and $work come from the sourced scripts.
account=system:serviceaccount:$namespace:$release

tidy() {
  helm uninstall second --namespace elsewhere --no-hooks --ignore-not-found --timeout 60s || true
  uninstall --ignore-not-found || true
  kubectl delete crd sharingpolicies.gpusharing.dev sharingrollouts.gpusharing.dev --ignore-not-found || true
}

# Without hooks: no kubelet would run the cleanup Job.
uninstall() { helm uninstall "$release" --namespace "$namespace" --no-hooks --timeout 60s "$@"; }

render() { helm template "$release" "$chart" --namespace "$namespace" "$@"; }

# everything: each optional object, so that it is checked too.
everything=(--set kai.namespace=kai-scheduler --set 'kai.reservationNamespaces={kai-resource-reservation}' --set 'kai.consumerNamespaces={team}'
  --set eviction.enabled=true --set daemonSetRestart.enabled=true --set modes.partitioning=Enforce --set 'rejectedPods.namespaces={team}' --set networkPolicy.enabled=true --set priorityAndFairness.enabled=true
  --set admissionWebhook.enabled=true --set admissionWebhook.pods=Warn
  --set metrics.secure.enabled=true --set metrics.serviceMonitor.enabled=true --set metrics.prometheusRule.enabled=true --set metrics.dashboard.enabled=true)

lint_is_clean() { helm lint --strict "$chart" | grep '0 chart(s) failed'; }

readme_lists_the_values() { python3 "$project/charts/values_table.py" --check; }

alerts_fire() {
  "$cluster/bin/promtool" check rules "$chart/files/alerts.yaml"
  (cd "$project/tests/chart" && "$cluster/bin/promtool" test rules alerts_test.yaml)
  render "${everything[@]}" --set metrics.prometheusRule.runbooks=https://wiki.example/gpu | python3 -c '
import sys, yaml
for o in yaml.safe_load_all(sys.stdin):
    if o and o["kind"] == "PrometheusRule":
        for rule in o["spec"]["groups"][0]["rules"]:
            assert rule["annotations"]["runbook_url"].startswith("https://wiki.example/gpu#"), rule
        print(yaml.safe_dump(o["spec"]))' >"$work/rules.yaml"
  "$cluster/bin/promtool" check rules "$work/rules.yaml"
}

# Stories of hours in virtual time: the alerts that belong to each fire, and none in a healthy one.
alerts_are_silent_in_healthy_stories() {
  mkdir -p "$work/stories"
  "$build/tests/sim/story/gso-alert-stories" "$chart/files/alerts.yaml" "$work/stories"
  "$cluster/bin/promtool" test rules "$work"/stories/*.yaml
}

# Each query as a rule, which promtool parses. $namespace is Grafana's.
dashboard_asks_what_prometheus_understands() {
  python3 - "$chart/files/dashboard.json" >"$work/queries.yaml" <<'PY'
import json, sys
queries = [t["expr"].replace("$namespace", "n") for p in json.load(open(sys.argv[1]))["panels"] for t in p["targets"]]
assert len(queries) > 25
rules = [{"record": f"q{i}", "expr": query} for i, query in enumerate(queries)]
print(json.dumps({"groups": [{"name": "dashboard", "rules": rules}]}))
PY
  "$cluster/bin/promtool" check rules "$work/queries.yaml"
}

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
  values_render 'settle-period: 30s' --set config.settle-period=30s
  values_render 'max-unavailable: 2' --set config.max-unavailable=2
  values_render 'max-mode: Approve' --set modes.rollouts=Approve
  values_render 'label-mode: verify' --set modes.labels=Observe
  values_render 'priorityClassName: system-cluster-critical' --set priorityClassName=system-cluster-critical
  values_render 'resources: [pods/eviction]' --set eviction.enabled=true
  values_render 'remove-rejected-pods: team,other' --set 'rejectedPods.namespaces={team,other}'
  values_render '-rejected-pods' --set 'rejectedPods.namespaces={team}'
  values_render 'cidr: 10.0.0.1/32' --set networkPolicy.enabled=true --set 'networkPolicy.apiServerCIDRs={10.0.0.1/32}'
  secure_metrics_render
  webhook_renders
  if render --set replicas=1 | grep -q '^kind: PodDisruptionBudget'; then return 1; fi
  if render --set crds.install=false | grep -q '^kind: CustomResourceDefinition'; then return 1; fi
  values_render 'helm.sh/hook: pre-delete' --set modes.rollouts=Observe
  if render --set cleanup.enabled=false | grep -q 'helm.sh/hook: pre-delete'; then return 1; fi
  if render --set modes.rollouts=Observe --set modes.labels=Observe | grep -q 'helm.sh/hook: pre-delete'; then return 1; fi
  values_render 'serviceAccountName: existing' --set serviceAccount.create=false --set serviceAccount.name=existing --show-only templates/cleanup.yaml
  if render --set admissionPolicy.enabled=false | grep -q '^kind: ValidatingAdmissionPolicy'; then return 1; fi
}

webhook_renders() {
  if render | grep -E 'ValidatingWebhookConfiguration|webhook'; then return 1; fi
  local on=(--set admissionWebhook.enabled=true)
  values_render '- --webhook-configuration=gpu-sharing-operator-webhook' "${on[@]}"
  values_render '- --webhook-server-names=gpu-sharing-operator-webhook.gpu-sharing-operator.svc' "${on[@]}"
  values_render 'resourceNames: [gpu-sharing-operator-webhook]' "${on[@]}"
  if grep -E 'pods.gpusharing.dev|webhook-refuse-pods|cert-manager' "$work/rendered.yaml"; then return 1; fi
  values_render 'pods.gpusharing.dev' "${on[@]}" --set admissionWebhook.pods=Warn
  values_render '- --webhook-refuse-pods=true' "${on[@]}" --set admissionWebhook.pods=Refuse
  # It never holds up its own namespace, the system's, or the operands', and nobody if it does not answer.
  objects 'all(w["failurePolicy"] == "Ignore" and w["timeoutSeconds"] == 2 and w["sideEffects"] == "None" for o in objects if o["kind"] == "ValidatingWebhookConfiguration" for w in o["webhooks"])' "${on[@]}"
  objects '[set(w["namespaceSelector"]["matchExpressions"][0]["values"]) for o in objects if o["kind"] == "ValidatingWebhookConfiguration" for w in o["webhooks"] if w["name"].startswith("pods")] == [{"kube-system", "kube-public", "kube-node-lease", "gpu-sharing-operator", "gpu-operator"}]' \
    "${on[@]}" --set admissionWebhook.pods=Warn
  # Certificates of somebody else: no Secret of ours, and no right on one, or on the configuration.
  values_render 'cert-manager.io/inject-ca-from: gpu-sharing-operator/gpu-sharing-operator-webhook' "${on[@]}" --set admissionWebhook.certManager.enabled=true
  grep -F 'selfSigned: {}' "$work/rendered.yaml"
  grep -F 'secretName: gpu-sharing-operator-webhook' "$work/rendered.yaml"
  if grep -E 'webhook-secret|resources: .(secrets|validatingwebhookconfigurations)' "$work/rendered.yaml"; then return 1; fi
  values_render 'kind: ClusterIssuer' "${on[@]}" --set admissionWebhook.certManager.enabled=true \
    --set admissionWebhook.certManager.issuerRef.kind=ClusterIssuer --set admissionWebhook.certManager.issuerRef.name=internal
  if grep -F selfSigned "$work/rendered.yaml"; then return 1; fi
  values_render 'caBundle: Q0E=' "${on[@]}" --set admissionWebhook.certificateSecret=mine --set admissionWebhook.caBundle=Q0E=
  grep -F 'secret: {secretName: mine}' "$work/rendered.yaml"
}

secure_metrics_render() {
  if render | grep -E 'tokenreviews|resources: .secrets|metrics-reader|scheme: https'; then return 1; fi
  local secure=(--set metrics.secure.enabled=true --set metrics.serviceMonitor.enabled=true)
  values_render 'serverName: gpu-sharing-operator-metrics.gpu-sharing-operator.svc' "${secure[@]}"
  values_render '- --tls-server-names=gpu-sharing-operator-metrics.gpu-sharing-operator.svc' "${secure[@]}"
  values_render 'resourceNames: [gpu-sharing-operator-serving]' "${secure[@]}"
  if grep -q 'kind: ClusterRoleBinding' <(render "${secure[@]}" --show-only templates/metrics.yaml); then return 1; fi
  values_render 'name: prometheus-k8s' "${secure[@]}" --set 'metrics.secure.readers[0].name=prometheus-k8s' --set 'metrics.secure.readers[0].namespace=monitoring'
  # A certificate of somebody else: no Secret of ours, and no right on one.
  values_render 'secret: {secretName: from-cert-manager}' "${secure[@]}" --set metrics.secure.certificateSecret=from-cert-manager
  if grep -E -- '-serving$|resources: .secrets|tls-secret' "$work/rendered.yaml"; then return 1; fi
  values_render '--client-ca-file=/etc/gpu-sharing-operator-client-ca/ca.crt' "${secure[@]}" --set metrics.secure.clientCAConfigMap=scrapers
}

# objects FILTER...: the rendered objects through a Python expression over the list `objects`, which must be true.
objects() {
  local expression=$1
  shift
  render "$@" | python3 -c '
import sys, yaml
class OnceOnly(yaml.SafeLoader):
    """A key twice is an error, as for the API server."""
def mapping(loader, node):
    keys = [loader.construct_object(key) for key, _ in node.value]
    assert len(keys) == len(set(keys)), f"a key twice: {keys}"
    return yaml.SafeLoader.construct_mapping(loader, node, deep=True)
OnceOnly.add_constructor("tag:yaml.org,2002:map", mapping)
objects = [o for o in yaml.load_all(sys.stdin, OnceOnly) if o]
pods = [o["spec"] if o["kind"] == "Pod" else o["spec"]["template"]["spec"] for o in objects if o["kind"] in ("Deployment", "Job", "Pod")]
assert len(pods) == 3
assert eval(sys.argv[1]), [(o["kind"], o["metadata"]) for o in objects]' "$expression"
}

names_and_labels_of_people_are_used() {
  local labelled=(--set commonLabels.team=gpu --set podLabels.team=pods --set metrics.serviceMonitor.enabled=true --set metrics.serviceMonitor.labels.team=metrics)
  objects 'all(o["metadata"]["name"].startswith("short") or o["kind"] == "CustomResourceDefinition" for o in objects)' --set fullnameOverride=short
  objects 'all("gso" in o["metadata"]["name"] or o["kind"] == "CustomResourceDefinition" for o in objects)' --set nameOverride=gso
  objects 'all(o["metadata"]["labels"]["team"] == ("metrics" if o["kind"] == "ServiceMonitor" else "gpu") for o in objects)' "${labelled[@]}"
  objects '[o["spec"]["template"]["metadata"]["labels"]["team"] for o in objects if o["kind"] == "Deployment"] == ["pods"]' "${labelled[@]}"
  # A selector is immutable: labels that people change must not be in it.
  objects 'not any("team" in o["spec"]["selector"].get("matchLabels", {}) for o in objects if o["kind"] == "Deployment")' "${labelled[@]}"
  # Helm names a wrong path of the values, but the right key.
  refused 'app.kubernetes.io/name' --set-string 'commonLabels.app\.kubernetes\.io/name=mine'
}

pods_get_what_clusters_ask_for() {
  objects 'all({"name": "HTTPS_PROXY", "value": "http://proxy:3128"} in pod["containers"][0]["env"] for pod in pods)' \
    --set 'extraEnv[0].name=HTTPS_PROXY' --set 'extraEnv[0].value=http://proxy:3128'
  objects 'all(pod["hostNetwork"] and pod["dnsPolicy"] == "ClusterFirstWithHostNet" for pod in pods)' --set hostNetwork=true
  objects 'not any("hostNetwork" in pod for pod in pods)'
  # shellcheck disable=SC2016  # Kubernetes expands it.
  values_render '--metrics-bind-address=$(POD_IP):9090' --set ports.metrics=9090
}

# Its security context constraints choose the user, and its DNS answers on port 5353 of the pods.
openshift_admits_the_pods() {
  if render | grep -E 'runAsUser|runAsGroup|fsGroup|supplementalGroups'; then return 1; fi
  objects '{5353, 53} == {p["port"] for o in objects if o["kind"] == "NetworkPolicy" for p in o["spec"]["egress"][0]["ports"]}' --set networkPolicy.enabled=true
}

# A Service's name, and a Job's in the label of its pod, has 63 characters at most.
long_names_fit() {
  local long=a1234567890123456789012345678901234567890123456789012
  helm template "$long" "$chart" --namespace "$namespace" | python3 -c '
import sys, yaml
names = {o["kind"]: o["metadata"]["name"] for o in yaml.safe_load_all(sys.stdin) if o}
for kind in ("Service", "Job", "Deployment", "Pod"):
    assert len(names[kind]) <= 63, names[kind]'
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
  refused leader-elect --set config.leader-elect=false
  refused lease-name --set config.lease-name=another
  refused serviceAccount --set serviceAccount.create=false
  refused imagee --set imagee.repository=x
  refused config --set config.setle=10s
  refused settle-period --set config.settle-period=soon
  refused label-mode --set config.label-mode=sometimes
  refused cluster-max-unavailable --set config.cluster-max-unavailable=200%
  refused page-size --set config.page-size=0
  refused operandNamespaces --set operandNamespaces=null --set 'operandNamespaces={}'
  refused operandNamespaces --set 'operandNamespaces={Not_Valid}'
  refused rollouts --set modes.rollouts=Sometimes
  refused labels --set modes.labels=Approve
  refused reservations --set modes.reservations=Approve
  refused rejectedPods --set 'rejectedPods.namespaces={Not_Valid}'
  refused reservationNamespaces --set 'kai.reservationNamespaces={Not_Valid}'
  refused mode --set config.mode=Sometimes
  refused max-mode --set config.max-mode=Observe
  refused pods --set admissionWebhook.pods=Sometimes
  refused timeoutSeconds --set admissionWebhook.timeoutSeconds=30
  refused 'admissionWebhook.certificateSecret needs admissionWebhook.caBundle' --set admissionWebhook.enabled=true --set admissionWebhook.certificateSecret=mine
  refused readers --set metrics.secure.readers[0].name=prometheus
  refused apiServerPorts --set 'networkPolicy.apiServerPorts={70000}'
  refused maxUnavailable --set podDisruptionBudget.maxUnavailable=0
  refused replicas --set replicas=-1
  refused deadlineSeconds --set cleanup.deadlineSeconds=5
  refused digest --set image.digest=sha256:short
  refused pullPolicy --set image.pullPolicy=Maybe
  # What the operator would refuse at its start, when the pods crash-loop.
  refused 'config.verify-timeout: 100h must be from 1s to 24h' --set config.verify-timeout=100h
  refused 'config.lease-duration must be greater than config.renew-deadline' --set config.lease-duration=5s
  refused 'config.renew-deadline must be greater than 1.2 times' --set config.retry-period=9s
  refused 'config.verify-timeout must be greater than config.node-status-lag' --set config.verify-timeout=5s
  refused 'config.label-mode=enforce has no effect' --set config.label-mode=enforce --set modes.labels=Observe
  refused remove-rejected-pods --set config.remove-rejected-pods=team
  refused debug-bind-address --set config.debug-bind-address=127.0.0.1:99999
  refused 'app.kubernetes.io/name' --set-string 'podLabels.app\.kubernetes\.io/name=mine'
  refused apiServerCIDRs --set 'networkPolicy.apiServerCIDRs={10.0.0.0/99}'
  values_render 'kai-gc-without-crds: false' --set config.kai-gc-without-crds=false --set 'kai.reservationNamespaces={r}'
  values_render 'resync-period: "0"' --set-string config.resync-period=0
}

roles_agree_with_the_registry() {
  render "${everything[@]}" >"$work/rendered.yaml"
  "$build/tests/chart/gso-permissions" >"$work/permissions.json"
  python3 "$project/tests/chart/rbac_test.py" "$work/rendered.yaml" "$work/permissions.json" "$namespace"
}

# writes_of ARGS...: what the roles let write, of the cluster's own objects: "patch nodes", one a line.
writes_of() {
  render "$@" | python3 -c '
import sys, yaml
for role in yaml.safe_load_all(sys.stdin):
    if role and role["kind"] in ("Role", "ClusterRole") and "annotations" not in role["metadata"]:  # Hooks have their own.
        for rule in role["rules"]:
            for resource in rule["resources"]:
                if resource in ("nodes", "pods", "pods/eviction", "configmaps", "daemonsets"):
                    for verb in set(rule["verbs"]) - {"get", "list", "watch"}:
                        print(verb, resource)' | sort -u | paste -sd, -
}

# What grows with modes.partitioning: pods of the whole cluster, nos's Lease and its ConfigMap by name, and nos's label.
partitioning_decides_what_is_granted() {
  local what=(--show-only templates/rbac.yaml --show-only templates/admissionpolicy.yaml)
  if render "${what[@]}" | grep -E 'gpu-partitioner|nos-device-plugin-configs|nebuly-nvidia|nos\[\.\]nebuly'; then return 1; fi
  values_render 'resourceNames: [gpu-partitioner.nebuly.com]' "${what[@]}" --set modes.partitioning=Observe
  grep -A 3 'resourceNames: \[nos-device-plugin-configs\]' "$work/rendered.yaml" | grep -x '  verbs: \[list, watch\]'
  if grep -F 'nos[.]nebuly' "$work/rendered.yaml"; then return 1; fi
  values_render '|nos[.]nebuly[.]com/gpu-partitioning|' "${what[@]}" --set modes.partitioning=Enforce
  grep -A 3 'resourceNames: \[nos-device-plugin-configs\]' "$work/rendered.yaml" | grep -x '  verbs: \[list, watch, patch\]'
}

modes_decide_what_may_be_written() {
  [[ $(writes_of) == 'create configmaps,delete pods,patch configmaps,patch nodes' ]]
  [[ $(writes_of --set eviction.enabled=true) == 'create configmaps,create pods/eviction,delete pods,patch configmaps,patch nodes' ]]
  [[ $(writes_of --set daemonSetRestart.enabled=true) == 'create configmaps,delete pods,patch configmaps,patch daemonsets,patch nodes' ]]
  [[ $(writes_of --set modes.rollouts=Observe --set daemonSetRestart.enabled=true) == 'patch nodes' ]]
  [[ $(writes_of --set modes.rollouts=Observe --set 'rejectedPods.namespaces={team}') == 'patch nodes' ]]
  [[ $(writes_of --set modes.rollouts=Approve) == "$(writes_of)" ]]
  [[ $(writes_of --set modes.rollouts=Observe --set eviction.enabled=true) == 'patch nodes' ]]
  [[ $(writes_of --set modes.labels=Observe) == "$(writes_of)" ]]
  [[ $(writes_of --set modes.rollouts=Observe --set modes.labels=Observe --set 'kai.reservationNamespaces={r}') == 'delete pods' ]]
  local without
  for without in Observe Off; do
    [[ -z $(writes_of --set modes.rollouts=Observe --set modes.labels=Observe --set modes.reservations=$without --set 'kai.reservationNamespaces={r}') ]]
  done
  [[ $(writes_of --set modes.rollouts=Observe --set modes.labels=Observe --set modes.partitioning=Enforce) == '' ]]
  [[ $(writes_of --set modes.partitioning=Enforce) == "$(writes_of)" ]]
  partitioning_decides_what_is_granted
  if render --set modes.reservations=Off --set kai.namespace=k --set 'kai.consumerNamespaces={c}' | grep -E 'name: .*-kai-'; then return 1; fi
  [[ -z $(writes_of --set modes.rollouts=Observe --set modes.labels=Observe) ]]
}

# The operator itself reads the file that the chart makes of its values.
operator_accepts_the_configuration() {
  render | python3 -c '
import sys, yaml
for o in yaml.safe_load_all(sys.stdin):
    if o and o["kind"] == "ConfigMap":
        sys.stdout.write(o["data"]["config.yaml"])' >"$work/config.yaml"
  "$build/controller/gpu-sharing-operator" run --config="$work/config.yaml" --help >/dev/null
  echo 'setle-period: 10s' >>"$work/config.yaml"
  local answer
  if answer=$("$build/controller/gpu-sharing-operator" run --config="$work/config.yaml" --kubeconfig=/dev/null 2>&1); then return 1; fi
  grep "did you mean 'settle-period'" <<<"$answer"
}

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
  render --set admissionWebhook.enabled=true --set admissionWebhook.certManager.enabled=true |
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
  kubectl wait --for=condition=Established --timeout=30s -f "$(readlink "$cluster/bin")/../prometheus-crds"
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
  kubectl wait --for=condition=Established --timeout=30s crd/sharingpolicies.gpusharing.dev crd/sharingrollouts.gpusharing.dev
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

check "helm lint is clean" lint_is_clean
check "the README lists every value" readme_lists_the_values
check "promtool accepts the alerts, and each fires on what it is for" alerts_fire
check "recorded stories fire the alerts that belong to them, healthy ones none" alerts_are_silent_in_healthy_stories
check "promtool understands the queries of the dashboard" dashboard_asks_what_prometheus_understands
check "the chart renders the same twice" renders_the_same_twice
check "values take effect" variants_render
check "names fit with a long release" long_names_fit
check "names and labels of people are used" names_and_labels_of_people_are_used
check "pods get environment, network and ports that clusters ask for" pods_get_what_clusters_ask_for
check "nothing is in the way of OpenShift" openshift_admits_the_pods
check "wrong values are refused by name" wrong_values_are_refused
check "the roles agree with the registry of reconcilers" roles_agree_with_the_registry
check "modes and eviction decide what may be written" modes_decide_what_may_be_written
check "the operator accepts the rendered configuration" operator_accepts_the_configuration
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
check "an operand namespace that is not there is named" missing_namespace_is_named
check "the package holds the CRDs" packages
close_checks
