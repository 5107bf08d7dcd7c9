"""CGI scripts: which one is meant, what it is given, how it may end."""

import os
import shutil

import pytest

from harness import fcgi, process
from harness.deadline import SCALE, elapse, until
from harness.recipes import cgi

HEAD = "printf 'Content-Type: text/plain\\r\\n\\r\\n'\n"
# What the script was started with, before a shell has added its own.
ENV = HEAD + "tr '\\0' '\\n' </proc/$$/environ\n"


@pytest.fixture(scope="module")
def root(shared):
    os.makedirs(shared.place / "sites/root/sub")
    os.symlink("sites", shared.place / "way")
    return shared.place / "sites/root"


@pytest.fixture(scope="module")
def gateway(shared, root):
    os.environ["SLUICE_TEST_TWICE"] = "the gateway's"
    os.environ["SLUICE_TEST_HIDDEN"] = "hidden"
    way = shared.place / "way/root"
    return shared.gateway({
        "backend short": {**cgi(way, run_timeout="500ms"),
                          "path": "/short/*"},
        "backend default": cgi(way, env="SLUICE_TEST_TWICE"),
    })


@pytest.fixture(scope="module")
def write(shared, root):
    """Writes a script of that name below root; its path."""
    def write(name, body, mode=0o755):
        return shared.place.write(
            "sites/root/" + name, "#!/bin/sh\n" + body, mode)
    return write


def variables(got):
    assert (got.status, got.complete) == (200, True)
    pairs = [line.split("=", 1) for line in got.body.decode().split("\n")
             if line]
    names = [name for name, _ in pairs]
    assert len(set(names)) == len(names), "twice in an environment"
    return dict(pairs)


WAYS = {
    "whole_path": {"SCRIPT_FILENAME": "{root}/env.cgi/more/x",
                   "SCRIPT_NAME": "/env.cgi/more/x"},
    "proxy": {"SCRIPT_FILENAME": "proxy:fcgi://localhost:9{root}"
                                 "/env.cgi/more/x",
              "SCRIPT_NAME": "/env.cgi/more/x"},
    "balancer": {"SCRIPT_FILENAME": "proxy:balancer://pool{root}"
                                    "/env.cgi/more/x",
                 "SCRIPT_NAME": "/env.cgi/more/x"},
    "cut_by_the_server": {"SCRIPT_FILENAME": "{root}/env.cgi",
                          "SCRIPT_NAME": "/env.cgi", "PATH_INFO": "/more/x",
                          "PATH_TRANSLATED": "{root}/more/x"},
    "no_file_name": {"SCRIPT_FILENAME": None, "DOCUMENT_ROOT": "{root}",
                     "SCRIPT_NAME": "/env.cgi/more/x"},
    "root_with_a_slash": {"SCRIPT_FILENAME": None,
                          "DOCUMENT_ROOT": "{root}/",
                          "SCRIPT_NAME": "/env.cgi/more/x"},
    "info_apart": {"SCRIPT_FILENAME": None, "DOCUMENT_ROOT": "{root}",
                   "SCRIPT_NAME": "/env.cgi", "PATH_INFO": "/more/x"},
    "all_is_info": {"SCRIPT_FILENAME": "{root}/", "DOCUMENT_ROOT": "{root}",
                    "SCRIPT_NAME": "", "PATH_INFO": "/env.cgi/more/x"},
}


@pytest.mark.parametrize("way", WAYS)
def test_81_82_what_is_behind_the_script_is_path_info(
        gateway, root, write, way):
    write("env.cgi", ENV)
    said = {n: v and v.format(root=root) for n, v in WAYS[way].items()}
    said.setdefault("DOCUMENT_ROOT", root)
    env = variables(gateway.ask("/env.cgi/more/x", **said))
    assert env["SCRIPT_FILENAME"] == root + "/env.cgi"
    assert env["SCRIPT_NAME"] == "/env.cgi"
    assert env["PATH_INFO"] == "/more/x"
    assert env["PATH_TRANSLATED"] == root + "/more/x"
    assert env["REQUEST_URI"] == "/env.cgi/more/x"


