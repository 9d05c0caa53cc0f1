"""Debian's packages that image/build.py puts beside a program: pinned in packages.lock by version and SHA-256, fetched by apt-get, and
from an archive of all that Debian ever published where the mirrors have replaced them since."""
import functools
import hashlib
import os
import pathlib
import re
import signal
import subprocess
import sys
import time
import urllib.error
import urllib.request

HERE = pathlib.Path(__file__).resolve().parent
LOCK = pathlib.Path(os.environ.get("GSODEV_IMAGE_LOCK", HERE / "packages.lock"))
CACHE = pathlib.Path(os.environ.get("GSODEV_CACHE", HERE.parent / "build"))
# What apt calls the archives of all that Debian ever published. apt has both by itself from Debian 13 on.
ARCHIVES = {"debian": "Acquire::Snapshots::URI::Origin::Debian",
            "debian-security": "Acquire::Snapshots::URI::Override::Label::Debian-Security"}
# Seconds that a mirror or the archive may be silent, and that apt-get may take for ten packages.
PATIENCE = int(os.environ.get("GSODEV_IMAGE_PATIENCE", "60"))
# Beside a program: what it loads, for each architecture, time zones of maintenance windows, and certificates for servers that a
# kubeconfig names without one.
CARRIED = {"libc6": ("amd64", "arm64"), "tzdata": ("all",), "ca-certificates": ("all",)}
# The packages that tell of Debian's updates of the libraries inside a program (cmake/Dependencies.cmake links them).
LINKED = {"openssl": "libssl-dev", "fmtlib": "libfmt-dev", "spdlog": "libspdlog-dev", "simdjson": "libsimdjson-dev", "howardhinnant-date": "libhowardhinnant-date-dev",
          "nghttp2": "libnghttp2-dev", "zlib": "zlib1g-dev", "libyaml": "libyaml-dev", "yaml-cpp": "libyaml-cpp-dev", "gcc-12": "libstdc++-12-dev", "gcc-12-cross": "libstdc++-12-dev-arm64-cross",
          "boost1.81": "libboost1.81-dev", "nlohmann-json3": "nlohmann-json3-dev", "cli11": "libcli11-dev", "protozero": "libprotozero-dev"}
# Of those, what the project builds itself.
BUILT = {"openssl", "fmtlib", "spdlog", "simdjson", "howardhinnant-date"}
# How to take an update of what the project builds itself.
PIN = "Pin that in cmake/libraries/build.sh (if it is: remove the folder `libraries` from GSODEV_CACHE where a mirror has its sources)"


def run(*command, **more):
    done = subprocess.run(command, check=False, capture_output=True, text=True, **more)
    if done.returncode:
        sys.exit(f"{' '.join(map(str, command[:3]))}… ended with {done.returncode}:\n{(done.stderr or done.stdout).strip()}")
    return done.stdout


def sha256(data):
    return hashlib.sha256(data).hexdigest()


def note(text):
    """What is being done now, for whoever waits for it."""
    print(f"image: {text}", file=sys.stderr, flush=True)


@functools.cache
def own_architecture():
    """Debian's name of this machine's."""
    return run("dpkg", "--print-architecture").strip()


@functools.cache
def apt_options(architecture):
    """What apt needs to answer for another architecture than this machine's: lists of its own, fetched here."""
    if architecture in ("all", own_architecture()):
        return ()
    lists = CACHE / "apt" / architecture
    (lists / "partial").mkdir(parents=True, exist_ok=True)
    options = [word for option in (f"APT::Architecture={architecture}", f"APT::Architectures::={architecture}", "Dir::State::status=/dev/null",
                                   f"Dir::State::lists={lists}", "APT::Sandbox::User=root", "Debug::NoLocking=1") for word in ("-o", option)]
    note(f"fetching apt's lists for {architecture}")
    run("apt-get", *options, "update")
    return tuple(options)


