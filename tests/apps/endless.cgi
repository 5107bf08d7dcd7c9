#!/bin/sh
# Sends until nobody listens. It writes its pid to the file named by the
# query, and ends when others take that away.
echo "$$" >"$QUERY_STRING.new"
mv "$QUERY_STRING.new" "$QUERY_STRING"
printf 'Content-Type: application/octet-stream\r\n\r\n'
while [ -e "$QUERY_STRING" ]; do
	printf '%8192s' x || exit
	sleep 0.01
done
