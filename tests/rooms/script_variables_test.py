#!/usr/bin/env python3
"""Checks what the scripts call their environment variables: script_variables_test.py [PROJECT].

GSO_… in the environment is a setting of the program, which warns of every other such name. So the variables of the scripts
begin with GSODEV_, except those of ALLOWED: no program that reads settings inherits them.
"""
import pathlib
import re
import subprocess
import sys

ALLOWED = {
    "GSO_DEBIAN_SNAPSHOT": "for one build",
    "GSO_LIBRARY_SOURCES": "for one build",
    "GSO_BIN": "of the scenarios, which start the program with PATH alone",
    "GSO_SOURCE_DIR": "of test programs",
    "GSO_COMBINATIONS": "of test programs",
    "GSO_UNITY": "an option of cmake",
    "GSO_UPDATE_DOCS": "of test programs",
    "GSO_UPDATE_GOLDEN": "of test programs",
    "GSO_TESTS": "an option of cmake",
    "GSO_STATIC_DEPENDENCIES": "an option of cmake",
    "GSO_NAME": "a placeholder",
}
USE = re.compile(r"\bGSO_[A-Z][A-Z_]*[A-Z]\b")


def scripts(root):
    names = subprocess.run(["git", "-C", root, "ls-files"], capture_output=True, text=True, check=False).stdout.split("\n")
    if not any(names):  # Without git: of a copy of the sources.
        names = [str(path.relative_to(root)) for path in root.rglob("*") if path.is_file() and "build" not in path.parts]
    return [name for name in names if name.endswith((".sh", ".py")) or name in ("dev", "Dockerfile", ".ci/run")]


def wrong(text, settings):
    """The variables of a script that are neither settings of the program nor allowed."""
    return sorted({variable for variable in USE.findall(text) if variable not in settings and variable not in ALLOWED})


def main():
    root = pathlib.Path(sys.argv[1] if len(sys.argv) > 1 else pathlib.Path(__file__).resolve().parents[2]).resolve()
    settings = set(re.findall(r"\[(GSO_\w+)\]", (root / "docs/command-line.md").read_text(encoding="utf-8")))
    failures = []
    for text, expected in (("GSO_LOG_LEVEL=x run", []), ("${GSO_CACHE:-}", ["GSO_CACHE"]), ("$GSODEV_CACHE GSO_BIN=y", []), ("os.environ['GSO_SPEED']", ["GSO_SPEED"])):
        if wrong(text, {"GSO_LOG_LEVEL"}) != expected:
            failures.append(f"this test finds other variables in: {text}")
    if "GSO_LOG_LEVEL" not in settings:
        failures.append("no settings are found in docs/command-line.md")
    own = pathlib.Path(__file__).name
    for name in scripts(root):
        if name.endswith(own):
            continue
        for variable in wrong((root / name).read_text(encoding="utf-8"), settings):
            failures.append(f"{name}: {variable} is no setting of the program: call it {variable.replace('GSO_', 'GSODEV_', 1)}")
    for failure in failures:
        print(failure)
    print(f"{0 if failures else 1} passed, {len(failures)} failed")
    return 1 if failures else 0


if __name__ == "__main__":
    sys.exit(main())
