"""Web servers that start the gateway themselves, several times."""

import glob
import os
import shutil

from harness import process
from harness.deadline import until
from harness.gateway import APPS, BINARY, render
from harness.recipes import cgi
from harness.web import APACHE_HEAD, SBIN, LogFile

LIGHTTPD = """\
server.modules = ( "mod_fastcgi" )
server.bind = "127.0.0.1"
server.port = {port}
server.document-root = "{apps}"
server.errorlog = "{place}/{name}.log"
server.breakagelog = "{place}/{name}.err"
server.upload-dirs = ( "{place}" )
fastcgi.server = ( "/" => ((
    "bin-path" => "{binary}",
    "socket" => "{place}/spawned.s",
    "max-procs" => {processes},
    "bin-environment" => ( "SLUICE_CONFIG" => "{config}" ),
    "check-local" => "disable",
    "fix-root-scriptname" => "enable"
)))
"""

APACHE = APACHE_HEAD + """\
LoadModule fcgid_module {modules}/mod_fcgid.so
ThreadsPerChild 64
MaxRequestWorkers 64
DocumentRoot "{apps}"
FcgidIPCDir "{place}/run"
FcgidProcessTableFile "{place}/run/table"
FcgidInitialEnv SLUICE_CONFIG {config}
FcgidMaxProcessesPerClass {processes}
FcgidMaxRequestLen 104857600
<Directory "{apps}">
    Require all granted
    Options +ExecCGI
    SetHandler fcgid-script
    FcgidWrapper {binary} virtual
</Directory>
<Files "plain.txt">
    SetHandler None
    {asked}
</Files>
"""


class Spawner(LogFile, process.Process):
    """What both do alike. The gateways may be another user's, so that the
    program and the scripts are copied to where all may run them."""

    def __init__(self, place, name, template, argv, config, processes,
                 asked=""):
        self.port = process.free_port()
        self.binary = place / "sluice"
        shutil.copy(BINARY, self.binary)
        os.chmod(self.binary, 0o755)
        os.makedirs(place / "run", exist_ok=True)
        os.chmod(place / "run", 0o777)
        apps = shutil.copytree(APPS, place / "apps")
        self.config = place.write("spawned.ini", render(
            {**config, "backend default": cgi(apps)}))
        modules = glob.glob("/usr/lib*/apache2/modules")[0]
        path = place.write(name + ".conf", template.format(
            port=self.port, place=place.path, name=name, modules=modules,
            who="User www-data\nGroup www-data" if os.geteuid() == 0 else "",
            binary=self.binary, config=self.config, apps=apps,
            processes=processes, asked=asked % self.binary if asked else ""))
        super().__init__(place, name, argv + ["-f", path])
        self.wait_listening(("127.0.0.1", self.port))

    def spawned(self):
        """The pids of the gateways."""
        found = []
        for path in glob.glob("/proc/[0-9]*/exe"):
            try:
                if os.readlink(path) == self.binary:
                    found.append(int(path.split("/")[2]))
            except OSError:
                pass
        return found

    def stop(self):
        """As its service does it; none of the gateways may be left."""
        self.signal(15)
        self.wait_exit(15.0)
        until(lambda: not self.spawned(), 10.0, "gateways to end")


class LighttpdBinPath(Spawner):
    def __init__(self, place, config, processes=4):
        super().__init__(
            place, "binpath", LIGHTTPD,
            [shutil.which("lighttpd", path=SBIN), "-D"], config, processes)

    def output(self):
        with open(self.place / "binpath.err", errors="replace") as f:
            return super().output() + f.read()


class ApacheFcgid(Spawner):
    def __init__(self, place, config, processes=4, asked=""):
        """asked: how Sluice is asked whether plain.txt may be served; %s is
        the program."""
        super().__init__(
            place, "fcgid", APACHE,
            [shutil.which("apache2", path=SBIN), "-DFOREGROUND"], config,
            processes, asked)


SPAWNERS = {"bin-path": LighttpdBinPath, "mod_fcgid": ApacheFcgid}
