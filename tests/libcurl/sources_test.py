#!/usr/bin/env python3
"""Where cmake/libcurl/build.sh gets the sources of libcurl: the mirrors that apt uses, the archive that this machine names for
what they have replaced, or a folder. Its own sources here are one file and one patch, and nothing is compiled."""
import hashlib
import io
import os
import pathlib
import re
import subprocess
import tarfile
import tempfile
import unittest

PROJECT = pathlib.Path(__file__).resolve().parents[2]
SCRIPT = (PROJECT / "cmake/libcurl/build.sh").read_text(encoding="utf-8")
ORIG, PATCHES = "curl_8.14.1.orig.tar.gz", "curl_8.14.1-2+deb13u5.debian.tar.xz"
POOL = "pool/main/c/curl"
PROGRAMS = {
    "apt-get": 'echo "file:$FOLDER/mirror"',
    # As of a Debian that has no archive built in.
    "apt-config": '[ -z "${APT_ARCHIVE:-}" ] || echo "$2=\'$APT_ARCHIVE\'"',
    # Its "library" is the source.
    "cmake": 'for word; do case $word in -DCMAKE_INSTALL_PREFIX=*) out=${word#*=}; mkdir -p "$out/include" "$out/lib"; cp source "$out/lib/libcurl.a" ;; esac; done',
}
PATCHED, PUBLISHED = ("8.14.1-2+deb13u5", "as published, and patched"), ("8.14.1 unpatched", "as published")
PATCH = "--- a/source\n+++ b/source\n@@ -1 +1 @@\n-as published\n+as published, and patched\n"


def tar(compression, files):
    out = io.BytesIO()
    with tarfile.open(fileobj=out, mode=f"w:{compression}") as archive:
        for name, text in files.items():
            info = tarfile.TarInfo(name)
            info.size = len(text)
            archive.addfile(info, io.BytesIO(text.encode()))
    return out.getvalue()


class Sources(unittest.TestCase):
    def setUp(self):
        scratch = tempfile.TemporaryDirectory()
        self.addCleanup(scratch.cleanup)
        self.folder = pathlib.Path(scratch.name)
        self.files = {ORIG: tar("gz", {"curl-8.14.1/source": "as published\n", "curl-8.14.1/COPYING": "a licence\n"}),
                      PATCHES: tar("xz", {"debian/patches/series": "one.patch\n", "debian/patches/one.patch": PATCH})}
        script = SCRIPT
        for variable, name in (("orig_sha256", ORIG), ("patches_sha256", PATCHES)):
            script = re.sub(f"(?m)^{variable}=.*$", f"{variable}={hashlib.sha256(self.files[name]).hexdigest()}", script)
        self.script = self.folder / "build.sh"
        self.script.write_text(script, encoding="utf-8")
        (self.folder / "bin").mkdir()
        for name, body in PROGRAMS.items():
            (self.folder / "bin" / name).write_text(f"#!/bin/sh\n{body}\n", encoding="utf-8")
            (self.folder / "bin" / name).chmod(0o755)
        self.environment = {"PATH": f"{self.folder}/bin:{os.environ['PATH']}", "FOLDER": str(self.folder), "GSODEV_CACHE": f"{self.folder}/cache"}

    def publish(self, where, *names):
        folder = self.folder / where
        folder.mkdir(parents=True, exist_ok=True)
        for name in names:
            (folder / name).write_bytes(self.files[name])

    def build(self, **more):
        return subprocess.run(["bash", self.script], env=self.environment | more, capture_output=True, text=True, check=False)

    def built(self, **more):
        done = self.build(**more)
        self.assertEqual(done.returncode, 0, done.stderr)
        prefix = pathlib.Path(done.stdout.strip())
        return (prefix / "version").read_text(encoding="utf-8").strip(), (prefix / "lib/libcurl.a").read_text(encoding="utf-8").strip()

    def test_the_mirrors_have_both_and_what_is_built_is_not_fetched_again(self):
        self.publish(f"mirror/{POOL}", ORIG, PATCHES)
        self.assertEqual(self.built(), PATCHED)
        (self.folder / "bin/apt-get").unlink()
        self.assertEqual(self.built(), PATCHED)

    def test_another_comment_is_no_reason_to_build_it_again_and_another_option_is(self):
        self.publish(f"mirror/{POOL}", ORIG, PATCHES)
        first, text = self.build().stdout, self.script.read_text(encoding="utf-8")
        self.script.write_text(text.replace("set -euo", "# Another comment.\nset -euo"), encoding="utf-8")
        self.assertEqual(self.build().stdout, first)
        self.script.write_text(text.replace("-DENABLE_UNIX_SOCKETS=OFF", "-DENABLE_UNIX_SOCKETS=ON"), encoding="utf-8")
        self.assertNotEqual(self.build().stdout, first)

    def test_patches_that_the_mirrors_replaced_come_from_the_archive_that_is_named_or_that_apt_knows(self):
        self.publish(f"mirror/{POOL}", ORIG)
        self.publish(f"archive/debian/20261125T130000Z/{POOL}", PATCHES)
        self.assertEqual(self.built(GSO_DEBIAN_SNAPSHOT=f"file:{self.folder}/archive"), PATCHED)
        self.environment["GSODEV_CACHE"] += "2"
        self.assertEqual(self.built(APT_ARCHIVE=f"file:{self.folder}/archive/debian/@SNAPSHOTID@/"), PATCHED)

    def test_without_them_it_is_built_as_published_and_says_what_to_configure(self):
        self.publish(f"mirror/{POOL}", ORIG)
        done = self.build()
        self.assertEqual(self.built(), PUBLISHED)
        for word in ("GSO_DEBIAN_SNAPSHOT", "GSO_LIBCURL_SOURCES", PATCHES, "docs/releasing.md"):
            self.assertIn(word, done.stderr)

    def test_without_the_sources_nothing_is_built_and_it_says_where_to_put_them(self):
        done = self.build()
        self.assertEqual((done.returncode, done.stdout), (1, ""))
        for word in ("GSO_LIBCURL_SOURCES", ORIG, PATCHES):
            self.assertIn(word, done.stderr)

    def test_a_folder_is_taken_instead_of_the_mirrors(self):
        self.publish("sources", ORIG, PATCHES)
        self.assertEqual(self.built(GSO_LIBCURL_SOURCES=f"{self.folder}/sources"), PATCHED)

    def test_other_bytes_are_refused_wherever_they_come_from(self):
        self.files[PATCHES] = b"other bytes"
        self.publish(f"mirror/{POOL}", ORIG, PATCHES)
        self.assertEqual(self.built(), PUBLISHED)
        self.publish("sources", ORIG, PATCHES)
        self.environment["GSODEV_CACHE"] += "2"
        done = self.build(GSO_LIBCURL_SOURCES=f"{self.folder}/sources")
        self.assertEqual(done.returncode, 1)
        self.assertIn("is not the file that is pinned", done.stderr)


class NoHost(unittest.TestCase):
    def test_no_script_of_the_build_names_a_host_to_fetch_from(self):
        for name in ("cmake/libcurl/build.sh", "image/build.py", "Dockerfile", "dev"):
            text = (PROJECT / name).read_text(encoding="utf-8")
            self.assertEqual(re.findall(r"\bhttps?://(?!gpusharing\.dev/sbom)[^\s\"'<>]*", text), [], name)


if __name__ == "__main__":
    unittest.main()
