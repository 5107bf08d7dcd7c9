#!/usr/bin/python3
"""Checks that every room of src/ includes only lower layers or its own.

A room is src/LAYER/NAME with its .c, .h and .def. Rooms of one layer may use
each other, but not in a circle. Some outside headers have one owner each.
"""

import os
import re
import sys

LAYERS = ["base", "pure", "io", "config", "domain", "request", "process"]

# Outside header -> who may include it: a layer or a room.
OWNERS = {
    r"fcgi.*\.h": ["request/front"],
    r"hiredis/.*": ["io/redis_link"],
    r"ini\.h": ["config"],
}
# process/commands prints their versions.
VERSIONS = {r"hiredis/.*": ["process/commands"]}

# The pure layer makes no system call.
IMPURE = re.compile(
    r"(unistd|fcntl|poll|signal|pthread|spawn|netdb|syslog|threads)\.h"
    r"|sys/(?!types\.h).*")

INCLUDE = re.compile(r'^\s*#\s*include\s*([<"])([^">]+)[">]', re.MULTILINE)


def room_of(path):
    return os.path.splitext(path)[0]


def layer_of(room):
    return room.split("/")[0]


def owned(header, room):
    """Whether `room` may include this outside header."""
    for pattern, owners in OWNERS.items():
        if re.fullmatch(pattern, header):
            owners = owners + VERSIONS.get(pattern, [])
            return room in owners or layer_of(room) in owners
    return layer_of(room) != "pure" or not IMPURE.fullmatch(header)


def circles(graph):
    """The edges that close a circle, found depth first."""
    state, found = {}, []

    def visit(room, trail):
        state[room] = "open"
        for other in sorted(graph.get(room, ())):
            if state.get(other) == "open":
                found.append(trail[trail.index(other):] + [other])
            elif other not in state:
                visit(other, trail + [other])
        state[room] = "done"

    for room in sorted(graph):
        if room not in state:
            visit(room, [room])
    return found


def check(files):
    """files: {"layer/name.c": text}. Returns the complaints."""
    complaints, graph = [], {}
    for path in sorted(files):
        room, layer = room_of(path), layer_of(path)
        if layer not in LAYERS:
            complaints.append("%s: no such layer: %s" % (path, layer))
            continue
        for quote, header in INCLUDE.findall(files[path]):
            if layer_of(header) in LAYERS and "/" in header:
                if LAYERS.index(layer_of(header)) > LAYERS.index(layer):
                    complaints.append("%s includes %s, a higher layer"
                                      % (path, header))
                elif room_of(header) != room:
                    graph.setdefault(room, set()).add(room_of(header))
            elif quote == "<" and not owned(header, room):
                complaints.append("%s may not include <%s>" % (path, header))
    for trail in circles(graph):
        complaints.append("a circle: " + " -> ".join(trail))
    return complaints


def read(root):
    files = {}
    for folder, _, names in os.walk(root):
        for name in names:
            if name.endswith((".c", ".h", ".def")):
                path = os.path.join(folder, name)
                with open(path, encoding="utf-8") as f:
                    files[os.path.relpath(path, root)] = f.read()
    return files


if __name__ == "__main__":
    said = check(read(sys.argv[1]))
    print("\n".join(said), end="\n" if said else "")
    sys.exit(bool(said))
