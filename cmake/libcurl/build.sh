#!/usr/bin/env bash
# Builds libcurl as a static library from Debian's source package, once, into a cache folder, and prints that folder:
# include/, lib/libcurl.a and `version` (what was built, for the bill of materials).
#
# Debian bookworm's own libcurl (7.88) lacks corrections of HTTP/2 that a client with long watches needs, and brings
# thirty libraries for protocols that no API server speaks. Built are HTTP/1.1 and HTTP/2 over OpenSSL, with zlib.
#
# The sources come from the mirrors that apt uses (its configuration, proxies included, is apt's); the version and both SHA-256
# are pinned here. Mirrors drop Debian's patches of a version when newer ones are published. Then they come from an archive of
# all that Debian ever published, if this machine names one: GSO_DEBIAN_SNAPSHOT (as for image/build.py), or apt itself
# (Acquire::Snapshots::URI::Origin::Debian, which apt has by itself from Debian 13 on). Where nobody has them, libcurl is
# built without, `version` says "unpatched", and image/build.py refuses such a program.
#
# GSO_LIBCURL_SOURCES=DIR takes both files from a folder instead: for machines without a mirror.
set -euo pipefail
shopt -s inherit_errexit

version=8.14.1
orig=curl_$version.orig.tar.gz
orig_sha256=6766ada7101d292b42b8b15681120acd68effa4a9660935853cf6d61f0d984d4
revision=2+deb13u5
patches=curl_$version-$revision.debian.tar.xz
patches_sha256=ebdfcfab1c2001c7a539fe2a4044dbf666a544393f191bedce9ee2d07c4ea925
snapshot=20261125T130000Z # when a mirror had these patches, so Debian's archive has them as of then

cache=${GSODEV_CACHE:-${XDG_CACHE_HOME:-${HOME:-/root}/.cache}/gpu-sharing-operator}

# Protocols, authentication and formats that an API server never asks for are left out: what is not there has no faults.
left_out=(ALTSVC AWS COOKIES DICT DIGEST_AUTH DOH FILE FORM_API FTP GETOPTIONS GOPHER HEADERS_API HSTS IMAP IPFS KERBEROS_AUTH LDAP LDAPS
  LIBCURL_OPTION MIME MQTT NEGOTIATE_AUTH NETRC NTLM PARSEDATE POP3 PROGRESS_METER RTSP SHUFFLE_DNS SMB SMTP SRP TELNET TFTP WEBSOCKETS)

compile() {
  local disabled=("${left_out[@]/#/-DCURL_DISABLE_}")
  cmake -S . -B build -G Ninja -DCMAKE_BUILD_TYPE=None -DCMAKE_POSITION_INDEPENDENT_CODE=ON \
    -DCMAKE_C_FLAGS="-O2 -ffunction-sections -fdata-sections -fstack-protector-strong -fstack-clash-protection -U_FORTIFY_SOURCE -D_FORTIFY_SOURCE=2" \
    -DCMAKE_INSTALL_PREFIX="$work/out" -DCMAKE_INSTALL_LIBDIR=lib -DBUILD_SHARED_LIBS=OFF -DBUILD_STATIC_LIBS=ON -DBUILD_CURL_EXE=OFF \
    -DBUILD_TESTING=OFF -DBUILD_EXAMPLES=OFF -DBUILD_LIBCURL_DOCS=OFF -DBUILD_MISC_DOCS=OFF -DENABLE_CURL_MANUAL=OFF \
    -DENABLE_UNIX_SOCKETS=OFF -DCURL_USE_OPENSSL=ON -DUSE_NGHTTP2=ON -DCURL_ZLIB=ON -DCURL_BROTLI=OFF -DCURL_ZSTD=OFF \
    -DUSE_LIBIDN2=OFF -DCURL_USE_LIBPSL=OFF -DCURL_USE_LIBSSH2=OFF \
    -DCURL_CA_BUNDLE=/etc/ssl/certs/ca-certificates.crt -DCURL_CA_PATH=/etc/ssl/certs "${disabled[@]/%/=ON}" &&
    cmake --build build &&
    cmake --install build
}

# Whatever changes what is built: a comment here, or another way to the sources, is no reason to build it again.
prefix=$cache/libcurl/$(printf '%s\n' "$version-$revision" "$orig_sha256" "$patches_sha256" "${left_out[*]}" "$(declare -f compile)" | sha256sum | cut -c1-16)

