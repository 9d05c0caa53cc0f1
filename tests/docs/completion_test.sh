#!/usr/bin/env bash
# Completion as a shell asks for it: bash with the script that the binary prints, kubectl's way by the binary's name, and the
# syntax of the other scripts where their shells are installed. Prints "N passed, N failed".
set -euo pipefail
binary=$(realpath "$1")
work=$(mktemp -d)
trap 'rm -rf "$work"' EXIT
passed=0 failed=0

check() {  # NAME EXPECTED ACTUAL
  if [ "$2" = "$3" ]; then passed=$((passed + 1)); else failed=$((failed + 1)); printf '%s: wanted "%s", got "%s"\n' "$1" "$2" "$3"; fi
}

ln -s "$binary" "$work/gpu-sharing-operator"
ln -s "$binary" "$work/kubectl-gpu_sharing"
ln -s "$binary" "$work/kubectl_complete-gpu_sharing"
PATH=$work:$PATH
"$binary" completion bash >"$work/completion.bash"
# shellcheck source=/dev/null
source "$work/completion.bash"

ask() {  # WORD…: what bash would offer for the last one
  COMP_WORDS=(gpu-sharing-operator "$@") COMP_CWORD=$#
  COMPREPLY=()
  _gpu_sharing_operator
  printf '%s' "${COMPREPLY[*]:-}"
}

check "a subcommand" "rollout" "$(ask rol)"
check "a subcommand's subcommand" "pause" "$(ask rollout p)"
check "an option" "--output" "$(ask status --o)"
check "an option's values" "text wide json yaml" "$(ask status -o '')"
check "nothing of that name" "" "$(ask status --nothing)"
check "is registered" "complete -F _gpu_sharing_operator gpu-sharing-operator" "$(complete -p gpu-sharing-operator)"
check "kubectl's way" $'undo\tRevert to the last verified profile\n:4' "$(kubectl_complete-gpu_sharing rollout u)"
check "the plugin's name" "Usage: kubectl gpu-sharing audit [OPTIONS]" "$(kubectl-gpu_sharing audit --help | sed -n 2p)"
for shell in zsh fish; do
  "$binary" completion "$shell" >"$work/completion.$shell"
  command -v "$shell" >/dev/null || continue
  status=0
  "$shell" -n "$work/completion.$shell" || status=$?
  check "$shell takes the script" 0 "$status"
done

printf '%d passed, %d failed\n' "$passed" "$failed"
[ "$failed" -eq 0 ]
