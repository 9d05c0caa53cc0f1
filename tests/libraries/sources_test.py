#!/usr/bin/env python3
"""Where cmake/libraries/build.sh gets the sources of OpenSSL, libcurl and what a release links: the mirrors that apt uses, the archive
that this machine names for what they have replaced, or a folder. The sources here are one file and one patch each, and nothing is compiled."""
import hashlib
import io
import os
import pathlib
import re
import shutil
import subprocess
import tarfile
import tempfile
import unittest

PROJECT = pathlib.Path(__file__).resolve().parents[2]
SCRIPT = (PROJECT / "cmake/libraries/build.sh").read_text(encoding="utf-8")
MAIN, SECURITY = "pool/main", "pool/updates/main"
CURL, OPENSSL, OLDER = ("curl", "8.14.1-2", MAIN), ("openssl", "3.0.2-2", SECURITY), ("openssl", "3.0.1-1", MAIN)
ALL = (CURL, OPENSSL, OLDER)
RELEASE = (("fmtlib", "9.1-1", MAIN), ("spdlog", "1:1.10-1", MAIN), ("simdjson", "3.0-1", MAIN), ("howardhinnant-date", "3.0-1", MAIN))
# Where each has its sources, headers and licence.
TREE = ("src/format.cc", "src/os.cc", *(f"src/{name}.cpp" for name in ("spdlog", "async", "cfg", "color_sinks", "file_sinks", "stdout_sinks", "tz")), "singleheader/simdjson.cpp",
        "singleheader/simdjson.h", *(f"include/{name}/{name}.h" for name in ("fmt", "spdlog", "date")), "LICENSE", "LICENSE.rst")
PROGRAMS = {
    "apt-get": 'echo "file:$FOLDER/mirror"',
    # As of a Debian that has no archive built in.
    "apt-config": '[ -z "${APT_ARCHIVE:-}" ] || echo "$2=\'$APT_ARCHIVE\'"',
    # A "library" is its source.
    "cmake": 'for word; do case $word in -DCMAKE_INSTALL_PREFIX=*) cp source "${word#*=}/lib/libcurl.a" ;; esac; done',
    "perl": "",
    # An archive of the release, of its source, too.
    "g++": "touch object.o",
    "ar": 'cp source "$2"',
    "make": "mkdir -p include/openssl && touch include/openssl/ssl.h && cp source libssl.a && cp source libcrypto.a",
}
PATCHED, PUBLISHED = "as published, and patched", "as published"
NEWEST = {"curl": ("8.14.1-2", PATCHED), "openssl": ("3.0.2-2", PATCHED)}
PATCH = "--- a/source\n+++ b/source\n@@ -1 +1 @@\n-as published\n+as published, and patched\n"


def tar(compression, files):
    out = io.BytesIO()
    with tarfile.open(fileobj=out, mode=f"w:{compression}") as archive:
        for name, text in files.items():
            info = tarfile.TarInfo(name)
            info.size = len(text)
            archive.addfile(info, io.BytesIO(text.encode()))
    return out.getvalue()


def upstream(package):
    return package[1].split(":")[-1].split("-")[0]


def orig(package):
    return f"{package[0]}_{upstream(package)}.orig.tar.{'xz' if package[0] in ('spdlog', 'howardhinnant-date') else 'gz'}"


def patches(package):
    return f"{package[0]}_{package[1].split(':')[-1]}.debian.tar.xz"


