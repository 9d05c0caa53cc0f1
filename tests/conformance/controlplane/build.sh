#!/usr/bin/env bash
# Builds the programs of the test control plane from their pinned Go modules into a cache folder.
#
#   build.sh [PROGRAM...]    builds what is missing, one line for each program: the others only when named
#   build.sh --bin           prints the folder of the programs
#
# GSODEV_KUBERNETES=1.30 takes Kubernetes from the pins of kubernetes-1.30/ instead of kubernetes/: the oldest release that
# the chart installs on.
#
# The folder is ${GSODEV_CACHE:-${XDG_CACHE_HOME:-$HOME/.cache}/gpu-sharing-operator}/controlplane/HASH/bin,
# HASH being that of everything that decides what is built: the go.mod and go.sum files and these scripts.
set -euo pipefail
shopt -s inherit_errexit

here=$(cd "$(dirname "${BASH_SOURCE[0]}")" && pwd)
cache=${GSODEV_CACHE:-${XDG_CACHE_HOME:-${HOME:?}/.cache}/gpu-sharing-operator}
kubernetes=kubernetes${GSODEV_KUBERNETES:+-$GSODEV_KUBERNETES}
if [[ ! -f $here/$kubernetes/go.mod ]]; then
  echo "build.sh: no pins for Kubernetes $GSODEV_KUBERNETES; there are: $(cd "$here" && echo kubernetes-*)" >&2
  exit 1
fi
hash=$(cd "$here" && cat build.sh find_go.sh ./{cosign,etcd,helm,krew,kubeconform,kwok,prometheus,prometheus-operator,"$kubernetes"}/go.{mod,sum} | sha256sum | cut -c1-16)
out=$cache/controlplane/$hash
# What every part of the conformance suite needs; the others are built by what uses them.
all=(etcd kube-apiserver kube-controller-manager kube-scheduler kubectl helm)

say() { printf 'build.sh: %s\n' "$*" >&2; }
die() { say "$*"; exit 1; }

# shellcheck source=tests/conformance/controlplane/find_go.sh
source "$here/find_go.sh"

# The version that a go.mod pins for a module.
pinned() {
  sed -n "s|^[[:space:]]*\(require \)\?$2 \(v[^ ]*\).*|\2|p" "$here/$1/go.mod" | head -n 1
}

# Sets module folder, package, version, build tags and linker flags of a program. Versions are given to the linker as the
# projects' own builds do it: without them the API server calls itself v0.0.0-master and helm believes in
# a cluster of 1.20.
describe() {
  local minor
  ldflags="-s -w" tags=
  case $1 in
    etcd)
      folder=etcd package=go.etcd.io/etcd/server/v3
      version=$(pinned etcd "$package")
      ;;
    kube-* | kubectl)
      folder=$kubernetes package=k8s.io/kubernetes/cmd/$1
      version=$(pinned "$kubernetes" k8s.io/kubernetes)
      minor=${version#v1.}
      ldflags+=" -X k8s.io/component-base/version.gitVersion=$version"
      ldflags+=" -X k8s.io/client-go/pkg/version.gitVersion=$version"  # of the User-Agent
      ldflags+=" -X k8s.io/component-base/version.gitMajor=1"
      ldflags+=" -X k8s.io/component-base/version.gitMinor=${minor%%.*}"
      ;;
    kwok)
      folder=kwok package=sigs.k8s.io/kwok/cmd/kwok
      version=$(pinned kwok sigs.k8s.io/kwok)
      ;;
    helm)
      folder=helm package=helm.sh/helm/v3/cmd/helm
      version=$(pinned helm helm.sh/helm/v3)
      minor=$(pinned helm k8s.io/client-go)
      minor=${minor#v0.}
      ldflags+=" -X helm.sh/helm/v3/internal/version.version=$version"
      local package_with_version
      for package_with_version in pkg/lint/rules pkg/chartutil; do
        ldflags+=" -X helm.sh/helm/v3/$package_with_version.k8sVersionMajor=1"
        ldflags+=" -X helm.sh/helm/v3/$package_with_version.k8sVersionMinor=${minor%%.*}"
      done
      ;;
    promtool)
      folder=prometheus package=github.com/prometheus/prometheus/cmd/promtool
      version=$(pinned prometheus github.com/prometheus/prometheus)
      tags=remove_all_sd  # Service discovery brings the SDK of each cloud, and no check of a rule asks for it.
      ldflags+=" -X github.com/prometheus/common/version.Version=${version#v}"
      ;;
    kubeconform)
      folder=kubeconform package=github.com/yannh/kubeconform/cmd/kubeconform
      version=$(pinned kubeconform github.com/yannh/kubeconform)
      ldflags+=" -X main.version=$version"
      ;;
    krew)
      folder=krew package=sigs.k8s.io/krew/cmd/krew
      version=$(pinned krew sigs.k8s.io/krew)
      ;;
    cosign)
      folder=cosign package=github.com/sigstore/cosign/v2/cmd/cosign
      version=$(pinned cosign github.com/sigstore/cosign/v2)
      ;;
    *) die "unknown program $1; there are: ${all[*]} kwok promtool kubeconform krew cosign" ;;
  esac
}

