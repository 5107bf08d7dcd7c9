"""README.md played on a machine that is a temporary directory.

A block marked `sh` is run line by line, and `text` is what the block before it
prints; there `...` stands for any lines, and figures that the clock makes may
be others (VARIES). Every other marked block is a file that its first line
names:

    # PATH                             written
    # added to PATH                    appended
    # instead of [SECTION] in PATH     takes the section's place

The system is not changed: paths and ports are moved (MOVED), and the commands
in PLAYED do in the directory what they do on a Debian. Of all commands only
`make check` is not run, for it runs this.
"""

import configparser
import glob
import grp
import os
import pwd
import re
import shlex
import shutil
import signal
import socket
import subprocess

import pytest

from harness import php_fpm, process
from harness.deadline import Deadline, Late, until
from harness.gateway import ROOT
from harness.log import Log
from harness.systemd import activated
from harness.web import SBIN

IS_ROOT = os.geteuid() == 0
USER = "www-data" if IS_ROOT else pwd.getpwuid(os.geteuid()).pw_name
GROUP = "www-data" if IS_ROOT else grp.getgrgid(os.getegid()).gr_name

# What README says, and what stands for it here.
MOVED = [
    (r"(?<![\w.}*/-])/(etc/(sluice|lighttpd|apache2|nginx|redis|systemd)|run"
     r"|usr/local/bin|var/(www|log|cache)|tmp)\b", r"{place}/\1"),
    (r"http://127\.0\.0\.1:8080/", "http://127.0.0.1:{run_port}/"),
    (r"http://127\.0\.0\.1/", "http://127.0.0.1:{web_port}/"),
    (r"redis://127\.0\.0\.1:6379/", "redis://127.0.0.1:{redis_port}/"),
    (r"listen 80\b", "listen 127.0.0.1:{web_port}"),
    (r"127\.0\.0\.1:9000\b", "127.0.0.1:{gateway_port}"),
    (r"\bredis-cli\b", "redis-cli -p {redis_port}"),
    (r"(-g|-G|chgrp|^Group =|^Group=) ?www-data", r"\1 {group}"),
    (r"www-data", "{user}"),
]

VARIES = re.compile(
    r"(?<=X-RateLimit-Reset: )\d+|(?<=Retry-After: )\d+"
    r"|(?<=;r=0;t=)\d+"
    r"|(?<=Try again in )\d+|(?<=_us=)\d+|(?<=lasted_ms=)\d+|(?<=time=)\S+")

# Debian's, as far as its parts matter here; Debian keeps it in a package that
# also starts it.
APACHE = """\
ServerName localhost
ServerRoot {place}
DefaultRuntimeDir {place}
PidFile {place}/run/apache2.pid
ErrorLog {place}/var/log/apache2.log
Listen 127.0.0.1:{web_port}
LoadModule mpm_event_module {modules}/mod_mpm_event.so
LoadModule authz_core_module {modules}/mod_authz_core.so
LoadModule dir_module {modules}/mod_dir.so
{who}
DocumentRoot {place}/var/www/html
<Directory {place}/var/www/>
    Require all granted
</Directory>
IncludeOptional {place}/etc/apache2/mods-enabled/*.load
IncludeOptional {place}/etc/apache2/conf-enabled/*.conf
"""
APACHE_MODULES = {"proxy_fcgi": ("proxy", "proxy_fcgi")}
# And where Debian's Apache keeps what mod_fcgid has; a place to look for the
# configuration, for mod_fcgid hides our environment.
FCGID = """\
FcgidIPCDir {place}/run/fcgid
FcgidProcessTableFile {place}/run/fcgid/table
FcgidInitialEnv SLUICE_CONFIG {place}/etc/sluice/sluice.ini
"""
# Debian's are in /var/lib/nginx, which is root's.
NGINX = "".join(
    "%s_temp_path {place}/tmp/nginx-%s;\n" % (name, name)
    for name in ("client_body", "fastcgi", "proxy", "scgi", "uwsgi"))
UNITS = "usr/local/lib/systemd/system/"

with open(os.path.join(ROOT, "tests/run/deps")) as f:
    DEPS = f.read()
# apache2 is apache2-bin and a service; gcc and make are there before deps.
PACKAGES = set(re.findall(r"[a-z0-9.+-]+", DEPS)) | {"apache2", "gcc", "make"}

REDIS = """\
bind 127.0.0.1
port {redis_port}
dir {place}/var/redis
save ""
"""


def read_blocks(path):
    """[(heading, mark, lines)] of a Markdown file."""
    blocks, heading, block = [], None, None
    with open(path, encoding="utf-8") as f:
        for line in f.read().split("\n"):
            if line.startswith("```"):
                if block is None:
                    block = (heading, line[3:], [])
                else:
                    blocks.append(block)
                    block = None
            elif block is not None:
                block[2].append(line)
            elif line.startswith("## "):
                heading = line[3:]
    assert block is None, "a block has no end"
    return blocks


