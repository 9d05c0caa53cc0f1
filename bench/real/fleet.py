#!/usr/bin/env python3
"""`./dev bench fleet --real`: the operator, a Go controller for the same job and an ideal sender, side by side on a real
etcd and kube-apiserver, in one run.

    fleet.py --operator BINARY --peer BINARY [--nodes N] [--rounds R] [--json FILE]

Each round runs every client once, alone. Nodes, pods and the audit log that times the writes are the same for all.
"""
import argparse
import json
import os
import shutil
import signal
import subprocess
import sys
import tempfile

import measurements
import processes
import report
from api_server import ApiServer
from audit_log import AuditLog
from clients import Operator, Peer, Sender, WatchReader, download
from fleet_objects import Fleet

GROWTH = (1000, 2000, 5000, 10000, 20000, 50000)


def arguments():
    parser = argparse.ArgumentParser(prog="./dev bench fleet --real", description=__doc__.split("\n\n")[0])
    parser.add_argument("--operator", required=True, help=argparse.SUPPRESS)
    parser.add_argument("--peer", required=True, help=argparse.SUPPRESS)
    parser.add_argument("--nodes", type=int, default=5000, help="Nodes, with one operand pod each (default %(default)s)")
    parser.add_argument("--rounds", type=int, default=3,
                        help="how often each client writes its label (default %(default)s); 0: only --growth is measured")
    parser.add_argument("--quiet-seconds", type=float, default=60, help="how long nothing happens (default %(default)s)")
    parser.add_argument("--idle-seconds", type=float, default=3,
                        help="pause before memory and CPU of an idle client are read (default %(default)s)")
    parser.add_argument("--growth", type=int, nargs="*", metavar="N",
                        help="also measure start and memory with so many Nodes (default: %s, as far as below --nodes)" %
                        ", ".join(map(str, GROWTH)))
    parser.add_argument("--json", metavar="FILE", help="write all figures there, after each size and each round")
    parser.add_argument("--keep", action="store_true", help="keep the folder with the logs of all programs")
    return parser.parse_args()


def say(text):
    print("fleet.py: " + text, file=sys.stderr, flush=True)


def stripped_mb(binary, folder):
    """The size of a program without its symbols."""
    copy = os.path.join(folder, "stripped")
    subprocess.run(["strip", "-o", copy, binary], check=True)
    return os.path.getsize(copy) / 1e6


class Bench:
    """One run. `result` is what --json prints."""

    def __init__(self, options, api, folder):
        self.options, self.api = options, api
        self.folder = folder
        self.fleet = Fleet(api)
        self.operator = Operator(options.operator, api, self.fleet, folder)
        self.peers = [Peer(options.peer, workers, api, self.fleet, folder) for workers in (1, 32)]
        self.sender = Sender(api, self.fleet, folder)
        self.result = {"growth": [], "rounds": []}

    def run(self):
        self.fleet.install()
        self.log = AuditLog(self.api.audit_log())
        sizes = self.options.growth
        if sizes is None:
            sizes = [size for size in GROWTH if size < self.options.nodes]
        for size in sorted(set(sizes) | {self.options.nodes}):
            self.grow(size)
            self.describe()
        if self.options.rounds > 0:
            self.operator.separate_patches()
        for number in range(self.options.rounds):
            say("round %d of %d" % (number + 1, self.options.rounds))
            self.result["rounds"].append(self.round(last=number + 1 == self.options.rounds))
            self.describe()

    def describe(self):
        """What has been measured so far, in --json's file: a machine may have no memory for the largest size."""
        self.result.update({
            "nodes": self.fleet.size, "node_bytes": self.fleet.node_bytes, "server": self.api.version(),
            "cpus": os.cpu_count(), "operator_mb": stripped_mb(self.options.operator, self.folder),
            "peer_mb": stripped_mb(self.options.peer, self.folder)})
        if self.options.json:
            with open(self.options.json, "w") as file:
                json.dump(self.result, file, indent=1)
                file.write("\n")

    def grow(self, size):
        """Start, memory and heartbeats with so many Nodes. The operator records its baseline here, before the rounds."""
        say("creating Nodes and pods, up to %d" % size)
        self.fleet.grow(size)
        for client in (self.operator, self.peers[1]):
            # Once before it is measured: the server's caches are warm then, and the operator has its record.
            measurements.start(client)
            measurements.settle(client, self.log)
            client.program.stop()
            figures = measurements.start(client)
            figures.update(measurements.heartbeats(client, self.sender, self.fleet))
            figures["heartbeat_peak_mib"] = client.program.memory()[1]
            client.program.stop()
            self.result["growth"].append({"nodes": size, "client": client.name, **figures})

    def round(self, last):
        out = {}
        took, cpu, size = download(self.api, self.folder)
        out["curl"] = {"download_s": took, "download_cpu_s": cpu, "download_bytes": size}
        out["sender"] = measurements.write_by_sender(self.sender, self.fleet, self.log)
        if last:
            out["curl"].update(self.read_watch())
        for client in (self.operator, *self.peers):
            out[client.name] = self.measure(client, last and client is not self.peers[0])
        return out

    def read_watch(self):
        """What the heartbeats cost a client that only reads them."""
        reader = WatchReader(self.api, self.folder)
        reader.start()
        figures = measurements.heartbeats(reader, self.sender, self.fleet)
        reader.program.stop()
        return figures

    def measure(self, client, all_of_it):
        say("%s" % client.name)
        figures = measurements.start(client)
        figures.update(measurements.write_label(client, self.fleet, self.log))
        if client is self.operator:
            # What our watch costs the server: the sender's time while it is open.
            figures["sender_write_s"] = measurements.write_by_sender(self.sender, self.fleet, self.log)["write_s"]
        if all_of_it:
            figures.update(measurements.heartbeats(client, self.sender, self.fleet))
            figures.update(measurements.scrapes(client))
            figures.update(measurements.quiet(client, self.log, self.options.quiet_seconds))
            figures.update(measurements.failover(client, self.api, self.log))
        client.program.stop()
        return figures


def main():
    options = arguments()
    if options.nodes < 1 or options.rounds < 0:
        sys.exit("fleet.py: --nodes must be 1 or more, and --rounds 0 or more")
    if any(not 1 <= size <= options.nodes for size in options.growth or []):
        sys.exit("fleet.py: every size of --growth must be between 1 and --nodes (%d)" % options.nodes)
    measurements.IDLE_SECONDS = options.idle_seconds
    signal.signal(signal.SIGTERM, lambda *_: sys.exit(143))
    folder = tempfile.mkdtemp(prefix="gso-fleet-bench-")
    api = ApiServer(os.path.join(folder, "cluster"))
    bench = Bench(options, api, folder)
    try:
        api.up()
        bench.run()
    finally:
        processes.stop_all()
        api.down()
        if options.keep:
            say("logs are in " + folder)
        else:
            shutil.rmtree(folder)
    print(report.table(bench.result))


if __name__ == "__main__":
    main()
