"""The ways a request can go: what stands between a client and an answer.

A way is a row of WAYS. Each has servers of its own, so that none waits for
connections that another one keeps; Redis is shared by those of a stand.
"""

import glob
import hashlib
import os
import re
from typing import NamedTuple

import redis

import stand as stands
from stand import Missing

EVERY, NONE = 1000000000, 1  # an hour
ALLOWED, REFUSED = "allowed", "refused"
LEASE, DENY_CACHE = "[limit] lease", "[store] deny_cache"
HELLO_THREADS = 16
CHILDREN = 8  # of a php-fpm


class Gateway(NamedTuple):
    """A Sluice: what of its configuration is not as shipped."""
    rate: int = EVERY
    redis: bool = True
    gateway: str = ""
    limit: str = ""
    store: str = ""
    needs: tuple = ()  # what the binary has to know, see must_know
    limited: bool = True
    uncached: bool = False  # without the deny cache, if the binary has one


GATEWAYS = {
    "exact": Gateway(),
    "memory": Gateway(redis=False),
    "unlimited": Gateway(redis=False, limited=False),
    "lease 16": Gateway(limit="lease = 16", needs=(LEASE,)),
    "lease auto": Gateway(limit="lease = auto", needs=(LEASE + ": auto",)),
    "refused": Gateway(rate=NONE, needs=(DENY_CACHE,)),
    "refused by Redis": Gateway(rate=NONE, uncached=True),
    "refused by memory": Gateway(rate=NONE, redis=False),
    "idle": Gateway(gateway="max_connections = 12000"),
}
THREADS = (8, 16, 32, 64, 128)
GATEWAYS.update(("threads %d" % n, Gateway(gateway="threads = %d" % n))
                for n in THREADS)


class Way(NamedTuple):
    """A web server, what limits, and the application."""
    web: str
    gateway: str = ""       # one of GATEWAYS
    script: str = ""        # a page under php-fpm; else hello
    access: str = ""        # nginx's own limiter: lua, limit_req
    rate: int = EVERY       # of a limiter that is no Sluice
    answers: str = ALLOWED
    children: int = CHILDREN


WAYS = {
    "lighttpd": Way("lighttpd"),
    "lighttpd, exact": Way("lighttpd", "exact"),
    "lighttpd, lease 16": Way("lighttpd", "lease 16"),
    "lighttpd, lease auto": Way("lighttpd", "lease auto"),
    "lighttpd, memory": Way("lighttpd", "memory"),
    "lighttpd, unlimited": Way("lighttpd", "unlimited"),
    "lighttpd, refused": Way("lighttpd", "refused", answers=REFUSED),
    "lighttpd, refused by Redis": Way(
        "lighttpd", "refused by Redis", answers=REFUSED),
    "lighttpd, refused by memory": Way(
        "lighttpd", "refused by memory", answers=REFUSED),
    "nginx": Way("nginx"),
    "nginx, exact": Way("nginx", "exact"),
    "nginx, lease 16": Way("nginx", "lease 16"),
    "nginx, lease auto": Way("nginx", "lease auto"),
    "nginx, memory": Way("nginx", "memory"),
    "nginx, refused": Way("nginx", "refused", answers=REFUSED),
    "nginx, refused by memory": Way(
        "nginx", "refused by memory", answers=REFUSED),
    "nginx + Lua": Way("nginx", access="lua"),
    "nginx + Lua, refused": Way(
        "nginx", access="lua", rate=NONE, answers=REFUSED),
    "nginx limit_req, refused": Way(
        "nginx", access="limit_req", answers=REFUSED),
    "HAProxy, refused": Way("haproxy", answers=REFUSED),
    "php": Way("lighttpd", script="hello.php"),
    "php limiter": Way("lighttpd", script="limiter.php"),
    "php limiter, refused": Way(
        "lighttpd", script="limiter.php", rate=NONE, answers=REFUSED),
    "php, exact": Way("lighttpd", "exact", script="hello.php"),
    "php, lease auto": Way("lighttpd", "lease auto", script="hello.php"),
    "php, refused": Way(
        "lighttpd", "refused", script="hello.php", answers=REFUSED),
    "php, refused by memory": Way(
        "lighttpd", "refused by memory", script="hello.php",
        answers=REFUSED),
    "busy php": Way("lighttpd", "exact", script="busy.php", children=5),
}
WAYS.update(("lighttpd, threads %d" % n, Way("lighttpd", "threads %d" % n))
            for n in THREADS)


def plain(name):
    """As a name of files, sockets and keys."""
    return "".join(c if c.isalnum() else "-" for c in name)


def path_of(name, way):
    """What to ask for."""
    return "/%s.php" % plain(name) if way.script else "/"


def start_redis(stand):
    """Its socket; one for the whole stand."""
    path = stand.path("redis.sock")
    if not os.path.exists(path):
        stand.redis = stand.start(
            "redis", ["redis-server", "--port", "0", "--unixsocket", path,
                      "--save", "", "--dir", stand.run], path)
    return path


