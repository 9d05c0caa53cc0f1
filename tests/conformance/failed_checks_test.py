#!/usr/bin/env python3
"""What run.sh repeats at its end of the log of a part that failed."""
import pathlib
import subprocess
import unittest

PROGRAM = pathlib.Path(__file__).with_name("failed_checks.awk")


def failed_checks(log: str) -> str:
    return subprocess.run(["awk", "-f", PROGRAM], input=log, capture_output=True, text=True, check=True).stdout


class FailedChecks(unittest.TestCase):
    def test_a_story_is_named_with_its_message(self):
        log = ("✓ killed: The operator is killed again and again (12.0 s)\n"
               "✗ unclean-exits: MPS daemons that are killed are reported (104.0 s)\n"
               "  waited 96.0 s for an Event; but there is no Event MPSUncleanExit\n"
               "1 of 2 stories held, in 116.0 s\n")
        self.assertEqual(failed_checks(log),
                         "✗ unclean-exits: MPS daemons that are killed are reported (104.0 s)\n"
                         "  waited 96.0 s for an Event; but there is no Event MPSUncleanExit\n")

    def test_of_a_long_output_the_first_and_the_last_lines_are_shown(self):
        output = "".join(f"    line {i}\n" for i in range(1, 11))
        log = f"ok         449 ms  before\nFAILED    3588 ms  the chart is installed\n{output}ok  1 ms  after\n"
        self.assertEqual(failed_checks(log),
                         "FAILED    3588 ms  the chart is installed\n    line 1\n    (6 more lines)\n"
                         "    line 8\n    line 9\n    line 10\n")

    def test_each_of_several_failures_has_its_own_lines(self):
        log = ("FAILED      10 ms  one\n    of one\nFAILED      11 ms  two\n    of two\n"
               "S4b  FAILED          30 writes  nothing is disrupted without open watches\n       at a write\n"
               "no line of a failure\n    nor this\n")
        self.assertEqual(failed_checks(log),
                         "FAILED      10 ms  one\n    of one\nFAILED      11 ms  two\n    of two\n"
                         "S4b  FAILED          30 writes  nothing is disrupted without open watches\n"
                         "       at a write\n")

    def test_a_part_that_held_has_none(self):
        self.assertEqual(failed_checks("ok  1 ms  a check\n    not its output\n✓ a story (1.0 s)\n"), "")


if __name__ == "__main__":
    unittest.main()
