#!/usr/bin/env bash
# Everything that needs a real API server, one part after the other; `./dev test` calls it after the builds.
#
#   run.sh [PART...]      parts: sequences chart bad-input story; all of them by default
#
# Prints one line for each part (its whole output is in build/test-results/conformance/PART.log) and the end of what
# failed; closes with "N passed, N failed". Every part has a control plane of its own, removed at the end.
set -euo pipefail
shopt -s inherit_errexit

here=$(cd "$(dirname "${BASH_SOURCE[0]}")" && pwd)
project=$(cd "$here/../.." && pwd)
build=$project/build/debug
logs=$project/build/test-results/conformance
mkdir -p "$logs"
work=$(mktemp -d)
cluster=$work/cluster
tidy() {
  "$here/controlplane/cluster.sh" down --dir "$cluster" >/dev/null 2>&1 || true
  rm -rf "$work"
}
trap tidy EXIT
trap 'exit 130' INT TERM

up() { "$here/controlplane/cluster.sh" up --dir "$cluster" "$@" >"$logs/cluster.log" 2>&1; }
down() { "$here/controlplane/cluster.sh" down --dir "$cluster" >>"$logs/cluster.log" 2>&1; }

sequences() {
  up --api-only
  timeout 600 "$build/tests/conformance/conformance_sequences" --server-a sim --kubeconfig "$cluster/admin.kubeconfig" \
    --etcd "http://127.0.0.1:$(<"$cluster/ports/etcd")" --sequences "$here/sequences" --root "$project"
}

chart() {
  up
  "$here/controlplane/build.sh" helm >/dev/null
  timeout 600 "$project/tests/chart/chart_test.sh" "$cluster" "$build"
}

bad-input() {
  up
  timeout 900 "$here/bad_input_test.sh" "$cluster" "$build"
}

# The story under the chart's own ServiceAccount, for plugin releases of both behaviours; each in a fresh cluster.
story() {
  local version status=0 told=0
  for version in v0.17.0 v0.20.0; do
    up
    timeout 900 "$here/story_test.sh" "$cluster" "$build" "$version" || status=1
    down
    told=$((told + 1))
  done
  ((status == 0)) && ((told == 2))
}

passed=0 failed=0
parts=("$@")
((${#parts[@]})) || parts=(sequences chart bad-input story)
for part in "${parts[@]}"; do
  began=$SECONDS status=0
  ("$part") >"$logs/$part.log" 2>&1 </dev/null || status=$?
  # A part may close with several counts, one for each of its scripts.
  read -r good bad < <(sed -n -E 's/^([0-9]+) passed, ([0-9]+) failed$/\1 \2/p' "$logs/$part.log" |
    awk '{ good += $1; bad += $2 } END { print good + 0, bad + 0 }')
  if ((status != 0 && bad == 0)); then bad=1; fi
  passed=$((passed + good)) failed=$((failed + bad))
  printf '  %-28s %5d passed %4d failed %5d s\n' "$part" "$good" "$bad" $((SECONDS - began))
  if ((bad)); then grep -vE '^ok ' "$logs/$part.log" | tail -n 60 | cut -c1-600; fi
  down || true
done
printf '%d passed, %d failed\n' "$passed" "$failed"
((failed == 0))
