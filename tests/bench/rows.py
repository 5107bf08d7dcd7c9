"""What the bench tells: a row for each figure with what it has to be, and how
the groups of rows are measured, which follows from the rows."""

import operator
from typing import NamedTuple, Optional

import mixed
import of_process
import of_store
from throughput import Half, Saturated, busy
from ways import THREADS

RATE, RATIO = "requests/s", "ratio"
# Unit -> digits behind the point; None: whole numbers.
UNITS = {RATE: None, "checks/s": None, "answers": None, RATIO: 3, "ms": 3,
         "MB": 1, "commands": 3}
HOLDS = {">=": operator.ge, "<=": operator.le, "<": operator.lt}
HALF = ("lighttpd", "nginx")  # measured at half of what saturates them


class Row(NamedTuple):
    group: str
    name: str
    figure: object  # a figure's name, or two: the first over the second
    unit: str
    target: Optional[tuple] = None  # (">=", 0.55)

    def figures(self):
        """Their names; of a ratio that which the other is held against comes
        first."""
        return self.figure[::-1] if isinstance(self.figure, tuple) else (
            self.figure,)

    def holds(self, value):
        """None: whatever it is."""
        return HOLDS[self.target[0]](value, self.target[1]) \
            if self.target else None


def straight(web, name, way, *target):
    """A way's ratio to the same web server straight to the application."""
    return Row(web, "%s: %s / straight" % (web, name),
               ("%s, %s" % (web, way), web), RATIO, *target)


