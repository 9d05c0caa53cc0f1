"""The table that a run prints."""
import statistics

CLIENTS = ("operator", "peer-1", "peer-32")
TITLES = {"operator": "operator", "peer-1": "Go, 1 worker", "peer-32": "Go, 32 workers", "sender": "sender"}


def values(result, client, figure):
    return [round_[client][figure] for round_ in result["rounds"] if figure in round_.get(client, {})]


def ratios(result, of, figure, over, over_figure=None):
    """Round by round: what both did within the same minutes."""
    return [round_[of][figure] / round_[over][over_figure or figure] for round_ in result["rounds"]
            if figure in round_[of] and (over_figure or figure) in round_[over]]


def spread(found, digits):
    """The median and, of several rounds, the range."""
    if not found:
        return "-"
    text = "%.*f" % (digits, statistics.median(found))
    if len(found) > 1 and min(found) != max(found):
        text += " (%.*f-%.*f)" % (digits, min(found), digits, max(found))
    return text


# Label, figure, digits, and the most that the operator may need with 5,000 Nodes on two cores (None: no target).
FIGURES = [
    ("label on every Node: first PATCH to last, s", "write_s", 1, None),
    ("  client CPU for it, s", "write_cpu_s", 2, None),
    ("  input edited to first PATCH, s", "first_patch_s", 2, None),
    ("  conflicts", "conflicts", 0, None),
    ("start to synced, s", "synced_s", 2, None),
    ("  CPU for it, s", "synced_cpu_s", 2, 0.38),
    ("resident memory, idle after the start, MiB", "resident_mib", 1, 27),
    ("  peak up to then, MiB", "peak_mib", 1, None),
    ("  after the label, MiB", "write_resident_mib", 1, None),
    ("  peak up to then, MiB", "write_peak_mib", 1, 40),
    ("CPU for each heartbeat of a Node, ms", "heartbeat_cpu_ms", 3, 0.11),
    ("quiet time: writes besides the Lease", "quiet_writes", 0, 0),
    ("  CPU in it, s", "quiet_cpu_s", 3, 0.06),
    ("/metrics: CPU of one scrape, ms", "scrape_cpu_ms", 2, 1),
    ("  time of one scrape, ms", "scrape_ms", 2, None),
    ("graceful failover, s", "failover_s", 2, 2),
]
BINARY_MB = 11  # The most that the program may have without its symbols.


def figures_over(result):
    """The figures that are ratios, with digits and what they must not exceed."""
    return [
        ("label on every Node, over the sender without a watch",
         ratios(result, "operator", "write_s", "sender"), 2, None),
        ("  over the sender beside the operator's watch",
         ratios(result, "operator", "write_s", "operator", "sender_write_s"), 2, 1.08),
        ("  what the watch costs the server: that sender, over the one without",
         ratios(result, "operator", "sender_write_s", "sender", "write_s"), 2, None),
        ("  client CPU, over the Go controller's (32 workers)",
         ratios(result, "operator", "write_cpu_s", "peer-32"), 2, 0.42),
        ("  the sender's CPU, over the Go controller's", ratios(result, "sender", "write_cpu_s", "peer-32"), 2, None),
        ("heartbeat of a Node: CPU, over curl that only reads the watch",
         ratios(result, "operator", "heartbeat_cpu_ms", "curl"), 2, 1.45),
        ("start to synced, over curl with the same lists",
         ratios(result, "operator", "synced_s", "curl", "download_s"), 2, 1.0),
        ("  CPU for it, over curl's", ratios(result, "operator", "synced_cpu_s", "curl", "download_cpu_s"), 2, 1.8),
    ]


def compared(result):
    return ["%-68s %-18s %s" % (label, spread(found, digits), "" if most is None else "target: %.2f" % most)
            for label, found, digits, most in figures_over(result)]


def growth(result):
    lines = ["%8s %-16s %10s %8s %12s %10s %15s" %
             ("Nodes", "client", "synced, s", "CPU, s", "resident", "peak, MiB", "heartbeat, ms")]
    for row in result["growth"]:
        lines.append("%8d %-16s %10.2f %8.2f %12.1f %10.1f %15.3f" % (
            row["nodes"], TITLES[row["client"]], row["synced_s"], row["synced_cpu_s"], row["resident_mib"],
            row["heartbeat_peak_mib"], row["heartbeat_cpu_ms"]))
    return lines


def table(result):
    if not result["rounds"]:
        return "\n".join(line.rstrip() for line in growth(result))
    columns = (*CLIENTS, "sender")
    lines = ["%d Nodes of %.1f KB, each with an operand pod; kube-apiserver %s, etcd and all clients on %d cores; %d rounds: "
             "median (range). Targets are for 5,000 Nodes and two cores." % (result["nodes"], result["node_bytes"] / 1000, result["server"], result["cpus"],
                                 len(result["rounds"])), ""]
    lines.append("%-46s" % "" + "".join("%-22s" % TITLES[client] for client in columns) + "target")
    for label, figure, digits, most in FIGURES:
        cells = [spread(values(result, client, figure), digits) for client in columns]
        lines.append("%-46s" % label + "".join("%-22s" % cell for cell in cells) + ("" if most is None else "%g" % most))
    lines.append("%-46s%-22.1f%-66.1f%g" % ("program without symbols, MB", result["operator_mb"], result["peer_mb"], BINARY_MB))
    return "\n".join(line.rstrip() for line in [*lines, "", *compared(result), "", *growth(result)])