def apt_get(wanted, folder):
    """(what apt-get said, whether it fetched them all, whether it had to be stopped). The same lists have them all."""
    names = [f"{name}={version}" for name, version, _ in wanted]
    limit = PATIENCE * (1 + len(names) // 10)
    note(f"fetching {names[0] if len(names) == 1 else f'{len(names)} packages'} with apt-get, for at most {limit} s")
    # A session of its own: what apt-get started to fetch with ends with it, and holds no pipe open.
    with subprocess.Popen(["apt-get", "-o", f"Acquire::http::Timeout={PATIENCE}", "-o", f"Acquire::https::Timeout={PATIENCE}", *apt_options(wanted[0][2]), "download", *names], cwd=folder,
                          stdin=subprocess.DEVNULL, stdout=subprocess.DEVNULL, stderr=subprocess.PIPE, text=True, start_new_session=True) as process:
        try:
            return process.communicate(timeout=limit)[1], process.returncode == 0, False
        except subprocess.TimeoutExpired:
            os.killpg(process.pid, signal.SIGKILL)
            return f"{process.communicate()[1]}apt-get did not end within {limit} s (GSODEV_IMAGE_PATIENCE gives it more)\n", False, True


def download(wanted, folder):
    """Fetches what apt-get has of the packages, each (name, version, architecture), and returns what it said where it has not all."""
    groups = {}
    for one in wanted:
        groups.setdefault(apt_options(one[2]), []).append(one)
    return "".join(download_of(group, folder) for group in groups.values())


def download_of(wanted, folder):
    """The same, of packages that the same lists of apt have."""
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


def fetched(name, architecture, folder):
    return next(iter(folder.glob(f"{name}_*_{architecture}.deb")), None)


def candidate(name, architecture="all"):
    """The version of a package that apt-get would install; empty: it knows none."""
    found = re.search(r"Candidate: (\d\S*)", run("apt-cache", *apt_options(architecture), "policy", name))
    return found[1] if found else ""


def candidate_source(name):
    """The version of its source: a package that Debian only built again, and the cross compiler's, have versions of their own."""
    version = candidate(name)
    found = re.search(r"^Source: \S+ \((\S+)\)", run("apt-cache", "show", f"{name}={version}"), re.MULTILINE) if version else None
    return found[1] if found else version


def outdated(libraries):
    """A line for each library inside the program that is older than the mirrors' version, which might be a security update."""
    lines = []
    for name, version in libraries:
        newer = candidate_source(LINKED[name]) if name in LINKED else ""
        if newer and subprocess.run(["dpkg", "--compare-versions", newer, "gt", version], check=False).returncode == 0:
            how = PIN if name in BUILT else f"Run apt-get install {LINKED[name]}"
            lines.append(f"the program contains {name} {version}, but Debian has {newer}. {how} and build the program again.")
    return lines


def libraries_of(answer):
    """(name, version) of each library in what `version --libraries` printed."""
    return [line.split(" ", 1) for line in answer.strip().splitlines()[1:]]


def write_lock(folder):
    wanted = [(name, candidate(name, architecture), architecture) for name, architectures in CARRIED.items() for architecture in architectures]
    said = download(wanted, folder)
    lines = ["# name version architecture sha256 path: what image/build.py puts beside a program; `./dev image --lock` writes it anew.",
             time.strftime("# snapshot %Y%m%dT%H%M%SZ: Debian's archive had them all at that time.", time.gmtime())]
    for name, version, architecture in wanted:
        package = fetched(name, architecture, folder) or sys.exit(f"apt-get has no {name} {version} for {architecture}:\n{said.strip()}")
        where = re.search(r"^Filename: (\S+)", run("apt-cache", *apt_options(architecture), "show", f"{name}={version}"), re.MULTILINE)[1]
        lines.append(f"{name} {version} {architecture} {sha256(package.read_bytes())} {where}")
    LOCK.write_text("\n".join(lines) + "\n", encoding="utf-8")


def locked(architecture):
    """(name, version, architecture, SHA-256, path in Debian's archive) of each package for that architecture or for all."""
    for line in LOCK.read_text(encoding="utf-8").splitlines():
        if line and not line.startswith("#") and line.split()[2] in (architecture, "all"):
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


def fetch(architecture, folder):
    """{name: file} of what is locked for that architecture, from the cache where it is there."""
    cache = CACHE / "image-packages"
    cache.mkdir(parents=True, exist_ok=True)
    said = download([(name, version, its) for name, version, its, digest, _ in locked(architecture) if not (cache / digest).exists()], folder)
    for name, version, its, digest, path in locked(architecture):
        if (cache / digest).exists():
            continue
        package = fetched(name, its, folder)
        data = package.read_bytes() if package else from_snapshot(name, version, path, said)
        if sha256(data) != digest:
            sys.exit(f"{name} {version} is not what packages.lock pins (SHA-256 {digest})")
        # Whole or not at all: an interrupted build leaves no half package behind under its digest.
        (cache / f"{digest}.part").write_bytes(data)
        (cache / f"{digest}.part").rename(cache / digest)
    return {name: cache / digest for name, _, _, digest, _ in locked(architecture)}