class Sources(unittest.TestCase):
    def setUp(self):
        scratch = tempfile.TemporaryDirectory()
        self.addCleanup(scratch.cleanup)
        self.folder = pathlib.Path(scratch.name)
        self.files, table = {}, ["sources=("]
        for package in ALL + RELEASE:
            root = f"{package[0]}-{upstream(package)}"
            published = {f"{root}/{name}": f"{PUBLISHED}\n" for name in ("source", "COPYING", "LICENSE.txt", *(TREE if package in RELEASE else ()))}
            if package[0] == "howardhinnant-date":
                published[f"{root}/src/tz.cpp"] = "    std::call_once(*adjusted_, [this]() {const_cast<time_zone*>(this)->init_impl();});\n"
            # The patch names in `series` have comments, as Debian's.
            patched = {"debian/patches/series": "# A comment.\none.patch\n", "debian/patches/one.patch": PATCH}
            if package[0] == "simdjson":  # Debian has no patch of it.
                patched = {"debian/control": ""}
            self.files |= {orig(package): tar(orig(package)[-2:], published), patches(package): tar("xz", patched)}
            table += [*package, *(hashlib.sha256(self.files[name(package)]).hexdigest() for name in (orig, patches))]
        self.script = self.folder / "build.sh"
        self.script.write_text(re.sub(r"(?ms)^sources=\(.*?^\)$", "\n".join([*table, ")"]), SCRIPT), encoding="utf-8")
        (self.folder / "bin").mkdir()
        for name, body in PROGRAMS.items():
            (self.folder / "bin" / name).write_text(f"#!/bin/sh\n{body}\n", encoding="utf-8")
            (self.folder / "bin" / name).chmod(0o755)
        self.environment = {"PATH": f"{self.folder}/bin:{os.environ['PATH']}", "FOLDER": str(self.folder), "GSODEV_CACHE": f"{self.folder}/cache"}

    def publish(self, where, *packages, files=(orig, patches)):
        for package in packages:
            for name in (file(package) for file in files):
                path = self.folder / where / ("" if where == "sources" else package[2]) / name
                path.parent.mkdir(parents=True, exist_ok=True)
                path.write_bytes(self.files[name])

    def build(self, *words, **more):
        return subprocess.run(["bash", self.script, *words], env=self.environment | more, capture_output=True, text=True, check=False)

    def built(self, **more):
        """{library: (version, what it was made of)}"""
        done = self.build(**more)
        self.assertEqual(done.returncode, 0, done.stderr)
        prefix = pathlib.Path(done.stdout.strip())
        versions = dict(line.split("=") for line in (prefix / "versions").read_text(encoding="utf-8").splitlines())
        self.assertEqual(sorted(path.name for path in (prefix / "licences").iterdir()), ["curl", "openssl"])
        made_of = {"curl": "libcurl.a", "openssl": "libssl.a"}
        return {name: (version, (prefix / "lib" / made_of[name]).read_text(encoding="utf-8").strip()) for name, version in versions.items()}

    def test_the_mirrors_have_both_and_what_is_built_is_not_fetched_again(self):
        self.publish("mirror", *ALL)
        self.assertEqual(self.built(), NEWEST)
        (self.folder / "bin/apt-get").unlink()
        self.assertEqual(self.built(), NEWEST)

    def test_what_a_release_links_is_built_apart_with_its_licences_and_epochs(self):
        self.publish("mirror", *RELEASE)
        done = self.build("release")
        self.assertEqual(done.returncode, 0, done.stderr)
        prefix = pathlib.Path(done.stdout.strip())
        self.assertEqual((prefix / "versions").read_text(encoding="utf-8").split(), [f"{name}={version}" for name, version, _ in RELEASE])
        names = {folder: sorted(path.name for path in (prefix / folder).iterdir()) for folder in ("include", "lib", "licences")}
        self.assertEqual(names, {"include": ["date", "fmt", "simdjson.h", "spdlog"], "lib": ["libdate-tz.a", "libfmt.a", "libsimdjson.a", "libspdlog.a"],
                                 "licences": sorted(name for name, _, _ in RELEASE)})
        made_of = {path.name: path.read_text(encoding="utf-8").strip() for path in (prefix / "lib").iterdir()}
        self.assertEqual(made_of, dict.fromkeys(names["lib"], PATCHED) | {"libsimdjson.a": PUBLISHED})
        self.publish("mirror", *ALL)
        self.assertNotEqual(self.build().stdout, done.stdout)
        self.assertEqual(self.build("nothing").returncode, 1)

    def test_another_comment_is_no_reason_to_build_it_again_and_another_option_is(self):
        self.publish("mirror", *ALL)
        first, text = self.build().stdout, self.script.read_text(encoding="utf-8")
        self.script.write_text(text.replace("set -euo", "# Another comment.\nset -euo"), encoding="utf-8")
        self.assertEqual(self.build().stdout, first)
        for option, other in (("-DENABLE_UNIX_SOCKETS=OFF", "-DENABLE_UNIX_SOCKETS=ON"), (" idea ", " ")):
            self.script.write_text(text.replace(option, other), encoding="utf-8")
            self.assertNotEqual(self.build().stdout, first)

    def test_what_the_mirrors_replaced_comes_from_the_archive_that_is_named_or_that_apt_knows(self):
        self.publish("mirror", CURL, OLDER, files=(orig,))
        self.publish("archive/debian/20261125T130000Z", CURL, files=(patches,))
        self.publish("archive/debian-security/20261125T130000Z", OPENSSL)
        self.assertEqual(self.built(GSO_DEBIAN_SNAPSHOT=f"file:{self.folder}/archive"), NEWEST)
        self.environment["GSODEV_CACHE"] += "2"
        (self.folder / "bin/apt-config").write_text(f"""#!/bin/sh
case $3 in
  Acquire::Snapshots::URI::Origin::Debian) echo "$2='file:{self.folder}/archive/debian/@SNAPSHOTID@/'" ;;
  Acquire::Snapshots::URI::Override::Label::Debian-Security) echo "$2='file:{self.folder}/archive/debian-security/@SNAPSHOTID@/'" ;;
esac
""", encoding="utf-8")
        self.assertEqual(self.built(), NEWEST)

    def test_what_nobody_has_is_built_as_the_next_older_one_that_the_mirrors_have_with_its_patches(self):
        self.publish("mirror", CURL, OLDER)
        self.assertEqual(self.built(), NEWEST | {"openssl": ("3.0.1-1", PATCHED)})
        self.publish("mirror", OPENSSL, files=(orig,))
        self.environment["GSODEV_CACHE"] += "2"
        self.assertEqual(self.built(), NEWEST | {"openssl": ("3.0.1-1", PATCHED)})

    def test_without_patches_it_is_built_as_published_and_says_what_to_configure(self):
        self.publish("mirror", *ALL, files=(orig,))
        done = self.build()
        self.assertEqual(self.built(), {"curl": ("8.14.1 unpatched", PUBLISHED), "openssl": ("3.0.2 unpatched", PUBLISHED)})
        for word in ("GSO_DEBIAN_SNAPSHOT", "GSO_LIBRARY_SOURCES", patches(CURL), patches(OPENSSL), "docs/releasing.md"):
            self.assertIn(word, done.stderr)

    def test_without_the_sources_nothing_is_built_and_it_says_where_to_put_them(self):
        for missing, there in ((OPENSSL, CURL), (CURL, OPENSSL)):
            self.publish("mirror", there)
            done = self.build()
            self.assertEqual((done.returncode, done.stdout), (1, ""))
            for word in ("GSO_LIBRARY_SOURCES", orig(missing), patches(missing)):
                self.assertIn(word, done.stderr)
            shutil.rmtree(self.folder / "mirror")

    def test_a_folder_is_taken_instead_of_the_mirrors(self):
        self.publish("sources", CURL, OPENSSL)
        self.assertEqual(self.built(GSO_LIBRARY_SOURCES=f"{self.folder}/sources"), NEWEST)

    def test_other_bytes_are_refused_wherever_they_come_from(self):
        self.files[patches(CURL)] = b"other bytes"
        self.publish("mirror", *ALL)
        self.assertEqual(self.built(), NEWEST | {"curl": ("8.14.1 unpatched", PUBLISHED)})
        self.publish("sources", *ALL)
        self.environment["GSODEV_CACHE"] += "2"
        done = self.build(GSO_LIBRARY_SOURCES=f"{self.folder}/sources")
        self.assertEqual(done.returncode, 1)
        self.assertIn("is not the file that is pinned", done.stderr)


class NoHost(unittest.TestCase):
    def test_no_script_of_the_build_names_a_host_to_fetch_from(self):
        for name in ("cmake/libraries/build.sh", "image/build.py", "Dockerfile", "dev"):
            text = (PROJECT / name).read_text(encoding="utf-8")
            self.assertEqual(re.findall(r"\bhttps?://(?!gpusharing\.dev/sbom)[^\s\"'<>]*", text), [], name)


if __name__ == "__main__":
    unittest.main()
