#!/usr/bin/env bash
# `./dev test` and its tiers; each has all of the one before it:
#
#   quick      the program, 800 scenarios, upstream's verdicts, the rooms, the examples of the documents
#   (none)     + each C++ suite, the simulator, and random walks with fixed seeds
#   full       + the real control plane, chart, image, the release build with the scenarios over it and on other systems,
#              each parser for ten seconds under libFuzzer, 2,000 faulted rollouts, format, shellcheck. What continuous
#              integration runs. A skip that tests/allowed_skips.txt does not name counts as failed
#   nightly    + two hours of faulted rollouts with new seeds, upgrade from the former release, AddressSanitizer, all combinations, other walks, seeded mistakes, the
#              limits of the benches, a signed release, the program for arm64
#   asan, tsan the second tier under that sanitizer
#
# `./dev test SUITE [FILTER]` runs one suite and builds only what that needs:
#
#   scenarios, walks, kubectl, controlplane   the scripts of tests/scenarios, tests/sim, tests/conformance/controlplane
#   glibc                              the release program on the systems whose glibc it is for
#   image                              the Dockerfile's image with the release program, built with buildah and run
#   soak                               2,000 rollouts on the simulator under seeded faults
#   fuzz                               each parser for ten seconds under libFuzzer; FILTER chooses targets
#   conformance, or one of its parts   tests/conformance/run.sh, `run.sh --list` names the parts
#   unit, sim                          everything with this ctest label
#   planner, explain_tests, …          a ctest name; "_tests" may be left out, but where a part has the name (kai, chart)
#
# FILTER is a text that the names of the tests or scenarios contain. $GSODEV_PRESET names another preset than debug.
# Prints what ran, failed and was skipped; the last line is "N passed, N failed, N skipped".
set -euo pipefail
cd "$(dirname "${BASH_SOURCE[0]}")/.."
# shellcheck source=../dev
source ./dev --as-library
PRESET=${GSODEV_PRESET:-debug}
MODE=${1:-test}
case $MODE in
  asan | tsan) PRESET=$MODE MODE=test ;;
esac

ensure_packages "${BUILD_PACKAGES[@]}" "${SPEED_PACKAGES[@]}" "${TEST_PACKAGES[@]}"
OUT=build/test-results
STARTED=$SECONDS
PASSED=0 FAILED=0 SKIPPED=0 FAILED_NAMES=() SKIPPED_NAMES=()

report() {  # NAME PASSED FAILED SKIPPED SECONDS
  PASSED=$((PASSED + $2)) FAILED=$((FAILED + $3)) SKIPPED=$((SKIPPED + $4))
  [ "$3" -eq 0 ] || FAILED_NAMES+=("$1")
  [ "$4" -eq 0 ] || note_skips "$1"
  printf '  %-28s %5d passed %4d failed %4d skipped %5d s\n' "$1" "$2" "$3" "$4" "$5"
}

# note_skips NAME: a suite of parts has skipped some of these, which its log names.
note_skips() {
  local parts=() part
  mapfile -t parts < <(sed -n -E 's/^  (\S+) +[0-9]+ passed +[0-9]+ failed +[1-9][0-9]* skipped .*/\1/p' "$OUT/$1.log" 2>/dev/null)
  for part in "${parts[@]:-$1}"; do SKIPPED_NAMES+=("$part"); done
}

# suite NAME COMMAND…: runs one script suite, whose last "N passed, N failed[, N skipped]" line counts (else 1 for the
# exit code). Exit code 77 without such a line means skipped, for the reason that the last line says.
suite() {
  local name=$1 from=$SECONDS status=0 counts; shift
  "$@" >"$OUT/$name.log" 2>&1 </dev/null || status=$?
  counts=$(grep -E '^[0-9]+ passed, [0-9]+ failed(, [0-9]+ skipped)?$' "$OUT/$name.log" | tail -n 1 || true)
  local passed=0 failed=0 skipped=0
  if [ -n "$counts" ]; then read -r passed _ failed _ skipped _ <<<"${counts//,/} 0"
  elif [ "$status" -eq 0 ]; then passed=1
  elif [ "$status" -eq 77 ]; then skipped=1
  else failed=1; fi
  [ "$status" -eq 0 ] || [ "$status" -eq 77 ] || [ "$failed" -gt 0 ] || failed=1
  report "$name" "$passed" "$failed" "$skipped" $((SECONDS - from))
  [ "$status" -ne 77 ] || tail -n 1 "$OUT/$name.log"
  [ "$failed" -eq 0 ] || grep -vE '^(ok|PASS|SKIP)\b' "$OUT/$name.log" | tail -n 60 | keep_failure "$name" >&2
}

