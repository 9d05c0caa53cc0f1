#!/usr/bin/env python3
"""The judge's own maintenance windows: when they are open, by the rules of crontab and of the tz database."""
import sys
import unittest
from datetime import datetime

sys.dont_write_bytecode = True

from windows import all_closed, is_open

# (cron, duration, zone, moment, whether it is open). 2026-03-29 is when Berlin's clocks go from 02:00 to 03:00, and
# 2026-10-25 when they show 02:00 to 03:00 twice.
CASES = (
    ("0 2 * * *", "1h", "", "2026-03-10T02:00:00Z", True),
    ("0 2 * * *", "1h", "", "2026-03-10T01:59:59Z", False),
    ("0 2 * * *", "1h", "", "2026-03-10T03:00:00Z", False),
    ("30 23 * * *", "2h", "", "2026-03-10T01:00:00Z", True),
    ("0 0 * * SAT", "48h", "", "2026-03-15T12:00:00Z", True),
    ("0 0 * * SAT", "48h", "", "2026-03-16T12:00:00Z", False),
    ("0 2 * * *", "1h", "Europe/Berlin", "2026-01-10T01:30:00Z", True),
    ("0 2 * * *", "1h", "Europe/Berlin", "2026-07-10T00:30:00Z", True),
    ("0 2 * * *", "1h", "Europe/Berlin", "2026-07-10T01:30:00Z", False),
    ("30 2 * * *", "1h", "Europe/Berlin", "2026-03-29T00:55:00Z", False),
    ("30 2 * * *", "1h", "Europe/Berlin", "2026-03-29T01:10:00Z", True),
    ("30 2 * * *", "1h", "Europe/Berlin", "2026-03-29T02:05:00Z", False),
    ("30 2 * * *", "30m", "Europe/Berlin", "2026-10-25T00:35:00Z", True),
    ("30 2 * * *", "30m", "Europe/Berlin", "2026-10-25T01:35:00Z", False),
    ("0 22 * * mon-fri", "6h", "America/New_York", "2026-03-07T15:00:00Z", False),
    ("0 22 * * MON-FRI", "6h", "America/New_York", "2026-03-10T03:00:00Z", True),
    ("0 0 * * 7", "1h", "", "2026-03-15T00:10:00Z", True),
    ("0 0 * * 5-7", "1h", "", "2026-03-15T00:10:00Z", True),
    ("0 0 1 * MON", "1h", "", "2026-03-02T00:10:00Z", True),
    ("0 0 1 * MON", "1h", "", "2026-04-01T00:10:00Z", True),
    ("0 0 1 * MON", "1h", "", "2026-04-02T00:10:00Z", False),
    ("*/20 1,3 * * *", "5m", "", "2026-03-10T03:41:00Z", True),
    ("*/20 1,3 * * *", "5m", "", "2026-03-10T02:41:00Z", False),
    ("0 20/2 * * *", "30m", "", "2026-03-10T22:10:00Z", True),
    ("0 20/2 * * *", "30m", "", "2026-03-10T21:10:00Z", False),
    ("0 0 29 2 *", "1h", "", "2028-02-29T00:10:00Z", True),
    ("0 0 31 FEB *", "1h", "", "2026-03-03T00:10:00Z", False),
    # What cannot be read never opens.
    ("0 2 * *", "1h", "", "2026-03-10T02:10:00Z", False),
    ("0 24 * * *", "1h", "", "2026-03-10T02:10:00Z", False),
    ("0 2 * * *", "1h", "Europe/Atlantis", "2026-03-10T02:10:00Z", False),
)


def at(text):
    return datetime.fromisoformat(text.replace("Z", "+00:00")).timestamp()


class WindowsTest(unittest.TestCase):
    def test_each_is_open_when_it_should_be(self):
        for cron, duration, zone, moment, expected in CASES:
            with self.subTest(cron=cron, zone=zone, moment=moment):
                self.assertEqual(is_open({"cron": cron, "duration": duration, "timeZone": zone}, at(moment)), expected)

    def test_one_open_window_of_several_is_enough_and_none_means_always(self):
        night, noon = ({"cron": f"0 {hour} * * *", "duration": "1h"} for hour in (2, 12))
        self.assertFalse(all_closed([night, noon], at("2026-03-10T12:30:00Z")))
        self.assertTrue(all_closed([night, noon], at("2026-03-10T14:30:00Z")))
        self.assertFalse(all_closed([], at("2026-03-10T14:30:00Z")))


if __name__ == "__main__":
    unittest.main()
