#!/bin/sh
# 200 KB before it reads a byte, then the digest of its input.
printf 'Content-Type: text/plain\r\n\r\n'
head -c 204800 /dev/zero | tr '\0' x
sha256sum
