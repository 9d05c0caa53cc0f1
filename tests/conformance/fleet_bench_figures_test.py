#!/usr/bin/env python3
"""What `./dev bench fleet --real` makes of an audit log and of figures, on made-up ones: no API server, no client."""
import json
import os
import sys
import tempfile
import unittest
import xml.dom.minidom

PROJECT = os.path.dirname(os.path.dirname(os.path.dirname(os.path.abspath(__file__))))
sys.path.insert(0, os.path.join(PROJECT, "bench/real"))

import audit_log  # noqa: E402
import plot  # noqa: E402
import report  # noqa: E402


def audit_line(agent, name, code, received, answered, resource="nodes"):
    stamp = "2026-01-01T00:00:%09.6fZ"
    return json.dumps({"stage": "ResponseComplete", "verb": "patch", "userAgent": agent, "responseStatus": {"code": code},
                       "objectRef": {"resource": resource, "name": name}, "requestReceivedTimestamp": stamp % received,
                       "stageTimestamp": stamp % answered}) + "\n"


class TimesOfWrites(unittest.TestCase):
    def read(self, *lines):
        with tempfile.NamedTemporaryFile("w+") as file:
            log = audit_log.AuditLog(file.name)
            self.addCleanup(log.close)
            writes = audit_log.NodeWrites(log, "peer")
            file.write("".join(lines))
            file.flush()
            return writes.read()

    def test_from_the_first_request_to_the_last_answer(self):
        writes = self.read(audit_line("peer", "a", 200, 1, 2), audit_line("peer", "b", 200, 1.5, 4))
        self.assertAlmostEqual(writes.seconds(), 3)

    def test_a_second_write_of_a_node_is_counted_and_not_timed(self):
        writes = self.read(audit_line("peer", "a", 200, 1, 2), audit_line("peer", "a", 200, 8, 12))
        self.assertAlmostEqual(writes.seconds(), 1)
        self.assertEqual(writes.succeeded, 2)

    def test_conflicts_and_failures_write_no_node(self):
        writes = self.read(audit_line("peer", "a", 409, 1, 2), audit_line("peer", "b", 500, 1, 2))
        self.assertEqual((writes.conflicts, writes.failed, writes.first), (1, 1, {}))

    def test_other_clients_and_other_kinds_are_left_out(self):
        writes = self.read(audit_line("h2load", "a", 200, 1, 2), audit_line("peer", "a", 200, 1, 2, "leases"))
        self.assertEqual(writes.succeeded, 0)

    def test_a_line_that_is_half_written_is_read_later(self):
        with tempfile.NamedTemporaryFile("w+") as file:
            log = audit_log.AuditLog(file.name)
            self.addCleanup(log.close)
            writes = audit_log.NodeWrites(log, "peer")
            line = audit_line("peer", "a", 200, 1, 2)
            file.write(line[:20])
            file.flush()
            self.assertEqual(writes.read().succeeded, 0)
            file.write(line[20:])
            file.flush()
            self.assertEqual(writes.read().succeeded, 1)


def a_round(operator_s, sender_s):
    return {"sender": {"write_s": sender_s, "write_cpu_s": 1.0}, "curl": {"download_s": 2.0},
            "operator": {"write_s": operator_s, "write_cpu_s": 2.0, "synced_s": 1.0},
            "peer-32": {"write_s": 30.0, "write_cpu_s": 4.0}}


class Ratios(unittest.TestCase):
    def test_both_figures_are_of_the_same_round(self):
        result = {"rounds": [a_round(10.0, 20.0), a_round(30.0, 10.0)]}
        self.assertEqual(report.ratios(result, "operator", "write_s", "sender"), [0.5, 3.0])

    def test_rounds_without_the_figure_are_left_out(self):
        result = {"rounds": [a_round(10.0, 20.0), {"sender": {}, "operator": {"write_s": 1.0}}]}
        self.assertEqual(report.ratios(result, "operator", "write_s", "sender"), [0.5])

    def test_several_rounds_show_median_and_range(self):
        self.assertEqual(report.spread([3.0, 1.0, 2.0], 1), "2.0 (1.0-3.0)")
        self.assertEqual(report.spread([2.0], 1), "2.0")
        self.assertEqual(report.spread([], 1), "-")


class Table(unittest.TestCase):
    def test_a_figure_that_was_not_measured_is_a_dash(self):
        text = report.table({"nodes": 5, "node_bytes": 27000, "server": "v1", "cpus": 2, "operator_mb": 8.0, "peer_mb": 30.0,
                             "rounds": [a_round(11.0, 10.0)], "growth": []})
        row = next(line for line in text.splitlines() if line.startswith("label on every Node: first PATCH"))
        self.assertEqual(row.split("s", 1)[1].split()[-4:], ["11.0", "-", "30.0", "10.0"])
        self.assertRegex(text, r"(?m)over the sender without a watch +1\.10$")
        self.assertRegex(text, r"beside the operator's watch +- +target: 1\.08")


class Plot(unittest.TestCase):
    def test_each_client_has_a_point_for_each_size_and_figure(self):
        rows = [{"nodes": size, "client": client, "heartbeat_peak_mib": 30.0, "synced_cpu_s": 0.2, "heartbeat_cpu_ms": 0.0}
                for size in (1000, 5000) for client in plot.CLIENTS]
        text = plot.draw({"growth": rows, "node_bytes": 27000, "server": "v1.36.3", "cpus": 2})
        picture = xml.dom.minidom.parseString(text)
        self.assertEqual(len(picture.getElementsByTagName("circle")), 2 * len(plot.CLIENTS) * len(plot.PANELS))


if __name__ == "__main__":
    unittest.main()
