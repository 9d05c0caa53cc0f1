#!/usr/bin/env python3
"""`./dev release`: all that a release has, in one folder, from programs that are built. The same inputs give the same bytes.

usage: release.py OUT_DIR PROGRAM... [--simulator PROGRAM] [--registry REGISTRY] [--downloads URL] [--key KEY] [--push REGISTRY] [--plain-http]

For each architecture: a tarball of the command line, a .deb, a bill of materials. For all: the image, the chart, which names the
image by its digest, a manifest and an index of krew, metadata for Artifact Hub, checksums, and a statement of provenance. With
--key, a private key of cosign, the checksums are signed, and what is pushed. REGISTRY is where images and chart will be, URL where
the files will be. Nothing is pushed without --push, which names REGISTRY once more; what would be pushed where is printed.
"""
import argparse
import json
import os
import pathlib
import re
import shutil
import sys
import tempfile
import textwrap

import build
import oci
from packages import locked, run, sha256

PROJECT = pathlib.Path(__file__).resolve().parents[1]
CHART = PROJECT / "charts/gpu-sharing-operator"
NAME = "gpu-sharing-operator"
# kubectl's name of the program: what krew installs, and what links are called.
PLUGIN = "gpu-sharing"
PLUGIN_FILE = "kubectl-gpu_sharing"
DOWNLOADS = "https://gpusharing.dev/releases"
SOURCE = "https://gpusharing.dev/source"
MAINTAINER = "The gpu-sharing-operator maintainers <maintainers@gpusharing.dev>"
# Where each shell looks for what completes a command, below /usr/share, and the file's name in a tarball.
COMPLETIONS = {"bash": (f"bash-completion/completions/{NAME}", f"completions/{NAME}.bash"),
               "zsh": (f"zsh/vendor-completions/_{NAME}", f"completions/_{NAME}"),
               "fish": (f"fish/vendor_completions.d/{NAME}.fish", f"completions/{NAME}.fish")}
DESCRIPTION = "Reconciles GPU sharing (MPS, time-slicing) on Kubernetes: command line"
LONG = ("Explains, checks and rolls out profiles of NVIDIA's device plugin, node by node, and verifies what every node shows. "
        "The operator itself runs in a cluster, from its chart.")
# What lintian reports of every program that contains libraries: the bill of materials names them with their versions.
OVERRIDES = f"{NAME}: embedded-library\n"


def sha256_of(path):
    return sha256(path.read_bytes())


