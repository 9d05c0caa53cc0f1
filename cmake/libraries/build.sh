#!/usr/bin/env bash
# build.sh [transport|release [MACHINE]]: builds static libraries from Debian's source packages, once, into a cache folder,
# and prints that folder: include/, lib/, licences/ and `versions` (what was built, for the bill of materials). For another
# MACHINE (as compilers call it, such as aarch64) with Debian's cross compiler.
#
#   transport  OpenSSL and libcurl, the default. Two cores need about two minutes. All presets link these two: what the
#              tests try is what a release contains.
#   release    fmt, spdlog, simdjson and date, which Debian has as shared libraries alone: a release needs no library but
#              glibc. One minute. Other presets link Debian's shared ones of the same versions.
#
# What is not there has no faults and takes no room. Debian's own OpenSSL has every cipher, protocol and engine that
# somebody may still need, 1.7 MB more of the program. Debian bookworm's own libcurl (7.88) lacks corrections of HTTP/2
# that a client with long watches needs, and brings thirty libraries for protocols that no API server speaks. Built are
# TLS 1.2 and 1.3 with RSA, ECDSA and Ed25519, and HTTP/1.1 and HTTP/2 over these, with zlib.
#
# The sources come from the mirrors that apt uses (its configuration, proxies included, is apt's); the versions and all
# SHA-256 are pinned here. Mirrors drop a version when a newer one is published. Then it comes from an archive of all
# that Debian ever published, if this machine names one: GSO_DEBIAN_SNAPSHOT (as for image/build.py), or apt itself
# (Acquire::Snapshots::URI, which apt has by itself from Debian 13 on). Where nobody has it, the next older one of the
# list below is built, and image/build.py says that Debian has a newer one. Where nobody has Debian's patches of any, it
# is built without, `versions` says "unpatched", and image/build.py refuses such a program.
#
# GSO_LIBRARY_SOURCES=DIR takes the files from a folder instead: for machines without a mirror.
set -euo pipefail
shopt -s inherit_errexit

# Source package, version, folder on the mirrors, SHA-256 of the sources as published and of Debian's patches; the
# newest first. The last one of OpenSSL is that of Debian 12's last point release, which stays on the mirrors.
sources=(
  curl 8.14.1-2+deb13u5 pool/main/c/curl
  6766ada7101d292b42b8b15681120acd68effa4a9660935853cf6d61f0d984d4
  ebdfcfab1c2001c7a539fe2a4044dbf666a544393f191bedce9ee2d07c4ea925
  openssl 3.0.22-1~deb12u2 pool/updates/main/o/openssl
  67ebca7e50d17383028045486653492195b83db95f8558709701bb47b5c1ef81
  48971306c5df8124daea7f2bd0de2be7d711e18f2f53711c11327293732e42aa
  openssl 3.0.22-1~deb12u1 pool/updates/main/o/openssl
  67ebca7e50d17383028045486653492195b83db95f8558709701bb47b5c1ef81
  08ee68527218d6d9a0fa4741ec8ffef47646cdcad0ed0822b84bf11677c66108
  openssl 3.0.20-1~deb12u2 pool/main/o/openssl
  c80a01dfc70ece4dc21168932c37739042d404d46ccc81a5986dd75314ecda6f
  7279efe85c359500c95aa88347e3395dd303d7566e2bb818d80d96e0c3bb9629
  fmtlib 9.1.0+ds1-2 pool/main/f/fmtlib
  84ce1c2d0be3a9863935137969dcec6970125caac032f82474640bfc81463583
  aead535c0b3d7a02a89f6e004ac62d1e15bdbf8d34c36cd37038dcc7d37bc9e3
  spdlog 1:1.10.0+ds-0.4 pool/main/s/spdlog
  620ca6842b5c21014470bd42eb4716024674214fb973b5ffa3aaea33310ad327
  7f0858d7441992fe53c3c8a6849e7b8efb28ab55b973c1a5a9016f7810e0e675
  simdjson 3.0.1-1 pool/main/s/simdjson
  156b1bc5eb0561b2bd166b46d191fd3d95a3e709cc63761477d3b7aec2b6e9ed
  e80e602a3e37211e841017af3c4e2cfa0b2894ad2a259de97dfd047ce8e4b008
  howardhinnant-date 3.0.1+ds-5 pool/main/h/howardhinnant-date
  2768b67c1b5cf07715978584ef174dae679e90bf420777aee4e8b09e993681f1
  49e73870d19151cfae8e36e4f7acd3d49a3917dca84f31758e65ef082fd9725c
)
snapshot=20261125T130000Z # when mirrors had these, so Debian's archive has them as of then

