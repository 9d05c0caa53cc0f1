"""Maintenance windows, as far as the stories use them: a daily minute and hour, a duration, a time zone."""
import re
from datetime import datetime, timedelta, timezone
from zoneinfo import ZoneInfo

UNITS = {"h": 3600, "m": 60, "s": 1, "ms": 0.001}


def seconds_of(duration):
    """Seconds of a Go duration, as 1h30m."""
    return sum(float(count) * UNITS[unit] for count, unit in re.findall(r"([0-9.]+)(ms|h|m|s)", duration))


def is_open(window, moment):
    """Whether a window is open at that moment (seconds since 1970). None: its cron expression is none of a daily one."""
    fields = str(window.get("cron", "")).split()
    if len(fields) != 5 or fields[2:] != ["*", "*", "*"] or not (fields[0].isdigit() and fields[1].isdigit()):
        return None
    zone = ZoneInfo(window["timeZone"]) if window.get("timeZone") else timezone.utc
    now = datetime.fromtimestamp(moment, zone)
    opened = now.replace(hour=int(fields[1]), minute=int(fields[0]), second=0, microsecond=0)
    if opened > now:
        opened -= timedelta(days=1)
    return (now - opened).total_seconds() < seconds_of(str(window.get("duration", "")))


def all_closed(windows, moment):
    """There are windows, and every one of them is certainly closed."""
    return bool(windows) and all(is_open(window, moment) is False for window in windows)
