#!/bin/sh
# The application: it gives away a coupon.
printf 'Content-Type: text/plain\r\n\r\nA coupon for you.\n'