cache=${GSODEV_CACHE:-${XDG_CACHE_HOME:-${HOME:-/root}/.cache}/gpu-sharing-operator}
architecture=${2:-$(uname -m)} # what is built for, as compilers call it
flags=(-ffunction-sections -fdata-sections -fstack-protector-strong -fstack-clash-protection -U_FORTIFY_SOURCE
  -D_FORTIFY_SOURCE=2)

# Engines, modules, formats beside X.509 and PEM, protocols beside TLS, and the ciphers and digests that neither TLS
# with ECDHE or RSA nor a key in PEM, also an encrypted one with AES, needs. MD5 stays for encrypted keys of the older
# form, and TLS 1.1 for the test in which a server refuses it. Without ui-console nobody is asked on a terminal for a
# passphrase.
openssl_left_out=(afalgeng aria async bf blake2 camellia cast cmp cms comp ct des dgram dh dsa dso ec2m engine gost
  idea ktls legacy md4 mdc2 multiblock nextprotoneg ocb ocsp padlockeng psk rc2 rc4 rfc3779 rmd160 scrypt seed shared
  siphash siv sm2 sm3 sm4 srp srtp ssl-trace tests ts ui-console whirlpool)

# Protocols, authentication and formats that an API server never asks for.
curl_left_out=(ALTSVC AWS COOKIES DICT DIGEST_AUTH DOH FILE FORM_API FTP GETOPTIONS GOPHER HEADERS_API HSTS IMAP
  IPFS KERBEROS_AUTH LDAP LDAPS LIBCURL_OPTION MIME MQTT NEGOTIATE_AUTH NETRC NTLM PARSEDATE POP3 PROGRESS_METER RTSP
  SHUFFLE_DNS SMB SMTP SRP TELNET TFTP WEBSOCKETS)

