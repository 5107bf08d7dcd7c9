"""Ways held against each other by load: in turn, round after round, so that a
slow moment of the machine hits each of them."""

from load import saturate, steady, wrk
from stand import Stand
from ways import start_way

WARM_SECONDS = 1


class Saturated:
    """Requests a second of several ways."""

    def __init__(self, *ways):
        self.ways = ways

    def __call__(self, figures, rounds, seconds):
        with Stand() as stand:
            ports = {}
            for way in self.ways:
                with figures.trying(way):
                    port = start_way(stand, way)
                    saturate(way, port, WARM_SECONDS)
                    ports[way] = port
            for _ in range(rounds):
                for way, port in ports.items():
                    with figures.trying(way):
                        figures.add(way, saturate(way, port, seconds))


class Half:
    """Milliseconds in which 99 of 100 are answered, straight and through
    Sluice, at half of the rate that saturates Sluice, and their difference."""

    def __init__(self, *webs):
        self.webs = webs

    def __call__(self, figures, rounds, seconds):
        for web in self.webs:
            names = [name + " p99" for name in
                     (web, web + ", exact", web + " added")]
            with figures.trying(*names), Stand() as stand:
                self.measure(figures, stand, web, rounds, seconds)

    @staticmethod
    def measure(figures, stand, web, rounds, seconds):
        through = web + ", exact"
        ports = {way: start_way(stand, way) for way in (web, through)}
        for way, port in ports.items():
            saturate(way, port, WARM_SECONDS)
        rate = saturate(through, ports[through], seconds) / 2
        for _ in range(rounds):
            took = {way: steady(way, port, rate, seconds).p99_us / 1000
                    for way, port in ports.items()}
            for way, ms in took.items():
                figures.add(way + " p99", ms)
            figures.add(web + " added p99", took[through] - took[web])


def busy(figures, rounds, seconds):
    """Answers that are not 2xx, of 200 requests at a time to a php-fpm of
    five children."""
    with Stand() as stand, figures.trying("busy"):
        port = start_way(stand, "busy php")
        for _ in range(rounds):
            figures.add("busy", wrk("busy php", port, seconds, 200).others)
