"""sluice(8), EXIT STATUS: how each command ends."""

import os
import re
import subprocess

import pytest

from harness.gateway import BINARY, ROOT, WRAPPER, render
from harness.recipes import MEMORY, cgi, fixed

OWN = {"set": ["5"], "unset": [], "reset": []}


def run(*arguments, text=""):
    return subprocess.run([*WRAPPER, BINARY, *arguments], input=text,
                          capture_output=True, text=True, timeout=60)


@pytest.fixture(scope="module")
def file(shared):
    """Writes a configuration of that store."""
    def write(store=MEMORY, **more):
        path = shared.place / "exit.ini"
        with open(path, "w", encoding="utf-8") as f:
            f.write(render({"store": store, "limit client": fixed("3/1h"),
                            "backend default": cgi(), **more}))
        os.chmod(path, 0o600)
        return path
    return write


@pytest.fixture(scope="module")
def redis(shared):
    return shared.redis()


@pytest.mark.parametrize("arguments", [["options"], ["options", "--ini"],
                                       ["version"], ["--help"]], ids=str)
def test_0_without_a_configuration(arguments):
    done = run(*arguments)
    assert (done.returncode, done.stderr) == (0, "") and done.stdout


def test_0(file, redis):
    path = file({"address": redis.address})
    for command, more in (("check", []), ("hash", ["k"]),
                          *((verb, ["client", "192.0.2.1", *counts])
                            for verb, counts in OWN.items())):
        done = run(command, "-c", path, *more)
        assert (done.returncode, done.stderr) == (0, ""), command


@pytest.mark.parametrize("verb", OWN)
def test_1_no_such_limit(file, redis, verb):
    path = file({"address": redis.address})
    done = run(verb, "-c", path, "none", "192.0.2.1", *OWN[verb])
    assert done.returncode == 1 and "no such limit" in done.stderr


@pytest.mark.parametrize("arguments", [
    ["none"], ["serve", "more"], ["check", "more"], ["check", "-c"],
    ["options", "more"], ["options", "-c", "x"], ["version", "more"],
    ["hash"], ["hash", "a", "b"], ["set"], ["unset"], ["reset"]], ids=str)
def test_64_the_command_line(arguments):
    done = run(*arguments)
    assert (done.returncode, done.stdout) == (64, "")
    assert done.stderr.startswith("sluice: ")


def test_64_no_value_and_no_key(file, redis):
    path = file({"address": redis.address})
    assert run("hash", "-c", path, "").returncode == 64
    assert run("hash", "-c", path, "-", text="x" * 70000).returncode == 64
    for verb, counts in OWN.items():
        done = run(verb, "-c", path, "client", "k", *counts)
        assert done.returncode == 64, verb


@pytest.mark.parametrize("verb", OWN)
def test_69_nobody_is_there(file, shared, verb):
    path = file({"address": "unix:" + shared.place / "nobody.s"})
    done = run(verb, "-c", path, "client", "192.0.2.1", *OWN[verb])
    assert done.returncode == 69


def test_69_no_process(file, shared):
    path = file(gateway={"control": shared.place / "nobody.s"})
    done = run("reset", "-c", path, "client", "192.0.2.1")
    assert done.returncode == 69


@pytest.mark.parametrize("command", [
    ["serve"], ["check"], ["hash", "k"],
    *([verb, "client", "192.0.2.1", *counts]
      for verb, counts in OWN.items())], ids=str)
def test_78(file, shared, command):
    wrong = file({"address": "tcp:1"})
    for path in wrong, shared.place / "none.ini":
        done = run(command[0], "-c", path, *command[1:])
        assert done.returncode == 78, path


def test_78_nothing_to_listen_on(file):
    done = run("serve", "-c", file())
    assert done.returncode == 78 and "nothing to listen on" in done.stderr


def test_each_status_of_the_manual_is_one_of_these():
    """70 is test_lifecycle's."""
    with open(os.path.join(ROOT, "doc/sluice.8"), encoding="utf-8") as f:
        manual = f.read().partition(".Sh EXIT STATUS")[2].partition(".Sh")[0]
    told = re.findall(r"^\.It (\d+)$", manual, re.MULTILINE)
    assert told == ["0", "1", "64", "69", "70", "78"]
    line = run("--help").stdout.partition("exit: ")[2]
    assert re.findall(r"(\d+) ", line) == told