# kwok's stage files lie in its module: kept beside the programs, so that a cluster starts without Go.
copy_stages() {
  local module
  module=$(cd "$here/kwok" && "$go" list -m -f '{{.Dir}}' sigs.k8s.io/kwok)
  rm -rf "$out/kwok-stages.tmp"
  mkdir "$out/kwok-stages.tmp"
  cp "$module"/kustomize/stage/{node/fast/node-initialize,node/heartbeat-with-lease/node-heartbeat-with-lease,pod/fast/pod-ready,pod/fast/pod-complete,pod/fast/pod-delete}.yaml "$out/kwok-stages.tmp"
  rm -rf "$out/kwok-stages"
  mv "$out/kwok-stages.tmp" "$out/kwok-stages"
}

# The CRDs behind ServiceMonitor and PrometheusRule: files of a module; nothing of it is built.
copy_prometheus_crds() {
  local module=github.com/prometheus-operator/prometheus-operator dir
  (cd "$here/prometheus-operator" && "$go" mod download "$module")
  dir=$(cd "$here/prometheus-operator" && "$go" list -m -f '{{.Dir}}' "$module")
  rm -rf "$out/prometheus-crds.tmp" "$out/prometheus-crds"
  mkdir "$out/prometheus-crds.tmp"
  cp "$dir"/example/prometheus-operator-crd/monitoring.coreos.com_{servicemonitors,prometheusrules}.yaml "$out/prometheus-crds.tmp"
  chmod u+w "$out"/prometheus-crds.tmp/*
  mv "$out/prometheus-crds.tmp" "$out/prometheus-crds"
}

build() {
  local start=$SECONDS folder package version ldflags tags
  describe "$1"
  if ! (cd "$here/$folder" && nice -n 10 "$go" build -p "$(nproc)" -trimpath -tags "$tags" -ldflags "$ldflags" -o "$out/bin/$1.tmp" "$package") >>"$out/build.log" 2>&1; then
    tail -n 20 "$out/build.log" >&2
    die "$1 $version failed; the whole output is in $out/build.log"
  fi
  if [[ $1 == kwok ]]; then copy_stages; fi
  if [[ $1 == promtool ]]; then copy_prometheus_crds; fi
  mv "$out/bin/$1.tmp" "$out/bin/$1"
  say "$1 $version built, $((SECONDS - start)) s"
}

if [[ ${1:-} == --bin ]]; then
  echo "$out/bin"
  exit
fi

wanted=("$@")
((${#wanted[@]})) || wanted=("${all[@]}")
for program in "${wanted[@]}"; do describe "$program"; done

# Sets `missing` to the wanted programs that are not built.
find_missing() {
  local program
  missing=()
  for program in "${wanted[@]}"; do
    [[ -x $out/bin/$program ]] || missing+=("$program")
  done
}

mkdir -p "$out/bin"
touch "$out"
find_missing
if ((${#missing[@]} == 0)); then exit; fi
# One build at a time for a folder: a second caller waits here and then finds the programs.
exec {lock}>"$out/lock"
flock "$lock"
find_missing
if ((${#missing[@]} == 0)); then exit; fi

# GOTOOLCHAIN: never fetch another Go behind our back. CGO_ENABLED: the programs need no C compiler nor libc.
# GOFLAGS and GOWORK: a developer's own settings must not change what the pins say.
export GOTOOLCHAIN=local CGO_ENABLED=0 GOFLAGS=-buildvcs=false GOWORK=off
go=$(find_go)
say "${#missing[@]} programs to build with $("$go" env GOVERSION), a few minutes each the first time, in $out"
for program in "${missing[@]}"; do build "$program"; done
# Folders of older pins that nothing has used for a month.
find "$cache/controlplane" -mindepth 1 -maxdepth 1 -type d -mtime +30 -exec rm -rf {} +
