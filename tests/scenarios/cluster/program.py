"""The operator's program: which one is tried, and how it is asked about a cluster."""
import glob
import json
import os
import subprocess
import sys

# Nothing of this machine; GSODEV_… for the seeded mistakes of tests/mutations.
ENVIRONMENT = {name: value for name, value in os.environ.items() if name == "PATH" or name.startswith("GSODEV_")}


def binary():
    """The path of the gpu-sharing-operator that is tried."""
    given = os.environ.get("GSO_BIN")
    if given:
        return given
    found = [path for path in glob.glob("build*/**/gpu-sharing-operator", recursive=True)
             if os.path.isfile(path) and os.access(path, os.X_OK)]
    if not found:
        sys.exit("no binary: set GSO_BIN, or build one below build*/")
    return os.path.abspath(max(found, key=os.path.getmtime))


def ask(arguments, manifests):
    """Runs the program once over manifests, without a cluster, and returns how it ended."""
    return subprocess.run([binary()] + arguments, input=json.dumps(manifests), capture_output=True, text=True,
                          timeout=30 * int(os.environ.get("GSODEV_PATIENCE", "1")),
                          env=ENVIRONMENT)
