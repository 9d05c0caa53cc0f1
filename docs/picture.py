#!/usr/bin/env python3
"""Draws README's picture, picture.svg beside this file: from the ConfigMap through the operator to the nodes.

usage: picture.py [--check]     --check writes nothing and fails if the file is another picture

The picture has a background of its own in both colour schemes: a page can be dark where the browser is light.
"""
import pathlib
import sys
from xml.sax.saxutils import escape

PICTURE = pathlib.Path(__file__).with_name("picture.svg")
WIDTH, HEIGHT = 960, 330
TITLE = "How an edit of the ConfigMap reaches the nodes"
DESCRIPTION = ("You edit the ConfigMap of the device plugin. The operator checks the profile, changes one node of each group, then the others "
               "in waves, and verifies what each node offers. It refuses an invalid profile with the line and the reason, and restarts no pod.")
# Class: what it is drawn with in light and in dark.
COLOURS = {
    "page": ("fill:#ffffff", "fill:#0d1117"),
    "box": ("fill:#f6f8fa;stroke:#8c959f", "fill:#161b22;stroke:#6e7681"),
    "operator": ("fill:#ddf4ff;stroke:#0969da", "fill:#0c2d4d;stroke:#58a6ff"),
    "text": ("fill:#1f2328", "fill:#e6edf3"),
    "soft": ("fill:#57606a", "fill:#9da7b3"),
    "done": ("fill:#116329", "fill:#56d364"),
    "busy": ("fill:#7d4e00", "fill:#e3b341"),
    "bad": ("fill:#a40e26", "fill:#ff7b72"),
    "line": ("stroke:#57606a", "stroke:#9da7b3"),
    "head": ("fill:#57606a", "fill:#9da7b3"),
    "refusal": ("stroke:#a40e26", "stroke:#ff7b72"),
    "refusalhead": ("fill:#a40e26", "fill:#ff7b72"),
}
STEPS = [["1. Checks the profile"], ["2. Changes one node of each group", "    (the canary) and watches it"],
         ["3. Changes the others in waves,", "    within your budget"], ["4. Verifies what each node offers;", "    stops if nodes fail"]]
NODES = [("a100-01", "nvidia.com/gpu: 64", "verified", "done"), ("a100-02", "nvidia.com/gpu: 64", "verified", "done"),
         ("a100-03", "plugin pods restart", "in progress", "busy"), ("a100-04", "pods use its GPUs", "waits", "soft")]


def style():
    rules = ["text{font:14px sans-serif}", ".bold{font-weight:bold}", ".small{font-size:12px}", ".code{font:13px monospace}",
             ".line,.refusal{fill:none;stroke-width:2}", ".refusal{stroke-dasharray:5 4}"]
    light = [".%s{%s}" % (name, colours[0]) for name, colours in COLOURS.items()]
    dark = [".%s{%s}" % (name, colours[1]) for name, colours in COLOURS.items()]
    return ["<style>", *rules, *light, "@media (prefers-color-scheme: dark){", *dark, "}", "</style>"]


def text(x, y, words, kind="text", anchor="start"):
    return '<text x="%d" y="%d" class="%s" text-anchor="%s" xml:space="preserve">%s</text>' % (x, y, kind, anchor, escape(words))


def box(x, y, width, height, kind="box"):
    return '<rect x="%d" y="%d" width="%d" height="%d" rx="6" class="%s"/>' % (x, y, width, height, kind)


def arrow(points, kind="line"):
    """A line through the points, with its head at the last one; the last piece is horizontal or vertical."""
    (fromx, fromy), (x, y) = points[-2:]
    right, down = (x > fromx) - (x < fromx), (y > fromy) - (y < fromy)
    base = (x - 9 * right, y - 9 * down)
    line = " ".join("%d,%d" % point for point in [*points[:-1], base])
    corners = [(x, y), (base[0] + 5 * down, base[1] + 5 * right), (base[0] - 5 * down, base[1] - 5 * right)]
    head = {"line": "head", "refusal": "refusalhead"}[kind]
    return ['<polyline points="%s" class="%s"/>' % (line, kind), '<polygon points="%s" class="%s"/>' % (" ".join("%d,%d" % corner for corner in corners), head)]


def config():
    out = [text(24, 38, "You edit", "text bold"), box(20, 50, 220, 134), text(34, 74, "ConfigMap mps-config", "text bold")]
    code = ["any: |", "  sharing:", "    mps: …", "      replicas: 4 → 8"]
    out += [text(34, 100 + 20 * number, line, "text code") for number, line in enumerate(code)]
    out += [box(20, 204, 220, 66), text(34, 228, "SharingPolicy (optional)", "text bold"), text(34, 252, "nodes, profile, budget, windows", "soft small")]
    return out


def operator():
    out = [box(330, 50, 290, 220, "operator"), text(344, 74, "gpu-sharing-operator", "text bold")]
    y = 104
    for step in STEPS:
        for line in step:
            out.append(text(344, y, line))
            y += 20
        y += 6
    return out


def nodes():
    out = [text(730, 38, "GPU nodes", "text bold")]
    for number, (name, offer, state, kind) in enumerate(NODES):
        y = 50 + 57 * number
        out += [box(730, y, 210, 49), text(744, y + 20, name, "text bold"), text(926, y + 20, state, kind, "end"), text(744, y + 39, offer, "soft small")]
    return out


def draw():
    out = ['<svg xmlns="http://www.w3.org/2000/svg" viewBox="0 0 %d %d" width="%d" height="%d" role="img" aria-labelledby="title description">' % (WIDTH, HEIGHT, WIDTH, HEIGHT),
           '<title id="title">%s</title>' % escape(TITLE), '<desc id="description">%s</desc>' % escape(DESCRIPTION), *style(),
           '<rect width="%d" height="%d" class="page"/>' % (WIDTH, HEIGHT), *config(), *operator(), *nodes()]
    out += [*arrow([(240, 117), (330, 117)]), text(285, 106, "an edit", "soft small", "middle"), *arrow([(240, 237), (330, 237)])]
    out += [*arrow([(620, 104), (730, 104)]), text(675, 93, "replaces pods,", "soft small", "middle"), text(675, 124, "node by node", "soft small", "middle")]
    out += [*arrow([(730, 212), (620, 212)]), text(675, 201, "labels,", "soft small", "middle"), text(675, 232, "allocatable", "soft small", "middle")]
    out += [*arrow([(475, 270), (475, 300), (6, 300), (6, 33), (17, 33)], "refusal"),
            text(244, 318, "an invalid profile: key, line and reason; no pod restarts", "bad small", "middle")]
    return "\n".join([*out, "</svg>"]) + "\n"


def main():
    if sys.argv[1:] == ["--check"]:
        same = PICTURE.is_file() and PICTURE.read_text(encoding="utf-8") == draw()
        print("1 passed, 0 failed" if same else f"{PICTURE.name} is not what this script draws: run docs/picture.py\n0 passed, 1 failed")
        sys.exit(0 if same else 1)
    if sys.argv[1:]:
        sys.exit(__doc__)
    PICTURE.write_text(draw(), encoding="utf-8")


if __name__ == "__main__":
    main()
