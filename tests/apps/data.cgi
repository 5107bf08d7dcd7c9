#!/bin/sh
# 300,000 bytes, two cookies, and what an authorizer told of the limit.
printf 'Content-Type: application/octet-stream\r\n'
printf 'Set-Cookie: a=1\r\nSet-Cookie: b=2\r\n'
printf 'X-Told: %s\r\n\r\n' "${RATELIMIT_REMAINING-nothing}"
yes 0123456789 | tr -d '\n' | head -c 300000