README = read_blocks(os.path.join(ROOT, "README.md"))


def settled(text):
    """Without what differs from run to run."""
    return VARIES.sub("N", text)


def agrees(said, promised):
    """Does all that was said match the lines of a `text` block?"""
    parts = [r"(?:.*\n)*?" if line == "..." else re.escape(line) + r"\n"
             for line in map(settled, promised)]
    return re.fullmatch("".join(parts), settled(said)) is not None


class Unit:
    """A unit that was installed, and what README adds to it, as far as
    they matter here."""

    def __init__(self, machine, name):
        self.section = name.rpartition(".")[2].capitalize()
        self.parser = configparser.ConfigParser(
            interpolation=None, strict=False, delimiters="=")
        added = machine.place / ("etc/systemd/system/%s.d/*.conf" % name)
        for path in [machine.place / (UNITS + name), *sorted(
                glob.glob(added))]:
            with open(path) as f:
                self.parser.read_string(machine.moved(f.read()))

    def __getitem__(self, name):
        return self.parser[self.section].get(name)

    def socket(self):
        """What a .socket unit has systemd open."""
        path = self["ListenStream"]
        sock = socket.socket(socket.AF_UNIX, socket.SOCK_STREAM)
        os.makedirs(os.path.dirname(path), exist_ok=True)
        if os.path.exists(path):
            os.unlink(path)
        sock.bind(path)
        sock.listen(int(self["Backlog"]))
        os.chmod(path, int(self["SocketMode"], 8))
        if IS_ROOT:
            shutil.chown(path, self["SocketUser"], self["SocketGroup"])
        return sock

    def argv(self):
        argv = shlex.split(self["ExecStart"])
        if not IS_ROOT:
            return argv
        groups = self["SupplementaryGroups"]
        return ["setpriv", "--reuid=" + self["User"],
                "--regid=" + self["Group"],
                "--groups=" + groups if groups else "--clear-groups"] + argv


