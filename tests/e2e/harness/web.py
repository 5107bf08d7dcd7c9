"""lighttpd, Apache and nginx in front of the gateway, and an HTTP client."""

import glob
import http.client
import os
import shutil

from harness import process
from harness.deadline import Deadline
from harness.gateway import APPS

LIGHTTPD = """\
server.modules = ( "mod_fastcgi" )
server.bind = "127.0.0.1"
server.port = {port}
server.document-root = "{root}"
server.errorlog = "{place}/{name}.log"
server.max-request-size = 0
server.upload-dirs = ( "{place}" )
server.stream-request-body = {stream}
server.stream-response-body = {stream}
index-file.names = ( "hello.cgi" )
fastcgi.server = (
{handlers}
)
{more}
"""
HANDLER = '"{ext}" => (( "socket" => "{socket}", "check-local" => "disable" ))'
EXTENSIONS = (".cgi", ".php", ".py")
OWN = """\
server.modules += ( "mod_rewrite", "mod_cgi" )
url.rewrite-if-not-file = ( "^/rewritten" => "/env.php" )
cgi.assign = ( ".cgi" => "" )
"""
# Asked before anything is served, files too.
AUTHORIZER = """\
"/" => (( "host" => "{host}", "port" => {port}, "mode" => "authorizer",
    "check-local" => "disable" ))"""

# What each Apache begins with. {who}: User and Group, where it is root's.
APACHE_HEAD = """\
ServerRoot "{place}"
ServerName localhost
PidFile "{place}/{name}.pid"
DefaultRuntimeDir "{place}"
ErrorLog "{place}/{name}.log"
LogLevel warn
Listen 127.0.0.1:{port}
LoadModule mpm_event_module {modules}/mod_mpm_event.so
LoadModule authz_core_module {modules}/mod_authz_core.so
{who}
ServerLimit 1
"""
APACHE = APACHE_HEAD + """\
LoadModule proxy_module {modules}/mod_proxy.so
LoadModule proxy_fcgi_module {modules}/mod_proxy_fcgi.so
StartServers 1
ThreadsPerChild 16
MaxRequestWorkers 16
DocumentRoot "{root}"
<Directory />
    Require all granted
</Directory>
{handling}
{more}
"""
PASS = 'ProxyPass "/" "unix:{socket}|fcgi://localhost{root}/" {options}'
# Files are Apache's own; a subrequest asks nobody a second time.
ASK = """\
LoadModule authz_user_module {modules}/mod_authz_user.so
LoadModule authnz_fcgi_module {modules}/mod_authnz_fcgi.so
<FilesMatch "\\.php$">
    SetHandler "proxy:unix:{socket}|fcgi://localhost/"
</FilesMatch>
AuthnzFcgiDefineProvider authn sluice fcgi://{host}:{port}/
<If "%{{IS_SUBREQ}} == 'false'">
    AuthnzFcgiCheckAuthnProvider sluice RequireBasicAuth Off \\
        UserExpr "%{{reqenv:NONE}}" DefaultUser anybody
    Require valid-user
</If>
"""

NGINX = """\
daemon off;
{who}
worker_processes 1;
pid {place}/{name}.pid;
error_log {place}/{name}.log warn;
events {{ worker_connections 256; }}
http {{
    access_log off;
    client_max_body_size 0;
    client_body_temp_path {place}/{name}-body;
    fastcgi_temp_path {place}/{name}-fastcgi;
    proxy_temp_path {place}/{name}-proxy;
    scgi_temp_path {place}/{name}-scgi;
    uwsgi_temp_path {place}/{name}-uwsgi;
    upstream sluice {{
        server {socket};
        keepalive {kept};
    }}
    fastcgi_keep_conn on;
    server {{
        listen 127.0.0.1:{port};
        root {root};
{handling}
    }}
}}
"""
# Debian's fastcgi_params, as far as tests look at them.
NGINX_PARAMS = """\
fastcgi_param QUERY_STRING $query_string;
fastcgi_param REQUEST_METHOD $request_method;
fastcgi_param CONTENT_TYPE $content_type;
fastcgi_param CONTENT_LENGTH $content_length;
fastcgi_param SCRIPT_FILENAME $document_root$fastcgi_script_name;
fastcgi_param SCRIPT_NAME $fastcgi_script_name;
fastcgi_param REQUEST_URI $request_uri;
fastcgi_param DOCUMENT_ROOT $document_root;
fastcgi_param SERVER_PROTOCOL $server_protocol;
fastcgi_param GATEWAY_INTERFACE CGI/1.1;
fastcgi_param REMOTE_ADDR $remote_addr;
"""
NGINX_PASS = NGINX_PARAMS + """\
location / {{ fastcgi_pass sluice; }}
location /internal/ {{ internal; alias {root}/; }}
"""
# Sluice is asked about everything; .php is passed on to php-fpm, all else
# is a file. nginx knows 2xx and 403, and makes that one a 429.
NGINX_QUESTION = """\
location = /sluice {
    internal;
    if ($sluice_asked) { return 204; }
    set $sluice_query "";
    if ($request_uri ~ "^[^?#]*[?]([^#]*)") { set $sluice_query $1; }
    fastcgi_pass sluice;
    fastcgi_pass_request_body off;
    fastcgi_param REQUEST_METHOD $request_method;
    fastcgi_param REQUEST_URI $request_uri;
    fastcgi_param QUERY_STRING $sluice_query;
    fastcgi_param REMOTE_ADDR $remote_addr;
}
"""
NGINX_ASK = """\
{asking}
auth_request /sluice;
auth_request_set $sluice_asked yes;
auth_request_set $sluice_limit
    $sluice_limit$upstream_http_x_ratelimit_limit;
auth_request_set $sluice_remaining
    $sluice_remaining$upstream_http_x_ratelimit_remaining;
auth_request_set $sluice_reset
    $sluice_reset$upstream_http_x_ratelimit_reset;
auth_request_set $sluice_retry $sluice_retry$upstream_http_retry_after;
add_header X-RateLimit-Limit $sluice_limit always;
add_header X-RateLimit-Remaining $sluice_remaining always;
add_header X-RateLimit-Reset $sluice_reset always;
error_page 403 = @refused;
location @refused {{
    auth_request off;
    add_header X-RateLimit-Limit $sluice_limit always;
    add_header X-RateLimit-Remaining $sluice_remaining always;
    add_header X-RateLimit-Reset $sluice_reset always;
    add_header Retry-After $sluice_retry always;
    add_header Cache-Control no-store always;
    if ($sluice_retry = "") {{ return 403; }}
    return 429;
}}
location ~ [.]php$ {{
    fastcgi_pass {application};
""" + NGINX_PARAMS + "}}\n"


