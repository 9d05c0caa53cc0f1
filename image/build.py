#!/usr/bin/env python3
"""An image without a container engine: a root filesystem of a release's program, Debian's glibc, which alone it loads, time zones
and certificates, as an OCI archive with an SPDX bill of materials for each architecture. The same inputs give the same bytes.

usage: build.py OUT_DIR PROGRAM... [--rootfs DIR] [--lock] [--check]

One PROGRAM for each architecture, which its ELF header tells; its file's name is the image's. What is beside it comes from the
packages of packages.lock (packages.py); what is fetched is said, and a mirror that is silent for GSODEV_IMAGE_PATIENCE seconds
(60) is left alone. --lock writes that file anew, and fails if the mirrors have a newer version of a library that is inside a
program. --rootfs only fills DIR, for one program. --check builds it a second time, and fails where a byte differs or an image is
larger than its limit. Each program is run in its root filesystem before anything is written to OUT_DIR: in a chroot, or by qemu
where this machine has another architecture. The last line is "DIGEST PATH" of the archive.
"""
import argparse
import functools
import io
import json
import os
import pathlib
import re
import shutil
import struct
import subprocess
import sys
import tarfile
import tempfile
import typing

import oci
from packages import fetch, libraries_of, locked, note, outdated, own_architecture, run, sha256, write_lock

HERE = pathlib.Path(__file__).resolve().parent
USER = "65532"


class Architecture(typing.NamedTuple):
    name: str  # Debian's and OCI's.
    emulator: str  # What runs its programs on another machine.
    triplet: str  # Of its compiler's tools, and of the folder with its glibc.


# By e_machine of an ELF header.
ARCHITECTURES = {62: Architecture("amd64", "qemu-x86_64-static", "x86_64-linux-gnu"), 183: Architecture("arm64", "qemu-aarch64-static", "aarch64-linux-gnu")}
# What each program is called with in its container, other names of it, and how it tells its version and its libraries.
PROGRAMS = {"gpu-sharing-operator": {"command": ["run"], "links": ["kubectl-gpu_sharing"], "libraries": ["version", "--libraries"]},
            "gso-sim": {"command": ["--install", "--listen", "0.0.0.0:6443"], "links": [], "libraries": ["--libraries"]}}
# Bytes of an image as a registry stores it, for each architecture.
LIMIT = 11_500_000
# Of a package only what runs: libraries, time zones, certificates, and the licence that must go with them.
KEPT = re.compile(r"^\./(usr/)?lib/.*\.so(\.[0-9.]+)?$|^\./usr/share/zoneinfo/|^\./usr/share/doc/[^/]+/copyright$|^\./(usr/)?lib64/ld-|^\./usr/share/ca-certificates/")
# Conversions between character sets (iconv), and time zones in other forms.
LEFT_OUT = re.compile(r"/gconv/|/zoneinfo/(right|posix)/")


def architecture_of(program):
    """What the program's header says."""
    with open(program, "rb") as file:
        header = file.read(20)
    machine = struct.unpack_from("<H", header, 18)[0] if header[:4] == b"\x7fELF" else None
    return ARCHITECTURES.get(machine) or sys.exit(f"{program} is no program for amd64 or arm64")


def licences_of(program):
    """Of the libraries inside the program, above it where it was built."""
    found = [folder / "licences" for folder in program.resolve().parents if (folder / "licences").is_dir()]
    return found[0] if found else sys.exit(f"no folder `licences` is above {program}: a release build makes one in its build folder")


def strip(program):
    tool = f"{architecture_of(program).triplet}-strip"
    run(tool if shutil.which(tool) else "strip", program)


def is_native(program):
    return architecture_of(program).name == own_architecture()


def emulated(program, root=None):
    """How this machine runs it, with the glibc of that root filesystem or of its cross compiler."""
    if is_native(program):
        return [program]
    its = architecture_of(program)
    emulator = shutil.which(its.emulator) or sys.exit(f"{its.emulator} is not here to run the program for {its.name}; install qemu-user-static")
    return [emulator, "-L", root or f"/usr/{its.triplet}", program]


def fill_from(package, root):
    tar = subprocess.run(["dpkg-deb", "--fsys-tarfile", package], check=True, capture_output=True).stdout
    with tarfile.open(fileobj=io.BytesIO(tar)) as archive:
        members = [m for m in archive.getmembers() if KEPT.match(m.name) and not m.isdir() and not LEFT_OUT.search(m.name)]
        archive.extractall(root, members=members, filter="fully_trusted") if sys.version_info >= (3, 12) else archive.extractall(root, members=members)


def merge_usr(root):
    """One tree for /lib and /usr/lib, as Debian has it."""
    for name in ("lib", "lib64"):
        old = root / name
        if old.is_dir() and not old.is_symlink():
            shutil.copytree(old, root / "usr" / name, symlinks=True, dirs_exist_ok=True)
            shutil.rmtree(old)
        if not old.exists() and not old.is_symlink():
            (root / "usr" / name).mkdir(parents=True, exist_ok=True)
            old.symlink_to(f"usr/{name}")


