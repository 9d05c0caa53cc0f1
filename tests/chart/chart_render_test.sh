#!/usr/bin/env bash
# What the chart renders, with the real helm: each value, what is refused, roles, alerts and dashboard.
#
#   chart_render_test.sh CLUSTER_DIR BUILD_DIR     a running cluster (tests/conformance/controlplane/cluster.sh), a built tree
#
# Prints one line for each check and closes with "N passed, N failed".
# shellcheck source=tests/chart/chart.sh
source "$(dirname "${BASH_SOURCE[0]}")/chart.sh" "$@"

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
  values_render 'operand-namespaces: gpu-operator,second' --set 'operandNamespaces={gpu-operator,second}'
  values_render 'operand-namespaces: gpu-operator,nebuly-nvidia' --set modes.partitioning=Observe
  values_render 'namespace: second' --set 'operandNamespaces={gpu-operator,second}'
  values_render 'settle-period: 30s' --set config.settle-period=30s
  values_render 'max-unavailable: 2' --set config.max-unavailable=2
  values_render 'max-mode: Approve' --set modes.rollouts=Approve
  values_render 'label-mode: verify' --set modes.labels=Observe
  values_render 'priorityClassName: system-cluster-critical' --set priorityClassName=system-cluster-critical
  values_render 'resources: [pods/eviction]' --set eviction.enabled=true
  values_render 'remove-rejected-pods: team,other' --set 'rejectedPods.namespaces={team,other}'
  values_render '-rejected-pods' --set 'rejectedPods.namespaces={team}'
  network_policy_renders
  secure_metrics_render
  webhook_renders
  standalone_mps_renders
  if grep -q '^kind: PodDisruptionBudget' <<<"$(render --set replicas=1)"; then return 1; fi
  if grep -q '^kind: CustomResourceDefinition' <<<"$(render --set crds.install=false)"; then return 1; fi
  values_render 'helm.sh/hook: pre-delete' --set modes.rollouts=Observe
  if grep -q 'helm.sh/hook: pre-delete' <<<"$(render --set cleanup.enabled=false)"; then return 1; fi
  if grep -q 'helm.sh/hook: pre-delete' <<<"$(render --set modes.rollouts=Observe --set modes.labels=Observe)"; then return 1; fi
  values_render 'serviceAccountName: existing' --set serviceAccount.create=false --set serviceAccount.name=existing --show-only templates/cleanup.yaml
  if grep -q '^kind: ValidatingAdmissionPolicy' <<<"$(render --set admissionPolicy.enabled=false)"; then return 1; fi
}

network_policy_renders() {
  # Of the rule about the API server.
  local ports='[p["port"] for o in objects if o["kind"] == "NetworkPolicy" for p in o["spec"]["egress"][1]["ports"]]' endpoint
  objects "$ports == [443, 6443, 8443, 16443]"
  objects "$ports == [443, 3128]" --set 'networkPolicy.apiServerPorts={443}' --set 'extraEnv[0].name=HTTPS_PROXY' --set 'extraEnv[0].value=http://proxy:3128/'
  endpoint=$(kubectl get endpointslices kubernetes --namespace default --output 'jsonpath={.ports[0].port}')
  objects "$ports == [443, $endpoint]" --set 'networkPolicy.apiServerPorts={443}' --dry-run=server
  # No pod reaches the probes, and only named ones the metrics.
  objects '[[p["port"] for p in rule["ports"]] for o in objects if o["kind"] == "NetworkPolicy" for rule in o["spec"]["ingress"]] == [["metrics"]]'
  objects '[[p["port"] for p in rule["ports"]] for o in objects if o["kind"] == "NetworkPolicy" for rule in o["spec"]["ingress"]] == [["metrics"], ["webhook"]]' \
    --set admissionWebhook.enabled=true --set admissionWebhook.certManager.enabled=true
  values_render 'cidr: 10.0.0.1/32' --set 'networkPolicy.apiServerCIDRs={10.0.0.1/32}'
  if grep -q '^kind: NetworkPolicy' <<<"$(render --set networkPolicy.enabled=false)"; then return 1; fi
}