# keep_failure NAME: passes the end of a failed suite's log on, and keeps it to be printed once more at the very end: of a
# long log a service often keeps the last part only.
keep_failure() { sed "s/^/$1: /" | tee -a "$OUT/failures.log"; }

# Reads one of GoogleTest's reports.
report_gtest() {  # FILE
  local name tests failures skipped seconds
  name=$(basename "$1" .xml)
  tests=$(sed -n -E 's/^<testsuites tests="([0-9]+)".*/\1/p' "$1" | head -n 1)
  failures=$(sed -n -E 's/^<testsuites .* failures="([0-9]+)".* errors="([0-9]+)".*/\1/p' "$1" | head -n 1)
  seconds=$(sed -n -E 's/^<testsuites .* time="([0-9]+)(\.[0-9]+)?".*/\1/p' "$1" | head -n 1)
  skipped=$(grep -c '<skipped' "$1" || true)
  report "$name" $((tests - failures - skipped)) "$failures" "$skipped" "$seconds"
  mv "$1" "$1.counted"
}

# run_ctest ARGUMENTS-OF-CTEST…: GoogleTest executables and scripts, in parallel, one more than there are cores because some
# mostly wait; each executable writes its own report, from which the cases are counted.
run_ctest() {
  local from=$SECONDS status=0 name why listed log="$OUT/ctest.log"
  rm -f "$OUT"/gtest/*
  GTEST_OUTPUT="xml:$PWD/$OUT/gtest/" ctest --preset "$PRESET" "$@" -j "$(($(nproc) + 1))" --output-on-failure \
    >"$log" 2>&1 </dev/null || status=$?
  for xml in "$OUT"/gtest/*.xml; do
    [ ! -f "$xml" ] || report_gtest "$xml"
  done
  # A crash or a time-out leaves no report: count those from ctest itself.
  listed=$(sed -n -E 's/^\s*[0-9]+ - (\S+) \((Failed|Timeout|SEGFAULT|Subprocess.*|.*Exception.*|Not Run)\).*/\1 \2/p' "$log" || true)
  while read -r name why; do
    [ -n "$name" ] || continue
    [ -f "$OUT/gtest/$name.xml.counted" ] && [ "$why" = Failed ] && continue
    report "$name ($why)" 0 1 0 0
  done <<<"$listed"
  # Scripts that ctest runs (no GoogleTest report) count one each.
  while read -r name why; do
    [ -n "$name" ] && [ ! -f "$OUT/gtest/$name.xml.counted" ] || continue
    if [ "$why" = Passed ]; then report "$name" 1 0 0 0; else report "$name" 0 0 1 0; fi
  done < <(sed -n -E 's/^ *[0-9]+\/[0-9]+ Test +#[0-9]+: (\S+) \.*(\*\*\*)? *(Passed|Skipped).*/\1 \3/p' "$log") || true
  if [ "$status" -ne 0 ]; then
    grep -vE '^\[ +(OK|RUN) +\]' "$log" | tail -n 120 | keep_failure ctest >&2
    [ "$FAILED" -gt 0 ] || report "ctest $*" 0 1 0 $((SECONDS - from))
  fi
  mv "$log" "$OUT/ctest-$PRESET-${*: -1}.log"
}

run_scenarios() {  # [FILTER]
  GSO_BIN="$PWD/build/$PRESET/controller/gpu-sharing-operator" suite scenarios tests/scenarios/suite.py --jobs "$(nproc)" "$@"
}

run_walks() {
  GSO_BIN="$PWD/build/$PRESET/controller/gpu-sharing-operator" suite walks tests/scenarios/walk_suite.py --jobs "$(nproc)" "$@"
}

# kubectl against the simulated API server; with $GSODEV_KUBECTL, else the one on PATH.
run_kubectl() {
  suite kubectl tests/sim/kubectl_test.sh --simulated "build/$PRESET/tests/sim/fleet/gso-sim"
}

run_conformance() {  # [PART]
  GSODEV_BUILD="$PWD/build/$PRESET" suite "${1:-conformance}" tests/conformance/run.sh "$@"
}

# Rollouts under seeded faults, beyond those of ctest.
run_soak() {  # OPTIONS-OF-GSO-SOAK…
  GSO_SOURCE_DIR=$PWD suite soak "build/$PRESET/tests/sim/soak/gso-soak" "$@"
}

run_glibc() { suite glibc tests/libraries/glibc_test.py build/release/controller/gpu-sharing-operator; }

run_image() { suite image tests/image/image_test.sh build/release/controller/gpu-sharing-operator; }

