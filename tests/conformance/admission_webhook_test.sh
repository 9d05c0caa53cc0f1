#!/usr/bin/env bash
# The validating webhook as the chart installs it, asked by a real API server: what kubectl shows of good, bad and doubtful
# objects, what happens without an answer, certificates that are renewed while objects are written, and its removal.
#
#   admission_webhook_test.sh CLUSTER_DIR BUILD_DIR     a running control plane, a built tree
#
# Without a kubelet no Service leads to the operator: the API server asks a URL on loopback instead, with a certificate for
# that name; the rest of the configuration is the chart's. Prints one line for each check and closes with "N passed, N failed".
# shellcheck source=tests/conformance/beside_cluster.sh
source "$(dirname "${BASH_SOURCE[0]}")/beside_cluster.sh" "$@"

# shellcheck disable=SC2154  # $namespace, $work, $probes and $build come from the sourced scripts.
configuration=gpu-sharing-operator-webhook
account=system:serviceaccount:$namespace:gpu-sharing-operator

profile() { printf 'version: v1\nsharing:\n  timeSlicing:\n    resources:\n    - name: nvidia.com/gpu\n      replicas: %s\n' "$1"; }

# config_map REPLICAS [EXTRA-KEY TEXT]
config_map() {
  python3 - "$(profile "$1")" "${@:2}" <<'PY'
import json, sys
data = {"any": sys.argv[1]}
if len(sys.argv) > 2:
    data[sys.argv[2]] = sys.argv[3]
print(json.dumps({"apiVersion": "v1", "kind": "ConfigMap", "metadata": {"name": "mps-config", "namespace": "gpu-operator"}, "data": data}))
PY
}

plugin_mounts_the_config_map() {
  kubectl apply -f - <<'YAML'
apiVersion: apps/v1
kind: DaemonSet
metadata: {name: nvidia-device-plugin-daemonset, namespace: gpu-operator}
spec:
  selector: {matchLabels: {app: plugin}}
  template:
    metadata: {labels: {app: plugin}}
    spec:
      containers:
      - {name: nvidia-device-plugin, image: "nvcr.io/nvidia/k8s-device-plugin:v0.20.0", volumeMounts: [{name: config, mountPath: /config}]}
      - name: config-manager
        image: nvcr.io/nvidia/k8s-device-plugin:v0.20.0
        env: [{name: NODE_LABEL, value: nvidia.com/device-plugin.config}, {name: DEFAULT_CONFIG, value: any}, {name: CONFIG_FILE_SRCDIR, value: /available-configs}]
        volumeMounts: [{name: mps-config, mountPath: /available-configs}]
      volumes: [{name: config, emptyDir: {}}, {name: mps-config, configMap: {name: mps-config}}]
YAML
  config_map 4 | kubectl apply -f -
}

webhook_port() { ss --listening --tcp --numeric --processes | awk -v pid="pid=$(<"$work/pids/operator")," 'index($0, pid) { n = split($4, a, ":"); print a[n] }' | grep -vx "$probes" | sed -n 1p | grep .; }

# ARGS...: of the operator.
operator_runs() {
  start operator "$build/controller/gpu-sharing-operator" run --kubeconfig "$work/operator.kubeconfig" --namespace "$namespace" \
    --log-format=text --health-probe-bind-address="127.0.0.1:$probes" --metrics-bind-address="127.0.0.1:$probes" --webhook-bind-address=127.0.0.1:0 \
    --webhook-cert-file="$work/tls.crt" --webhook-private-key-file="$work/tls.key" "$@"
  await 30 is_ready || { tail -n 20 "$work/operator.log"; return 1; }
}

# What the pods would mount, and what the API server would trust.
serves_the_charts_certificate() {
  local key
  for key in tls.crt tls.key; do
    kubectl get secret gpu-sharing-operator-webhook-tls --namespace "$namespace" --output "jsonpath={.data.${key/./\\.}}" | base64 --decode >"$work/$key"
  done
  operator_runs
  kubectl get validatingwebhookconfiguration "$configuration" --output "jsonpath={.webhooks[0].clientConfig.caBundle}" | base64 --decode >"$work/ca.crt"
  openssl s_client -connect "127.0.0.1:$(webhook_port)" -CAfile "$work/ca.crt" -verify_return_error -verify_hostname "$configuration.$namespace.svc" </dev/null
  stop operator
}

