#!/usr/bin/env python3
"""The manual page that the build has written: the sections that man-pages(7) asks for, every command and every option, nothing
that roff would misread. Its source docs/command-line.md is compared with --help by reference_pages.

usage: man_page_test.py PAGE     prints "N passed, N failed"
"""
import pathlib
import re
import shutil
import subprocess
import sys

ROOT = pathlib.Path(__file__).resolve().parents[2]
SECTIONS = ["NAME", "SYNOPSIS", "DESCRIPTION", "COMMANDS", "OPTIONS", "EXIT STATUS", "ENVIRONMENT", "FILES", "EXAMPLES", "SEE ALSO"]
# What the page lists once; `verify` has a --namespace of its own.
ONCE = {"--help": 2, "--kubeconfig": 2, "--context": 2, "--namespace": 3}


def main():
    page = pathlib.Path(sys.argv[1])
    text = page.read_text(encoding="utf-8")
    lines = text.splitlines()
    help_texts = (ROOT / "docs/command-line.md").read_text(encoding="utf-8")
    plain = text.replace("\\-", "-")
    checks = [
        ("its header has a date and the version", [] if re.search(r'^\.TH \S+ 1 "20\d\d-\d\d" "gpu-sharing-operator \d+\.\d+\.\d+" ', text, re.M) else [lines[1]]),
        ("its sections are those of man-pages(7), in their order", [s for s in [re.findall(r"^\.SH (.*)$", text, re.M)] if s != SECTIONS]),
        ("it is ASCII", [line for line in lines if not line.isascii()]),
        ("no macro is unknown", sorted({line.split()[0] for line in lines if line.startswith(".")} -
                                       {".TH", ".SH", ".SS", ".TP", ".P", ".B", ".BR", ".RS", ".RE", ".nf", ".fi", ".br", '.\\"'})),
        ("lines that are not filled have at most 105 characters",
         [line for block in re.findall(r"^\.nf\n(.*?)^\.fi$", plain, re.M | re.S) for line in block.splitlines() if len(line) > 105]),
        ("every command has a section", [words for words in re.findall(r"^## gpu-sharing-operator (.+)$", help_texts, re.M) if f"\n.SS {words}\n" not in plain]),
        ("every option is there", sorted({option for option in re.findall(r"^  (?:-\w,)?(--[a-z-]+)", help_texts, re.M)
                                          if f"\\fB{option}\\fR" not in plain} - {"--version"})),
        ("what every command has stands once", sorted(option for option, most in ONCE.items() if plain.count(f"\\fB{option}\\fR") > most)),
    ]
    if shutil.which("groff"):
        done = subprocess.run(["groff", "-man", "-Tascii", "-ww", str(page)], capture_output=True, text=True, check=False)
        checks.append(("groff warns of nothing", done.stderr.splitlines()))
    for what, problems in checks:
        print(f"{'FAILED' if problems else 'ok'}  {what}", *problems[:5], sep="\n  ")
    failed = sum(1 for _, problems in checks if problems)
    print(f"{len(checks) - failed} passed, {failed} failed")
    sys.exit(1 if failed else 0)


main()
