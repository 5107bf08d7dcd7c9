#!/bin/sh
# What the process is: its pid and its parent's, how it takes signals (as what
# it starts does), its descriptors, its arguments, its directory.
printf 'Content-Type: text/plain\r\n\r\n'
echo "PID=$$"
echo "PARENT=$PPID"
grep -E '^Sig(Blk|Ign):' /proc/self/status | sed 's/:[[:space:]]*/=/'
fds=
# Less the one of the directory itself, which is closed by then.
for fd in "/proc/$$/fd/"*; do
	[ ! -e "$fd" ] || fds="$fds ${fd##*/}"
done
echo "FDS=$fds"
echo "ARGUMENTS=$#"
echo "CWD=$PWD"
