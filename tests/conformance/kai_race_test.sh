#!/usr/bin/env bash
# The collection of KAI's reservation pods against a binder that races with it, on a real API server: kai_binder.py creates,
# binds and deletes pods and reservations while the operator collects, and is killed and started again; then
# invariants/kai_judge.py judges each of the operator's deletions from the audit log.
#
#   kai_race_test.sh CLUSTER_DIR BUILD_DIR     a running API server without controllers; it leaves the objects there
#
# GSODEV_KAI_SEED chooses the binder's schedule (1). Prints one line for each check and closes with "N passed, N failed".
# shellcheck source=tests/conformance/beside_cluster.sh
source "$(dirname "${BASH_SOURCE[0]}")/beside_cluster.sh" "$@"
# shellcheck source=tests/conformance/kai_cluster.sh
source "$here/kai_cluster.sh"

seed=${GSODEV_KAI_SEED:-1}
RANDOM=$seed
busy=150

operator_starts() {
  start_operator "$work/operator.kubeconfig" --kai-grace=1m --kai-recheck-interval=5s --kai-node-interval=5s
  await 60 is_ready
}

# Each start of an operator measures anew for how long a reservation has been an orphan.
operator_is_killed() {
  stop operator KILL
  cat "$work/operator.log" >>"$work/killed.log"
  operator_starts
}
race() {
  local status=0 end=$((SECONDS + busy)) next
  start binder "$here/kai_binder.py" "$cluster" --seed "$seed" --busy "$busy" --patience $((240 * ${GSODEV_PATIENCE:-3}))
  while running binder && ((SECONDS < end)); do
    next=$((SECONDS + 20 + RANDOM % 40))
    while running binder && ((SECONDS < next)); do sleep 1; done
    if ((SECONDS < end)); then operator_is_killed; fi
  done
  wait "$(<"$work/pids/binder")" || status=$?
  cat "$work/binder.log"
  return "$status"
}

# A race in which nothing meets has tried nothing.
enough_has_happened() {
  cat "$work/binder.log"
  # Pods, binds, crashes, duplicates.
  awk '/^seed / { enough = ($3 >= 20 && $5 >= 10 && $7 >= 1 && $12 >= 1) } END { exit !enough }' "$work/binder.log"
}
deletions_hurt_nobody() {
  "$here/invariants/kai_judge.py" "$cluster/audit.log" --at-least 3
}

check "KAI is there" kai_is_there
check "the chart grants what is needed" install_chart --set kai.namespace=kai-scheduler --set "kai.reservationNamespaces={$reservations}" --set 'kai.consumerNamespaces={team}'
check "the binder runs" binder_runs
check "the operator starts" operator_starts
check "no live consumer loses its reservation to the race, and every orphan goes (seed $seed)" race
check "pods were bound, the binder crashed and made duplicates" enough_has_happened
check "each deletion hit a reservation that nobody needed, by the audit log" deletions_hurt_nobody
stop operator
check "no request was refused" bash -c "test -s '$work/operator.log' && ! grep -E 'orbidden' '$work/operator.log' '$work/killed.log'"
"$here/invariants/kai_judge.py" "$cluster/audit.log" || true
tail -n 1 "$work/binder.log"
close_checks