class Release:
    def __init__(self, out, programs, simulator, registry, downloads):
        self.out, self.registry = out, registry
        self.chart = build.chart()
        self.version = self.chart["version"]
        self.downloads = f"{downloads}/{self.version}"
        self.when, self.created = build.moment()
        self.programs = {build.architecture_of(program).name: program for program in programs}
        self.simulators = {build.architecture_of(simulator).name: simulator} if simulator else {}
        self.destinations = []  # (file, where it belongs), in the order of pushing.
        self.images = {}  # The digest of each, by name.
        self.libraries = set()  # (name, version) of what is inside a program.

    def add(self, name, data, destination=None):
        path = self.out / name
        path.parent.mkdir(parents=True, exist_ok=True)
        path.write_bytes(data if isinstance(data, bytes) else data.encode())
        self.note(path, destination or f"{self.downloads}/{name}")
        return path

    def note(self, path, destination):
        self.destinations.append((path, destination))

    def answer(self, architecture, *arguments):
        """What the program for that architecture prints."""
        return run(*build.emulated(self.programs[architecture].resolve()), *arguments)

    # --- for each architecture

    def files(self, architecture, folder):
        """Fills the folder with what a tarball has."""
        folder.mkdir()
        program = self.programs[architecture]
        shutil.copy(program, folder / NAME)
        build.strip(folder / NAME)
        (folder / f"{NAME}.1").write_bytes((program.parent / f"{NAME}.1").read_bytes())
        shutil.copy(PROJECT / "LICENSE", folder / "LICENSE")
        shutil.copytree(build.licences_of(program), folder / "licences")
        shutil.copytree(PROJECT / "crds", folder / "crds")
        for shell, (_, name) in COMPLETIONS.items():
            (folder / name).parent.mkdir(exist_ok=True)
            (folder / name).write_text(self.answer(architecture, "completion", shell), encoding="utf-8")
        oci.even_modes(folder, lambda path: path.name == NAME)
        return folder

    def tarball(self, architecture, folder):
        name = f"{NAME}-{self.version}-linux-{architecture}"
        return self.add(f"{name}.tar.gz", oci.squeeze(oci.tar_of(folder, self.when, prefix=f"{name}/")))

    def deb(self, architecture, files, folder):
        """By CPack, of a tree as it is installed."""
        share, document = folder / "tree/usr/share", folder / f"tree/usr/share/doc/{NAME}"
        placed = {NAME: folder / f"tree/usr/bin/{NAME}", **{name: share / place for place, name in COMPLETIONS.values()}}
        for name, place in placed.items():
            place.parent.mkdir(parents=True, exist_ok=True)
            shutil.copy(files / name, place)
        (folder / f"tree/usr/bin/{PLUGIN_FILE}").symlink_to(NAME)
        shutil.copytree(files / "licences", document / "licences")
        for place, text in ((share / f"man/man1/{NAME}.1.gz", (files / f"{NAME}.1").read_bytes()), (document / "changelog.gz", self.changelog())):
            place.parent.mkdir(parents=True, exist_ok=True)
            place.write_bytes(oci.squeeze(text))
        (share / f"man/man1/{PLUGIN_FILE}.1.gz").symlink_to(f"{NAME}.1.gz")
        (document / "copyright").write_text(self.copyright(), encoding="utf-8")
        (share / "lintian/overrides").mkdir(parents=True)
        (share / f"lintian/overrides/{NAME}").write_text(OVERRIDES, encoding="utf-8")
        oci.even_modes(folder / "tree", lambda path: path.parent.name == "bin")
        for path in (folder / "tree").rglob("*"):
            os.utime(path, (self.when, self.when), follow_symlinks=False)
        file = f"{NAME}_{self.version}_{architecture}.deb"
        settings = {"GENERATOR": "DEB", "PACKAGE_NAME": NAME, "PACKAGE_VERSION": self.version, "PACKAGE_FILE_NAME": file.removesuffix(".deb"), "PACKAGE_VENDOR": NAME,
                    "PACKAGE_DIRECTORY": str(folder / "made"), "OUTPUT_FILE_PREFIX": str(folder), "PACKAGING_INSTALL_PREFIX": "/", "INSTALLED_DIRECTORIES": f"{folder}/tree;/",
                    "DEBIAN_PACKAGE_MAINTAINER": MAINTAINER, "DEBIAN_PACKAGE_ARCHITECTURE": architecture, "DEBIAN_PACKAGE_SECTION": "admin",
                    "DEBIAN_PACKAGE_DEPENDS": f"libc6 (>= {newest_glibc(self.programs[architecture])})", "DEBIAN_PACKAGE_SUGGESTS": "tzdata, ca-certificates", "DEBIAN_PACKAGE_HOMEPAGE": self.chart["home"],
                    "DEBIAN_FILE_NAME": file, "PACKAGE_DESCRIPTION_SUMMARY": DESCRIPTION, "PACKAGE_DESCRIPTION": "\\n".join(textwrap.wrap(LONG, 72)), "STRIP_FILES": "OFF",
                    "DEBIAN_COMPRESSION_TYPE": "xz", "INSTALL_DEFAULT_DIRECTORY_PERMISSIONS": "OWNER_READ;OWNER_WRITE;OWNER_EXECUTE;GROUP_READ;GROUP_EXECUTE;WORLD_READ;WORLD_EXECUTE"}
        (folder / "cpack.cmake").write_text("".join(f'set(CPACK_{key} "{value}")\n' for key, value in settings.items()), encoding="utf-8")
        run("cpack", "--config", folder / "cpack.cmake", cwd=folder, env={**os.environ, "SOURCE_DATE_EPOCH": str(self.when)})
        return self.add(file, next(folder.rglob(file)).read_bytes())

    def changelog(self):
        """In the form that Debian's tools read."""
        date = run("date", "--utc", "--date", f"@{self.when}", "--rfc-email").strip()
        return f"{NAME} ({self.version}) stable; urgency=medium\n\n  * {SOURCE}: CHANGELOG.md\n\n -- {MAINTAINER}  {date}\n".encode()

    def copyright(self):
        return ("Format: https://www.debian.org/doc/packaging-manuals/copyright-format/1.0/\n"
                f"Upstream-Name: {NAME}\nSource: {SOURCE}\nComment: Libraries are inside the program. Their licences are in the folder licences beside this file.\n\n"
                f"Files: *\nCopyright: 2026 The {NAME} maintainers\nLicense: Apache-2.0\n On Debian systems, the text of the licence is in /usr/share/common-licenses/Apache-2.0.\n")

    # --- for all

    def image(self, name, programs, folder):
        """The archive and its bills of materials."""
        roots, libraries, _ = build.roots_of(programs.values(), folder)
        self.libraries |= {tuple(library) for inside in libraries.values() for library in inside}
        archive, digest, _ = build.archive_of(roots, self.version)
        self.images[name] = digest
        self.add(f"{name}-{self.version}.oci.tar", archive, f"{self.repository(name)}:{self.version}@{digest}")
        for architecture, program in programs.items():
            self.add(f"{name}-{self.version}-linux-{architecture}.spdx.json", build.bill(roots[program], program, self.version, self.created, digest, libraries[program]))

    def repository(self, name=NAME):
        return f"{self.registry}/{name}" if self.registry else name

    def package_chart(self, folder):
        """The chart, whose default image is the one of this release: the repository a value, the digest an annotation."""
        copy = folder / "chart"
        shutil.copytree(CHART, copy)
        for name in (CHART / ".helmignore").read_text(encoding="utf-8").split():
            for path in copy.rglob(name):
                path.unlink()
        (copy / ".helmignore").unlink()
        for values in ("values.yaml", "files/values.yaml"):
            replace_once(copy / values, f"  repository: {NAME}\n", f"  repository: {self.repository()}\n")
        replace_once(copy / "Chart.yaml", "annotations:\n", f"annotations:\n  gpusharing.dev/image-digest: {self.images[NAME]}\n")
        replace_once(copy / "Chart.yaml", f"      image: {NAME}:{self.version}\n", f"      image: {self.repository()}@{self.images[NAME]}\n")
        oci.even_modes(copy, lambda path: False)
        self.add(f"{NAME}-chart-{self.version}.tgz", oci.squeeze(oci.tar_of(copy, self.when, prefix=f"{NAME}/")), f"oci://{self.charts()}/{NAME}:{self.version}")

    def charts(self):
        return f"{self.registry or 'REGISTRY'}/charts"

    def krew(self, tarballs):
        """A manifest, where an index has it: `kubectl krew index add` takes a git repository with that folder."""
        platforms = "".join(f"""  - selector:
      matchLabels: {{os: linux, arch: {architecture}}}
    uri: {self.downloads}/{path.name}
    sha256: {sha256_of(path)}
    files:
    - {{from: "*/{NAME}", to: .}}
    - {{from: "*/LICENSE", to: .}}
    - {{from: "*/licences", to: .}}
    bin: {NAME}
""" for architecture, path in tarballs.items())
        self.add(f"krew-index/plugins/{PLUGIN}.yaml", f"""apiVersion: krew.googlecontainertools.github.com/v1alpha2
kind: Plugin
metadata:
  name: {PLUGIN}
spec:
  version: v{self.version}
  homepage: {self.chart["home"]}
  shortDescription: {DESCRIPTION.split(":")[0]}
  description: |
    {LONG}
  platforms:
{platforms}""", "the repository of the krew index")

    def artifact_hub(self):
        self.add("artifacthub-repo.yml", "owners:\n- name: {}\n  email: {}\n".format(*re.match("(.*) <(.*)>", MAINTAINER).groups()),
                 f"{self.charts()}/{NAME}:artifacthub.io (oras push, as an artifact)")

    def checksums(self):
        sums = {str(path.relative_to(self.out)): sha256_of(path) for path, _ in self.destinations}
        return self.add("SHA256SUMS", "".join(f"{sums[name]}  {name}\n" for name in sorted(sums)))

    def provenance(self):
        """An in-toto statement with the predicate of SLSA: what each file was made of."""
        commit = run("git", "-C", PROJECT, "rev-parse", "HEAD").strip()
        materials = [{"uri": f"pkg:deb/debian/{name}@{version}?arch={its}", "digest": {"sha256": digest}}
                     for architecture in self.programs for name, version, its, digest, _ in locked(architecture)]
        materials += [{"uri": f"pkg:deb/debian/{name}@{version}?arch=source"} for name, version in self.libraries]
        unique = sorted({json.dumps(material, sort_keys=True) for material in materials})
        subjects = [{"name": str(path.relative_to(self.out)), "digest": {"sha256": sha256_of(path)}} for path, _ in self.destinations]
        subjects += [{"name": self.repository(name), "digest": {"sha256": digest.removeprefix("sha256:")}} for name, digest in self.images.items()]
        self.add(f"{NAME}-{self.version}.intoto.jsonl", oci.text_of({
            "_type": "https://in-toto.io/Statement/v1", "subject": sorted(subjects, key=lambda one: one["name"]), "predicateType": "https://slsa.dev/provenance/v1",
            "predicate": {
                "buildDefinition": {"buildType": f"{self.chart['home']}/build/v1",
                                    "externalParameters": {"architectures": sorted(self.programs), "registry": self.registry, "downloads": self.downloads},
                                    "resolvedDependencies": [{"uri": f"git+{SOURCE}", "digest": {"gitCommit": commit}}, *map(json.loads, unique)]},
                "runDetails": {"builder": {"id": f"{self.chart['home']}/build"}, "metadata": {"startedOn": self.created}}}}) + b"\n")

    def make(self):
        with tempfile.TemporaryDirectory() as temporary:
            folder = pathlib.Path(temporary)
            self.image(NAME, self.programs, folder)
            if self.simulators:
                self.image("gso-sim", self.simulators, folder)
            self.package_chart(folder)
            tarballs = {}
            for architecture in self.programs:
                files = self.files(architecture, folder / f"files-{architecture}")
                tarballs[architecture] = self.tarball(architecture, files)
                self.deb(architecture, files, folder / f"deb-{architecture}")
            self.krew(tarballs)
            self.artifact_hub()
            self.provenance()
            self.checksums()


