#!/bin/sh
# A small CGI application. It knows nothing of limits.
printf 'Content-Type: text/plain\r\n\r\n'
echo "Hello ${REMOTE_ADDR:-you}. It is $(date +%H:%M:%S)."
