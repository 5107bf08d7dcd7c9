#!/bin/sh
# The smallest application.
printf 'Content-Type: text/plain\r\n\r\nhello\n'
