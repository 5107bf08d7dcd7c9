# What the run scripts here share: servers started on loopback with their
# files in a directory of their own, stopped and removed when the script ends.
# shellcheck shell=bash
#
# RUN   that directory: sockets, pids, logs
# HERE  the example's own directory
# PORT  where the web server listens

set -euo pipefail

HERE=$(cd "$(dirname "$0")" && pwd)
PORT=${PORT:-8080}
RUN=$(mktemp -d "${TMPDIR:-/tmp}/sluice.XXXXXX")
export HERE PORT RUN

pids=()
as_user=()

stop_all() {
	trap '' INT TERM HUP
	if [ ${#pids[@]} != 0 ]; then
		kill "${pids[@]}" 2>/dev/null || true
		wait "${pids[@]}" 2>/dev/null || true
	fi
	rm -rf "$RUN"
}
trap stop_all EXIT
trap 'exit 0' INT TERM HUP

die() {
	echo "$*" >&2
	exit 1
}

# The program: SLUICE, or what this checkout built or builds now, or what is
# installed.
find_sluice() {
	local top=$HERE/../..
	if [ -n "${SLUICE-}" ]; then
		SLUICE=$(realpath "$SLUICE")
	elif [ -f "$top/Makefile" ]; then
		[ -x "$top/build/sluice" ] || make -C "$top"
		SLUICE=$(realpath "$top/build/sluice")
	else
		SLUICE=$(command -v sluice) || die "no sluice: run make first"
	fi
}

# get PACKAGE: through apt-get, as make does, if this is a checkout.
get() {
	local deps=$HERE/../../tests/run/deps
	[ ! -x "$deps" ] || "$deps" "+$1" >&2 || true
}

# find_server COMMAND PACKAGE: its path; Debian keeps servers in /usr/sbin.
find_server() {
	PATH=$PATH:/usr/sbin:/sbin
	command -v "$1" || { get "$2" && command -v "$1"; } ||
		die "$1 is missing: apt-get install $2"
}

newest_php_fpm() {
	find /usr/sbin -name 'php-fpm[0-9]*' | sort -V | tail -n 1 | grep .
}

# Debian's php-fpm has its version in its name.
find_php_fpm() {
	newest_php_fpm || { get php-fpm && newest_php_fpm; } ||
		die "php-fpm is missing: apt-get install php-fpm"
}

# fill FILE: a configuration whose reader gets to see no environment: written to
# RUN with what ${RUN}, ${HERE} and ${PORT} stand for.
fill() {
	local name text
	text=$(<"$HERE/$1")
	for name in RUN HERE PORT; do
		text=${text//"\${$name}"/"${!name}"}
	done
	printf '%s\n' "$text" >"$RUN/$1"
	chmod 644 "$RUN/$1"
}

# Is somebody on PORT of that address?
answers_at() {
	(exec 3<>"/dev/tcp/$1/$PORT") 2>/dev/null
}

answers() {
	answers_at 127.0.0.1
}

port_must_be_free() {
	if answers; then
		die "Port $PORT is taken. Choose another: $1 PORT=8081"
	fi
}

# php-fpm will not be root, and a checkout in /root is closed to others: root's
# servers run as www-data, from a copy of the example.
leave_root() {
	if [ "$(id -u)" = 0 ]; then
		cp -R "$HERE" "$RUN/example"
		cp "$SLUICE" "$RUN/sluice"
		chown -R www-data:www-data "$RUN"
		HERE=$RUN/example SLUICE=$RUN/sluice
		cd "$RUN" # some servers want to go back to where they began
		as_user=(setpriv --reuid=www-data --regid=www-data
			--clear-groups)
	fi
}

failed() {
	tail -n 20 "$RUN"/*.log 2>/dev/null >&2 || true
	die "$1: did not start"
}

start() {
	"${as_user[@]}" "$@" &
	pids+=($!)
}

# wait_until WHAT COMMAND...: until it holds, while all that was started runs.
wait_until() {
	local what=$1 i pid
	shift
	for ((i = 0; i < 200; i++)); do
		if "$@"; then
			return
		fi
		for pid in "${pids[@]}"; do
			kill -0 "$pid" 2>/dev/null || failed "$what"
		done
		sleep 0.05
	done
	failed "$what"
}

# Until Ctrl-C; should one of the servers end, so do we.
serve() {
	wait -n "${pids[@]}" || true
	die "A server has ended: stopping."
}