# The chart's configuration with a URL in place of the Service, and the authority of that name.
asks() {
  kubectl get validatingwebhookconfiguration "$configuration" --output json | python3 -c '
import json, sys
hook = json.load(sys.stdin)
for webhook in hook["webhooks"]:
    webhook["clientConfig"].pop("service", None)
    webhook["clientConfig"]["url"] = sys.argv[1]
    webhook["clientConfig"]["caBundle"] = sys.argv[2]
print(json.dumps(hook))' "$1" "$(base64 --wrap=0 "$work/own-ca.crt")" | kubectl replace -f -
}

api_server_asks_it() {
  openssl req -x509 -newkey ec -pkeyopt ec_paramgen_curve:P-256 -nodes -keyout "$work/own-ca.key" -out "$work/own-ca.crt" -days 2 -subj /CN=own-ca
  certificate_for_localhost
  operator_runs --webhook-refuse-pods=false
  asks "https://localhost:$(webhook_port)/validate"
  # The API server reads changed configurations through a watch.
  await 30 refuses
}
# The key first: a look at the files half-way changes nothing, and the next one sees both.
certificate_for_localhost() {
  openssl req -newkey ec -pkeyopt ec_paramgen_curve:P-256 -nodes -keyout "$work/new.key" -out "$work/new.csr" -subj /CN=localhost
  openssl x509 -req -in "$work/new.csr" -CA "$work/own-ca.crt" -CAkey "$work/own-ca.key" -CAcreateserial -days 2 -out "$work/new.crt" -extfile <(echo subjectAltName=DNS:localhost)
  mv "$work/new.key" "$work/tls.key"
  mv "$work/new.crt" "$work/tls.crt"
}
refuses() { ! config_map 1 | kubectl apply --dry-run=server -f - >"$work/refused" 2>&1 && grep 'is invalid' "$work/refused"; }
allows() { config_map 1 | kubectl apply --dry-run=server -f - 2>&1; }

# What lint prints for the same object, under the name that the webhook gives it.
lines_of_lint() {
  mkdir -p "$work/configmap"
  config_map "$1" >"$work/configmap/mps-config"
  (cd "$work" && "$build/controller/gpu-sharing-operator" lint configmap/mps-config) | grep ': error: '
}

good_is_stored() {
  config_map 3 | kubectl apply -f - >"$work/answer" 2>&1
  cat "$work/answer"
  if grep -i warning "$work/answer"; then return 1; fi
  kubectl get configmap mps-config --namespace gpu-operator --output 'jsonpath={.data.any}' | grep 'replicas: 3'
}

apply_shows_lints_lines() {
  if config_map 1 | kubectl apply -f - >"$work/answer" 2>&1; then cat "$work/answer"; return 1; fi
  cat "$work/answer"
  lines_of_lint 1 >"$work/lint" || true
  [[ -s $work/lint ]]
  grep -F -f "$work/lint" "$work/answer"
  kubectl get configmap mps-config --namespace gpu-operator --output 'jsonpath={.data.any}' | grep 'replicas: 3'
}

# kubectl edit opens the editor a second time, with the causes on top: the editor here keeps what it was shown.
edit_opens_again_with_lints_lines() {
  rm -f "$work"/shown.*
  cat >"$work/editor" <<EDITOR
#!/usr/bin/env bash
cp "\$1" "$work/shown.\$(ls "$work"/shown.* 2>/dev/null | wc -l)"
sed -i 's/replicas: 3/replicas: 1/' "\$1"
EDITOR
  chmod +x "$work/editor"
  KUBE_EDITOR=$work/editor kubectl edit configmap mps-config --namespace gpu-operator >"$work/answer" 2>&1 || true
  cat "$work/answer"
  [[ -f $work/shown.1 ]] || { echo "the editor was not opened again"; return 1; }
  head -n 20 "$work/shown.1"
  grep -F 'was not valid:' "$work/shown.1"
  lines_of_lint 1 >"$work/lint" || true  # Its exit status says that there are findings.
  [[ -s $work/lint ]]
  while read -r line; do grep -F "# * data[any]: $line" "$work/shown.1" || return 1; done <"$work/lint"
}

warnings_are_kubectls() {
  config_map 3 other "$(printf 'version: v1\nnonsense: %s\n' "$(head -c 300 /dev/zero | tr '\0' x)")" | kubectl apply -f - >"$work/answer" 2>&1
  cat "$work/answer"
  grep '^Warning: configmap/mps-config\[other\]' "$work/answer"
  awk '/^Warning: / { if (length($0) > 256 + 9) exit 1 }' "$work/answer"
}