# For size, which measured no slower than Debian's -O2: what runs for each byte is assembler. Not with -flto, which
# would optimise all of it again in each link of a release. The folders and the security level are Debian's. An epoch,
# because the library contains the date.
compile_openssl() {
  perl Configure "linux-$architecture" --prefix=/usr --openssldir=/usr/lib/ssl "${openssl_left_out[@]/#/no-}" \
    -Os "${flags[@]}" -DOPENSSL_TLS_SECURITY_LEVEL=2 &&
    SOURCE_DATE_EPOCH=0 make -j"$(nproc)" build_libs &&
    install -D -m 644 -t "$work/out/lib" libssl.a libcrypto.a &&
    install -D -m 644 -t "$work/out/include/openssl" include/openssl/*.h &&
    install -D -m 644 LICENSE.txt "$work/out/licences/openssl"
}

compile_curl() {
  local disabled=("${curl_left_out[@]/#/-DCURL_DISABLE_}")
  cmake -S . -B build -G Ninja -DCMAKE_BUILD_TYPE=None -DCMAKE_POSITION_INDEPENDENT_CODE=ON \
    -DCMAKE_C_FLAGS="-O2 ${flags[*]} -ffile-prefix-map=$work=." -DCMAKE_INSTALL_PREFIX="$work/out" \
    -DCMAKE_INSTALL_LIBDIR=lib -DBUILD_SHARED_LIBS=OFF -DBUILD_STATIC_LIBS=ON -DBUILD_CURL_EXE=OFF \
    -DBUILD_TESTING=OFF -DBUILD_EXAMPLES=OFF -DBUILD_LIBCURL_DOCS=OFF -DBUILD_MISC_DOCS=OFF -DENABLE_CURL_MANUAL=OFF \
    -DENABLE_UNIX_SOCKETS=OFF -DCURL_USE_OPENSSL=ON -DOPENSSL_ROOT_DIR="$work/out" -DOPENSSL_USE_STATIC_LIBS=ON \
    -DUSE_NGHTTP2=ON -DCURL_ZLIB=ON -DCURL_BROTLI=OFF -DCURL_ZSTD=OFF -DUSE_LIBIDN2=OFF -DCURL_USE_LIBPSL=OFF \
    -DCURL_USE_LIBSSH2=OFF -DCURL_CA_BUNDLE=/etc/ssl/certs/ca-certificates.crt -DCURL_CA_PATH=/etc/ssl/certs \
    "${disabled[@]/%/=ON}" &&
    cmake --build build &&
    cmake --install build &&
    install -D -m 644 COPYING "$work/out/licences/curl"
}

# compile_cxx NAME LICENCE HEADERS FILE… -- OPTION…: libNAME.a of C++ sources, in their folder, with Debian's options.
compile_cxx() {
  local name=$1 licence=$2 headers=$3 files=()
  shift 3
  while [[ $1 != -- ]]; do files+=("$1"); shift; done
  shift
  mkdir objects && (cd objects && printf '../%s\n' "${files[@]}" |
    xargs -P "$(nproc)" -n 1 g++ -std=c++17 -O2 -DNDEBUG -fPIE -I../include "${flags[@]}" "$@" -c) &&
    mkdir -p "$work/out"/{lib,include,licences} && ar rcsD "$work/out/lib/lib$name.a" objects/*.o &&
    cp -r "$headers" "$work/out/include" && cp "$licence" "$work/out/licences/$library"
}

compile_fmtlib() { compile_cxx fmt LICENSE.rst include/fmt src/format.cc src/os.cc --; }

compile_spdlog() {
  compile_cxx spdlog LICENSE include/spdlog src/{spdlog,async,cfg,color_sinks,file_sinks,stdout_sinks}.cpp -- \
    -I"$work/out/include" -DSPDLOG_COMPILED_LIB -DSPDLOG_FMT_EXTERNAL
}

# The code for each generation of processors is in it, and chosen when the program runs.
compile_simdjson() {
  local options=(-DSIMDJSON_THREADS_ENABLED=1)
  [[ $architecture != x86_64 ]] || options+=(-mno-avx256-split-unaligned-load -mno-avx256-split-unaligned-store)
  compile_cxx simdjson LICENSE singleheader/simdjson.h singleheader/simdjson.cpp -- "${options[@]}"
}

# The time zones are the system's. A file that is no time zone is an exception there, which must not pass call_once(): glibc's
# part of that asks the unwinder of a shared libgcc, which does not know this program's, and ends it.
compile_howardhinnant_date() {
  # shellcheck disable=SC2016  # Not of this shell.
  sed -i 's/^    std::call_once(\*adjusted_, \[this\]() {\(.*init_impl();\)});$/    static std::mutex loading;\n    const std::lock_guard<std::mutex> guard(loading);\n    if (ttinfos_.empty()) \1/' src/tz.cpp &&
    grep -q 'if (ttinfos_.empty()) const_cast' src/tz.cpp &&
    compile_cxx date-tz LICENSE.txt include/date src/tz.cpp -- -DUSE_OS_TZDB=1 -DAUTO_DOWNLOAD=0 -DHAS_REMOTE_API=0 \
      -DINSTALL=. -DONLY_C_LOCALE=1 -DHAS_STRING_VIEW=1
}

# Whatever changes what is built: a comment here, or another way to the sources, is no reason to build it again.
say() { printf 'libraries: %s\n' "$*" >&2; }
die() { say "$*"; exit 1; }

case ${1:-transport} in
  transport)
    libraries=(openssl curl)
    options=("${openssl_left_out[*]}" "${curl_left_out[*]}" "$(declare -f compile_openssl compile_curl)")
    ;;
  release)
    libraries=(fmtlib spdlog simdjson howardhinnant-date)
    options=("$(declare -f compile_cxx compile_fmtlib compile_spdlog compile_simdjson compile_howardhinnant_date)")
    ;;
  *) die "there is no set '$1'; transport and release are" ;;
esac
rows=()
for ((at = 0; at < ${#sources[@]}; at += 5)); do
  [[ " ${libraries[*]} " != *" ${sources[at]} "* ]] || rows+=("${sources[@]:at:5}")
done
prefix=$cache/libraries/$(printf '%s\n' "$architecture" "${flags[*]}" "${rows[*]}" "${options[@]}" |
  sha256sum | cut -c1-16)

if [[ -f $prefix/versions ]]; then
  echo "$prefix"
  exit
fi
mkdir -p "$prefix"
# Two builds at once (the presets debug and fuzz, say): the second waits and finds the result of the first.
exec 9>"$prefix.lock"
flock 9
if [[ -f $prefix/versions ]]; then
  echo "$prefix"
  exit
fi
work=$(mktemp -d)
trap 'rm -rf "$work"' EXIT
log=$prefix/build.log
: >"$log"
# For another machine, the names by which compilers are called below are the cross compilers', and CMake has its toolchain.
if [[ $architecture != "$(uname -m)" ]]; then
  export CMAKE_TOOLCHAIN_FILE
  CMAKE_TOOLCHAIN_FILE=$(dirname "$(realpath "${BASH_SOURCE[0]}")")/../$architecture.cmake
  mkdir "$work/tools"
  for tool in gcc g++ ar ranlib; do
    ln -s "$(command -v "$architecture-linux-gnu-$tool")" "$work/tools/$tool" ||
      die "no $architecture-linux-gnu-$tool here; install the package g++-${architecture//_/-}-linux-gnu"
  done
  PATH=$work/tools:$PATH
fi

# Addresses of Debian's mirrors, as apt has them.
# shellcheck disable=SC2016  # A field of apt-get.
mirrors() { apt-get indextargets --format '$(SITE)' 'Created-By: Packages' 'Origin: Debian' | sort -u; }

# archive POOL: the archive of all that Debian published there, as of $snapshot; nothing where this machine names none.
archive() {
  local name=debian key=Origin::Debian template=
  if [[ $1 = pool/updates/* ]]; then
    name=debian-security key=Override::Label::Debian-Security
  fi
  if [[ -n ${GSO_DEBIAN_SNAPSHOT:-} ]]; then
    echo "$GSO_DEBIAN_SNAPSHOT/$name/$snapshot/"
  elif command -v apt-config >/dev/null; then
    eval "$(apt-config shell template "Acquire::Snapshots::URI::$key")"
    [[ -z $template ]] || echo "${template//@SNAPSHOTID@/$snapshot}"
  fi
}

checked() { echo "$2  $1" | sha256sum --check --quiet 2>/dev/null; }

# fetch FILE POOL SHA256: from GSO_LIBRARY_SOURCES, a mirror or the archive, into $work.
fetch() {
  local file=$1 pool=$2 sha256=$3 address
  if [[ -n ${GSO_LIBRARY_SOURCES:-} ]]; then
    cp "$GSO_LIBRARY_SOURCES/$file" "$work/$file" 2>>"$log" || return 1
    checked "$work/$file" "$sha256" || die "$GSO_LIBRARY_SOURCES/$file is not the file that is pinned (SHA-256 $sha256)"
    return
  fi
  [[ ! -f $work/$file ]] || return 0
  command -v apt-get >/dev/null ||
    die "apt-get is not here to fetch $file; put it and Debian's patches into a folder; GSO_LIBRARY_SOURCES names that"
  for address in $(mirrors) $(archive "$pool"); do
    address=${address%/}/$pool/$file
    say "fetching ${address##*/}"
    # apt's own program knows apt's proxies and certificates, and checks the sum.
    if /usr/lib/apt/apt-helper -o Acquire::http::Timeout=60 -o Acquire::https::Timeout=60 -o APT::Sandbox::User=root \
      download-file "$address" "$work/$file" "SHA256:$sha256" >>"$log" 2>&1 && checked "$work/$file" "$sha256"; then
      return
    fi
    rm -f "$work/$file"
  done
  return 1
}

