#!/usr/bin/env bash
# A real control plane on loopback: etcd, kube-apiserver, kube-controller-manager and kube-scheduler, without
# kubelets. Nodes belong to whoever creates them; with --kwok, kwok plays kubelet for those labelled
# gpusharing.dev/kwok=true.
#
#   cluster.sh up     [--dir DIR] [--kwok]        starts what is not running, and returns when all of it is ready
#   cluster.sh up     [--dir DIR] --api-only      only etcd and kube-apiserver: nothing but its clients writes there
#   cluster.sh up     … --api-server-flag FLAG    starts kube-apiserver with this flag too, which overrides those set here
#   cluster.sh status [--dir DIR]                 one line for each program; exit code 0 only when all is ready
#   cluster.sh down   [--dir DIR] [--keep-logs]   stops it and removes what `up` made
#
# `up` leaves in DIR:
#   admin.kubeconfig   two contexts, `admin` (client certificate) and `token` (static token); both system:masters
#   admin.token        the token alone, for clients that have no certificates
#   audit.log          one JSON line a request, as audit-policy.yaml says
#   bin/               kubectl and all the other programs
#   log/ pids/ pki/    by program: its output, its process id; the certificates, ca.crt among them
#
# DIR is ${GSODEV_CACHE:-${XDG_CACHE_HOME:-$HOME/.cache}/gpu-sharing-operator}/cluster unless given.
set -euo pipefail
shopt -s inherit_errexit

here=$(cd "$(dirname "${BASH_SOURCE[0]}")" && pwd)
cache=${GSODEV_CACHE:-${XDG_CACHE_HOME:-${HOME:?}/.cache}/gpu-sharing-operator}
# In the order of starting; stopped from the last to the first.
programs=(etcd kube-apiserver kube-controller-manager kube-scheduler kwok)
core=("${programs[@]:0:4}")  # What `up` starts; --api-only takes the first two.
made=(admin.kubeconfig admin.token bin etcd kubeconfigs pids pki ports)
logs=(audit.log log)
start_seconds=400  # for each program, on a machine that is busy with builds
stop_seconds=20
starting=  # The process that `start` waits for.

say() { printf 'cluster.sh: %s\n' "$*" >&2; }
die() { say "$*"; exit 1; }
usage() {
  sed -n '2,/^set /{/^set /d;s/^# \{0,1\}//;p}' "${BASH_SOURCE[0]}" >&2
  exit 2
}

# --- processes -------------------------------------------------------------------------------------------------

# The process id of a program, if it runs. A pid file may outlive its process and the id be given to another one,
# so the command line has to name our folder, which that of each program does.
pid_of() {
  local pid args
  [[ -s $dir/pids/$1 ]] || return 1
  pid=$(<"$dir/pids/$1")
  args=$(tr '\0' ' ' 2>/dev/null <"/proc/$pid/cmdline") || return 1
  [[ $args == *"$dir/"* ]] || return 1
  echo "$pid"
}

# Runs a program apart from this shell: in a session of its own, so that an interrupt at the terminal does not
# reach it, and without the lock of the folder. It does inherit the locks of its ports.
#
# Returns when the process bears the program's own command line, or has ended. Until then the line is this shell's,
# that of setsid, or empty while the kernel loads the program, which takes a while on a busy machine: pid_of would
# take the process for another one, `await` for one that has ended, and `stop` would leave it.
start() {
  local name=$1
  shift
  setsid "$dir/bin/$name" "$@" </dev/null >"$dir/log/$name.log" 2>&1 {folder_lock}>&- &
  starting=$!
  echo "$starting" >"$dir/pids/$name"
  until [[ $(tr '\0' ' ' 2>/dev/null <"/proc/$starting/cmdline") == "$dir/bin/$name "* ]] || ! kill -0 "$starting" 2>/dev/null; do
    sleep 0.01
  done
  starting=
}

await() {
  local name deadline=$((SECONDS + start_seconds)) answer
  for name in "$@"; do
    until answer=$(ready "$name" 2>&1); do
      pid_of "$name" >/dev/null || failed "$name" "has ended"
      ((SECONDS < deadline)) || failed "$name" "is not ready after $start_seconds s ($answer)"
      sleep 0.1
    done
  done
}

failed() {
  say "$1 $2; the end of $dir/log/$1.log:"
  tail -n 25 "$dir/log/$1.log" >&2
  exit 1
}

