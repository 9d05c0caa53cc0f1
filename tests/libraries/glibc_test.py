#!/usr/bin/env python3
"""glibc_test.py BINARY (of a release build): a release needs nothing but glibc, none newer than 2.34, and runs on other systems.

It reads what the program asks the dynamic linker for, and runs it in the root file systems of Debian 12 and 13, made by
mmdebstrap of the mirrors that apt uses here, and in one of Ubuntu 22.04's glibc alone, a package that is pinned by SHA-256 and
comes from $GSODEV_UBUNTU_MIRROR (Ubuntu's own). All are kept below ${GSODEV_CACHE:-~/.cache/gpu-sharing-operator}/roots. One that
cannot be had is skipped, with the reason. Must be root. The last line is "N passed, N failed, N skipped".
"""
import contextlib
import hashlib
import os
import pathlib
import platform
import re
import shutil
import subprocess
import sys
import tempfile

PROJECT = pathlib.Path(__file__).resolve().parents[2]
CACHE = pathlib.Path(os.environ.get("GSODEV_CACHE") or pathlib.Path(os.environ.get("XDG_CACHE_HOME") or pathlib.Path.home() / ".cache") / "gpu-sharing-operator") / "roots"
NEWEST = (2, 34)  # RHEL 9's.
NEEDED = re.compile(r"lib[cm]\.so\.6|ld-linux-[a-z0-9-]+\.so\.[0-9]")
UBUNTU = os.environ.get("GSODEV_UBUNTU_MIRROR", "http://archive.ubuntu.com/ubuntu")
# Of the release itself, which stays on the mirrors when updates come.
JAMMY = ("pool/main/g/glibc/libc6_2.35-0ubuntu3_amd64.deb", "ea9a27e0ebdd0cfc9c750d94f8074f3a35d1f97dcc77ae04c370fb498a6b6db2")
# What an exception must not leave a callback of: cmake/libraries/find_object.cc says why.
TIDIES = re.compile(r"\b(?:call_once|pthread_once|dl_iterate_phdr|pthread_exit|pthread_cancel|std::(?:promise|packaged_task|async))\b")
FILES = {
    "bad.yaml": "version: v1\nsharing:\n  mps:\n    resources:\n    - {name: nvidia.com/gpu, replicas: 1}\n",
    "broken.yaml": "a: [1\nb: {",
    "window.yaml": "apiVersion: gpusharing.dev/v1alpha1\nkind: SharingPolicy\nmetadata: {name: a}\nspec:\n  nodeSelector: {}\n  rollout:\n"
                   "    maintenanceWindows:\n    - {cron: '0 2 * * *', duration: 1h, timeZone: ZONE}\n",
}


class Skipped(Exception):
    """A root file system cannot be had; the text says why."""


def run(*command, **more):
    return subprocess.run(command, capture_output=True, text=True, check=False, stdin=subprocess.DEVNULL, **more)


def expect(condition, what):
    if not condition:
        raise AssertionError(what)


# --- What the program asks for.

def asks_for_nothing_but_glibc(binary):
    needed = re.findall(r"\(NEEDED\).*\[(.*)\]", run("readelf", "--dynamic", "--wide", binary).stdout)
    expect(needed, "readelf names no library")
    others = [name for name in needed if not NEEDED.fullmatch(name)]
    expect(not others, f"it loads {', '.join(others)}")


def asks_for_no_newer_glibc(binary):
    said = run("readelf", "--version-info", "--wide", binary).stdout
    versions = set(re.findall(r"Name: (GLIBC_\S+)", said))
    expect(versions, "readelf names no version")
    newer = {name for name in versions if not re.fullmatch(r"GLIBC_[0-9.]+", name) or tuple(map(int, name[6:].split(".")))[:2] > NEWEST}
    symbols = [line.split()[-1] for line in run("objdump", "--dynamic-syms", binary).stdout.splitlines() if any(f"({name})" in line for name in newer)]
    expect(not newer, f"it needs {', '.join(sorted(newer))}, for {', '.join(symbols) or 'the way that it was linked'}")


