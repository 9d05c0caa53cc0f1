#!/usr/bin/env python3
"""`./dev bench fleet --real` with a few Nodes: fleet_bench_test.py OPERATOR.

The figures of so small a fleet mean nothing. This shows that the bench measures what it says: every client writes every
Node, as often as its row says, and no figure of the table is missing.
"""
import json
import os
import subprocess
import sys
import tempfile
import unittest

PROJECT = os.path.dirname(os.path.dirname(os.path.dirname(os.path.abspath(__file__))))
sys.path.insert(0, os.path.join(PROJECT, "bench/real"))

import plot  # noqa: E402
import report  # noqa: E402

NODES = 12
OPERATOR = sys.argv.pop(1) if len(sys.argv) > 1 else None


class OneSmallRun(unittest.TestCase):
    @classmethod
    def setUpClass(cls):
        peer = subprocess.run([os.path.join(PROJECT, "bench/peer/build.sh")], check=True, stdout=subprocess.PIPE, text=True)
        with tempfile.TemporaryDirectory() as folder:
            figures = os.path.join(folder, "figures.json")
            done = subprocess.run([os.path.join(PROJECT, "bench/real/fleet.py"), "--operator", OPERATOR, "--peer",
                                   peer.stdout.strip(), "--nodes", str(NODES), "--rounds", "1", "--quiet-seconds", "3",
                                   "--idle-seconds", "1", "--json", figures], stdout=subprocess.PIPE, text=True)
            cls.table, cls.status, cls.result = done.stdout, done.returncode, {}
            if done.returncode == 0:
                with open(figures) as file:
                    cls.result = json.load(file)

    def setUp(self):
        self.assertEqual(self.status, 0, "the bench failed, its output is above")
        self.round = self.result["rounds"][0]

    def test_every_client_writes_every_node(self):
        self.assertEqual({name: self.round[name]["patches_per_node"] for name in report.CLIENTS},
                         {"operator": 2, "peer-1": 1, "peer-32": 1})
        self.assertEqual({name: self.round[name]["failed"] for name in report.CLIENTS},
                         {"operator": 0, "peer-1": 0, "peer-32": 0})

    def test_a_quiet_fleet_gets_no_write(self):
        self.assertEqual(self.round["operator"]["quiet_writes"], 0)
        self.assertGreater(self.round["operator"]["quiet_lease_writes"], 0)

    def test_no_figure_of_the_table_is_missing(self):
        missing = [label for label, figure, _, _ in report.FIGURES if not report.values(self.result, "operator", figure)]
        self.assertEqual(missing, [])
        for label, found, _, _ in report.figures_over(self.result):
            self.assertEqual(len(found), 1, label)

    def test_nodes_are_as_large_as_those_of_production(self):
        self.assertGreater(self.result["node_bytes"], 25_000)
        self.assertLess(self.result["node_bytes"], 29_000)

    def test_the_plot_has_a_point_for_each_client_and_figure(self):
        self.assertEqual(plot.draw(self.result).count("<circle"), len(plot.PANELS) * len(plot.CLIENTS))


if __name__ == "__main__":
    if OPERATOR is None:
        sys.exit(__doc__)
    result = unittest.main(exit=False, verbosity=2).result
    bad = len(result.failures) + len(result.errors)
    print("%d passed, %d failed" % (result.testsRun - bad, bad))
    sys.exit(1 if bad else 0)