def newest_glibc(program):
    """The version that it asks the dynamic linker for."""
    versions = re.findall(r"Name: GLIBC_(\d+)\.(\d+)", run("readelf", "--version-info", "--wide", program))
    return ".".join(map(str, max((int(major), int(minor)) for major, minor in versions)))


def replace_once(path, old, new):
    text = path.read_text(encoding="utf-8")
    if text.count(old) != 1:
        sys.exit(f"{path.name} has {text.count(old)} lines `{old.strip()}` instead of one: image/release.py writes the image of the release there")
    path.write_text(text.replace(old, new), encoding="utf-8")


def demand(programs):
    """Before anything is made: what will be needed is here."""
    missing = [program for program in programs if not shutil.which(program)]
    if missing:
        sys.exit(f"{' and '.join(missing)} must be on the PATH: cosign signs, skopeo pushes the image and helm the chart")


def cosign(key, *arguments):
    run("cosign", arguments[0], "--yes", "--key", key, "--tlog-upload=false", *arguments[1:], env={"COSIGN_PASSWORD": "", **os.environ})


def sign(release, key):
    sums = release.out / "SHA256SUMS"
    cosign(key, "sign-blob", "--output-signature", f"{sums}.sig", sums)
    release.note(release.out / "SHA256SUMS.sig", f"{release.downloads}/SHA256SUMS.sig")


