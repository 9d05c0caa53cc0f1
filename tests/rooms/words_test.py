#!/usr/bin/env python3
"""Checks that one word has one meaning: words_test.py [PROJECT].

Words that the vocabulary of docs/concepts.md has replaced must not return: in identifiers, messages and comments of the
product, and in docs/. They are whole words: "_" separates words as a blank does, and a line break as well.

In the tests, the chart, the scripts and the benches, the words of IN_SENTENCES must not occur in sentences: in comments,
documents and manifests, and in quoted texts of several words. Identifiers are free there.

Those of IN_MESSAGES must not occur in what people read: quoted texts of several words of the product, and docs/.
"""
import os
import re
import sys

TOP = ["k8sclient", "reconcilers", "controller", "docs"]
ENDINGS = (".h", ".cc", ".md")
SENTENCES_TOP = ["tests", "charts", "crds", "bench", "image", "cmake", "dev"]

# What must not occur -> what to write. A blank stands for whatever separates two words; matched in any case.
INSTEAD = {
    r"may not": "must not, is not allowed to, cannot, or might not",
    r"flight|in ?flight": "in progress",
    r"turned|turning|retargeted": "what happens to the node: it is in a change, it has a new target",
    r"sick|unwell": "missing devices",
    r"ailments?|ailing|heal|heals|healed|healing|healer": "pod fault, remediation",
    r"situation|to_record|first_seen": "phase",
    r"operand ?sets?": "plugin installation",
    r"units?": "rollout",
    r"beats?|beaten": "overrides, overridden",
    r"gate of|mates|company": "gate, gang peers",
    r"foresight": "capacity warning",
    r"in the way|who keeps": "blocking pods, blocked by, or the obstacle",
    r"way ?in": "cause of change",
    r"book|odd ones": "cache, reservation audit",
    r"ours|theirs": "the owner's name: the operator, KAI, GFD, a person",
    r"tell|tells|told|telling": "report",
    r"giv(?:e|es|en|ing) back|gave back": "uncordons and queues again, releases, returns",
    r"puts? off|mends?|mended|be had|done with|h(?:o|e)ld(?:s|ing)? (?:back|up)": "a standard verb",
    r"for ever": "forever",
    r"detached": "k8s::kRethrow: asio::detached drops what a coroutine throws",
    r"of which|what stands|nobody waits for": "a sentence that names the thing",
    r"kailookups|notingtransport|kaichecks|forgone|unjudged|says_nothing|turn_switch|add_once|watchask":
        "the name that replaced it",
}

# Those of them that make a sentence ambiguous or obscure wherever it is.
IN_SENTENCES = ["may not", "for ever", "of which|what stands|nobody waits for", "tell|tells|told|telling"]

# What people read says whether something is allowed, possible or expected.
IN_MESSAGES = {
    r"may": "is allowed to, can, or might",
    r"is no (?:name|fault|canary|percentage|amount|number)|all but that|a look at workloads|somebody else than":
        "is not a, all except, checks, by another one than",
    r"let (?:the|that|its) label name|can be from before|the key before|carries slices":
        "point the label at, might be outdated, the previous key, has room for",
}

# Where such a word is right: the beginning of a path, what the line contains (a regular expression), and why.
ALLOWED = [
    ("k8sclient/transport/", r"[Ff]light", "HTTP requests that have no answer yet, not nodes"),
    ("controller/config/options.", r"flight", "the public setting max-in-flight, which limits write requests"),
    ("controller/runtime/", r"[Ff]light", "write requests that have no answer yet, not nodes"),
    ("controller/serving/metrics_catalog.cc", r"gpusharing_writes_in_flight", "a public metric of write requests"),
    ("controller/writes/executor.", r"flight", "write requests that have no answer yet, not nodes"),
    ("tests/sim/apiserver/", r"\"[^\"]*may not", "messages of the real API server"),
    ("tests/sim/story/", r"\b[Tt]old\b|\b[Tt]ells?\b|\btelling\b|tell_short", "stories are told"),
    ("k8sclient/value/error.h", r"asio::detached", "why it is not used"),
    ("docs/", r"max-in-flight|writes_in_flight", "the public setting and the public metric"),
    ("k8sclient/value/time.cc", r"[Uu]nit", "units of time"),
    ("reconcilers/profile/", r"[Uu]nit", "units of durations and quantities, and in names of MIG profiles"),
    ("reconcilers/reasons/codes_checked", r"[Uu]nit", "units of durations and of memory"),
    ("reconcilers/kai/pod_annotations.cc", r"without a unit", "units of memory"),
    ("controller/config/options.h", r"unit and range", "units of a setting"),
    ("docs/codes.md", r"[Uu]nit", "units of durations and of memory"),
    ("reconcilers/node/assess.cc", r"is_still_ours", "nodes that the operator still changes although nos partitions them"),
]

GAP = r"[\s_\"/#*-]+"
# The rules above, tried out: text, and the words that are found.
EXAMPLES = [
    ("The node may not start.", ["may not"]),
    ("It may\n  // not start.", ["may\n  // not"]),
    ('"it may "\n    "not start"', ['may "\n    "not']),
    ("It may start; not now.", []),
    ("int nodes_in_flight = 0;", ["in_flight"]),
    ("preflight(), inFlight()", ["inFlight"]),
    ("Communities and unity", []),
    ("yours, ours", ["ours"]),
    ("KaiLookups found; kai_lookups(); first seen, first_seen", ["KaiLookups", "first_seen"]),
]


