"""The systemd units that `make install` installs.

systemd itself can not be started by a test; `systemd-analyze` judges its units
all the same, and what the service forbids that can be had without systemd is
forbidden to the program here.
"""

import configparser
import ctypes
import os
import shutil
import subprocess

import pytest

from harness import process
from harness.deadline import Deadline
from harness.gateway import ROOT
from harness.recipes import MEMORY, cgi, fixed

# Where Debian looks for an administrator's units, without DESTDIR.
UNITS = "usr/local/lib/systemd/system/"
# Tenths that systemd-analyze puts up with; without any hardening it is 96.
EXPOSURE = 20


@pytest.fixture(scope="module")
def installed():
    place = process.Place()
    subprocess.run(
        ["make", "install", "prefix=" + place / "usr/local",
         "sysconfdir=" + place / "etc"], cwd=ROOT, check=True,
        capture_output=True, timeout=Deadline(80).left())
    yield place
    place.remove()


def read(path):
    parser = configparser.ConfigParser(
        interpolation=None, strict=False, delimiters="=")
    parser.optionxform = str
    assert parser.read(path) == [path]
    return parser


@pytest.fixture(scope="module")
def service(installed):
    return read(installed / (UNITS + "sluice.service"))


@pytest.fixture(scope="module")
def socket(installed):
    return read(installed / (UNITS + "sluice.socket"))


def test_service_runs_what_was_installed(installed, service):
    command = service["Service"]["ExecStart"]
    assert command == installed / "usr/local/bin/sluice"
    assert os.access(command, os.X_OK)
    assert service["Service"]["Type"] == "notify"


def test_service_belongs_to_the_socket(service, socket):
    assert service["Unit"]["Requires"] == "sluice.socket"
    assert "sluice.socket" in service["Unit"]["After"].split()
    path = socket["Socket"]["ListenStream"]
    assert path == "/run/sluice/sluice.sock"
    # The service ends, its directory stays, and with it the socket.
    assert service["Service"]["RuntimeDirectory"] == "sluice"
    assert service["Service"]["RuntimeDirectoryPreserve"] == "yes"
    # No one else's: whoever may connect says what REMOTE_ADDR is.
    assert socket["Socket"]["SocketMode"] == "0660"
    assert socket["Socket"]["SocketUser"] == service["Service"]["User"]


def test_make_uninstall_takes_them_away():
    place = process.Place()
    for target in ("install", "uninstall"):
        subprocess.run(
            ["make", target, "DESTDIR=" + place.path,
             "systemdunitdir=/lib/systemd/system"], cwd=ROOT, check=True,
            capture_output=True, timeout=Deadline(80).left())
        there = os.listdir(place / "lib/systemd/system")
        assert sorted(there) == (["sluice.service", "sluice.socket"]
                                 if target == "install" else [])
    place.remove()


def analyze(installed, *words):
    """None: there is no systemd; what else the units are held to is above."""
    command = shutil.which("systemd-analyze")
    if command is None:
        return None
    return subprocess.run(
        [command, *words, installed / (UNITS + "sluice.service")],
        capture_output=True, text=True, check=False,
        env=dict(os.environ, SYSTEMD_UNIT_PATH=installed / UNITS + ":"),
        timeout=Deadline(30).left())


def test_systemd_finds_nothing_wrong(installed):
    got = analyze(installed, "verify", "--man=no")
    if got is not None:
        assert (got.returncode, got.stdout + got.stderr) == (0, "")


def test_systemd_finds_little_exposed(installed):
    got = analyze(installed, "security", "--offline=yes", "--no-pager",
                  "--threshold=%d" % EXPOSURE)
    if got is not None:
        assert got.returncode == 0, got.stdout + got.stderr


PR_SET_NO_NEW_PRIVS = 38
PR_SET_MDWE = 65  # Linux 6.3; refused by older ones, which changes nothing


def test_serves_without_memory_that_is_written_and_run(farm, service):
    """MemoryDenyWriteExecute and NoNewPrivileges, with patterns to match."""
    assert service["Service"]["MemoryDenyWriteExecute"] == "yes"
    assert service["Service"]["NoNewPrivileges"] == "yes"
    libc = ctypes.CDLL(None)
    config = {"store": MEMORY, "backend default": cgi(),
              "limit pattern": fixed("1/1h", path="~^/h[a-z]+\\.cgi$")}

    def forbid():
        libc.prctl(PR_SET_NO_NEW_PRIVS, 1, 0, 0, 0)
        libc.prctl(PR_SET_MDWE, 1, 0, 0, 0)

    gateway = farm.gateway(config, preexec_fn=forbid)
    with open("/proc/%d/status" % gateway.pid) as f:
        assert "NoNewPrivs:\t1\n" in f.read()
    assert gateway.ask("/hello.cgi").body == b"hello\n"
    assert gateway.ask("/hello.cgi").status == 429
