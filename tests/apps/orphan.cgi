#!/bin/sh
# Leaves a child behind that holds its output open (fcgiwrap #40).
printf 'Content-Type: text/plain\r\n\r\nhere\n'
tail -f /dev/null &
