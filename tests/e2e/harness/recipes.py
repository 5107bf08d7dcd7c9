"""Pieces of configuration, and ways of asking, that many tests share."""

import threading

from harness import fcgi
from harness.gateway import APPS

MEMORY = {"address": "memory:"}


def fastcgi(server, **options):
    return {"type": "fastcgi", "address": server.option, **options}


def cgi(root=APPS, **options):
    return {"type": "cgi", "root": root, **options}


def fixed(rate, **options):
    """A limit whose window opens with the first request."""
    return {"rate": rate, "algorithm": "fixed_window", "align": "first",
            **options}


def by_key(rate, algorithm="fixed_window", name="X-Key", **options):
    """A limit that counts only requests with the header, by its value."""
    out = {"rate": rate, "algorithm": algorithm, "key": "header:" + name,
           "missing_key": "skip", **options}
    if algorithm == "fixed_window":
        out.setdefault("align", "first")
    return out


def script(uri, **kwargs):
    """The pairs for a file of tests/apps."""
    path = uri.partition("?")[0]
    kwargs.setdefault("SCRIPT_FILENAME", APPS + path)
    return fcgi.env(uri, **kwargs)


def key(value):
    return {"X-Key": value}


def together(count, work):
    """Runs work(i) in `count` threads that start at once; the results."""
    results = [None] * count
    errors = []
    gate = threading.Barrier(count)

    def run(i):
        try:
            gate.wait(10.0)
            results[i] = work(i)
        except BaseException as error:  # shown by the caller's thread
            errors.append(error)

    threads = [threading.Thread(target=run, args=(i,)) for i in range(count)]
    for t in threads:
        t.start()
    for t in threads:
        t.join()
    if errors:
        raise errors[0]
    return results
