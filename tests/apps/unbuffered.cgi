#!/bin/sh
# As events.cgi, for a web server that buffers unless it is asked not to.
printf 'X-Accel-Buffering: no\r\n'
exec "$(dirname "$0")/events.cgi"
