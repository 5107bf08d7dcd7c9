#!/bin/sh
# Its environment and directory.
printf 'Content-Type: text/plain\r\n\r\n'
env
echo "CWD=$PWD"
echo "FDS=$(ls /proc/$$/fd | tr '\n' ' ')"