# unpack NAME: changes into the newest sources that can be had with Debian's patches, or else without; sets $built.
unpack() {
  local at version orig patches name wanted='' published='' form=gz
  # What Debian packed again, without parts of it; fmt in the older form.
  case $1 in spdlog | howardhinnant-date) form=xz ;; esac
  built=
  for ((at = 0; at < ${#rows[@]}; at += 5)); do
    [[ ${rows[at]} = "$1" ]] || continue
    version=${rows[at + 1]#*:} # Names of files have no epoch.
    orig=$1_${version%-*}.orig.tar.$form patches=$1_$version.debian.tar.xz
    wanted=${wanted:-$orig and $patches}
    fetch "$orig" "${rows[at + 2]}" "${rows[at + 3]}" || continue
    if fetch "$patches" "${rows[at + 2]}" "${rows[at + 4]}"; then
      built=${rows[at + 1]} published=$orig
      break
    fi
    built=${built:-${rows[at + 1]%-*} unpatched} published=${published:-$orig}
  done
  [[ -n $built ]] ||
    die "no Debian mirror of this machine has the sources of $1 (apt's answers: $log); put $wanted into a folder, and name that in GSO_LIBRARY_SOURCES"
  mkdir "$work/$1"
  tar -xf "$work/$published" --strip-components=1 -C "$work/$1"
  cd "$work/$1"
  if [[ $built = *unpatched ]]; then
    say "Debian's patches of $1 are on no mirror and in no archive that this machine names: built without them, which is good enough for tests and refused for an image. GSO_DEBIAN_SNAPSHOT can name an archive of all that Debian published, or GSO_LIBRARY_SOURCES a folder with $wanted (docs/releasing.md); log: $log"
    return
  fi
  rm -rf "$work/debian"
  tar -xf "$work/$patches" -C "$work"
  [[ -f $work/debian/patches/series ]] || return 0
  while read -r name _; do
    [[ -z $name || $name = \#* ]] || patch -p1 --silent <"$work/debian/patches/$name" >>"$log" ||
      die "Debian's patch $name does not apply; see $log"
  done <"$work/debian/patches/series"
}

for library in "${libraries[@]}"; do
  unpack "$library"
  say "building $library $built (log: $log)"
  if ! "compile_${library//-/_}" >>"$log" 2>&1; then
    tail -n 20 "$log" >&2
    die "$library $built does not compile; the log is $log"
  fi
  echo "$library=$built" >>"$work/versions"
done
rm -rf "${prefix:?}"/{include,lib,licences}
cp -r "$work"/out/{include,lib,licences} "$prefix"
cp "$work/versions" "$prefix/versions" # last: what has it is complete
echo "$prefix"
