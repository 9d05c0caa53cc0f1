#!/usr/bin/env bash
# Sourced by the scripts of this folder and of image: checks that count, and processes that never outlive the script.
# shellcheck shell=bash
#
#   check SENTENCE COMMAND...     runs the command in a subshell with -e, prints one line, counts; its output is shown
#                                 only when it fails
#   close_checks                  prints "N passed, N failed"; the exit code is 0 only when nothing failed
#   await SECONDS COMMAND...      repeats the command until it succeeds. SECONDS are those of a machine that is idle: a
#                                 busy one gets $GSODEV_PATIENCE times as many (3)
#   start NAME COMMAND...         in the background; its output is in $work/NAME.log. What a check that failed has left
#                                 running under that name is ended first
#   stop NAME [SIGNAL]            ends it and waits; SIGKILL after 20 s
#   running NAME                  whether it runs
#   as COMMAND...                 kubectl as the operator's account ($account, of $namespace)
#   forbidden TEXT COMMAND...     the command is refused, and says TEXT
#
# $work is a folder of the script's own, removed at its end. A script adds to its clean-up by defining `tidy`.

passed=0 failed=0
work=$(mktemp -d)
mkdir "$work/pids"

check() {
  local sentence=$1 began=${EPOCHREALTIME/[.,]/} result=ok status
  shift
  # Not in a condition: there bash would ignore -e, inside of the subshell too.
  set +e
  (set -e; "$@") >"$work/output" 2>&1
  status=$?
  set -e
  if ((status == 0)); then passed=$((passed + 1)); else result=FAILED failed=$((failed + 1)); fi
  printf '%-7s %6d ms  %s\n' "$result" $(((${EPOCHREALTIME/[.,]/} - began) / 1000)) "$sentence"
  if [[ $result == FAILED ]]; then tail -n 60 "$work/output" | cut -c1-2000 | sed 's/^/    /'; fi
}

close_checks() {
  printf '%d passed, %d failed\n' "$passed" "$failed"
  ((failed == 0))
}

await() {
  local seconds=$(($1 * ${GSODEV_PATIENCE:-3}))
  local deadline=$((SECONDS + seconds))
  shift
  until "$@" >"$work/awaited" 2>&1; do
    if ((SECONDS >= deadline)); then
      echo "not within $seconds s: $*; at last:"
      tail -n 20 "$work/awaited"
      return 1
    fi
    sleep 0.2
  done
}

start() {
  local name=$1
  shift
  if running "$name"; then stop "$name"; fi
  "$@" >"$work/$name.log" 2>&1 </dev/null &
  echo "$!" >"$work/pids/$name"
}

# A process that has ended but was not waited for has an empty command line.
running() { [[ -s $work/pids/$1 && -n $(tr -d '\0' 2>/dev/null <"/proc/$(<"$work/pids/$1")/cmdline") ]]; }

stop() {
  local deadline=$((SECONDS + 20))
  if running "$1"; then kill -"${2:-TERM}" "$(<"$work/pids/$1")" 2>/dev/null || true; fi
  while running "$1"; do
    if ((SECONDS >= deadline)); then
      kill -KILL "$(<"$work/pids/$1")" 2>/dev/null || true
      echo "$1 did not end within 20 s"
      return 1
    fi
    sleep 0.05
  done
  rm -f "$work/pids/$1"
}

# Replaced by scripts that have more to clean up.
tidy() { :; }

end_everything() {
  local pid_file
  for pid_file in "$work"/pids/*; do
    [[ -e $pid_file ]] || continue
    stop "${pid_file##*/}" || true
  done
  tidy || true
  rm -rf "$work"
}
trap end_everything EXIT
trap 'exit 130' INT
trap 'exit 143' TERM HUP

# shellcheck disable=SC2154  # The caller sets both.
as() { kubectl --as "$account" --as-group system:serviceaccounts --as-group "system:serviceaccounts:$namespace" --as-group system:authenticated "$@"; }

forbidden() {
  local text=$1 answer
  shift
  if answer=$("$@" 2>&1); then
    echo "allowed: $*"
    return 1
  fi
  grep -qF -- "$text" <<<"$answer" || { echo "refused, but without '$text': $answer"; return 1; }
}
