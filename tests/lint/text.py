#!/usr/bin/python3
"""What can be seen in the text of tracked files, without a compiler.

Banned functions, unfinished marks, lengths of functions and files, paths of
one machine. Usage: text.py FILE...
"""

import re
import sys

FUNCTION_LINES = 70
FILE_LINES = 500

# Unbounded, not thread-safe, or done here by other means (posix_spawn, pid
# and deadline instead of a sleep).
BANNED = re.compile(
    r"(?<![\w.>])(strcpy|strcat|stpcpy|sprintf|vsprintf|gets|strtok|alloca"
    r"|atoi|atol|atoll|atof|system|popen|fork|vfork|sleep|usleep"
    r"|gmtime|localtime|ctime|asctime|inet_ntoa|gethostbyname|rand|tmpnam"
    r"|mktemp|getwd|setenv|putenv)\s*\(")
UNFINISHED = re.compile(
    r"\b(T[O]DO|F[I]XME|X[X]X)\b|^\s*#\s*i[f] 0\b|not imp[l]emented")
MACHINE_PATH = re.compile(r"(?<![\w/.\-}@])/(work|farm|root|home/[a-z]+)/")
COMMENT_OR_STRING = re.compile(
    r'/\*.*?\*/|//[^\n]*|"(?:\\.|[^"\\\n])*"|\'(?:\\.|[^\'\\\n])+\'', re.S)


def blanked(text):
    """C without its comments and strings, line numbers kept."""
    return COMMENT_OR_STRING.sub(
        lambda m: re.sub(r"[^\n]", " ", m.group()), text)


def functions(lines):
    """(line, length) of each function body in KNF: braces in column 0."""
    start = None
    for number, line in enumerate(lines, 1):
        if line.startswith("{"):
            start = number
        elif line.startswith("}") and start:
            yield start, number - start - 1
            start = None


def check_c(path, text):
    lines = blanked(text).split("\n")
    for number, line in enumerate(lines, 1):
        for name in BANNED.findall(line):
            yield "%s:%d: %s is banned" % (path, number, name)
    for number, length in functions(lines):
        if length > FUNCTION_LINES:
            yield "%s:%d: a function of %d lines" % (path, number, length)
    if len(lines) - 1 > FILE_LINES:
        yield "%s: %d lines" % (path, len(lines) - 1)


def check(path, text):
    for number, line in enumerate(text.split("\n"), 1):
        if UNFINISHED.search(line):
            yield "%s:%d: unfinished" % (path, number)
        if MACHINE_PATH.search(line):
            yield "%s:%d: a path of one machine" % (path, number)
    if path.startswith("src/") and path.endswith((".c", ".h")):
        yield from check_c(path, text)


def main(paths):
    said = []
    for path in paths:
        try:
            with open(path, encoding="utf-8") as f:
                said += check(path, f.read())
        except (UnicodeDecodeError, IsADirectoryError, FileNotFoundError):
            pass  # no text, or gone from the tree
    print("\n".join(said), end="\n" if said else "")
    return bool(said)


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