def join_certificates(root):
    """All certificates in one file, as update-ca-certificates does, where libcurl looks for it."""
    source = root / "usr/share/ca-certificates"
    target = root / "etc/ssl/certs/ca-certificates.crt"
    target.parent.mkdir(parents=True)
    target.write_bytes(b"".join(file.read_bytes() for file in sorted(source.rglob("*.crt"))))
    shutil.rmtree(source)


def fill(root, program, folder):
    root.mkdir()
    for package in fetch(architecture_of(program).name, folder).values():
        fill_from(package, root)
    merge_usr(root)
    join_certificates(root)
    (root / "usr/bin").mkdir(parents=True)
    shutil.copy(program, root / "usr/bin" / program.name)
    strip(root / "usr/bin" / program.name)
    shutil.copytree(licences_of(program), root / "usr/share/doc" / program.name)
    for link in PROGRAMS[program.name]["links"]:
        (root / "usr/bin" / link).symlink_to(program.name)
    (root / "etc/passwd").write_text(f"root:x:0:0:root:/:/sbin/nologin\nnonroot:x:{USER}:{USER}:nonroot:/:/sbin/nologin\n", encoding="utf-8")
    (root / "etc/group").write_text(f"root:x:0:\nnonroot:x:{USER}:\n", encoding="utf-8")
    (root / "etc/nsswitch.conf").write_text("hosts: files dns\n", encoding="utf-8")
    oci.even_modes(root, lambda path: path.parent.name == "bin" or ".so" in path.name)


def try_it(root, program):
    """What the program answers with nothing but this root filesystem, as nobody in particular."""
    placed = root / "usr/bin" / program.name
    if is_native(program):
        isolate = ["unshare", "--map-root-user"] if os.geteuid() else []
        command = [*isolate, "chroot", *([] if isolate else [f"--userspec={USER}:{USER}"]), root, f"/usr/bin/{program.name}"]
    else:
        command = emulated(placed, root)
    text = run(*command, *PROGRAMS[program.name]["libraries"], env={"PATH": os.environ["PATH"]})
    return text.splitlines()[0], libraries_of(text)


def refuse_unpatched(libraries):
    for name, version in libraries:
        if version.endswith("unpatched"):
            sys.exit(f"the program contains {name} {version}: Debian's security patches for it could not be fetched when it was built. "
                     "Remove the folder `libraries` from GSODEV_CACHE, and build again where a mirror or GSO_DEBIAN_SNAPSHOT has them (docs/releasing.md).")


def bill(root, program, version, created, digest, libraries):
    """SPDX 2.3: the program, each library inside it with its version, and each package beside it with version and checksum."""
    architecture = architecture_of(program).name
    unknown = {"downloadLocation": "NOASSERTION", "licenseConcluded": "NOASSERTION", "licenseDeclared": "NOASSERTION", "copyrightText": "NOASSERTION", "filesAnalyzed": False}

    def debian(name, its_version, its_architecture):
        return {"externalRefs": [{"referenceCategory": "PACKAGE-MANAGER", "referenceType": "purl",
                                  "referenceLocator": f"pkg:deb/debian/{name}@{its_version}?arch={its_architecture}&distro=bookworm"}]}
    own = {**unknown, "SPDXID": "SPDXRef-program", "name": program.name, "versionInfo": version, "licenseConcluded": "Apache-2.0", "licenseDeclared": "Apache-2.0",
           "checksums": [{"algorithm": "SHA256", "checksumValue": sha256((root / "usr/bin" / program.name).read_bytes())}]}
    beside = [{**unknown, "SPDXID": f"SPDXRef-{re.sub('[^A-Za-z0-9.-]', '-', name)}", "name": name, "versionInfo": its_version,
               "checksums": [{"algorithm": "SHA256", "checksumValue": checksum}], **debian(name, its_version, its)}
              for name, its_version, its, checksum, _ in locked(architecture)]
    inside = [{**unknown, "SPDXID": f"SPDXRef-inside-{name}", "name": name, "versionInfo": its_version, **debian(name, its_version, "source")}
              for name, its_version in libraries]
    relations = [{"spdxElementId": "SPDXRef-DOCUMENT", "relationshipType": "DESCRIBES", "relatedSpdxElement": "SPDXRef-program"}]
    relations += [{"spdxElementId": "SPDXRef-program", "relationshipType": kind, "relatedSpdxElement": package["SPDXID"]}
                  for kind, packages in (("DEPENDS_ON", beside), ("STATIC_LINK", inside)) for package in packages]
    return json.dumps({"spdxVersion": "SPDX-2.3", "dataLicense": "CC0-1.0", "SPDXID": "SPDXRef-DOCUMENT", "name": f"{program.name}-{version}-{architecture}",
                       "documentNamespace": f"https://gpusharing.dev/sbom/{version}/{architecture}/{digest.removeprefix('sha256:')}",
                       "creationInfo": {"created": created, "creators": ["Tool: image/build.py"]}, "packages": [own, *beside, *inside], "relationships": relations}, indent=1) + "\n"


