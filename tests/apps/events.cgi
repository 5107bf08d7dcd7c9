#!/bin/sh
# An event for each line of the fifo named by the query.
printf 'Content-Type: text/event-stream\r\n\r\n'
while read -r line; do
	printf 'data: %s\n\n' "$line"
done <"$QUERY_STRING"
