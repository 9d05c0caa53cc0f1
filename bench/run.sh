#!/usr/bin/env bash
# `./dev bench [FILTER]`: runs the benches of the release build whose name contains FILTER.
# `./dev bench fleet --real [OPTION…]`: bench/real/fleet.py, which prints its options with --help.
set -euo pipefail
cd "$(dirname "${BASH_SOURCE[0]}")/.."
FILTER=${1:-}
BIN=build/release
OPERATOR=$BIN/controller/gpu-sharing-operator
if [[ ${2:-} == --real ]]; then
  [[ $FILTER == fleet ]] || { echo "bench/run.sh: only 'fleet' has --real" >&2; exit 2; }
  peer=$(bench/peer/build.sh)
  exec bench/real/fleet.py --operator "$OPERATOR" --peer "$peer" "${@:3}"
fi
run() {  # NAME COMMAND…
  local name=$1; shift
  [[ $name == *"$FILTER"* ]] || return 0
  printf '\n%s\n' "--- $name"
  "$@"
}
run fleet-1000 "$BIN/bench/fleet_bench" --operator "$OPERATOR" --nodes 1000
run micro "$BIN/bench/micro_bench"
run kai "$BIN/bench/kai_bench"
run partitioning "$BIN/bench/partitioning_bench"
run fleet-5000-memory "$BIN/bench/fleet_bench" --operator "$OPERATOR" --nodes 5000 --no-edit --most-memory 256
run fleet-50000-memory "$BIN/bench/fleet_bench" --operator "$OPERATOR" --nodes 1 --copies 49999 --node-bytes 6000 --no-edit --most-memory 768
run admission "$BIN/bench/admission_bench"
run lint-1000 "$BIN/bench/profile_bench" lint
run input bench/input_bench.py "$OPERATOR"
run plan-5000 "$BIN/bench/profile_bench" plan
run rollout-15000 "$BIN/bench/rollout_bench" --nodes 15000
