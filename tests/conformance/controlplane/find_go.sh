#!/usr/bin/env bash
# Sourced: find_go prints the path of a Go that is new enough for the modules of the tests and benches. Where the machine
# has none, it is fetched into the cache. Needs $cache and $out (a folder for its build.log), and the functions say and die.
# shellcheck shell=bash disable=SC2154

go_version=1.26.8  # fetched where the machine has none; any Go from 1.26 on is taken

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
