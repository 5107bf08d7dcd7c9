#!/bin/sh
# Writes its and a child's pid to the file named by the query, then hangs.
# With TERM ignored by the child: only KILL ends it.
(trap '' TERM; exec tail -f /dev/null) &
echo "$$ $!" >"$QUERY_STRING.new"
mv "$QUERY_STRING.new" "$QUERY_STRING"
printf 'Content-Type: text/plain\r\n\r\nstarted\n'
wait
