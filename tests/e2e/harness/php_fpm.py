"""php-fpm with a fixed number of children."""

import glob
import os

from harness import process

CONFIG = """\
[global]
daemonize = no
error_log = {log}
[www]
listen = {listen}
listen.backlog = 511
listen.mode = 0666
{who}
pm = {pm}
pm.max_children = {children}
pm.max_requests = {max_requests}
catch_workers_output = yes
clear_env = yes
php_admin_value[enable_post_data_reading] = {forms}
php_admin_value[output_buffering] = 0
php_admin_value[memory_limit] = 64M
"""


def binary():
    found = sorted(glob.glob("/usr/sbin/php-fpm[0-9]*"))
    assert found, "no php-fpm is installed"
    return found[-1]


class PhpFpm(process.Process):
    def __init__(self, place, children=4, tcp=False, name="fpm",
                 forms=False, max_requests=0, pm="static"):
        self.address = (
            ("127.0.0.1", process.free_port()) if tcp
            else place / (name + ".s"))
        listen = "%s:%d" % self.address if tcp else self.address
        root = os.geteuid() == 0
        config = place.write(name + ".conf", CONFIG.format(
            log=place / (name + ".log"), listen=listen, children=children,
            max_requests=max_requests, pm=pm,
            forms=int(forms),
            who="user = root\ngroup = root" if root else ""))
        argv = [binary(), "-n", "-F", "-y", config, "-p", place.path]
        super().__init__(place, name, argv + (["-R"] if root else []))
        self.wait_listening(self.address)

    @property
    def option(self):
        """As `address =` takes it."""
        if isinstance(self.address, str):
            return "unix:" + self.address
        return "%s:%d" % self.address
