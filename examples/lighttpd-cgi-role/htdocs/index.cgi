#!/bin/sh
# Says what it was asked for.
printf 'Content-Type: text/plain\r\n\r\n'
echo "$REQUEST_METHOD $SCRIPT_NAME${PATH_INFO-} by a process of its own"
