"""Maintenance windows: five cron fields, a duration, a time zone. Read from the POSIX rules of crontab, and from the
operator's documents where those leave a choice (docs/sharing-objects.md): nothing here is the operator's code."""
import re
from datetime import datetime, time, timedelta, timezone
from zoneinfo import ZoneInfo, ZoneInfoNotFoundError

UNITS = {"h": 3600, "m": 60, "s": 1, "ms": 0.001}
MONTHS = ("jan", "feb", "mar", "apr", "may", "jun", "jul", "aug", "sep", "oct", "nov", "dec")
WEEKDAYS = ("sun", "mon", "tue", "wed", "thu", "fri", "sat")
ITEM = re.compile(r"(\*|([0-9a-z]+)(?:-([0-9a-z]+))?)(?:/([0-9]+))?")


def seconds_of(duration):
    """Seconds of a Go duration, as 1h30m."""
    return sum(float(count) * UNITS[unit] for count, unit in re.findall(r"([0-9.]+)(ms|h|m|s)", duration))


def values_of(field, least, most, words=()):
    """The values that a cron field names; None where it cannot be read."""
    def number(text):
        value = least + words.index(text) if text in words else int(text) if text.isdigit() else -1
        return value if least <= value <= most else None

    out = set()
    for text in field.lower().split(","):
        item = ITEM.fullmatch(text)
        if item is None:
            return None
        everything, first, last, step = item.groups()
        begin = least if everything == "*" else number(first)
        end = number(last) if last else most if everything == "*" or step else begin
        if begin is None or end is None or end < begin or step == "0":
            return None
        out.update(range(begin, end + 1, int(step or 1)))
    return out


class Cron:
    """A cron expression that can be read."""

    def __init__(self, text):
        fields = text.split()
        if len(fields) != 5:
            raise ValueError(text)
        sets = [values_of(fields[0], 0, 59), values_of(fields[1], 0, 23), values_of(fields[2], 1, 31),
                values_of(fields[3], 1, 12, MONTHS), values_of(fields[4], 0, 7, WEEKDAYS)]
        if None in sets:
            raise ValueError(text)
        self.minutes, self.hours, self.days, self.months, self.weekdays = sets
        self.weekdays = {day % 7 for day in self.weekdays}
        # Where both are restricted, either is enough.
        self.either = not fields[2].startswith("*") and not fields[4].startswith("*")

    def opens_on(self, day):
        by_day, by_weekday = day.day in self.days, day.isoweekday() % 7 in self.weekdays
        return day.month in self.months and (by_day or by_weekday if self.either else by_day and by_weekday)

    def starts_on(self, day):
        if not self.opens_on(day):
            return
        for hour in sorted(self.hours):
            for minute in sorted(self.minutes):
                yield datetime.combine(day, time(hour, minute))


def moment_of(local, zone):
    """When a clock in the zone shows this time first; where it is skipped, when the clock is put forward."""
    moment = local.replace(tzinfo=zone).astimezone(timezone.utc)
    if moment.astimezone(zone).replace(tzinfo=None) == local:
        return moment
    offset = moment.astimezone(zone).utcoffset()
    while (moment - timedelta(minutes=1)).astimezone(zone).utcoffset() == offset:
        moment -= timedelta(minutes=1)
    return moment


def is_open(window, moment):
    """Whether a window is open at that moment (seconds since 1970). One that cannot be read never opens."""
    try:
        cron = Cron(str(window.get("cron", "")))
        zone = ZoneInfo(window.get("timeZone") or "UTC")
    except (ValueError, ZoneInfoNotFoundError):
        return False
    now = datetime.fromtimestamp(moment, timezone.utc)
    duration = timedelta(seconds=seconds_of(str(window.get("duration", ""))))
    earliest, day = (now - duration).astimezone(zone).date() - timedelta(days=1), now.astimezone(zone).date()
    while day >= earliest:
        if any(opened <= now < opened + duration for opened in (moment_of(t, zone) for t in cron.starts_on(day))):
            return True
        day -= timedelta(days=1)
    return False


def all_closed(windows, moment):
    """There are windows, and every one of them is closed."""
    return bool(windows) and not any(is_open(window, moment) for window in windows)