QUOTED = r'"(?:[^"\\\n]|\\.)*"'
EVERYTHING = re.compile(r"[\s\S]+")
SLASHES = re.compile(r"//[^\n]*|" + QUOTED)
HASHES = re.compile(r'"""[\s\S]*?"""|(?<!\S)#[^\n]*|' + QUOTED)
# Where a file has its sentences, by the end of its name.
SENTENCES = {".md": EVERYTHING, ".yaml": EVERYTHING, ".tpl": EVERYTHING, ".h": SLASHES, ".cc": SLASHES, ".py": HASHES,
             ".sh": HASHES, ".txt": HASHES, ".cmake": HASHES, "dev": HASHES}
# The same, tried out: the name of a file, its text, and the words that are found.
SENTENCE_EXAMPLES = [
    ("a.cc", "bool told = f();  // It may\n  // not start.", ["may\n  // not"]),
    ("a.cc", 'EXPECT_EQ(told("tell"), 1) << "nobody is told";', ["told"]),
    ("a.py", 'def told():\n    """What is told\n    for ever."""\n    # told\n', ["told", "for ever", "told"]),
    ("a.yaml", "seen: each of which is lost\n", ["of which"]),
    ("a.sh", 'tell "$told" # It is in flight.\n', []),
]


def messages_of(path, text):
    """What people read of it: its quoted texts; all of a document."""
    if path.endswith(".md"):
        return text
    return "".join(re.sub(r"\S", "\0", part) if part.startswith("//") else part
                   for part in re.split(r"(//[^\n]*)", sentences_of(path, text)))


def pattern(chosen):
    """Words of such a table as one expression, with a group for each."""
    parts = []
    for words in chosen:
        spaced = words.replace(" ?", "\0").replace(" ", GAP).replace("\0", "(?:%s)?" % GAP)
        parts.append("(%s)" % spaced)
    return re.compile(r"(?<![A-Za-z0-9])(?:%s)(?![A-Za-z0-9])" % "|".join(parts), re.IGNORECASE)


def finder(instead, chosen):
    """A function from a text to all its places that have such words, as (line, the words, what to write)."""
    words = pattern(chosen)
    return lambda text: [(text.count("\n", 0, found.start()) + 1, found.group(0), instead[chosen[found.lastindex - 1]])
                         for found in words.finditer(text)]


found_in = finder(INSTEAD, list(INSTEAD))
found_in_sentences = finder(INSTEAD, IN_SENTENCES)
found_in_messages = finder(IN_MESSAGES, list(IN_MESSAGES))


def sentences_of(path, text):
    """The text with everything else blackened, so that lines keep their numbers."""
    out, end = [], 0
    kind = next(kind for ending, kind in SENTENCES.items() if path.endswith(ending))
    for sentence in kind.finditer(text):
        if re.fullmatch(r'"\S*"', sentence.group(0)):
            continue  # One word: an identifier, a path or a value.
        out += [re.sub(r"\S", "\0", text[end:sentence.start()]), sentence.group(0)]
        end = sentence.end()
    return "".join(out) + re.sub(r"\S", "\0", text[end:])


def check_the_rules():
    """How many examples are judged otherwise."""
    wrong = 0
    judged = [(text, expected, found_in(text)) for text, expected in EXAMPLES]
    judged += [(text, expected, found_in_sentences(sentences_of(path, text)))
               for path, text, expected in SENTENCE_EXAMPLES]
    for text, expected, places in judged:
        found = [words for _, words, _ in places]
        if found != expected:
            wrong += 1
            print("words_test: finds %r, not %r, in\n%s" % (found, expected, text))
    return wrong


def files_below(root, tops, endings):
    for top in tops:
        if os.path.isfile(os.path.join(root, top)):
            yield top
        for folder, _, files in sorted(os.walk(os.path.join(root, top))):
            for name in sorted(files):
                if name.endswith(endings):
                    yield os.path.relpath(os.path.join(folder, name), root)


def texts(root):
    """Every file that is judged: its path, its lines, and the places that have such words."""
    this = os.path.join("tests", "rooms", os.path.basename(__file__))
    for path in files_below(root, TOP, ENDINGS):
        text = read(root, path)
        yield path, text.split("\n"), found_in(text) + found_in_messages(messages_of(path, text))
    for path in files_below(root, SENTENCES_TOP, tuple(SENTENCES)):
        if path == this:
            continue  # It has the words themselves.
        text = read(root, path)
        yield path, text.split("\n"), found_in_sentences(sentences_of(path, text))


def read(root, path):
    with open(os.path.join(root, path), encoding="utf-8") as source:
        return source.read()


def main(root):
    wrong = check_the_rules()
    count, used = 0, set()
    for path, lines, places in texts(root):
        count += 1
        for line, words, instead in places:
            reasons = [rule for rule in ALLOWED if path.startswith(rule[0]) and re.search(rule[1], lines[line - 1])]
            used.update(reasons)
            if not reasons:
                wrong += 1
                print("FAILED: %s:%d: \"%s\": write %s" % (path, line, " ".join(words.split()), instead))
    for rule in ALLOWED:
        if rule not in used:
            wrong += 1
            print("FAILED: %s: nothing there needs the exception %r: take it out of ALLOWED" % rule[:2])
    print("%d files, %d mistakes" % (count, wrong))
    return 1 if wrong or count < 1000 else 0


if __name__ == "__main__":
    sys.exit(main(sys.argv[1] if len(sys.argv) > 1 else os.path.join(os.path.dirname(os.path.abspath(__file__)), "..", "..")))
