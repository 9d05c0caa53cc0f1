#!/usr/bin/env bash
# Runs the fuzz targets that `./dev fuzz` has built, one after the other: tests/fuzz/run.sh [--short] [TARGET [SECONDS]]
#   --short   10 seconds for each, from the committed corpus and with a fixed seed: the part of `./dev test full`. A target that
#             is not built is skipped.
#   TARGET    only those whose names contain this text; SECONDS for each (600)
# What a long run finds is kept in build/fuzz/corpus, an input that crashes in build/fuzz/crashes.
# The last line is "N passed, N failed, N skipped".
set -euo pipefail
cd "$(dirname "${BASH_SOURCE[0]}")/../.."
OUT=build/fuzz
SHORT=
if [ "${1:-}" = --short ]; then SHORT=1; shift; fi
FILTER=${1:-} SECONDS_EACH=${2:-600}
[ -z "$SHORT" ] || SECONDS_EACH=10
PASSED=0 FAILED=0 SKIPPED=0 SCRATCH=$(mktemp -d)
trap 'rm -rf "$SCRATCH"' EXIT
mkdir -p "$OUT/crashes"

# The folders of seeds that a target begins with.
seeds_of() {  # TARGET
  echo "tests/fuzz/corpus/$1"
  case $1 in json | lint | profile) echo tests/reconcilers/testdata/profiles ;; esac
}

run_target() {  # TARGET
  local target=$1 log="$SCRATCH/$1.log" status=0 seeds=() found
  mapfile -t seeds < <(seeds_of "$target")
  if [ -n "$SHORT" ] && [ ! -x "$OUT/tests/fuzz/fuzz_$target" ]; then
    SKIPPED=$((SKIPPED + 1))
    printf 'SKIP %-16s not built; ./dev test fuzz %s builds and runs it\n' "$target" "$target"
    return
  fi
  local arguments=("-max_total_time=$SECONDS_EACH" -timeout=10 -rss_limit_mb=2048 -print_final_stats=1
    "-artifact_prefix=$OUT/crashes/$target-")
  if [ -n "$SHORT" ]; then
    found=$SCRATCH/$target
    arguments+=(-seed=1)
  else
    found=$OUT/corpus/$target
  fi
  mkdir -p "$found"
  "$OUT/tests/fuzz/fuzz_$target" "${arguments[@]}" "$found" "${seeds[@]}" >"$log" 2>&1 </dev/null || status=$?
  if [ "$status" -eq 0 ]; then
    PASSED=$((PASSED + 1))
    printf 'ok   %-16s %s inputs\n' "$target" "$(sed -n -E 's/^stat::number_of_executed_units: *//p' "$log")"
  else
    FAILED=$((FAILED + 1))
    printf 'FAIL %s\n' "$target"
    tail -n 60 "$log"
  fi
}

for source in tests/fuzz/*_fuzz.cc; do
  target=$(basename "$source" _fuzz.cc)
  [[ $target != *$FILTER* ]] || run_target "$target"
done
[ $((PASSED + FAILED + SKIPPED)) -gt 0 ] || { echo "no fuzz target has a name that contains '$FILTER'" >&2; exit 2; }
echo "$PASSED passed, $FAILED failed, $SKIPPED skipped"
[ "$FAILED" -eq 0 ]
