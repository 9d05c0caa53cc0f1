#!/usr/bin/env bash
# /metrics over TLS, under the chart's ServiceAccount on a real API server: curl and openssl as the scrapers.
#
#   secure_metrics_test.sh CLUSTER_DIR BUILD_DIR     a running cluster, a built tree
#
# Prints one line for each check and closes with "N passed, N failed".
# shellcheck source=tests/conformance/beside_cluster.sh
source "$(dirname "${BASH_SOURCE[0]}")/beside_cluster.sh" "$@"

# shellcheck disable=SC2154  # $namespace, $probes and $work come from the sourced scripts.
host=gpu-sharing-operator-metrics.$namespace.svc

# metrics_port: of the operator that runs; port 0 was asked for.
metrics_port() { ss --listening --tcp --numeric --processes | awk -v pid="pid=$(<"$work/pids/operator")," 'index($0, pid) { n = split($4, a, ":"); print a[n] }' | grep -vx "$probes" | sed -n 1p | grep .; }

operator_runs() {
  start operator "$build/controller/gpu-sharing-operator" run --kubeconfig "$work/operator.kubeconfig" --namespace "$namespace" \
    --log-format=text --health-probe-bind-address="127.0.0.1:$probes" --metrics-bind-address=127.0.0.1:0 --metrics-secure "$@"
  await 30 is_ready || { tail -n 20 "$work/operator.log"; return 1; }
}

# scrape ARGS...: the status code; the answer is in $work/answer.
scrape() {
  local port
  port=$(metrics_port)
  curl --silent --show-error --max-time 10 --resolve "$host:$port:127.0.0.1" --output "$work/answer" --write-out '%{http_code}' "$@" "https://$host:$port/metrics"
}
answers() {
  local wanted=$1 got
  shift
  got=$(scrape "$@") || { echo "curl failed"; return 1; }
  [[ $got == "$wanted" ]] || { echo "$got, not $wanted:"; head -c 300 "$work/answer"; return 1; }
}
with_token() { echo "Authorization: Bearer $(kubectl create token "$1" --namespace monitoring)"; }

# The Secret's files, as the pods mount them.
serves_the_charts_certificate() {
  local key
  for key in ca.crt tls.crt tls.key; do
    kubectl get secret gpu-sharing-operator-metrics-tls --namespace "$namespace" --output "jsonpath={.data.${key/./\\.}}" | base64 --decode >"$work/$key"
  done
  operator_runs --tls-cert-file="$work/tls.crt" --tls-private-key-file="$work/tls.key"
  openssl verify -CAfile "$work/ca.crt" -purpose sslserver -verify_hostname "$host" "$work/tls.crt"
}

only_readers_are_let_in() {
  kubectl create namespace monitoring
  kubectl create serviceaccount prometheus-k8s --namespace monitoring
  kubectl create serviceaccount stranger --namespace monitoring
  answers 401 --cacert "$work/ca.crt"
  answers 401 --cacert "$work/ca.crt" --header 'Authorization: Bearer forged'
  answers 403 --cacert "$work/ca.crt" --header "$(with_token stranger)"
  grep 'system:serviceaccount:monitoring:stranger is not allowed to get /metrics' "$work/answer"
  answers 200 --cacert "$work/ca.crt" --header "$(with_token prometheus-k8s)"
  "$cluster/bin/promtool" check metrics <"$work/answer"
}

who_does_not_trust_the_authority_reads_nothing() {
  local answer
  if answer=$(scrape --header "$(with_token prometheus-k8s)" 2>&1); then return 1; fi
  grep -i 'certificate' <<<"$answer"
}

only_new_tls_is_spoken() {
  local port
  port=$(metrics_port)
  if openssl s_client -connect "127.0.0.1:$port" -tls1_1 -cipher 'DEFAULT:@SECLEVEL=0' </dev/null; then return 1; fi
  openssl s_client -connect "127.0.0.1:$port" -tls1_2 -CAfile "$work/ca.crt" -verify_return_error -servername "$host" -verify_hostname "$host" </dev/null
  openssl s_client -connect "127.0.0.1:$port" -tls1_3 -CAfile "$work/ca.crt" -verify_return_error -verify_hostname "$host" </dev/null
}

# issue NAME SUBJECT: NAME.crt and NAME.key, of the authority own-ca.
issue() {
  openssl req -newkey ec -pkeyopt ec_paramgen_curve:P-256 -nodes -keyout "$work/$1.key" -out "$work/$1.csr" -subj "$2"
  openssl x509 -req -in "$work/$1.csr" -CA "$work/own-ca.crt" -CAkey "$work/own-ca.key" -CAcreateserial -days 2 -out "$work/$1.crt" \
    -extfile <(echo "subjectAltName=DNS:$host")
}

# Files of somebody else, replaced while clients ask without a pause: none of them sees an error.
certificate_rotates_under_load() {
  stop operator
  openssl req -x509 -newkey ec -pkeyopt ec_paramgen_curve:P-256 -nodes -keyout "$work/own-ca.key" -out "$work/own-ca.crt" -days 2 -subj /CN=own-ca
  issue first /CN=first
  issue second /CN=second
  cp "$work/first.crt" "$work/tls.crt"
  cp "$work/first.key" "$work/tls.key"
  operator_runs --tls-cert-file="$work/tls.crt" --tls-private-key-file="$work/tls.key" --client-ca-file="$work/own-ca.crt"
  local header
  header=$(with_token prometheus-k8s)
  start load bash -c 'while :; do curl --silent --show-error --fail --max-time 10 --output /dev/null "$@" || exit 1; done' - \
    --cacert "$work/own-ca.crt" --resolve "$host:$(metrics_port):127.0.0.1" --header "$header" "https://$host:$(metrics_port)/metrics"
  shows first
  cp "$work/second.crt" "$work/tls.crt.new" && cp "$work/second.key" "$work/tls.key.new"
  mv "$work/tls.crt.new" "$work/tls.crt" && mv "$work/tls.key.new" "$work/tls.key"
  await 30 shows second
  running load || { cat "$work/load.log"; return 1; }
  stop load
}
shows() { openssl s_client -connect "127.0.0.1:$(metrics_port)" </dev/null 2>/dev/null | grep "subject=CN = $1"; }

client_certificates_are_accounts() {
  kubectl create clusterrolebinding scrapers --clusterrole gpu-sharing-operator-metrics-reader --group scrapers
  issue scraper /O=scrapers/CN=scraper
  issue other /CN=other
  answers 200 --cacert "$work/own-ca.crt" --cert "$work/scraper.crt" --key "$work/scraper.key"
  answers 403 --cacert "$work/own-ca.crt" --cert "$work/other.crt" --key "$work/other.key"
  kubectl delete clusterrolebinding scrapers
}

check "the chart is installed with secure metrics" install_chart --set metrics.secure.enabled=true \
  --set 'metrics.secure.readers[0].namespace=monitoring' --set 'metrics.secure.readers[0].name=prometheus-k8s'
check "the chart issues a certificate for the metrics Service" serves_the_charts_certificate
check "readers are let in, and nobody else" only_readers_are_let_in
check "who does not trust its authority reads nothing" who_does_not_trust_the_authority_reads_nothing
check "TLS 1.2 and 1.3 are spoken, and nothing older" only_new_tls_is_spoken
check "a certificate in files is renewed under load" certificate_rotates_under_load
check "a client certificate is an account like any other" client_certificates_are_accounts
stop operator
close_checks
