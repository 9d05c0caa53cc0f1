#!/usr/bin/env bash
# A pod without any right that can open connections to the operator's ports: half-open connections, large and endless bodies, reviews that
# no API server has sent, and what it can read. The operator is a local process under the chart's ServiceAccount.
#
#   unauthenticated_pod_test.sh CLUSTER_DIR BUILD_DIR     a running control plane, a built tree
#
# Prints one line for each check and closes with "N passed, N failed".
# shellcheck source=tests/conformance/attacks/attack.sh
source "$(dirname "${BASH_SOURCE[0]}")/attack.sh" "$@"

read -r probes metrics webhook < <(free_ports 3)

operator_serves_all_ports() {
  openssl req -x509 -newkey ec -pkeyopt ec_paramgen_curve:P-256 -nodes -keyout "$work/tls.key" -out "$work/tls.crt" -days 2 -subj /CN=webhook
  start operator "$build/controller/gpu-sharing-operator" run --kubeconfig "$work/operator.kubeconfig" --namespace "$namespace" --log-format=text \
    --health-probe-bind-address="127.0.0.1:$probes" --metrics-bind-address="127.0.0.1:$metrics" --webhook-bind-address="127.0.0.1:$webhook" \
    --webhook-cert-file="$work/tls.crt" --webhook-private-key-file="$work/tls.key"
  await 30 is_ready || { cat "$work/operator.log"; return 1; }
  python3 - >"$work/review.json" <<'PY'
import json
text = "version: v1\nsharing:\n  timeSlicing:\n    resources:\n    - name: nvidia.com/gpu\n      replicas: 4\n"
print(json.dumps({"apiVersion": "admission.k8s.io/v1", "kind": "AdmissionReview", "request": {
    "uid": "u", "kind": {"group": "", "version": "v1", "kind": "ConfigMap"}, "name": "mps-config", "namespace": "gpu-operator", "operation": "CREATE",
    "object": {"apiVersion": "v1", "kind": "ConfigMap", "metadata": {"name": "mps-config", "namespace": "gpu-operator"}, "data": {"any": text}}}}))
PY
}
lease() { kubectl get lease gpu-sharing-operator --namespace "$namespace" --output 'jsonpath={.spec.leaseTransitions}'; }
# While something goes on: the same process leads all the time.
leads_on() { running operator && [[ $(lease) == "$(<"$work/transitions")" ]]; }

probes_are_answered() { "$attacks/half_open.py" "$probes"; }
scrapes_are_answered() { "$attacks/half_open.py" "$metrics" --path /metrics; }
reviews_are_answered() { "$attacks/half_open.py" "$webhook" --tls --path /validate --body "$work/review.json"; }
big_bodies_are_bounded() { "$attacks/big_bodies.py" "$webhook" "$(<"$work/pids/operator")"; }

# An answer must not say which nodes or DaemonSets use a key: whoever can connect can ask.
nothing_is_told() {
  kubectl create namespace secret-project
  kubectl create --namespace secret-project -f - <<<'{"apiVersion":"v1","kind":"Pod","metadata":{"name":"secret-model","annotations":{"gpu-fraction":"0.5"}},
    "spec":{"schedulerName":"kai-scheduler","containers":[{"name":"c","image":"x"}]}}' || true
  local port path
  for port in "$probes" "$metrics"; do
    for path in / /metrics /healthz /readyz /livez /debug /debug/state; do curl --silent --max-time 5 "http://127.0.0.1:$port$path" || true; done
  done >"$work/told"
  if grep -i secret "$work/told"; then return 1; fi
}

check "the chart is installed" install_chart
check "the operator runs, with all ports" operator_serves_all_ports
lease >"$work/transitions"
check "200 half-open connections to the port of the probes keep no probe from its answer" probes_are_answered
check "200 half-open connections to the port of the metrics keep no scrape from its answer" scrapes_are_answered
check "200 half-open connections to the webhook keep no review from its answer" reviews_are_answered
check "bodies of megabytes to the webhook are answered in time and bounded memory" big_bodies_are_bounded
check "the operator leads all the while" leads_on
check "nothing that it serves names a tenant's object" nothing_is_told
close_checks
