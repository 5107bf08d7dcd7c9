#!/bin/sh
# Takes the body of a login.
printf 'Content-Type: text/plain\r\n\r\n'
echo "$REQUEST_METHOD $SCRIPT_NAME: $(head -c 1000)"