def test_no_path_info_is_made_up(gateway, root, write):
    path = write("env.cgi", ENV)
    env = variables(gateway.ask("/env.cgi", SCRIPT_FILENAME=path))
    assert "PATH_INFO" not in env and "PATH_TRANSLATED" not in env
    env = variables(gateway.ask("/env.cgi", SCRIPT_FILENAME=None,
                                DOCUMENT_ROOT=root))
    assert "PATH_INFO" not in env and "PATH_TRANSLATED" not in env


@pytest.mark.parametrize("query", ["?a=b", "?a=/b/c"])
def test_48_a_query_in_apaches_file_name_is_cut(gateway, root, write, query):
    write("env.cgi", ENV)
    env = variables(gateway.ask(
        "/env.cgi" + query, SCRIPT_FILENAME="proxy:fcgi://localhost" + root
        + "/env.cgi" + query))
    assert env["SCRIPT_FILENAME"] == root + "/env.cgi"
    assert env["QUERY_STRING"] == query[1:]
    assert "PATH_INFO" not in env


def test_78_a_file_name_is_not_decoded(gateway, root, write):
    write("env.cgi", HEAD + "echo plain\n")
    for name in ("%65nv.cgi", "ask?.cgi", "a b+c.cgi"):
        path = write(name, HEAD + "basename \"$0\"\n")
        got = gateway.ask("/x", SCRIPT_FILENAME=path)
        assert got.body.decode() == name + "\n"


LINKS = {
    # a link below root: where it leads, what a request for it gets
    "to_a_script.cgi": ("sub/real.cgi", 200),
    "absolute.cgi": ("{root}/sub/real.cgi", 200),
    "of_a_link.cgi": ("to_a_script.cgi", 200),
    "sub/up.cgi": ("../sub/real.cgi", 200),
    "out.cgi": ("../outside.cgi", 403),
    "out_dir": ("..", 403),
    "neighbour": ("../root2", 403),
    "dangling.cgi": ("nowhere", 404),
    "loop.cgi": ("loop.cgi", 404),
}


def test_links_lead_nowhere_outside_root(gateway, root, write):
    write("sub/real.cgi", HEAD + "pwd; basename $0\n")
    write("../outside.cgi", HEAD)
    os.makedirs(root + "2")
    write("../root2/outside.cgi", HEAD)
    for name, (target, status) in LINKS.items():
        path = root + "/" + name
        os.symlink(target.format(root=root), path)
        if os.path.isdir(path):
            path += "/outside.cgi"
        got = gateway.ask("/x", SCRIPT_FILENAME=path)
        assert (name, got.status, got.complete) == (name, status, True)
        if status == 200:
            assert got.body == (root + "/sub\nreal.cgi\n").encode()


def test_its_environment_is_exactly_the_requests(gateway, write):
    path = write("env.cgi", ENV)
    items = fcgi.env("/env.cgi", SCRIPT_FILENAME=path, EMPTY="",
                     REDIRECT_STATUS="200")
    dropped = [("FCGI_ROLE", "x"), ("LD_PRELOAD", "x"), ("BASH_ENV", "x"),
               ("PYTHONPATH", "x"), ("PERL5LIB", "x"), ("IFS", "x"),
               ("PATH", "x"), ("a-b", "x"), ("BASH_FUNC_a%%", "() { x; }"),
               ("1A", "x"), ("SLUICE_TEST_TWICE", "the request's")]
    env = variables(fcgi.ask(gateway.address, items + dropped))
    want = dict(items)
    want["PATH"] = "/usr/local/bin:/usr/bin:/bin"
    want["SLUICE_TEST_TWICE"] = "the gateway's"
    assert env == want


@pytest.mark.parametrize("name", [
    "HTTP_PROXY", "HTTP_Proxy", "http_proxy", "Http_proxy"])
