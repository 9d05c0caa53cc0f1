#!/usr/bin/env bash
# `./dev test [fast|asan|tsan]`: builds everything and runs every suite, fast ones first; under a sanitizer's preset where
# one is named. The real control plane is built (once, cached) while the C++ compiles. Prints what ran and how many; the last line is "N passed, N failed".
set -euo pipefail
cd "$(dirname "${BASH_SOURCE[0]}")/.."
# shellcheck source=../dev
source ./dev --as-library
MODE=${1:-all}
PRESET=debug
case $MODE in
  all|fast) ;;
  asan|tsan) PRESET=$MODE MODE=all ;;
  *) die "test takes nothing, or one of fast, asan and tsan, not '$MODE'" ;;
esac

ensure_packages "${BUILD_PACKAGES[@]}" "${SPEED_PACKAGES[@]}" "${TEST_PACKAGES[@]}"
OUT=build/test-results
rm -rf "$OUT"; mkdir -p "$OUT/gtest"
STARTED=$SECONDS
FAILED=0 PASSED=0 FAILED_NAMES=()

# suite NAME COMMAND…: runs one script suite, whose last "N passed, N failed" line counts (else 1 for the exit code).
suite() {
  local name=$1 from=$SECONDS status=0 counts; shift
  "$@" >"$OUT/$name.log" 2>&1 </dev/null || status=$?
  counts=$(grep -E '^[0-9]+ passed, [0-9]+ failed$' "$OUT/$name.log" | tail -n 1 || true)
  local passed=0 failed=0
  if [ -n "$counts" ]; then read -r passed _ failed _ <<<"${counts/,/}"
  elif [ "$status" -eq 0 ]; then passed=1
  else failed=1; fi
  [ "$status" -eq 0 ] || [ "$failed" -gt 0 ] || failed=1
  report "$name" "$passed" "$failed" $((SECONDS - from))
  [ "$failed" -eq 0 ] || tail -n 60 "$OUT/$name.log" >&2
}

report() {  # NAME PASSED FAILED SECONDS
  PASSED=$((PASSED + $2)) FAILED=$((FAILED + $3))
  [ "$3" -eq 0 ] || FAILED_NAMES+=("$1")
  printf '  %-28s %5d passed %4d failed %5d s\n' "$1" "$2" "$3" "$4"
}

CONTROL_PLANE=
if [ "$MODE" = all ]; then
  say "building the control plane in the background (log: $OUT/controlplane-build.log)"
  nice -n 10 tests/conformance/controlplane/build.sh >"$OUT/controlplane-build.log" 2>&1 </dev/null &
  CONTROL_PLANE=$!
  trap 'kill "$CONTROL_PLANE" 2>/dev/null || true' EXIT
fi
build "$PRESET"
say "built after $((SECONDS - STARTED)) s; running the suites"

# GoogleTest executables, in parallel; each writes its own report, from which the cases are counted.
run_ctest() {
  local label=$1 from=$SECONDS status=0 name tests failures
  GTEST_OUTPUT="xml:$PWD/$OUT/gtest/" ctest --preset "$PRESET" -L "$label" -j "$(nproc)" --output-on-failure \
    >"$OUT/ctest-$label.log" 2>&1 </dev/null || status=$?
  for xml in "$OUT"/gtest/*.xml; do
    [ -f "$xml" ] || continue
    name=$(basename "$xml" .xml)
    tests=$(sed -n -E 's/^<testsuites tests="([0-9]+)".*/\1/p' "$xml" | head -n 1)
    failures=$(sed -n -E 's/^<testsuites .* failures="([0-9]+)".* errors="([0-9]+)".*/\1/p' "$xml" | head -n 1)
    report "$name" $((tests - failures)) "$failures" "$(sed -n -E 's/^<testsuites .* time="([0-9]+)(\.[0-9]+)?".*/\1/p' "$xml" | head -n 1)"
    mv "$xml" "$xml.counted"
  done
  # A crash or a time-out leaves no report: count those from ctest itself.
  local listed
  listed=$(sed -n -E 's/^\s*[0-9]+ - (\S+) \((Failed|Timeout|SEGFAULT|Subprocess.*|.*Exception.*|Not Run)\).*/\1 \2/p' "$OUT/ctest-$label.log" || true)
  while read -r name why; do
    [ -n "$name" ] || continue
    [ -f "$OUT/gtest/$name.xml.counted" ] && [ "$why" = Failed ] && continue
    report "$name ($why)" 0 1 0
  done <<<"$listed"
  # Scripts that ctest runs (no GoogleTest report) count one each.
  while read -r name; do
    [ -n "$name" ] && [ ! -f "$OUT/gtest/$name.xml.counted" ] && report "$name" 1 0 0
  done < <(sed -n -E 's/^ *[0-9]+\/[0-9]+ Test +#[0-9]+: (\S+) \.+ +Passed.*/\1/p' "$OUT/ctest-$label.log") || true
  if [ "$status" -ne 0 ]; then
    grep -vE '^\[ +(OK|RUN) +\]' "$OUT/ctest-$label.log" | tail -n 120 >&2
    [ "$FAILED" -gt 0 ] || report "ctest-$label" 0 1 $((SECONDS - from))
  fi
}
run_ctest unit
run_ctest sim

if [ "$MODE" = all ]; then
  say "waiting for the control plane's build"
  if wait "$CONTROL_PLANE"; then
    trap - EXIT
    suite controlplane tests/conformance/controlplane/cluster_test.sh
    GSO_BUILD="$PWD/build/$PRESET" suite conformance tests/conformance/run.sh
  else
    trap - EXIT
    tail -n 40 "$OUT/controlplane-build.log" >&2
    report controlplane-build 0 1 0
  fi
fi

say "finished after $((SECONDS - STARTED)) s; logs in $OUT"
[ ${#FAILED_NAMES[@]} -eq 0 ] || printf 'failed: %s\n' "${FAILED_NAMES[*]}"
printf '%d passed, %d failed\n' "$PASSED" "$FAILED"
[ "$FAILED" -eq 0 ]
