#!/bin/sh
# The file named by the query.
printf 'Content-Type: application/octet-stream\r\n\r\n'
exec cat "$QUERY_STRING"
