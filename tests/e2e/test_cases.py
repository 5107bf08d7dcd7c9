"""cases.txt and the tests: nothing that once went wrong loses its test."""

import os
import re

HERE = os.path.dirname(os.path.abspath(__file__))
TESTS = os.path.dirname(HERE)
ROW = re.compile(r"(\d+[a-z]?): (\S.*?): (- \S.*|\S+::.*)")


def rows():
    """(id, tests) of each line; tests is empty where there is a reason."""
    with open(os.path.join(HERE, "cases.txt")) as f:
        lines = [line.rstrip("\n") for line in f]
    out = []
    for line in lines:
        if line and not line.startswith("#"):
            match = ROW.fullmatch(line)
            assert match, "no row: " + line
            what = match.group(3)
            out.append((match.group(1),
                        [] if what.startswith("- ") else what.split()))
    return out


def sort_key(number):
    return int(number.rstrip("ab")), number


def text_of(file):
    with open(os.path.join(TESTS, file)) as f:
        return f.read()


def is_defined(file, name):
    start = "def " if file.endswith(".py") else ""
    return re.search(r"^%s%s\(" % (start, name), text_of(file), re.M)


def test_each_number_once_and_in_order():
    numbers = [number for number, _ in rows()]
    assert len(numbers) > 80
    assert numbers == sorted(set(numbers), key=sort_key)


def test_each_test_is_there():
    missing = [test for _, tests in rows() for test in tests
               if not is_defined(*test.split("::"))]
    assert not missing


def test_each_is_tested_under_its_number():
    """In the name of a test, or of one of its parameters."""
    for number, tests in rows():
        carried = [test for test in tests
                   if ".c::" in test
                   or "_%s_" % number in test.split("::")[1]
                   or re.search(r'"%s_\w+"' % number,
                                text_of(test.split("::")[0]))]
        assert carried == tests, (number, tests)
