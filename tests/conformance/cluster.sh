#!/usr/bin/env bash
# A cluster to play with, on loopback: a real control plane, the operator's CRDs, and twelve GPU nodes played by the
# fleet emulator, with the GPU Operator's objects applied (four MPS replicas on each GPU). `./dev cluster` calls this.
#
#   cluster.sh up     [--dir DIR] [--kwok]        starts what is not running; prints how to use it
#   cluster.sh status [--dir DIR]                 one line for each program, then the nodes
#   cluster.sh down   [--dir DIR] [--keep-logs]   stops everything and removes what `up` made
#
# What is missing is built first: the control plane (minutes, once), gso-fleet and the operator. With --kwok, kwok plays kubelet for
# plain nodes labelled gpusharing.dev/kwok=true. GSODEV_BUILD says which build to use (build/debug). DIR is ${GSODEV_CACHE:-~/.cache/gpu-sharing-operator}/cluster.
set -euo pipefail
shopt -s inherit_errexit

here=$(cd "$(dirname "${BASH_SOURCE[0]}")" && pwd)
project=$(cd "$here/../.." && pwd)
build=${GSODEV_BUILD:-$project/build/debug}
fleet=$build/tests/sim/fleet/gso-fleet
operator=$build/controller/gpu-sharing-operator
cache=${GSODEV_CACHE:-${XDG_CACHE_HOME:-${HOME:?}/.cache}/gpu-sharing-operator}

default_dir() { realpath --canonicalize-missing "$cache/cluster"; }
say() { printf 'cluster.sh: %s\n' "$*" >&2; }
usage() {
  sed -n '2,/^set /{/^set /d;s/^# \{0,1\}//;p}' "${BASH_SOURCE[0]}" >&2
  exit 2
}

kubectl() { "$dir/bin/kubectl" --kubeconfig "$dir/admin.kubeconfig" --request-timeout 20s "$@"; }

# The emulator's process id, if it runs: its command line names our folder.
fleet_pid() {
  local pid
  [[ -s $dir/fleet.pid ]] || return 1
  pid=$(<"$dir/fleet.pid")
  [[ $(tr '\0' ' ' 2>/dev/null <"/proc/$pid/cmdline") == *"$dir/admin.kubeconfig"* ]] || return 1
  echo "$pid"
}

start_fleet() {
  [[ -x $fleet && -x $operator ]] || "$project/dev" build debug gso-fleet gpu-sharing-operator
  # The record of the pid outlives this script, the lock of the control plane's folder does not.
  setsid "$fleet" --kubeconfig "$dir/admin.kubeconfig" --topology demo </dev/null >"$dir/fleet.log" 2>&1 &
  echo "$!" >"$dir/fleet.pid"
}

stop_fleet() {
  local pid deadline=$((SECONDS + 20))
  if pid=$(fleet_pid); then
    kill -TERM "$pid" 2>/dev/null || true
    while fleet_pid >/dev/null; do
      if ((SECONDS >= deadline)); then kill -KILL "$pid" 2>/dev/null || true; fi
      sleep 0.05
    done
  fi
  rm -f "$dir/fleet.pid"
}

# Server-side apply, again and again harmless; the CRDs must be served before what they define.
apply_objects() {
  kubectl apply --server-side --force-conflicts --filename "$project/crds"
  # The operator's own: for its Lease and its record.
  kubectl create namespace gpu-sharing-operator --dry-run=client --output yaml | kubectl apply --server-side --filename -
  "$fleet" --print-manifests >"$dir/fleet.json"
  # The first time, the ClusterPolicy comes before its kind is known.
  kubectl apply --server-side --force-conflicts --filename "$dir/fleet.json" 2>/dev/null || true
  kubectl wait --for=condition=Established --timeout=30s crd/clusterpolicies.nvidia.com crd/sharingpolicies.gpusharing.dev
  kubectl apply --server-side --force-conflicts --filename "$dir/fleet.json"
}

up() {
  "$here/controlplane/cluster.sh" up --dir "$dir" "${rest[@]}"
  if ! fleet_pid >/dev/null; then start_fleet; fi
  if ! apply_objects >"$dir/apply.log" 2>&1; then
    tail -n 20 "$dir/apply.log" >&2
    say "the objects of the fleet could not be applied; the cluster runs, $0 down stops it"
    exit 1
  fi
  cat <<TEXT
The cluster is up; twelve GPU nodes come ready within a minute. Use it:

  export KUBECONFIG=$dir/admin.kubeconfig PATH=$dir/bin:\$PATH
  kubectl get nodes -L nvidia.com/gpu.replicas,nvidia.com/gpu.sharing-strategy,gpusharing.dev/state
  kubectl -n gpu-operator edit configmap mps-config

The operator beside it, as you built it:

  $operator run --log-format=text

Stop it all: ./dev cluster down$([[ $dir == "$(default_dir)" ]] || printf -- ' --dir %q' "$dir")
TEXT
}

down() {
  stop_fleet
  rm -f "$dir/fleet.json" "$dir/apply.log"
  [[ " ${rest[*]} " == *" --keep-logs "* ]] || rm -f "$dir/fleet.log"
  "$here/controlplane/cluster.sh" down --dir "$dir" "${rest[@]}"
}

status() {
  local pid state=0
  "$here/controlplane/cluster.sh" status --dir "$dir" || state=1
  if pid=$(fleet_pid); then
    printf '%-24s %-9s pid %-8s %4d MiB\n' gso-fleet running "$pid" \
      $(($(sed -n 's/^VmRSS:[[:space:]]*\([0-9]*\).*/\1/p' "/proc/$pid/status") / 1024))
  else
    printf '%-24s stopped\n' gso-fleet
    state=1
  fi
  if ((state == 0)); then
    kubectl get nodes -L nvidia.com/gpu.replicas,nvidia.com/gpu.sharing-strategy,gpusharing.dev/state
  fi
  return "$state"
}

command=${1:-}
shift || usage
dir=$(default_dir) rest=()
while (($#)); do
  case $1 in
    --dir)
      dir=${2:?--dir needs a folder}
      shift 2
      ;;
    --kwok | --keep-logs)
      rest+=("$1")
      shift
      ;;
    *) usage ;;
  esac
done
case $command in
  up) mkdir -p "$dir" ;;
  status | down)
    if [[ ! -d $dir ]]; then
      say "nothing runs in $dir"
      [[ $command == down ]]
      exit
    fi
    ;;
  *) usage ;;
esac
dir=$(cd "$dir" && pwd -P)
"$command"
