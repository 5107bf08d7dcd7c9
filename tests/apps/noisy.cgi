#!/bin/sh
# A megabyte of complaints, with control characters, then an answer.
printf 'bad\033[31m news\r\n' >&2
head -c 1048576 /dev/zero | tr '\0' e >&2
printf 'Content-Type: text/plain\r\n\r\nquiet\n'
