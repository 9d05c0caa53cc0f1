"""The judge on made-up audit lines: what its tests share."""
import json
import tempfile
import unittest

import judge
from audit_log import read
from made_up_log import OPERATOR, MadeUpLog


def set_on(*path):
    """An edit of an object: the last of the path is put where the others lead."""
    *keys, last, value = path

    def edit(thing):
        for key in keys:
            thing = thing.setdefault(key, {})
        thing[last] = value
    return edit


class JudgedLog(unittest.TestCase):
    def setUp(self):
        self.log = MadeUpLog()

    def judge(self):
        with tempfile.NamedTemporaryFile("w", suffix=".log") as file:
            file.write("\n".join(self.log.lines) + "\n")
            file.flush()
            writes, watches = read(file.name, OPERATOR)
        rules = judge.all_rules(watches)
        judge.judge(writes, rules, OPERATOR)
        return {rule.number: rule for rule in rules}

    def holds(self, *judged):
        rules = self.judge()
        for rule in rules.values():
            self.assertEqual(rule.violations, [])
        for number in judged:
            self.assertGreater(rules[number].total, 0, number)

    def breaks(self, number, text):
        rules = self.judge()
        said = [violation for rule in rules.values() for violation in rule.violations]
        self.assertTrue(rules[number].violations, f"{number} was not broken; broken: {said}")
        self.assertIn(text, "\n".join(rules[number].violations))

    def begin(self, **rollout):
        self.log.install(**rollout)
        self.log.edit()
        return self.log

    def answer_with_metadata_alone(self):
        """As the API server answers the operator's merge patches of Nodes."""
        for i, line in enumerate(self.log.lines):
            event = json.loads(line)
            of_operator = event["user"]["username"] == OPERATOR and event["objectRef"].get("resource") == "nodes"
            if of_operator and event["verb"] == "patch":
                event["responseObject"] = {"kind": "PartialObjectMetadata",
                                           "metadata": event["responseObject"]["metadata"]}
                self.log.lines[i] = json.dumps(event)