def keeps_its_unwinder_to_itself(binary):
    expect("_dl_find_object" not in run("nm", "--dynamic", binary).stdout, "_dl_find_object is in its dynamic symbols: libraries that glibc loads would use it")


def throws_through_no_function_that_tidies_up(_binary):
    files = [file for room in ("controller", "k8sclient", "reconcilers") for file in (PROJECT / room).rglob("*") if file.suffix in (".cc", ".h")]
    found = [f"{file.relative_to(PROJECT)}: {use[0]}" for file in files if (use := TIDIES.search(file.read_text(encoding="utf-8")))]
    expect(not found, "; ".join(found))


# --- Where it runs.

def part_of(name):
    """A folder that becomes `name` when it is complete."""
    CACHE.mkdir(parents=True, exist_ok=True)
    return pathlib.Path(tempfile.mkdtemp(prefix=f"{name}.part-", dir=CACHE))


def debian(release):
    root = CACHE / release
    if root.exists():
        return root
    if not shutil.which("mmdebstrap"):
        raise Skipped("no mmdebstrap; ./dev test glibc installs it")
    sites = re.findall(r"^(\S+) bookworm main$", run("apt-get", "indextargets", "--format", "$(SITE) $(RELEASE) $(COMPONENT)", "Created-By: Packages", "Origin: Debian").stdout, re.M)
    if not sites:
        raise Skipped("apt has no lists of Debian; apt-get update fetches them")
    part = part_of(release)
    made = run("mmdebstrap", "--variant=minbase", "--format=directory", release, part, f"deb {sites[0]} {release} main")
    if made.returncode:
        shutil.rmtree(part, ignore_errors=True)
        raise Skipped(f"mmdebstrap {release}: {made.stderr.strip().splitlines()[-1]}")
    part.rename(root)
    return root


def jammy(_release):
    path, digest = JAMMY
    root = CACHE / f"jammy-{digest[:16]}"
    if root.exists():
        return root
    if platform.machine() != "x86_64":
        raise Skipped(f"the package that is pinned is not for {platform.machine()}")
    part = part_of("jammy")
    package = part / "package.deb"
    try:
        got = run("/usr/lib/apt/apt-helper", "-o", "Acquire::http::Timeout=60", "-o", "Acquire::https::Timeout=60", "-o", "APT::Sandbox::User=root",
                  "download-file", f"{UBUNTU}/{path}", package, f"SHA256:{digest}")
        if got.returncode:
            raise Skipped(f"{UBUNTU}/{path}: {' '.join(got.stderr.split())}")
        expect(hashlib.sha256(package.read_bytes()).hexdigest() == digest, f"{UBUNTU}/{path} is not the package that is pinned")
        subprocess.run(["dpkg-deb", "--extract", package, part / "root"], check=True)
        (part / "root/tmp").mkdir()
        (part / "root").rename(root)
    finally:
        shutil.rmtree(part)
    return root


@contextlib.contextmanager
def placed(binary, root):
    """A folder of the root file system with the program and the files, as that system sees it."""
    folder = pathlib.Path(tempfile.mkdtemp(prefix="gso-", dir=root / "tmp"))
    try:
        folder.chmod(0o755)
        subprocess.run(["strip", "-o", folder / "gpu-sharing-operator", binary], check=True)
        for name, text in FILES.items():
            (folder / name).write_text(text, encoding="utf-8")
        # Time zones: one, and a file that is cut off, which is an exception in the library that reads it.
        (folder / "zoneinfo/Etc").mkdir(parents=True)
        shutil.copy("/usr/share/zoneinfo/UTC", folder / "zoneinfo/UTC")
        (folder / "zoneinfo/Etc/Cut").write_bytes((folder / "zoneinfo/UTC").read_bytes()[:60])
        yield folder
    finally:
        shutil.rmtree(folder)


