#!/usr/bin/env python3
"""Where image/packages.py gets the packages that it pins: the mirrors, and Debian's archive for what they have replaced."""
import contextlib
import hashlib
import importlib.util
import io
import os
import pathlib
import re
import tempfile
import unittest

PROJECT = pathlib.Path(__file__).resolve().parents[2]
# As apt-get says it: it stops at the first version that it does not have.
APT_GET = """#!/bin/sh
echo asked >>"$GSODEV_CACHE/asked"
while [ "$1" != download ]; do shift; done
shift
[ -z "${SILENT:-}" ] || sleep 600
for wanted; do
  case " $MIRRORED " in *" $wanted "*) ;; *) echo "E: Version '${wanted#*=}' for '${wanted%=*}' was not found" >&2; exit 100 ;; esac
done
for wanted; do printf %s "bytes of $wanted" >"${wanted%=*}_${wanted#*=}_all.deb"; done
"""


def pinned(name, version):
    return f"{name} {version} all {hashlib.sha256(f'bytes of {name}={version}'.encode()).hexdigest()} pool/{'updates/' if name == 'two' else ''}main/{name}_{version}_all.deb\n"


class Packages(unittest.TestCase):
    def setUp(self):
        scratch = tempfile.TemporaryDirectory()
        self.addCleanup(scratch.cleanup)
        self.folder = pathlib.Path(scratch.name)
        for name in ("bin", "apt", "cache", "snapshot"):
            (self.folder / name).mkdir()
        (self.folder / "bin/apt-get").write_text(APT_GET, encoding="utf-8")
        (self.folder / "bin/apt-get").chmod(0o755)
        (self.folder / "lock").write_text("# snapshot 20260102T030405Z: then.\n" + pinned("one", "1.0") + pinned("two", "2.0"), encoding="utf-8")
        before = dict(os.environ)
        self.addCleanup(lambda: (os.environ.clear(), os.environ.update(before)))
        os.environ.update(PATH=f"{self.folder}/bin:{os.environ['PATH']}", GSODEV_CACHE=f"{self.folder}/cache", GSODEV_IMAGE_LOCK=f"{self.folder}/lock",
                          GSO_DEBIAN_SNAPSHOT=f"file://{self.folder}/snapshot", MIRRORED="one=1.0 two=2.0")
        spec = importlib.util.spec_from_file_location("packages", PROJECT / "image/packages.py")
        self.packages = importlib.util.module_from_spec(spec)
        spec.loader.exec_module(self.packages)

    def publish(self, path, data):
        file = self.folder / "snapshot" / path
        file.parent.mkdir(parents=True)
        file.write_text(data, encoding="utf-8")

    def fetch(self):
        return {name: file.read_text(encoding="utf-8") for name, file in self.packages.fetch("all", self.folder / "apt").items()}

    def refusal(self):
        with self.assertRaises(SystemExit) as stopped:
            self.fetch()
        return str(stopped.exception)

    def test_the_mirrors_have_them_all(self):
        self.assertEqual(self.fetch(), {"one": "bytes of one=1.0", "two": "bytes of two=2.0"})

    def test_what_was_fetched_once_is_not_asked_for_again(self):
        first = self.fetch()
        os.environ["MIRRORED"] = ""
        self.assertEqual(self.fetch(), first)

    def test_a_package_that_the_mirrors_replaced_comes_from_the_archive_of_that_time(self):
        os.environ["MIRRORED"] = "one=1.0"
        self.publish("debian-security/20260102T030405Z/pool/updates/main/two_2.0_all.deb", "bytes of two=2.0")
        self.assertEqual(self.fetch(), {"one": "bytes of one=1.0", "two": "bytes of two=2.0"})

    def name_in_apt(self, address):
        """As an apt that knows an archive does, or none."""
        del os.environ["GSO_DEBIAN_SNAPSHOT"]
        program = self.folder / "bin/apt-config"
        answer = f"""echo "$2='{address}/$archive/@SNAPSHOTID@/'\"""" if address else ""
        program.write_text(f"#!/bin/sh\ncase $3 in *Security) archive=debian-security ;; *) archive=debian ;; esac\n{answer}\n", encoding="utf-8")
        program.chmod(0o755)

    def test_or_from_the_archive_that_apt_knows(self):
        os.environ["MIRRORED"] = ""
        self.publish("debian/20260102T030405Z/pool/main/one_1.0_all.deb", "bytes of one=1.0")
        self.publish("debian-security/20260102T030405Z/pool/updates/main/two_2.0_all.deb", "bytes of two=2.0")
        self.name_in_apt(f"file://{self.folder}/snapshot")
        self.assertEqual(self.fetch(), {"one": "bytes of one=1.0", "two": "bytes of two=2.0"})

    def test_where_no_archive_is_named_it_says_what_to_configure(self):
        os.environ["MIRRORED"] = "two=2.0"
        self.name_in_apt("")
        message = self.refusal()
        for wanted in ("E: Version '1.0' for 'one' was not found", "GSO_DEBIAN_SNAPSHOT", "docs/releasing.md", "./dev image --lock"):
            self.assertIn(wanted, message)

    def test_other_bytes_are_refused_wherever_they_come_from(self):
        os.environ["MIRRORED"] = "two=2.0"
        self.publish("debian/20260102T030405Z/pool/main/one_1.0_all.deb", "other bytes")
        self.assertIn("one 1.0 is not what packages.lock pins", self.refusal())
        self.assertEqual([file for file in (self.folder / "cache/image-packages").iterdir() if file.read_text(encoding="utf-8") == "other bytes"], [])

    def test_a_package_that_is_nowhere_is_said_with_what_apt_said_and_what_to_do(self):
        os.environ["MIRRORED"] = "two=2.0"
        message = self.refusal()
        for wanted in ("one 1.0", "E: Version '1.0' for 'one' was not found", "/debian/20260102T030405Z/pool/main/one_1.0_all.deb", "./dev image --lock"):
            self.assertIn(wanted, message)

    def test_a_mirror_that_does_not_answer_is_left_after_a_while_and_asked_once(self):
        os.environ["SILENT"] = "yes"
        self.packages.PATIENCE = 1
        message = self.refusal()
        self.assertIn("apt-get did not end within 1 s", message)
        self.assertEqual((self.folder / "cache/asked").read_text(encoding="utf-8"), "asked\n")

    def test_what_is_being_fetched_is_said(self):
        os.environ["MIRRORED"] = "one=1.0"
        self.publish("debian-security/20260102T030405Z/pool/updates/main/two_2.0_all.deb", "bytes of two=2.0")
        said = io.StringIO()
        with contextlib.redirect_stderr(said):
            self.fetch()
        for line in ("fetching 2 packages with apt-get", "fetching one=1.0 with apt-get", "/pool/updates/main/two_2.0_all.deb"):
            self.assertIn(line, said.getvalue())

    def test_a_library_inside_the_program_that_is_older_than_the_mirrors_is_said_with_what_to_do(self):
        apt_cache = self.folder / "bin/apt-cache"
        apt_cache.write_text("#!/bin/sh\n[ $2 = libssl-dev ] && echo '  Candidate: 3.0.22-1~deb12u2' || echo '  Candidate: (none)'\n", encoding="utf-8")
        apt_cache.chmod(0o755)
        inside = self.packages.libraries_of("gpu-sharing-operator 0.1.0\ncurl 8.14.1-2\nopenssl 3.0.19-1~deb12u2\nzlib 1:1.2.13\n")
        self.assertEqual(self.packages.outdated(inside), ["the program contains openssl 3.0.19-1~deb12u2, but Debian has 3.0.22-1~deb12u2. "
                                                       f"{self.packages.PIN} and build the program again."])
        self.assertEqual(self.packages.outdated([["openssl", "3.0.22-1~deb12u2"]]), [])

    def test_a_package_that_debian_only_built_again_is_no_newer_library(self):
        apt_cache = self.folder / "bin/apt-cache"
        apt_cache.write_text("#!/bin/sh\necho '  Candidate: 0.7.0+dfsg-8+b1'\n[ $1 = policy ] || echo 'Source: yaml-cpp (0.7.0+dfsg-8)'\n", encoding="utf-8")
        apt_cache.chmod(0o755)
        self.assertEqual(self.packages.outdated([["yaml-cpp", "0.7.0+dfsg-8"]]), [])
        self.assertEqual(len(self.packages.outdated([["yaml-cpp", "0.7.0+dfsg-7"]])), 1)

    def test_whatever_the_build_links_is_compared_with_debian(self):
        linked = (PROJECT / "cmake/Dependencies.cmake").read_text(encoding="utf-8") + (PROJECT / "cmake/libraries/build.sh").read_text(encoding="utf-8")
        names = set(re.findall(r"\b([a-z0-9.-]+)=[a-z0-9+.-]+-dev\b", linked)) | {name for name in re.findall(r"(?m)^  (\S+) \S+ pool/", linked)}
        names -= {"curl"}  # Not Debian 12's version.
        self.assertGreaterEqual(names, {"openssl", "spdlog", "nghttp2", "libyaml", "zlib"})
        self.assertEqual(names - set(self.packages.LINKED), set())
        self.assertEqual(self.packages.BUILT, {name for name in re.findall(r"(?m)^  (\S+) \S+ pool/", linked)} - {"curl"})

    def test_the_lock_of_the_project_names_a_path_for_each_package(self):
        del os.environ["GSODEV_IMAGE_LOCK"]
        for line in (PROJECT / "image/packages.lock").read_text(encoding="utf-8").splitlines():
            if not line.startswith("#"):
                self.assertRegex(line, r"^\S+ \S+ (amd64|arm64|all) [0-9a-f]{64} pool/\S+\.deb$")


if __name__ == "__main__":
    unittest.main()
