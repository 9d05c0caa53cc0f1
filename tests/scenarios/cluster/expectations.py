"""Expectations of a story: each fails it with what was expected and what was seen instead."""
import json


class Failure(Exception):
    """What was expected, and what was seen instead."""


def expect(what, got, want):
    """Fails unless `got` equals `want`."""
    if got != want:
        raise Failure("expected %s: %s, got %s" % (what, show(want), show(got)))


def expect_that(holds, wanted, got=""):
    """Fails unless `holds`; `wanted` and `got` are for people."""
    if not holds:
        raise Failure("expected %s, got %s" % (wanted, show(got)))


def expect_texts(message, *texts):
    """Fails unless each of the texts is in the message."""
    for text in texts:
        expect_that(text in message, text, message)


def show(value):
    """A value on one line that is not too long for a message."""
    text = value if isinstance(value, str) else json.dumps(value, default=str, sort_keys=True)
    text = text.replace("\n", "\\n")
    return text if len(text) <= 400 else text[:400] + " ..."


def one(names):
    """The only name in a list: which node goes first is the operator's choice."""
    expect_that(len(names) == 1, "exactly one node", names)
    return names[0]