webhook_renders() {
  if render | grep -E 'ValidatingWebhookConfiguration|webhook'; then return 1; fi
  local issued=(--dry-run=server --set admissionWebhook.enabled=true) on=(--set admissionWebhook.enabled=true --set admissionWebhook.certManager.enabled=true)
  values_render '- --webhook-cert-file=/etc/gpu-sharing-operator-webhook/tls.crt' "${issued[@]}"
  values_render 'secret: {secretName: gpu-sharing-operator-webhook-tls}' "${issued[@]}"
  if grep -E '(pods|workloads).gpusharing.dev|webhook-refuse-pods|cert-manager' "$work/rendered.yaml"; then return 1; fi
  # The API server trusts the one certificate that the pods show, for the Service's name.
  objects '{w["clientConfig"]["caBundle"] for o in objects if o["kind"] == "ValidatingWebhookConfiguration" for w in o["webhooks"]} == {o["data"]["ca.crt"] for o in objects if o["kind"] == "Secret"}' "${issued[@]}"
  issues_a_certificate_for gpu-sharing-operator-webhook.gpu-sharing-operator.svc "${issued[@]}"
  refused 'Set admissionWebhook.certManager.enabled=true, or admissionWebhook.certificateSecret to a Secret of yours' --set admissionWebhook.enabled=true
  values_render 'pods.gpusharing.dev' "${on[@]}" --set admissionWebhook.pods=Warn
  grep -F workloads.gpusharing.dev "$work/rendered.yaml"
  values_render '- --webhook-refuse-pods=true' "${on[@]}" --set admissionWebhook.pods=Refuse
  # It never holds up its own namespace, the system's, or the operands', and nobody if it does not answer.
  objects 'all(w["failurePolicy"] == "Ignore" and w["timeoutSeconds"] == 2 and w["sideEffects"] == "None" for o in objects if o["kind"] == "ValidatingWebhookConfiguration" for w in o["webhooks"])' "${on[@]}"
  objects '[set(w["namespaceSelector"]["matchExpressions"][0]["values"]) for o in objects if o["kind"] == "ValidatingWebhookConfiguration" for w in o["webhooks"] if w["name"].startswith("pods")] == [{"kube-system", "kube-public", "kube-node-lease", "gpu-sharing-operator", "gpu-operator"}]' \
    "${on[@]}" --set admissionWebhook.pods=Warn
  # Certificates of somebody else: no Secret of the chart.
  values_render 'cert-manager.io/inject-ca-from: gpu-sharing-operator/gpu-sharing-operator-webhook' "${on[@]}"
  grep -F 'selfSigned: {}' "$work/rendered.yaml"
  grep -F 'secretName: gpu-sharing-operator-webhook-tls' "$work/rendered.yaml"
  if grep -E 'kind: Secret|caBundle' "$work/rendered.yaml"; then return 1; fi
  values_render 'kind: ClusterIssuer' "${on[@]}" --set admissionWebhook.certManager.issuerRef.kind=ClusterIssuer --set admissionWebhook.certManager.issuerRef.name=internal
  if grep -F selfSigned "$work/rendered.yaml"; then return 1; fi
  values_render 'caBundle: Q0E=' --set admissionWebhook.enabled=true --set admissionWebhook.certificateSecret=mine --set admissionWebhook.caBundle=Q0E=
  grep -F 'secret: {secretName: mine}' "$work/rendered.yaml"
}
# issues_a_certificate_for NAME ARGS...
issues_a_certificate_for() {
  local name=$1
  shift
  render "$@" | python3 -c '
import base64, sys, yaml
for o in yaml.safe_load_all(sys.stdin):
    if o and o["kind"] == "Secret":
        for key in ("ca.crt", "tls.crt"):
            with open(f"{sys.argv[1]}/{key}", "wb") as out:
                out.write(base64.b64decode(o["data"][key]))' "$work"
  openssl verify -CAfile "$work/ca.crt" -purpose sslserver -verify_hostname "$name" "$work/tls.crt"
}