stop() {
  local pid signal=TERM deadline=$((SECONDS + stop_seconds))
  # Without the store, the API server and its clients would wait for it until the time is up.
  if ! pid_of etcd >/dev/null; then signal=KILL; fi
  if pid=$(pid_of "$1"); then
    kill -"$signal" "$pid" 2>/dev/null || true
    while pid_of "$1" >/dev/null; do
      if ((SECONDS >= deadline)); then
        say "$1 ($pid) does not end on SIGTERM, killed"
        kill -KILL "$pid" 2>/dev/null || true
        deadline=$((SECONDS + stop_seconds))
      fi
      sleep 0.05
    done
  fi
  rm -f "$dir/pids/$1"
}

stop_all() {
  local i
  # Interrupted in `start`: no pid_of yet, but a child of this shell, so that the id can be no one else's.
  if [[ $starting ]]; then kill -KILL "$starting" 2>/dev/null || true; fi
  for ((i = ${#programs[@]} - 1; i >= 0; i--)); do stop "${programs[i]}"; done
}

# --- ports -----------------------------------------------------------------------------------------------------

# Sets the variable named $1 to a free port below the range that the kernel gives to clients. The port is taken by
# a lock on a file, which the programs inherit: two clusters that start at once cannot choose the same one, and the
# lock is gone when the last program of the cluster is.
take_port() {
  local -n port_of=$1
  local folder=${XDG_RUNTIME_DIR:-/tmp}/gpu-sharing-operator-ports.$UID attempt fd
  mkdir -p "$folder"
  [[ -O $folder ]] || die "$folder belongs to another user"
  for attempt in {1..100}; do
    port_of=$((20000 + RANDOM % 12000))
    if grep -qsE "^ *[0-9]+: [0-9A-F]+:$(printf %04X "$port_of") " /proc/net/tcp /proc/net/tcp6; then continue; fi
    exec {fd}>"$folder/$port_of"
    if flock -n "$fd"; then
      echo "$port_of" >"$dir/ports/${1%_port}"
      return
    fi
    exec {fd}>&-
  done
  die "no free port after $attempt attempts"
}

# --- certificates ----------------------------------------------------------------------------------------------

# A key and a certificate signed by our CA: name, subject, extended usage, alternative names.
issue() {
  local key=$dir/pki/$1.key
  openssl ecparam -name prime256v1 -genkey -noout -out "$key"
  openssl req -new -key "$key" -subj "$2" -config "$dir/pki/openssl.cnf" -out "$dir/pki/$1.csr"
  printf '%s\n' 'basicConstraints=critical,CA:FALSE' 'keyUsage=critical,digitalSignature' "extendedKeyUsage=$3" \
    ${4:+"subjectAltName=$4"} >"$dir/pki/$1.ext"
  openssl x509 -req -in "$dir/pki/$1.csr" -CA "$dir/pki/ca.crt" -CAkey "$dir/pki/ca.key" -set_serial "0x$(openssl rand -hex 8)" \
    -days 365 -sha256 -extfile "$dir/pki/$1.ext" -out "$dir/pki/$1.crt" 2>/dev/null
}

make_certificates() {
  # The machine's own openssl.cnf may add extensions of its own.
  printf '%s\n' '[req]' 'distinguished_name=dn' 'x509_extensions=ca' '[dn]' '[ca]' 'basicConstraints=critical,CA:TRUE' \
    'keyUsage=critical,keyCertSign,cRLSign' 'subjectKeyIdentifier=hash' >"$dir/pki/openssl.cnf"
  openssl ecparam -name prime256v1 -genkey -noout -out "$dir/pki/ca.key"
  openssl req -x509 -new -key "$dir/pki/ca.key" -sha256 -days 365 -subj /CN=test-control-plane -config "$dir/pki/openssl.cnf" -out "$dir/pki/ca.crt"
  issue server /CN=test-control-plane serverAuth \
    IP:127.0.0.1,DNS:localhost,IP:10.0.0.1,DNS:kubernetes,DNS:kubernetes.default,DNS:kubernetes.default.svc
  issue admin /O=system:masters/CN=admin clientAuth
  issue kube-controller-manager /CN=system:kube-controller-manager clientAuth
  issue kube-scheduler /CN=system:kube-scheduler clientAuth
  issue kwok /O=system:masters/CN=kwok clientAuth
  openssl ecparam -name prime256v1 -genkey -noout -out "$dir/pki/service-account.key"
  openssl ec -in "$dir/pki/service-account.key" -pubout -out "$dir/pki/service-account.pub" 2>/dev/null
  rm "$dir"/pki/*.csr "$dir"/pki/*.ext "$dir/pki/openssl.cnf"
  openssl rand -hex 24 >"$dir/admin.token"
  echo "$(<"$dir/admin.token"),admin-token,admin-token,system:masters" >"$dir/pki/tokens.csv"
}

# A kubeconfig for the certificate named $1. Certificates are inside, so that the file can be copied; the
# further lines of $2 and $3 are those of more users and contexts.
kubeconfig() {
  cat <<EOF
apiVersion: v1
kind: Config
clusters:
- name: test
  cluster:
    server: $server
    certificate-authority-data: $(base64 -w0 <"$dir/pki/ca.crt")
current-context: $1
users:
- name: $1
  user:
    client-certificate-data: $(base64 -w0 <"$dir/pki/$1.crt")
    client-key-data: $(base64 -w0 <"$dir/pki/$1.key")
${2:+$2
}contexts:
- name: $1
  context: {cluster: test, user: $1}
${3:+$3
}
EOF
}

# --- readiness -------------------------------------------------------------------------------------------------

admin() { "$dir/bin/kubectl" --kubeconfig "$dir/admin.kubeconfig" --request-timeout 3s "$@"; }

# A path that another program than the API server answers.
serves() { admin --server "$1" get --raw "$2"; }

ready() {
  case $1 in
    etcd) serves "http://127.0.0.1:$(<"$dir/ports/etcd")" /readyz ;;
    kube-apiserver) admin get --raw /readyz ;;
    # A pod can be created only when its namespace has this account.
    kube-controller-manager) serves "https://127.0.0.1:$(<"$dir/ports/kube_controller_manager")" /healthz && admin get serviceaccount default -n default ;;
    kube-scheduler) serves "https://127.0.0.1:$(<"$dir/ports/kube_scheduler")" /healthz ;;  # No /readyz before 1.31.
    kwok) serves "http://127.0.0.1:$(<"$dir/ports/kwok")" /readyz ;;
  esac
}

# --- the three commands ----------------------------------------------------------------------------------------

start_control_plane() {
  local etcd_port etcd_peer_port kube_apiserver_port kube_controller_manager_port kube_scheduler_port server
  take_port etcd_port
  take_port etcd_peer_port
  take_port kube_apiserver_port
  take_port kube_controller_manager_port
  take_port kube_scheduler_port
  server=https://127.0.0.1:$kube_apiserver_port

  start etcd --data-dir "$dir/etcd" --unsafe-no-fsync --quota-backend-bytes $((8 << 30)) --log-level warn \
    --listen-client-urls "http://127.0.0.1:$etcd_port" --advertise-client-urls "http://127.0.0.1:$etcd_port" \
    --listen-peer-urls "http://127.0.0.1:$etcd_peer_port"
  make_certificates
  kubeconfig admin "- name: admin-token
  user: {token: $(<"$dir/admin.token")}" "- name: token
  context: {cluster: test, user: admin-token}" >"$dir/admin.kubeconfig"
  local name
  for name in kube-controller-manager kube-scheduler kwok; do kubeconfig "$name" >"$dir/kubeconfigs/$name"; done

  local listen=(--bind-address 127.0.0.1 --tls-cert-file "$dir/pki/server.crt" --tls-private-key-file "$dir/pki/server.key")
  await etcd
  start kube-apiserver --etcd-servers "http://127.0.0.1:$etcd_port" \
    --secure-port "$kube_apiserver_port" "${listen[@]}" \
    --client-ca-file "$dir/pki/ca.crt" --token-auth-file "$dir/pki/tokens.csv" \
    --service-account-issuer https://kubernetes.default.svc --service-account-key-file "$dir/pki/service-account.pub" \
    --service-account-signing-key-file "$dir/pki/service-account.key" --service-cluster-ip-range 10.0.0.0/16 \
    --authorization-mode RBAC --allow-privileged=true \
    --audit-policy-file "$here/audit-policy.yaml" --audit-log-path "$dir/audit.log" --audit-log-maxsize 1024 \
    "${api_server_flags[@]}"
  await kube-apiserver
  if ((${#core[@]} == 2)); then return; fi

  # Their default of 20 requests a second is what would limit recreating the pods of a fleet.
  local client=(--leader-elect=false --kube-api-qps 500 --kube-api-burst 1000)
  start kube-controller-manager --kubeconfig "$dir/kubeconfigs/kube-controller-manager" "${client[@]}" \
    --secure-port "$kube_controller_manager_port" "${listen[@]}" --root-ca-file "$dir/pki/ca.crt" \
    --service-account-private-key-file "$dir/pki/service-account.key" --use-service-account-credentials=true
  start kube-scheduler --kubeconfig "$dir/kubeconfigs/kube-scheduler" "${client[@]}" \
    --secure-port "$kube_scheduler_port" "${listen[@]}"
}

start_kwok() {
  local kwok_port bin stage stages=()
  take_port kwok_port
  bin=$(readlink "$dir/bin")
  for stage in "${bin%/bin}"/kwok-stages/*.yaml; do stages+=(--config "$stage"); done
  # KWOK_WORKDIR: not the configuration that a developer may have in the home folder. Without a lease of 40 s the
  # nodes would be taken for dead, since their status is refreshed only every ten minutes.
  KWOK_WORKDIR=$dir/kwok start kwok --kubeconfig "$dir/kubeconfigs/kwok" "${stages[@]}" \
    --manage-all-nodes=false --manage-nodes-with-label-selector gpusharing.dev/kwok=true \
    --node-ip 127.0.0.1 --node-lease-duration-seconds 40 --server-address "127.0.0.1:$kwok_port"
}

# Only what `up` made, never the folder as a whole: it is the caller's.
remove() {
  local name
  for name in "$@"; do rm -rf "${dir:?}/$name"; done
}

up() {
  local began=${EPOCHREALTIME/[.,]/} bin wanted=("${core[@]}")
  if $kwok; then wanted+=(kwok); fi
  command -v openssl >/dev/null || die "needs openssl, for the certificates"
  "$here/build.sh" kubectl "${wanted[@]}"
  bin=$("$here/build.sh" --bin)

  trap 'exit 130' INT
  trap 'exit 143' TERM HUP
  trap 'say "up failed, stopping"; stop_all; remove "${made[@]}"' EXIT
  # A cluster of other versions than those pinned now is replaced too.
  if [[ $(readlink "$dir/bin" || true) != "$bin" ]] || ! running "${core[@]}"; then
    stop_all
    remove "${made[@]}" "${logs[@]}"
    mkdir -p "$dir"/{kubeconfigs,log,pids,pki,ports}
    ln -s "$bin" "$dir/bin"
    start_control_plane
  fi
  if $kwok && ! running kwok; then start_kwok; fi
  await "${wanted[@]}"
  trap - EXIT INT TERM HUP

  local ms=$(((${EPOCHREALTIME/[.,]/} - began) / 1000))
  printf 'cluster.sh: ready in %d.%d s, KUBECONFIG=%s\n' $((ms / 1000)) $((ms % 1000 / 100)) "$dir/admin.kubeconfig" >&2
}

running() {
  local name
  for name in "$@"; do pid_of "$name" >/dev/null || return 1; done
}

down() {
  stop_all
  remove "${made[@]}"
  if ! $keep_logs; then remove "${logs[@]}"; fi
}

status() {
  local name pid all_ready=true state
  for name in "${programs[@]}"; do
    if pid=$(pid_of "$name"); then
      state=ready
      ready "$name" >/dev/null 2>&1 || { state="not ready" all_ready=false; }
      printf '%-24s %-9s pid %-8s %4d MiB  127.0.0.1:%s\n' "$name" "$state" "$pid" \
        $(($(sed -n 's/^VmRSS:[[:space:]]*\([0-9]*\).*/\1/p' "/proc/$pid/status") / 1024)) "$(<"$dir/ports/${name//-/_}")"
    elif [[ $name == etcd || $name == kube-apiserver || -e $dir/pids/$name ]]; then
      printf '%-24s stopped\n' "$name"
      all_ready=false
    fi
  done
  $all_ready
}

command=${1:-}
shift || usage
dir=$cache/cluster kwok=false keep_logs=false api_server_flags=()
while (($#)); do
  case $command:$1 in
    *:--dir)
      dir=${2:-}
      [[ $dir ]] || usage
      shift 2
      ;;
    up:--kwok)
      kwok=true
      shift
      ;;
    up:--api-only)
      core=("${programs[@]:0:2}")
      shift
      ;;
    up:--api-server-flag)
      [[ ${2:-} ]] || usage
      api_server_flags+=("$2")
      shift 2
      ;;
    down:--keep-logs)
      keep_logs=true
      shift
      ;;
    *) usage ;;
  esac
done

umask 077
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
if [[ $command != status ]]; then
  exec {folder_lock}>"$dir/lock"
  flock "$folder_lock"
fi
"$command"
if [[ $command == down ]]; then
  rm -f "$dir/lock"
  rmdir "$dir" 2>/dev/null || true
fi
