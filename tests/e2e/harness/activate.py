"""Becomes a command that systemd starts for its sockets.

Usage: activate.py NAMES FD... -- COMMAND...   (same pid, as sd_listen_fds(3)
wants it). NAMES go into LISTEN_FDNAMES, colons between them.
"""

import fcntl
import os
import sys


def main():
    end = sys.argv.index("--")
    spare = [fcntl.fcntl(int(fd), fcntl.F_DUPFD_CLOEXEC, 200)
             for fd in sys.argv[2:end]]
    for at, fd in enumerate(spare, 3):
        os.dup2(fd, at, inheritable=True)
    command = sys.argv[end + 1:]
    os.execvpe(command[0], command, {
        **os.environ, "LISTEN_PID": str(os.getpid()),
        "LISTEN_FDS": str(len(spare)), "LISTEN_FDNAMES": sys.argv[1]})


main()
