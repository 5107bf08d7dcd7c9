#!/bin/sh
# The file named by the query, as it is, as the whole output.
exec cat "$QUERY_STRING"
