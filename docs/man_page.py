#!/usr/bin/env python3
"""Writes the manual page in man(7) macros, from the help texts in command-line.md. The build calls it (controller/CMakeLists.txt).

usage: man_page.py COMMAND-LINE.MD VERSION OUTPUT

What every command has (its connection to the cluster, -h) stands once; what a manual page has beyond the help texts
(files, environment, examples) is written here."""
import pathlib
import re
import sys

PROGRAM = "gpu-sharing-operator"

# The date of the texts below that no help prints; change it with them.
DATE = "2026-11"
DESCRIPTION = """\
NVIDIA's device plugin shares GPUs by MPS or time\\-slicing. Its profiles are keys of a ConfigMap, which no component watches.
.B gpu\\-sharing\\-operator run
watches it: it checks each edit, rolls it out node by node within a budget, and verifies what every node shows. The other commands explain a
cluster or manifests, and control rollouts. Commands that explain never write, and need no operator in the cluster.
.P
As
.B kubectl\\-gpu_sharing
on the PATH (a link is enough) the program is
.BR "kubectl gpu\\-sharing" ."""
ENVIRONMENT = [
    ("GSO_NAME", "Each setting of\n.BR run ,\nand of the commands that have it, by its name in capitals:\n.B \\-\\-settle\\-period\nis GSO_SETTLE_PERIOD. A flag takes precedence, then the variable, then the file of \\-\\-config."),
    ("KUBECONFIG", "Kubeconfig files, separated by colons, if \\-\\-kubeconfig is not set. The first that sets a value wins."),
    ("POD_NAMESPACE, POD_NAME, POD_UID", "Set by the chart: where the operator runs, and its identity in the Lease."),
]
FILES = [
    ("~/.kube/config", "Kubeconfig of the commands, if neither \\-\\-kubeconfig nor KUBECONFIG is set."),
    ("/etc/gpu\\-sharing\\-operator/config.yaml", "Settings of the operator in its pod; the chart writes it from the value config."),
    ("/var/run/secrets/kubernetes.io/serviceaccount/", "Credentials of the operator in its pod."),
]
EXAMPLES = [
    ("What the device plugin would refuse, or silently ignore:", "gpu-sharing-operator lint mps-config.yaml"),
    ("What is wrong with GPU sharing in a cluster, with or without the operator:", "gpu-sharing-operator audit"),
    ("Why a node is in its state, and the command to run next:", "gpu-sharing-operator explain a100-01"),
    ("Which nodes an edit would restart, and which pods block them:", "gpu-sharing-operator diff -f new.yaml"),
    ("Pause a rollout, see what it waits for, and resume it:", "gpu-sharing-operator rollout pause\ngpu-sharing-operator rollout status\ngpu-sharing-operator rollout resume"),
]
SEE_ALSO = ".BR kubectl (1),\n.BR helm (1),\n.BR nvidia\\-smi (1),\n.BR nvidia\\-cuda\\-mps\\-control (1)"
OPTION = re.compile(r"^  (?P<flags>\S.*?)(?:  +(?P<text>\S.*))?$")

def escape(text):
    """Text as roff prints it literally."""
    text = text.replace("…", "...").replace("\\", "\\e").replace("-", "\\-")
    return "\n".join("\\&" + line if line[:1] in (".", "'") else line for line in text.splitlines())


def bold(text):
    return f"\\fB{escape(text)}\\fR"


def flags_of(text):
    """`-o,--output FORM (default text) [GSO_X]` with names bold and the argument in italics; and the variable's name."""
    variable = re.search(r" ?\[(GSO_\w+)\]", text)
    text = text.replace(variable.group(0), "") if variable else text
    given = re.search(r" ?\(default (.*)\)$", text.rstrip())
    names, _, value = (text[:given.start()] if given else text).rstrip().partition(" ")
    if not names.startswith("-"):
        return bold(f"{names} {value}".strip()), ""
    out = ", ".join(bold(name) for name in re.split(", ?", names))
    out += f" \\fI{escape(value.strip())}\\fR" if value else ""
    return out + (f" (default {escape(given[1])})" if given else ""), variable[1] if variable else ""


class Help:
    """One --help text in parts: summary, sections of entries, and the sentences at its end."""

    def __init__(self, text):
        summary, _, rest = text.partition("\nUsage: ")
        self.summary = " ".join(summary.split())
        self.usage, _, rest = rest.partition("\n")
        self.sections, self.closing, section = [], [], None
        lines = rest.splitlines()
        for line, following in zip(lines, [*lines[1:], ""]):
            if not line.strip():
                section = None
            elif not self.closing and re.fullmatch(r"\S.*:", line) and following.startswith("  "):
                section = []
                self.sections.append((line.rstrip(":"), section))
            elif section is None:
                self.closing.append(line)
            elif line.startswith(" " * 12):
                section[-1][1] += (" " if section[-1][1] else "") + line.strip()
            else:
                match = OPTION.match(line)
                section.append([match["flags"], match["text"] or ""])

    def entries(self, skip):
        """(title, entries) of its options, without subcommands and without what stands elsewhere."""
        for title, entries in self.sections:
            if title != "Subcommands":
                kept = [entry for entry in entries if tuple(entry) not in skip]
                if kept:
                    yield title, kept


