"""The set-ups of examples/, and what the web server of each can not carry.

A set-up is a directory with a `run` script. One that is not in SETUPS fails
the test, as does one in SETUPS that is not there.
"""

import os

from harness.gateway import ROOT

EXAMPLES = os.path.join(ROOT, "examples")


class Setup:
    """
    directory   below examples/; env: what `run` is given beside PORT
    role        who the gateway is: "responder", "authorizer", "answer", "cgi"
    ext         of the scripts that the test adds to `htdocs`
    refused     the status of a refusal
    told        does a refusal have its headers: Retry-After, X-RateLimit-*
    counted     does an allowed answer have X-RateLimit-* (none but a responder
                sees the answer)
    variables   does the application get RATELIMIT_REMAINING instead
    dies        the statuses for an application that dies: the gateway's 502,
                or what the web server makes of it
    measured    has the application a CONTENT_LENGTH for a chunked body
    notices     does the server see that its client has gone while it waits for
                an answer? lighttpd does not, unless it streams the answer
    crowd       how many at once in test_flat.py. mod_fcgid makes whole seconds
                wait who finds no process free
    kept        connections that the web server may keep open to the gateway
    pool        how many gateways the web server may have, as many as it likes
                up to that; 0: as many as it began with
    """

    def __init__(self, directory, env=None, role="responder", ext=".php",
                 htdocs="htdocs", refused=429, told=True, counted=None,
                 variables=None, dies=(502,), measured=True, notices=True,
                 crowd=100, kept=0, pool=0):
        self.directory = directory
        self.pool = pool
        self.env = env or {}
        self.role = role
        self.ext = ext
        self.htdocs = htdocs
        self.refused = refused
        self.told = told
        self.counted = role == "responder" if counted is None else counted
        self.variables = role == "authorizer" if variables is None \
            else variables
        self.dies = dies
        self.measured = measured
        self.notices = notices
        self.crowd = crowd
        self.kept = kept

    @property
    def relays(self):
        """Is it the gateway that speaks to the application?"""
        return self.role == "responder"


SETUPS = {
    "run": Setup("run", ext=".cgi", notices=False),
    "lighttpd-spawn-fcgi": Setup("lighttpd-spawn-fcgi", notices=False),
    "lighttpd-bin-path": Setup("lighttpd-bin-path", notices=False),
    # Its own link to php-fpm: Sluice has no part in it.
    "lighttpd-authorizer": Setup("lighttpd-authorizer", role="authorizer",
                                 dies=(500,), notices=False),
    "apache-proxy-fcgi": Setup("apache-proxy-fcgi"),
    # As many as Apache has threads, by default.
    "apache-proxy-fcgi-reuse": Setup("apache-proxy-fcgi", {"REUSE": "on"},
                                     kept=150),
    "apache-fcgid": Setup("apache-fcgid", crowd=5, pool=5),
    "apache-authnz-fcgi": Setup("apache-authnz-fcgi", role="authorizer",
                                dies=(503,)),
    "nginx-fastcgi-pass": Setup("nginx-fastcgi-pass", kept=16),
    # The body of a refusal is nginx's own, and so is its 502.
    "nginx-auth-request": Setup("nginx-auth-request", role="answer",
                                counted=True),
    "four-servers-haproxy": Setup("four-servers-haproxy"),
    # The script is the web server's own child.
    "lighttpd-cgi-role": Setup("lighttpd-cgi-role", role="cgi", ext=".cgi",
                               dies=(500,), notices=False),
    # mod_cgid counts no chunked body.
    "apache-action": Setup("apache-action", role="cgi", ext=".cgi",
                           dies=(500,), measured=False, notices=False),
}

# What `run` in these is no web server with a gateway behind it.
OTHERS = {"demo", "limits"}


def directories():
    """The names in examples/ that must be in one of the two."""
    return {name for name in os.listdir(EXAMPLES)
            if os.path.isdir(os.path.join(EXAMPLES, name))} - OTHERS
