#!/usr/bin/env python3
"""The pages as a reader follows them: each relative link of a page leads to a file, and its #anchor to a heading there; each
page of docs/, and heading of it, that a source, the chart or a manifest names exists; the lines of docs/README.md name every page of docs/ once;
and a page that people read during an incident stays short (MOST_WORDS). Prints "N passed, N failed".
"""
import functools
import pathlib
import re
import sys

ROOT = pathlib.Path(__file__).resolve().parents[2]
PAGES = ["*.md", "docs/*.md", "charts/**/*.md", "tests/**/*.md", "bench/*.md"]
# What names pages in its messages and comments.
SOURCES = ["controller", "reconcilers", "k8sclient", "charts", "crds", "image", "cmake", "bench", "tests"]
ENDINGS = {".cc", ".h", ".py", ".sh", ".yaml", ".json", ".tpl", ".txt"}
MOST_WORDS = {"docs/rollouts.md": 1500}
FENCE = re.compile(r"^( *)(```+|~~~+).*?^\1\2 *$", re.M | re.S)
COMMENT = re.compile(r"<!--.*?-->", re.S)
LINK = re.compile(r"\]\(\s*<?([^()\s>]+(?:\([^()\s]*\)[^()\s>]*)*)>?(?:\s+\"[^\"]*\")?\s*\)|^ {0,3}\[[^\]]+\]: *(\S+)|\b(?:src|srcset|href)=\"([^\"\s]+)", re.M)
NAMED = re.compile(r"(?<![\w/.-])docs/([\w-]+\.md)(#[\w-]+)?")


def prose(text):
    """The text without code blocks, comments and code spans: what looks like a link there is none."""
    return re.sub(r"(`+)(?!`).*?(?<!`)\1(?!`)", "", COMMENT.sub("", FENCE.sub("", text)), flags=re.S)


def slug(heading):
    """The anchor that GitHub makes of a heading."""
    text = re.sub(r"!?\[([^\]]*)\]\([^)]*\)", r"\1", heading)
    text = re.sub(r"[^\w\- ]", "", text.replace("`", "").strip().lower())
    return text.replace(" ", "-")


def anchors_of(text):
    out, seen = set(), {}
    text = COMMENT.sub("", FENCE.sub("", text))
    for heading in re.findall(r"^ {0,3}#{1,6} +(.*?)(?: +#+)? *$", text, re.M):
        name = slug(heading)
        count = seen[name] = seen.get(name, -1) + 1
        out.add(f"{name}-{count}" if count else name)
    return out | set(re.findall(r"<a +(?:id|name)=\"([^\"]+)\"", text))


def links_of(text):
    """The relative links as (path, anchor)."""
    found = [next(part for part in link if part) for link in LINK.findall(prose(text))]
    return [(path, anchor) for path, _, anchor in (link.partition("#") for link in found)
            if not re.match(r"[a-z][a-z0-9+.-]*:|//", path, re.I)]


def words_in(text):
    return sum(1 for word in COMMENT.sub("", text).split() if re.search(r"\w", word))


# The functions above, tried out.
EXAMPLES = [
    (slug, "Uninstalling: `cleanup`", "uninstalling-cleanup"),
    (slug, "Beside autoscalers, driver upgrades and DRA", "beside-autoscalers-driver-upgrades-and-dra"),
    (slug, "SharingPolicy (`gsp`) and [links](x.md)", "sharingpolicy-gsp-and-links"),
    (anchors_of, "# A b\n```sh\n# no\n```\n## A b\n<a id=\"c\"></a>\n", {"a-b", "a-b-1", "c"}),
    (links_of, "[a](x.md#y) `[b](no.md)` [c](https://x/y) ![d](p.svg \"t\") [e](#f)\n```\n[g](no.md)\n```\n<img src=\"q.svg\">",
     [("x.md", "y"), ("p.svg", ""), ("", "f"), ("q.svg", "")]),
    (words_in, "| a | b-c |\n|---|---|\nd 3.\n<!-- no -->", 4),
]


@functools.cache
def anchors(path):
    return anchors_of(path.read_text(encoding="utf-8"))


def problem(page, path, anchor):
    target = page if not path else (ROOT / path.lstrip("/") if path.startswith("/") else page.parent / path).resolve()
    if not target.is_relative_to(ROOT):
        return "leads out of the project"
    if not target.exists():
        return "no such file"
    if anchor and target.suffix == ".md" and anchor not in anchors(target):
        return f"{target.relative_to(ROOT)} has no heading for it"
    return ""


def main():
    failures = [f"{function.__name__}({text!r}) is {function(text)!r}" for function, text, wanted in EXAMPLES if function(text) != wanted]
    checks = len(EXAMPLES)
    links = 0
    for page in sorted({path for form in PAGES for path in ROOT.glob(form)}):
        for path, anchor in links_of(page.read_text(encoding="utf-8")):
            links += 1
            if wrong := problem(page, path, anchor):
                failures.append(f"{page.relative_to(ROOT)}: {path}{'#' + anchor if anchor else ''}: {wrong}")
    named = 0
    for source in sorted(path for room in SOURCES for path in (ROOT / room).rglob("*") if path.suffix in ENDINGS and path.is_file()):
        for name, anchor in NAMED.findall(source.read_text(encoding="utf-8", errors="replace")):
            named += 1
            if wrong := problem(ROOT / "docs/README.md", name, anchor[1:]):
                failures.append(f"{source.relative_to(ROOT)}: docs/{name}{anchor}: {wrong}")
    # An expression that finds nothing any more would pass everything.
    if links < 100 or named < 40:
        failures.append(f"only {links} links and {named} names of pages were found")
    listed = [path for path, _ in links_of((ROOT / "docs/README.md").read_text(encoding="utf-8"))]
    pages = [path.name for path in sorted((ROOT / "docs").glob("*.md")) if path.name != "README.md"]
    failures += [f"docs/README.md names {name} {listed.count(name)} times, and not once" for name in pages if listed.count(name) != 1]
    for name, most in MOST_WORDS.items():
        words = words_in((ROOT / name).read_text(encoding="utf-8"))
        if words > most:
            failures.append(f"{name} has {words} words, more than {most}: move rules to the reference")
    checks += links + named + len(pages) + len(MOST_WORDS)
    print(*failures, sep="\n")
    print(f"{max(checks - len(failures), 0)} passed, {len(failures)} failed")
    sys.exit(1 if failures else 0)


if __name__ == "__main__":
    main()
