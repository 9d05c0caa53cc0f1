#!/usr/bin/env bash
# Everything that needs a real API server; `./dev test full` calls it after the builds. The parts run side by side, each in a
# control plane of its own that is removed at its end: they mostly wait.
#
#   run.sh [PART...]      all parts by default, but for fleet-bench, upgrade and release-signed
#   run.sh --list         the names of the parts, one a line
#
# GSODEV_CONFORMANCE_JOBS says how many at once (6), GSODEV_BUILD which build is tried (build/debug).
# Prints one line for each part as it ends (its whole output is in
# build/test-results/conformance/PART.log) and the end of what failed; closes with what failed and its messages, and
# "N passed, N failed, N skipped".
set -euo pipefail
shopt -s inherit_errexit

here=$(cd "$(dirname "${BASH_SOURCE[0]}")" && pwd)
project=$(cd "$here/../.." && pwd)
build=${GSODEV_BUILD:-$project/build/debug}
logs=$project/build/test-results/conformance
jobs=${GSODEV_CONFORMANCE_JOBS:-6}
# PART, its control plane (whole, without controllers and scheduler, or none that this script starts), what is built for it
# beside that, and the scripts below tests/ with an argument for them behind $cluster and $build. A part that is a function
# below has no script. In the order of starting: those that take longest come first, and those last that need promtool or
# kubeconform, which are built for them.
table='
bad-input         whole helm                       conformance/bad_input_test.sh
kai-race          api   helm                       conformance/kai_race_test.sh
kai               api   helm                       conformance/kai_test.sh
rollout-stories-2 whole helm                       conformance/story_test.sh rollouts:2/4
rollout-stories-1 whole helm                       conformance/story_test.sh rollouts:1/4
story-v0.17.0     whole helm                       conformance/story_test.sh v0.17.0
story-v0.20.0     whole helm                       conformance/story_test.sh v0.20.0
rollout-stories-3 whole helm                       conformance/story_test.sh rollouts:3/4
rollout-stories-4 whole helm                       conformance/story_test.sh rollouts:4/4
chart-live        whole helm                       chart/live_test.sh
seeds             whole helm                       conformance/story_test.sh seeds
high-availability whole helm                       conformance/high_availability_test.sh
attacks           none  helm
quick-start       whole helm                       docs/quick_start_test.sh
rollouts          whole helm                       conformance/rollout_test.sh
explain           whole -                          conformance/explain_test.sh
admission-webhook whole helm                       conformance/admission_webhook_test.sh
partitioning      whole helm                       conformance/partitioning_test.sh
standalone-mps    whole helm                       conformance/standalone_mps_test.sh
leaving           whole helm                       conformance/leaving_test.sh
label-owners      whole helm                       conformance/label_owners_test.sh
verify            whole -                          conformance/verify_test.sh
seed-commands     whole helm                       conformance/seed_commands_test.sh
kubectl-commands  whole -
sequences         api   -
playground        none  -                          conformance/playground_test.sh
crd-change        whole helm                       conformance/crd_change_test.sh
custom-resources  api   -                          conformance/custom_resources_test.sh
lint              whole -                          conformance/linted_objects_test.py
least-privilege   whole helm,promtool              conformance/least_privilege_test.sh
chart             whole helm,promtool,kubeconform  chart/chart_render_test.sh+chart/chart_install_test.sh
secure-metrics    api   helm,promtool              conformance/secure_metrics_test.sh
release           api   helm,krew                  conformance/release_test.sh
pod-mutation      whole helm,kubeconform           chart/pod_mutation_test.sh
'
mapfile -t all_parts < <(awk 'NF { print $1 }' <<<"$table")
# Only when named, and in `./dev test nightly`. fleet-bench builds a Go program and measures, which nothing should do beside
# it; upgrade needs the program of the former release, which takes half an hour to build; cosign takes minutes.
table+='
fleet-bench       none  -
upgrade           none  helm
release-signed    api   helm,krew,cosign           conformance/release_test.sh signed
'
named_parts=(fleet-bench upgrade release-signed)
if [[ ${1:-} == --list ]]; then
  printf '%s\n' "${all_parts[@]}" "${named_parts[@]}"
  exit
