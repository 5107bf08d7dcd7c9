#!/bin/sh
# Prints a C header with each script's text and its SHA1, as Redis knows it.
# Usage: embed.sh SCRIPT.lua...
# A line "--@include FILE" is replaced by that file, found beside the script.
set -eu

expand() {
	directory=$(dirname "$1")
	while IFS= read -r line; do
		case $line in
		"--@include "*) cat "$directory/${line#--@include }" ;;
		*) printf '%s\n' "$line" ;;
		esac
	done <"$1"
}

for script; do
	name=$(basename "$script" .lua)
	printf '#define LUA_%s_SHA1 "%s"\n' "$name" \
		"$(expand "$script" | sha1sum | cut -c 1-40)"
	printf 'static const char lua_%s[] =\n' "$name"
	expand "$script" | sed 's/\\/\\\\/g; s/"/\\"/g; s/.*/    "&\\n"/'
	printf '    ;\n'
done
