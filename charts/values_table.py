#!/usr/bin/env python3
"""Writes the table of values into the chart's README.md, from the comments of values.yaml.

usage: values_table.py [--check]      with --check it writes nothing, and fails where the table is not up to date

A comment that starts with `# --` describes the value below it; further comment lines go on with it. Every value that a
user sets (anything but a mapping with described members) needs one.
"""
import json
import pathlib
import sys

import yaml

CHART = pathlib.Path(__file__).resolve().parent / "gpu-sharing-operator"
BEGIN, END = "<!-- values: begin -->", "<!-- values: end -->"


def described(text):
    """(path, description) of each described value, in the order of the file."""
    out, path, comment = [], [], None
    for line in text.splitlines():
        stripped = line.strip()
        if stripped.startswith("# -- "):
            comment = stripped[5:]
        elif stripped.startswith("#"):
            comment = comment and f"{comment} {stripped.lstrip('# ')}"
        elif ":" in stripped and not stripped.startswith("-"):
            depth = (len(line) - len(line.lstrip())) // 2
            path = path[:depth] + [stripped.split(":")[0]]
            if comment:
                out.append((tuple(path), comment))
            comment = None
    return out


def leaves(values, known, path=()):
    """Paths that need a description: what is described, or has no members of its own."""
    if path in known or not isinstance(values, dict) or not values:
        yield path
        return
    for key, value in values.items():
        yield from leaves(value, known, path + (key,))


def table(values, rows):
    lines = ["| value | default | |", "|---|---|---|"]
    for path, description in rows:
        value = values
        for key in path:
            value = value[key]
        default = json.dumps(value, ensure_ascii=False).replace("|", "\\|")
        lines.append(f"| `{'.'.join(path)}` | `{default}` | {description.replace('|', chr(92) + '|')} |")
    return "\n".join(lines)


def main():
    text = (CHART / "values.yaml").read_text(encoding="utf-8")
    values, rows = yaml.safe_load(text), described(text)
    known = {path for path, _ in rows}
    missing = [".".join(path) for path in leaves(values, known) if path not in known]
    if missing:
        sys.exit(f"values.yaml: without a `# --` comment: {', '.join(missing)}")
    readme = CHART / "README.md"
    old = readme.read_text(encoding="utf-8")
    head, rest = old.split(BEGIN)
    new = f"{head}{BEGIN}\n{table(values, rows)}\n{END}{rest.split(END)[1]}"
    if "--check" in sys.argv[1:]:
        if new != old:
            sys.exit("README.md of the chart is not up to date with values.yaml: ./dev docs")
        print(f"{len(rows)} values, all in README.md")
    else:
        readme.write_text(new, encoding="utf-8")


if __name__ == "__main__":
    main()
