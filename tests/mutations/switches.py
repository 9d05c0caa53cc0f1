"""Puts many seeded mistakes into one source, each behind a switch (switch.h), so that one build is enough for all of them.

A function with a mistake gets its body twice: `{ if (is_made(7)) { the body with mistake 7 } else { the body } }`. Used by mutate.py.
"""
import re

MOST = 8192  # As in switch.h.
LITERAL = re.compile(r'R"(\w*)\(.*?\)\1"|"(?:\\.|[^"\\\n])*"|\'(?:\\.|[^\'\\\n])*\'|//[^\n]*|/\*.*?\*/|^[ \t]*#[^\n]*', re.S | re.M)
NO_FUNCTION = re.compile(r"(?:namespace|class|struct|enum|union|extern)\b")
# What stands between the parameters and the body of a function.
BEFORE_BODY = re.compile(r"(?:const|noexcept|override|final|->.*|\s|requires.*)*$")
MADE = re.compile(r"if \(::gso_mistakes::is_made\((\d+)\)\) /\*(\d+)\*/ .*? /\*end \2\*/ else ", re.S)


def blackened(text):
    """The text without what is in literals, and without comments and directives, with the same positions."""
    text = re.sub(r"(?<=\d)'(?=\d)", "_", text)  # 1'000
    return LITERAL.sub(lambda found: re.sub(r"[^\n]", "_" if found.group()[0] in "R\"'" else " ", found.group()), text)


def begins_function(header):
    """Whether a brace after this text begins a function that can be copied: none with initialisers of members."""
    header = header.strip()
    if ")" not in header or NO_FUNCTION.match(header) or re.search(r"\)\s*:\s[^)]*$|[,:]\s*\w+$", header):
        return False
    rest = header[header.rfind(")") + 1:]
    return bool(BEFORE_BODY.match(rest.strip())) and not re.search(r"(?<![=!<>])=(?!=)[^)]*$", header)


def bodies(text):
    """(position of its opening brace, of its closing one) of each outermost function."""
    out, stack, last, within = [], [], 0, None
    text = blackened(text)
    for at, letter in enumerate(text):
        if letter == "{":
            if within is None and begins_function(text[last:at]):
                within = len(stack)
            stack.append(at)
        elif letter == "}" and stack:
            begin = stack.pop()
            if within == len(stack):
                out.append((begin, at))
                within = None
        if letter in "{};":
            last = at + 1
    return out


def difference(before, after):
    """(how much both have in common at the beginning, and at the end)."""
    begin = 0
    while begin < min(len(before), len(after)) and before[begin] == after[begin]:
        begin += 1
    end = 0
    while end < min(len(before), len(after)) - begin and before[-1 - end] == after[-1 - end]:
        end += 1
    return begin, end


def switched(text, mistakes):
    """The text with all these mistakes, {number: (position, before, after)}, and the numbers of those that are in no function."""
    functions, outside = {}, set()
    found = bodies(text)
    for number, (at, before, after) in mistakes.items():
        begin, end = difference(before, after)
        first, last = at + begin, at + len(before) - end
        body = next((body for body in found if body[0] < first and last <= body[1]), None)
        if body:
            functions.setdefault(body, []).append((number, first, last, after[begin:len(after) - end]))
        else:
            outside.add(number)
    for (begin, end), each in sorted(functions.items(), reverse=True):
        copies = "".join("if (::gso_mistakes::is_made(%d)) /*%d*/ %s /*end %d*/ else " % (
            number, number, text[begin:first] + wrong + text[last:end + 1], number) for number, first, last, wrong in each)
        text = text[:begin] + "{ " + copies + text[begin:end + 1] + " }" + text[end + 1:]
    # No warnings: a mistake leaves things unused.
    return '#pragma GCC system_header\n#include "tests/mutations/switch.h"\n' + text, outside


def without_mistakes_at(text, lines):
    """The text without the mistakes that have one of these lines, and their numbers; all of them where a line has none."""
    starts = [0]
    for line in text.split("\n"):
        starts.append(starts[-1] + len(line) + 1)
    found = list(MADE.finditer(text))
    at_fault = [each for each in found if any(each.start() < starts[line] and starts[line - 1] < each.end() for line in lines)]
    for each in reversed(at_fault or found):
        text = text[:each.start()] + text[each.end():]
    return text, {int(each.group(1)) for each in at_fault or found}