# Removed from the ConfigMap, or with it: nothing is refused, and kubectl says who uses the key.
a_key_in_use_is_warned_about() {
  kubectl create --dry-run=client --output json configmap mps-config --namespace gpu-operator --from-literal="other=$(profile 3)" |
    kubectl replace --dry-run=server -f - >"$work/answer" 2>&1
  cat "$work/answer"
  grep '^Warning: configmap/mps-config\[any\]: warning: the key is removed and still used by DaemonSet gpu-operator/nvidia-device-plugin-daemonset' "$work/answer"
  kubectl create --dry-run=client --output json configmap mps-config --namespace gpu-operator |
    kubectl replace --dry-run=server -f - 2>&1 | grep '^Warning: configmap/mps-config\[any\]: warning: the key is removed'
  kubectl delete configmap mps-config --namespace gpu-operator --dry-run=server >"$work/answer" 2>&1
  cat "$work/answer"
  grep '^Warning: configmap/mps-config\[any\]: warning: the key is removed' "$work/answer"
}

other_config_maps_are_not_looked_at() {
  kubectl create configmap other --namespace gpu-operator --from-literal="any=$(profile 1)"
  kubectl delete configmap other --namespace gpu-operator
  kubectl create configmap mps-config --namespace default --from-literal="any=$(profile 1)"
  kubectl delete configmap mps-config --namespace default
}

policies_are_judged() {
  local answer
  if answer=$(kubectl create -f - 2>&1 <<'YAML'
apiVersion: gpusharing.dev/v1alpha1
kind: SharingPolicy
metadata: {name: unstable}
spec: {nodeSelector: {matchLabels: {nvidia.com/gpu.replicas: "4"}}}
YAML
  ); then return 1; fi
  grep -F 'The SharingPolicy "unstable" is invalid' <<<"$answer"
  grep -F 'sharingpolicy/unstable: error: spec.nodeSelector' <<<"$answer"
}

pod() {
  cat <<'YAML'
apiVersion: v1
kind: Pod
metadata: {name: fraction, namespace: default, annotations: {gpu-fraction: "1.5"}}
spec: {schedulerName: kai-scheduler, containers: [{name: c, image: example/cuda:1}]}
YAML
}
# The pods of KAI's and of nos's documents for MPS, as written there and with what they ask for left out: kubectl warns with
# the lines of `lint`, and with no others. answered_like_lint EXPECTED-COUNT <POD
answered_like_lint() {
  mkdir -p "$work/of"
  cat >"$work/of/pod.yaml"
  kubectl create --dry-run=server -f "$work/of/pod.yaml" >"$work/answer" 2>&1 || { cat "$work/answer"; return 1; }
  "$build/controller/gpu-sharing-operator" lint "$work/of/pod.yaml" >"$work/linted" || true
  # Where it is: a name here, a place in the file there. The API server cuts what is long.
  sed -n -E 's/^.*: ((error|warning): .*)$/\1/p' "$work/linted" | cut -c1-100 | sort >"$work/lint"
  sed -n -E 's/^Warning: pod\/[^ ]*: ((error|warning): .*)$/\1/p' "$work/answer" | cut -c1-100 | sort >"$work/warned"
  diff "$work/lint" "$work/warned"
  (($(wc -l <"$work/lint") == $1)) || { cat "$work/linted"; return 1; }
}
kais_pod() {
  cat <<YAML
apiVersion: v1
kind: Pod
metadata: {name: gpu-sharing-with-mps, namespace: default, labels: {kai.scheduler/queue: test}, annotations: {gpu-fraction: "0.5"}}
spec:
  schedulerName: kai-scheduler
  containers:
  - {name: ubuntu, image: ubuntu, args: [sleep, infinity], volumeMounts: [{name: nvidia-mps, mountPath: $1}]}
  volumes: [{name: nvidia-mps, hostPath: {path: $1}}]
YAML
}
noss_pod() {
  cat <<YAML
apiVersion: v1
kind: Pod
metadata: {name: mps-partitioning-example, namespace: default}
spec:
  hostIPC: $1
  securityContext: {runAsUser: $2}
  containers:
  - {name: sleepy, image: "busybox:latest", command: [sleep, "120"], resources: {limits: {nvidia.com/gpu-10gb: 1}}}
YAML
}
pods_of_the_documents_are_answered_like_lint() {
  kais_pod /tmp/nvidia-smp >"$work/kai.yaml"
  "$build/controller/gpu-sharing-operator" lint "$work/kai.yaml" >"$work/linted" || true
  grep PipeDirectoryMisspelt "$work/linted"
  answered_like_lint "$(grep -cE ': (error|warning): ' "$work/linted")" <"$work/kai.yaml"
  grep 'PipeDirectoryMisspelt\|/tmp/nvidia-smp' "$work/answer"
  noss_pod true 1000 | answered_like_lint 0
  noss_pod false 1000 | answered_like_lint 1
  noss_pod true 0 | answered_like_lint 1
  # As the document writes it: the API server knows no such label, and lint says why.
  kais_pod /tmp/nvidia-mps | sed 's|^spec:|spec:\n  nodeSelector: {nvidia.mps/enabled: true}|' >"$work/of/selector.yaml"
  if kubectl create --dry-run=server -f "$work/of/selector.yaml" >"$work/answer" 2>&1; then return 1; fi
  "$build/controller/gpu-sharing-operator" lint "$work/of/selector.yaml" >"$work/linted" && return 1
  grep SelectorNoString "$work/linted"
}

