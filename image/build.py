#!/usr/bin/env python3
"""The operator's image without a container engine: a root filesystem of the binary, Debian's glibc, which alone it loads, and
the time zones, as an OCI archive with an SPDX bill of materials. The same inputs give the same bytes.

usage: build.py BINARY VERSION OUT_DIR [--rootfs DIR] [--lock] [--check]

Both come from the packages of packages.lock, each pinned by version and SHA-256, fetched by apt-get; what the mirrors
have replaced since, from an archive of all that Debian ever published, if GSO_DEBIAN_SNAPSHOT or apt itself names one. What is
fetched is said, and a mirror that is silent for GSODEV_IMAGE_PATIENCE seconds (60) is left alone. --lock writes that file anew from
what the binary loads on this machine, and fails if the mirrors have a newer version of a library that is inside the binary.
--rootfs only fills DIR. --check builds it a second time, and fails where a byte differs.
The binary is run in the root filesystem (chroot in a user namespace) before anything is written to OUT_DIR.
"""
import argparse
import gzip
import hashlib
import io
import json
import os
import pathlib
import re
import shutil
import signal
import subprocess
import sys
import tarfile
import tempfile
import time
import urllib.error
import urllib.request

HERE = pathlib.Path(__file__).resolve().parent
LOCK = pathlib.Path(os.environ.get("GSODEV_IMAGE_LOCK", HERE / "packages.lock"))
# What apt calls the archives of all that Debian ever published. apt has both by itself from Debian 13 on.
ARCHIVES = {"debian": "Acquire::Snapshots::URI::Origin::Debian",
            "debian-security": "Acquire::Snapshots::URI::Override::Label::Debian-Security"}
# Seconds that a mirror or the archive may be silent, and that apt-get may take for ten packages.
PATIENCE = int(os.environ.get("GSODEV_IMAGE_PATIENCE", "60"))
ALWAYS = ["tzdata"]
# The packages that tell of Debian's updates of the libraries inside the binary (cmake/Dependencies.cmake links them).
LINKED = {"openssl": "libssl-dev", "fmtlib": "libfmt-dev", "spdlog": "libspdlog-dev", "simdjson": "libsimdjson-dev", "howardhinnant-date": "libhowardhinnant-date-dev",
          "nghttp2": "libnghttp2-dev", "zlib": "zlib1g-dev", "libyaml": "libyaml-dev", "yaml-cpp": "libyaml-cpp-dev", "gcc-12": "libstdc++-12-dev"}
# Of those, what the project builds itself.
BUILT = {"openssl", "fmtlib", "spdlog", "simdjson", "howardhinnant-date"}
# How to take an update of what the project builds itself.
PIN = "Pin that in cmake/libraries/build.sh (if it is: remove the folder `libraries` from GSODEV_CACHE where a mirror has its sources)"
USER = "65532"
# Of a package only what runs: libraries, time zones, and the licence that must go with them.
KEPT = re.compile(r"^\./(usr/)?lib/.*\.so(\.[0-9.]+)?$|^\./usr/share/zoneinfo/|^\./usr/share/doc/[^/]+/copyright$|^\./(usr/)?lib64/ld-")


def run(*command, **more):
    done = subprocess.run(command, check=False, capture_output=True, text=True, **more)
    if done.returncode:
        sys.exit(f"{' '.join(map(str, command[:3]))}… ended with {done.returncode}:\n{(done.stderr or done.stdout).strip()}")
    return done.stdout


def sha256(data):
    return hashlib.sha256(data).hexdigest()


def packages_of(binary):
    """Packages of the libraries that the binary loads."""
    out = set(ALWAYS)
    for library in re.findall(r"(/\S+)", run("ldd", binary)):
        for path in (library, os.path.realpath(library), "/usr" + library):
            found = subprocess.run(["dpkg", "-S", path], capture_output=True, text=True, check=False)
            if found.returncode == 0:
                out.add(found.stdout.split(":")[0])
                break
        else:
            sys.exit(f"no Debian package has {library}")
    return sorted(out)


def note(text):
    """What is being done now, for whoever waits for it."""
    print(f"image: {text}", file=sys.stderr, flush=True)


