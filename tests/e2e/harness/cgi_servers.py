"""Web servers that run Sluice as a CGI program, for each request of one."""

import glob
import os
import shutil

from harness import process
from harness.web import APACHE_HEAD, SBIN, LogFile

LIGHTTPD = """\
server.modules = ( "mod_setenv", "mod_cgi" )
server.bind = "127.0.0.1"
server.port = {port}
server.document-root = "{root}"
server.errorlog = "{place}/{name}.log"
server.max-request-size = 0
server.upload-dirs = ( "{place}" )
setenv.set-environment = ( "SLUICE_CONFIG" => "{config}" )
cgi.assign = ( ".cgi" => "{program}" )
"""

# Which scripts: an Action's handler is run with the script as PATH_INFO.
APACHE = APACHE_HEAD + """\
LoadModule mime_module {modules}/mod_mime.so
LoadModule env_module {modules}/mod_env.so
LoadModule alias_module {modules}/mod_alias.so
LoadModule actions_module {modules}/mod_actions.so
LoadModule cgid_module {modules}/mod_cgid.so
TypesConfig /dev/null
StartServers 1
ThreadsPerChild 16
MaxRequestWorkers 16
DocumentRoot "{root}"
<Directory />
    Require all granted
</Directory>
SetEnv SLUICE_CONFIG {config}
ScriptSock "{place}/{name}.s"
ScriptAlias "/gate/sluice" "{program}"
Action sluice-script "/gate/sluice" {virtual}
<Directory "{root}">
    AddHandler sluice-script .cgi
</Directory>
"""


class Lighttpd(LogFile, process.Process):
    def __init__(self, place, program, root):
        name = "lighttpd"
        self.port = process.free_port()
        config = place.write(name + ".conf", LIGHTTPD.format(
            port=self.port, root=root, place=place.path, name=name,
            program=program.path, config=program.config))
        super().__init__(
            place, name, [shutil.which("lighttpd", path=SBIN), "-D", "-f",
                          config])
        self.wait_listening(("127.0.0.1", self.port))


class Apache(LogFile, process.Process):
    def __init__(self, place, program, root, virtual=False):
        """virtual: also for scripts that are not there."""
        name = "virtual" if virtual else "apache"
        self.port = process.free_port()
        modules = glob.glob("/usr/lib*/apache2/modules")[0]
        who = "User www-data\nGroup www-data" if os.geteuid() == 0 else ""
        config = place.write(name + ".conf", APACHE.format(
            place=place.path, name=name, port=self.port, modules=modules,
            who=who, root=root, program=program.path, config=program.config,
            virtual="virtual" if virtual else ""))
        super().__init__(
            place, name,
            [shutil.which("apache2", path=SBIN), "-DFOREGROUND", "-f",
             config])
        self.wait_listening(("127.0.0.1", self.port))