fi
mkdir -p "$logs"
work=$(mktemp -d)
# Not to be killed with the shell that waits: each part takes its control plane down itself.
tidy() {
  local pids
  mapfile -t pids < <(jobs -p)
  ((${#pids[@]} == 0)) || kill "${pids[@]}" 2>/dev/null || true
  wait || true
  rm -rf "$work"
}
trap tidy EXIT
trap 'exit 130' INT TERM

# Ends what hangs, and judges nobody who is slow: no part takes a quarter of it on a machine that runs several at once.
bounded() { timeout 1500 "$@"; }

# A part runs in a subshell with $cluster, the folder of its control plane.
up() { "$here/controlplane/cluster.sh" up --dir "$cluster" "$@" >"$logs/$part-cluster.log" 2>&1; }
down() { "$here/controlplane/cluster.sh" down --dir "$cluster" >>"$logs/$part-cluster.log" 2>&1; }

# Its own, where `up` and a script are not all.
sequences() {
  bounded "$build/tests/conformance/conformance_sequences" --server-a sim --kubeconfig "$cluster/admin.kubeconfig" \
    --etcd "http://127.0.0.1:$(<"$cluster/ports/etcd")" --sequences "$here/sequences" --root "$project"
}

kubectl-commands() {
  GSODEV_KUBECTL=$cluster/bin/kubectl bounded "$project/tests/sim/kubectl_test.sh" --kubeconfig "$cluster/admin.kubeconfig"
}

# One script for each attacker of docs/security.md, each on a control plane of its own.
attacks() {
  local status=0 script flags
  for script in "$here"/attacks/*_test.sh; do
    flags=()
    [[ $script != */kubelet_test.sh ]] || flags=(--api-server-flag --authorization-mode=Node --api-server-flag --enable-admission-plugins=NodeRestriction)
    up "${flags[@]}"
    bounded "$script" "$cluster" "$build" || status=1
    down
  done
  return "$status"
}

# The bench starts its control plane itself.
fleet-bench() { bounded "$here/fleet_bench_test.py" "$build/controller/gpu-sharing-operator" 2>&1; }

# With the program of the older release, where it has been built (tests/chart/former_release.sh build).
upgrade() {
  "$project/tests/chart/former_release.sh" path || return 77
  up
  bounded "$project/tests/chart/upgrade_test.sh" "$cluster" "$build"
}

# Runs the part of the row: PART PLANE PROGRAMS SCRIPTS ARGUMENT…
play() {
  local name=$1 plane=$2 programs=$3 scripts=${4:-} script status=0
  case $plane in
    whole) up ;;  # Without the controllers a namespace has no ServiceAccount, and no pod is admitted.
    api) up --api-only ;;
  esac
  # shellcheck disable=SC2086 # Several names.
  [[ $programs == - ]] || "$here/controlplane/build.sh" ${programs//,/ } >/dev/null
  if [[ -z $scripts ]]; then
    "$name"
    return
  fi
  for script in ${scripts//+/ }; do
    bounded "$project/tests/$script" "$cluster" "$build" "${@:5}" || status=$?
  done
  return "$status"
}

# Runs one part, and writes "PASSED FAILED SKIPPED" to $work/PART.counts.
run_part() {
  local began=$SECONDS status=0 good bad skipped
  part=$1 cluster=$work/$1  # Read by the traps, when this function is over.
  trap 'down || true' EXIT
  trap 'exit 130' INT TERM
  # shellcheck disable=SC2046 # The fields of a row.
  (play $(awk -v part="$part" '$1 == part' <<<"$table")) >"$logs/$part.log" 2>&1 </dev/null || status=$?
  # A part may close with several counts, one for each of its scripts.
  read -r good bad skipped < <(sed -n -E 's/^([0-9]+) passed, ([0-9]+) failed(, ([0-9]+) skipped)?$/\1 \2 \4/p' "$logs/$part.log" |
    awk '{ good += $1; bad += $2; skipped += $3 } END { print good + 0, bad + 0, skipped + 0 }')
  if ((status == 77 && good + bad + skipped == 0)); then skipped=1; fi
  if ((status != 0 && status != 77 && bad == 0)); then bad=1; fi
  printf '  %-28s %5d passed %4d failed %4d skipped %5d s\n' "$part" "$good" "$bad" "$skipped" $((SECONDS - began))
  ((skipped == 0)) || tail -n 1 "$logs/$part.log" | cut -c1-600
  # What failed comes first: the end of a log may be about something else, and long.
  if ((bad)); then
    awk -f "$here/failed_checks.awk" "$logs/$part.log" | head -n 40 | cut -c1-600 | tee "$work/$part.failed" || true
    grep -vE '^ok ' "$logs/$part.log" | tail -n 60 | cut -c1-600 || true
  fi
  echo "$good $bad $skipped" >"$work/$part.counts"
}

parts=("$@")
((${#parts[@]})) || parts=("${all_parts[@]}")
for part in "${parts[@]}"; do
  [[ " ${all_parts[*]} ${named_parts[*]} " == *" $part "* ]] || { echo "run.sh: there is no part '$part'" >&2; exit 2; }
done
for part in "${parts[@]}"; do
  while (($(jobs -rp | wc -l) >= jobs)); do wait -n || true; done
  (run_part "$part") &
done
wait || true

passed=0 failed=0 skipped=0
for part in "${parts[@]}"; do
  good=0 bad=1 left_out=0
  [ ! -s "$work/$part.counts" ] || read -r good bad left_out <"$work/$part.counts"
  passed=$((passed + good)) failed=$((failed + bad)) skipped=$((skipped + left_out))
done
# Once more, because what is above can be cut off where only the end of an output is kept.
for part in "${parts[@]}"; do
  [ ! -s "$work/$part.failed" ] || sed "s/^/$part: /;20q" "$work/$part.failed"
done
printf '%d passed, %d failed, %d skipped\n' "$passed" "$failed" "$skipped"
((failed == 0))