def apt_get(wanted, folder):
    """(what apt-get said, whether it fetched them all, whether it had to be stopped)."""
    names = [f"{name}={version}" for name, version in wanted]
    limit = PATIENCE * (1 + len(names) // 10)
    note(f"fetching {names[0] if len(names) == 1 else f'{len(names)} packages'} with apt-get, for at most {limit} s")
    # A session of its own: what apt-get started to fetch with ends with it, and holds no pipe open.
    with subprocess.Popen(["apt-get", "-o", f"Acquire::http::Timeout={PATIENCE}", "-o", f"Acquire::https::Timeout={PATIENCE}", "download", *names], cwd=folder,
                          stdin=subprocess.DEVNULL, stdout=subprocess.DEVNULL, stderr=subprocess.PIPE, text=True, start_new_session=True) as process:
        try:
            return process.communicate(timeout=limit)[1], process.returncode == 0, False
        except subprocess.TimeoutExpired:
            os.killpg(process.pid, signal.SIGKILL)
            return f"{process.communicate()[1]}apt-get did not end within {limit} s (GSODEV_IMAGE_PATIENCE gives it more)\n", False, True


def download(wanted, folder):
    """Fetches what apt-get has of the packages, each (name, version), and returns what it said where it has not all."""
    if not wanted:
        return ""
    said, done, stopped = apt_get(wanted, folder)
    # In one go; where that fails, one by one: a single package that the mirrors replaced stops the others. A mirror that does
    # not answer is not asked again.
    if done or stopped or len(wanted) == 1:
        return "" if done else said
    said = ""
    for one in wanted:
        its, done, stopped = apt_get([one], folder)
        said += "" if done else its
        if stopped:
            break
    return said


def fetched(name, folder):
    return next(iter(folder.glob(f"{name}_*.deb")), None)


def candidate(name):
    """The version of a package that apt-get would install; empty: it knows none."""
    found = re.search(r"Candidate: (\d\S*)", run("apt-cache", "policy", name))
    return found[1] if found else ""


def outdated(libraries):
    """A line for each library inside the binary that is older than the mirrors' version, which might be a security update."""
    lines = []
    for name, version in libraries:
        # Of the source: a package that Debian only built again has a version of its own.
        newer = re.sub(r"\+b\d+$", "", candidate(LINKED[name])) if name in LINKED else ""
        if newer and subprocess.run(["dpkg", "--compare-versions", newer, "gt", version], check=False).returncode == 0:
            how = PIN if name in BUILT else f"Run apt-get install {LINKED[name]}"
            lines.append(f"the binary contains {name} {version}, but Debian has {newer}. {how} and build the binary again.")
    return lines


def libraries_of(answer):
    """(name, version) of each library in what `version --libraries` printed."""
    return [line.split(" ", 1) for line in answer.strip().splitlines()[1:]]


def write_lock(binary, folder):
    wanted, where = [], {}
    for name in packages_of(binary):
        version = candidate(name)
        wanted.append((name, version))
        where[name] = re.search(r"^Filename: (\S+)", run("apt-cache", "show", f"{name}={version}"), re.MULTILINE)[1]
    said = download(wanted, folder)
    lines = ["# name version sha256 path: what image/build.py puts beside the binary; `./dev image --lock` writes it anew.",
             time.strftime("# snapshot %Y%m%dT%H%M%SZ: Debian's archive had them all at that time.", time.gmtime())]
    for name, version in wanted:
        package = fetched(name, folder) or sys.exit(f"apt-get has no {name} {version}:\n{said.strip()}")
        lines.append(f"{name} {version} {sha256(package.read_bytes())} {where[name]}")
    LOCK.write_text("\n".join(lines) + "\n", encoding="utf-8")


def locked():
    """(name, version, SHA-256, path in Debian's archive) of each package."""
    for line in LOCK.read_text(encoding="utf-8").splitlines():
        if line and not line.startswith("#"):
            yield line.split()


def archive_as_of(archive, when):
    """The address of "debian" or "debian-security" as it was then; empty: this machine names no archive."""
    if named := os.environ.get("GSO_DEBIAN_SNAPSHOT"):
        return f"{named}/{archive}/{when}/"
    found = re.match(r"address='(.*)'$", run("apt-config", "shell", "address", ARCHIVES[archive]).strip())
    return found[1].replace("@SNAPSHOTID@", when) if found else ""


def from_snapshot(name, version, path, said):
    """The package's bytes as Debian published them when the lock was written."""
    when = re.search(r"^# snapshot (\S+?):", LOCK.read_text(encoding="utf-8"), re.MULTILINE)[1]
    archive = archive_as_of("debian-security" if path.startswith("pool/updates/") else "debian", when)
    error = "which GSO_DEBIAN_SNAPSHOT can name (docs/releasing.md): it is not set, and apt knows none"
    if archive:
        address = f"{archive.rstrip('/')}/{path}"
        note(f"fetching {address}")
        try:
            with urllib.request.urlopen(address, timeout=PATIENCE) as answer:
                return answer.read()
        except (OSError, urllib.error.URLError) as failure:
            error = f"{address}: {failure}"
    sys.exit(f"{name} {version} can be fetched neither by apt-get:\n{said.strip()}\nnor from an archive of what Debian published, {error}\n"
             "`./dev image --lock` takes the present versions instead; commit the lock that it writes.")


def fetch(folder):
    """{name: file} of what is locked, from the cache where it is there."""
    cache = pathlib.Path(os.environ.get("GSODEV_CACHE", HERE.parent / "build")) / "image-packages"
    cache.mkdir(parents=True, exist_ok=True)
    said = download([(name, version) for name, version, digest, _ in locked() if not (cache / digest).exists()], folder)
    for name, version, digest, path in locked():
        if (cache / digest).exists():
            continue
        package = fetched(name, folder)
        data = package.read_bytes() if package else from_snapshot(name, version, path, said)
        if sha256(data) != digest:
            sys.exit(f"{name} {version} is not what packages.lock pins (SHA-256 {digest})")
        # Whole or not at all: an interrupted build leaves no half package behind under its digest.
        (cache / f"{digest}.part").write_bytes(data)
        (cache / f"{digest}.part").rename(cache / digest)
    return {name: cache / digest for name, _, digest, _ in locked()}


def fill(root, binary, folder):
    for package in fetch(folder).values():
        tar = subprocess.run(["dpkg-deb", "--fsys-tarfile", package], check=True, capture_output=True).stdout
        with tarfile.open(fileobj=io.BytesIO(tar)) as archive:
            members = [m for m in archive.getmembers() if KEPT.match(m.name) and not m.isdir() and "/right/" not in m.name and "/posix/" not in m.name]
            archive.extractall(root, members=members, filter="fully_trusted") if sys.version_info >= (3, 12) else archive.extractall(root, members=members)
    # One tree for /lib and /usr/lib, as Debian has it.
    for name in ("lib", "lib64"):
        old = root / name
        if old.is_dir() and not old.is_symlink():
            shutil.copytree(old, root / "usr" / name, symlinks=True, dirs_exist_ok=True)
            shutil.rmtree(old)
        if not old.exists() and not old.is_symlink():
            (root / "usr" / name).mkdir(parents=True, exist_ok=True)
            old.symlink_to(f"usr/{name}")
    (root / "usr/bin").mkdir(parents=True)
    shutil.copy(binary, root / "usr/bin/gpu-sharing-operator")
    run("strip", root / "usr/bin/gpu-sharing-operator")
    # Of the libraries inside the binary, beside it where it was built.
    shutil.copytree(binary.parents[1] / "licences", root / "usr/share/doc/gpu-sharing-operator")
    (root / "usr/bin/kubectl-gpu_sharing").symlink_to("gpu-sharing-operator")
    (root / "etc").mkdir()
    (root / "etc/passwd").write_text(f"root:x:0:0:root:/:/sbin/nologin\nnonroot:x:{USER}:{USER}:nonroot:/:/sbin/nologin\n", encoding="utf-8")
    (root / "etc/group").write_text(f"root:x:0:\nnonroot:x:{USER}:\n", encoding="utf-8")
    (root / "etc/nsswitch.conf").write_text("hosts: files dns\n", encoding="utf-8")
    for path in sorted(root.rglob("*")):
        if not path.is_symlink():
            path.chmod(0o755 if path.is_dir() or path.parent.name == "bin" or ".so" in path.name else 0o644)


def try_it(root):
    """What the binary answers with nothing but this root filesystem, as nobody in particular."""
    isolate = ["unshare", "--map-root-user"] if os.geteuid() else []
    text = run(*isolate, "chroot", *([] if isolate else [f"--userspec={USER}:{USER}"]), root, "/usr/bin/gpu-sharing-operator", "version", "--libraries", env={"PATH": os.environ["PATH"]})
    return text.splitlines()[0], libraries_of(text)


def refuse_unpatched(libraries):
    for name, version in libraries:
        if version.endswith("unpatched"):
            sys.exit(f"the binary contains {name} {version}: Debian's security patches for it could not be fetched when it was built. "
                     "Remove the folder `libraries` from GSODEV_CACHE, and build again where a mirror or GSO_DEBIAN_SNAPSHOT has them (docs/releasing.md).")


def tar_of(root, when):
    """A tar whose bytes depend on names, contents and modes alone."""
    out = io.BytesIO()
    with tarfile.open(fileobj=out, mode="w", format=tarfile.GNU_FORMAT) as archive:
        for path in sorted(root.rglob("*"), key=lambda p: p.relative_to(root).as_posix()):
            info = archive.gettarinfo(path, arcname=path.relative_to(root).as_posix())
            info.uid = info.gid = 0
            info.uname = info.gname = ""
            info.mtime = when
            if info.isreg():
                with open(path, "rb") as stream:
                    archive.addfile(info, stream)
            else:
                info.type = tarfile.SYMTYPE if path.is_symlink() else tarfile.DIRTYPE
                archive.addfile(info)
    return out.getvalue()


def squeeze(data):
    out = io.BytesIO()
    with gzip.GzipFile(fileobj=out, mode="wb", mtime=0, compresslevel=9) as stream:
        stream.write(data)
    return out.getvalue()


def text_of(value):
    return json.dumps(value, sort_keys=True, separators=(",", ":")).encode()


def oci_archive(root, version, when, created):
    tar = tar_of(root, when)
    layer = squeeze(tar)
    architecture = run("dpkg", "--print-architecture").strip()
    config = text_of({"created": created, "architecture": architecture, "os": "linux", "rootfs": {"type": "layers", "diff_ids": ["sha256:" + sha256(tar)]},
                      "history": [{"created": created, "created_by": "image/build.py"}],
                      "config": {"User": f"{USER}:{USER}", "Entrypoint": ["/usr/bin/gpu-sharing-operator"], "Cmd": ["run"], "Env": ["PATH=/usr/bin"],
                                 "Labels": {"org.opencontainers.image.title": "gpu-sharing-operator", "org.opencontainers.image.version": version,
                                            "org.opencontainers.image.licenses": "Apache-2.0"}}})

    def described(kind, data):
        return {"mediaType": f"application/vnd.oci.image.{kind}", "digest": "sha256:" + sha256(data), "size": len(data)}

    manifest = text_of({"schemaVersion": 2, "mediaType": "application/vnd.oci.image.manifest.v1+json",
                        "config": described("config.v1+json", config), "layers": [described("layer.v1.tar+gzip", layer)]})
    index = text_of({"schemaVersion": 2, "mediaType": "application/vnd.oci.image.index.v1+json",
                     "manifests": [{**described("manifest.v1+json", manifest), "annotations": {"org.opencontainers.image.ref.name": version}}]})
    files = {"oci-layout": b'{"imageLayoutVersion":"1.0.0"}', "index.json": index}
    files.update({f"blobs/sha256/{sha256(blob)}": blob for blob in (config, layer, manifest)})
    out = io.BytesIO()
    with tarfile.open(fileobj=out, mode="w", format=tarfile.GNU_FORMAT) as archive:
        for name in sorted(files):
            info = tarfile.TarInfo(name)
            info.size, info.mtime = len(files[name]), when
            archive.addfile(info, io.BytesIO(files[name]))
    return out.getvalue(), "sha256:" + sha256(manifest), len(layer)


def bill(root, version, created, digest, libraries):
    """SPDX 2.3: the binary, each library inside it with its version, and each package with version and checksum."""
    binary = (root / "usr/bin/gpu-sharing-operator").read_bytes()
    packages = [{"SPDXID": "SPDXRef-operator", "name": "gpu-sharing-operator", "versionInfo": version, "downloadLocation": "NOASSERTION",
                 "licenseConcluded": "Apache-2.0", "licenseDeclared": "Apache-2.0", "copyrightText": "NOASSERTION", "filesAnalyzed": False,
                 "checksums": [{"algorithm": "SHA256", "checksumValue": sha256(binary)}]}]
    for name, its_version, checksum, _ in locked():
        packages.append({"SPDXID": f"SPDXRef-{re.sub('[^A-Za-z0-9.-]', '-', name)}", "name": name, "versionInfo": its_version, "downloadLocation": "NOASSERTION",
                         "licenseConcluded": "NOASSERTION", "licenseDeclared": "NOASSERTION", "copyrightText": "NOASSERTION", "filesAnalyzed": False,
                         "checksums": [{"algorithm": "SHA256", "checksumValue": checksum}],
                         "externalRefs": [{"referenceCategory": "PACKAGE-MANAGER", "referenceType": "purl", "referenceLocator": f"pkg:deb/debian/{name}@{its_version}?distro=bookworm"}]})
    inside = [{"SPDXID": f"SPDXRef-inside-{name}", "name": name, "versionInfo": its_version, "downloadLocation": "NOASSERTION",
               "licenseConcluded": "NOASSERTION", "licenseDeclared": "NOASSERTION", "copyrightText": "NOASSERTION", "filesAnalyzed": False,
               "externalRefs": [{"referenceCategory": "PACKAGE-MANAGER", "referenceType": "purl", "referenceLocator": f"pkg:deb/debian/{name}@{its_version}?arch=source"}]}
              for name, its_version in libraries]
    relations = [{"spdxElementId": "SPDXRef-DOCUMENT", "relationshipType": "DESCRIBES", "relatedSpdxElement": "SPDXRef-operator"}]
    relations += [{"spdxElementId": "SPDXRef-operator", "relationshipType": "DEPENDS_ON", "relatedSpdxElement": package["SPDXID"]} for package in packages[1:]]
    relations += [{"spdxElementId": "SPDXRef-operator", "relationshipType": "STATIC_LINK", "relatedSpdxElement": library["SPDXID"]} for library in inside]
    packages += inside
    return json.dumps({"spdxVersion": "SPDX-2.3", "dataLicense": "CC0-1.0", "SPDXID": "SPDXRef-DOCUMENT", "name": f"gpu-sharing-operator-{version}",
                       "documentNamespace": f"https://gpusharing.dev/sbom/{version}/{digest.removeprefix('sha256:')}",
                       "creationInfo": {"created": created, "creators": ["Tool: image/build.py"]}, "packages": packages, "relationships": relations}, indent=1) + "\n"


def main():
    parser = argparse.ArgumentParser()
    parser.add_argument("binary", type=pathlib.Path)
    parser.add_argument("version")
    parser.add_argument("out", type=pathlib.Path)
    parser.add_argument("--rootfs", type=pathlib.Path)
    parser.add_argument("--lock", action="store_true")
    parser.add_argument("--check", action="store_true")
    options = parser.parse_args()
    os.umask(0o022)
    when = int(os.environ.get("SOURCE_DATE_EPOCH") or run("git", "-C", str(HERE), "log", "-1", "--format=%ct"))
    created = run("date", "--utc", "--date", f"@{when}", "+%Y-%m-%dT%H:%M:%SZ").strip()
    with tempfile.TemporaryDirectory() as temporary:
        folder = pathlib.Path(temporary)
        if options.lock:
            old = outdated(libraries_of(run(options.binary, "version", "--libraries")))
            if old:
                sys.exit("\n".join(old))
            write_lock(options.binary, folder)
        root = folder / "rootfs"
        root.mkdir()
        fill(root, options.binary, folder)
        answer, libraries = try_it(root)
        refuse_unpatched(libraries)
        for line in outdated(libraries):
            note(line)
        if options.rootfs:
            shutil.copytree(root, options.rootfs, symlinks=True, dirs_exist_ok=True)
            return
        archive, digest, squeezed = oci_archive(root, options.version, when, created)
        if options.check:
            again = folder / "again"
            again.mkdir()
            fill(again, options.binary, folder)
            if oci_archive(again, options.version, when, created)[0] != archive:
                sys.exit("built twice, the archives differ")
            print("built twice, the same bytes")
        options.out.mkdir(parents=True, exist_ok=True)
        (options.out / "gpu-sharing-operator.oci.tar").write_bytes(archive)
        (options.out / "gpu-sharing-operator.spdx.json").write_text(bill(root, options.version, created, digest, libraries), encoding="utf-8")
        size = sum(path.stat().st_size for path in root.rglob("*") if path.is_file() and not path.is_symlink())
        print(f"{answer} runs in its root filesystem")
        print(f"{size / 1e6:.1f} MB unpacked, {squeezed / 1e6:.1f} MB compressed, {len(list(locked()))} packages")
        print(f"{digest} {options.out / 'gpu-sharing-operator.oci.tar'}")


if __name__ == "__main__":
    main()