def push(release, key, plain_http):
    """Images and chart, in that order: the chart names an image."""
    for name, digest in release.images.items():
        run("skopeo", "copy", "--all", *(["--dest-tls-verify=false"] if plain_http else []),
            f"oci-archive:{release.out / f'{name}-{release.version}.oci.tar'}", f"docker://{release.repository(name)}:{release.version}")
        if key:
            cosign(key, "sign", *(["--allow-http-registry"] if plain_http else []), f"{release.repository(name)}@{digest}")
    chart = release.out / f"{NAME}-chart-{release.version}.tgz"
    run("helm", "push", *(["--plain-http"] if plain_http else []), chart, f"oci://{release.charts()}")


def arguments():
    parser = argparse.ArgumentParser(prog="./dev release")
    parser.add_argument("out", type=pathlib.Path, help=argparse.SUPPRESS)
    parser.add_argument("programs", type=pathlib.Path, nargs="+", help=argparse.SUPPRESS)
    parser.add_argument("--simulator", type=pathlib.Path, help=argparse.SUPPRESS)
    parser.add_argument("--registry", default="", help="where image and chart will be, such as registry.example.com/gpu (default: the chart names none)")
    parser.add_argument("--downloads", default=DOWNLOADS, help="where the folder of each version will be (default %(default)s)")
    parser.add_argument("--key", help="a private key of cosign, which signs")
    parser.add_argument("--dry-run", action="store_true", help="push nothing, which is the default")
    parser.add_argument("--push", metavar="REGISTRY", help="push image and chart there")
    parser.add_argument("--plain-http", action="store_true", help="the registry has no TLS")
    options = parser.parse_args()
    if options.push and options.dry_run:
        parser.error("--push and --dry-run exclude each other")
    # On loopback somebody tries it.
    if options.push and not options.plain_http and run("git", "-C", PROJECT, "status", "--porcelain").strip():
        parser.error("what is pushed must be committed: the statement of provenance names the commit (git status)")
    if options.push and options.registry not in ("", options.push):
        parser.error(f"the chart would name {options.registry}, but the image be pushed to {options.push}")
    return options


def main():
    options = arguments()
    demand((["cosign"] if options.key else []) + (["skopeo", "helm"] if options.push else []))
    os.umask(0o022)
    out = options.out.resolve() / f"release-{build.chart()['version']}"
    shutil.rmtree(out, ignore_errors=True)
    release = Release(out, options.programs, options.simulator, options.push or options.registry, options.downloads)
    release.make()
    if options.key:
        sign(release, options.key)
    if options.push:
        push(release, options.key, options.plain_http)
    print(f"{'pushed' if options.push else 'not pushed'}; {out.name} has")
    for path, destination in release.destinations:
        print(f"  {str(path.relative_to(out)):<52} {path.stat().st_size / 1e6:6.2f} MB  -> {destination}")
    print(out)


if __name__ == "__main__":
    main()