# workload KIND API-VERSION PATH-OF-THE-TEMPLATE [MORE-FIELDS-OF-THE-SPEC]
workload() {
  pod | python3 -c '
import json, sys, yaml
kind, version, path, more = sys.argv[1:5]
pod = yaml.safe_load(sys.stdin)
template = {"metadata": {"labels": {"app": "w"}, "annotations": pod["metadata"]["annotations"]}, "spec": pod["spec"]}
if path == "jobTemplate":
    template["spec"]["restartPolicy"] = "Never"
    template = {"spec": {"template": template}}
elif kind == "Job":
    template["spec"]["restartPolicy"] = "Never"
print(json.dumps({"apiVersion": version, "kind": kind, "metadata": {"name": "w", "namespace": "default"}, "spec": {path: template} | json.loads(more)}))' "$1" "$2" "$3" "${4:-{\}}"
}
workloads_are_warned_about() {
  local selector='{"selector": {"matchLabels": {"app": "w"}}}' kind
  for kind in Deployment StatefulSet DaemonSet; do
    workload "$kind" apps/v1 template "$selector" | kubectl create --dry-run=server -f - >"$work/answer" 2>&1
    grep "^Warning: ${kind,,}/w: error: spec.template.metadata.annotations" "$work/answer" || { cat "$work/answer"; return 1; }
  done
  workload Job batch/v1 template | kubectl create --dry-run=server -f - >"$work/answer" 2>&1
  grep '^Warning: job/w: error: spec.template.metadata.annotations' "$work/answer" || { cat "$work/answer"; return 1; }
  workload CronJob batch/v1 jobTemplate '{"schedule": "@daily"}' | kubectl create --dry-run=server -f - >"$work/answer" 2>&1
  grep '^Warning: cronjob/w: error: spec.jobTemplate.spec.template.metadata.annotations' "$work/answer" || { cat "$work/answer"; return 1; }
  # The warning comes again only with other pods.
  workload Deployment apps/v1 template "$selector" | kubectl create -f -
  kubectl scale deployment w --namespace default --replicas=0 >"$work/answer" 2>&1
  kubectl annotate deployment w --namespace default example.com/note=x >>"$work/answer" 2>&1
  if grep Warning "$work/answer"; then return 1; fi
  kubectl delete deployment w --namespace default
}
pods_are_warned_about_or_refused() {
  pod | kubectl create --dry-run=server -f - >"$work/answer" 2>&1
  grep '^Warning: pod/fraction: error: ' "$work/answer"
  stop operator
  operator_runs --webhook-refuse-pods=true
  asks "https://localhost:$(webhook_port)/validate"
  await 30 pod_is_refused
}
pod_is_refused() { ! pod | kubectl create --dry-run=server -f - >"$work/answer" 2>&1 && grep -F 'The Pod "fraction" is invalid' "$work/answer"; }

