<?php
// Dies before it has answered.
posix_kill(getmypid(), 9);
sleep(10);
