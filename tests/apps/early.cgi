#!/bin/sh
# Answers without reading its input, and is gone.
printf 'Content-Type: text/plain\r\n\r\nearly\n'