standalone_mps_renders() {
  if render | grep -E 'standalone-mps|mps-daemon|kind: DaemonSet'; then return 1; fi
  local on=(--set standaloneMps.enabled=true --set-string 'standaloneMps.nodeSelector.team\.example/mps=true')
  local daemonset='[o for o in objects if o["kind"] == "DaemonSet"][0]["spec"]' pod='[o for o in objects if o["kind"] == "DaemonSet"][0]["spec"]["template"]["spec"]'
  # The operator replaces its pods, and they have no account.
  objects "$daemonset"'["updateStrategy"] == {"type": "OnDelete"} and '"$pod"'["automountServiceAccountToken"] is False and "serviceAccountName" not in '"$pod" "${on[@]}"
  objects "$pod"'["nodeSelector"] == {"team.example/mps": "true"}' "${on[@]}"
  # Where there is no cluster to look at, the GPU Operator's label is selected only if the values say so.
  objects "$pod"'["nodeSelector"] == {"team.example/mps": "true", "nvidia.com/gpu.deploy.client": "true"}' "${on[@]}" --set standaloneMps.followDriverUpgrades=Always
  values_render '--standalone-mps=gpu-sharing-operator/gpu-sharing-operator-mps' "${on[@]}"
  # Never beside another daemon.
  objects '[(r["key"], r["operator"], r["values"]) for r in '"$pod"'["affinity"]["nodeAffinity"]["requiredDuringSchedulingIgnoredDuringExecution"]["nodeSelectorTerms"][0]["matchExpressions"]] == [("nvidia.com/mps.capable", "NotIn", ["true"]), ("nos.nebuly.com/gpu-partitioning", "NotIn", ["mps"]), ("nos.nebuly.ai/gpu-partitioning", "NotIn", ["mps"])]' "${on[@]}" --set standaloneMps.followDriverUpgrades=Never
  # Nor while the driver or MIG is changed: the values of the labels are those of the upgrade controller, the driver manager and the MIG manager.
  objects '[(r["key"], r["operator"], r["values"]) for r in '"$pod"'["affinity"]["nodeAffinity"]["requiredDuringSchedulingIgnoredDuringExecution"]["nodeSelectorTerms"][0]["matchExpressions"]][3:] == [("nvidia.com/gpu-driver-upgrade-state", "NotIn", ["pod-restart-required"]), ("nvidia.com/gpu.deploy.client", "NotIn", ["paused-for-driver-upgrade", "paused-for-mig-change"])]' "${on[@]}"
  # An upgrade of the chart that changes no setting is no new revision.
  objects '"helm.sh/chart" not in '"$daemonset"'["template"]["metadata"]["labels"] and "app.kubernetes.io/version" not in '"$daemonset"'["template"]["metadata"]["labels"]' "${on[@]}"
  # The driver decides about the directory, unless one is named; an empty one that nobody serves is never made.
  objects '{v["hostPath"]["path"] for v in '"$pod"'["volumes"]} == {"/run", "/tmp", "/var/log/nvidia-mps"} and "--root=/node" in '"$pod"'["containers"][0]["args"]' "${on[@]}"
  # One that only watches has no power over the node: its one directory, read-only, no privilege, none of the node's namespaces.
  local watches=("${on[@]}" --set standaloneMps.mode=observe --set standaloneMps.pipeDirectory=/mps/pipe)
  objects '[v["hostPath"] for v in '"$pod"'["volumes"]] == [{"path": "/mps/pipe", "type": "Directory"}] and not {"hostPID", "hostIPC", "hostNetwork"} & set('"$pod"')' "${watches[@]}"
  objects 'all(c["args"][1] == "observe" and c["volumeMounts"] == [{"name": "pipe", "mountPath": "/mps/pipe", "readOnly": True}] and "privileged" not in c["securityContext"] and c["securityContext"]["readOnlyRootFilesystem"] and c["securityContext"]["capabilities"] == {"drop": ["ALL"]} for c in '"$pod"'["containers"] + '"$pod"'["initContainers"])' "${watches[@]}"
  refused 'standaloneMps.mode=observe needs standaloneMps.pipeDirectory' "${on[@]}" --set standaloneMps.mode=observe
  objects 'all(c["securityContext"]["readOnlyRootFilesystem"] for c in '"$pod"'["containers"] + '"$pod"'["initContainers"])' "${on[@]}"
  objects "$pod"'["containers"][0]["args"] == ["mps-daemon", "run", "--log-directory=/var/log/nvidia-mps", "--compute-mode=Keep", "--stop-timeout=45s", "--active-thread-percentage=50", "--pinned-memory-limit=0=10G", "--server-user=1000", "--root=/node", "--report=/dev/termination-log"] and '"$pod"'["terminationGracePeriodSeconds"] == 105' \
    "${on[@]}" --set standaloneMps.computeMode=Keep --set standaloneMps.stopTimeoutSeconds=45 --set standaloneMps.activeThreadPercentage=50 --set 'standaloneMps.pinnedMemoryLimits.0=10G' --set standaloneMps.serverUser=1000
  # What a killed daemon has left is given back where a later pod is refused.
  objects '"--restore-compute-modes" in '"$pod"'["initContainers"][0]["args"]' "${on[@]}"
  objects "$pod"'["containers"][0]["readinessProbe"]["exec"]["command"][1:] == ["mps-daemon", "ready", "--alone", "--root=/node"]' "${on[@]}"
  objects "$pod"'["containers"][0]["readinessProbe"]["exec"]["command"][1:] == ["mps-daemon", "ready", "--pipe-directory=/mps/pipe"]' "${watches[@]}"
  objects 'all(c["image"] == "r.example/op:v1" for c in '"$pod"'["containers"] + '"$pod"'["initContainers"])' "${on[@]}" --set standaloneMps.image=r.example/op:v1 --set image.tag=v2
  # What the operator gets for it: pods of its own namespace, which the admission policy limits to these.
  objects '[(r["resources"], r["verbs"]) for o in objects if o["kind"] == "Role" and o["metadata"]["name"].endswith("-mps") for r in o["rules"]] == [(["controllerrevisions"], ["list", "watch"]), (["pods"], ["get", "list", "watch", "delete"])]' "${on[@]}"
  objects 'not any("delete" in r["verbs"] for o in objects if o["kind"] == "Role" and o["metadata"]["name"].endswith("-mps") for r in o["rules"])' "${on[@]}" --set modes.rollouts=Observe
  values_render "'mps-control-daemon', 'standalone-mps']" "${on[@]}"
  # In a namespace of its own: where its pods are is where the operator may delete them, and nowhere else.
  objects '{o["metadata"]["namespace"] for o in objects if o["kind"] in ("DaemonSet", "Role", "RoleBinding") and o["metadata"]["name"].endswith("-mps")} == {"mps"} and [s["namespace"] for o in objects if o["kind"] == "RoleBinding" and o["metadata"]["name"].endswith("-mps") for s in o["subjects"]] == ["gpu-sharing-operator"]' \
    "${on[@]}" --set standaloneMps.namespace=mps
  values_render 'operand-namespaces: gpu-operator,mps' "${on[@]}" --set standaloneMps.namespace=mps
  refused 'standaloneMps.enabled needs standaloneMps.nodeSelector' --set standaloneMps.enabled=true
  refused mode "${on[@]}" --set standaloneMps.mode=Sometimes
  refused pipeDirectory "${on[@]}" --set standaloneMps.pipeDirectory=relative
  # A socket of the daemon has the directory and "/control_privileged" in its address, which has 107 characters.
  local long; long=/$(printf 'd%.0s' {1..87})
  render "${on[@]}" --set "standaloneMps.pipeDirectory=$long" >/dev/null
  refused pipeDirectory "${on[@]}" --set "standaloneMps.pipeDirectory=${long}d"
  refused pipeDirectory --set podMutation.enabled=true --set "podMutation.pipeDirectory=${long}d"
  refused logDirectory "${on[@]}" --set "standaloneMps.logDirectory=/$(printf 'd%.0s' {1..4070})"
  refused activeThreadPercentage "${on[@]}" --set standaloneMps.activeThreadPercentage=101
  refused pinnedMemoryLimits "${on[@]}" --set standaloneMps.pinnedMemoryLimits.0=10
}