def tagged(entries):
    out = []
    for flags, text in entries:
        tag, variable = flags_of(flags)
        out += [".TP", tag, escape(text) + (f" [{escape(variable)}]" if variable else "")]
    return out


def paragraphs(lines):
    """Sentences are filled; lines that begin with spaces are a table of the author's."""
    out, filled = [], None
    for line in lines:
        if (line[:1] != " ") != filled:
            if filled is False:
                out.append(".fi")
            filled = line[:1] != " "
            out += [".P"] if filled else [".P", ".nf"]
        out.append(escape(line.strip() if filled else line.removeprefix("  ")))
    return out + ([".fi"] if filled is False else [])


def table(rows):
    return [line for tag, text in rows for line in (".TP", f"\\fB{tag}\\fR", text)]


def synopsis(program, help_text):
    usage = help_text.usage.removeprefix(program).strip()
    return f".B {escape(program)}\n{escape(usage)}"


def shared_entries(pages):
    """Options that every command with a connection has, but for one that has its own of that name: they stand once."""
    def connection(page):
        return {tuple(entry) for title, entries in page.sections if title == "Connection" for entry in entries}

    connected = [page for page in pages if connection(page)]
    names = [{entry[0].split()[0] for _, entries in page.sections for entry in entries} for page in connected]
    return {entry for page in connected for entry in connection(page)
            if all(entry in connection(other) or entry[0].split()[0] in own for other, own in zip(connected, names))}


def man_page(program, all_commands, version):
    pages = [(words, Help(text)) for words, text in all_commands]
    (_, top), *commands = pages
    shared = shared_entries([page for _, page in commands])
    skip = shared | {tuple(entry) for page in [top, *(page for _, page in commands)] for _, entries in page.sections
                     for entry in entries if entry[0] == "-h,--help"}
    ordered = [entry for _, page in commands for title, entries in page.sections if title == "Connection"
               for entry in map(tuple, entries) if entry in shared]
    out = [".\\\" Written by docs/man_page.py from the program's --help.", f'.TH {program.upper()} 1 "{DATE}" "{program} {version}" "User Commands"',
           ".SH NAME", f"{escape(program)} \\- {escape(top.summary.rstrip('.'))}", ".SH SYNOPSIS"]
    for words, page in commands:
        if not any(title == "Subcommands" for title, _ in page.sections):
            out += [synopsis(program, page), ".br"]
    out += [".SH DESCRIPTION", DESCRIPTION, ".SH COMMANDS"]
    for words, page in commands:
        out += [f".SS {escape(' '.join(words))}", escape(page.summary.rstrip(".") + ".")]
        for title, entries in page.entries(skip):
            if title not in ("Options", "Positionals", "Connection"):
                out += [".P", f"\\fI{escape(title)}\\fR"]
            out += tagged(entries)
        out += paragraphs([line for line in page.closing if line not in top.closing])
    out += [".SH OPTIONS", "Commands that ask a cluster have these:", *tagged(list(dict.fromkeys(ordered))),
            ".P", "Every command has", *tagged([["-h,--help", "Print its help and exit."]])]
    out += [".SH EXIT STATUS"]
    out += table([("0", "Nothing is wrong."), ("1", "A finding of severity error, or what the command waited for did not happen."),
                  ("2", "Wrong usage, input that cannot be read, a cluster that does not answer, or output that could not be written.")])
    out += [".P", "What a command adds to that is in its section.", ".SH ENVIRONMENT", *table(ENVIRONMENT), ".SH FILES", *table(FILES), ".SH EXAMPLES"]
    for what, command in EXAMPLES:
        out += [".P", escape(what), ".P", ".RS 4", ".nf", escape(command), ".fi", ".RE"]
    out += [".SH SEE ALSO", SEE_ALSO, ".P", "The pages in docs/ of the source, and its README."]
    return "\n".join(out) + "\n"


def commands(page):
    """(words, help) of the program and each of its subcommands, as reference.py has written them."""
    return [(tuple(words.split()), text) for words, text in re.findall(rf"^## {PROGRAM}([^\n]*)\n\n```text\n(.*?)\n```$", page, re.M | re.S)]


def main():
    if len(sys.argv) != 4:
        sys.exit(__doc__)
    page, version, output = sys.argv[1:]
    pathlib.Path(output).write_text(man_page(PROGRAM, commands(pathlib.Path(page).read_text(encoding="utf-8")), version), encoding="utf-8")


if __name__ == "__main__":
    main()