def start_hello(stand, name):
    path = stand.path(name + ".hello.sock")
    with stands.listen(path) as listener:
        stand.start(name + ".hello", ["hello"], path, stdin=listener)
    return path


def start_php(stand, name, way):
    """php-fpm with the page of this way."""
    values = {"name": name, "limit": way.rate, "redis": "", "sha1": ""}
    if way.script == "limiter.php":
        values.update(limiter(stand))
    stand.fill(way.script, name + ".php", **values)
    found = sorted(glob.glob("/usr/sbin/php-fpm[0-9]*"))
    if not found:
        raise Missing("not installed: php-fpm")
    root = os.geteuid() == 0
    config = stand.fill(
        "php-fpm.conf", name + ".fpm.conf", name=name + ".fpm",
        children=way.children,
        who="user = root\ngroup = root" if root else "")
    path = stand.path(name + ".fpm.sock")
    stand.start(name + ".fpm", [found[-1], "-F", "-y", config]
                + (["-R"] if root else []), path)
    return path


def limiter(stand):
    """Where the peers' script is: Redis, and its SHA1."""
    path = start_redis(stand)
    with open(os.path.join(stands.HERE, "conf/limiter.lua"), "rb") as f:
        text = f.read()
    with redis.Redis(unix_socket_path=path, socket_timeout=5) as db:
        db.script_load(text)
    return {"redis": path, "sha1": hashlib.sha1(text).hexdigest()}


def must_know(stand, needs):
    """Options by name, or `option: value`."""
    for need in needs:
        option, _, value = need.partition(": ")
        if not re.search(r"\b%s\b" % value, stand.known.get(option, "")):
            raise Missing("option not known: " + need)


def configure(stand, name, gateway, backend):
    """Writes a Sluice's configuration; returns its path and socket."""
    must_know(stand, gateway.needs)
    store = gateway.store
    if gateway.uncached and DENY_CACHE in stand.known:
        store += "\ndeny_cache = 0"
    limit = "[limit bench]\nrate = %d/1h\n%s" % (gateway.rate, gateway.limit)
    config = stand.fill(
        "sluice.ini", name + ".ini", name=name, gateway=gateway.gateway,
        store="unix:" + start_redis(stand) if gateway.redis else "memory:",
        store_more=store, backend=backend,
        limit=limit if gateway.limited else "")
    return config, stand.path(name + ".sock")


def start_gateway(stand, name, gateway, to, more=""):
    """A Sluice before `to`: its socket and its process."""
    config, path = configure(
        stand, name, gateway,
        "type = fastcgi\naddress = unix:%s\n%s" % (to, more))
    server = stand.start(name, [stands.SLUICE, "serve", "-c", config], path)
    return path, server


def start_lighttpd(stand, name, way, to):
    port = stands.free_port()
    config = stand.fill("lighttpd.conf", name + ".lighttpd.conf", port=port,
                        name=name, to=to, match=path_of(name, way))
    stand.start(name + ".lighttpd", ["lighttpd", "-D", "-f", config],
                ("127.0.0.1", port))
    return port


def start_nginx(stand, name, way, to):
    port = stands.free_port()
    access = {"": "", "limit_req": "limit_req zone=bench;", "lua":
              "access_by_lua_file %s;" % stand.path(name + ".lua")}
    if way.access == "lua":
        stand.fill("limiter.nginx.lua", name + ".lua", limit=way.rate,
                   name=name, **limiter(stand))
    # Sluice takes what comes; hello has a thread for each connection, and
    # half of them are never held by idle ones.
    kept = 32 if way.gateway else max(
        1, HELLO_THREADS // 2 // os.cpu_count())
    config = stand.fill("nginx.conf", name + ".nginx.conf", port=port,
                        name=name, to=to, access=access[way.access],
                        kept=kept,
                        who="user root;" if os.geteuid() == 0 else "")
    stand.start(name + ".nginx", ["nginx", "-c", config, "-e",
                                    stand.path(name + ".log")],
                ("127.0.0.1", port))
    return port


def start_haproxy(stand, name, *_):
    port = stands.free_port()
    config = stand.fill("haproxy.cfg", name + ".cfg", port=port)
    stand.start(name, ["haproxy", "-db", "-f", config], ("127.0.0.1", port))
    return port


WEB = {"lighttpd": start_lighttpd, "nginx": start_nginx,
       "haproxy": start_haproxy}


def start_way(stand, name):
    """Starts all of a way; returns the port where it begins."""
    way, name = WAYS[name], plain(name)
    if way.gateway:
        must_know(stand, GATEWAYS[way.gateway].needs)
    to, more = "", ""
    if way.script:
        to = start_php(stand, name, way)
        more = "max_inflight = %d" % way.children
    elif way.web != "haproxy":
        to = start_hello(stand, name)
    if way.gateway:
        to, _ = start_gateway(
            stand, name, GATEWAYS[way.gateway], to, more)
    return WEB[way.web](stand, name, way, to)
