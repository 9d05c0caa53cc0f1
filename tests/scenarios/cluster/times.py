"""Moments and durations, as Kubernetes and Go write them."""
import datetime
import re


def seconds(duration):
    """A Go duration such as 1h30m in seconds."""
    if isinstance(duration, (int, float)):
        return duration
    parts = re.findall(r"([0-9.]+)(ms|h|m|s)", duration)
    return sum(float(count) * {"h": 3600, "m": 60, "s": 1, "ms": 0.001}[unit] for count, unit in parts)


def moment(text):
    return datetime.datetime.strptime(text, "%Y-%m-%dT%H:%M:%SZ")


def stamp(when):
    return when.strftime("%Y-%m-%dT%H:%M:%SZ")