def roots_of(programs, folder):
    """({program: its root filesystem}, {program: the libraries inside it}, {program: how it names itself}), each tried."""
    roots, libraries, answers = {}, {}, {}
    for program in programs:
        roots[program] = folder / f"{program.name}-{architecture_of(program).name}"
        fill(roots[program], program, folder)
        answers[program], libraries[program] = try_it(roots[program], program)
        refuse_unpatched(libraries[program])
    return roots, libraries, answers


def chart():
    """The chart's lines that have one value."""
    return dict(re.findall(r"(?m)^(\w+): (.+)$", (HERE.parent / "charts/gpu-sharing-operator/Chart.yaml").read_text(encoding="utf-8")))


@functools.cache
def moment():
    """(seconds, the same as text) of the last commit, or of SOURCE_DATE_EPOCH: when all of a release is said to be made."""
    when = int(os.environ.get("SOURCE_DATE_EPOCH") or run("git", "-C", str(HERE), "log", "-1", "--format=%ct"))
    return when, run("date", "--utc", "--date", f"@{when}", "+%Y-%m-%dT%H:%M:%SZ").strip()


def archive_of(roots, version):
    """(the archive's bytes, its digest, bytes of each layer) of {program: its root filesystem}."""
    when, created = moment()
    archive = oci.Archive()
    for program, root in roots.items():
        labels = {"title": program.name, "version": version, "licenses": "Apache-2.0"}
        archive.add(root, architecture_of(program).name,
                    {"User": f"{USER}:{USER}", "Entrypoint": [f"/usr/bin/{program.name}"], "Cmd": PROGRAMS[program.name]["command"], "Env": ["PATH=/usr/bin"],
                     "Labels": {f"org.opencontainers.image.{name}": text for name, text in labels.items()}}, when, created)
    return *archive.finish(version, when), archive.squeezed


def check(programs, version, first, folder):
    """A second build has the same bytes, and no image is too large."""
    again = {program: folder / f"again-{number}" for number, program in enumerate(programs)}
    for program, root in again.items():
        fill(root, program, folder)
    bytes_again, _, squeezed = archive_of(again, version)
    if bytes_again != first:
        sys.exit("built twice, the archives differ")
    for architecture, size in squeezed.items():
        if size > LIMIT:
            sys.exit(f"the image for {architecture} has {size / 1e6:.1f} MB compressed, more than {LIMIT / 1e6:.1f} MB: find what has grown in it")
    print("built twice, the same bytes")


def arguments():
    parser = argparse.ArgumentParser()
    parser.add_argument("out", type=pathlib.Path)
    parser.add_argument("programs", type=pathlib.Path, nargs="+")
    parser.add_argument("--rootfs", type=pathlib.Path)
    parser.add_argument("--lock", action="store_true")
    parser.add_argument("--check", action="store_true")
    options = parser.parse_args()
    names = {program.name for program in options.programs}
    if len(names) > 1 or names - set(PROGRAMS):
        parser.error(f"the programs are one of {', '.join(PROGRAMS)}, for one or more architectures, not {', '.join(sorted(names))}")
    if len({architecture_of(program) for program in options.programs}) < len(options.programs):
        parser.error("two of the programs are for the same architecture")
    if options.rootfs and len(options.programs) > 1:
        parser.error("--rootfs is for one program")
    return options


def main():
    options = arguments()
    os.umask(0o022)
    version = chart()["version"]
    with tempfile.TemporaryDirectory() as temporary:
        folder = pathlib.Path(temporary)
        if options.lock:
            write_lock(folder)
        roots, libraries, answers = roots_of(options.programs, folder)
        for program, answer in answers.items():
            print(f"{answer} for {architecture_of(program).name} runs in its root filesystem")
        old = sorted({line for program in options.programs for line in outdated(libraries[program])})
        if old and options.lock:
            sys.exit("\n".join(old))
        for line in old:
            note(line)
        if options.rootfs:
            shutil.copytree(roots[options.programs[0]], options.rootfs, symlinks=True, dirs_exist_ok=True)
            return
        archive, digest, squeezed = archive_of(roots, version)
        if options.check:
            check(options.programs, version, archive, folder)
        options.out.mkdir(parents=True, exist_ok=True)
        path = options.out / f"{options.programs[0].name}.oci.tar"
        path.write_bytes(archive)
        for program, root in roots.items():
            architecture = architecture_of(program).name
            (options.out / f"{program.name}-{architecture}.spdx.json").write_text(bill(root, program, version, moment()[1], digest, libraries[program]), encoding="utf-8")
            size = sum(file.stat().st_size for file in root.rglob("*") if file.is_file() and not file.is_symlink())
            print(f"{architecture}: {size / 1e6:.1f} MB unpacked, {squeezed[architecture] / 1e6:.1f} MB compressed, {len(list(locked(architecture)))} packages")
        print(f"{digest} {path}")


if __name__ == "__main__":
    main()
