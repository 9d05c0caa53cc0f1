#!/usr/bin/env bash
# Everything that needs a real API server; `./dev test full` calls it after the builds. The parts run side by side, each in a
# control plane of its own that is removed at its end: they mostly wait.
#
#   run.sh [PART...]      all parts by default, but for fleet-bench and upgrade
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
# In the order of starting: those that take longest come first, and those last that need promtool or kubeconform, which
# are built for them.
all_parts=(bad-input kai-race kai rollout-stories-2 rollout-stories-1 story-v0.17.0 story-v0.20.0 rollout-stories-3 rollout-stories-4 chart-live seeds
  high-availability attacks quick-start rollouts explain admission-webhook partitioning standalone-mps leaving label-owners verify seed-commands kubectl-commands sequences playground custom-resources lint
  least-privilege chart secure-metrics pod-mutation)
# Only when named, and in `./dev test nightly`. fleet-bench builds a Go program and measures, which nothing should do beside
# it; upgrade needs the program of the former release, which takes half an hour to build.
named_parts=(fleet-bench upgrade)
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

sequences() {
  up --api-only
  bounded "$build/tests/conformance/conformance_sequences" --server-a sim --kubeconfig "$cluster/admin.kubeconfig" \
    --etcd "http://127.0.0.1:$(<"$cluster/ports/etcd")" --sequences "$here/sequences" --root "$project"
}

kubectl-commands() {
  up
  GSODEV_KUBECTL=$cluster/bin/kubectl bounded "$project/tests/sim/kubectl_test.sh" --kubeconfig "$cluster/admin.kubeconfig"
}

custom-resources() {
  up --api-only
  bounded "$here/custom_resources_test.sh" "$cluster"
}

# Not --api-only: without the controllers a namespace has no ServiceAccount, and no pod is admitted.
lint() {
  up
  bounded "$here/linted_objects_test.py" "$cluster" "$build"
}

chart() {
  up
  "$here/controlplane/build.sh" helm promtool kubeconform >/dev/null
  local status=0
  bounded "$project/tests/chart/chart_render_test.sh" "$cluster" "$build" || status=1
  bounded "$project/tests/chart/chart_install_test.sh" "$cluster" "$build" || status=1
  return "$status"
}

pod-mutation() {
  up
  "$here/controlplane/build.sh" helm kubeconform >/dev/null
  bounded "$project/tests/chart/pod_mutation_test.sh" "$cluster"
}

chart-live() {
  up
  "$here/controlplane/build.sh" helm >/dev/null
  bounded "$project/tests/chart/live_test.sh" "$cluster" "$build"
}

# With the program of the older release, where it has been built (tests/chart/former_release.sh build).
upgrade() {
  "$project/tests/chart/former_release.sh" path || return 77
  up
  "$here/controlplane/build.sh" helm >/dev/null
  bounded "$project/tests/chart/upgrade_test.sh" "$cluster" "$build"
}

# The commands of docs/quick-start.md.
quick-start() {
  up
  "$here/controlplane/build.sh" helm >/dev/null
  bounded "$project/tests/docs/quick_start_test.sh" "$cluster" "$build"
}

rollouts() {
  up
  "$here/controlplane/build.sh" helm >/dev/null
  bounded "$here/rollout_test.sh" "$cluster" "$build"
}

# Each cause of `explain pod`, by the real scheduler.
explain() {
  up
  bounded "$here/explain_test.sh" "$cluster" "$build"
}

least-privilege() {
  up
  "$here/controlplane/build.sh" helm promtool >/dev/null
  bounded "$here/least_privilege_test.sh" "$cluster" "$build"
}

admission-webhook() {
  up
  "$here/controlplane/build.sh" helm >/dev/null
  bounded "$here/admission_webhook_test.sh" "$cluster" "$build"
}

leaving() {
  up
  "$here/controlplane/build.sh" helm >/dev/null
  bounded "$here/leaving_test.sh" "$cluster" "$build"
}

label-owners() {
  up
  "$here/controlplane/build.sh" helm >/dev/null
  bounded "$here/label_owners_test.sh" "$cluster" "$build"
}

# `verify NODE`: no chart, and the operator does not run.
verify() {
  up
  bounded "$here/verify_test.sh" "$cluster" "$build"
}

# The commands of documents that people follow.
seed-commands() {
  up
  "$here/controlplane/build.sh" helm >/dev/null
  bounded "$here/seed_commands_test.sh" "$cluster" "$build"
}

# Slices for pending pods, with the real scheduler.
partitioning() {
  up
  "$here/controlplane/build.sh" helm >/dev/null
  bounded "$here/partitioning_test.sh" "$cluster" "$build"
}

# Its DaemonSet controller is the real one.
standalone-mps() {
  up
  "$here/controlplane/build.sh" helm >/dev/null
  bounded "$here/standalone_mps_test.sh" "$cluster" "$build"
}

# Two replicas, and what can happen to them and to the API server.
high-availability() {
  up
  "$here/controlplane/build.sh" helm >/dev/null
  bounded "$here/high_availability_test.sh" "$cluster" "$build"
}

# One script for each attacker of docs/security.md, each on a control plane of its own.
attacks() {
  "$here/controlplane/build.sh" helm >/dev/null
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

secure-metrics() {
  up --api-only
  "$here/controlplane/build.sh" helm promtool >/dev/null
  bounded "$here/secure_metrics_test.sh" "$cluster" "$build"
}

kai() {
  up --api-only
  "$here/controlplane/build.sh" helm >/dev/null
  bounded "$here/kai_test.sh" "$cluster" "$build"
}

# A binder that races with the collection of reservations.
kai-race() {
  up --api-only
  "$here/controlplane/build.sh" helm >/dev/null
  bounded "$here/kai_race_test.sh" "$cluster" "$build"
}

# Starts its control plane itself, and takes it down: that is what it tries.
playground() { bounded "$here/playground_test.sh" "$cluster" "$build"; }

# The bench starts its control plane itself.
fleet-bench() { bounded "$here/fleet_bench_test.py" "$build/controller/gpu-sharing-operator" 2>&1; }

bad-input() {
  up
  "$here/controlplane/build.sh" helm >/dev/null
  bounded "$here/bad_input_test.sh" "$cluster" "$build"
}

# The story under the chart's own ServiceAccount, for plugin releases of both behaviours.
story-v0.17.0() { tell v0.17.0; }
story-v0.20.0() { tell v0.20.0; }
# Short stories, each on a fleet of its own: the rollouts that on-call meets, the procedures of NVIDIA's documents.
rollout-stories-1() { tell rollouts:1/4; }
rollout-stories-2() { tell rollouts:2/4; }
rollout-stories-3() { tell rollouts:3/4; }
rollout-stories-4() { tell rollouts:4/4; }
seeds() { tell seeds; }
tell() {
  up
  "$here/controlplane/build.sh" helm >/dev/null
  bounded "$here/story_test.sh" "$cluster" "$build" "$1"
}

# Runs one part, and writes "PASSED FAILED SKIPPED" to $work/PART.counts.
run_part() {
  local began=$SECONDS status=0 good bad skipped
  part=$1 cluster=$work/$1  # Read by the traps, when this function is over.
  trap 'down || true' EXIT
  trap 'exit 130' INT TERM
  ("$part") >"$logs/$part.log" 2>&1 </dev/null || status=$?
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
  declare -F "$part" >/dev/null || { echo "run.sh: there is no part '$part'" >&2; exit 2; }
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
