"""The layers check itself: each rule broken once."""

import unittest

from layers import check


class Layers(unittest.TestCase):
    def test_lower_layers_and_own_header(self):
        self.assertEqual([], check({
            "base/str.c": '#include "base/str.h"\n#include <string.h>\n',
            "base/str.h": "",
            "io/net.c": '#include "base/str.h"\n#include <unistd.h>\n',
            "request/front.c": "#include <fcgiapp.h>\n",
            "io/redis_link.c": "#include <hiredis/hiredis.h>\n",
        }))

    def test_a_higher_layer(self):
        self.assertEqual(
            ["base/str.c includes io/net.h, a higher layer"],
            check({"base/str.c": '#include "io/net.h"\n'}))

    def test_a_circle_over_three_rooms(self):
        said = check({
            "domain/a.c": "\tb_do(1);",
            "domain/b.c": "\tc_do(1);",
            "domain/c.c": "\ta_do(1);",
        })
        self.assertEqual(
            ["a circle: domain/a -> domain/b -> domain/c -> domain/a"], said)

    def test_types_and_words_in_comments_close_no_circle(self):
        self.assertEqual([], check({
            "domain/a.c": "\tb_do(1);",
            "domain/b.c": "\tstruct a_thing x; /* as a_do() */ y.a_do(1);",
        }))

    def test_the_longest_name_owns_a_function(self):
        self.assertEqual([], check({
            "domain/source.c": "\tsource_text_read();",
            "domain/source_text.c": "source_text_read() {}",
        }))

    def test_a_static_function_is_its_files_own(self):
        self.assertEqual([], check({
            "domain/a.c": "\tb_do(1);",
            "domain/b.c": "static int\na_small(int x)\n{}\n a_small(1);",
        }))

    def test_a_second_file_of_a_room(self):
        self.assertEqual([], check({
            "domain/a.h": "",
            "domain/a.c": "\tb_do(1);",
            "domain/a_more.c": '#include "domain/a.h"\na_more() {}',
            "domain/b.c": "\tx(1);",
        }))

    def test_headers_with_an_owner(self):
        for path, header in (("request/guard.c", "fcgiapp.h"),
                             ("domain/store_redis.c", "hiredis/hiredis.h"),
                             ("process/main.c", "ini.h")):
            self.assertEqual(
                ["%s may not include <%s>" % (path, header)],
                check({path: "#include <%s>\n" % header}))

    def test_a_system_call_in_the_pure_layer(self):
        self.assertEqual(["pure/key.c may not include <sys/socket.h>"],
                         check({"pure/key.c": "#include <sys/socket.h>\n"}))

    def test_an_unknown_layer(self):
        self.assertEqual(["util/x.c: no such layer: util"],
                         check({"util/x.c": ""}))


if __name__ == "__main__":
    unittest.main()
