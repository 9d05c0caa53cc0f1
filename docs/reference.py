#!/usr/bin/env python3
"""Writes the reference pages: custom-resources.md from crds/, command-line.md from the binary's --help,
the tables of codes.md from `lint --codes`.

usage: reference.py BINARY [--check]      with --check it writes nothing, and fails where a page is not up to date
"""
import json
import os
import pathlib
import re
import subprocess
import sys

import yaml

DOCS = pathlib.Path(__file__).resolve().parent
PROGRAM = "gpu-sharing-operator"


# --- Custom resources
def of_type(schema):
    if schema.get("x-kubernetes-int-or-string"):
        return "integer or string"
    kind = schema.get("type", "any")
    if kind == "array":
        return f"list of {of_type(schema['items'])}"
    if kind == "object" and isinstance(schema.get("additionalProperties"), dict):
        return f"map of {of_type(schema['additionalProperties'])}"
    return schema.get("format", kind) if kind == "string" else kind


def limits(schema):
    """What the API server holds a value to, in words."""
    out = []
    if "enum" in schema:
        out.append("one of " + ", ".join(f"`{value}`" for value in schema["enum"]))
    low, high = schema.get("minimum"), schema.get("maximum")
    if low is not None or high is not None:
        out.append(f"{low if low is not None else ''}–{high if high is not None else ''}")
    for key, words in (("minLength", "at least {} characters"), ("maxLength", "at most {} characters"),
                       ("minItems", "at least {} items"), ("maxItems", "at most {} items"),
                       ("maxProperties", "at most {} entries")):
        if key in schema and not (key == "minLength" and schema[key] == 0):
            text = words.format(schema[key])
            out.append(text.replace("entries", "entry").rstrip("s") if schema[key] == 1 else text)
    if "pattern" in schema:
        out.append(f"`{schema['pattern']}`")
    out += [rule["message"] for rule in schema.get("x-kubernetes-validations", []) if "message" in rule]
    return "; ".join(out)


def default(schema):
    if "default" not in schema:
        return ""
    value = schema["default"]
    text = str(value).lower() if isinstance(value, bool) else ("{}" if value == {} else str(value))
    return f"`{text}`"


def cell(text):
    return " ".join(str(text).split()).replace("|", "\\|")


def rows(schema, path, required):
    yield (f"`{path}`" + (" (required)" if required else ""), of_type(schema), default(schema), limits(schema),
           schema.get("description", ""))
    inner, below = schema, path
    while inner.get("type") == "array":
        inner, below = inner["items"], below + "[]"
    for name, field in inner.get("properties", {}).items():
        yield from rows(field, f"{below}.{name}", name in inner.get("required", []))


def custom_resources():
    out = ["# Custom resources", "",
           "With this page you can look up each field of SharingPolicy and SharingRollout: its type, default and limits. Generated from "
           "[crds/](../crds) by `./dev docs`. How to write a policy, with examples: [sharing-objects.md](sharing-objects.md).", ""]
    for path in sorted((DOCS.parent / "crds").glob("*.yaml")):
        crd = yaml.safe_load(path.read_text(encoding="utf-8"))
        names = crd["spec"]["names"]
        for version in crd["spec"]["versions"]:
            schema = version["schema"]["openAPIV3Schema"]
            out += [f"## {names['kind']} ({crd['spec']['group']}/{version['name']})", "",
                    " ".join(schema.get("description", "").split()), "",
                    f"{crd['spec']['scope']}-scoped; `kubectl get {names['plural']}`"
                    + "".join(f", `{name}`" for name in names.get("shortNames", [])) + ".", "",
                    "| field | type | default | limits | |", "|---|---|---|---|---|"]
            for part in ("spec", "status"):
                if part in schema["properties"]:
                    required = part in schema.get("required", [])
                    out += ["| " + " | ".join(cell(c) for c in row) + " |"
                            for row in rows(schema["properties"][part], part, required)]
            out.append("")
    return "\n".join(out).rstrip() + "\n"


# --- Command line
def help_of(binary, words):
    # Defaults must not depend on whose machine this is.
    env = {key: value for key, value in os.environ.items() if not key.startswith("GSO_")}
    done = subprocess.run([binary, *words, "--help"], check=True, capture_output=True, text=True, env=env)
    return re.sub(r"\n{3,}", "\n\n", done.stdout.strip())


def commands(binary, words=()):
    """(words, help) of the program and each of its subcommands, depth first."""
    text = help_of(binary, words)
    yield words, text
    section = text.partition("\nSubcommands:\n")[2].partition("\n\n")[0]
    for name in re.findall(r"^  ([a-z][a-z-]*)", section, re.M):
        yield from commands(binary, (*words, name))


def command_line(all_commands):
    out = ["# Command line", "", "Generated from the binary's `--help` by `./dev docs`.", ""]
    for words, text in all_commands:
        out += [f"## {' '.join((PROGRAM, *words))}", "", "```text", text, "```", ""]
    return "\n".join(out).rstrip() + "\n"


# --- Checks
def code_table(headline, rows):
    return [f"| {headline} | what it means | what to do |", "|---|---|---|"] + \
           ["| " + " | ".join(cell(c) for c in row) + " |" for row in rows] + [""]


def codes(known, text):
    begin, end = "<!-- codes: begin -->\n", "<!-- codes: end -->"
    before, _, rest = text.partition(begin)
    _, _, after = rest.partition(end)
    out = []
    for section in known["sections"]:
        out += [f"## {section['title']}", ""]
        if section["intro"]:
            out += [section["intro"], ""]
        out += code_table("code", [
            (", ".join(f"`{code}`" for code in entry["codes"])
             + "".join(f" ({said})" for said in (entry["severity"] if entry["severity"] != "error" else "", entry["seen"]) if said),
             entry["meaning"], entry["remedy"])
            for entry in section["codes"]])
    return before + begin + "\n".join(out).rstrip() + "\n" + end + after


def main():
    arguments = [word for word in sys.argv[1:] if word != "--check"]
    if len(arguments) != 1:
        sys.exit(__doc__)
    all_commands = list(commands(arguments[0]))
    known = json.loads(subprocess.run([arguments[0], "lint", "--codes", "-o", "json"], check=True, capture_output=True,
                                      text=True).stdout)
    pages = {"custom-resources.md": custom_resources(), "command-line.md": command_line(all_commands),
             "codes.md": codes(known, (DOCS / "codes.md").read_text(encoding="utf-8"))}
    stale = [name for name, text in pages.items()
             if not (DOCS / name).exists() or (DOCS / name).read_text(encoding="utf-8") != text]
    if "--check" not in sys.argv[1:]:
        for name in stale:
            (DOCS / name).write_text(pages[name], encoding="utf-8")
    elif stale:
        sys.exit(f"not up to date: {', '.join('docs/' + name for name in stale)}; ./dev docs writes them")
    print(f"{len(pages)} pages, {len(all_commands)} commands")


if __name__ == "__main__":
    main()