run_fuzz() {  # [FILTER]
  ensure_packages "${FUZZ_PACKAGES[@]}"
  build fuzz fuzz_targets
  suite fuzz tests/fuzz/run.sh --short "$@"
}

built_kubectl() { printf '%s/kubectl' "$(tests/conformance/controlplane/build.sh --bin)"; }

# --- Tiers.

expect_minutes() {
  if [ "$PRESET" = debug ]; then
    say "$1 (2 cores: about $2 min with nothing built and no cache, $3 min again)"
  else
    say "$1, built as $PRESET"
  fi
}

tier_quick() {
  build "$PRESET" gpu-sharing-operator
  run_scenarios
  run_ctest -L quick
  say "./dev test quick: done after $((SECONDS - STARTED)) s"
}

tier_test() {
  tier_quick
  build "$PRESET"
  say "built after $((SECONDS - STARTED)) s; running the C++ suites and the simulator"
  [ "$MODE" = test ] || begin_background prepare_full
  run_ctest -L 'unit|sim'
  run_walks
  say "./dev test: done after $((SECONDS - STARTED)) s"
}

# What the conformance suite and the image begin with, prepared beside suites that run, not beside the compiler. Nothing is
# compiled beside the conformance suite: kubelets that are emulated must not be late.
prepare_full() {
  local program built=tests/conformance/controlplane/build.sh
  "$built" && touch "$OUT/control-plane-built"
  for program in promtool kubeconform kwok; do "$built" "$program" || true; done
  tests/image/base.sh || true  # It waits for a mirror, and takes minutes once.
}

# begin_background FUNCTION: with low priority, in a process group of its own; its output is in $OUT/FUNCTION.log.
begin_background() {
  say "preparing the control plane in the background (log: $OUT/$1.log)"
  set -m
  (renice -n 10 "$BASHPID" >/dev/null; "$1") >"$OUT/$1.log" 2>&1 </dev/null &
  BACKGROUND=$!
  set +m
  trap end_background EXIT
}

end_background() {
  kill -- "-$BACKGROUND" 2>/dev/null || true
  wait "$BACKGROUND" 2>/dev/null || true
  trap - EXIT
}

# Until the background has built the control plane. Counts a build that failed as a failed test.
await_control_plane() {
  say "waiting for the control plane"
  while [ ! -e "$OUT/control-plane-built" ] && kill -0 "$BACKGROUND" 2>/dev/null; do sleep 1; done
  [ ! -e "$OUT/control-plane-built" ] || return 0
  tail -n 40 "$OUT/prepare_full.log" | keep_failure control-plane >&2
  report control-plane 0 1 0 0
  return 1
}

tier_full() {
  [ "$(id -u)" -eq 0 ] || die "./dev test full builds an image, for which it must be root"
  ensure_packages "${LINT_PACKAGES[@]}" "${ENGINE_PACKAGES[@]}" "${IMAGE_PACKAGES[@]}" "${BENCH_PACKAGES[@]}" "${FUZZ_PACKAGES[@]}" \
    "${RELEASE_PACKAGES[@]}" "${RELEASE_TEST_PACKAGES[@]}"
  suite format ./dev fmt --check
  suite shellcheck ./dev shellcheck
  tier_test
  build release gpu-sharing-operator gso-sim
  if await_control_plane; then
    GSODEV_KUBECTL=$(built_kubectl) run_kubectl
    run_conformance
    suite controlplane tests/conformance/controlplane/cluster_test.sh
  fi
  end_background
  run_soak --from 501 --seeds 2000
  PRESET=release run_scenarios
  run_glibc
  run_image
  run_fuzz
}

# Each name that was skipped must be in tests/allowed_skips.txt.
refuse_skips() {
  local name
  for name in "${SKIPPED_NAMES[@]}"; do
    grep -q "^$name: " tests/allowed_skips.txt || report "$name (skipped, and not in tests/allowed_skips.txt)" 0 1 0 0
  done
}

tier_nightly() {
  tier_full
  suite former-release tests/chart/former_release.sh build
  run_conformance upgrade
  run_conformance fleet-bench
  run_conformance release-signed
  build_release arm64
  suite arm64 tests/libraries/arm64_test.py build/release-arm64/controller/gpu-sharing-operator build/release/controller/gpu-sharing-operator "build/$PRESET/tests/sim/fleet/gso-sim"
  run_walks --random 100
  # Hours: without ctest, which would end it.
  run_soak --from "$(($(date +%s) * 1000))" --minutes 120
  GSO_COMBINATIONS=full GSO_SOURCE_DIR=$PWD suite combinations "build/$PRESET/tests/reconcilers/combination_tests" --gtest_brief=1
  suite mutate ./dev mutate
  build release benches
  suite bench-limits bench/run.sh --limits
  PRESET=asan
  build asan
  run_ctest -L 'unit|sim'
  run_conformance
}

