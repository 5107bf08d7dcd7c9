#!/bin/sh
# How long the body is said to be, and the digest of what came.
printf 'Content-Type: text/plain\r\n\r\n%s ' "$CONTENT_LENGTH"
sha256sum
