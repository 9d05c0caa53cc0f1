"""The program that is judged, and small helpers to read what it prints."""
import json
import os
import subprocess
from concurrent.futures import ThreadPoolExecutor


class Program:
    """Runs gpu-sharing-operator, several at once in map()."""

    def __init__(self, path, jobs):
        self.path, self.jobs = path, jobs

    def json(self, *arguments):
        """(exit status, stdout as JSON or None, what is wrong with stdout). Logs are on stderr, so stdout is JSON alone."""
        done = subprocess.run([self.path, *arguments], stdin=subprocess.DEVNULL, capture_output=True, check=False,
                              env={"PATH": os.environ.get("PATH", "")})
        out, err = (text.decode("utf-8", "replace") for text in (done.stdout, done.stderr))
        try:
            return done.returncode, json.loads(out), ""
        except ValueError:
            first = (err.strip() or out.strip() or "no output").splitlines()[0]
            return done.returncode, None, "exit status %d, and stdout is not JSON: %s" % (done.returncode, short(first))

    def map(self, function, items):
        with ThreadPoolExecutor(self.jobs) as pool:
            return list(pool.map(function, items))


def short(value, limit=220):
    text = value if isinstance(value, str) else json.dumps(value, sort_keys=True)
    return text if len(text) <= limit else text[:limit - 1] + "…"


def write(folder, name, text):
    path = os.path.join(folder, name)
    with open(path, "wb") as file:
        file.write(text.encode("utf-8"))
    return path


def as_list(value):
    return value if isinstance(value, list) else []


def as_dict(value):
    return value if isinstance(value, dict) else {}
