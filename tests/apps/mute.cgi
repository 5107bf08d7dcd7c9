#!/bin/sh
# Never says anything and never ends by itself.
exec tail -f /dev/null
