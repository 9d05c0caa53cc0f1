#!/usr/bin/env bash
# `./dev bench [FILTER]`: runs the benches of the release build whose name contains FILTER.
# `./dev bench --limits [FILTER]`: runs only what has a limit of memory or writes, and prints a line for each; speeds are
# not judged. The last line is "N passed, N failed, N skipped".
# `./dev bench fleet --real [OPTION…]`: bench/real/fleet.py, which prints its options with --help.
set -euo pipefail
cd "$(dirname "${BASH_SOURCE[0]}")/.."
LIMITS=
[[ ${1:-} != --limits ]] || { LIMITS=1; shift; }
FILTER=${1:-}
BIN=build/release
OPERATOR=$BIN/controller/gpu-sharing-operator
if [[ ${2:-} == --real ]]; then
  [[ $FILTER == fleet ]] || { echo "bench/run.sh: only 'fleet' has --real" >&2; exit 2; }
  peer=$(bench/peer/build.sh)
  exec bench/real/fleet.py --operator "$OPERATOR" --peer "$peer" "${@:3}"
fi

passed=0 failed=0
fleet() { "$BIN/bench/fleet_bench" --operator "$OPERATOR" "$@"; }
run() {  # NAME COMMAND…
  local name=$1; shift
  [[ -z $LIMITS && $name == *"$FILTER"* ]] || return 0
  printf '\n%s\n' "--- $name"
  "$@"
}
# limit NAME COMMAND…: a bench that fails above a limit. With --limits its output is shown only where it fails.
limit() {
  [[ -n $LIMITS ]] || { run "$@"; return; }
  local name=$1 began=$SECONDS output figures; shift
  [[ $name == *"$FILTER"* ]] || return 0
  if output=$("$@" 2>&1); then
    passed=$((passed + 1)) figures=$(grep -E 'peak|PATCHes' <<<"$output" | tr -s ' ' | paste -sd ';' || true)
    printf 'PASS %4d s  %s%s\n' $((SECONDS - began)) "$name" "${figures:+: $figures}"
  else
    failed=$((failed + 1))
    printf 'FAIL %4d s  %s\n%s\n' $((SECONDS - began)) "$name" "$output"
  fi
}

run fleet-1000 fleet --nodes 1000
# An unchanged node gets no PATCH, a changed one two: into the change and out of it. The chart requests 48Mi.
limit fleet-500-writes fleet --nodes 500 --most-patches-unchanged 0 --most-patches-changed 2.1 --most-memory 48
run micro "$BIN/bench/micro_bench"
run kai "$BIN/bench/kai_bench"
run partitioning "$BIN/bench/partitioning_bench"
limit fleet-5000-memory fleet --nodes 1 --copies 4999 --no-edit --most-patches-unchanged 0 --most-memory 256
limit fleet-50000-memory fleet --nodes 1 --copies 49999 --node-bytes 6000 --no-edit --most-patches-unchanged 0 --most-memory 768
run admission "$BIN/bench/admission_bench"
run lint-1000 "$BIN/bench/profile_bench" lint
if [[ -n $LIMITS ]]; then
  limit input-memory bench/input_bench.py "$OPERATOR" --memory-only
else
  run input bench/input_bench.py "$OPERATOR"
fi
run plan-5000 "$BIN/bench/profile_bench" plan
run rollout-15000 "$BIN/bench/rollout_bench" --nodes 15000

if [[ -n $LIMITS ]]; then
  ((passed + failed)) || { echo "bench/run.sh: no bench with a limit has a name that contains '$FILTER'" >&2; exit 2; }
  echo "$passed passed, $failed failed, 0 skipped"
  ((failed == 0))
fi
