"""What others make of our headers: the tests' own reader, and npm's."""

import json
import os
import subprocess

from harness.deadline import Deadline
from harness.gateway import ROOT
from harness.structured import parse_list

NPM = os.path.join(ROOT, "build", "parsers")
READ = os.path.join(ROOT, "tests", "parsers", "read.mjs")


def heads(answers):
    """{name: value} of each; no field of these families comes twice."""
    out = []
    for answer in answers:
        head = {}
        for name, value in answer.headers:
            if "ratelimit" in name:
                assert name not in head, name
                head[name] = value
        out.append(head)
    return out


def numbers(head, prefix):
    if prefix + "limit" not in head:
        return None
    digits = head[prefix + "limit"].split(",")[0]
    values = [digits, head[prefix + "remaining"]]
    if prefix + "reset" in head:
        values.append(head[prefix + "reset"])
    assert all(v.isascii() and v.isdigit() for v in values), head
    return tuple(map(int, values))


def lists(value):
    return None if value is None else parse_list(value)


def read_here(found):
    return [{
        "policy": lists(head.get("ratelimit-policy")),
        "rate": lists(head.get("ratelimit")),
        "quota": lists(head.get("ratelimit-limit")),
        "x": numbers(head, "x-ratelimit-"),
        "draft03": numbers(head, "ratelimit-"),
    } for head in found]


def has_npm():
    return os.path.exists(os.path.join(NPM, "installed"))


def read_by_npm(found, reset="seconds"):
    """As read_here, but `reset` is a moment in seconds since 1970."""
    script = os.path.join(NPM, "read.mjs")  # beside its node_modules
    with open(READ) as f, open(script, "w") as out:
        out.write(f.read())
    done = subprocess.run(
        ["node", script, reset], stdout=subprocess.PIPE,
        input="".join(json.dumps(head) + "\n" for head in found).encode(),
        timeout=Deadline(30).left(), check=True)
    results = [json.loads(line) for line in done.stdout.splitlines()]
    for result in results:
        assert "error" not in result, result
        for name in ("policy", "rate", "quota"):
            if result[name] is not None:
                result[name] = [tuple(item) for item in result[name]]
    return results
