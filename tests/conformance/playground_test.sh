#!/usr/bin/env bash
# `./dev cluster`: what `up` prints works as printed, line by line; `down` leaves nothing.
#
#   playground_test.sh FOLDER BUILD_DIR     FOLDER is made, and the cluster in it taken down again
#
# Prints one line for each check and closes with "N passed, N failed".
mkdir -p "$1"
# shellcheck source=tests/conformance/beside_cluster.sh
source "$(dirname "${BASH_SOURCE[0]}")/beside_cluster.sh" "$@"
cd "$project"
export GSODEV_BUILD=$build
tidy() { "$here/cluster.sh" down --dir "$cluster" >/dev/null 2>&1 || true; }

# The commands that `up` prints are indented; as_printed TEXT: runs the one that has TEXT in it.
printed() { sed -n 's/^  //p' "$work/said" | grep -F -- "$1"; }
as_printed() {
  local line
  line=$(printed "$1")
  echo "\$ $line"
  eval "$line"
}

comes_up() {
  ./dev cluster up --dir "$cluster" >"$work/said"
  (($(sed -n 's/^  //p' "$work/said" | wc -l) == 4)) || { echo "four commands are expected, each tried here:"; cat "$work/said"; return 1; }
}
shows_nodes() {
  as_printed 'kubectl get nodes' | tee "$work/nodes"
  grep -E '^NAME .*GPU.REPLICAS +GPU.SHARING-STRATEGY +STATE$' "$work/nodes" &&
    (($(awk '$2 == "Ready"' "$work/nodes" | wc -l) == 12))
}
twelve_nodes_come_ready() { await 60 shows_nodes; }
node_shares() { (($(kubectl get nodes --selector "nvidia.com/gpu.replicas=$1" --output name | wc -l) >= $2)); }

an_edit_is_rolled() {
  export EDITOR="sed -i s/replicas:.4/replicas:\ 3/"
  as_printed 'edit configmap'
  await 45 node_shares 3 1
}
goes_down() {
  local line
  line=$(sed -n 's/^Stop it all: //p' "$work/said")
  echo "\$ $line"
  eval "$line"
  ! "$here/cluster.sh" status --dir "$cluster" || return 1
  # Its programs, and whoever talks to it: their command lines name files in its folder.
  ! grep -lsF -- "$cluster/" /proc/[0-9]*/cmdline
}

check "./dev cluster up starts a cluster and prints four commands" comes_up
eval "$(printed 'export KUBECONFIG')"
check "kubectl get nodes, as printed, shows twelve nodes that come ready" twelve_nodes_come_ready
check "with the labels that their profiles give" await 60 node_shares 4 6
# The operator's own ports are taken on many a desk.
export GSO_METRICS_BIND_ADDRESS=0 GSO_HEALTH_PROBE_BIND_ADDRESS=127.0.0.1:$probes GSO_SETTLE_PERIOD=1s
start operator bash -c "exec $(printed 'gpu-sharing-operator run')"
check "the operator, started as printed, becomes ready" await 30 is_ready
check "kubectl edit configmap, as printed, is rolled out" an_edit_is_rolled
check "the operator ends when it is stopped" stop operator
check "./dev cluster down, as printed, leaves nothing that runs" goes_down
close_checks