def inside(root, folder, *arguments, zones=None):
    """What the program answers in the root file system, as nobody in particular, with these time zones."""
    at = root / "usr/share/zoneinfo"
    at.mkdir(parents=True, exist_ok=True)
    hide = 'mount -t tmpfs none "$1"' if zones is None else 'mount --bind "$2" "$1"'
    place = pathlib.Path("/") / folder.relative_to(root)
    done = run("unshare", "--mount", "sh", "-c", hide + '; cd "$3"; shift 3; exec "$@"', "sh", at, zones or "-", root,
               "env", "--ignore-environment", "HOME=/", "/usr/sbin/chroot", "--userspec=65532:65532", root, place / "gpu-sharing-operator",
               *(str(place / word) if word in FILES else word for word in arguments))
    return done.returncode, done.stdout + done.stderr


def expect_answer(answer, status, *texts):
    expect(answer[0] == status and all(text in answer[1] for text in texts), f"{status} and {texts} expected, but it ended with {answer[0]} and said: {answer[1]}")


def version(root, folder):
    expect_answer(inside(root, folder, "version", "--libraries"), 0, "gpu-sharing-operator ", "libyaml ", "simdjson ")


def lint(root, folder):
    expect_answer(inside(root, folder, "lint", "bad.yaml"), 1, "ReplicasBelowMinimum")
    expect_answer(inside(root, folder, "lint", "broken.yaml"), 1, "SyntaxError")


def an_exception_is_caught(root, folder):
    """yaml-cpp throws."""
    expect_answer(inside(root, folder, "status", "--kubeconfig", "broken.yaml"), 2, "broken.yaml, line 2", "end of sequence flow not found")


def time_zones(root, folder):
    file = folder / "window.yaml"
    for zone, zones, status, texts in (
            ("UTC", folder / "zoneinfo", 0, ["0 with errors"]),
            ("Mars/Olympus", folder / "zoneinfo", 1, ['time zone "Mars/Olympus" is not in the tz database', "Europe/Berlin"]),
            ("Etc/Cut", folder / "zoneinfo", 1, ['time zone "Etc/Cut"']),
            ("Europe/Berlin", None, 1, ['time zone "Europe/Berlin" cannot be looked up', "/usr/share/zoneinfo", "install the package tzdata"])):
        file.write_text(FILES["window.yaml"].replace("ZONE", zone), encoding="utf-8")
        expect_answer(inside(root, folder, "lint", "window.yaml", zones=zones), status, *texts)


def play(tests, part=""):
    """Calls each, (function, arguments…), prints a line with the function's name, and returns how many (passed, failed)."""
    passed = failed = 0
    for one, *given in tests:
        title = part + one.__name__.replace("_", " ")
        try:
            one(*given)
            passed += 1
            print(f"ok {title}", flush=True)
        except AssertionError as problem:
            failed += 1
            print(f"FAILED {title}: {problem}", flush=True)
    return passed, failed


def main():
    binary = pathlib.Path(sys.argv[1]).resolve()
    counts = {"passed": 0, "failed": 0, "skipped": 0}

    def part(name, tries, *given):
        report(name, *play([(one, *given) for one in tries], f"{name}: "), 0)

    def report(name, passed, failed, skipped):
        for key, count in (("passed", passed), ("failed", failed), ("skipped", skipped)):
            counts[key] += count
        print(f"  {name:<28} {passed} passed {failed} failed {skipped} skipped", flush=True)

    part("symbols", (asks_for_nothing_but_glibc, asks_for_no_newer_glibc, keeps_its_unwinder_to_itself, throws_through_no_function_that_tidies_up), binary)
    for release, made in (("bookworm", debian), ("trixie", debian), ("jammy", jammy)):
        try:
            if os.geteuid():
                raise Skipped("chroot is for root")
            root = made(release)
        except Skipped as reason:
            print(f"SKIP {release}: {reason}")
            report(f"glibc-{release}", 0, 0, 1)
            continue
        with placed(binary, root) as folder:
            part(f"glibc-{release}", (version, lint, an_exception_is_caught, time_zones), root, folder)
    print(", ".join(f"{count} {key}" for key, count in counts.items()))
    sys.exit(1 if counts["failed"] else 0)


if __name__ == "__main__":
    main()