# On the cluster: a node with a daemon of this release, whose pod runs as far as its status says.
a_daemon_runs_on() {
  local daemonset=(daemonset gpu-sharing-operator-mps --namespace "$namespace")
  kubectl create namespace "$namespace" --dry-run=client --output yaml | kubectl apply -f -
  a_node "$1" team.example/mps=true
  render --show-only templates/standalonemps.yaml "${mps[@]}" | kubectl apply -f -
  kubectl annotate "${daemonset[@]}" --overwrite "meta.helm.sh/release-name=$release" "meta.helm.sh/release-namespace=$namespace"
  await 30 a_pod_is_on "$1"
  kubectl patch pod "$(a_pod_is_on "$1")" --namespace "$namespace" --subresource=status --type merge --patch '{"status":{"phase":"Running"}}'
}
a_node() {
  kubectl create -f - <<<"{apiVersion: v1, kind: Node, metadata: {name: $1}}"
  kubectl patch node "$1" --subresource=status --type merge --patch '{"status":{"capacity":{"pods":"9"},"allocatable":{"pods":"9"}}}'
  kubectl label node "$1" "$2"
}
a_pod_is_on() {
  kubectl get pods --namespace "$namespace" --selector app.kubernetes.io/component=standalone-mps --field-selector "spec.nodeName=$1" --output 'jsonpath={.items[0].metadata.name}' | grep .
}
a_pod_ends() { kubectl get pods --namespace "$namespace" --selector app.kubernetes.io/component=standalone-mps --output 'jsonpath={.items[*].metadata.deletionTimestamp}' | grep .; }

