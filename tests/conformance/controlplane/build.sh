#!/usr/bin/env bash
# Builds the programs of the test control plane from their pinned Go modules into a cache folder.
#
#   build.sh [PROGRAM...]    builds what is missing (default: all), one line for each program
#   build.sh --bin           prints the folder of the programs
#
# GSO_KUBERNETES=1.30 takes Kubernetes from the pins of kubernetes-1.30/ instead of kubernetes/: the oldest release that
# the chart installs on.
#
# The folder is ${GSO_CACHE:-${XDG_CACHE_HOME:-$HOME/.cache}/gpu-sharing-operator}/controlplane/HASH/bin,
# HASH being that of everything that decides what is built: the go.mod and go.sum files and this script.
set -euo pipefail
shopt -s inherit_errexit

here=$(cd "$(dirname "${BASH_SOURCE[0]}")" && pwd)
cache=${GSO_CACHE:-${XDG_CACHE_HOME:-${HOME:?}/.cache}/gpu-sharing-operator}
go_version=1.26.8  # fetched where the machine has none; any Go from 1.26 on is taken
kubernetes=kubernetes${GSO_KUBERNETES:+-$GSO_KUBERNETES}
if [[ ! -f $here/$kubernetes/go.mod ]]; then
  echo "build.sh: no pins for Kubernetes $GSO_KUBERNETES; there are: $(cd "$here" && echo kubernetes-*)" >&2
  exit 1
fi
hash=$(cd "$here" && cat build.sh ./{etcd,helm,kubeconform,kwok,prometheus,prometheus-operator,"$kubernetes"}/go.{mod,sum} | sha256sum | cut -c1-16)
out=$cache/controlplane/$hash
all=(etcd kube-apiserver kube-controller-manager kube-scheduler kubectl kwok helm promtool kubeconform)

say() { printf 'build.sh: %s\n' "$*" >&2; }
die() { say "$*"; exit 1; }

# Whether this go is new enough for the modules, without letting it fetch another one.
new_enough() {
  local v
  v=$(GOTOOLCHAIN=local "$1" env GOVERSION 2>/dev/null) || return 1
  v=${v#go}
  [[ $v =~ ^([0-9]+)\.([0-9]+) ]] && ((BASH_REMATCH[1] > 1 || BASH_REMATCH[2] >= 26))
}

# Any go at all, which can at least download modules: the machine's, or Debian's.
any_go() {
  local sudo=()
  command -v go && return
  ((EUID == 0)) || sudo=(sudo -n)
  if command -v apt-get >/dev/null && "${sudo[@]}" true 2>/dev/null; then
    say "installing Debian's golang-go, to fetch Go $go_version with it"
    {
      "${sudo[@]}" env DEBIAN_FRONTEND=noninteractive apt-get update -qq
      "${sudo[@]}" env DEBIAN_FRONTEND=noninteractive apt-get install -y -qq --no-install-recommends golang-go ca-certificates
    } >>"$out/build.log" 2>&1 || { tail -n 20 "$out/build.log" >&2; return 1; }
    hash -r
    command -v go
  else
    return 1
  fi
}

# Go's toolchains are published as modules too, so that an old go can download a new one. The copy lies in our
# own cache because files of a module have no run bits, carry go.mod as _go.mod, and may be cleaned away.
fetch_goroot() {
  local goroot=$1 start=$SECONDS old arch json dir copy mod
  case $(uname -m) in
    x86_64) arch=amd64 ;;
    aarch64) arch=arm64 ;;
    *) die "no Go >= 1.26 on this machine, and none to fetch for $(uname -m)" ;;
  esac
  old=$(any_go) || die "needs Go >= 1.26, or root or passwordless sudo on a Debian to install golang-go and fetch it"
  json=$(cd / && GOTOOLCHAIN=local GOFLAGS='' GO111MODULE=on "$old" mod download -json "golang.org/toolchain@v0.0.1-go$go_version.linux-$arch") ||
    die "cannot download Go $go_version: $json"
  dir=$(sed -n 's/^\t"Dir": "\(.*\)",*$/\1/p' <<<"$json")
  [[ -d $dir ]] || die "cannot download Go $go_version: $json"
  mkdir -p "${goroot%/*}"
  copy=$(mktemp -d "$goroot.XXXXXX")
  cp -rT "$dir" "$copy"
  chmod -R u+w "$copy"
  chmod +x "$copy"/bin/* "$copy"/pkg/tool/*/*
  while read -r -d '' mod; do mv "$mod" "${mod%/*}/go.mod"; done < <(find "$copy" -name _go.mod -print0)
  # Another build may have been quicker.
  mv -T "$copy" "$goroot" 2>/dev/null || rm -rf "$copy"
  say "Go $go_version fetched, $((SECONDS - start)) s"
}

find_go() {
  local candidate goroot=$cache/go/go$go_version
  for candidate in "$(command -v go || true)" /usr/local/go/bin/go "$goroot/bin/go"; do
    if [[ -x $candidate ]] && new_enough "$candidate"; then
      echo "$candidate"
      return
    fi
  done
  fetch_goroot "$goroot"
  echo "$goroot/bin/go"
}

# The version that a go.mod pins for a module.
pinned() {
  sed -n "s|^[[:space:]]*\(require \)\?$2 \(v[^ ]*\).*|\2|p" "$here/$1/go.mod" | head -n 1
}

# Sets module folder, package, version and linker flags of a program. Versions are given to the linker as the
# projects' own builds do it: without them the API server calls itself v0.0.0-master and helm believes in
# a cluster of 1.20.
describe() {
  local minor
  ldflags="-s -w"
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
      ldflags+=" -X github.com/prometheus/common/version.Version=${version#v}"
      ;;
    kubeconform)
      folder=kubeconform package=github.com/yannh/kubeconform/cmd/kubeconform
      version=$(pinned kubeconform github.com/yannh/kubeconform)
      ldflags+=" -X main.version=$version"
      ;;
    *) die "unknown program $1; there are: ${all[*]}" ;;
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
  local start=$SECONDS folder package version ldflags
  describe "$1"
  if ! (cd "$here/$folder" && nice -n 10 "$go" build -p "$(nproc)" -trimpath -ldflags "$ldflags" -o "$out/bin/$1.tmp" "$package") >>"$out/build.log" 2>&1; then
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

mkdir -p "$out/bin"
# One build at a time for a folder: a second caller waits here and then finds the programs.
exec {lock}>"$out/lock"
flock "$lock"

missing=()
for program in "${wanted[@]}"; do
  [[ -x $out/bin/$program ]] || missing+=("$program")
done
touch "$out"
if ((${#missing[@]} == 0)); then exit; fi

# GOTOOLCHAIN: never fetch another Go behind our back. CGO_ENABLED: the programs need no C compiler nor libc.
# GOFLAGS and GOWORK: a developer's own settings must not change what the pins say.
export GOTOOLCHAIN=local CGO_ENABLED=0 GOFLAGS=-buildvcs=false GOWORK=off
go=$(find_go)
say "${#missing[@]} programs to build with $("$go" env GOVERSION), a few minutes each the first time, in $out"
for program in "${missing[@]}"; do build "$program"; done
# Folders of older pins that nothing has used for a month.
find "$cache/controlplane" -mindepth 1 -maxdepth 1 -type d -mtime +30 -exec rm -rf {} +
