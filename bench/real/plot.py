#!/usr/bin/env python3
"""Draws how the operator and the Go controller grow with the fleet: plot.py FIGURES.json > growth.svg"""
import json
import math
import sys

WIDTH, HEIGHT, LEFT, TOP, GAP = 360, 240, 60, 50, 90
CLIENTS = {"operator": ("#0b6e4f", "operator"), "peer-32": ("#b5541c", "Go controller")}
# Title, and the figure on the vertical axis.
PANELS = [("Peak of resident memory, MiB", "heartbeat_peak_mib"), ("CPU from start to synced, s", "synced_cpu_s"),
          ("CPU for each heartbeat, ms", "heartbeat_cpu_ms")]


def ticks(low, high):
    """1, 2 and 5 times powers of ten within the range."""
    found = [factor * 10.0 ** power for power in range(-4, 7) for factor in (1, 2, 5)]
    return [value for value in found if low <= value <= high]


class Axis:
    """A logarithmic axis over these values, from `start` to `end` of the picture."""

    def __init__(self, values, start, end):
        self.low, self.high = min(values) / 1.25, max(values) * 1.25
        self.start, self.end = start, end

    def at(self, value):
        share = math.log(value / self.low) / math.log(self.high / self.low)
        return self.start + share * (self.end - self.start)

    def ticks(self):
        return [(self.at(value), "%g" % value) for value in ticks(self.low, self.high)]


def panel(rows, number, title, figure):
    left = LEFT + number * (WIDTH + GAP)
    bottom = TOP + HEIGHT
    across = Axis([row["nodes"] for row in rows], left, left + WIDTH)
    up = Axis([max(row[figure], 1e-3) for row in rows], bottom, TOP)
    out = ['<text x="%d" y="%d" font-weight="bold">%s</text>' % (left, TOP - 14, title),
           '<rect x="%d" y="%d" width="%d" height="%d" fill="none" stroke="#888"/>' % (left, TOP, WIDTH, HEIGHT)]
    for x, text in across.ticks():
        out.append('<line x1="%.1f" y1="%d" x2="%.1f" y2="%d" stroke="#ddd"/>' % (x, TOP, x, bottom))
        out.append('<text x="%.1f" y="%d" text-anchor="middle">%s</text>' % (x, bottom + 16, text))
    for y, text in up.ticks():
        out.append('<line x1="%d" y1="%.1f" x2="%d" y2="%.1f" stroke="#ddd"/>' % (left, y, left + WIDTH, y))
        out.append('<text x="%d" y="%.1f" text-anchor="end">%s</text>' % (left - 6, y + 4, text))
    out.append('<text x="%d" y="%d" text-anchor="middle">Nodes</text>' % (left + WIDTH / 2, bottom + 34))
    for client, (colour, _) in CLIENTS.items():
        points = [(across.at(row["nodes"]), up.at(max(row[figure], 1e-3))) for row in rows if row["client"] == client]
        line = " ".join("%.1f,%.1f" % point for point in points)
        out.append('<polyline points="%s" fill="none" stroke="%s" stroke-width="2"/>' % (line, colour))
        out += ['<circle cx="%.1f" cy="%.1f" r="3" fill="%s"/>' % (*point, colour) for point in points]
    return out


def draw(result):
    rows = result["growth"]
    width = LEFT + len(PANELS) * (WIDTH + GAP)
    height = TOP + HEIGHT + 90
    out = ['<svg xmlns="http://www.w3.org/2000/svg" viewBox="0 0 %d %d" font-family="sans-serif" font-size="12">' % (width, height),
           '<rect width="%d" height="%d" fill="#fff"/>' % (width, height)]
    for number, (title, figure) in enumerate(PANELS):
        out += panel(rows, number, title, figure)
    for number, (colour, name) in enumerate(CLIENTS.values()):
        x, y = LEFT + number * 140, height - 18
        out.append('<line x1="%d" y1="%d" x2="%d" y2="%d" stroke="%s" stroke-width="2"/>' % (x, y - 4, x + 24, y - 4, colour))
        out.append('<text x="%d" y="%d">%s</text>' % (x + 30, y, name))
    out.append('<text x="%d" y="%d" fill="#555">Nodes of %.0f KB with one operand pod each, kube-apiserver %s, %d cores</text>' %
               (LEFT + 300, height - 18, result["node_bytes"] / 1000, result["server"], result["cpus"]))
    return "\n".join([*out, "</svg>"])


if __name__ == "__main__":
    with open(sys.argv[1]) as file:
        print(draw(json.load(file)))
