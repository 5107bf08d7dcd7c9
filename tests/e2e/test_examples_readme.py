"""READMEs of examples/: what they say to type prints what they say.

A block marked `sh` that a block marked `text` follows is typed while the
example's `run` serves; how the two are compared is in readme_machine.py.
"""

import glob
import os
import re
import shutil
import signal
import subprocess

import pytest

from harness import process
from harness.deadline import Deadline, pause
from harness.gateway import BINARY, ROOT
from harness.web import fetch
from readme_machine import agrees, read_blocks

EXAMPLES = os.path.join(ROOT, "examples")


def typed(name):
    """[(what is typed, what it prints)]"""
    blocks = read_blocks(os.path.join(EXAMPLES, name, "README.md"))
    return [("\n".join(lines), printed)
            for (_, mark, lines), (_, after, printed)
            in zip(blocks, blocks[1:]) if (mark, after) == ("sh", "text")]


NAMES = sorted(
    os.path.basename(os.path.dirname(path))
    for path in glob.glob(os.path.join(EXAMPLES, "*", "README.md"))
    if os.path.exists(os.path.join(os.path.dirname(path), "run"))
    and typed(os.path.basename(os.path.dirname(path))))


def copy(place, name):
    """The example, but that a busy machine is no outage of its Redis."""
    shutil.copy(os.path.join(EXAMPLES, "lib.sh"), place.path)
    shutil.copytree(os.path.join(EXAMPLES, name), place / name)
    path = place / (name + "/sluice.ini")
    with open(path) as f:
        text = f.read()
    text = re.sub(r"(?m)^(connect_)?timeout = .*\n", "", text)
    if "memory:" not in text:
        text = text.replace(
            "[store]\n", "[store]\ntimeout = 5s\nconnect_timeout = 5s\n")
    with open(path, "w") as f:
        f.write(text)


class Example(process.Process):
    """Its `run`, on a port of its own."""

    def __init__(self, place, name, **env):
        os.chmod(place.path, 0o1777)
        copy(place, name)
        self.port = process.free_port()
        super().__init__(
            place, name, [place / (name + "/run")],
            env={**os.environ, "SLUICE": BINARY, "PORT": str(self.port),
                 "GATEWAY_PORT": str(process.free_port()),
                 "TMPDIR": place.path, **env})

    def wait_ready(self):
        deadline = Deadline(30.0, self.name + " to say that it is ready")
        while "http://127.0.0.1:%d" % self.port not in self.output():
            assert self.running(), self.output()
            deadline.check()
            pause()

    def end(self):
        self.signal(signal.SIGTERM)
        assert self.wait_exit(20.0) == 0


@pytest.mark.parametrize("name", NAMES)
def test_readme(name):
    place = process.Place()
    example = Example(place, name)
    try:
        example.wait_ready()
        for line, printed in typed(name):
            got = subprocess.run(
                ["bash", "-ec",
                 line.replace("127.0.0.1:8080", "127.0.0.1:%d" % example.port)],
                timeout=Deadline(30.0).left(), capture_output=True, check=True)
            said = got.stdout.decode().replace("\r\n", "\n").replace(
                "127.0.0.1:%d" % example.port, "127.0.0.1:8080")
            assert agrees(said, printed), "%s\nprinted:\n%s" % (line, said)
    finally:
        example.end()
        place.remove()


@pytest.mark.parametrize("reuse", ["off", "on"])
def test_apache_keeps_connections_if_told_to(reuse):
    place = process.Place()
    example = Example(place, "apache-proxy-fcgi", REUSE=reuse)
    try:
        example.wait_ready()
        for _ in range(20):
            assert fetch(example, "/").status == 200
    finally:
        example.end()
        said = example.output()
        place.remove()
    accepted = int(re.search(r"connections_accepted=(\d+)", said).group(1))
    # Each of its processes has connections of its own.
    assert accepted == 20 if reuse == "off" else accepted < 10
