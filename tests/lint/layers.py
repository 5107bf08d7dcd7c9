#!/usr/bin/python3
"""Checks that every room of src/ includes only lower layers or its own.

A room is src/LAYER/NAME.h and its .c files: the one of that name, and those
that have no header of their own and include this one first. Rooms of one layer
may call each other, but not in a circle; a call is known by its prefix, the
room's name. Some outside headers have one owner each.
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

# The pure layer makes no system call.
IMPURE = re.compile(
    r"(unistd|fcntl|poll|signal|pthread|spawn|netdb|syslog|threads)\.h"
    r"|sys/(?!types\.h).*")

COMMENT = re.compile(r'/\*.*?\*/|"(?:\\.|[^"\\\n])*"', re.DOTALL)
INCLUDE = re.compile(r'^\s*#\s*include\s*([<"])([^">]+)[">]', re.MULTILINE)


DEFINED = re.compile(r"^([a-z]\w*)\(", re.MULTILINE)  # KNF: in column 0
CALL = re.compile(r"(?<![\w.>])([a-z]\w*)\s*\(")


def rooms_of(files):
    """{path: room}"""
    rooms = {}
    for path, text in files.items():
        room = os.path.splitext(path)[0]
        own = [h for q, h in INCLUDE.findall(text) if q == '"'][:1]
        if path.endswith(".c") and room + ".h" not in files and own and \
                room.startswith(os.path.splitext(own[0])[0] + "_"):
            room = os.path.splitext(own[0])[0]
        rooms[path] = room
    return rooms


def called(text, layer, rooms):
    """The rooms of the layer that own the functions named in the text."""
    names = {os.path.basename(r): r for r in rooms if layer_of(r) == layer}
    found = set()
    own = set(DEFINED.findall(text))
    for function in set(CALL.findall(COMMENT.sub("", text))) - own:
        parts = function.split("_")
        for n in range(len(parts) - 1, 0, -1):
            if "_".join(parts[:n]) in names:
                found.add(names["_".join(parts[:n])])
                break
    return found


def layer_of(room):
    return room.split("/")[0]


def owned(header, room):
    """Whether `room` may include this outside header."""
    for pattern, owners in OWNERS.items():
        if re.fullmatch(pattern, header):
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
    complaints, graph, rooms = [], {}, rooms_of(files)
    for path in sorted(files):
        room, layer = rooms[path], layer_of(path)
        if layer not in LAYERS:
            complaints.append("%s: no such layer: %s" % (path, layer))
            continue
        for quote, header in INCLUDE.findall(files[path]):
            if quote == "<":
                if not owned(header, room):
                    complaints.append("%s may not include <%s>"
                                      % (path, header))
            elif layer_of(header) in LAYERS and \
                    LAYERS.index(layer_of(header)) > LAYERS.index(layer):
                complaints.append("%s includes %s, a higher layer"
                                  % (path, header))
        graph.setdefault(room, set()).update(
            called(files[path], layer, rooms.values()) - {room})
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