class Machine:
    """A Debian in a directory: its files, its services, its commands."""

    def __init__(self, place):
        self.place = place
        self.values = {
            "place": place.path, "user": USER, "group": GROUP,
            "run_port": process.free_port(), "web_port": process.free_port(),
            "redis_port": process.free_port(),
            "gateway_port": process.free_port(),
            "modules": (glob.glob("/usr/lib*/apache2/modules") + [""])[0],
            "who": "User www-data\nGroup www-data" if IS_ROOT else "",
        }
        self.services = {}
        self.socket = None  # of sluice.socket
        self.log = None
        self.printed = []  # of the last sh block: functions, each a text
        self.make_directories()
        place.write("etc/redis/redis.conf", REDIS.format(**self.values))

    def make_directories(self):
        for name in ("run/php", "run/lighttpd", "run/fcgid", "var/www/html", "var/log/lighttpd", "var/log/nginx",
                     "var/cache/lighttpd/uploads", "var/redis", "bin",
                     "etc/apache2/mods-enabled", "etc/apache2/conf-enabled",
                     "etc/lighttpd/conf-enabled", "tmp"):
            os.makedirs(self.place / name, exist_ok=True)
            os.chmod(self.place / name, 0o777)

    # README's blocks

    def play(self, *headings):
        for heading in headings:
            for _, mark, lines in [b for b in README if b[0] == heading]:
                self.play_block(mark, lines)

    def play_block(self, mark, lines):
        if mark == "sh":
            whole = "\n".join(lines).replace("\\\n", " ").split("\n")
            self.printed = [self.type(line) for line in whole if line]
        elif mark == "text":
            self.expect(lines)
        elif mark:
            self.write(lines)

    def moved(self, text):
        for pattern, there in MOVED:
            there = there.replace("\\1", "\0").format(**self.values)
            text = re.sub(pattern, there.replace("\0", "\\1"), text,
                          flags=re.MULTILINE)
        return text

    def moved_back(self, text):
        text = text.replace(self.place.path, "").replace("\r", "")
        for name, port in (("web", 80), ("redis", 6379), ("run", 8080)):
            number = ":%d" % self.values[name + "_port"]
            text = text.replace(number, "" if port == 80 else ":%d" % port)
        return text

    def write(self, lines):
        how, path = re.fullmatch(
            r"(?:#|<\?php //) (added to |instead of \[.*\] in |)(/\S+)",
            lines[0]).groups()
        path = self.moved(path)
        text = self.moved("\n".join(lines) + "\n")
        before = ""
        if how:
            with open(path) as f:
                before = f.read()
        if how.startswith("instead"):
            section = re.escape(how[len("instead of "):-len(" in ")])
            before, found = re.subn(
                r"(?ms)^%s\n.*?(?=^\[|\Z)" % section, "", before)
            assert found == 1, how
        os.makedirs(os.path.dirname(path), exist_ok=True)
        with open(path, "w") as f:  # what is there keeps owner and mode
            f.write(before + text)

    def expect(self, lines):
        def said():
            return self.moved_back("".join(f() for f in self.printed))

        try:
            until(lambda: agrees(said(), lines), 5.0, "what README says")
        except Late:
            pytest.fail("README says:\n%s\nbut it is:\n%s" % (
                "\n".join(lines), said()))

    # README's commands

    def type(self, line):
        """Runs one line; a function that tells what it has printed."""
        words = shlex.split(line, comments=True)
        words = words[1:] if words[0] == "sudo" else words
        player = PLAYED.get(words[0])
        if player is not None:
            said = player(self, *words[1:])
            return said if callable(said) else lambda: said or ""
        script = "sudo() { \"$@\"; }\n" + self.moved(line)
        done = subprocess.run(
            ["/bin/sh", "-euc", script], cwd=ROOT, env=self.environment(),
            stdin=subprocess.DEVNULL, stdout=subprocess.PIPE,
            stderr=subprocess.PIPE, timeout=Deadline(60).left())
        out = done.stdout.decode()
        assert done.returncode == 0, "%s\n%s%s" % (
            line, out, done.stderr.decode())
        return lambda: out

    def environment(self):
        path = ":".join([self.place / "bin", self.place / "usr/local/bin",
                         "/usr/bin:/bin", SBIN])
        return dict(os.environ, PATH=path, SLUICE_CONFIG=self.moved(
            "/etc/sluice/sluice.ini"))

    def make(self, *targets):
        if targets == ("check",):
            return None
        env = dict(os.environ, DESTDIR=self.place.path,
                   PORT=str(self.values["run_port"]))
        if targets == ("run",):
            self.services["run"] = process.Process(
                self.place, "make-run", ["make", "run"], cwd=ROOT, env=env)
            until(lambda: "Ctrl-C" in self.services["run"].output(), 60.0,
                  "make run to say that it serves")
        else:
            subprocess.run(("make",) + targets, cwd=ROOT, env=env, check=True,
                           timeout=Deadline(80).left())
        return None

    def apt_get(self, action, *packages):
        """The packages are known; those with a service start it."""
        assert action == "install"
        missing = set(packages) - PACKAGES
        assert not missing, missing
        for name in ("php-fpm", "redis-server"):
            if name in packages and name not in self.services:
                self.start(name)

    def systemctl(self, action, *words):
        for name in [w for w in words if not w.startswith("-")]:
            if action in ("stop", "restart") and name in self.services:
                self.stop(name)
            if action in ("start", "restart", "enable"):
                self.start(name)
            elif action == "reload":
                self.services[name].signal(signal.SIGHUP)

    def kill(self, *words):
        """`kill $(cat PATH)`, by someone who types the next line later."""
        with open(self.moved(words[-1].rstrip(")"))) as f:
            pid = int(f.read())
        os.kill(pid, signal.SIGTERM)
        until(lambda: not process.alive(pid), 10.0, "a kill")

    def journalctl(self, *words):
        assert words[:2] == ("-u", "sluice")
        return lambda: "".join(line + "\n" for line in self.log.lines)

    def lighttpd_enable_mod(self, name):
        directory = self.place / "etc/lighttpd"
        for path in glob.glob(directory + "/conf-available/*-%s.conf" % name):
            self.link(path, directory + "/conf-enabled")

    def a2enmod(self, *names):
        for name in names:
            more = FCGID.format(**self.values) if name == "fcgid" else ""
            self.place.write(
                "etc/apache2/mods-enabled/%s.load" % name, "".join(
                    "LoadModule %s_module %s/mod_%s.so\n"
                    % (module, self.values["modules"], module)
                    for module in APACHE_MODULES.get(name, (name,))) + more)

    def a2enconf(self, name):
        directory = self.place / "etc/apache2"
        self.link(directory + "/conf-available/%s.conf" % name,
                  directory + "/conf-enabled")

    def link(self, path, directory):
        there = os.path.join(directory, os.path.basename(path))
        if not os.path.lexists(there):
            os.symlink(path, there)

    # Its services

    def start(self, name):
        self.services[name] = SERVICES[name](self)

    def stop(self, name):
        service = self.services.pop(name)
        if name == "sluice":
            service.signal(signal.SIGTERM)
            assert service.wait_exit(10.0) == 0, self.log.text()
            self.log.close()
        elif name == "sluice.socket":
            service.close()
            self.socket = None
        elif name == "run":
            os.killpg(service.pid, signal.SIGINT)
            service.wait_exit(10.0)
        else:
            service.kill()

    def sluice_socket(self):
        self.socket = Unit(self, "sluice.socket").socket()
        return self.socket

    def sluice(self):
        unit = Unit(self, "sluice.service")
        run = self.place / ("run/" + unit["RuntimeDirectory"])
        os.makedirs(run, exist_ok=True)
        if IS_ROOT:
            shutil.chown(run, unit["User"], unit["Group"])
        passed = [self.socket.fileno()] if self.socket else []
        service = process.Process(
            self.place, "sluice", activated(
                unit.argv(), passed, ["sluice.socket"]),
            env=self.environment(), stderr=subprocess.PIPE, pass_fds=passed)
        self.log = Log(service.popen.stderr)
        try:
            self.log.wait_for("ready", 10.0)
        except Late:
            pytest.fail(self.log.text())
        return service

    def lighttpd(self):
        """Debian's own configuration, moved; on loopback alone."""
        with open("/etc/lighttpd/lighttpd.conf") as f:
            text = self.moved(f.read())
        text = re.sub(r"(?m)^server\.port\b.*",
                      'server.port = %d\nserver.bind = "127.0.0.1"'
                      % self.values["web_port"], text)
        text = re.sub(r"(?m)^include_shell .*use-ipv6.*", "", text)
        config = self.place.write("etc/lighttpd/lighttpd.conf", text)
        return self.web("lighttpd", ["-D", "-f", config])

    def apache2(self):
        config = self.place.write(
            "etc/apache2/apache2.conf", APACHE.format(**self.values))
        log = self.place.write("var/log/apache2.log", "")
        service = self.web("apache2", ["-DFOREGROUND", "-f", config])

        def is_up():  # it listens twice, and resets who comes in between
            with open(log) as f:
                return "resuming normal operations" in f.read()

        until(is_up, 10.0, "Apache")
        return service

    def nginx(self):
        """Debian's own configuration, moved."""
        for name in ("nginx.conf", "fastcgi.conf", "mime.types",
                     "snippets/fastcgi-php.conf"):
            with open("/etc/nginx/" + name) as f:
                self.place.write("etc/nginx/" + name, self.moved(f.read()))
        self.place.write("etc/nginx/conf.d/place.conf",
                         NGINX.format(**self.values))
        os.makedirs(self.place / "etc/nginx/sites-enabled", exist_ok=True)
        self.link(self.place / "etc/nginx/sites-available/default",
                  self.place / "etc/nginx/sites-enabled")
        return self.web("nginx", [
            "-e", self.place / "var/log/nginx/error.log",
            "-c", self.place / "etc/nginx/nginx.conf", "-g", "daemon off;"])

    def web(self, name, arguments):
        service = process.Process(
            self.place, name, [shutil.which(name, path=SBIN)] + arguments,
            env=self.environment())
        service.wait_listening(("127.0.0.1", self.values["web_port"]))
        return service

    def redis_server(self):
        argv = ["redis-server", self.place / "etc/redis/redis.conf"]
        os.makedirs(self.place / "run/redis", exist_ok=True)
        if IS_ROOT:
            shutil.chown(self.place / "run/redis", "redis", "redis")
            argv = ["setpriv", "--reuid=redis", "--regid=redis",
                    "--clear-groups"] + argv
        service = process.Process(self.place, "redis", argv)
        service.wait_listening(("127.0.0.1", self.values["redis_port"]))
        return service

    def php_fpm(self):
        service = php_fpm.PhpFpm(self.place, children=5)
        os.chmod(service.address, 0o666)
        self.link_as(service.address, self.place / "run/php/php-fpm.sock")
        return service

    def link_as(self, path, there):
        if os.path.lexists(there):
            os.unlink(there)
        os.symlink(path, there)

    def close(self):
        for name in reversed(list(self.services)):
            self.stop(name)


SERVICES = {
    "sluice": Machine.sluice, "sluice.socket": Machine.sluice_socket,
    "lighttpd": Machine.lighttpd,
    "apache2": Machine.apache2, "nginx": Machine.nginx,
    "redis-server": Machine.redis_server,
    "php-fpm": Machine.php_fpm,
}
PLAYED = {
    "make": Machine.make, "apt-get": Machine.apt_get,
    "systemctl": Machine.systemctl, "journalctl": Machine.journalctl,
    "lighttpd-enable-mod": Machine.lighttpd_enable_mod,
    "kill": Machine.kill, "a2enmod": Machine.a2enmod,
    "a2enconf": Machine.a2enconf,
}


