#!/bin/sh
# Answers and closes its output, and works on with a child that only KILL
# ends. Query: a file for their pids, and `+deaf` if TERM does not end it.
file=${QUERY_STRING%+deaf}
[ "$file" = "$QUERY_STRING" ] || trap '' TERM
printf 'Content-Type: text/plain\r\n\r\nanswered\n'
exec >/dev/null 2>&1
(trap '' TERM; exec tail -f /dev/null) &
echo "$$ $!" >"$file.new"
mv "$file.new" "$file"
while :; do wait; done