def test_83_httpoxy_in_every_spelling(gateway, write, name):
    path = write("env.cgi", ENV)
    items = fcgi.env("/env.cgi", SCRIPT_FILENAME=path)
    got = fcgi.ask(gateway.address, items + [(name, "evil")] * 2)
    assert got.status == 200
    assert b"evil" not in got.body


def test_31_executable_but_not_readable(farm):
    """By a user whom permissions bind: a copy of cat, which answers what
    it is sent."""
    root = farm.place / "bin"
    os.makedirs(root)
    os.chmod(farm.place.path, 0o755)
    for name, mode in (("cat.cgi", 0o111), ("mine.cgi", 0o600)):
        shutil.copyfile("/bin/cat", root + "/" + name)
        os.chmod(root + "/" + name, mode)
    become = 'set -- setpriv --reuid=65534 --regid=65534 --clear-groups "$@"'
    os.makedirs(farm.place / "spool")
    os.chmod(farm.place / "spool", 0o777)
    gateway = farm.gateway(
        {"gateway": {"spool_directory": farm.place / "spool"},
         "backend default": cgi(root)},
        listen=("127.0.0.1", process.free_port()),
        prologue=become if os.geteuid() == 0 else ":")
    body = b"Content-Type: text/plain\r\n\r\nread"
    got = gateway.ask("/", body, SCRIPT_FILENAME=root + "/cat.cgi",
                      method="POST", CONTENT_LENGTH=str(len(body)))
    assert (got.status, got.body) == (200, b"read")
    os.makedirs(root + "/mine", 0o600)
    for name in ("mine.cgi", "mine/any.cgi", "mine/any.cgi/more"):
        got = gateway.ask("/", SCRIPT_FILENAME=root + "/" + name)
        assert (name, got.status) == (name, 403)


def test_99_its_input_ends(gateway, write):
    """With no body at once, else behind the body."""
    path = write("wc.cgi", HEAD + "wc -c\n")
    got = gateway.ask("/", SCRIPT_FILENAME=path)
    assert (got.status, got.body.strip()) == (200, b"0")
    got = gateway.ask("/", b"12345", SCRIPT_FILENAME=path, method="POST",
                      CONTENT_LENGTH="5")
    assert (got.status, got.body.strip()) == (200, b"5")


ENDS = {
    # the script, status (None: it may be out already), log
    "fails_without_head": ("exit 3\n", 502, "ended with status 3"),
    "fails_behind_it": (HEAD + "echo all\nexit 3\n", 200,
                        "ended with status 3"),
    "killed_without_head": ("kill -9 $$\n", 502, "ended by signal 9"),
    "killed_behind_it": (HEAD + "echo all\nkill -9 $$\n", None,
                         "ended by signal 9"),
    "killed_behind_all": (
        "printf 'Content-Length: 4\\n\\nall\\n'\nkill -9 $$\n", 200,
        "ended by signal 9"),
    "half_a_head": ("printf 'Content-Type: text/pl'\n", 502,
                    "before a response head"),
    "half_a_body": ("printf 'Content-Length: 9\\n\\nall\\n'\n", None,
                    "ended too early"),
}


@pytest.mark.parametrize("how", ENDS)
def test_33_how_it_ends(gateway, write, how):
    script, status, text = ENDS[how]
    path = write(how + ".cgi", script)
    mark = gateway.log.mark()
    got = gateway.ask("/" + how, SCRIPT_FILENAME=path)
    entry = gateway.log.wait_for("request", since=mark, path="/" + how)
    assert text in entry.get("error", "")
    if status is None and got.status != 502:
        assert got.end is None
    else:
        assert (got.status, got.complete) == (status or 502, True)


@pytest.mark.parametrize("first", ["#!/nowhere/sh\n", "no program\n"])
def test_what_can_not_be_started_is_502(gateway, root, shared, first):
    path = shared.place.write("sites/root/no.cgi", first, 0o755)
    mark = gateway.log.mark()
    got = gateway.ask("/no", SCRIPT_FILENAME=path)
    assert (got.status, got.complete) == (502, True)
    entry = gateway.log.wait_for("request", since=mark, path="/no")
    assert "can not start " + path in entry["error"]


