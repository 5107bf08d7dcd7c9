#!/bin/sh
# Says nothing for half a second.
sleep 0.5
printf 'Content-Type: text/plain\r\n\r\nlate\n'