ROWS = [
    Row("lighttpd", "lighttpd straight to the application", "lighttpd", RATE),
    Row("lighttpd", "lighttpd: exact", "lighttpd, exact", RATE),
    Row("lighttpd", "lighttpd: lease = 16", "lighttpd, lease 16", RATE),
    Row("lighttpd", "lighttpd: lease = auto", "lighttpd, lease auto", RATE),
    Row("lighttpd", "lighttpd: memory:", "lighttpd, memory", RATE),
    Row("lighttpd", "lighttpd: refused, deny cache", "lighttpd, refused",
        RATE),
    Row("lighttpd", "lighttpd: refused, asking Redis",
        "lighttpd, refused by Redis", RATE),
    Row("lighttpd", "lighttpd: refused, memory:",
        "lighttpd, refused by memory", RATE),
    straight("lighttpd", "exact", "exact", (">=", 0.55)),
    straight("lighttpd", "lease = 16", "lease 16"),
    straight("lighttpd", "lease = auto", "lease auto", (">=", 0.72)),
    straight("lighttpd", "memory:", "memory"),

    Row("nginx", "nginx straight to the application", "nginx", RATE),
    Row("nginx", "nginx: exact", "nginx, exact", RATE),
    Row("nginx", "nginx: lease = 16", "nginx, lease 16", RATE),
    Row("nginx", "nginx: lease = auto", "nginx, lease auto", RATE),
    Row("nginx", "nginx: memory:", "nginx, memory", RATE),
    Row("nginx", "nginx + Lua + Redis", "nginx + Lua", RATE),
    Row("nginx", "nginx: refused, deny cache", "nginx, refused", RATE),
    Row("nginx", "nginx: refused, memory:", "nginx, refused by memory", RATE),
    Row("nginx", "nginx + Lua + Redis: refused", "nginx + Lua, refused",
        RATE),
    Row("nginx", "nginx limit_req: refused", "nginx limit_req, refused",
        RATE),
    Row("nginx", "HAProxy stick table: refused", "HAProxy, refused", RATE),
    straight("nginx", "exact", "exact", (">=", 0.52)),
    straight("nginx", "lease = 16", "lease 16"),
    straight("nginx", "lease = auto", "lease auto", (">=", 0.72)),
    straight("nginx", "memory:", "memory"),
    Row("nginx", "nginx: exact / nginx + Lua + Redis",
        ("nginx, exact", "nginx + Lua"), RATIO, (">=", 0.90)),
    Row("nginx", "nginx: lease = auto / nginx + Lua + Redis",
        ("nginx, lease auto", "nginx + Lua"), RATIO, (">=", 1.20)),
    Row("nginx", "nginx: refused / nginx + Lua + Redis refusing",
        ("nginx, refused", "nginx + Lua, refused"), RATIO, (">=", 1.40)),

    Row("php", "lighttpd straight to php-fpm", "php", RATE),
    Row("php", "limiter in PHP", "php limiter", RATE),
    Row("php", "php-fpm: exact", "php, exact", RATE),
    Row("php", "php-fpm: lease = auto", "php, lease auto", RATE),
    Row("php", "limiter in PHP: refused", "php limiter, refused", RATE),
    Row("php", "php-fpm: refused, deny cache", "php, refused", RATE),
    Row("php", "php-fpm: refused, memory:", "php, refused by memory", RATE),
    Row("php", "php-fpm: exact / limiter in PHP",
        ("php, exact", "php limiter"), RATIO, (">=", 1.4)),
    Row("php", "php-fpm: refused / limiter in PHP refusing",
        ("php, refused", "php limiter, refused"), RATIO, (">=", 2.5)),

    *(Row("mixed", "hot and cold keys: lease = %s" % size,
          mixed.name_of(size), RATE) for size in mixed.SIZES),
    Row("mixed", "hot and cold keys: lease = auto / best of the fixed",
        (mixed.name_of("auto"), mixed.BEST_FIXED), RATIO, (">=", 1)),

    *(Row("threads", "lighttpd: exact, threads = %d / straight" % n,
          ("lighttpd, threads %d" % n, "lighttpd"), RATIO) for n in THREADS),

    *(Row("store", "Redis: %s, %s" % (law, what), "%s by %d" % (law, n),
          "checks/s", *target)
      for law in ("fixed_window", "sliding_window")
      for n, what, target in (
          (32, "32 in a call", [(">=", 140000)]
           if law == "sliding_window" else []),
          (1, "one in a call, pipelined", []))),
    Row("store", "Redis: fixed_window, 32 in a call / one in a call",
        ("fixed_window by 32", "fixed_window by 1"), RATIO, (">=", 1.8)),
    Row("store", "Redis: sliding_window, 32 in a call / one in a call",
        ("sliding_window by 32", "sliding_window by 1"), RATIO, (">=", 1.5)),
    Row("commands", "store commands per refused request, deny cache",
        "refused", "commands", ("<=", 0)),
    Row("commands", "store commands per refused request, without",
        "refused by Redis", "commands"),

    *(row for web in HALF for row in (
        Row("p99", web + " straight: p99 at half of saturation",
            web + " p99", "ms"),
        Row("p99", web + ": exact: p99 at half of saturation",
            web + ", exact p99", "ms"),
        Row("p99", web + ": p99 added at half of saturation",
            web + " added p99", "ms", ("<", 1)))),
    Row("outage", "longest answer as Redis begins to hang, timeout = 50ms",
        "outage begins", "ms", ("<=", 60)),
    Row("outage", "added per request while Redis hangs", "outage adds", "ms",
        ("<", 0.1)),

    Row("busy", "not served of 200 at a time, php-fpm of 5 children", "busy",
        "answers", ("<=", 0)),
    Row("idle", "resident memory, 10,000 idle kept connections", "idle", "MB",
        ("<", 40)),
    Row("start", "start to first answer", "start-up", "ms", ("<", 50)),
    Row("cgi", "cgi role: added to running the script", "cgi", "ms",
        ("<", 3)),
    Row("carry", "1 GB up, byte-exact: memory grows by", "upload", "MB",
        ("<", 8)),
    Row("carry", "1 GB down, byte-exact: memory grows by", "download", "MB",
        ("<", 8)),
]


def saturated(group):
    """All ways that the group's rows name, in their order."""
    return Saturated(*dict.fromkeys(
        name for row in ROWS if row.group == group for name in row.figures()))


# Group -> how it is measured, in the order of the run.
GROUPS = {
    "lighttpd": saturated("lighttpd"),
    "nginx": saturated("nginx"),
    "php": saturated("php"),
    "mixed": mixed.mixed,
    "threads": saturated("threads"),
    "store": of_store.calls_a_second,
    "commands": of_store.commands,
    "p99": Half(*HALF),
    "outage": of_store.outage,
    "busy": busy,
    "idle": of_process.idle,
    "start": of_process.start_up,
    "cgi": of_process.cgi,
    "carry": of_process.carry,
}
