#!/usr/bin/env python3
"""A reader that ends early, as `head -1` does: no message, and exit status 2. A disk that is full gets the message.

usage: closed_pipe_test.py BINARY
"""
import os
import subprocess
import sys
import unittest

BINARY = sys.argv.pop(1)


def run(stdout, *arguments):
    done = subprocess.run([BINARY, *arguments], stdin=subprocess.DEVNULL, stdout=stdout, stderr=subprocess.PIPE, text=True, timeout=60,
                          check=False)
    return done.returncode, done.stderr


class ClosedPipe(unittest.TestCase):
    def test_a_reader_that_has_ended_gets_no_message(self):
        for arguments in (["lint", "--codes"], ["help"], ["completion", "bash"]):
            reader, writer = os.pipe()
            os.close(reader)
            try:
                self.assertEqual(run(writer, *arguments), (2, ""), arguments)
            finally:
                os.close(writer)

    def test_a_disk_that_is_full_is_named(self):
        with open("/dev/full", "wb") as full:
            self.assertEqual(run(full, "lint", "--codes"), (2, "gpu-sharing-operator: the output cannot be written to stdout\n"))

    def test_a_reader_that_stays_gets_everything(self):
        done = subprocess.run([BINARY, "lint", "--codes"], capture_output=True, text=True, timeout=60, check=False)
        self.assertEqual((done.returncode, done.stderr), (0, ""))
        self.assertGreater(len(done.stdout.splitlines()), 10)


if __name__ == "__main__":
    unittest.main()