say() { printf 'libcurl: %s\n' "$*" >&2; }
die() { say "$*"; exit 1; }

if [[ -f $prefix/version ]]; then
  echo "$prefix"
  exit
fi
mkdir -p "$prefix"
# Two builds at once (the presets debug and fuzz, say): the second waits and finds the result of the first.
exec 9>"$prefix.lock"
flock 9
if [[ -f $prefix/version ]]; then
  echo "$prefix"
  exit
fi
work=$(mktemp -d)
trap 'rm -rf "$work"' EXIT
log=$prefix/build.log
: >"$log"

# Addresses of Debian's mirrors, as apt has them.
# shellcheck disable=SC2016  # A field of apt-get.
mirrors() { apt-get indextargets --format '$(SITE)' 'Created-By: Packages' 'Origin: Debian' | sort -u; }

# The archive of all that Debian ever published, as of $snapshot; nothing where this machine names none.
archive() {
  local template=
  if [[ -n ${GSO_DEBIAN_SNAPSHOT:-} ]]; then
    echo "$GSO_DEBIAN_SNAPSHOT/debian/$snapshot/"
  elif command -v apt-config >/dev/null; then
    eval "$(apt-config shell template Acquire::Snapshots::URI::Origin::Debian)"
    [[ -z $template ]] || echo "${template//@SNAPSHOTID@/$snapshot}"
  fi
}

checked() { echo "$2  $1" | sha256sum --check --quiet 2>/dev/null; }

# fetch FILE SHA256: from GSO_LIBCURL_SOURCES, a mirror or the archive, into $work.
fetch() {
  local file=$1 sha256=$2 address
  if [[ -n ${GSO_LIBCURL_SOURCES:-} ]]; then
    cp "$GSO_LIBCURL_SOURCES/$file" "$work/$file" 2>>"$log" || return 1
    checked "$work/$file" "$sha256" || die "$GSO_LIBCURL_SOURCES/$file is not the file that is pinned (SHA-256 $sha256)"
    return
  fi
  command -v apt-get >/dev/null || die "apt-get is not here to fetch $file; put it and $patches into a folder, and name that in GSO_LIBCURL_SOURCES"
  for address in $(mirrors) $(archive); do
    address=${address%/}/pool/main/c/curl/$file
    say "fetching ${address##*/}"
    # apt's own program knows apt's proxies and certificates, and checks the sum.
    if /usr/lib/apt/apt-helper -o Acquire::http::Timeout=60 -o Acquire::https::Timeout=60 -o APT::Sandbox::User=root \
      download-file "$address" "$work/$file" "SHA256:$sha256" >>"$log" 2>&1 && checked "$work/$file" "$sha256"; then
      return
    fi
  done
  return 1
}

unpack_sources() {
  fetch "$orig" "$orig_sha256" ||
    die "no Debian mirror of this machine has $orig (apt's answers: $log); put it and $patches into a folder, and name that in GSO_LIBCURL_SOURCES"
  tar -xzf "$work/$orig" -C "$work"
  cd "$work/curl-$version"
  built="$version-$revision"
  if fetch "$patches" "$patches_sha256"; then
    tar -xJf "$work/$patches" -C "$work"
    local name
    while read -r name _; do
      [[ -z $name || $name = \#* ]] || patch -p1 --silent <"$work/debian/patches/$name" >>"$log" || die "Debian's patch $name does not apply; see $log"
    done <"$work/debian/patches/series"
  else
    built="$version unpatched"
    say "Debian's patches ($patches) are on no mirror and in no archive that this machine names: built without them, which is good enough for tests and refused for an image. GSO_DEBIAN_SNAPSHOT can name an archive of all that Debian published, or GSO_LIBCURL_SOURCES a folder with $orig and $patches (docs/releasing.md); log: $log"
  fi
}

unpack_sources
say "building $built (log: $log)"
compile >>"$log" 2>&1 || { tail -n 20 "$log" >&2; die "libcurl $version does not compile; the log is $log"; }
rm -rf "${prefix:?}/include" "${prefix:?}/lib"
cp -r "$work/out/include" "$prefix/include"
install -D -m 644 "$work/out/lib/libcurl.a" "$prefix/lib/libcurl.a"
cp COPYING "$prefix/copyright"
echo "$built" >"$prefix/version" # last: what has it is complete
echo "$prefix"