def test_95_works_on_after_its_answer(gateway, write, tmp_path):
    """It has closed its output. It still may read, and complain."""
    done = str(tmp_path / "done")
    path = write("on.cgi", HEAD + "echo answered\nexec >&-\n"
                 "head -c 300000 /dev/zero | tr '\\0' e >&2\n"
                 "wc -c >'%s.new'; mv '%s.new' '%s'\n" % (done, done, done))
    body = b"b" * 500000
    got = gateway.ask("/on", body, SCRIPT_FILENAME=path, method="POST",
                      CONTENT_LENGTH=str(len(body)))
    assert (got.body, got.complete) == (b"answered\n", True)
    until(lambda: os.path.exists(done), 5.0, "the script's last step")
    with open(done) as f:
        assert int(f.read()) == len(body)


def test_95_works_on_but_not_for_ever(gateway, write, tmp_path):
    pids = str(tmp_path / "pid")
    path = write("short.cgi", HEAD + "echo answered\necho $$ >'%s'\n"
                 "exec >/dev/null 2>&1\nexec tail -f /dev/null\n" % pids)
    got = gateway.ask("/short/x", SCRIPT_FILENAME=path)
    assert (got.body, got.complete) == (b"answered\n", True)
    with open(pids) as f:
        pid = int(f.read())
    until(lambda: not process.alive(pid), 5.0, "the script's end")


@pytest.mark.parametrize("said", ["", "Content-Length: 9\\n\\nall\\n"])
def test_33_closes_its_output_too_early_and_works_on(gateway, write, said):
    """There is no response to come: nobody waits for its end."""
    path = write("early.cgi", "printf '%s'\nexec >/dev/null 2>&1\n"
                 "exec tail -f /dev/null\n" % said)
    got = gateway.ask("/early", SCRIPT_FILENAME=path)
    if got.out and got.status != 502:
        assert got.end is None
    else:
        assert (got.status, got.complete) == (502, True)


def test_95_killed_from_outside_and_nothing_spins(gateway, write):
    path = write("own.cgi", "kill -15 $$\n")
    assert gateway.ask("/", SCRIPT_FILENAME=path).status == 502
    before = gateway.cpu_seconds()
    elapse(0.3)
    assert gateway.cpu_seconds() - before < 0.1 * SCALE


def test_18_an_environment_no_system_takes_is_502(farm, write):
    """3 MB of it, which exec refuses; half a megabyte is given whole."""
    path = write("large.cgi", HEAD + "wc -c </proc/$$/environ\n")
    gateway = farm.gateway({"gateway": {"max_head": "4m"},
                            "backend default": cgi(os.path.dirname(path))})
    got = gateway.ask("/", SCRIPT_FILENAME=path,
                      **{"X%d" % n: "v" * 50000 for n in range(10)})
    assert (got.status, int(got.body) > 500000) == (200, True)
    got = gateway.ask("/", SCRIPT_FILENAME=path,
                      **{"X%d" % n: "v" * 50000 for n in range(60)})
    assert (got.status, got.complete) == (502, True)
    entry = gateway.log.wait_for("request", status=502)
    assert "Argument list too long" in entry["error"]


def test_its_limit_of_descriptors_is_that_of_the_gateways_start(
        farm, write):
    """Though Sluice raises its own. It comes right behind the start."""
    path = write("limit.cgi", "until [ $(ulimit -n) = 1000 ]; do :; done\n"
                 + HEAD + "ulimit -n; ulimit -Hn\n")
    gateway = farm.gateway({"backend default": cgi(os.path.dirname(path),
                                                   run_timeout="5s")},
                           nofile=(1000, 3000))
    assert gateway.ask("/", SCRIPT_FILENAME=path).body == b"1000\n3000\n"
    with open("/proc/%d/limits" % gateway.pid) as f:
        assert "Max open files            3000 " in f.read()