class LogFile:
    """Servers that log to a file of their own."""

    def output(self):
        text = super().output()
        path = self.place / (self.name + ".log")
        if os.path.exists(path):
            with open(path, errors="replace") as f:
                text += f.read()
        return text


class Lighttpd(LogFile, process.Process):
    def __init__(self, place, socket, root=APPS, name="lighttpd", stream=0,
                 authorizer=None):
        """
        socket: who serves scripts. authorizer: the (host, port) of who is
        asked first; then socket is for .php alone, .cgi is lighttpd's own.
        """
        self.port = process.free_port()
        extensions = (".php",) if authorizer else EXTENSIONS
        handlers = [HANDLER.format(ext=e, socket=socket) for e in extensions]
        more = ""
        if authorizer:
            host, port = authorizer
            handlers.append(AUTHORIZER.format(host=host, port=port))
            more = OWN
        config = place.write(name + ".conf", LIGHTTPD.format(
            port=self.port, root=root, place=place.path, name=name,
            handlers=",\n".join(handlers), stream=stream, more=more))
        super().__init__(
            place, name, [shutil.which("lighttpd", path=SBIN), "-D", "-f",
                          config])
        self.wait_listening(("127.0.0.1", self.port))


class Apache(LogFile, process.Process):
    def __init__(self, place, socket, root=APPS, name="apache", reuse=False,
                 flush=False, authorizer=None, more=""):
        """
        socket: who serves everything; flush: what comes is passed on at once.
        authorizer: the (host, port) of who is asked first; then socket is for
        .php alone, all else is a file.
        """
        self.port = process.free_port()
        modules = glob.glob("/usr/lib*/apache2/modules")[0]
        host, port = authorizer or (None, None)
        handling = (ASK if authorizer else PASS).format(
            socket=socket, root=root, host=host, port=port, modules=modules,
            options=" ".join(["enablereuse=on"] * reuse
                             + ["flushpackets=on"] * flush))
        who = "User www-data\nGroup www-data" if os.geteuid() == 0 else ""
        config = place.write(name + ".conf", APACHE.format(
            place=place.path, name=name, port=self.port, modules=modules,
            who=who, root=root, handling=handling, more=more))
        super().__init__(
            place, name,
            [shutil.which("apache2", path=SBIN), "-DFOREGROUND", "-f",
             config])
        self.wait_listening(("127.0.0.1", self.port))


class Nginx(LogFile, process.Process):
    KEPT = 2  # idle connections to the gateway

    def __init__(self, place, socket, root=APPS, name="nginx", lines="",
                 application=None, asking=NGINX_QUESTION):
        """
        socket: who serves everything, over connections that are kept; or,
        with the socket of an application, who is asked first, in which
        location. lines: more of the server's configuration.
        """
        self.port = process.free_port()
        handling = (NGINX_ASK if application else NGINX_PASS).format(
            root=root, application="unix:%s" % application, asking=asking)
        config = place.write(name + ".conf", NGINX.format(
            place=place.path, name=name, port=self.port, root=root,
            socket="unix:" + socket, kept=self.KEPT, handling=lines + handling,
            who="user root root;" if os.geteuid() == 0 else ""))
        super().__init__(
            place, name,
            [shutil.which("nginx", path=SBIN), "-e",
             place / (name + ".log"), "-c", config])
        self.wait_listening(("127.0.0.1", self.port))


SBIN = "/usr/sbin:/sbin:" + os.environ.get("PATH", "")


class Answer:
    def __init__(self, response):
        self.status, self.reason = response.status, response.reason
        self.headers = [(n.lower(), v) for n, v in response.getheaders()]
        self.body = response.read()

    def all(self, name):
        return [v for n, v in self.headers if n == name.lower()]

    def header(self, name):
        values = self.all(name)
        assert len(values) <= 1, "%s came %d times" % (name, len(values))
        return values[0] if values else None

    @property
    def limit(self):
        names = ("limit", "remaining", "reset")
        values = [self.header("x-ratelimit-" + n) for n in names]
        return tuple(None if v is None else int(v) for v in values)


def fetch(server, uri, method="GET", body=None, headers=None, seconds=15.0,
          chunked=False):
    """One HTTP request on a connection of its own."""
    conn = http.client.HTTPConnection(
        "127.0.0.1", server.port, timeout=Deadline(seconds).left())
    try:
        conn.request(method, uri, body, headers or {},
                     encode_chunked=chunked)
        return Answer(conn.getresponse())
    finally:
        conn.close()