# What ends a daemon without a drain: another selector, fewer tolerations, no DaemonSet.
daemons_do_not_end_by_an_upgrade() {
  local values=(--set standaloneMps.enabled=true --set standaloneMps.runtimeClassName=
    --set standaloneMps.resources.requests=null --set standaloneMps.resources.limits=null
    --set 'standaloneMps.tolerations[0].key=team.example/gpu' --set 'standaloneMps.tolerations[0].operator=Exists')
  local mps=("${values[@]}" --set-string 'standaloneMps.nodeSelector.team\.example/mps=true') other=("${values[@]}" --set-string 'standaloneMps.nodeSelector.team\.example/pool=b')
  local live=(--is-upgrade --dry-run=server)
  local says="would end at once, under their GPU clients" generation
  a_daemon_runs_on mps-a
  render "${live[@]}" "${mps[@]}" --set standaloneMps.activeThreadPercentage=50 >/dev/null
  refused "no longer selects or tolerates nodes of DaemonSet $namespace/gpu-sharing-operator-mps, so the MPS daemons of mps-a $says" "${live[@]}" "${other[@]}"
  kubectl label node mps-a team.example/pool=b
  render "${live[@]}" "${other[@]}" >/dev/null
  kubectl label node mps-a team.example/pool-
  # A label whose value is empty is one that a node can lack.
  local bare=("${values[@]}" --set-string 'standaloneMps.nodeSelector.team\.example/bare=')
  refused "$says" "${live[@]}" "${bare[@]}"
  kubectl label node mps-a team.example/bare=
  render "${live[@]}" "${bare[@]}" >/dev/null
  kubectl label node mps-a team.example/bare-
  render "${live[@]}" "${mps[@]}" --set standaloneMps.tolerations=null >/dev/null
  kubectl taint node mps-a team.example/gpu=yes:NoExecute
  refused "$says" "${live[@]}" "${mps[@]}" --set standaloneMps.tolerations=null
  render "${live[@]}" "${mps[@]}" --set 'standaloneMps.tolerations[0].operator=Equal' --set 'standaloneMps.tolerations[0].value=yes' >/dev/null
  refused "$says" "${live[@]}" "${mps[@]}" --set 'standaloneMps.tolerations[0].effect=NoSchedule'
  refused "has no DaemonSet $namespace/gpu-sharing-operator-mps" "${live[@]}" --set standaloneMps.enabled=false
  refused "has no DaemonSet $namespace/gpu-sharing-operator-mps" "${live[@]}" "${mps[@]}" --set standaloneMps.namespace=elsewhere
  generation=$(kubectl get daemonset gpu-sharing-operator-mps --namespace "$namespace" --output 'jsonpath={.metadata.generation}')
  refused "gpusharing.dev/end-daemons=$generation" "${live[@]}" --set standaloneMps.enabled=false
  kubectl annotate --overwrite daemonset --namespace "$namespace" gpu-sharing-operator-mps "gpusharing.dev/end-daemons=$generation"
  render "${live[@]}" --set standaloneMps.enabled=false >/dev/null
  follows_the_label_of_all_nodes
  # The DaemonSet controller ends the pod, whatever updateStrategy says.
  kubectl label node mps-a nvidia.com/gpu-driver-upgrade-state=pod-restart-required
  await 30 a_pod_ends
  kubectl delete daemonset,role,rolebinding gpu-sharing-operator-mps --namespace "$namespace"
  kubectl delete pods --namespace "$namespace" --selector app.kubernetes.io/component=standalone-mps --force --grace-period=0
  kubectl delete nodes mps-a mps-b
}
follows_the_label_of_all_nodes() {
  local label=nvidia.com/gpu.deploy.client
  local follows='"nvidia.com/gpu.deploy.client" in [o for o in objects if o["kind"] == "DaemonSet"][0]["spec"]["template"]["spec"]["nodeSelector"]'
  objects "not $follows" "${live[@]}" "${mps[@]}"
  kubectl label node mps-a "$label=paused-for-driver-upgrade"
  objects "$follows" "${live[@]}" "${mps[@]}"
  a_node mps-b team.example/mps=true
  objects "not $follows" "${live[@]}" "${mps[@]}"
  # One that joins later does not change the template back.
  kubectl label node mps-a "$label=true" --overwrite
  kubectl patch daemonset gpu-sharing-operator-mps --namespace "$namespace" --type merge --patch "{\"spec\":{\"template\":{\"spec\":{\"nodeSelector\":{\"$label\":\"true\"}}}}}"
  objects "$follows" "${live[@]}" "${mps[@]}"
  objects "not ($follows)" "${live[@]}" "${mps[@]}" --set standaloneMps.followDriverUpgrades=Never
  # The GPU Operator would set its own label again: a person takes the other one off.
  refused 'kubectl label node NODE team.example/mps-,' "${live[@]}" --set standaloneMps.enabled=false
}

