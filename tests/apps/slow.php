<?php
// Twenty milliseconds of work.
usleep(20000);
echo 'done';