# The suite of a ctest name, which may be in shards: NAME, NAME_1, …
run_ctest_name() {  # NAME [FILTER]
  local name=$1 filter=${2:-} names targets
  configure "$PRESET"
  names=$(ctest --preset "$PRESET" -N | sed -n -E 's/^ *Test +#[0-9]+: (\S+)$/\1/p')
  grep -qx "$name" <<<"$names" || name=${name}_tests
  if ! grep -qx "$name" <<<"$names"; then
    die "there is no suite '$1'. Suites: scenarios walks kubectl controlplane conformance glibc image fuzz unit sim; parts of the conformance suite: $(tests/conformance/run.sh --list | xargs); ctest names: $(xargs <<<"$names")"
  fi
  targets=$(cmake --build --preset "$PRESET" --target help | sed -n -E 's/^([A-Za-z0-9_-]+): .*/\1/p')
  if grep -qx "$name" <<<"$targets"; then
    build "$PRESET" "$name"
    [ -z "$filter" ] || export GTEST_FILTER="*$filter*"
  else  # A script, which tries the operator.
    [ -z "$filter" ] || die "suite '$name' is a script; it takes no filter"
    build "$PRESET" gpu-sharing-operator
  fi
  run_ctest -R "^$name(_[0-9]+)?$"
}

run_one() {  # SUITE [FILTER]
  case $1 in
    scenarios)
      build "$PRESET" gpu-sharing-operator
      run_scenarios "${@:2}"
      ;;
    kubectl)
      build "$PRESET" gso-sim
      tests/conformance/controlplane/build.sh kubectl
      GSODEV_KUBECTL=$(built_kubectl) run_kubectl
      ;;
    walks)
      build "$PRESET" gpu-sharing-operator
      run_walks "${@:2}"
      ;;
    fuzz) run_fuzz "${@:2}" ;;
    soak)
      build "$PRESET" gso-soak
      run_soak --from 501 --seeds 2000
      ;;
    image)
      ensure_packages "${ENGINE_PACKAGES[@]}" "${IMAGE_PACKAGES[@]}" "${BENCH_PACKAGES[@]}"
      build release gpu-sharing-operator
      run_image
      ;;
    glibc)
      ensure_packages "${ROOTS_PACKAGES[@]}" "${BENCH_PACKAGES[@]}"
      build release gpu-sharing-operator
      run_glibc
      ;;
    controlplane)
      tests/conformance/controlplane/build.sh
      suite controlplane tests/conformance/controlplane/cluster_test.sh
      ;;
    unit | sim)
      build "$PRESET"
      run_ctest -L "$1"
      ;;
    *)
      if [ "$1" = conformance ] || grep -qx -- "$1" <<<"$(tests/conformance/run.sh --list)"; then
        build "$PRESET"
        tests/conformance/controlplane/build.sh
        if [ "$1" = conformance ]; then run_conformance; else run_conformance "$1"; fi
      else
        run_ctest_name "$@"
      fi
      ;;
  esac
  [ $((PASSED + FAILED + SKIPPED)) -gt 0 ] || die "no test of suite '$1' has a name that contains '${2:-}'"
}

case $MODE in
  quick | test | full | nightly)
    rm -rf "$OUT"
    mkdir -p "$OUT/gtest"
    case $MODE in
      quick) expect_minutes "the program and its scenarios" 9 2 ;;
      test) expect_minutes "scenarios, C++ suites and the simulator" 28 11 ;;
      full) expect_minutes "everything that continuous integration runs" 65 40 ;;
      nightly) say "everything, for hours" ;;
    esac
    "tier_$MODE"
    case $MODE in full | nightly) refuse_skips ;; esac
    ;;
  *)
    mkdir -p "$OUT/gtest"
    rm -f "$OUT"/gtest/* "$OUT/failures.log"
    run_one "$@"
    ;;
esac

say "finished after $((SECONDS - STARTED)) s; logs in $OUT"
[ ! -s "$OUT/failures.log" ] || { echo "what failed, once more:"; tail -n 80 "$OUT/failures.log" | cut -c1-400; }
[ ${#SKIPPED_NAMES[@]} -eq 0 ] || printf 'skipped: %s\n' "$(IFS=,; echo "${SKIPPED_NAMES[*]}")"
[ ${#FAILED_NAMES[@]} -eq 0 ] || printf 'failed: %s\n' "${FAILED_NAMES[*]}"
printf '%d passed, %d failed, %d skipped\n' "$PASSED" "$FAILED" "$SKIPPED"
[ "$FAILED" -eq 0 ]