secure_metrics_render() {
  if render | grep -E 'tokenreviews|resources: .secrets|metrics-reader|scheme: https'; then return 1; fi
  local issued=(--dry-run=server --set metrics.secure.enabled=true --set metrics.serviceMonitor.enabled=true)
  values_render 'ca: {secret: {name: gpu-sharing-operator-metrics-tls, key: ca.crt}}' "${issued[@]}"
  issues_a_certificate_for gpu-sharing-operator-metrics.gpu-sharing-operator.svc "${issued[@]}"
  refused 'Set metrics.secure.certManager.enabled=true, or metrics.secure.certificateSecret to a Secret of yours' --set metrics.secure.enabled=true
  local secure=(--set metrics.secure.enabled=true --set metrics.secure.certManager.enabled=true --set metrics.serviceMonitor.enabled=true)
  values_render 'serverName: gpu-sharing-operator-metrics.gpu-sharing-operator.svc' "${secure[@]}"
  grep -F 'secretName: gpu-sharing-operator-metrics-tls' "$work/rendered.yaml"
  if grep -q 'kind: ClusterRoleBinding' <(render "${secure[@]}" --show-only templates/metrics.yaml); then return 1; fi
  values_render 'name: prometheus-k8s' "${secure[@]}" --set 'metrics.secure.readers[0].name=prometheus-k8s' --set 'metrics.secure.readers[0].namespace=monitoring'
  # A certificate of somebody else: no Secret of the chart.
  values_render 'secret: {secretName: mine}' --set metrics.secure.enabled=true --set metrics.secure.certificateSecret=mine
  if grep 'kind: Secret' "$work/rendered.yaml"; then return 1; fi
  values_render '--client-ca-file=/etc/gpu-sharing-operator-client-ca/ca.crt' "${secure[@]}" --set metrics.secure.clientCAConfigMap=scrapers
  values_render '--webhook-client-ca=/etc/gpu-sharing-operator-webhook-client-ca/ca.crt' --set admissionWebhook.enabled=true \
    --set admissionWebhook.certManager.enabled=true --set admissionWebhook.clientCAConfigMap=apiserver
  grep -F 'configMap: {name: apiserver}' "$work/rendered.yaml"
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

# `helm upgrade --reuse-values` takes the older chart's values.yaml in place of this one's.
values_of_an_older_chart_are_completed() {
  local reused=$work/reused/gpu-sharing-operator
  mkdir -p "$work/reused" "$work/former"
  tar -xzf "$former" -C "$work/former"
  cp -rL "$chart" "$reused"
  cp "$work/former/gpu-sharing-operator/values.yaml" "$reused/values.yaml"
  if cmp "$reused/values.yaml" "$chart/values.yaml"; then return 1; fi
  # Defaults that have changed since: what the older chart had stays.
  local same=(--set networkPolicy.enabled=false)
  diff <(render "${same[@]}") <(helm template "$release" "$reused" --namespace "$namespace")
  # What people have removed stays removed.
  local without=(--set resources.limits=null --set replicas=0)
  diff <(render "${same[@]}" "${without[@]}") <(helm template "$release" "$reused" --namespace "$namespace" "${without[@]}")
  if render "${without[@]}" --show-only templates/deployment.yaml | grep -F 'limits:'; then return 1; fi
  # Whatever template helm renders first.
  local template
  for template in "$chart"/templates/*.yaml "$chart"/templates/tests/*.yaml "$chart"/templates/NOTES.txt; do
    [[ $(head -n 1 "$template") == '{{- include "gso.complete" . }}' ]] || { echo "$template does not begin with gso.complete"; return 1; }
  done
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
  objects '{5353, 53} == {p["port"] for o in objects if o["kind"] == "NetworkPolicy" for p in o["spec"]["egress"][0]["ports"]}'
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

# The same, and the answer names the one value that is wrong, once.
refused_alone() {
  refused "$@" || return 1
  local answer
  shift
  answer=$(render "$@" 2>&1) && return 1
  (($(grep -cE "^ *- *(at '/|[a-zA-Z.-]+: )" <<<"$answer") == 1)) || { echo "not one value: $answer"; return 1; }
}

wrong_values_are_refused() {
  refused leader-elect --set config.leader-elect=false
  refused lease-name --set config.lease-name=another
  refused 'serviceAccount.create=false needs serviceAccount.name' --set serviceAccount.create=false
  refused imagee --set imagee.repository=x
  refused config --set config.setle=10s
  refused settle-period --set config.settle-period=soon
  refused label-mode --set config.label-mode=sometimes
  refused_alone cluster-max-unavailable --set config.cluster-max-unavailable=200%
  refused_alone cluster-max-unavailable --set config.cluster-max-unavailable=0
  refused_alone max-unavailable-per-group --set config.max-unavailable-per-group=1.5
  refused page-size --set config.page-size=0
  refused operandNamespaces --set 'operandNamespaces={}'
  refused operandNamespaces --set operandNamespaces=null
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
  refused_alone maxUnavailable --set podDisruptionBudget.maxUnavailable=0
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
  refused operand-namespaces --set config.operand-namespaces=team
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

check "helm lint is clean" lint_is_clean
check "the README lists every value" readme_lists_the_values
check "promtool accepts the alerts, and each fires on what it is for" alerts_fire
check "recorded stories fire the alerts that belong to them, healthy ones none" alerts_are_silent_in_healthy_stories
check "promtool understands the queries of the dashboard" dashboard_asks_what_prometheus_understands
check "the chart renders the same twice" renders_the_same_twice
check "values take effect" variants_render
check "an upgrade that would end MPS daemons without a drain is refused" daemons_do_not_end_by_an_upgrade
check "values of an older chart get the defaults of what this one has added" values_of_an_older_chart_are_completed
check "names fit with a long release" long_names_fit
check "names and labels of people are used" names_and_labels_of_people_are_used
check "pods get environment, network and ports that clusters ask for" pods_get_what_clusters_ask_for
check "nothing is in the way of OpenShift" openshift_admits_the_pods
check "wrong values are refused by name" wrong_values_are_refused
check "the roles agree with the registry of reconcilers" roles_agree_with_the_registry
check "modes and eviction decide what may be written" modes_decide_what_may_be_written
check "the operator accepts the rendered configuration" operator_accepts_the_configuration
close_checks
