"""The bench: what it tells, and one small run of its parts that need no
packages but those of the tests. No figure is judged here."""

import json
import os
import subprocess
import sys

import pytest

from harness.gateway import BINARY, ROOT

BENCH = os.path.join(ROOT, "tests/bench")
sys.path.insert(0, BENCH)
os.environ["SLUICE"] = BINARY

from figures import Figures  # noqa: E402
from rows import GROUPS, HOLDS, ROWS, UNITS, Row  # noqa: E402
from stand import Missing  # noqa: E402
from throughput import Saturated  # noqa: E402
from ways import GATEWAYS, WAYS, must_know  # noqa: E402


def bench(output, *groups):
    return subprocess.run(
        [sys.executable, "-B", os.path.join(BENCH, "bench"), output, *groups],
        env=dict(os.environ, ROUNDS="1", SECONDS="1"), timeout=60,
        stdout=subprocess.PIPE, stderr=subprocess.STDOUT, text=True)


def test_a_small_run(tmp_path):
    output = str(tmp_path / "bench.json")
    said = bench(output, "start", "commands")
    assert said.returncode == 0, said.stdout
    with open(output) as f:
        rows = {row["name"]: row for row in json.load(f)["rows"]}
    assert set(rows) == {row.name for row in ROWS
                         if row.group in ("start", "commands")}
    for row in rows.values():
        assert list(row) == [
            "name", "value", "unit", "target", "holds", "reason"]
        assert (row["holds"] is False) == bool(row["reason"])
        assert row["name"] in said.stdout
    assert rows["start to first answer"]["value"] > 0
    asked = rows["store commands per refused request, without"]
    assert asked["value"] and asked["value"] >= 1, asked


def test_a_group_that_is_none(tmp_path):
    said = bench(str(tmp_path / "bench.json"), "apache")
    assert said.returncode == 1
    assert "no such group: apache; there are lighttpd nginx" in said.stdout


def test_a_ratio_is_taken_within_its_round():
    figures = Figures(lambda text: None)
    for a, b in ((10, 20), (30, 30), (8, 10)):
        figures.add("a", a)
        figures.add("b", b)
    assert figures.of(("a", "b")) == [0.5, 1.0, 0.8]


def test_what_fails_is_why_a_figure_is_missing():
    figures = Figures(lambda text: None)
    with figures.trying("a"):
        raise Missing("option not known: x")
    figures.add("b", 1)
    with pytest.raises(Missing, match="option not known: x"):
        figures.of(("b", "a"))
    with pytest.raises(Missing, match="not measured"):
        figures.of("c")


def test_every_row_says_all_of_itself():
    assert {row.group for row in ROWS} == set(GROUPS)
    assert len({row.name for row in ROWS}) == len(ROWS)
    assert {row.unit for row in ROWS} == set(UNITS)
    assert {row.target[0] for row in ROWS if row.target} == set(HOLDS)


def test_every_way_is_measured_for_a_row():
    measured = {"busy php", "lighttpd, unlimited"}  # busy, outage
    for group in GROUPS.values():
        if isinstance(group, Saturated):
            measured.update(group.ways)
    assert measured == set(WAYS)
    for way in WAYS.values():
        assert not way.gateway or way.gateway in GATEWAYS


def test_what_the_others_are_held_against_is_measured_first():
    for group in "lighttpd", "nginx", "php", "threads":
        rows = [row for row in ROWS if row.group == group]
        assert GROUPS[group].ways[0] == rows[0].figures()[0]


@pytest.mark.parametrize("target, holds", [
    (None, [None, None, None]), ((">=", 2), [False, True, True]),
    (("<=", 2), [True, True, False]), (("<", 2), [True, False, False])])
def test_whether_a_target_is_met(target, holds):
    row = Row("store", "a", "a", "ms", target)
    assert [row.holds(value) for value in (1, 2, 3)] == holds


def test_what_the_binary_does_not_know_is_said():
    class Known:
        known = {"[limit] rate": "[limit] rate: rates; 5/1h. In auto mode."}

    must_know(Known, ("[limit] rate", "[limit] rate: auto"))
    for need in ("[limit] lease", "[limit] rate: aut", "[limit] lease: auto"):
        with pytest.raises(Missing) as e:
            must_know(Known, (need,))
        assert str(e.value) == "option not known: " + need