certificate_is_renewed_under_load() {
  # Every write of a bad text must be refused: one that is stored was not judged.
  config_map 1 >"$work/bad.json"
  # shellcheck disable=SC2016  # That shell expands them.
  start load bash -c 'while :; do "$0" --kubeconfig "$1" --request-timeout=20s apply --dry-run=server -f "$2" >/dev/null 2>&1 && exit 1; done' \
    "$cluster/bin/kubectl" "$cluster/admin.kubeconfig" "$work/bad.json"
  certificate_for_localhost
  await 30 serves_the_new_one
  running load || { cat "$work/load.log"; return 1; }
  stop load
}
serves_the_new_one() {
  local served
  served=$(openssl s_client -connect "127.0.0.1:$(webhook_port)" </dev/null 2>/dev/null | openssl x509 -noout -fingerprint)
  [[ -n $served && $served == "$(openssl x509 -noout -fingerprint -in "$work/tls.crt")" ]]
}

# At the address of a server that accepts and says nothing, and at one where nobody listens.
mute_webhook_delays_nobody() {
  local begun port
  start mute python3 -c '
import socket, sys, time
server = socket.create_server(("127.0.0.1", 0), backlog=50)
print(server.getsockname()[1], flush=True)
kept = []
while True: kept.append(server.accept())'
  await 10 test -s "$work/mute.log"
  port=$(<"$work/mute.log")
  await 20 asks "https://localhost:$port/validate"
  begun=$SECONDS
  await 60 allows
  begun=$SECONDS
  allows
  ((SECONDS - begun <= 6)) || { echo "$((SECONDS - begun)) s"; return 1; }
  stop mute
  allows
  stop operator
  allows
}

# Whoever steals its token reads no Secret and redirects no request.
needs_no_right_on_its_certificate() {
  python3 - "$cluster/audit.log" "$account" <<'PY'
import json, sys
asked = set()
for line in open(sys.argv[1], encoding="utf-8"):
    event = json.loads(line)
    if event["user"]["username"] == sys.argv[2] and "objectRef" in event:
        asked.add(event["objectRef"]["resource"])
assert "configmaps" in asked and not asked & {"secrets", "validatingwebhookconfigurations"}, asked
PY
  local what
  for what in 'get secrets' 'list secrets' 'patch secrets' 'patch validatingwebhookconfigurations.admissionregistration.k8s.io' 'get validatingwebhookconfigurations.admissionregistration.k8s.io'; do
    # shellcheck disable=SC2086
    if kubectl auth can-i --quiet --as "$account" --namespace "$namespace" $what; then echo "allowed: $what"; return 1; fi
  done
}

# Objects are written all the while: none is refused for a webhook that goes.
uninstall_under_load() {
  config_map 3 >"$work/good.json"
  # shellcheck disable=SC2016  # That shell expands them.
  start load bash -c 'while :; do "$0" --kubeconfig "$1" --request-timeout=20s apply --dry-run=server -f "$2" >/dev/null 2>&1 || exit 1; done' \
    "$cluster/bin/kubectl" "$cluster/admin.kubeconfig" "$work/good.json"
  helm uninstall gpu-sharing-operator --namespace "$namespace" --no-hooks --timeout 60s
  if kubectl get validatingwebhookconfiguration "$configuration"; then return 1; fi
  config_map 1 | kubectl apply --dry-run=server -f -
  running load || { cat "$work/load.log"; return 1; }
  stop load
}

check "the chart is installed with the webhook" install_chart --set admissionWebhook.enabled=true --set admissionWebhook.pods=Warn
check "a device plugin mounts a ConfigMap" plugin_mounts_the_config_map
check "the operator serves the certificate that the chart issued" serves_the_charts_certificate
check "the API server asks it" api_server_asks_it
check "a good ConfigMap is stored without a word" good_is_stored
check "kubectl apply shows lint's lines" apply_shows_lints_lines
check "kubectl edit opens again with lint's lines" edit_opens_again_with_lints_lines
check "warnings are kubectl's, and not too long" warnings_are_kubectls
check "a key in use that goes is warned about" a_key_in_use_is_warned_about
check "ConfigMaps that no plugin reads are not looked at" other_config_maps_are_not_looked_at
check "SharingPolicies are judged beyond the CRD" policies_are_judged
check "the pods of KAI's and nos's documents are answered like lint" pods_of_the_documents_are_answered_like_lint
check "workloads are warned about where people see it" workloads_are_warned_about
check "Pods are warned about, and refused where that is asked for" pods_are_warned_about_or_refused
check "a certificate is renewed under load" certificate_is_renewed_under_load
check "its account has no right on Secrets and webhook configurations, and needs none" needs_no_right_on_its_certificate
check "a webhook that does not answer delays nobody" mute_webhook_delays_nobody
check "it is uninstalled under load" uninstall_under_load
close_checks
