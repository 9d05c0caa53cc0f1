#!/usr/bin/env bash
# Stories (tests/sim/story) on a real API server: the operator is a local process under the chart's ServiceAccount, the
# fleet is the emulator, everything else is real.
#
#   story_test.sh CLUSTER_DIR BUILD_DIR v0.20.0       the story of twelve nodes, with that plugin version
#   story_test.sh CLUSTER_DIR BUILD_DIR rollouts      short stories: rollouts, seeds, or names with commas; rollouts:2/3
#                                                     is every third of them, from the second on
#
# CLUSTER_DIR: a running cluster without a fleet; BUILD_DIR: a built tree.
# Prints the story, one line for each safety invariant with the number of writes judged (invariants/judge.py), one line
# for each check, and closes with "N passed, N failed". An invariant that no write has put to the test says "not judged"
# and counts as neither; those that every story must put to the test fail then.
# shellcheck source=tests/conformance/beside_cluster.sh
source "$(dirname "${BASH_SOURCE[0]}")/beside_cluster.sh" "$@"
case $3 in
  v[0-9]*) what=(--plugin-version "$3" --time-scale 0.05) values=() ;;
  *)
    what=(--stories "${3%%:*}" --time-scale 0.03)
    values=(--set eviction.enabled=true --set daemonSetRestart.enabled=true
      --set kai.namespace=kai-scheduler --set 'kai.reservationNamespaces={kai-resource-reservation}')
    [[ $3 != *:*/* ]] || what+=(--share "$(cut -d: -f2 <<<"$3" | cut -d/ -f1)" "${3##*/}")
    ;;
esac

account=system:serviceaccount:$namespace:gpu-sharing-operator

# Each step of the story, or each short story, counts. The long one ends at the first step that does not hold.
tell() {
  local code=0 line
  timeout --kill-after=10 "${GSODEV_STORY_SECONDS:-1200}" "$build/tests/sim/story/gso-story" \
    --kubeconfig "$cluster/admin.kubeconfig" --operator-kubeconfig "$work/operator.kubeconfig" \
    --operator "$build/controller/gpu-sharing-operator" "${what[@]}" --keep \
    >"$work/story" 2>&1 </dev/null || code=$?
  cat "$work/story"
  while read -r line; do
    case $line in
      ✓*) passed=$((passed + 1)) ;;
      ✗*) failed=$((failed + 1)) ;;
    esac
  done <"$work/story"
  if ((code != 0)); then
    ((failed > 0)) || failed=$((failed + 1))
    echo "gso-story ended with exit code $code"
    sed -n "s/^the operator's log: //p" "$work/story" | xargs -r tail -n 40
  fi
}

# What the audit log says of the operator's requests: CODE VERB RESOURCE, counted.
requests() {
  python3 - "$cluster/audit.log" "$account" <<'PY'
import collections, json, sys
seen = collections.Counter()
for line in open(sys.argv[1], encoding="utf-8"):
    try: event = json.loads(line)
    except ValueError: continue
    if event["user"]["username"] != sys.argv[2] or "objectRef" not in event: continue
    ref = event["objectRef"]
    resource = ref.get("resource", "") + ("/" + ref["subresource"] if ref.get("subresource") else "")
    seen[(event.get("responseStatus", {}).get("code", 0), event["verb"], resource)] += 1
for (code, verb, resource), count in sorted(seen.items()):
    print(code, verb, resource, count)
PY
}

chart_gave_enough_rights() {
  requests >"$work/requests"
  cat "$work/requests"
  grep -q '^200 patch nodes ' "$work/requests"
  if grep '^403 ' "$work/requests"; then return 1; fi
}

# A server without WatchList refuses sendInitialEvents, which is how the operator learns to list by pages.
nothing_was_refused_as_invalid() {
  local known='^$'
  [[ ${GSODEV_KUBERNETES:-} != 1.30 ]] || known='^422 watch '
  if grep -E '^(400|422) ' "$work/requests" | grep -vE "$known"; then return 1; fi
}

# The chart grants rights there, and a pod needs its namespace's account.
namespaces_of_kai() {
  local name
  for name in kai-scheduler kai-resource-reservation team; do
    kubectl create namespace "$name"
    await 30 kubectl get serviceaccount default --namespace "$name"
  done
}

((${#values[@]} == 0)) || check "KAI's namespaces are there" namespaces_of_kai
check "the chart is installed" install_chart "${values[@]}"
tell
judge
check "the chart's roles were enough" chart_gave_enough_rights
check "no request was refused as invalid" nothing_was_refused_as_invalid
close_checks
