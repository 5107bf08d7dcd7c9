"""doc/scaling.md: what it tells to type gives what it shows."""

import json
import os
import re
import subprocess
import sys

import pytest

from harness.gateway import BINARY, ROOT

os.environ["SLUICE"] = BINARY
sys.path.insert(0, os.path.join(ROOT, "tests/bench"))

from rows import GROUPS, ROWS  # noqa: E402

with open(os.path.join(ROOT, "doc/scaling.md"), encoding="utf-8") as f:
    TEXT = f.read()
PLAYED = re.findall(r"```sh\n(.*?)\n```\n\n```text\n(.*?)```", TEXT, re.DOTALL)


def run(*argv):
    return subprocess.run(argv, cwd=ROOT, capture_output=True, text=True,
                          timeout=60)


def test_both_commands_are_there():
    assert [command.split()[0] for command, _ in PLAYED] == [
        "tests/bench/scaling", "tests/bench/simulate"]


def test_the_groups_and_rows_it_names_are_there():
    text = TEXT.replace("\n", " ")
    groups = re.findall(r"GROUPS=\"?([a-z0-9 ]+?)[`\"]", text)
    assert groups == ["lighttpd store", "lighttpd", "store", "commands"]
    assert set(" ".join(groups).split()) <= set(GROUPS)
    for row in "32 in a call", "one in a call", "/ straight":
        assert "`%s`" % row in text
        assert [r for r in ROWS if row in r.name]


@pytest.mark.parametrize("command, shown", PLAYED)
def test_a_command_prints_what_is_shown(command, shown):
    said = run(sys.executable, *command.split())
    assert (said.stdout, said.stderr) == (shown, "")


def test_what_the_bench_has_written_is_read(tmp_path):
    bench = tmp_path / "bench.json"
    bench.write_text(json.dumps({"rows": [
        {"name": row.name, "value": 1000 + i, "unit": row.unit}
        for i, row in enumerate(ROWS)]}))
    said = run(sys.executable, "tests/bench/scaling", str(bench))
    assert said.returncode == 0, said.stderr
    assert "not measured" not in said.stdout
    values = {row.name: 1000 + i for i, row in enumerate(ROWS)}
    assert re.search(r"exact +%d\n" % values["lighttpd: exact"], said.stdout)
    assert "one Redis core, %d checks/s\n" % values[
        "Redis: sliding_window, 32 in a call"] in said.stdout


def test_what_the_bench_has_not_measured_is_said(tmp_path):
    bench = tmp_path / "bench.json"
    bench.write_text('{"rows": []}')
    said = run(sys.executable, "tests/bench/scaling", str(bench))
    assert said.returncode == 1
    assert "make bench GROUPS=store" in said.stderr
    said = run(sys.executable, "tests/bench/scaling", str(bench),
               "--checks", "1000")
    assert said.returncode == 0
    assert said.stdout.count("not measured") == 3


def test_what_leases_do_in_the_simulation():
    """All that could be is admitted without them, and with them nearly all,
    for fewer trips."""
    said = run(sys.executable, "tests/bench/simulate", "--gateways", "30",
               "--limit", "300", "--loads", "3", "--seed", "7")
    assert said.returncode == 0, said.stderr
    lines = {words[1]: (float(words[2]), float(words[3]))
             for words in map(str.split, said.stdout.splitlines())
             if len(words) == 4 and words[0] == "3"}
    assert list(lines) == ["0", "4", "16", "64", "auto"]
    admitted, trips = lines.pop("0")
    assert admitted == 1 and 1 / 3 < trips < 1
    for size in "4", "16", "auto":
        assert 0.9 < lines[size][0] <= 1 and 0 < lines[size][1] < trips


def test_a_window_beyond_its_limit_ends_the_simulation():
    with open(os.path.join(ROOT, "tests/bench/simulate"),
              encoding="utf-8") as f:
        broken = f.read().replace(
            "taken = min(wanted, self.limit - self.used)", "taken = wanted")
    said = run(sys.executable, "-c", broken, "--gateways", "30", "--limit",
               "300", "--loads", "3")
    assert said.returncode == 1
    assert "simulate: a window admitted" in said.stderr
